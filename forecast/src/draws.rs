//! Courses of things that are as likely as each other: run times given age, arrivals of the same hour of other weeks.

use std::collections::BTreeMap;

use pleach_env::Seed;
use pleach_env::workload::normal::{normal_cdf, standard_normal};
use pleach_scheduler::Time;
use rand::{Rng, RngExt as _};

use crate::past::{Past, Runs, Who};
use crate::record::Present;
use crate::replay::{Coming, Drawn, Site};

/// Correlation of the normal numbers behind the run times of one user's jobs. *Tried*: on four lists it widens intervals to where
/// they hold better than with independent draws.
const WITHIN_USER: f64 = 0.5;
/// Jobs that come in a replay, at most, and hours for which they are drawn. *Ours*.
const COMING_MAX: usize = 300;
const HOURS_MAX: i64 = 14 * 24;
const HOUR: Time = Time(3_600_000_000);
const DAY: i64 = 24;
const WEEK: i64 = 7 * DAY;

/// Draws courses at an instant.
pub struct Draws<'a> {
    site: &'a Site<'a>,
    past: &'a Past,
    at: Time,
    /// What may be of the run times of what runs, then of what waits.
    present: Vec<(u32, Runs<'a>)>,
    /// Jobs of the list that have come, in its order.
    num_come: usize,
}

impl<'a> Draws<'a> {
    /// At an instant with what runs and waits then.
    #[must_use]
    pub fn at(site: &'a Site<'a>, past: &'a Past, present: &Present) -> Draws<'a> {
        let of = |job: usize, age_s: f64| {
            let who = past.who(job);
            (who.user, past.runs(who, age_s))
        };
        let running = present.running.iter().map(|one| of(one.job, one.done_s));
        let waiting = present.waiting.iter().map(|job| of(*job, 0.0));
        Draws {
            site,
            past,
            at: present.at,
            present: running.chain(waiting).collect(),
            num_come: site.workload.jobs.partition_point(|job| job.submit <= present.at),
        }
    }

    /// Course number `replay` for so many seconds; a longer one begins like a shorter one. An asked job comes at the instant; its
    /// run time is that of jobs like it.
    #[must_use]
    pub fn draw(
        &self,
        seed: Seed,
        replay: u64,
        asked: Option<(&Coming<'a>, Who)>,
        within_s: f64,
    ) -> Drawn<'a> {
        let mut rng = seed.stream("forecast", replay);
        let mut of_users = BTreeMap::new();
        let mut part = |rng: &mut dyn Rng, user: u32| {
            let common = *of_users.entry(user).or_insert_with(|| standard_normal(rng));
            let own = standard_normal(rng);
            normal_cdf(WITHIN_USER.sqrt() * common + (1.0 - WITHIN_USER).sqrt() * own)
        };
        let runs = self.present.iter();
        let runs_s = runs.map(|(user, runs)| runs.at(part(&mut rng, *user))).collect();
        let asked = asked.map(|(job, who)| {
            // Of a stream of its own: alternatives meet the same course.
            let mut own = seed.stream("asked", replay);
            let run_s = self.past.runs(who, 0.0).at(part(&mut own, who.user));
            Coming { run_s, ..job.clone() }
        });
        let mut coming: Vec<Coming<'a>> = asked.into_iter().collect();
        // Each hour to come is the same hour of a week before; of a day, or any hour, before, where the list is younger.
        let jobs = &self.site.workload.jobs[..self.num_come];
        let first = jobs.first().map_or(self.at, |job| job.submit);
        let hours_known = (self.at - first).0 / HOUR.0;
        let period = [WEEK, DAY, 1].into_iter().find(|period| hours_known >= *period);
        let hours = ((within_s / 3600.0).ceil() as i64).min(HOURS_MAX);
        for hour in 0..period.map_or(0, |_| hours) {
            let period = period.unwrap_or(1);
            // Periods back from the hour to come, so far that it is over and not so far that the list has not begun.
            let (least, most) = (hour / period + 1, (hours_known + hour) / period);
            let shift = Time(rng.random_range(least..=most.max(least)) * period * HOUR.0);
            let from = self.at + Time(hour * HOUR.0) - shift;
            let begin = jobs.partition_point(|job| job.submit <= from);
            let come = jobs[begin..].iter().take_while(|job| job.submit <= from + HOUR);
            for (number, job) in (begin..).zip(come) {
                let who = self.past.who(number);
                let run_s = self.past.runs(who, 0.0).at(part(&mut rng, who.user));
                coming.push(self.site.coming(number, job.submit + shift, run_s));
            }
            if coming.len() > COMING_MAX {
                break;
            }
        }
        Drawn { runs_s, coming }
    }

    /// What really came and how long everything really ran, as the list knows afterwards.
    #[must_use]
    pub fn truth(site: &Site<'a>, present: &Present) -> Drawn<'a> {
        let jobs = &site.workload.jobs;
        let run_s = |job: usize| jobs[job].run_time_s;
        let of = present
            .running
            .iter()
            .map(|one| one.job)
            .chain(present.waiting.iter().copied());
        let after = jobs.partition_point(|job| job.submit <= present.at);
        Drawn {
            runs_s: of.map(run_s).collect(),
            coming: (after..jobs.len())
                .map(|job| site.coming(job, jobs[job].submit, run_s(job)))
                .collect(),
        }
    }
}
