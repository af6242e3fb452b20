//! Hadar: in every round the jobs run whose utility exceeds the price of the GPUs that it takes.
//!
//! GPUs have prices that rise as nodes fill. The round goes to the set of jobs with the largest sum of payoffs, found by a
//! dynamic programme over the queue ([`super::dual`]) in which each job takes its best place ([`super::find_alloc`]). The
//! members of one gang may sit on different GPU types; the slowest sets the pace. Chosen jobs run the whole round.
//!
//! # Source
//! Sultana et al., IPDPS'24, and arXiv 2503.10918, from a secondary description: formulas for the prices, the subroutine
//! and the programme are the published family's; details of the paper may differ.
//!
//! # Deviations
//! - Those of the parts. Iterations are counted as seconds of the reference run, not as steps, so that models with short
//!   steps are not preferred.
//! - GPUs that the prices leave idle go to the jobs that still fit, in the order of the queue (`fill_idle`), and so does an
//!   idle cluster in any case.
//! - Jobs that ask for parts of GPUs start where they fit, before the plan.

use pleach_scheduler::cluster::{Cluster, JobState};
use pleach_scheduler::{ActionKind, ConfigError, JobId, Planner, PolicyError, Time};
use serde::{Deserialize, Serialize};

use super::dual::{Limits, Plan, best_plan, queue};
use super::find_alloc::{Rooms, find_alloc};
use super::market::{Market, Stock, nodes_of};
use super::utility::{Prices, Request, Utility, requests};
use crate::shared::allocation::{Allocation, Grant, apply, start_fractions};
use crate::shared::settings::check;
use crate::shared::timer::RoundTimer;
use crate::shared::what_if::is_whole_gpu_job;

/// Settings of [`Hadar`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HadarConfig {
    /// What the schedule is to be good at.
    pub utility: Utility,
    /// Length of a round, s, 1 to 1e9. Published: 360.
    pub round_s: f64,
    /// Scale of the lowest price; larger is cheaper. Above 0. *Assumed.*
    pub eta: f64,
    /// Most plans that the programme carries on, 1 to 1,024. *Ours.*
    pub beam: usize,
    /// Most nodes that a plan looks at; with many jobs and nodes the beam is narrower. *Ours.*
    pub num_looks_max: usize,
    /// Whether GPUs that the prices leave idle are given away. *Ours.*
    pub fill_idle: bool,
}

impl Default for HadarConfig {
    fn default() -> HadarConfig {
        HadarConfig {
            utility: Utility::EffectiveThroughput,
            round_s: 360.0,
            eta: 1.0,
            beam: 64,
            num_looks_max: 1 << 19,
            fill_idle: true,
        }
    }
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Hadar {
    config: HadarConfig,
    timer: RoundTimer,
}

impl Hadar {
    /// From its settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: HadarConfig) -> Result<Hadar, ConfigError> {
        let HadarConfig {
            round_s, eta, beam, ..
        } = config;
        let ok = (1.0..=1e9).contains(&round_s);
        check("hadar", "round_s", round_s, ok, "1 to 1e9 s")?;
        let ok = eta > 0.0 && eta <= 1e9;
        check("hadar", "eta", eta, ok, "above 0, at most 1e9")?;
        check("hadar", "beam", beam, (1..=1024).contains(&beam), "1 to 1024")?;
        Ok(Hadar {
            config,
            timer: RoundTimer::new(Time::from_secs_f64(round_s)),
        })
    }

    fn plan_round(&self, cluster: &Cluster) -> Allocation {
        let moves = cluster.capabilities().can(ActionKind::Preempt);
        let takes_part = |id: JobId| {
            let job = cluster.job(id);
            is_whole_gpu_job(job) && (moves || job.state == JobState::Pending)
        };
        let requests = requests(cluster, self.config.utility, takes_part);
        let prices = Prices::new(cluster, &requests, self.config.eta, self.timer.round());
        let limits = Limits {
            beam: self.config.beam,
            num_looks_max: self.config.num_looks_max,
        };
        let queue = queue(&requests);
        let nodes_of = nodes_of(cluster);
        let market = Market {
            cluster,
            prices: &prices,
            nodes_of: &nodes_of,
        };
        let mut plan = best_plan(market, &requests, &queue, Stock::new(cluster, moves), limits);
        if self.config.fill_idle || plan.picks.is_empty() {
            fill(market, &requests, &queue, &mut plan);
        }
        let grants = plan.picks.into_iter();
        grants
            .map(|(index, offer)| (requests[index].id, Grant::gang(offer.placement)))
            .collect()
    }
}

/// Gives what is left to the jobs that are not chosen, whatever the price.
fn fill(market: Market<'_>, requests: &[Request], queue: &[usize], plan: &mut Plan) {
    let cluster = market.cluster;
    let mut is_chosen = vec![false; requests.len()];
    for (index, _) in &plan.picks {
        is_chosen[*index] = true;
    }
    let mut rooms = Rooms::new();
    for index in queue {
        let request = &requests[*index];
        let fits = plan.stock.num_free >= request.num_gpus
            && plan.stock.has_quota(cluster, request, request.num_gpus);
        if is_chosen[*index] || !fits {
            continue;
        }
        if let Some(offer) = find_alloc(market, &plan.stock, request, &mut rooms) {
            plan.stock.take(cluster, request, &offer.placement);
            plan.picks.push((*index, offer));
        }
    }
}

impl Planner for Hadar {
    fn name(&self) -> &str {
        "hadar"
    }

    fn places_tasks(&self) -> bool {
        false
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        start_fractions(cluster);
        if self.timer.begins(cluster) {
            let allocation = self.plan_round(cluster);
            apply(cluster, &allocation);
        }
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        self.timer.wake_at(cluster)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::{multi_type_cluster, preemptive_cluster, running, submit};

    fn hadar(config: HadarConfig) -> Hadar {
        Hadar::new(config).unwrap()
    }

    fn at(planner: &mut Hadar, cluster: &mut Cluster, now_s: f64) -> Vec<u32> {
        cluster.advance(Time::from_secs_f64(now_s));
        planner.plan(cluster).unwrap();
        cluster.check();
        running(cluster)
    }

    #[test]
    fn a_gang_runs_on_mixed_types_where_no_type_holds_it_beside_others() {
        // A fast and a slow node of 3. Two gangs of 2 leave one GPU of each; the third gang takes both.
        let mut cluster = multi_type_cluster(&[1.0, 2.0], 3);
        for _ in 0..3 {
            submit(&mut cluster, 2, 7200.0);
        }
        let mut planner = hadar(HadarConfig::default());
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0, 1, 2]);
        let num_mixed = (0..3)
            .filter(|id| cluster.job(JobId(*id)).placement.len() == 2)
            .count();
        assert_eq!((num_mixed, cluster.num_free()), (1, 0));
        let mut rates: Vec<f64> = (0..3).map(|id| cluster.job(JobId(id)).rate).collect();
        rates.sort_by(f64::total_cmp);
        assert_eq!(rates, [1.0, 1.0, 2.0]);
    }

    #[test]
    fn chosen_jobs_run_the_whole_round_and_newcomers_wait_for_the_next() {
        let mut cluster = preemptive_cluster(1, 2);
        let mut planner = hadar(HadarConfig::default());
        submit(&mut cluster, 1, 7200.0);
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0]);
        submit(&mut cluster, 1, 7200.0);
        assert_eq!(at(&mut planner, &mut cluster, 100.0), [0]);
        assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(360.0)));
        assert_eq!(at(&mut planner, &mut cluster, 360.0), [0, 1]);
        assert_eq!(
            cluster.job(JobId(0)).num_preemptions,
            0,
            "who stays is not touched"
        );
    }

    #[test]
    fn the_utility_decides_who_waits() {
        // One GPU; jobs of 400 and 4,000 s that came at 0, a third of 400 s that came at 1,000 s. All wait until 1,000 s.
        let chosen = |utility: Utility| {
            let mut cluster = preemptive_cluster(1, 1);
            submit(&mut cluster, 1, 400.0);
            submit(&mut cluster, 1, 4000.0);
            cluster.advance(Time::from_secs_f64(1000.0));
            submit(&mut cluster, 1, 400.0);
            let config = HadarConfig {
                utility,
                ..HadarConfig::default()
            };
            at(&mut hadar(config), &mut cluster, 1000.0)
        };
        // Work over time in the cluster: 400 / 1,400, 4,000 / 5,000, 400 / 400.
        assert_eq!(chosen(Utility::EffectiveThroughput), [2]);
        // Most left.
        assert_eq!(chosen(Utility::Makespan), [1]);
        // Longest in the cluster for its length: 1,400 / 400 against 5,000 / 4,000.
        assert_eq!(chosen(Utility::FinishTimeFairness), [0]);
    }

    #[test]
    fn a_price_can_keep_the_last_gpu_idle_unless_idle_gpus_are_filled() {
        // 4 GPUs. Three young gangs of 1 and a job that has waited 100 times its length: U = 60 / 6,060 = 0.0099.
        let run = |fill_idle: bool| {
            let mut cluster = preemptive_cluster(1, 4);
            submit(&mut cluster, 1, 60.0);
            cluster.advance(Time::from_secs_f64(6000.0));
            for _ in 0..3 {
                submit(&mut cluster, 1, 6000.0);
            }
            let config = HadarConfig {
                fill_idle,
                ..HadarConfig::default()
            };
            at(&mut hadar(config), &mut cluster, 6000.0)
        };
        assert_eq!(run(false), [1, 2, 3]);
        assert_eq!(run(true), [0, 1, 2, 3]);
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let config = HadarConfig {
            eta: 0.0,
            ..HadarConfig::default()
        };
        let text = Hadar::new(config).unwrap_err().to_string();
        assert!(text.contains("hadar.eta"), "{text}");
    }
}
