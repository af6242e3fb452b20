//! The way round nodes that would not take a job, attempt by attempt, so that nobody goes where he was refused.
//!
//! Tables do not know which job may have which node. So a round whose decisions send a job to a node that refused it
//! ([`crate::refusals`]) is decided again with all nodes that refused this job taking nobody, which sends it to another one if
//! there is any. Where it does not start then, the nodes go back to the others and the job waits: nobody loses a node to a job
//! that does not get one. All of it follows from the snapshot, the memory and the policy, so a log is decided again to the same
//! bits.

use std::collections::BTreeSet;

use pleach_scheduler::ExternalId;
use pleach_scheduler::decision::Action;

use crate::bars::Bars;
use crate::memory::Memory;
use crate::record::Planned;
use crate::snapshot::{JobSeen, Snapshot};

/// Most attempts at a round before all jobs that were refused anywhere wait. *Ours*: each costs as much as a round.
const ATTEMPTS_MAX: u32 = 8;

/// Why a job waits.
const WAITS: &str = "no other node is free for it beside those that refused it";

/// An attempt at a round; the first one keeps nothing out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detour {
    /// What it keeps out.
    pub bars: Bars,
    /// Jobs for whose sake nodes take nobody.
    sent_round: BTreeSet<ExternalId>,
    num_attempts: u32,
}

impl Detour {
    /// What is kept out of the next attempt at a round, which would decide so; none: these decisions stand.
    #[must_use]
    pub fn next(&self, snapshot: &Snapshot, memory: &Memory, decisions: &[Planned]) -> Option<Detour> {
        let (starts, num_attempts) = (starts(decisions), self.num_attempts + 1);
        let is_sent_round = |planned: &&Planned| self.sent_round.contains(&planned.job());
        let refused: Vec<(ExternalId, Vec<&String>)> = starts
            .iter()
            .map(|planned| (planned.job(), refusing(planned, snapshot, memory)))
            .filter(|(_, nodes)| !nodes.is_empty())
            .collect();
        let Some((first, _)) = refused.first() else {
            if self.sent_round.is_empty() || starts.iter().any(is_sent_round) {
                return None;
            }
            let waits = self.sent_round.iter().map(|job| (*job, WAITS.to_owned()));
            return Some(Detour::of_waiting(
                self.bars.jobs.clone().into_iter().chain(waits),
                num_attempts,
            ));
        };
        if num_attempts > ATTEMPTS_MAX + 1 {
            return None;
        }
        if num_attempts > ATTEMPTS_MAX {
            return Some(Detour::of_waiting(waiting(snapshot, memory), num_attempts));
        }
        // One after the other: who refused one job may be where another one can go. Whoever was sent to one of its nodes is sent
        // round them with it.
        let of_first = memory.refusals(*first).into_iter();
        let of_first = of_first.flat_map(|refusals| refusals.at(snapshot.taken_s));
        let of_first: BTreeSet<String> = of_first.map(|(node, _)| node.to_owned()).collect();
        let nodes = &self.bars.nodes | &of_first;
        let with_it = refused
            .iter()
            .filter(|(_, at)| at.iter().all(|node| nodes.contains(*node)));
        let sent_round: BTreeSet<ExternalId> = with_it.map(|(job, _)| *job).collect();
        let jobs = self.bars.jobs.clone();
        Some(Detour {
            bars: Bars { nodes, jobs },
            sent_round: &self.sent_round | &sent_round,
            num_attempts,
        })
    }

    /// With all nodes, and without these jobs.
    fn of_waiting(jobs: impl Iterator<Item = (ExternalId, String)>, num_attempts: u32) -> Detour {
        Detour {
            bars: Bars {
                jobs: jobs.collect(),
                ..Bars::default()
            },
            num_attempts,
            ..Detour::default()
        }
    }
}

fn starts(decisions: &[Planned]) -> Vec<&Planned> {
    let all = decisions.iter();
    all.filter(|planned| planned.decision.action == Action::Start)
        .collect()
}

/// The nodes of a start that refused its job.
fn refusing<'a>(planned: &'a Planned, snapshot: &Snapshot, memory: &Memory) -> Vec<&'a String> {
    let refusals = memory.refusals(planned.job());
    let refuses = |node: &&String| refusals.is_some_and(|of| of.of(node, snapshot.taken_s).is_some());
    planned.nodes.iter().filter(refuses).collect()
}

/// Jobs without a place that some node refused, and why they wait. None of them can be sent to one that did.
fn waiting<'a>(
    snapshot: &'a Snapshot,
    memory: &'a Memory,
) -> impl Iterator<Item = (ExternalId, String)> + 'a {
    let jobs = snapshot.jobs.iter().filter(|job| !job.is_placed());
    let why = move |job: &JobSeen| {
        memory.refusals(job.id)?.at(snapshot.taken_s).next()?;
        Some((job.id, WAITS.to_owned()))
    };
    jobs.filter_map(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RoundSettings;
    use crate::policy::Loaded;
    use crate::round::{self, Deciders};
    use crate::snapshot::{NodeSeen, Phase, VERSION};
    use pleach_scheduler::cluster::NodeState;

    const NOW_S: i64 = 1_795_000_000;

    /// Nodes g0, g1 and so on with four GPUs, and jobs of so many GPUs with limits that grow.
    fn seen(num_nodes: usize, jobs: &[u32]) -> Snapshot {
        let node = |number: usize| NodeSeen {
            name: format!("g{number}"),
            gpu_type: "a100".into(),
            num_gpus: 4,
            num_gpus_used: 0,
            num_cpus_free: 16,
            state: NodeState::Up,
            shared: None,
        };
        let job = |(row, gpus): (usize, &u32)| JobSeen {
            id: ExternalId::number(row as u64),
            phase: Phase::Waiting,
            account: String::new(),
            user: String::new(),
            submit_s: NOW_S - 100,
            start_s: None,
            limit_s: Some(1000 + row as i64),
            num_nodes: 1,
            gpus_per_node: *gpus,
            is_packed: false,
            share: None,
            gpu_types: Vec::new(),
            gpu_type: None,
            num_cpus: 1,
            nodes: Vec::new(),
            num_restarts: 0,
            num_tries: 0,
            not_before_s: 0,
            predicted_s: None,
        };
        Snapshot {
            version: VERSION,
            taken_s: NOW_S,
            nodes: (0..num_nodes).map(node).collect(),
            jobs: jobs.iter().enumerate().map(job).collect(),
        }
    }

    /// Where the jobs go, shortest first.
    fn decided(snapshot: &Snapshot, memory: &Memory) -> Vec<(u64, String)> {
        let (mut policy, mut fallback) = (
            Loaded::heuristic("sjf").unwrap(),
            Loaded::heuristic("fifo").unwrap(),
        );
        let mut deciders = Deciders {
            policy: &mut policy,
            fallback: &mut fallback,
        };
        let settings = RoundSettings::default();
        let plan = round::plan(snapshot, memory, &mut deciders, &settings, false, &mut || false).unwrap();
        assert_eq!(plan.fallback, None);
        let start = |planned: &Planned| {
            (
                planned.job().to_string().parse().unwrap(),
                planned.nodes.join(","),
            )
        };
        plan.decisions.iter().map(start).collect()
    }

    fn refused(nodes: impl Iterator<Item = usize>, jobs: &[u64]) -> Memory {
        let mut memory = Memory::default();
        for node in nodes {
            for job in jobs {
                memory.refused(ExternalId::number(*job), &format!("g{node}"), "no CPUs", NOW_S);
            }
        }
        memory
    }

    #[test]
    fn a_job_that_twelve_nodes_refused_goes_to_the_thirteenth_in_one_round() {
        let snapshot = seen(13, &[4, 4]);
        let memory = refused(0..12, &[0]);
        let order = decided(&snapshot, &memory);
        assert_eq!(order[0], (0, "g12".to_owned()));
        // The other one waits for a round, and then has all that are left.
        assert_eq!(order.len(), 1);
    }

    #[test]
    fn a_job_that_every_node_refused_costs_nobody_a_node() {
        let snapshot = seen(3, &[4, 4, 4, 4]);
        for jobs in [&[0][..], &[0, 1], &[0, 1, 2]] {
            let order = decided(&snapshot, &refused(0..3, jobs));
            let others: Vec<u64> = (jobs.len() as u64..4).take(3).collect();
            let started: Vec<u64> = order.iter().map(|(job, _)| *job).collect();
            assert_eq!(started, others, "{jobs:?}");
        }
    }

    #[test]
    fn many_jobs_with_refusals_of_their_own_end_in_a_bounded_number_of_attempts() {
        let snapshot = seen(20, &[4; 20]);
        let mut memory = Memory::default();
        for job in 0..20_u64 {
            // Each was refused by every node but one, and that is another one's too.
            for node in (0..20_u64).filter(|node| *node != job / 2) {
                memory.refused(ExternalId::number(job), &format!("g{node}"), "no CPUs", NOW_S);
            }
        }
        let order = decided(&snapshot, &memory);
        assert!(!order.is_empty() && order.len() <= 10, "{order:?}");
        for (job, node) in order {
            assert_eq!(node, format!("g{}", job / 2));
        }
    }

    #[test]
    fn two_jobs_that_each_can_go_where_the_other_was_refused_are_not_kept_from_both() {
        let snapshot = seen(2, &[4, 4]);
        let mut memory = refused(0..1, &[0]);
        memory.refused(ExternalId::number(1), "g1", "no memory", NOW_S);
        assert_eq!(decided(&snapshot, &memory), [(0, "g1".to_owned())]);
    }
}
