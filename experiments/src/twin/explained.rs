//! How many of a site's starts a policy makes where it is given what was observed before each: running jobs on their nodes,
//! waiting jobs, what is believed of run times. So no error adds up, and a policy that is merely as busy as the site's does not
//! pass for it.
//!
//! At an instant at which the site started jobs, the policy decides on a copy of the cluster, and then the site's own starts are
//! made. What is explained are starts of both over starts of either: a policy that starts all it can explains little of a site
//! that holds back. What the site starts soon after, within the time in which the policy reacts by its own clock, is no start of
//! the policy alone.
//!
//! Nodes are those of the record where its names are as many as the cluster's nodes, in their order, and have room as recorded;
//! else a job runs on its tightest place.

use std::collections::{BTreeMap, BTreeSet};

use pleach_env::workload::{JobSpec, Workload};
use pleach_env::{Seed, SimConfig, labels};
use pleach_scheduler::cluster::{Cluster, JobState, Placement, Slice, Submission};
use pleach_scheduler::{ClassId, JobId, NodeId, Planner, TenantId, Time};
use pleach_site::slurm::expand;
use serde::{Deserialize, Serialize};

use crate::door::PolicySpec;
use crate::error::Error;

/// Instants that are looked at, at most, evenly over the list. *Ours*: a copy of the cluster for each.
const INSTANTS_MAX: usize = 500;
/// Records are in whole seconds.
const SECOND: Time = Time(1_000_000);

/// Starts of the site and of a policy on the state that the site had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// Starts that both make.
    pub both: usize,
    /// Starts that the site made alone.
    pub site: usize,
    /// Starts that the policy makes alone.
    pub policy: usize,
}

impl Explained {
    /// Starts of both over starts of either; none where there are none.
    #[must_use]
    pub fn part(self) -> Option<f64> {
        let all = self.both + self.site + self.policy;
        (all > 0).then(|| self.both as f64 / all as f64)
    }

    pub(super) fn with(self, other: Explained) -> Explained {
        Explained {
            both: self.both + other.both,
            site: self.site + other.site,
            policy: self.policy + other.policy,
        }
    }
}

/// A change of the record: when, of what kind (0 ends, 1 comes, 2 starts), which job.
type Event = (Time, u8, usize);

/// What is explained at each instant that was looked at.
///
/// # Errors
/// A cluster or a policy that cannot be made.
pub(super) fn explained(
    policy: &PolicySpec,
    workload: &Workload,
    sim: &SimConfig,
    since_s: f64,
) -> Result<Vec<(Time, Explained)>, Error> {
    let mut record = Record::of(workload, sim)?;
    let mut planner = policy.make_planner()?;
    // Rows are those of the jobs that are seen to begin.
    let all = labels(workload).zip(&workload.jobs);
    planner.read_labels(
        &mut all
            .filter(|(_, job)| job.observed.is_some())
            .map(|(labels, _)| labels),
    );
    let events = events(workload, sim);
    let starts: BTreeSet<Time> = events
        .iter()
        .filter(|(at, kind, _)| *kind == 2 && at.as_secs_f64() >= since_s)
        .map(|(at, ..)| *at)
        .collect();
    let every = starts.len().div_ceil(INSTANTS_MAX).max(1);
    let looked_at: BTreeSet<Time> = starts.into_iter().step_by(every).collect();
    let mut starts_at: Vec<Option<Time>> = vec![None; workload.jobs.len()];
    for (at, _, job) in events.iter().filter(|(_, kind, _)| *kind == 2) {
        starts_at[*job] = Some(*at);
    }
    let mut found = Vec::new();
    for group in events.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
        let (at, kind, _) = group[0];
        record.cluster.advance(at.max(record.cluster.now()));
        let jobs: Vec<usize> = group.iter().map(|(_, _, job)| *job).collect();
        if kind == 2 && looked_at.contains(&at) {
            let own = record.decided(planner.as_mut(), policy)?;
            let site: BTreeSet<usize> = jobs.iter().copied().collect();
            let until = at + planner.reaction() + SECOND;
            let is_alone = |job: &&usize| starts_at[**job].is_none_or(|start| start > until);
            found.push((
                at,
                Explained {
                    both: own.intersection(&site).count(),
                    site: site.difference(&own).count(),
                    policy: own.difference(&site).filter(is_alone).count(),
                },
            ));
        }
        for job in jobs {
            record.change(kind, job);
        }
        planner.observe(&record.cluster);
    }
    Ok(found)
}

/// The record's changes in order. A start is when it was decided: the site's delay is before it.
fn events(workload: &Workload, sim: &SimConfig) -> Vec<Event> {
    let delay = Time::from_secs_f64(
        sim.batch_system
            .as_ref()
            .map_or(0.0, |system| system.start_delay_s),
    );
    let mut events: Vec<Event> = Vec::new();
    for (number, job) in workload.jobs.iter().enumerate() {
        let Some(observed) = job.observed.as_deref() else {
            continue;
        };
        let start = (observed.start - delay).max(job.submit);
        let end = observed
            .end
            .unwrap_or(observed.start + Time::from_secs_f64(job.run_time_s));
        events.extend([
            (job.submit, 1, number),
            (start, 2, number),
            (end.max(start + Time(1)), 0, number),
        ]);
    }
    events.sort_unstable();
    events
}

/// The cluster as it was.
struct Record<'a> {
    workload: &'a Workload,
    cluster: Cluster,
    estimates: Vec<pleach_scheduler::Estimate>,
    /// Numbers of nodes by name, in the order of their names; empty where they are not as many as the cluster's.
    numbers: BTreeMap<String, u32>,
    /// Rows of the jobs that came, and jobs of the rows.
    rows: Vec<Option<JobId>>,
    jobs: Vec<usize>,
}

impl<'a> Record<'a> {
    fn of(workload: &'a Workload, sim: &SimConfig) -> Result<Record<'a>, Error> {
        let cluster = Cluster::new(&workload.cluster, &workload.classes, sim.capabilities)?;
        let mut names: BTreeSet<(String, u64, String)> = BTreeSet::new();
        for job in &workload.jobs {
            let nodes = job.observed.as_deref().map_or("", |observed| &observed.nodes);
            names.extend(expand(nodes).unwrap_or_default().into_iter().map(natural));
        }
        let is_known = names.len() == cluster.nodes().len();
        let numbers = names.into_iter().map(|(_, _, name)| name).zip(0..);
        Ok(Record {
            estimates: sim.estimates.estimates(workload, Seed(sim.seed)),
            numbers: numbers.filter(|_| is_known).collect(),
            rows: vec![None; workload.jobs.len()],
            jobs: Vec::new(),
            workload,
            cluster,
        })
    }

    fn change(&mut self, kind: u8, job: usize) {
        match (kind, self.rows[job]) {
            (1, _) => {
                let spec = &self.workload.jobs[job];
                let request = Submission {
                    tenant: TenantId(spec.tenant),
                    class: ClassId(spec.class),
                    num_gpus: spec.num_gpus,
                    estimate_s: self.estimates[job],
                    resources: spec.resources,
                };
                if let Ok(id) = self.cluster.submit(request) {
                    self.rows[job] = Some(id);
                    self.jobs.push(job);
                }
            }
            (2, Some(id)) if self.cluster.job(id).state == JobState::Pending => {
                let spec = &self.workload.jobs[job];
                let as_recorded = self.as_recorded(spec, id);
                let mut slices = Vec::new();
                let placement =
                    as_recorded.or_else(|| pleach_dealing::starts::tightest(&self.cluster, id, &mut slices));
                match placement {
                    Some(placement) => self.cluster.start(id, placement),
                    // The tables have no room for what the site ran: it neither waits nor holds anything here.
                    None => self.cluster.withdraw(id),
                }
            }
            (0, Some(id)) if self.cluster.job(id).state == JobState::Running => self.cluster.finish(id),
            _ => {}
        }
    }

    /// The nodes of a job where they are known, have room and may be its own.
    fn as_recorded(&self, job: &JobSpec, id: JobId) -> Option<Placement> {
        let observed = job.observed.as_deref()?;
        let demand = self.cluster.demand(id);
        let shape = self.cluster.shape(demand.shape);
        let nodes = expand(&observed.nodes).ok().filter(|nodes| !nodes.is_empty())?;
        let of_node = job.num_gpus / nodes.len() as u32;
        if of_node * nodes.len() as u32 != job.num_gpus || job.resources.is_fractional() {
            return None;
        }
        let speed = &self.workload.classes[usize::from(job.class)].speed;
        let mut kinds = BTreeSet::new();
        let slice = |name: &String| {
            let node = NodeId(*self.numbers.get(name)?);
            let of = &self.cluster.nodes()[node.index()];
            kinds.insert(of.gpu_type);
            let served = shape.served_by(of.cpu_milli_free, of.memory_mib_free);
            let fits = of.num_free().min(served) >= of_node && speed[of.gpu_type.index()] > 0.0;
            fits.then(|| Slice {
                node,
                gpus: of.lowest_free(of_node),
            })
        };
        let placement: Option<Placement> = nodes.iter().map(slice).collect();
        placement.filter(|_| {
            kinds.len() == 1
                && self.cluster.has_room(demand)
                && job
                    .resources
                    .tasks
                    .allow(std::iter::repeat_n(of_node, nodes.len()))
        })
    }

    /// The jobs that the policy starts on a copy of the cluster.
    fn decided(&self, planner: &mut dyn Planner, policy: &PolicySpec) -> Result<BTreeSet<usize>, Error> {
        let mut copy = self.cluster.clone();
        let planned = planner.plan_at_once(&mut copy);
        planned.map_err(|error| Error::Failed(format!("{}: {error}", policy.name())))?;
        let runs = |(row, job): (usize, &usize)| {
            let id = JobId(row as u32);
            let is_new =
                copy.job(id).state == JobState::Running && self.cluster.job(id).state == JobState::Pending;
            is_new.then_some(*job)
        };
        Ok(self.jobs.iter().enumerate().filter_map(runs).collect())
    }
}

/// A name as it is sorted: what stands before its last number, the number, the name.
fn natural(name: String) -> (String, u64, String) {
    let front = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    (front.to_owned(), name[front.len()..].parse().unwrap_or(0), name)
}

#[cfg(test)]
mod tests {
    use pleach_env::workload::Observed;
    use pleach_scheduler::ModelClass;
    use pleach_scheduler::cluster_spec::{ClusterSpec, NodeGroup, Resources, TenantSpec};

    use super::*;
    use crate::door::DOOR;

    /// Two jobs of two GPUs that were seen on one node of eight at once.
    fn beside(cpu_cores: f64, quota_gpus: u32) -> Workload {
        let mut cluster = ClusterSpec::uniform(2, 8, 2);
        cluster.node_groups[0] = NodeGroup {
            cpu_cores: 32.0,
            memory_gib: 256.0,
            ..cluster.node_groups[0].clone()
        };
        cluster.tenants = vec![TenantSpec {
            name: "a".into(),
            quota_gpus,
        }];
        let job = |(number, node): (usize, &str)| {
            let submit = Time::from_secs_f64(number as f64);
            JobSpec {
                resources: Resources {
                    cpu_cores,
                    ..Resources::WHOLE_GPU
                },
                observed: Some(Box::new(Observed {
                    start: submit,
                    end: None,
                    nodes: node.to_owned(),
                    partition: String::new(),
                    qos: String::new(),
                    held_s: 0.0,
                })),
                ..JobSpec::new(format!("j{number}"), submit, 2, 1000.0)
            }
        };
        Workload {
            name: "beside".into(),
            cluster,
            classes: vec![ModelClass::default()],
            jobs: ["n1", "n1", "n2"].into_iter().enumerate().map(job).collect(),
        }
    }

    #[test]
    fn what_ran_beyond_cores_and_quotas_of_the_tables_ends_no_replay() {
        let policy = DOOR.open_one("fifo").unwrap();
        for (cpu_cores, quota_gpus) in [(1.0, 16), (12.0, 16), (1.0, 2)] {
            let list = beside(cpu_cores, quota_gpus);
            let found = explained(&policy, &list, &SimConfig::default(), 0.0).unwrap();
            assert_eq!(found.len(), 3, "{cpu_cores} cores, quota {quota_gpus}");
        }
    }
}
