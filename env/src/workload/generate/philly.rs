//! A workload like Microsoft's Philly, for a cluster of any size.
//!
//! Jobs come in runs: one user submits several of the same gang size a few seconds apart, with similar run times. A run
//! draws its gang size from Philly's mix, its tenant from that tenant's share of such gangs, and its run times from
//! Philly's quantiles for the gang size. Starts of runs follow the hour, the weekday and a wandering rate.

use pleach_scheduler::ids::Time;
use pleach_scheduler::spec::{ClusterSpec, LocalityFactors, ModelClass, Resources, TenantSpec};
use rand::Rng;
use serde::{Deserialize, Serialize};

use super::arrivals::{Rate, Shape, fit_span};
use super::philly_mix::{Mix, Run};
use super::philly_tables::{HOURS, RUN_GAPS_S, TENANTS, WEEKDAYS};
use super::{limits, require, require_common, span_for, unit};
use crate::error::Error;
use crate::seed::Seed;
use crate::workload::import::share_out;
use crate::workload::{JobSpec, RUN_TIME_S_MAX, Workload};

/// Parameters of `philly-like`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PhillyLikeConfig {
    /// Jobs to draw, 1 to 10,000,000.
    pub num_jobs: usize,
    /// Nodes, 1 to 100,000. Philly had about 311 nodes' worth of eight GPUs.
    pub num_nodes: u32,
    /// GPUs in each node, 1 to 64.
    pub gpus_per_node: u32,
    /// Nodes in each rack, 1 or more.
    pub nodes_per_rack: u32,
    /// Work over capacity between the first and the last arrival, 0.001 to 100. Philly offered 0.64.
    pub load: f64,
    /// Tenants, 1 to 11, largest first.
    pub num_tenants: usize,
    /// Whether tenants may use more than their quota while others leave GPUs idle.
    pub borrowing: bool,
    /// Largest gang; larger ones are drawn again. The cluster's size where absent.
    pub gang_max: Option<u32>,
    /// Longest run time, s, at least 60: the distribution is cut there, without a pile-up. The default keeps all of it.
    pub run_time_s_max: f64,
    /// Longest run of one user's jobs; never more than a tenth of the jobs.
    pub run_length_max: u32,
    /// Whether the arrival rate follows the hour and the weekday.
    pub daily_profile: bool,
    /// Whether jobs come in runs and the rate wanders; false gives one Poisson arrival per job.
    pub bursty: bool,
    /// Whether jobs carry a time limit.
    pub user_limits: bool,
    /// What a loose placement costs.
    pub locality: LocalityFactors,
}

impl Default for PhillyLikeConfig {
    fn default() -> PhillyLikeConfig {
        PhillyLikeConfig {
            num_jobs: 1000,
            num_nodes: 16,
            gpus_per_node: 8,
            nodes_per_rack: 8,
            load: 0.8,
            num_tenants: 5,
            borrowing: true,
            gang_max: None,
            run_time_s_max: 5_184_000.0,
            run_length_max: 380,
            daily_profile: true,
            bursty: true,
            user_limits: true,
            locality: LocalityFactors::PHILLY,
        }
    }
}

/// Spread and hourly correlation of the wandering rate, set so that the hourly counts of a Philly-sized workload have
/// the trace's variance over mean (149) and lag-1 correlation (0.42).
const RATE_SIGMA: f64 = 1.3;
const RATE_CORRELATION: f64 = 0.2;

impl PhillyLikeConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        require_common(self.num_jobs, self.load)?;
        let nodes = self.num_nodes;
        require("num_nodes", nodes, (1..=100_000).contains(&nodes), "1 to 100,000")?;
        let gpus = self.gpus_per_node;
        require("gpus_per_node", gpus, (1..=64).contains(&gpus), "1 to 64")?;
        require(
            "nodes_per_rack",
            self.nodes_per_rack,
            self.nodes_per_rack > 0,
            "1 or more",
        )?;
        let tenants = self.num_tenants;
        require(
            "num_tenants",
            tenants,
            (1..=TENANTS.len()).contains(&tenants),
            "1 to 11",
        )?;
        require("gang_max", 0, self.gang_max != Some(0), "1 or more")?;
        let (longest, cut) = (
            self.run_time_s_max,
            (60.0..=RUN_TIME_S_MAX).contains(&self.run_time_s_max),
        );
        require("run_time_s_max", longest, cut, "60 to 1e9")?;
        let length = self.run_length_max;
        require("run_length_max", length, length > 0, "1 or more")?;
        let class = class(self.locality);
        ClusterSpec::uniform(1, 1, 1).validate_class(&class)?;
        Ok(())
    }

    fn cluster(&self) -> ClusterSpec {
        let mut cluster = ClusterSpec::uniform(self.num_nodes, self.gpus_per_node, self.nodes_per_rack);
        let nodes: Vec<f64> = TENANTS[..self.num_tenants]
            .iter()
            .map(|tenant| tenant.nodes.into())
            .collect();
        let quotas = share_out(&nodes, self.num_nodes * self.gpus_per_node);
        let named = quotas.into_iter().enumerate();
        cluster.tenants = named
            .map(|(index, quota_gpus)| TenantSpec {
                name: format!("tenant-{}", index + 1),
                quota_gpus,
            })
            .collect();
        cluster.borrowing = self.borrowing;
        cluster
    }
}

fn class(locality: LocalityFactors) -> ModelClass {
    ModelClass {
        name: "any".into(),
        speed: vec![1.0],
        locality,
        ..ModelClass::default()
    }
}

pub(super) fn generate(config: &PhillyLikeConfig, seed: Seed) -> Result<Workload, Error> {
    let cluster = config.cluster();
    let mix = Mix::new(config, &cluster);
    let mut rng = seed.stream("jobs", 0);
    let mut runs = Vec::new();
    let mut left = config.num_jobs;
    while left > 0 {
        let run = mix.draw(left, &mut rng);
        left -= run.run_times_s.len();
        runs.push(run);
    }
    let work = |run: &Run| f64::from(run.gang) * run.run_times_s.iter().sum::<f64>();
    let demand_gpu_s: f64 = runs.iter().map(work).sum();
    let span_s = span_for(demand_gpu_s, config.load, cluster.num_gpus() as f64)?;
    let times = arrival_times(config, &runs, span_s, seed);

    let mut order: Vec<(usize, usize)> = Vec::with_capacity(config.num_jobs);
    for (index, run) in runs.iter().enumerate() {
        order.extend((0..run.run_times_s.len()).map(|member| (index, member)));
    }
    let mut sorted: Vec<(f64, (usize, usize))> = times.into_iter().zip(order).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut clock: Vec<f64> = sorted.iter().map(|(time, _)| *time).collect();
    fit_span(&mut clock, span_s);
    let jobs =
        clock
            .into_iter()
            .zip(sorted)
            .enumerate()
            .map(|(position, (submit_s, (_, (index, member))))| {
                let run = &runs[index];
                let run_time_s = run.run_times_s[member];
                JobSpec {
                    id: position.to_string(),
                    submit: Time::from_secs_f64(submit_s),
                    num_gpus: run.gang,
                    run_time_s,
                    estimate_s: config
                        .user_limits
                        .then(|| limits::limit_s(run_time_s, run.limit_factor)),
                    tenant: run.tenant as u16,
                    class: 0,
                    user: Some(format!("user-{}-{}", run.tenant + 1, run.user + 1)),
                    outcome: run.outcomes[member],
                    resources: Resources::WHOLE_GPU,
                }
            });
    Ok(Workload {
        name: "philly-like".into(),
        classes: vec![class(config.locality)],
        jobs: jobs.collect(),
        cluster,
    })
}

/// One time per job, run by run, not yet sorted.
fn arrival_times(config: &PhillyLikeConfig, runs: &[Run], span_s: f64, seed: Seed) -> Vec<f64> {
    let mut rng = seed.stream("arrivals", 0);
    let shape = Shape {
        profile: config.daily_profile.then_some((&HOURS, &WEEKDAYS)),
        sigma: if config.bursty { RATE_SIGMA } else { 0.0 },
        correlation: RATE_CORRELATION,
    };
    let rate = Rate::new(span_s, &shape, &mut rng);
    let mut starts = rate.draw(runs.len(), &mut rng);
    // The k-th start need not belong to the k-th run drawn; runs are independent, so any pairing will do.
    let mut times = Vec::with_capacity(config.num_jobs);
    for (run, start) in runs.iter().zip(starts.drain(..)) {
        let mut time = start;
        for _ in 0..run.run_times_s.len() {
            times.push(time);
            time += gap_s(&mut rng);
        }
    }
    times
}

fn gap_s(rng: &mut impl Rng) -> f64 {
    let share = unit(rng);
    let found = RUN_GAPS_S.iter().find(|(up_to, _)| share < *up_to);
    found.map_or(0.0, |(_, gap)| *gap)
}

#[cfg(test)]
#[path = "philly_tests.rs"]
mod tests;
