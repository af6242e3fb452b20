//! The guard of a promise: whether jobs wait as long as was promised of the policy before it went live.
//!
//! The daemon counts the jobs that it saw end: how long each was without GPUs, less the time for which it was blocked for another
//! reason than the queue. Jobs that still wait count too, once they are later than the promised 99th percentile and the margin: a
//! job that never starts breaks a promise. Once a whole window was watched, the rule of [`Limits`] decides. Past it the
//! fallback decides until the policy is read again.
//!
//! What is remembered is written to `waits.json` of the daemon's folder, so a restart goes on with the same window and stays with
//! the fallback. Jobs that end while no daemon runs are not counted.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_scheduler::ExternalId;
use pleach_site::promise::{BYTES_MAX, Limits, Promise, Seen};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::config::RoundSettings;
use crate::error::Error;
use crate::files;
use crate::history::End;
use crate::memory::Memory;
use crate::snapshot::{JobSeen, Phase, Snapshot};

/// Parts of the window, by which it slides.
const NUM_PARTS: i64 = 14;

/// Longest time for which the file may be behind where no job ended, s. *Ours*: what is not written are the times of blocked jobs.
const WRITTEN_S: i64 = 60;

/// What is remembered, also across restarts. Its size is bounded by the jobs that are blocked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// What it is about: the waits above which the promise is broken, and the window, s.
    about: [i64; 3],
    /// When it began, Unix time, s.
    since_s: i64,
    /// Ended jobs of each part of the window, by its number since 1970.
    parts: BTreeMap<i64, Part>,
    /// For how long jobs that are still there were blocked, s.
    blocked: BTreeMap<ExternalId, i64>,
    /// Why the promise is broken; none where it is not.
    broken: Option<String>,
}

/// Ended jobs of a part of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    num_jobs: u64,
    /// Their waits, summed, s.
    wait_s: i64,
    /// Their completion times, summed, s.
    jct_s: i64,
    /// Those that waited for too long.
    num_late: u64,
}

/// A job that is there.
#[derive(Clone, Debug)]
struct Live {
    submit_s: i64,
    /// When its present run began; none: it has none.
    start_s: Option<i64>,
    /// For how long it had GPUs in earlier runs, s.
    held_s: i64,
    seen_s: i64,
    is_blocked: bool,
}

/// What a status says of a promise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PromiseStatus {
    /// Jobs that count.
    pub num_jobs: u64,
    /// Their mean wait, s.
    pub wait_s: f64,
    /// Mean completion time of those that ended, s.
    pub jct_s: f64,
    /// Mean wait that was promised, s.
    pub promised_s: f64,
    /// Whether a whole window was watched: before that nothing is said.
    pub is_full: bool,
    /// Why it is broken; none where it is not.
    pub broken: Option<String>,
}

impl PromiseStatus {
    /// What an operator reads of it.
    #[must_use]
    pub fn told(&self) -> String {
        let verdict = match (&self.broken, self.is_full) {
            (Some(_), _) => "BROKEN",
            (None, true) => "kept",
            (None, false) => "the window is not full yet",
        };
        format!(
            "\npromise: {} jobs waited {:.0} s in the mean and took {:.0} s, promised is a wait of {:.0} s: {verdict}",
            self.num_jobs, self.wait_s, self.jct_s, self.promised_s
        )
    }
}

/// What is promised, by the settings; none where nothing is.
///
/// # Errors
/// A file that cannot be read, or is no promise.
pub fn read(settings: &RoundSettings) -> Result<Option<Limits>, Error> {
    settings
        .promise
        .as_deref()
        .map(|path| of_file(path, settings.margin))
        .transpose()
}

fn of_file(path: &Path, margin: f64) -> Result<Limits, Error> {
    let refused = |line, reason| Error::Text {
        path: path.to_owned(),
        line,
        reason,
    };
    let read: Result<Promise<IgnoredAny>, _> = serde_json::from_str(&files::text(path, BYTES_MAX)?);
    let promise = read.map_err(|error| refused(error.line(), error.to_string()))?;
    let checked = promise.check().and_then(|()| promise.limits(margin));
    checked.map_err(|reason| refused(0, reason))
}

/// A guard over one promise.
#[derive(Clone, Debug)]
pub struct Guard {
    limits: Limits,
    /// Length of a part of the window, s, at least 1.
    part_s: i64,
    live: BTreeMap<ExternalId, Live>,
    remembered: Remembered,
    /// When it was last written, Unix time, s; none: what there is now has not been.
    written_s: Option<i64>,
}

impl Guard {
    /// A guard that has seen nothing.
    #[must_use]
    pub fn new(limits: Limits, settings: &RoundSettings) -> Guard {
        let part_s = (settings.promise_days * 86_400.0 / NUM_PARTS as f64).max(1.0) as i64;
        Guard {
            remembered: Remembered {
                about: [limits.mean_s() as i64, limits.late_s() as i64, part_s * NUM_PARTS],
                since_s: i64::MAX,
                ..Remembered::default()
            },
            limits,
            part_s,
            live: BTreeMap::new(),
            written_s: None,
        }
    }

    /// Goes on where another process ended, if that was about the same promise, margin and window.
    #[must_use]
    pub fn going_on(mut self, remembered: Option<Remembered>) -> Guard {
        if let Some(found) = remembered.filter(|found| found.about == self.remembered.about) {
            self.remembered = found;
        }
        self
    }

    /// Why the fallback is to decide; none while the policy may.
    #[must_use]
    pub fn degraded(&self) -> Option<String> {
        let why = self.remembered.broken.as_ref()?;
        Some(format!(
            "the promise is broken: {why}; the fallback decides until the policy is read again"
        ))
    }

    /// Whether a job that could have ended is no longer there: then it is worth asking how it ended.
    #[must_use]
    pub fn misses(&self, snapshot: &Snapshot) -> bool {
        let mut ids: Vec<ExternalId> = snapshot.jobs.iter().map(|job| job.id).collect();
        ids.sort_unstable();
        self.live.keys().any(|id| ids.binary_search(id).is_err())
    }

    /// Counts the jobs that have left and watches the others; what is new to the operator, if anything. `memory` has seen the
    /// snapshot already; `ends` is what the batch system tells of jobs that have left, as far as it does.
    pub fn observe(
        &mut self,
        snapshot: &Snapshot,
        memory: &Memory,
        ends: &BTreeMap<ExternalId, End>,
    ) -> Option<String> {
        let now_s = snapshot.taken_s;
        let mut before = std::mem::take(&mut self.live);
        let mut live = BTreeMap::new();
        for job in snapshot.jobs.iter().filter(|job| !job.terms.is_lease) {
            let known = before.remove(&job.id);
            if let Some(known) = known.as_ref().filter(|known| known.is_blocked) {
                let blocked_s = self.remembered.blocked.entry(job.id).or_default();
                *blocked_s = blocked_s.saturating_add(now_s.saturating_sub(known.seen_s).max(0));
            }
            let watched = match (&job.phase, job.start_s) {
                // It is ending, or Slurm holds it for a moment.
                (Phase::Foreign { .. }, Some(_)) => known,
                (Phase::Foreign { .. }, None) => None,
                _ => Some(watch(job, known.as_ref(), now_s, memory)),
            };
            live.extend(watched.map(|watched| (job.id, watched)));
        }
        self.live = live;
        for (id, job) in before {
            self.count(id, &job, ends.get(&id), now_s);
        }
        self.remembered.blocked.retain(|id, _| self.live.contains_key(id));
        self.slide(now_s);
        if !self.is_full(now_s) || self.remembered.broken.is_some() {
            return None;
        }
        self.remembered.broken = self.limits.broken(&self.seen(now_s));
        self.written_s = self.written_s.filter(|_| self.remembered.broken.is_none());
        self.degraded()
    }

    /// Counts a job that has left, if it ran and was not cut short by the cluster.
    fn count(&mut self, id: ExternalId, job: &Live, end: Option<&End>, now_s: i64) {
        if end.is_some_and(|end| end.is_cut) {
            return;
        }
        let blocked_s = self.blocked_s(id);
        // Where the batch system does not say when it ended, that lies somewhere between the two looks.
        let between_s = job.seen_s + (now_s - job.seen_s) / 2;
        let (start_s, end_s) = end.map_or((job.start_s, between_s), |end| (end.start_s, end.end_s));
        let Some(start_s) = start_s else {
            return;
        };
        let jct_s = end_s.saturating_sub(job.submit_s).max(0);
        let ran_s = end_s.saturating_sub(start_s).max(0).saturating_add(job.held_s);
        let wait_s = jct_s.saturating_sub(ran_s).saturating_sub(blocked_s).max(0);
        let part = self
            .remembered
            .parts
            .entry(now_s.div_euclid(self.part_s))
            .or_default();
        part.num_jobs = part.num_jobs.saturating_add(1);
        part.wait_s = part.wait_s.saturating_add(wait_s);
        part.jct_s = part.jct_s.saturating_add(jct_s);
        part.num_late = part
            .num_late
            .saturating_add(u64::from(wait_s as f64 > self.limits.late_s()));
        self.written_s = None;
    }

    fn blocked_s(&self, id: ExternalId) -> i64 {
        self.remembered.blocked.get(&id).copied().unwrap_or_default()
    }

    /// Forgets what the window has left, and what a clock ahead wrote down.
    fn slide(&mut self, now_s: i64) {
        let now = now_s.div_euclid(self.part_s);
        self.remembered.since_s = self.remembered.since_s.min(now_s);
        self.remembered
            .parts
            .retain(|number, _| (0..=NUM_PARTS).contains(&now.saturating_sub(*number)));
    }

    fn is_full(&self, now_s: i64) -> bool {
        now_s.saturating_sub(self.remembered.since_s) >= self.part_s * NUM_PARTS
    }

    /// Ended jobs of the window, and those that wait for too long already.
    fn seen(&self, now_s: i64) -> Seen {
        let late = self.live.iter().filter_map(|(id, job)| {
            let waits = job.start_s.is_none() && !job.is_blocked;
            let had_s = job
                .submit_s
                .saturating_add(job.held_s)
                .saturating_add(self.blocked_s(*id));
            let wait_s = now_s.saturating_sub(had_s) as f64;
            (waits && wait_s > self.limits.late_s()).then_some(wait_s)
        });
        let ended = self.remembered.parts.values().map(|part| Seen {
            num_jobs: part.num_jobs,
            wait_s: part.wait_s as f64,
            num_late: part.num_late,
        });
        let late = late.map(|wait_s| Seen {
            num_jobs: 1,
            wait_s,
            num_late: 1,
        });
        ended.chain(late).fold(Seen::default(), |sum, seen| Seen {
            num_jobs: sum.num_jobs.saturating_add(seen.num_jobs),
            wait_s: sum.wait_s + seen.wait_s,
            num_late: sum.num_late.saturating_add(seen.num_late),
        })
    }

    /// What a status says.
    #[must_use]
    pub fn status(&self, now_s: i64) -> PromiseStatus {
        let seen = self.seen(now_s);
        let parts = self.remembered.parts.values();
        let ended = parts.fold((0, 0), |sum: (u64, i64), part| {
            (
                sum.0.saturating_add(part.num_jobs),
                sum.1.saturating_add(part.jct_s),
            )
        });
        PromiseStatus {
            num_jobs: seen.num_jobs,
            wait_s: seen.wait_s / seen.num_jobs.max(1) as f64,
            jct_s: ended.1 as f64 / ended.0.max(1) as f64,
            promised_s: self.limits.wait_s.value,
            is_full: self.is_full(now_s),
            broken: self.remembered.broken.clone(),
        }
    }

    /// What is to be written down now, if anything.
    pub fn to_write(&mut self, now_s: i64) -> Option<&Remembered> {
        let is_recent = |written_s: i64| (written_s..written_s + WRITTEN_S).contains(&now_s);
        if self.written_s.is_some_and(is_recent) {
            return None;
        }
        self.written_s = Some(now_s);
        Some(&self.remembered)
    }
}

fn watch(job: &JobSeen, known: Option<&Live>, now_s: i64, memory: &Memory) -> Live {
    Live {
        // What waits for Kueue has pods only later, and these came later.
        submit_s: known.map_or(job.submit_s, |known| known.submit_s.min(job.submit_s)),
        start_s: job.start_s.filter(|_| job.phase == Phase::Running),
        held_s: memory.past(job.id).received.held_s.clamp(0.0, 1e12) as i64,
        seen_s: now_s,
        is_blocked: matches!(job.phase, Phase::Blocked { .. }),
    }
}
