//! Estimates from jobs that ended: running jobs are watched, jobs that leave are learned from, new jobs get a prediction.
//!
//! **What is learned** is how long a job held its GPUs until it was over: to its own end, well or with an error, until its user
//! took it back, or up to its limit. That is what a scheduler has to expect of the next one like it, a user's failing jobs fail
//! again, and it is what the simulator's predictor learns. **Not learned** are runs that the cluster cut short (a node that was
//! lost, a preemption), for they say nothing of the job, and ends that were not seen.
//!
//! **Each job gets one prediction**, when it first comes into sight, and keeps it through its own restarts and the daemon's: a
//! policy that saw estimates change while a job waits would not be the one that was trained.
//!
//! All of it is one file that is replaced as a whole: a job is either still watched in it or learned from, so a daemon that is
//! killed anywhere neither loses an end nor counts it twice. Lost, it costs the predictions until jobs have ended again.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::ExternalId;
use pleach_scheduler::history::{Keep, RunTimes};
use serde::{Deserialize, Serialize};

use crate::config::{EstimateSettings, RoundSettings};
use crate::memory::Memory;
use crate::snapshot::{JobSeen, Phase, Snapshot};

/// What the key `version` of the file says. A change of the format is a new number.
pub const VERSION: u32 = 2;

/// Gang sizes that are distinguished, of each user and of all together: assumed; few users have more than five.
const NUM_GANGS: usize = 16;

/// Characters of a name that are kept; Slurm's own limit is far below.
const NAME_MAX: usize = 64;

/// Nothing is learned from an end that was not reported, unless the job was seen at most so long ago, s. Assumed: thirty rounds.
const UNSEEN_S_MAX: i64 = 60;

/// Shortest and longest run time that is learned, s.
const RUN_TIME_S: (f64, f64) = (1.0, 1e9);

/// How a job ended, as the batch system tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// When its last run began, Unix time, s; none: it never ran.
    pub start_s: Option<i64>,
    /// When it ended, Unix time, s.
    pub end_s: i64,
    /// Whether the cluster is the reason and not the job.
    pub is_cut: bool,
    /// Where it ran; empty where that is not known.
    pub nodes: Vec<String>,
}

/// A job that ended before the first look, from accounting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedJob {
    /// Its user.
    pub user: String,
    /// The account that paid.
    pub account: String,
    /// GPUs in all.
    pub num_gpus: u32,
    /// When its last run began, Unix time, s.
    pub start_s: i64,
    /// When it ended, Unix time, s.
    pub end_s: i64,
    /// Where it ran.
    pub nodes: Vec<String>,
}

/// Whose job it is: jobs of one owner are like each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Owner {
    user: String,
    account: String,
}

impl Owner {
    /// Names that are longer than any are cut, and say nothing to a terminal.
    fn of(user: &str, account: &str) -> Owner {
        let name = |text: &str| {
            let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
            text.chars().take(NAME_MAX).map(shown).collect()
        };
        Owner {
            user: name(user),
            account: name(account),
        }
    }
}

/// A job that waits or runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Live {
    /// Its prediction, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    predicted_s: Option<f64>,
    /// The run that was last seen or may have begun since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<Run>,
}

/// A run that may end at any time. A job that waits may start and end between two looks, so it has one too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    owner: Owner,
    num_gpus: u32,
    /// None: it was not seen running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_s: Option<i64>,
    seen_s: i64,
    /// Speed of its GPUs, 1 = the reference type.
    speed: f64,
    /// Progress of earlier runs, s on the reference type.
    before_s: f64,
    /// What this run had to pay for a restart, s.
    cost_s: f64,
}

impl Run {
    /// Whether two looks saw the same run.
    fn are_alike(one: Option<&Run>, other: Option<&Run>) -> bool {
        match (one, other) {
            (Some(one), Some(other)) => {
                let seen_s = one.seen_s;
                *one == Run {
                    seen_s,
                    ..other.clone()
                }
            }
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// What the whole job took on the reference type, s; none where that is not known.
    fn run_time_s(&self, end: Option<&End>, now_s: i64, speeds: &BTreeMap<String, f64>) -> Option<f64> {
        let speed = end
            .and_then(|end| slowest(&end.nodes, speeds))
            .unwrap_or(self.speed);
        let held_s = match end {
            Some(end) if end.is_cut => return None,
            Some(end) => end.end_s.saturating_sub(end.start_s?) as f64,
            // Somewhere between the two looks.
            None if now_s.saturating_sub(self.seen_s) <= UNSEEN_S_MAX => {
                0.5 * (self.seen_s as f64 + now_s as f64) - self.start_s? as f64
            }
            None => return None,
        };
        let run_time_s = self.before_s + (held_s - self.cost_s).max(0.0) * speed;
        Some(run_time_s.clamp(RUN_TIME_S.0, RUN_TIME_S.1))
    }
}

/// What is known of ended jobs, and the predictions of live ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    version: u32,
    live: BTreeMap<ExternalId, Live>,
    run_times: RunTimes<Owner>,
}

fn keep(settings: &EstimateSettings) -> Keep {
    Keep {
        num_last: settings.num_last as usize,
        num_users: settings.num_users as usize,
        num_gangs: NUM_GANGS,
    }
}

impl History {
    /// Nothing learned yet.
    #[must_use]
    pub fn new(settings: &EstimateSettings) -> History {
        History {
            version: VERSION,
            live: BTreeMap::new(),
            run_times: RunTimes::new(keep(settings)),
        }
    }

    /// What a file has, within the bounds of the settings.
    ///
    /// # Errors
    /// A text that is not such a file, or one of another version.
    pub fn read(text: &[u8], settings: &EstimateSettings) -> Result<History, String> {
        let read: History = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if read.version != VERSION {
            return Err(format!("version = {}: allowed is {VERSION}", read.version));
        }
        Ok(History {
            run_times: read.run_times.kept(keep(settings)),
            ..read
        })
    }

    /// Whether nothing was learned yet and no job is watched. Watched jobs are learned from when they leave, not from accounting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.run_times.num_kept() == 0 && self.live.is_empty()
    }

    /// Learns from jobs that ended before the first look, in the order in which they ended. Their last runs count, on the nodes
    /// that the snapshot has.
    pub fn learn_past(&mut self, mut jobs: Vec<EndedJob>, snapshot: &Snapshot, settings: &RoundSettings) {
        let speeds = speeds(snapshot, settings);
        jobs.sort_by_key(|job| job.end_s);
        for job in jobs {
            let speed = slowest(&job.nodes, &speeds).unwrap_or(1.0);
            let run_time_s =
                (job.end_s.saturating_sub(job.start_s) as f64 * speed).clamp(RUN_TIME_S.0, RUN_TIME_S.1);
            let owner = Owner::of(&job.user, &job.account);
            self.run_times.learn(&owner, job.num_gpus, run_time_s);
        }
    }

    /// Whether a job that could end is no longer there: then it is worth asking how it ended.
    #[must_use]
    pub fn misses(&self, snapshot: &Snapshot) -> bool {
        let seen: BTreeSet<ExternalId> = snapshot.jobs.iter().map(|job| job.id).collect();
        let mut ran = self.live.iter().filter(|(_, live)| live.run.is_some());
        ran.any(|(id, _)| !seen.contains(id))
    }

    /// Learns from the jobs that have left, watches those that run, and tells every job of the snapshot what is expected of it.
    /// `memory` has seen the snapshot already; `ends` is what the batch system tells of jobs that have left, as far as it does.
    /// Whether anything is other than before but for the time of the look.
    pub fn observe(
        &mut self,
        snapshot: &mut Snapshot,
        memory: &Memory,
        ends: &BTreeMap<ExternalId, End>,
        settings: &RoundSettings,
    ) -> bool {
        let speeds = speeds(snapshot, settings);
        let mut is_news = false;
        let mut before = std::mem::take(&mut self.live);
        let mut live = BTreeMap::new();
        for job in &snapshot.jobs {
            let known = before.remove(&job.id);
            // A lease has no run time to learn from.
            if job.terms.is_lease {
                continue;
            }
            let (predicted_s, seen) = known.map_or((None, None), |live| (live.predicted_s, live.run));
            let run = match (&job.phase, job.start_s) {
                (phase, _) if !matches!(phase, Phase::Foreign { .. }) => Some(watch(
                    job,
                    snapshot.taken_s,
                    &speeds,
                    memory,
                    settings.restart_cost_s,
                )),
                // It is ending, or Slurm holds it for a moment.
                (Phase::Foreign { .. }, Some(_)) => seen.clone(),
                _ => None,
            };
            is_news |= !Run::are_alike(seen.as_ref(), run.as_ref());
            live.insert(job.id, Live { predicted_s, run });
        }
        is_news |= !before.is_empty();
        self.learn(before, ends, snapshot.taken_s, &speeds);
        for job in &mut snapshot.jobs {
            let Some(Live { predicted_s, .. }) = live.get_mut(&job.id) else {
                continue;
            };
            if predicted_s.is_none() && !matches!(job.phase, Phase::Foreign { .. }) {
                *predicted_s = self
                    .run_times
                    .predict(&Owner::of(&job.user, &job.account), job.num_gpus());
                is_news |= predicted_s.is_some();
            }
            job.predicted_s = *predicted_s;
        }
        live.retain(|_, job| job.predicted_s.is_some() || job.run.is_some());
        self.live = live;
        is_news
    }

    /// Learns from those that have left, in the order in which they ended.
    fn learn(
        &mut self,
        gone: BTreeMap<ExternalId, Live>,
        ends: &BTreeMap<ExternalId, End>,
        now_s: i64,
        speeds: &BTreeMap<String, f64>,
    ) {
        let mut ended = Vec::new();
        for (id, live) in gone {
            let (Some(run), end) = (live.run, ends.get(&id)) else {
                continue;
            };
            if let Some(run_time_s) = run.run_time_s(end, now_s, speeds) {
                ended.push((end.map_or(now_s, |end| end.end_s), id, run, run_time_s));
            }
        }
        ended.sort_by_key(|(end_s, id, ..)| (*end_s, *id));
        for (_, _, run, run_time_s) in ended {
            self.run_times.learn(&run.owner, run.num_gpus, run_time_s);
        }
    }

    /// A job is being stopped for another one: where the batch system then shows it no more, its run is not learned.
    pub fn stopped(&mut self, job: ExternalId) {
        if let Some(live) = self.live.get_mut(&job) {
            live.run = None;
        }
    }

    /// Run times that are kept, each as often as there are groups that have it, and jobs that are watched or have a prediction.
    #[must_use]
    pub fn num_kept(&self) -> (usize, usize) {
        (self.run_times.num_kept(), self.live.len())
    }
}

/// Speed of each node's GPUs, 1 = the reference type.
fn speeds(snapshot: &Snapshot, settings: &RoundSettings) -> BTreeMap<String, f64> {
    let speed = |gpu_type: &str| settings.gpu_types.get(gpu_type).map_or(1.0, |gpu| gpu.speed);
    let nodes = snapshot.nodes.iter();
    nodes
        .map(|node| (node.name.clone(), speed(&node.gpu_type)))
        .collect()
}

/// Speed of a gang, which is that of its slowest node; none without nodes.
fn slowest(nodes: &[String], speeds: &BTreeMap<String, f64>) -> Option<f64> {
    let speed = |node| speeds.get(node).copied().unwrap_or(1.0);
    nodes.iter().map(speed).reduce(f64::min)
}

fn watch(
    job: &JobSeen,
    seen_s: i64,
    speeds: &BTreeMap<String, f64>,
    memory: &Memory,
    restart_cost_s: f64,
) -> Run {
    let received = memory.past(job.id).received;
    let was_stopped = received.num_preemptions + received.num_failures > 0;
    Run {
        owner: Owner::of(&job.user, &job.account),
        num_gpus: job.num_gpus(),
        start_s: job.start_s.filter(|_| job.phase == Phase::Running),
        seen_s,
        speed: slowest(&job.nodes, speeds).unwrap_or(1.0),
        before_s: (received.executed_s - received.added_s).max(0.0),
        cost_s: if was_stopped { restart_cost_s } else { 0.0 },
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
