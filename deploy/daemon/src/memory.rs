//! What Slurm does not keep: what jobs received in runs that were cut short, and which nodes would not take them or what their
//! owner made in their place. Everything else is read anew in each round.
//!
//! It is written beside the log after each round that changed it, and now and then for the times at which jobs were last seen.
//! Lost, it costs nothing but the progress that policies believe such jobs to have, which then count as jobs that begin anew, and
//! one more try on each node that refused one.

pub(crate) mod edit;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pleach_scheduler::cluster::Slice;
use pleach_scheduler::{Cluster, ExternalId, JobId};
use serde::{Deserialize, Serialize};

use crate::refusals::Refusals;
use crate::snapshot::{JobSeen, Phase, Snapshot};

/// Time for which a job that could not be stopped for a lease is left alone while others yield, s. *Ours*: budgets of disruption
/// change in minutes, and each time costs one refusal.
const STAYS_S: i64 = 60;

/// What is remembered of jobs that wait or run; of others, only the nodes that would not take them, for as long as that counts: a
/// job that was evicted is not listed until its owner has made it anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Memory {
    jobs: BTreeMap<ExternalId, Past>,
}

/// Runs of a job before the present one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Past {
    /// What it had received when it last stopped.
    pub received: Received,
    /// When it first began to run, Unix time, µs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_start_us: Option<i64>,
    /// The run that was last seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Run>,
    /// The GPUs of each node that the last decision gave it, as bit masks: Slurm names no GPUs before it runs, and none in its
    /// lists.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gpus: BTreeMap<String, u64>,
    /// What it will have received once the preemption that was sent is carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<Received>,
    /// It could not be stopped for a lease, and is not asked again before this, Unix time, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stays_until_s: Option<i64>,
    /// Nodes that would not take it since it last ran.
    #[serde(skip_serializing_if = "Refusals::is_empty")]
    pub refusals: Refusals,
}

/// That of a job of which nothing is remembered.
static NO_PAST: LazyLock<Past> = LazyLock::new(Past::default);

/// What a job had received when it last stopped; as in [`pleach_scheduler::record::JobRecord`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Received {
    /// GPU·s.
    pub attained_gpu_s: f64,
    /// Time with GPUs, s.
    pub held_s: f64,
    /// Believed progress, s of the reference run.
    pub executed_s: f64,
    /// Work that restarts have added, s of the reference run.
    pub added_s: f64,
    /// Progress that the last preemption wrote down, s of the reference run.
    pub saved_s: f64,
    /// How often it was preempted.
    pub num_preemptions: u32,
    /// How often it was stopped by a failure.
    pub num_failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    start_s: i64,
    seen_s: i64,
    num_gpus: u32,
    /// Of each of them.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    gpu_milli: u16,
}

fn whole() -> u16 {
    1000
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature that serde asks for.
fn is_whole(milli: &u16) -> bool {
    *milli == 1000
}

impl Past {
    fn is_empty(&self) -> bool {
        *self == Past::default()
    }

    fn is_same_but_seen(&self, other: &Past) -> bool {
        let run = |past: &Past| past.run.map(|run| (run.start_s, run.num_gpus, run.gpu_milli));
        let rest = |past: &Past| (past.received, past.first_start_us, past.stop, past.stays_until_s);
        let is_held_alike = self.gpus == other.gpus && self.refusals == other.refusals;
        is_held_alike && run(self) == run(other) && rest(self) == rest(other)
    }

    /// The run that was seen is over: stopped by the daemon, or by a failure, which keeps no progress that is known.
    fn close(&mut self) {
        self.gpus.clear();
        let Some(run) = self.run.take() else { return };
        if let Some(received) = self.stop.take() {
            self.received = received;
            return;
        }
        let held_s = (run.seen_s - run.start_s).max(0) as f64;
        self.received.held_s += held_s;
        self.received.attained_gpu_s += held_s * f64::from(run.num_gpus) * f64::from(run.gpu_milli) / 1000.0;
        self.received.num_failures = self.received.num_failures.saturating_add(1);
    }
}

impl Memory {
    /// What is remembered of a job.
    #[must_use]
    pub fn past(&self, job: ExternalId) -> &Past {
        self.jobs.get(&job).unwrap_or(&NO_PAST)
    }

    /// Whether another one says the same but for when jobs were last seen.
    pub(crate) fn is_same_but_seen(&self, other: &Memory) -> bool {
        let mut both = self.jobs.iter().zip(&other.jobs);
        self.jobs.len() == other.jobs.len()
            && both.all(|((a, past), (b, other))| a == b && past.is_same_but_seen(other))
    }

    /// Number of jobs of which there is something to remember.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether there is nothing to remember.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Takes in what a snapshot shows; forgets jobs that are gone, but for their refusals.
    pub fn observe(&mut self, snapshot: &Snapshot) {
        let mut before = std::mem::take(&mut self.jobs);
        for job in &snapshot.jobs {
            let mut past = before.remove(&job.id).unwrap_or_default();
            past.refusals.forget(snapshot.taken_s);
            // One that lasts for longer than any comes from a clock that was ahead.
            let lasts = |until_s: &i64| (1..=STAYS_S).contains(&until_s.saturating_sub(snapshot.taken_s));
            past.stays_until_s = past.stays_until_s.filter(lasts);
            match (&job.phase, job.start_s) {
                (Phase::Running, Some(start_s)) => {
                    if past.run.is_some_and(|run| run.start_s != start_s) {
                        // Stopped and started again between two looks: what was decided last is where it runs.
                        let gpus = std::mem::take(&mut past.gpus);
                        past.close();
                        past.gpus = gpus;
                    }
                    // It has found a place.
                    past.refusals = Refusals::default();
                    past.first_start_us
                        .get_or_insert(start_s.saturating_mul(1_000_000));
                    past.run = Some(Run {
                        start_s,
                        seen_s: snapshot.taken_s.max(start_s),
                        num_gpus: job.num_gpus(),
                        gpu_milli: job.gpu_milli(),
                    });
                }
                (Phase::Foreign { .. } | Phase::Released { .. }, _) => {}
                _ => past.close(),
            }
            if !past.is_empty() {
                self.jobs.insert(job.id, past);
            }
        }
        for (job, Past { mut refusals, .. }) in before {
            refusals.forget(snapshot.taken_s);
            if !refusals.is_empty() {
                let past = Past {
                    refusals,
                    ..Past::default()
                };
                self.jobs.insert(job, past);
            }
        }
    }

    /// A start of a job was sent, to nodes of these names, one for each slice.
    pub fn started(&mut self, job: ExternalId, nodes: &[String], placement: &[Slice]) {
        let gpus = nodes
            .iter()
            .zip(placement)
            .map(|(node, slice)| (node.clone(), slice.gpus));
        self.jobs.entry(job).or_default().gpus = gpus.collect();
    }

    /// A node would not take a job at Unix time `now_s`; for how long it is not chosen for it, s. `job` is
    /// [`JobSeen::refused_as`].
    pub fn refused(&mut self, job: ExternalId, node: &str, reason: &str, now_s: i64) -> i64 {
        self.jobs
            .entry(job)
            .or_default()
            .refusals
            .add(node, reason, now_s)
    }

    /// The nodes that would not take a job; none where nothing is remembered of it.
    #[must_use]
    pub fn refusals(&self, job: &JobSeen) -> Option<&Refusals> {
        Some(&self.jobs.get(&job.refused_as())?.refusals)
    }

    /// Whether a job could not be stopped for a lease a short time ago.
    #[must_use]
    pub fn stays(&self, job: ExternalId) -> bool {
        let past = self.jobs.get(&job);
        past.is_some_and(|past| past.stays_until_s.is_some())
    }

    /// A job could not be stopped for a lease at Unix time `now_s`.
    pub fn not_stopped(&mut self, job: ExternalId, now_s: i64) {
        self.jobs.entry(job).or_default().stays_until_s = Some(now_s.saturating_add(STAYS_S));
    }

    /// A preemption of a job was sent; `row` is the job as the cluster has it after the pass.
    pub fn preempted(&mut self, cluster: &Cluster, job: ExternalId, row: JobId) {
        let of = cluster.job(row);
        self.jobs.entry(job).or_default().stop = Some(Received {
            attained_gpu_s: of.attained_gpu_s,
            held_s: of.held_s,
            executed_s: of.executed_s,
            added_s: of.added_s,
            saved_s: of.saved_s,
            num_preemptions: of.num_preemptions,
            num_failures: of.num_failures,
        });
    }
}
