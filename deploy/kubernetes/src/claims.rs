//! Run times that users say, and what is believed of them.
//!
//! The annotation `pleach/estimate-s` is a word: nothing ends the job then, as a deadline does. So a user who says 1 s would be first
//! under any policy that begins with short jobs. What is believed is never less than what ended jobs of the same namespace let
//! expect (with as many GPUs, else of any size), nor than the time for which a job of it with as many GPUs runs that has outlived
//! its own word; and a job that has outlived its word is believed nothing: it has no estimate but its deadline. A deadline bounds
//! all of it, for the job is ended then.
//!
//! # Source
//! Ours; the prediction is that of [`pleach_scheduler::history`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pleach_daemon::config::EstimateSettings;
use pleach_daemon::files;
use pleach_daemon::snapshot::{JobSeen, Phase, Snapshot};
use pleach_scheduler::ExternalId;
use pleach_scheduler::history::{Keep, RunTimes};
use serde::{Deserialize, Serialize};

use crate::job_pods::JobPods;

/// The file in `state_dir`.
const FILE: &str = "claims.json";
/// Largest such file that is read, bytes.
const FILE_MAX: u64 = 64 << 20;
/// Gang sizes that are distinguished in each namespace: as in the driver's own history.
const NUM_GANGS: usize = 16;
/// Shortest and longest run time that is learned, s.
const RUN_TIME_S: (f64, f64) = (1.0, 1e9);

/// A job that was seen running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    namespace: String,
    num_gpus: u32,
    /// For how long by the last look, s.
    elapsed_s: i64,
}

/// What a folder keeps of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    running: BTreeMap<ExternalId, Run>,
    run_times: RunTimes<String>,
}

/// What is known of how long jobs of each namespace run.
#[derive(Debug)]
pub struct Claims {
    kept: Kept,
    /// Jobs that were stopped since the last look.
    stopped: Mutex<BTreeSet<ExternalId>>,
    folder: PathBuf,
}

impl Claims {
    /// Goes on from a folder; begins anew where it has nothing that can be read.
    #[must_use]
    pub fn begin(folder: &Path, settings: &EstimateSettings) -> Claims {
        let keep = Keep {
            num_last: settings.num_last as usize,
            num_users: settings.num_users as usize,
            num_gangs: NUM_GANGS,
        };
        let read = files::bytes(&folder.join(FILE), FILE_MAX).ok();
        let read = read.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
        let kept = match read {
            Some(kept) => Kept {
                run_times: kept.run_times.kept(keep),
                ..kept
            },
            None => Kept {
                running: BTreeMap::new(),
                run_times: RunTimes::new(keep),
            },
        };
        Claims {
            kept,
            stopped: Mutex::default(),
            folder: folder.to_owned(),
        }
    }

    /// Puts what is believed in the place of what users say; where that is more, the job's remark tells.
    pub fn bound(&self, snapshot: &mut Snapshot, jobs: &mut BTreeMap<ExternalId, Arc<JobPods>>) {
        let least = self.outlived(snapshot, jobs);
        let now_s = snapshot.taken_s;
        for job in &mut snapshot.jobs {
            let Some((namespace, pods)) = named(job, jobs) else {
                continue;
            };
            let Some(claim) = pods.claim else { continue };
            let num_gpus = job.num_gpus();
            let own = self.kept.run_times.predict_own(&namespace, num_gpus);
            let own_s = own.map_or(0, |own_s| own_s.ceil() as i64);
            let others_s = least.get(&(namespace, num_gpus)).copied().unwrap_or(0);
            let mut believed_s = claim.claim_s.max(own_s).max(others_s);
            if let Some(elapsed_s) = elapsed_s(job, now_s).filter(|elapsed_s| *elapsed_s > claim.claim_s) {
                // It has been wrong; what its namespace's jobs took may still be right.
                believed_s = match own_s > elapsed_s {
                    true => own_s,
                    false => i64::MAX,
                };
            }
            let limit_s = believed_s.min(claim.deadline_s.unwrap_or(i64::MAX));
            job.limit_s = Some(limit_s).filter(|limit_s| *limit_s < i64::MAX);
            if let Some(pods) = jobs.get_mut(&job.id)
                && believed_s > claim.claim_s
            {
                let said = format!(
                    "{} of {} s counts for more: jobs of this namespace took longer than they said",
                    crate::names::ESTIMATE_S,
                    claim.claim_s
                );
                if pods.remark.is_none() {
                    Arc::make_mut(pods).remark = Some(said);
                }
            }
        }
    }

    /// The longest time for which a job runs that has outlived its word, by namespace and GPUs, s.
    fn outlived(
        &self,
        snapshot: &Snapshot,
        jobs: &BTreeMap<ExternalId, Arc<JobPods>>,
    ) -> BTreeMap<(String, u32), i64> {
        let mut least: BTreeMap<(String, u32), i64> = BTreeMap::new();
        for job in &snapshot.jobs {
            let Some((namespace, pods)) = named(job, jobs) else {
                continue;
            };
            let (Some(claim), Some(elapsed_s)) = (pods.claim, elapsed_s(job, snapshot.taken_s)) else {
                continue;
            };
            if elapsed_s > claim.claim_s {
                let entry = least.entry((namespace, job.num_gpus())).or_default();
                *entry = (*entry).max(elapsed_s);
            }
        }
        least
    }

    /// Learns from jobs that run no longer, and writes down what was learned, as far as that can be. What was stopped says nothing
    /// of how long it takes: neither what the controller stopped nor what is being deleted.
    pub fn learn(&mut self, snapshot: &Snapshot, jobs: &BTreeMap<ExternalId, Arc<JobPods>>) {
        let mut running = BTreeMap::new();
        for job in &snapshot.jobs {
            let elapsed_s = elapsed_s(job, snapshot.taken_s);
            if let (Some((namespace, _)), Some(elapsed_s)) = (named(job, jobs), elapsed_s) {
                let num_gpus = job.num_gpus();
                let run = Run {
                    namespace,
                    num_gpus,
                    elapsed_s,
                };
                running.insert(job.id, run);
            }
        }
        let there: BTreeSet<ExternalId> = snapshot.jobs.iter().map(|job| job.id).collect();
        let before = std::mem::replace(&mut self.kept.running, running);
        let stopped = std::mem::take(&mut *self.stopped.lock().unwrap_or_else(PoisonError::into_inner));
        let mut is_news = false;
        for (id, run) in before {
            if !there.contains(&id) && !stopped.contains(&id) {
                let run_time_s = (run.elapsed_s as f64).clamp(RUN_TIME_S.0, RUN_TIME_S.1);
                self.kept
                    .run_times
                    .learn(&run.namespace, run.num_gpus, run_time_s);
                is_news = true;
            }
        }
        if is_news && let Ok(bytes) = serde_json::to_vec(&self.kept) {
            // Lost, it is learned again.
            let _ = files::replace(&self.folder, FILE, &bytes);
        }
    }

    /// A job is being stopped for another one.
    pub(crate) fn stopped(&self, job: ExternalId) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        stopped.insert(job);
    }
}

/// The namespace of a job, which no user can choose but by right, and its pods; none of a lease, which tells nothing of run times.
fn named<'a>(job: &JobSeen, jobs: &'a BTreeMap<ExternalId, Arc<JobPods>>) -> Option<(String, &'a JobPods)> {
    let pods = jobs.get(&job.id).filter(|_| !job.terms.is_lease)?;
    let (namespace, _) = pods.name.split_once('/')?;
    Some((namespace.to_owned(), pods))
}

fn elapsed_s(job: &JobSeen, now_s: i64) -> Option<i64> {
    let start_s = job.start_s.filter(|_| job.phase == Phase::Running)?;
    Some(now_s.saturating_sub(start_s).max(0))
}
