//! Sia: each round an integer programme gives every job one configuration, a number of GPUs of a type that is a part of a
//! node or whole nodes.
//!
//! ```text
//! max  sum over i, j of  A_ij G_ij^p + lambda (1 - sum over j of A_ij)        (p < 0: min)
//! s.t. sum over j of A_ij <= 1;  for each type, sum of GPUs <= capacity;  A binary
//! ```
//!
//! `G_ij` is the goodput of job i in configuration j over the least of its row, times the fewest GPUs on which the job runs.
//! A running job that changes its configuration pays the restart factor `(T - N S) / (T + S)` on it: age T, N restarts of
//! S each so far. New jobs start on the fewest GPUs and at most double in a round.
//!
//! # Source
//! Jayaram Subramanya et al., SOSP'23, sections 3.3 to 3.5; p = -0.5, lambda = 1.1, rounds of 60 s as in all its experiments.
//!
//! # Deviations
//! - The programme is solved as the knapsack that it is (each job weighed against not running), exactly by a dynamic
//!   programme while its table is small: 160 jobs on 24, 24 and 16 GPUs of three types are. Beyond 4 million entries or
//!   a billion comparisons it goes to the solver as it is written, to within a thousandth or 200 nodes, and beyond 20,000
//!   terms it is solved greedily by the gain for each further GPU, which is no optimum.
//! - Goodputs are the scheduler's profile of the class; they are not learned from one-GPU runs.
//! - The restart factor is held above 0.01, so that an old job with many restarts is still comparable; it does not concern
//!   jobs that wait, which pay the same in every configuration.
//! - Rigid jobs have one configuration for each type, their gang. What fits nowhere after the placement is started small if
//!   there is room, so no job waits beside idle GPUs on which it could run.

mod configurations;
mod place;

use configurations::{Configuration, configurations};
use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::{ConfigError, GpuTypeId, JobId, Planner, PolicyError, Time};
use serde::{Deserialize, Serialize};

use super::field::Field;
use super::knapsack::{Choice, choose};
use super::scaling::{Paces, Scaling, all_rigid};
use crate::shared::settings::check;
use crate::shared::timer::RoundTimer;
use pleach_scheduler::portable_math::pow;

/// Settings of [`Sia`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiaConfig {
    /// Power of the goodputs, -10 to 10 but 0; below 0 the sum is made small.
    pub fairness_power: f64,
    /// What a job without GPUs counts, 0 to 1e6.
    pub idle_weight: f64,
    /// Length of a round, s, 1 to 1e6.
    pub round_s: f64,
    /// Factor by which a job's GPUs may grow from round to round, 2 to 1000.
    pub growth: u32,
    /// What a restart counts, s, 0 to 1e6; none = what it costs here.
    pub restart_s: Option<f64>,
}

impl Default for SiaConfig {
    fn default() -> SiaConfig {
        SiaConfig {
            fairness_power: -0.5,
            idle_weight: 1.1,
            round_s: 60.0,
            growth: 2,
            restart_s: None,
        }
    }
}

impl SiaConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        let name = "sia";
        let power = self.fairness_power;
        let ok = power != 0.0 && (-10.0..=10.0).contains(&power);
        check(name, "fairness_power", power, ok, "-10 to 10, not 0")?;
        let weight = self.idle_weight;
        check(
            name,
            "idle_weight",
            weight,
            (0.0..=1e6).contains(&weight),
            "0 to 1e6",
        )?;
        let round_s = self.round_s;
        check(
            name,
            "round_s",
            round_s,
            (1.0..=1e6).contains(&round_s),
            "1 to 1e6",
        )?;
        let growth = self.growth;
        check(name, "growth", growth, (2..=1000).contains(&growth), "2 to 1000")?;
        let restart_s = self.restart_s.unwrap_or(0.0);
        let ok = (0.0..=1e6).contains(&restart_s);
        check(name, "restart_s", restart_s, ok, "0 to 1e6, or left out")
    }
}

/// The least restart factor.
const FACTOR_MIN: f64 = 0.01;

/// The planner.
#[derive(Clone, Debug)]
pub struct Sia {
    config: SiaConfig,
    timer: RoundTimer,
    paces: Paces,
    /// GPUs that each job last held; 0 before its first start. `[job]`
    last_held: Vec<u32>,
}

impl Sia {
    /// From its settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: SiaConfig) -> Result<Sia, ConfigError> {
        config.validate()?;
        Ok(Sia {
            timer: RoundTimer::new(Time::from_secs_f64(config.round_s)),
            config,
            paces: Paces::default(),
            last_held: Vec::new(),
        })
    }

    fn restart_cost_s(&self, cluster: &Cluster, id: JobId) -> f64 {
        let here_s = || cluster.restart_cost_s(id);
        self.config.restart_s.unwrap_or_else(here_s)
    }

    /// What a configuration other than its own costs a running job, as a factor on its goodput.
    fn restart_factor(&self, cluster: &Cluster, job: &Scaling) -> f64 {
        if job.held.is_none() {
            return 1.0;
        }
        let row = cluster.job(job.id);
        let age_s = (cluster.now() - row.submit).as_secs_f64();
        let each_s = self.restart_cost_s(cluster, job.id);
        if each_s == 0.0 {
            return 1.0;
        }
        let paid_s = f64::from(row.num_preemptions) * each_s;
        ((age_s - paid_s) / (age_s + each_s)).max(FACTOR_MIN)
    }

    /// The row of a job: each configuration, and what it is worth beyond not running.
    fn row(
        &self,
        cluster: &Cluster,
        job: &Scaling,
        configurations: &[Configuration],
    ) -> Vec<(Configuration, f64)> {
        let last = self.last_held[job.id.index()].max(job.held.map_or(0, |(_, gpus)| gpus));
        let limit = last.saturating_mul(self.config.growth).max(job.least);
        let goodput = |at: &Configuration| job.rate_tight(at.kind, at.num_gpus);
        let mut row: Vec<(Configuration, f64)> = if job.is_rigid() {
            let kinds = job.types().into_iter();
            let gangs = kinds.map(|kind| Configuration {
                kind,
                num_gpus: job.asked,
            });
            gangs.map(|gang| (gang, goodput(&gang))).collect()
        } else {
            let all = configurations.iter();
            let open = all.filter(|at| (job.least..=limit.min(job.most)).contains(&at.num_gpus));
            open.map(|at| (*at, goodput(at))).collect()
        };
        row.retain(|(_, goodput)| *goodput > 0.0);
        let least = row
            .iter()
            .map(|(_, goodput)| *goodput)
            .fold(f64::INFINITY, f64::min);
        let factor = self.restart_factor(cluster, job);
        let (power, idle) = (self.config.fairness_power, self.config.idle_weight);
        for (at, goodput) in &mut row {
            let mut normal = *goodput / least * f64::from(job.least);
            if job.held != Some((at.kind, at.num_gpus)) {
                normal *= factor;
            }
            // The sum is made small where the power is below 0, else large; either way more is better here.
            let sum = pow(normal, power);
            *goodput = if power < 0.0 { idle - sum } else { sum - idle };
        }
        row
    }
}

impl Planner for Sia {
    fn name(&self) -> &str {
        "sia"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        if !self.timer.begins(cluster) {
            return Ok(());
        }
        self.last_held.resize(cluster.jobs().len(), 0);
        let mut field = Field::open(cluster);
        let scalings = self.paces.scalings(cluster, &field.jobs);
        let capacity = field.capacity(cluster);
        let configurations = configurations(cluster, &capacity);
        let rows: Vec<Vec<(Configuration, f64)>> = scalings
            .iter()
            .map(|job| self.row(cluster, job, &configurations))
            .collect();
        let choice = |(at, value): &(Configuration, f64)| Choice {
            kind: at.kind.index(),
            num_gpus: at.num_gpus,
            value: *value,
        };
        let items: Vec<Vec<Choice>> = rows.iter().map(|row| row.iter().map(choice).collect()).collect();
        let chosen = choose(&items, &capacity);
        let wants: Vec<(&Scaling, GpuTypeId, u32)> = scalings
            .iter()
            .zip(&rows)
            .zip(chosen)
            .filter_map(|((job, row), at)| at.map(|at| (job, row[at].0.kind, row[at].0.num_gpus)))
            .collect();
        place::place(cluster, &mut field, &wants);
        field.start_left_over(cluster, &scalings);
        field.close(cluster);
        for id in cluster.running() {
            self.last_held[id.index()] = cluster.job(id).num_held;
        }
        // Elastic jobs change as they progress, and the ages of jobs decide where they have a choice that costs a restart.
        let has_choice = cluster.num_types() > 1;
        let costs = |id: JobId| has_choice && self.restart_cost_s(cluster, id) > 0.0;
        let is_timeless = all_rigid(cluster) && !cluster.running().any(costs);
        self.timer.settle(cluster, is_timeless);
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        self.timer.wake_at(cluster)
    }

    fn rests(&self) -> bool {
        self.timer.rests()
    }
}

#[cfg(test)]
mod tests;
