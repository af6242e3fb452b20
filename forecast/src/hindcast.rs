//! Forecasts of jobs that came, each with what was known when it came and no more, and what became of them.

use std::collections::BTreeMap;

use pleach_env::workload::Workload;
use pleach_env::{Error, Seed, SimConfig};
use pleach_policies::PolicySpec;
use pleach_scheduler::{Estimate, Time};

use crate::case::{Bare, SHORT_S, Scene, Subject};
use crate::learn::{Case, Learner, Method};
use crate::past::Past;
use crate::record::{Change, Event, Present, Record, events};
use crate::replay::Site;

/// A list with the policy under which it is replayed.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The list, with what was observed.
    pub workload: &'a Workload,
    /// What the cluster can do, and what the policy believes.
    pub sim: &'a SimConfig,
    /// The policy.
    pub policy: &'a PolicySpec,
    /// Replays of a forecast.
    pub num_replays: u64,
    /// Root of all draws.
    pub seed: Seed,
    /// The method that answers; none: what the forecasts speak for.
    pub method: Option<Method>,
}

/// The record at an instant with all that was known and learned then.
pub struct Now<'a> {
    record: Record<'a>,
    /// What has ended and begun.
    pub past: Past,
    /// What was learned.
    pub learner: Learner,
    /// When.
    pub at: Time,
}

impl Now<'_> {
    /// What runs and waits.
    #[must_use]
    pub fn present(&self) -> Present {
        Present {
            at: self.at,
            ..self.record.present()
        }
    }

    /// GPUs that are free.
    #[must_use]
    pub fn free(&self) -> f64 {
        f64::from(self.record.cluster.num_free())
    }

    /// What is believed of each job's run time, s.
    #[must_use]
    pub fn estimates(&self) -> &[Estimate] {
        &self.record.estimates
    }
}

/// Sees a forecast with the queue and what was learned then.
pub type See<'a> = &'a mut dyn FnMut(&Scene<'_>, &Learner, &Case) -> Result<(), Error>;

/// The wait of a job of the list as it was recorded, s; up to a minute counts as none.
#[must_use]
pub fn wait_of(workload: &Workload, job: usize) -> Option<f64> {
    let spec = &workload.jobs[job];
    let wait_s = (spec.observed.as_deref()?.start - spec.submit).as_secs_f64();
    Some(if wait_s <= SHORT_S { 0.0 } else { wait_s })
}

impl<'a> Asked<'a> {
    /// Plays the record until an instant, and forecasts on the way each job of which `is_taken`, in the order in which they came.
    ///
    /// # Errors
    /// A cluster that cannot be made, a policy that cannot decide.
    pub fn until(&self, at: Time, is_taken: impl Fn(usize) -> bool) -> Result<Now<'a>, Error> {
        self.until_seen(at, is_taken, &mut |_, _, _| Ok(()))
    }

    /// Shows the queue of a record as it stands.
    pub fn look<R>(&self, now: &Now<'_>, see: impl FnOnce(&Scene<'_>) -> R) -> R {
        let present = now.present();
        let site = Site {
            workload: self.workload,
            sim: self.sim,
            policy: self.policy,
            estimates: now.estimates(),
        };
        see(&Scene {
            site: &site,
            past: &now.past,
            present: &present,
            free: now.free(),
        })
    }

    /// The same, and shows each forecast with the queue and what was learned when its job came.
    ///
    /// # Errors
    /// As [`Asked::until`]; what `see` refuses.
    pub fn until_seen(
        &self,
        at: Time,
        is_taken: impl Fn(usize) -> bool,
        see: See<'_>,
    ) -> Result<Now<'a>, Error> {
        let mut now = Now {
            record: Record::of(self.workload, self.sim)?,
            past: Past::of(self.workload),
            learner: Learner::default(),
            at: Time::ZERO,
        };
        let events = events(self.workload, self.sim);
        for group in events.chunk_by(|one, next| (one.0, one.1) == (next.0, next.1)) {
            let (time, kind, _) = group[0];
            if time > at {
                break;
            }
            now.at = time;
            now.record.change(group);
            match kind {
                Change::Comes => self.forecast(&mut now, group, &is_taken, see)?,
                Change::Starts => {
                    for (_, _, job) in group {
                        now.past.began(*job, wait_of(self.workload, *job).unwrap_or(0.0));
                    }
                }
                Change::Ends => {
                    for (_, _, job) in group {
                        now.past.ended(*job, self.workload.jobs[*job].run_time_s);
                    }
                }
            }
        }
        now.at = at;
        now.record.cluster.advance(at.max(now.record.cluster.now()));
        now.learner.refit(at.as_secs_f64());
        Ok(now)
    }

    /// Forecasts those that are taken of the jobs that have just come.
    fn forecast(
        &self,
        now: &mut Now<'a>,
        group: &[Event],
        is_taken: &impl Fn(usize) -> bool,
        see: See<'_>,
    ) -> Result<(), Error> {
        let taken: Vec<usize> = group
            .iter()
            .map(|(_, _, job)| *job)
            .filter(|job| is_taken(*job))
            .collect();
        if taken.is_empty() {
            return Ok(());
        }
        let at_s = now.at.as_secs_f64();
        now.learner.refit(at_s);
        let found = self.look(now, |scene| {
            let numbers: BTreeMap<usize, usize> = scene.present.waiting.iter().copied().zip(0..).collect();
            // What the tables have no room for does not wait here.
            let known = taken
                .iter()
                .filter_map(|job| Some((*job, *numbers.get(job)?, wait_of(self.workload, *job)?)));
            let known: Vec<(usize, usize, f64)> = known.collect();
            let subjects: Vec<Subject<'_>> = known.iter().map(|of| Subject::Waits(of.1)).collect();
            let seed = self.seed.child("hindcast", taken[0] as u64);
            let bares = scene.bares(&subjects, self.num_replays, seed)?;
            let of = |((job, _, wait_s), bare): ((usize, usize, f64), Bare)| {
                let (raw, stated) = now.learner.state(&bare);
                Case {
                    job,
                    at_s,
                    raw,
                    stated,
                    method: now.learner.method(self.method),
                    bare,
                    wait_s,
                }
            };
            let found: Vec<Case> = known.into_iter().zip(bares).map(of).collect();
            found.iter().try_for_each(|case| see(scene, &now.learner, case))?;
            Ok::<Vec<Case>, Error>(found)
        })?;
        found.into_iter().for_each(|case| now.learner.add(case));
        Ok(())
    }
}
