//! What runs of jobs are drawn from: kinds of jobs, the tenants and users that submit them, how many come in a row.
//!
//! A kind fixes what a job asks for (gang, share of a GPU, CPU, memory, model class) and the law of its run time and
//! end. A run is a row of jobs of one kind by one user, with similar run times.

use std::borrow::Cow;

use pleach_scheduler::cluster_spec::Resources;
use pleach_scheduler::portable_math::{ln, pow};
use rand::Rng;
use serde::Deserialize;

use super::outcomes::Outcomes;
use super::quantiles::Curve;
use super::{limits, pick, unit};
use crate::Outcome;
use crate::normal::normal_cdf;
use crate::normal::standard_normal;

/// Jobs of one kind ask for the same and follow the same laws.
#[derive(Clone, Debug)]
pub(super) struct Kind<'a> {
    /// Relative number of jobs; 0 = never drawn.
    pub jobs: f64,
    pub num_gpus: u32,
    pub resources: Resources,
    /// Index into the workload's classes.
    pub class: u16,
    pub run_times: Cow<'a, Curve>,
    pub outcomes: Outcomes<'a>,
    pub lengths: &'a Lengths,
    /// Relative number of jobs by tenant. `[num_tenants]`
    pub tenants: Vec<f64>,
}

/// How many jobs of one kind a user submits in a row.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Lengths {
    /// One at a time.
    #[serde(skip)]
    One,
    /// (length, share of runs of at most this length), rising to 1; uniform between entries.
    Table(Vec<(u32, f64)>),
    /// Geometric with this mean, above 1.
    Geometric(f64),
}

impl Lengths {
    /// Whether it is a mean above 1, or lengths and shares that rise, the latter to 1.
    pub(super) fn is_right(&self) -> bool {
        match self {
            Lengths::One => true,
            Lengths::Geometric(mean) => (1.001..=1e6).contains(mean),
            Lengths::Table(rows) => {
                let rises = |pair: &[(u32, f64)]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
                let ends = (rows.first(), rows.last());
                matches!(ends, (Some(first), Some(last)) if first.0 > 0 && first.1 > 0.0 && last.1 == 1.0 && last.0 <= 1 << 16)
                    && rows.windows(2).all(rises)
            }
        }
    }

    fn draw(&self, rng: &mut impl Rng) -> usize {
        match self {
            Lengths::One => 1,
            Lengths::Geometric(mean) => {
                let again = 1.0 - 1.0 / mean;
                1 + (ln(1.0 - unit(rng)) / ln(again)) as usize
            }
            Lengths::Table(rows) => {
                let share = unit(rng);
                let (mut shorter, mut below) = (0, 0.0);
                for &(length, up_to) in rows {
                    if share < up_to {
                        let part = (share - below) / (up_to - below);
                        return shorter as usize + 1 + (part * f64::from(length - shorter)) as usize;
                    }
                    (shorter, below) = (length, up_to);
                }
                shorter as usize
            }
        }
    }

    /// Mean length when runs are cut at `length_max`; a geometric one, being short, as if it were never cut.
    pub(super) fn mean(&self, length_max: usize) -> f64 {
        match self {
            Lengths::One => 1.0,
            Lengths::Geometric(mean) => *mean,
            Lengths::Table(rows) => {
                let (mut mean, mut shorter, mut below) = (0.0, 0, 0.0);
                for &(length, up_to) in rows {
                    let share = (up_to - below) / f64::from(length - shorter);
                    mean += (shorter + 1..=length)
                        .map(|length| share * (length as usize).min(length_max) as f64)
                        .sum::<f64>();
                    (shorter, below) = (length, up_to);
                }
                mean
            }
        }
    }
}

/// What holds for all kinds of a preset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    /// Users in each tenant, 0 where the source names none, and the exponent of the Zipf law of their activity.
    pub users: (usize, f64),
    /// Correlation of the normal scores of neighbouring run times in a run, [0, 1).
    pub run_time_correlation: f64,
    /// Longest run, jobs.
    pub length_max: usize,
    /// Longest run time, s: the distributions are cut there, without a pile-up.
    pub run_time_s_max: f64,
}

/// Jobs of one user that come together.
pub(super) struct Run {
    /// Index into [`Mix::kinds`].
    pub kind: usize,
    pub tenant: usize,
    pub user: Option<usize>,
    pub run_times_s: Vec<f64>,
    pub outcomes: Vec<Outcome>,
    pub limit_factor: f64,
}

/// What runs are drawn from.
pub(super) struct Mix<'a> {
    pub kinds: Vec<Kind<'a>>,
    /// Relative number of runs. `[kind]`
    pub(super) weights: Vec<f64>,
    /// Share of the run-time distribution that is kept. `[kind]`
    pub(super) kept: Vec<f64>,
    user_weights: Vec<f64>,
    habits: Habits,
}

impl<'a> Mix<'a> {
    pub(super) fn new(kinds: Vec<Kind<'a>>, habits: Habits) -> Mix<'a> {
        let (num_users, exponent) = habits.users;
        Mix {
            weights: kinds
                .iter()
                .map(|kind| kind.jobs / kind.lengths.mean(habits.length_max))
                .collect(),
            kept: kinds
                .iter()
                .map(|kind| kind.run_times.share_below(habits.run_time_s_max))
                .collect(),
            user_weights: (1..=num_users).map(|rank| pow(rank as f64, -exponent)).collect(),
            kinds,
            habits,
        }
    }

    /// Draws runs until there are `num_jobs` jobs.
    pub(super) fn draw_all(&self, num_jobs: usize, rng: &mut impl Rng) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut left = num_jobs;
        while left > 0 {
            let kind = pick(&self.weights, rng);
            let run = self.draw(kind, left, rng);
            left -= run.run_times_s.len();
            runs.push(run);
        }
        runs
    }

    /// A run of a kind, of that many jobs at most.
    pub(super) fn draw(&self, index: usize, most: usize, rng: &mut impl Rng) -> Run {
        let kind = &self.kinds[index];
        let tenant = pick(&kind.tenants, rng);
        let user = (!self.user_weights.is_empty()).then(|| pick(&self.user_weights, rng));
        let length = kind.lengths.draw(rng).min(self.habits.length_max).min(most);
        let mut z = standard_normal(rng);
        let (mut run_times_s, mut outcomes) = (Vec::with_capacity(length), Vec::with_capacity(length));
        let correlation = self.habits.run_time_correlation;
        for _ in 0..length {
            let level = normal_cdf(z) * self.kept[index];
            run_times_s.push(kind.run_times.run_time_s(level));
            outcomes.push(kind.outcomes.draw(level, rng));
            let step = standard_normal(rng);
            z = correlation * z + (1.0 - correlation.powi(2)).sqrt() * step;
        }
        Run {
            kind: index,
            tenant,
            user,
            run_times_s,
            outcomes,
            limit_factor: limits::draw_factor(rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    #[test]
    fn run_lengths_have_the_mean_that_is_promised() {
        // Half of the runs one job, half two to five evenly: mean (1 + 3.5) / 2 = 2.25; cut at 3: (1 + 2.75) / 2.
        let table = Lengths::Table(vec![(1, 0.5), (5, 1.0)]);
        assert!((table.mean(100) - 2.25).abs() < 1e-12);
        assert!((table.mean(3) - 1.875).abs() < 1e-12);
        let mut rng = Seed(4).stream("test", 0);
        for lengths in [table, Lengths::Geometric(3.0), Lengths::One] {
            let sum: usize = (0..40_000).map(|_| lengths.draw(&mut rng)).sum();
            let found = sum as f64 / 40_000.0;
            assert!((found / lengths.mean(100_000) - 1.0).abs() < 0.03, "{found}");
        }
    }
}
