//! How many of a site's starts a policy makes where it is given what was observed before each: running jobs on their nodes,
//! waiting jobs, what is believed of run times. So no error adds up, and a policy that is merely as busy as the site's does not
//! pass for it.
//!
//! At an instant at which the site started jobs, the policy decides on a copy of the cluster, and then the site's own starts are
//! made. What is explained are starts of both over starts of either: a policy that starts all it can explains little of a site
//! that holds back. What the site starts soon after, within the time in which the policy reacts by its own clock, is no start of
//! the policy alone.

use std::collections::BTreeSet;

use pleach_env::workload::Workload;
use pleach_env::{SimConfig, labels};
use pleach_forecast::record::{Change, Record, events};
use pleach_scheduler::cluster::JobState;
use pleach_scheduler::{JobId, Planner, Time};
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
        .filter(|(at, kind, _)| *kind == Change::Starts && at.as_secs_f64() >= since_s)
        .map(|(at, ..)| *at)
        .collect();
    let every = starts.len().div_ceil(INSTANTS_MAX).max(1);
    let looked_at: BTreeSet<Time> = starts.into_iter().step_by(every).collect();
    let mut starts_at: Vec<Option<Time>> = vec![None; workload.jobs.len()];
    for (at, _, job) in events.iter().filter(|(_, kind, _)| *kind == Change::Starts) {
        starts_at[*job] = Some(*at);
    }
    let mut found = Vec::new();
    for group in events.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
        let (at, kind, _) = group[0];
        let now = record.cluster.now();
        record.cluster.advance(at.max(now));
        let jobs: Vec<usize> = group.iter().map(|(_, _, job)| *job).collect();
        if kind == Change::Starts && looked_at.contains(&at) {
            let own = decided(&record, planner.as_mut(), policy)?;
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
        record.change(group);
        planner.observe(&record.cluster);
    }
    Ok(found)
}

/// The jobs that the policy starts on a copy of the record's cluster.
fn decided(
    record: &Record<'_>,
    planner: &mut dyn Planner,
    policy: &PolicySpec,
) -> Result<BTreeSet<usize>, Error> {
    let mut copy = record.cluster.clone();
    let planned = planner.plan_at_once(&mut copy);
    planned.map_err(|error| Error::Failed(format!("{}: {error}", policy.name())))?;
    let runs = |(row, job): (usize, &usize)| {
        let id = JobId(row as u32);
        let is_new =
            copy.job(id).state == JobState::Running && record.cluster.job(id).state == JobState::Pending;
        is_new.then_some(*job)
    };
    Ok(record.jobs.iter().enumerate().filter_map(runs).collect())
}

#[cfg(test)]
mod tests {
    use pleach_env::workload::{JobSpec, Observed};
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
                    nodes: node.to_owned(),
                    ..Observed::default()
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
