//! What a schedule is held to: nodes, tenants and jobs, read from our own files by readers of their own.
//!
//! The list of jobs is `NAME.csv` (or Parquet) and the cluster `NAME.cluster.toml`, as docs/workload-file.md has them. Keys that no
//! rule needs are passed over.

pub(crate) mod class;

use std::collections::BTreeMap;
use std::path::Path;

use pleach_tables::Table;
use serde::Deserialize;

use crate::Problem;
use class::{Class, Fabric};

/// Most GPUs of a cluster. *Ours*: tables of that many fit into memory.
const NUM_GPUS_MAX: u64 = 4_000_000;
/// Columns that a list of jobs must have.
const REQUIRED: [&str; 3] = ["submit_s", "num_gpus", "run_time_s"];

/// A cluster and the jobs that it is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Nodes in the order of their groups.
    pub nodes: Vec<Node>,
    /// Names of the GPU types with the memory of each GPU, MiB.
    pub gpu_types: Vec<(String, u64)>,
    /// Tenants.
    pub tenants: Vec<Tenant>,
    /// Whether quotas do not bind.
    pub borrowing: bool,
    /// Links between GPUs; none: classes say what a loose placement costs.
    pub fabric: Option<Fabric>,
    /// What all jobs together can read of the site's store, GB/s.
    pub read_gb_s: f64,
    /// Classes; at least one.
    pub classes: Vec<Class>,
    /// Jobs by name.
    pub jobs: BTreeMap<String, Job>,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// Index into [`Facts::gpu_types`].
    pub gpu_type: usize,
    /// GPUs.
    pub num_gpus: u32,
    /// Thousandths of a core.
    pub cpu_milli: u64,
    /// Host memory, MiB.
    pub memory_mib: u64,
    /// Its rack; racks are counted over the groups.
    pub rack: u32,
    /// The first node of its rack.
    pub rack_first: u32,
    /// GPUs that NVLink joins.
    pub nvlink_gpus: u32,
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// GPUs that are its own.
    pub quota_gpus: u32,
}

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// When it comes, s.
    pub submit_s: f64,
    /// GPUs that it asks for at once.
    pub num_gpus: u32,
    /// GPUs of each of its tasks, which lies on one node; 1 where it may be cut as one likes.
    pub gpus_per_task: u32,
    /// Most of its tasks on one node; 0: any number.
    pub tasks_per_node_max: u32,
    /// Most nodes that it may have at once; 0: any number.
    pub nodes_max: u32,
    /// Most GPUs that it can hold; none: it is not elastic.
    pub gpus_max: Option<u32>,
    /// Its work, s of the reference run.
    pub work_s: f64,
    /// Share of each GPU, thousandths.
    pub gpu_milli: u16,
    /// GPU memory with each GPU, MiB; 0: not known.
    pub gpu_memory_mib: u64,
    /// Cores with each GPU, thousandths.
    pub cpu_milli: u64,
    /// Host memory with each GPU, MiB.
    pub memory_mib: u64,
    /// Index into [`Facts::tenants`].
    pub tenant: usize,
    /// Its model class, an index into [`Facts::classes`].
    pub class: usize,
    /// GPU memory of a program that jobs of its class are fused into, MiB: once, and for each job; none: they cannot be fused.
    pub fused_mib: Option<(u64, u64)>,
    /// GPU types on which it can run. `[num_gpu_types]`
    pub types: Vec<bool>,
}

#[derive(Deserialize)]
struct File {
    cluster: ClusterFile,
    #[serde(default)]
    classes: Vec<Class>,
}

#[derive(Deserialize)]
struct ClusterFile {
    gpu_types: Vec<TypeFile>,
    node_groups: Vec<GroupFile>,
    tenants: Vec<Tenant>,
    #[serde(default = "yes")]
    borrowing: bool,
    fabric: Option<toml::Value>,
    storage: Option<StorageFile>,
}

#[derive(Deserialize)]
struct StorageFile {
    #[serde(default = "shared")]
    read_gb_s: f64,
}

#[derive(Deserialize)]
struct TypeFile {
    name: String,
    memory_gib: f64,
}

#[derive(Deserialize)]
struct GroupFile {
    count: u32,
    gpus_per_node: u32,
    gpu_type: String,
    #[serde(default)]
    cpu_cores: f64,
    #[serde(default)]
    memory_gib: f64,
    #[serde(default = "sixteen")]
    nodes_per_rack: u32,
    #[serde(default)]
    nvlink_gpus: u32,
}

fn yes() -> bool {
    true
}

/// Nodes of a rack where a description does not say.
fn sixteen() -> u32 {
    16
}

/// What a good shared store reads, GB/s.
fn shared() -> f64 {
    50.0
}

/// What there is of a quantity, in whole units; the tolerance is that of decimal fractions.
fn capacity(value: f64, per: f64) -> u64 {
    (value * per + 1e-6).floor().max(0.0) as u64
}

/// What is asked of a quantity, in whole units.
pub(crate) fn demand(value: f64, per: f64) -> u64 {
    (value * per - 1e-6).ceil().max(0.0) as u64
}

impl Facts {
    /// Reads a list of jobs, and the text of the description of its cluster.
    ///
    /// # Errors
    /// A file that is no list, a description that is none, a job that names a tenant or class that is not there.
    pub fn read(jobs: &Path, cluster: &str) -> Result<Facts, Problem> {
        Facts::of_table(Table::open(jobs, &REQUIRED)?, cluster)
    }

    /// The same of the text of a list; `name` is for messages.
    ///
    /// # Errors
    /// As [`Facts::read`].
    pub fn of_text(name: &str, jobs: Vec<u8>, cluster: &str) -> Result<Facts, Problem> {
        Facts::of_table(Table::of_text(name, jobs, &REQUIRED)?, cluster)
    }

    fn of_table(mut table: Table, cluster: &str) -> Result<Facts, Problem> {
        let mut facts = Facts::of_cluster(cluster)?;
        let classes = std::mem::take(&mut facts.classes);
        let tenants: BTreeMap<String, usize> = facts
            .tenants
            .iter()
            .enumerate()
            .map(|(index, tenant)| (tenant.name.clone(), index))
            .collect();
        let by_name: BTreeMap<&str, usize> = classes
            .iter()
            .enumerate()
            .map(|(index, class)| (class.name.as_str(), index))
            .collect();
        if tenants.len() < facts.tenants.len() || by_name.len() < classes.len() {
            return Err(Problem::data(
                "cluster",
                "two tenants or two classes share a name; rename one of the two",
            ));
        }
        let nobody = if facts.tenants.len() == 1 {
            Some(0)
        } else {
            tenants.get("unassigned").copied()
        };
        let mut num_rows = 0_u64;
        while table.next_row()? {
            let column = |name| table.column(name);
            let amount = |name, otherwise: f64, fix| -> Result<f64, Problem> {
                Ok(table.optional(column(name), 0.0, 1e9, fix)?.unwrap_or(otherwise))
            };
            let name = match column("job_id") {
                Some(_) => table.name(column("job_id"))?,
                None => num_rows.to_string(),
            };
            num_rows += 1;
            let index = |key, otherwise: Option<usize>, known: &dyn Fn(&str) -> Option<usize>| match table
                .text(column(key))
            {
                "" if otherwise.is_some() => Ok(otherwise.unwrap_or(0)),
                text => known(text).ok_or_else(|| {
                    table.refuse(
                        column(key),
                        "a name of the cluster's description",
                        "describe it there",
                    )
                }),
            };
            let tenant = index("tenant", nobody, &|name| tenants.get(name).copied())?;
            let class = index("class", Some(0), &|name| by_name.get(name).copied())?;
            let gpu_milli = amount("gpu_milli", 1000.0, "1 to 1000")?;
            let of = &classes[class];
            let whole = |name, otherwise: u32, least: u32, most: u32| match table.text(column(name)) {
                "" => Ok(otherwise),
                text => match text.parse::<u32>() {
                    Ok(value) if (least..=most).contains(&value) => Ok(value),
                    _ => Err(table.refuse(
                        column(name),
                        &format!("a whole number from {least} to {most}"),
                        "leave it empty where it does not matter",
                    )),
                },
            };
            let job = Job {
                gpus_per_task: whole("gpus_per_task", 1, 1, 64)?,
                tasks_per_node_max: whole("tasks_per_node_max", 0, 0, 64)?,
                nodes_max: whole("nodes_max", 0, 0, 65_535)?,
                submit_s: table.number(column("submit_s"), 0.0, 2e9, "give seconds")?,
                num_gpus: table.count(column("num_gpus"), "give the size of the gang")?,
                gpus_max: of.elastic.as_ref().map(|elastic| elastic.gpus_max),
                work_s: table.number(column("run_time_s"), 0.0, 1e9, "give seconds")?,
                gpu_milli: gpu_milli as u16,
                gpu_memory_mib: demand(amount("gpu_memory_gib", 0.0, "GiB")?, 1024.0),
                cpu_milli: demand(amount("cpu_cores", 0.0, "cores")?, 1000.0),
                memory_mib: demand(amount("memory_gib", 0.0, "GiB")?, 1024.0),
                tenant,
                class,
                fused_mib: of.fusion.map(|fusion| {
                    let job_mib = demand(fusion.job_gib, 1024.0).max(1);
                    (demand(fusion.framework_gib, 1024.0), job_mib)
                }),
                types: of.speed.iter().map(|speed| *speed > 0.0).collect(),
            };
            if facts.jobs.insert(name, job).is_some() {
                return Err(table.refuse(
                    column("job_id"),
                    "a name not used before",
                    "rename one of the two",
                ));
            }
        }
        facts.classes = classes;
        Ok(facts)
    }

    fn of_cluster(text: &str) -> Result<Facts, Problem> {
        let file: File = toml::from_str(text).map_err(|error| Problem::data("cluster", error))?;
        let cluster = file.cluster;
        let refuse = |text: String| Err(Problem::data("cluster", text));
        let num_gpus = cluster.node_groups.iter().fold(0_u64, |sum, group| {
            sum.saturating_add(u64::from(group.count) * u64::from(group.gpus_per_node))
        });
        if num_gpus == 0 || num_gpus > NUM_GPUS_MAX {
            return refuse(format!(
                "{num_gpus} GPUs; allowed are 1 to {NUM_GPUS_MAX}; correct node_groups"
            ));
        }
        if cluster.tenants.is_empty() {
            return refuse("no tenants; name one that owns the cluster".into());
        }
        let (mut nodes, mut num_racks) = (Vec::new(), 0);
        for group in &cluster.node_groups {
            if !(1..=64).contains(&group.gpus_per_node) {
                return refuse(format!(
                    "gpus_per_node = {}; allowed is 1 to 64",
                    group.gpus_per_node
                ));
            }
            let gpu_type = cluster
                .gpu_types
                .iter()
                .position(|kind| kind.name == group.gpu_type);
            let Some(gpu_type) = gpu_type else {
                return refuse(format!(
                    "gpu_type = {}; describe it under gpu_types",
                    group.gpu_type
                ));
            };
            let first = nodes.len() as u32;
            let in_rack = group.nodes_per_rack.max(1);
            let node = |number: u32| Node {
                gpu_type,
                num_gpus: group.gpus_per_node,
                cpu_milli: capacity(group.cpu_cores, 1000.0),
                memory_mib: capacity(group.memory_gib, 1024.0),
                rack: num_racks + number / in_rack,
                rack_first: first + number / in_rack * in_rack,
                nvlink_gpus: match group.nvlink_gpus {
                    0 => group.gpus_per_node,
                    some => some,
                },
            };
            nodes.extend((0..group.count).map(node));
            num_racks += group.count.div_ceil(in_rack);
        }
        let num_types = cluster.gpu_types.len();
        if let Some(class) = file.classes.iter().find(|class| class.speed.len() != num_types) {
            return refuse(format!(
                "class {} has {} speeds for {num_types} GPU types; give one for each",
                class.name,
                class.speed.len()
            ));
        }
        let fabric = cluster.fabric.map(|table| {
            table.try_into().map_err(|error: toml::de::Error| {
                let fix =
                    "write all its keys, as `pleach workload` does; names of presets are not known here";
                Problem::data("cluster", format!("fabric: {}; {fix}", error.message()))
            })
        });
        let mut classes = file.classes;
        if classes.is_empty() {
            classes.push(Class {
                speed: vec![1.0; num_types],
                ..Class::default()
            });
        }
        let types = cluster.gpu_types.into_iter();
        Ok(Facts {
            nodes,
            gpu_types: types
                .map(|kind| (kind.name, capacity(kind.memory_gib, 1024.0)))
                .collect(),
            tenants: cluster.tenants,
            borrowing: cluster.borrowing,
            fabric: fabric.transpose()?,
            read_gb_s: cluster.storage.map_or_else(shared, |storage| storage.read_gb_s),
            classes,
            jobs: BTreeMap::new(),
        })
    }
}
