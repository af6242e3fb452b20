//! What a `philly-like` run of jobs is drawn from: gang, tenant, user, run times, ends.

use pleach_scheduler::spec::ClusterSpec;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::philly::PhillyLikeConfig;
use super::philly_tables::{
    GANG_RUN_LENGTH_MEAN, GANGS, LEVELS, OUTCOMES, RUN_LENGTHS, RUN_TIME_CORRELATION, RUN_TIMES, TENANTS,
};
use super::{limits, pick, unit};
use crate::workload::Outcome;

/// Users in each tenant (215 users in ten virtual clusters) and how unequal they are.
/// # Source
/// A Zipf law with exponent 1.1 to 1.3 fits the users of Helios; *assumed* for each tenant here.
const NUM_USERS: usize = 20;
const USER_ZIPF: f64 = 1.2;
/// Jobs of one user that come together.
pub(super) struct Run {
    pub gang: u32,
    pub tenant: usize,
    pub user: usize,
    pub run_times_s: Vec<f64>,
    pub outcomes: Vec<Outcome>,
    pub limit_factor: f64,
}

/// What runs are drawn from.
pub(super) struct Mix {
    gangs: Vec<u32>,
    gang_weights: Vec<f64>,
    /// Weight of each tenant for each gang. `[gang][tenant]`
    tenant_weights: Vec<Vec<f64>>,
    user_weights: Vec<f64>,
    /// Share of the run-time distribution that is kept. `[gang]`
    kept: Vec<f64>,
    run_length_max: usize,
    bursty: bool,
}

impl Mix {
    pub(super) fn new(config: &PhillyLikeConfig, cluster: &ClusterSpec) -> Mix {
        let tenants = &cluster.tenants;
        let quota_max = tenants.iter().map(|tenant| tenant.quota_gpus).max().unwrap_or(0);
        let capacity = u32::try_from(cluster.num_gpus()).unwrap_or(u32::MAX);
        let largest = if config.borrowing { capacity } else { quota_max };
        let largest = config.gang_max.map_or(largest, |gang| gang.min(largest)).max(1);
        let length_max = (config.run_length_max as usize).min((config.num_jobs / 10).max(1));
        let gangs: Vec<(u32, u32)> = GANGS.into_iter().filter(|(gang, _)| *gang <= largest).collect();
        let run_length = |gang: u32| {
            if !config.bursty {
                1.0
            } else if gang == 1 {
                mean_run_length(length_max)
            } else {
                GANG_RUN_LENGTH_MEAN
            }
        };
        let tenant_weight = |gang: u32, index: usize| {
            let has_room = config.borrowing || tenants[index].quota_gpus >= gang;
            if has_room {
                f64::from(TENANTS[index].jobs[column_of(gang)])
            } else {
                0.0
            }
        };
        let tenant_weights = gangs.iter().map(|(gang, _)| {
            let mut weights: Vec<f64> = (0..tenants.len())
                .map(|index| tenant_weight(*gang, index))
                .collect();
            if weights.iter().all(|weight| *weight == 0.0) {
                let owner = tenants.iter().position(|tenant| tenant.quota_gpus == quota_max);
                weights[owner.unwrap_or(0)] = 1.0;
            }
            weights
        });
        Mix {
            gang_weights: gangs
                .iter()
                .map(|(gang, jobs)| f64::from(*jobs) / run_length(*gang))
                .collect(),
            tenant_weights: tenant_weights.collect(),
            user_weights: (1..=NUM_USERS)
                .map(|rank| (rank as f64).powf(-USER_ZIPF))
                .collect(),
            kept: gangs
                .iter()
                .map(|(gang, _)| share_below(*gang, config.run_time_s_max))
                .collect(),
            gangs: gangs.into_iter().map(|(gang, _)| gang).collect(),
            run_length_max: length_max,
            bursty: config.bursty,
        }
    }

    pub(super) fn draw(&self, most: usize, rng: &mut impl Rng) -> Run {
        let index = pick(&self.gang_weights, rng);
        let gang = self.gangs[index];
        let tenant = pick(&self.tenant_weights[index], rng);
        let user = pick(&self.user_weights, rng);
        let length = if self.bursty {
            draw_run_length(gang, rng)
        } else {
            1
        };
        let length = length.min(self.run_length_max).min(most);
        let mut z: f64 = StandardNormal.sample(rng);
        let (mut run_times_s, mut outcomes) = (Vec::with_capacity(length), Vec::with_capacity(length));
        for _ in 0..length {
            run_times_s.push(run_time_s(gang, normal_cdf(z) * self.kept[index]));
            outcomes.push(draw_outcome(gang, rng));
            let step: f64 = StandardNormal.sample(rng);
            z = RUN_TIME_CORRELATION * z + (1.0 - RUN_TIME_CORRELATION.powi(2)).sqrt() * step;
        }
        let limit_factor = limits::draw_factor(rng);
        Run {
            gang,
            tenant,
            user,
            run_times_s,
            outcomes,
            limit_factor,
        }
    }
}

/// Column of [`super::philly_tables::Tenant::jobs`].
fn column_of(gang: u32) -> usize {
    match gang {
        0..=1 => 0,
        2..=3 => 1,
        4..=7 => 2,
        8..=15 => 3,
        _ => 4,
    }
}

fn draw_run_length(gang: u32, rng: &mut impl Rng) -> usize {
    let share = unit(rng);
    if gang > 1 {
        // Geometric with the published mean.
        let again = 1.0 - 1.0 / GANG_RUN_LENGTH_MEAN;
        return 1 + ((1.0 - share).ln() / again.ln()) as usize;
    }
    let (mut shorter, mut below) = (0, 0.0);
    for (length, up_to) in RUN_LENGTHS {
        if share < up_to {
            let part = (share - below) / (up_to - below);
            return shorter as usize + 1 + (part * f64::from(length - shorter)) as usize;
        }
        (shorter, below) = (length, up_to);
    }
    shorter as usize
}

/// Mean length of runs of single GPUs when they are cut at `length_max`.
pub(super) fn mean_run_length(length_max: usize) -> f64 {
    let (mut mean, mut shorter, mut below) = (0.0, 0, 0.0);
    for (length, up_to) in RUN_LENGTHS {
        let share = (up_to - below) / f64::from(length - shorter);
        mean += (shorter + 1..=length)
            .map(|length| share * (length as usize).min(length_max) as f64)
            .sum::<f64>();
        (shorter, below) = (length, up_to);
    }
    mean
}

fn quantiles_s(gang: u32) -> &'static [f64; 58] {
    let row = RUN_TIMES.iter().find(|row| gang <= row.num_gpus_max);
    &row.unwrap_or(&RUN_TIMES[RUN_TIMES.len() - 1]).quantiles_s
}

/// Run time at a level of the distribution: log-linear between the table's quantiles.
pub(super) fn run_time_s(gang: u32, level: f64) -> f64 {
    let quantiles = quantiles_s(gang);
    let above = LEVELS
        .partition_point(|known| *known < level)
        .clamp(1, LEVELS.len() - 1);
    let part = (level - LEVELS[above - 1]) / (LEVELS[above] - LEVELS[above - 1]);
    let (low, high) = (quantiles[above - 1].ln(), quantiles[above].ln());
    (low + part.clamp(0.0, 1.0) * (high - low)).exp()
}

/// Share of run times up to `longest_s`: the inverse of [`run_time_s`].
pub(super) fn share_below(gang: u32, longest_s: f64) -> f64 {
    let quantiles = quantiles_s(gang);
    if longest_s >= quantiles[quantiles.len() - 1] {
        return 1.0;
    }
    let above = quantiles
        .partition_point(|quantile| *quantile <= longest_s)
        .clamp(1, quantiles.len() - 1);
    let (low, high) = (quantiles[above - 1].ln(), quantiles[above].ln());
    let part = ((longest_s.ln() - low) / (high - low)).clamp(0.0, 1.0);
    LEVELS[above - 1] + part * (LEVELS[above] - LEVELS[above - 1])
}

fn draw_outcome(gang: u32, rng: &mut impl Rng) -> Outcome {
    let row = OUTCOMES.iter().find(|row| gang <= row.0);
    let (_, killed, failed) = row.copied().unwrap_or(OUTCOMES[OUTCOMES.len() - 1]);
    let share = unit(rng);
    if share < killed {
        Outcome::Killed
    } else if share < killed + failed {
        Outcome::Failed
    } else {
        Outcome::Completed
    }
}

/// Share of a standard normal below `z`; absolute error below 1e-7 (Abramowitz and Stegun 7.1.26).
pub(super) fn normal_cdf(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let erf = 1.0 - poly * (-x * x).exp();
    if z < 0.0 {
        (1.0 - erf) / 2.0
    } else {
        (1.0 + erf) / 2.0
    }
}
