//! Where a site's jobs ran and may run: the cluster, the classes by GPU type, tasks as they were allocated.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources};
use pleach_scheduler::{Tasks, Time};
use pleach_site::slurm::expand;

use super::merge::SiteJob;
use super::row::Others;
use super::{Mapping, SiteOptions, seen};
use crate::Error;
use crate::import::draft::{Draft, RawRow, Site, SiteOf};
use crate::import::row::raised;
use crate::import::tenants::tenancy_for;
use crate::{Observed, RUN_TIME_S_MAX, RUN_TIME_S_MIN, SUBMIT_S_MAX};

/// Class of the jobs that run on any GPU type.
const ANY: &str = "any";
const NO_TYPE: &str = "asks for GPU types that the cluster does not have";
const MANY_CLASSES: &str = "is of more kinds than a list may have";
const OUT_OF_TIME: &str = "was submitted outside of the years that are read";

/// Which types of the cluster a job may use.
type Allowed = BTreeSet<usize>;

/// What is known of where jobs run.
pub(super) struct Placing {
    pub(super) cluster: ClusterSpec,
    /// Types of the source as types of the cluster.
    type_of: Vec<Option<usize>>,
    /// Types of the cluster by the name of a node.
    node_types: BTreeMap<String, usize>,
    /// Types of the cluster in each partition.
    partitions: BTreeMap<String, Allowed>,
    /// Largest node of each type, GPUs.
    largest_node: Vec<u32>,
    /// How fast each type is.
    speeds: Vec<f64>,
    notes: Vec<String>,
}

impl Placing {
    pub(super) fn new(
        jobs: &[SiteJob],
        (types, others): (&[String], &BTreeMap<String, Others>),
        mapping: &Mapping,
        options: &SiteOptions,
    ) -> Result<Placing, Error> {
        let mut notes = Vec::new();
        let nodes = options
            .nodes
            .as_ref()
            .map(|nodes| nodes.in_service(&nodes_of(jobs)));
        let mut cluster = match (&options.import.cluster, &nodes) {
            (Some(cluster), _) => {
                notes.push(options.cluster_note());
                cluster.clone()
            }
            (None, Some(nodes)) => {
                let (mut cluster, more) = nodes.cluster()?;
                rename(&mut cluster, mapping);
                notes.push(format!(
                    "cluster: the {} nodes of the list of nodes",
                    nodes.num_nodes()
                ));
                notes.extend(more);
                cluster
            }
            (None, None) => {
                let (mut cluster, note) = seen::cluster(jobs, types)?;
                rename(&mut cluster, mapping);
                notes.push(note);
                cluster
            }
        };
        let on_gpu_nodes = match &nodes {
            Some(nodes) => nodes.names().map(str::to_owned).collect(),
            None => nodes_of(jobs),
        };
        let (held, note) = held_beside(others, &on_gpu_nodes, jobs, &cluster);
        cluster.seen.core_hours_without_gpus = held;
        notes.extend(note);
        let find = |name: &str| find_type(&cluster, mapping, name);
        let type_of: Vec<Option<usize>> = types.iter().map(|name| find(name)).collect();
        let mut node_types = BTreeMap::new();
        let mut partitions: BTreeMap<String, Allowed> = BTreeMap::new();
        if let Some(nodes) = &nodes {
            for (name, of_type) in nodes.types() {
                node_types.extend(find(of_type).map(|of_type| (name.to_owned(), of_type)));
            }
            for (name, types) in nodes.partitions() {
                partitions.insert(name.to_owned(), types.into_iter().filter_map(find).collect());
            }
        } else {
            // A partition has the types on which its jobs ran, as far as all are known.
            for job in jobs {
                let Some(name) = &job.row.partition else { continue };
                let entry = partitions.entry(name.clone()).or_default();
                match job.row.ran_on.as_slice() {
                    [] => entry.extend(0..cluster.gpu_types.len()),
                    ran_on => entry.extend(ran_on.iter().filter_map(|of| type_of[usize::from(*of)])),
                }
            }
        }
        let of_group = |name: &str| {
            let groups = cluster.node_groups.iter().filter(|group| group.gpu_type == name);
            groups.map(|group| group.gpus_per_node).max().unwrap_or(0)
        };
        let largest_node = cluster.gpu_types.iter().map(|gpu| of_group(&gpu.name)).collect();
        let speed = |name: &str| mapping.speeds.get(name).copied().unwrap_or(1.0);
        let speeds: Vec<f64> = cluster.gpu_types.iter().map(|gpu| speed(&gpu.name)).collect();
        if cluster.gpu_types.len() > 1 && mapping.speeds.is_empty() {
            notes.push("all GPU types equally fast (assumed): give [speeds] in the mapping".into());
        }
        if let Some(unknown) = mapping.speeds.keys().find(|name| find(name).is_none()) {
            let names: Vec<&str> = cluster.gpu_types.iter().map(|gpu| gpu.name.as_str()).collect();
            let allowed = format!("one of {}", names.join(", "));
            return Err(crate::config(
                "speeds",
                unknown,
                &allowed,
                "name types as the cluster does",
            ));
        }
        Ok(Placing {
            cluster,
            type_of,
            node_types,
            partitions,
            largest_node,
            speeds,
            notes,
        })
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// A job as a row, or why it is none.
    pub(super) fn row(
        &self,
        job: SiteJob,
        base_s: f64,
        mapping: &Mapping,
        draft: &mut Draft,
    ) -> Result<RawRow, &'static str> {
        let SiteJob {
            row,
            run_s,
            end_s,
            held_s,
            ..
        } = job;
        let submit_s = row.submit_s - base_s;
        if submit_s.abs() > SUBMIT_S_MAX {
            return Err(OUT_OF_TIME);
        }
        let allowed = self.allowed(row.asked, row.partition.as_deref())?;
        let class = self.class_name(row.class.as_deref(), &allowed);
        let class = draft.class_of(&class).ok_or(MANY_CLASSES)?;
        let ran_on = self.ran_on(&row.ran_on, &row.nodes, &allowed);
        let speed = ran_on.map_or(1.0, |of| self.speeds[of]);
        let run_time_s = raised((run_s * speed).min(RUN_TIME_S_MAX), draft);
        let most = allowed.iter().map(|of| self.largest_node[*of]).max().unwrap_or(0);
        let tasks = if mapping.as_allocated {
            tasks_of(row.num_gpus, row.num_nodes, most)
        } else {
            Tasks::ANY
        };
        let observed = row.start_s.map(|start| {
            Box::new(Observed {
                start: on_clock(start, base_s),
                end: end_s.map(|end| on_clock(end, base_s)),
                nodes: row.nodes.clone(),
                partition: row.partition.clone().unwrap_or_default(),
                qos: row.qos.clone().unwrap_or_default(),
                constraint: row.constraint.clone().unwrap_or_default(),
                licences: row.licences.clone().unwrap_or_default(),
                held_s,
            })
        });
        Ok(RawRow {
            line: row.line,
            id: row.id,
            submit: on_clock(row.submit_s, base_s),
            num_gpus: row.num_gpus,
            run_time_s,
            estimate_s: row
                .limit_s
                .map(|limit| limit.clamp(RUN_TIME_S_MIN, RUN_TIME_S_MAX)),
            tenant: row.tenant.and_then(|name| draft.tenant(&name)),
            class,
            user: row.user,
            outcome: row.fate.into(),
            resources: Resources {
                tasks,
                ..Resources::WHOLE_GPU
            },
            observed,
        })
    }

    /// The types that a job may use: that for which it asked, else those of its partition.
    fn allowed(&self, asked: Option<u16>, partition: Option<&str>) -> Result<Allowed, &'static str> {
        if let Some(asked) = asked {
            let of_cluster = self.type_of[usize::from(asked)].ok_or(NO_TYPE)?;
            return Ok(Allowed::from([of_cluster]));
        }
        let of_partition = partition.and_then(|name| self.partitions.get(name));
        Ok(match of_partition.filter(|types| !types.is_empty()) {
            Some(types) => types.clone(),
            None => (0..self.cluster.gpu_types.len()).collect(),
        })
    }

    /// Kind of job and types on which it runs, as a name.
    fn class_name(&self, kind: Option<&str>, allowed: &Allowed) -> String {
        let types: Vec<&str> = allowed
            .iter()
            .map(|of| self.cluster.gpu_types[*of].name.as_str())
            .collect();
        let types = match types.len() == self.cluster.gpu_types.len() {
            true => ANY.to_owned(),
            false => types.join(TYPES_BETWEEN),
        };
        match kind {
            None => types,
            Some(kind) if types == ANY => kind.replace(KIND_BETWEEN, " "),
            Some(kind) => format!("{}{KIND_BETWEEN}{types}", kind.replace(KIND_BETWEEN, " ")),
        }
    }

    /// The type on which a job ran; none where it ran on several or the type is not known.
    fn ran_on(&self, ran_on: &[u16], nodes: &str, allowed: &Allowed) -> Option<usize> {
        let told: Allowed = ran_on
            .iter()
            .filter_map(|of| self.type_of[usize::from(*of)])
            .collect();
        let one = |types: &Allowed| {
            if types.len() == 1 {
                types.first().copied()
            } else {
                None
            }
        };
        if !told.is_empty() {
            return one(&told);
        }
        if !self.node_types.is_empty() && !nodes.is_empty() {
            // Where the names of its nodes cannot be read, a job may have run on any type that it may have.
            let Ok(names) = expand(nodes) else {
                return one(allowed);
            };
            let types = names.iter().filter_map(|name| self.node_types.get(name).copied());
            return one(&types.collect());
        }
        one(allowed)
    }

    /// The site of the rows.
    pub(super) fn site(&self, mapping: &Mapping, is_given: bool, notes: Vec<String>) -> SiteOf {
        let (cluster, speeds) = (self.cluster.clone(), self.speeds.clone());
        let has_tenants = mapping.columns.contains_key(&super::Role::Tenant) || mapping.columns.is_empty();
        Box::new(move |rows, names| {
            let class = |name: &String| {
                let types = name
                    .rsplit_once(KIND_BETWEEN)
                    .map_or(name.as_str(), |(_, types)| types);
                let named: Vec<&str> = types.split(TYPES_BETWEEN).collect();
                let is_tied = cluster
                    .gpu_types
                    .iter()
                    .any(|gpu| named.contains(&gpu.name.as_str()));
                let speed = |(of, gpu): (usize, &pleach_scheduler::cluster_spec::GpuTypeSpec)| {
                    if is_tied && !named.contains(&gpu.name.as_str()) {
                        0.0
                    } else {
                        speeds[of]
                    }
                };
                ModelClass {
                    name: name.clone(),
                    speed: cluster.gpu_types.iter().enumerate().map(speed).collect(),
                    locality: LocalityFactors::NONE,
                    ..ModelClass::default()
                }
            };
            let any = [ANY.to_owned()];
            let names = if names.is_empty() { &any } else { names };
            let names_tenants = has_tenants && rows.iter().any(|row| row.tenant.is_some());
            Site {
                classes: names.iter().map(class).collect(),
                tenancy: match names_tenants {
                    true => tenancy_for(&cluster, is_given, &[]),
                    false => crate::import::Tenancy::Single,
                },
                cluster: cluster.clone(),
                notes: notes.clone(),
            }
        })
    }
}

/// Names of the nodes on which jobs ran.
fn nodes_of(jobs: &[SiteJob]) -> BTreeSet<String> {
    let lists: BTreeSet<&str> = jobs.iter().map(|job| job.row.nodes.as_str()).collect();
    lists
        .into_iter()
        .filter_map(|list| expand(list).ok())
        .flatten()
        .collect()
}

/// Core hours that rows without GPUs held on nodes with GPUs, and a note on them.
fn held_beside(
    others: &BTreeMap<String, Others>,
    gpu_nodes: &BTreeSet<String>,
    jobs: &[SiteJob],
    cluster: &ClusterSpec,
) -> (f64, Option<String>) {
    let (mut rows, mut core_s) = (0, 0.0);
    for (nodes, held) in others {
        let names = expand(nodes).unwrap_or_default();
        let num = names.iter().filter(|name| gpu_nodes.contains(*name)).count();
        if num > 0 {
            rows += held.rows;
            core_s += held.core_s * num as f64 / names.len() as f64;
        }
    }
    if rows == 0 {
        return (0.0, None);
    }
    let core_h = core_s / 3600.0;
    let first_s = jobs
        .iter()
        .map(|job| job.row.submit_s)
        .fold(f64::INFINITY, f64::min);
    let end_s = |job: &SiteJob| job.end_s.unwrap_or(job.row.submit_s + job.run_s);
    let last_s = jobs.iter().map(end_s).fold(f64::NEG_INFINITY, f64::max);
    let groups = cluster.node_groups.iter();
    let cores: f64 = groups.map(|group| f64::from(group.count) * group.cpu_cores).sum();
    let there_h = cores * (last_s - first_s) / 3600.0;
    let share = match there_h > 0.0 {
        true => format!(
            ", {:.0} % of their cores while the list lasts",
            100.0 * core_h / there_h
        ),
        false => String::new(),
    };
    let held = match core_h > 0.0 {
        true => format!("held {core_h:.0} core hours on nodes with GPUs{share}"),
        false => "ran on nodes with GPUs, with how many cores is not told".to_owned(),
    };
    let note = format!(
        "{rows} rows without GPUs {held}: they are not simulated, so jobs may wait less than they did"
    );
    (core_h, Some(note))
}

/// Seconds on the list's own clock.
fn on_clock(unix_s: f64, base_s: f64) -> Time {
    Time::from_secs_f64((unix_s - base_s).clamp(-SUBMIT_S_MAX, SUBMIT_S_MAX))
}

/// Between the types of a class.
const TYPES_BETWEEN: &str = "|";
/// Between the kind of a job and its types.
const KIND_BETWEEN: &str = " on ";

/// Tasks as a job had them: the same number of GPUs on each of its nodes. As one likes where they were uneven or no node has as
/// many.
fn tasks_of(num_gpus: u32, num_nodes: u32, most: u32) -> Tasks {
    if num_nodes == 0 || !num_gpus.is_multiple_of(num_nodes) {
        return Tasks::ANY;
    }
    match u8::try_from(num_gpus / num_nodes) {
        Ok(each) if u32::from(each) <= most.min(64) => Tasks::of(each),
        _ => Tasks::ANY,
    }
}

/// Gives the types of a cluster that was read from the site the names of the mapping.
fn rename(cluster: &mut ClusterSpec, mapping: &Mapping) {
    let named = |name: &String| mapping.gpu_types.get(name).unwrap_or(name).clone();
    let mut types = std::mem::take(&mut cluster.gpu_types);
    for gpu in &mut types {
        gpu.name = named(&gpu.name);
    }
    let mut known = BTreeSet::new();
    types.retain(|gpu| known.insert(gpu.name.clone()));
    cluster.gpu_types = types;
    for group in &mut cluster.node_groups {
        group.gpu_type = named(&group.gpu_type);
    }
}

/// The type of a cluster that the source calls `name`: as the mapping says, else of the same letters and digits, else the longest
/// with which it begins, else the only one that begins with it.
fn find_type(cluster: &ClusterSpec, mapping: &Mapping, name: &str) -> Option<usize> {
    let name = mapping.gpu_types.get(name).map_or(name, String::as_str);
    let types = &cluster.gpu_types;
    if let Some(place) = types.iter().position(|gpu| gpu.name == name) {
        return Some(place);
    }
    let wanted = plain(name);
    if wanted.is_empty() {
        return None;
    }
    let plains: Vec<String> = types.iter().map(|gpu| plain(&gpu.name)).collect();
    if let Some(place) = plains.iter().position(|known| *known == wanted) {
        return Some(place);
    }
    // `a10080gb` is an A100 and no A10: the longest name that it begins with.
    let longest = plains
        .iter()
        .enumerate()
        .filter(|(_, known)| !known.is_empty() && wanted.starts_with(known.as_str()));
    if let Some((place, _)) = longest.max_by_key(|(_, known)| known.len()) {
        return Some(place);
    }
    let mut longer = plains
        .iter()
        .enumerate()
        .filter(|(_, known)| known.starts_with(&wanted));
    let (place, _) = longer.next()?;
    longer.next().is_none().then_some(place)
}

/// Letters and digits of a type's name, without its maker.
fn plain(name: &str) -> String {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let lower = letters.to_ascii_lowercase();
    let mut rest = lower.as_str();
    for maker in ["nvidia", "tesla", "geforce", "quadro"] {
        rest = rest.strip_prefix(maker).unwrap_or(rest);
    }
    rest.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::of_short;

    #[test]
    fn types_are_known_by_the_longest_name() {
        let (cluster, _) = of_short("1x8:A100,1x8:A10,1x8:V100-32GB").unwrap();
        let found = |name: &str| find_type(&cluster, &Mapping::default(), name);
        assert_eq!(found("nvidia_a100_80gb_pcie"), Some(0));
        assert_eq!(
            (found("a10"), found("tesla_a10"), found("v100")),
            (Some(1), Some(1), Some(2))
        );
        assert_eq!((found("h100"), found(""), found("---")), (None, None, None));
        let (cluster, _) = of_short("1x8:V100-16GB,1x8:V100-32GB").unwrap();
        assert_eq!(find_type(&cluster, &Mapping::default(), "v100"), None);
    }
}
