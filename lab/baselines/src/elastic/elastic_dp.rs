//! Effective elastic scaling: a dynamic programme hands out the GPUs so that the sum of the jobs' speed-ups is largest.
//!
//! ```text
//! F(j, K) = max over k of F(j-1, K-k) + T_j(k)      T_j(k) = best rate on k GPUs over its batches / rate at the least
//! ```
//!
//! Every admitted job gets at least the fewest GPUs on which it runs; where that is too much for the cluster the newest
//! jobs are dropped and wait. The batch goes with the GPUs, in the range in which it does not hurt the accuracy.
//!
//! # Source
//! Saxena et al., "Effective Elastic Scaling of Deep Learning Workloads" (arXiv 2006.13878). The rule is quoted second-hand
//! (the optimiser's recursion and the drop of the newest jobs); the length of a round is *assumed*.
//!
//! # Deviations
//! - Several GPU types: each job belongs to one, that where it runs, else the fastest with room for its least; one programme
//!   is solved for each type.
//! - Rates are goodputs: what a large batch costs in useful work is in them, so no range of harmless batches is asked for.
//! - The programme is solved over the GPUs beyond each job's least, which is the same and has a smaller table.
//! - Between rounds nothing changes, unless nothing runs.

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::{ConfigError, GpuTypeId, Planner, PolicyError, Time};
use serde::{Deserialize, Serialize};

use super::field::Field;
use super::knapsack::{Choice, choose};
use super::scaling::{Paces, Scaling, all_rigid};
use crate::shared::settings::check;
use crate::shared::timer::RoundTimer;

/// Settings of [`ElasticDp`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ElasticDpConfig {
    /// Time between two plans, s, 1 to 1e6. *Assumed.*
    pub round_s: f64,
    /// Most GPUs of one job, at least 1; none = what the job itself allows.
    pub gpus_per_job_max: Option<u32>,
}

impl Default for ElasticDpConfig {
    fn default() -> ElasticDpConfig {
        ElasticDpConfig {
            round_s: 300.0,
            gpus_per_job_max: None,
        }
    }
}

/// The planner.
#[derive(Clone, Debug)]
pub struct ElasticDp {
    config: ElasticDpConfig,
    timer: RoundTimer,
    paces: Paces,
}

impl ElasticDp {
    /// From its settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: ElasticDpConfig) -> Result<ElasticDp, ConfigError> {
        let (name, round_s) = ("elastic-dp", config.round_s);
        check(
            name,
            "round_s",
            round_s,
            (1.0..=1e6).contains(&round_s),
            "1 to 1e6",
        )?;
        let most = config.gpus_per_job_max.unwrap_or(1);
        check(
            name,
            "gpus_per_job_max",
            most,
            most >= 1,
            "1 or more, or left out",
        )?;
        Ok(ElasticDp {
            timer: RoundTimer::new(Time::from_secs_f64(round_s)),
            paces: Paces::default(),
            config,
        })
    }

    /// The jobs that are admitted, each with its type: by arrival, as long as there is room for the least of each.
    fn admit<'a>(
        &self,
        scalings: &'a [Scaling],
        field: &Field,
        left: &mut [u32],
    ) -> Vec<(&'a Scaling, usize)> {
        let mut quota: Vec<(usize, u32)> = Vec::new();
        let mut admitted = Vec::new();
        for job in scalings {
            let at = quota.iter().position(|(tenant, _)| *tenant == job.tenant);
            let at = at.unwrap_or_else(|| {
                quota.push((job.tenant, field.quota_left(job.tenant)));
                quota.len() - 1
            });
            let fits = |kind: &GpuTypeId| left[kind.index()] >= job.least && quota[at].1 >= job.least;
            let own = job.held.map(|(kind, _)| kind).filter(fits);
            if let Some(kind) = own.or_else(|| job.types().into_iter().find(fits)) {
                left[kind.index()] -= job.least;
                quota[at].1 = quota[at].1.saturating_sub(job.least);
                admitted.push((job, kind.index()));
            }
        }
        admitted
    }

    /// What each GPU beyond the least is worth to a job.
    fn choices(&self, job: &Scaling, kind: usize, left: u32) -> Vec<Choice> {
        let type_id = GpuTypeId(kind as u8);
        let least = job.rate_tight(type_id, job.least);
        let most = job.most.min(self.config.gpus_per_job_max.unwrap_or(u32::MAX));
        let further = 1..=most.saturating_sub(job.least).min(left);
        let choices = further.map(|further| Choice {
            kind: 0,
            num_gpus: further,
            value: job.rate_tight(type_id, job.least + further) / least - 1.0,
        });
        choices.filter(|choice| choice.value > 0.0).collect()
    }
}

impl Planner for ElasticDp {
    fn name(&self) -> &str {
        "elastic-dp"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        if !self.timer.begins(cluster) {
            return Ok(());
        }
        let mut field = Field::open(cluster);
        let scalings = self.paces.scalings(cluster, &field.jobs);
        let mut left = field.capacity(cluster);
        let admitted = self.admit(&scalings, &field, &mut left);
        let mut wants = Vec::new();
        for (kind, &left) in left.iter().enumerate() {
            let here: Vec<&Scaling> = admitted
                .iter()
                .filter(|(_, on)| *on == kind)
                .map(|(job, _)| *job)
                .collect();
            let items: Vec<Vec<Choice>> = here.iter().map(|job| self.choices(job, kind, left)).collect();
            let chosen = choose(&items, &[left]);
            for ((job, choices), at) in here.iter().zip(&items).zip(chosen) {
                let further = at.map_or(0, |at| choices[at].num_gpus);
                wants.push((*job, GpuTypeId(kind as u8), job.least + further));
            }
        }
        field.place(cluster, &wants);
        field.start_left_over(cluster, &scalings);
        field.close(cluster);
        // Only the rates of elastic jobs change as they progress.
        self.timer.settle(cluster, all_rigid(cluster));
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
mod tests {
    use super::*;
    use crate::elastic::tests::{elastic_cluster, held_gpus, proportional, saturating, submit_class};
    use pleach_scheduler::JobId;
    use pleach_scheduler::cluster::JobState;
    use pleach_scheduler::physics::goodput::Elastic;
    use proptest::prelude::*;

    fn planner() -> ElasticDp {
        ElasticDp::new(ElasticDpConfig::default()).unwrap()
    }

    #[test]
    fn gpus_go_where_they_speed_a_job_up_and_are_dealt_anew_in_the_next_round() {
        // Classes: 0 is as fast as it has GPUs, 1 gains nothing beyond one. 8 GPUs: 1 for the second, 7 for the first.
        let mut cluster = elastic_cluster(1, 8, &[proportional(16), saturating(16)]);
        let mut planner = planner();
        submit_class(&mut cluster, 0, 1, 1e5);
        submit_class(&mut cluster, 1, 1, 1e5);
        planner.plan(&mut cluster).unwrap();
        assert_eq!(held_gpus(&cluster), [7, 1]);
        // A third job comes: nothing changes before the round is over, then 7 GPUs are worth the same in any split.
        let third = submit_class(&mut cluster, 0, 1, 1e5);
        cluster.advance(Time::from_secs_f64(200.0));
        planner.plan(&mut cluster).unwrap();
        assert_eq!(held_gpus(&cluster), [7, 1, 0]);
        assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(300.0)));
        cluster.advance(Time::from_secs_f64(300.0));
        planner.plan(&mut cluster).unwrap();
        cluster.check();
        let held = held_gpus(&cluster);
        assert_eq!((held[0] + held[2], held[1]), (7, 1));
        assert_eq!(cluster.job(third).state, JobState::Running);
    }

    #[test]
    fn where_not_even_the_least_of_all_fits_the_newest_jobs_wait() {
        // Rigid gangs of 3, 2 and elastic ones on 4 GPUs: 3 + 1; the gang of 2 does not fit behind them.
        let mut cluster = elastic_cluster(1, 4, &[proportional(16)]);
        submit_class(&mut cluster, 1, 3, 1e5);
        submit_class(&mut cluster, 0, 1, 1e5);
        submit_class(&mut cluster, 1, 2, 1e5);
        planner().plan(&mut cluster).unwrap();
        cluster.check();
        assert_eq!(held_gpus(&cluster), [3, 1, 0]);
    }

    /// The best sum of speed-ups over all splits.
    fn best_split(rates: &[Vec<f64>], gpus: usize) -> f64 {
        let Some((first, rest)) = rates.split_first() else {
            return 0.0;
        };
        let room = gpus.saturating_sub(rest.len()).min(first.len());
        let ways = (1..=room).map(|num| first[num - 1] + best_split(rest, gpus - num));
        ways.fold(f64::NEG_INFINITY, f64::max)
    }

    proptest! {
        #[test]
        fn the_sum_of_speed_ups_is_that_of_the_best_of_all_splits(
            which in proptest::collection::vec(0_u16..3, 1..4), node_gpus in 1_u32..5,
        ) {
            let models = ["cifar10", "bert", "yolov3"].map(|name| Elastic::from_name(name).unwrap());
            let mut cluster = elastic_cluster(2, node_gpus, &models);
            for class in &which {
                submit_class(&mut cluster, *class, 1, 1e5);
            }
            let num_gpus = 2 * node_gpus;
            prop_assume!(which.len() <= num_gpus as usize);
            let ids: Vec<JobId> = (0..which.len() as u32).map(JobId).collect();
            let scalings = Paces::default().scalings(&cluster, &ids);
            let kind = GpuTypeId(0);
            let speed_up = |job: &Scaling, gpus: u32| job.rate_tight(kind, gpus) / job.rate_tight(kind, 1);
            let rates: Vec<Vec<f64>> = scalings
                .iter()
                .map(|job| (1..=num_gpus).map(|gpus| speed_up(job, gpus)).collect())
                .collect();
            planner().plan(&mut cluster).unwrap();
            cluster.check();
            let held = held_gpus(&cluster);
            prop_assert!(held.iter().all(|gpus| *gpus > 0));
            let found: f64 = scalings.iter().zip(&held).map(|(job, gpus)| speed_up(job, *gpus)).sum();
            let best = best_split(&rates, num_gpus as usize);
            prop_assert!((found - best).abs() < 1e-9, "{found} of {best}: {held:?}");
        }
    }
}
