//! What is forecast of a job at the instant at which it comes, and what is known of the queue then.

use pleach_env::{Error, Seed};
use pleach_scheduler::{Estimate, Provenance};
use rayon::prelude::*;
use serde::Serialize;

use crate::boost::{quantile, quantile_of};
use crate::draws::Draws;
use crate::past::{Past, Who};
use crate::record::Present;
use crate::replay::{Coming, DAYS_MAX_S, Drawn, Site};
use crate::score::{LEVELS, MIDDLE, Quantiles, log1};

/// Waits up to this many seconds count as none. *Assumed*, as for twins.
pub const SHORT_S: f64 = 60.0;
const HOUR_S: f64 = 3600.0;

/// A forecast before any correction.
#[derive(Clone, Debug, Serialize)]
pub struct Bare {
    /// Waits of the replays.
    pub replay: Quantiles,
    /// Part of the replays in which it starts at once.
    pub at_once: f64,
    /// Wait where all run to what is believed of them, and nothing else comes, s: what `--start` of Slurm says.
    pub by_limits_s: f64,
    /// The same with the median run times of users and sizes, s.
    pub by_medians_s: f64,
    /// Waits of the last jobs of its size.
    pub history: Quantiles,
    /// The queue: the first of them without any replay ([`Bare::state`]).
    pub features: Vec<f64>,
}

/// Features that say something of the state alone.
const NUM_STATE: usize = 15;

impl Bare {
    /// What trees on the state of the queue alone may read.
    #[must_use]
    pub fn state(&self) -> &[f64] {
        &self.features[..NUM_STATE]
    }

    /// Whether the job has to wait, as the replay or the limits say.
    #[must_use]
    pub fn must_wait(&self) -> bool {
        self.replay[MIDDLE] > SHORT_S || self.by_limits_s > SHORT_S
    }
}

/// Which of the jobs at an instant: one that waits, by its number among them, or a new one.
#[derive(Clone, Debug)]
pub enum Subject<'a> {
    /// A job that waits.
    Waits(usize),
    /// A new job.
    New(Box<Coming<'a>>, Who),
}

/// A present with what is known of it.
pub struct Scene<'a> {
    /// The cluster and its policy.
    pub site: &'a Site<'a>,
    /// What has ended and begun.
    pub past: &'a Past,
    /// What runs and waits.
    pub present: &'a Present,
    /// GPUs that are free.
    pub free: f64,
}

/// A wait from a start since the instant, s.
#[must_use]
pub fn wait_s(start_s: f64) -> f64 {
    if start_s <= SHORT_S {
        0.0
    } else {
        start_s.min(DAYS_MAX_S)
    }
}

/// Waits of sorted replays at [`LEVELS`].
#[must_use]
pub fn quantiles(sorted: &[f64]) -> Quantiles {
    LEVELS.map(|level| quantile(sorted, level))
}

impl Scene<'_> {
    /// Forecasts of some jobs now: one batch of replays serves all that wait, each new one has its own.
    ///
    /// # Errors
    /// A cluster that cannot be made, a policy that cannot decide.
    pub fn bares(&self, subjects: &[Subject<'_>], num_replays: u64, seed: Seed) -> Result<Vec<Bare>, Error> {
        let draws = Draws::at(self.site, self.past, self.present);
        let is_new = |number: &usize| matches!(subjects[*number], Subject::New(..));
        let (new, old): (Vec<usize>, Vec<usize>) = (0..subjects.len()).partition(is_new);
        let batches = new.into_iter().map(|number| vec![number]).chain([old]);
        let mut found = Vec::new();
        for batch in batches.filter(|batch| !batch.is_empty()) {
            let asked = match &subjects[batch[0]] {
                Subject::New(coming, who) => Some((&**coming, *who)),
                Subject::Waits(_) => None,
            };
            let target = |number: &usize| match &subjects[*number] {
                Subject::New(..) => self.present.waiting.len(),
                Subject::Waits(number) => *number,
            };
            let targets: Vec<usize> = batch.iter().map(target).collect();
            let waits = |drawn: &Drawn<'_>, within_s: f64| -> Result<Vec<f64>, Error> {
                let num_asked = usize::from(asked.is_some());
                let starts_s = self
                    .site
                    .replay(self.present, drawn, num_asked, &targets, within_s)?;
                Ok(targets.iter().map(|target| starts_s[*target]).collect())
            };
            let ends = |starts_s: &[f64]| starts_s.iter().copied().fold(0.0, f64::max);
            let (limits, medians) = (self.all_run(asked, None), self.all_run(asked, Some(0.5)));
            // What the first pass starts, it starts whatever is drawn, but where it knows what is drawn.
            let knows = |estimate: &Estimate| estimate.provenance == Provenance::Oracle;
            let first = waits(&limits, 0.0)?;
            let (starts, points) = if ends(&first) < DAYS_MAX_S && !self.site.estimates.iter().any(knows) {
                (vec![first.clone()], [first.clone(), first])
            } else {
                let points = [waits(&limits, DAYS_MAX_S)?, waits(&medians, DAYS_MAX_S)?];
                // What comes after all have started matters to none: few start later than by limits.
                let within_s = ends(&points[0]).min(DAYS_MAX_S) + HOUR_S;
                let replay = |replay: u64| {
                    let starts_s = waits(&draws.draw(seed, replay, asked, within_s), within_s)?;
                    if ends(&starts_s) <= within_s {
                        return Ok(starts_s);
                    }
                    waits(&draws.draw(seed, replay, asked, DAYS_MAX_S), DAYS_MAX_S)
                };
                let all = (0..num_replays).into_par_iter().map(replay);
                (all.collect::<Result<_, Error>>()?, points)
            };
            for (place, number) in batch.into_iter().enumerate() {
                let own = starts.iter().map(|of: &Vec<f64>| wait_s(of[place])).collect();
                let points = [0, 1].map(|of: usize| wait_s(points[of][place]));
                found.push((number, self.bare_of(&subjects[number], own, points)));
            }
        }
        found.sort_by_key(|(number, _)| *number);
        Ok(found.into_iter().map(|(_, bare)| bare).collect())
    }

    /// The course in which everything runs for the part `part` of what jobs like it run, or to what is believed of it where there
    /// is none, and nothing comes.
    fn all_run<'b>(&'b self, asked: Option<(&Coming<'b>, Who)>, part: Option<f64>) -> Drawn<'b> {
        let run_s = |job: usize, age_s: f64| {
            let runs = self.past.runs(self.past.who(job), age_s);
            let believed = self.site.estimates[job];
            match part {
                None if believed.provenance != Provenance::Oracle => believed.value.max(age_s + SHORT_S),
                None => runs.at(0.95),
                Some(part) => runs.at(part),
            }
        };
        let running = self.present.running.iter().map(|one| run_s(one.job, one.done_s));
        let waiting = self.present.waiting.iter().map(|job| run_s(*job, 0.0));
        let coming = asked.map(|(coming, who)| Coming {
            run_s: self.past.runs(who, 0.0).at(part.unwrap_or(0.95)),
            ..coming.clone()
        });
        Drawn {
            runs_s: running.chain(waiting).collect(),
            coming: coming.into_iter().collect(),
        }
    }

    /// The forecast of waits that were replayed, with those where all run to their limits and to their medians.
    fn bare_of(&self, subject: &Subject<'_>, mut waits: Vec<f64>, points: [f64; 2]) -> Bare {
        waits.sort_unstable_by(f64::total_cmp);
        let replay = quantiles(&waits);
        let at_once = waits.partition_point(|wait| *wait == 0.0) as f64 / waits.len().max(1) as f64;
        let [by_limits_s, by_medians_s] = points;
        let (who, gpus) = match subject {
            Subject::Waits(number) => {
                let job = self.present.waiting[*number];
                (self.past.who(job), self.site.workload.jobs[job].gpus())
            }
            Subject::New(coming, who) => (*who, coming.spec.gpus()),
        };
        let mut features = self.state_of(subject, who, gpus);
        debug_assert_eq!(features.len(), NUM_STATE);
        features.extend(points.map(log1));
        features.extend([replay[1], replay[3], replay[4], replay[5], replay[7]].map(log1));
        Bare {
            replay,
            at_once,
            by_limits_s,
            by_medians_s,
            history: self.history_of(subject, who).unwrap_or(replay),
            features,
        }
    }

    /// Past waits of its size; of a job that waits already the rest of those that were longer than its wait so far. None where no
    /// wait was: then replays are all that is known of it.
    fn history_of(&self, subject: &Subject<'_>, who: Who) -> Option<Quantiles> {
        let waits = self.past.waits(who.size);
        let Subject::Waits(number) = subject else {
            return Some(quantiles(waits));
        };
        let submit = self.site.workload.jobs[self.present.waiting[*number]].submit;
        let waited_s = self.present.at.since(submit).as_secs_f64();
        let longer = &waits[waits.partition_point(|wait_s| *wait_s < waited_s)..];
        let rest: Vec<f64> = longer.iter().map(|wait_s| wait_s - waited_s).collect();
        (!rest.is_empty()).then(|| quantiles(&rest))
    }

    /// What is believed of a run time, s: where the site knows it exactly, nothing but what jobs like it ran is read here.
    fn believed_s(&self, job: usize, done_s: f64) -> f64 {
        let believed = self.site.estimates[job];
        match believed.provenance {
            Provenance::Oracle => self.past.runs(self.past.who(job), done_s).at(0.5),
            _ => believed.value,
        }
    }

    /// The state of the queue as a job of `gpus` meets it.
    fn state_of(&self, subject: &Subject<'_>, who: Who, gpus: f64) -> Vec<f64> {
        let (site, now_s) = (self.site, self.present.at.as_secs_f64());
        let jobs = &site.workload.jobs;
        let all = (site.workload.cluster.num_gpus() as f64).max(1.0);
        let own = match subject {
            Subject::Waits(number) => Some(self.present.waiting[*number]),
            Subject::New(..) => None,
        };
        let believed_s = match subject {
            Subject::New(coming, _) => coming.estimate.value,
            Subject::Waits(_) => own.map_or(0.0, |job| self.believed_s(job, 0.0)),
        };
        let ahead = || self.present.waiting.iter().filter(|job| Some(**job) != own);
        let waiting_gpus: f64 = ahead().map(|job| jobs[*job].gpus()).sum();
        let work =
            |job: usize, done_s: f64| jobs[job].gpus() * (self.believed_s(job, done_s) - done_s).max(SHORT_S);
        let waiting_work: f64 = ahead().map(|job| work(*job, 0.0)).sum();
        let running_work: f64 = self
            .present
            .running
            .iter()
            .map(|one| work(one.job, one.done_s))
            .sum();
        let of_user = |job: &usize| self.past.who(*job).user == who.user;
        let user_waits = ahead().filter(|job| of_user(job)).count();
        let user_runs = self
            .present
            .running
            .iter()
            .filter(|one| of_user(&one.job))
            .map(|one| jobs[one.job].gpus());
        let mut since_s: Vec<f64> = ahead()
            .map(|job| now_s - jobs[*job].submit.as_secs_f64())
            .collect();
        vec![
            log1(gpus),
            log1(believed_s),
            self.free / all,
            gpus / self.free.max(0.5),
            log1(ahead().count() as f64),
            log1(waiting_gpus / all * 100.0),
            log1(waiting_work / all),
            log1(running_work / all),
            (now_s / HOUR_S) % 24.0,
            (now_s / HOUR_S / 24.0).floor() % 7.0,
            log1(self.past.recent_wait_s(None)),
            log1(self.past.recent_wait_s(Some(who.size))),
            log1(user_waits as f64),
            log1(user_runs.sum()),
            log1(quantile_of(&mut since_s, 0.5)),
        ]
    }
}
