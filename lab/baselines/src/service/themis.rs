//! Themis: leases of GPUs go to the jobs that sharing has hurt most.
//!
//! Finish-time fairness of a job is `rho = T_shared / T_ideal`: how long it is in the cluster, from its arrival to its
//! believed end, over how long it would be with its share of the cluster to itself. All leases end together; the GPUs are
//! then offered to the part `1 - f` of the jobs with the largest `rho`, an auction decides among them by efficiency, and
//! what they leave goes to the others. GPUs that come free in between are auctioned at once, until the next common end.
//!
//! # Source
//! Mahajan et al., NSDI'20: the metric, leases, and the knob f = 0.8 between fairness (1) and efficiency (0).
//!
//! # Deviations
//! - An app is one job with a rigid gang, so a bid is for the whole gang or nothing. The partial-allocation auction, which
//!   maximises the product of the bidders' `1 / rho`, becomes a walk by gain: what a lease now, rather than after the next
//!   one, takes off `ln rho`, per GPU. Hidden payments, which keep bidders truthful, are left out: jobs cannot lie.
//! - All leases end together, or large gangs would never find enough leases ending at once.
//! - The worst-off job is served before the auction, so that no job loses every auction.
//! - What the bidders leave goes by `rho`, not at random.
//! - `T_ideal` is the believed run time on the fastest type, stretched where the share `G / n` of the cluster is smaller
//!   than the gang; `n` is the mean number of jobs that were in the cluster since the job came.
//! - The length of a lease is assumed; the paper trades it against the cost of restarts.

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::{ConfigError, JobId, Planner, PolicyError, Time};
use serde::{Deserialize, Serialize};

use crate::shared::allocate_by_priority::{Rules, allocate_by_priority, start_what_fits};
use crate::shared::settings::check;
use crate::shared::timer::RoundTimer;
use pleach_scheduler::portable_math::ln;

/// Settings of [`Themis`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThemisConfig {
    /// Part of the jobs, those with the smallest `rho`, that no GPU is offered to first, 0 to 1. 1 = strictly worst-off
    /// first, 0 = every job bids.
    pub fairness: f64,
    /// Length of a lease, s, > 0. *Assumed.*
    pub lease_s: f64,
}

impl Default for ThemisConfig {
    fn default() -> ThemisConfig {
        ThemisConfig {
            fairness: 0.8,
            lease_s: 1200.0,
        }
    }
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Themis {
    config: ThemisConfig,
    timer: RoundTimer,
    /// Integral of the number of jobs in the cluster up to `noted`, job·s.
    crowd_s: f64,
    /// The same when each job came. `[job]`
    crowd_before_s: Vec<f64>,
    noted: Time,
    num_jobs: usize,
}

/// What the auction looks at in a job.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bid {
    id: JobId,
    /// Finish-time fairness if the job runs from now on.
    rho: f64,
    /// What a lease now takes off `ln rho`, per GPU.
    gain: f64,
}

impl Themis {
    /// From its settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: ThemisConfig) -> Result<Themis, ConfigError> {
        let ThemisConfig { fairness, lease_s } = config;
        let ok = (0.0..=1.0).contains(&fairness);
        check("themis", "fairness", fairness, ok, "0 to 1")?;
        let ok = (1.0..=1e9).contains(&lease_s);
        check("themis", "lease_s", lease_s, ok, "1 to 1e9 s")?;
        Ok(Themis {
            config,
            timer: RoundTimer::new(Time::from_secs_f64(lease_s)),
            crowd_s: 0.0,
            crowd_before_s: Vec::new(),
            noted: Time::ZERO,
            num_jobs: 0,
        })
    }

    /// Books how many jobs there were since the last look.
    fn book(&mut self, now: Time) {
        self.crowd_s += self.num_jobs as f64 * (now - self.noted).as_secs_f64();
        self.noted = now;
    }

    /// Books how many jobs there were since the last look, and notes which came.
    fn look(&mut self, cluster: &Cluster) {
        self.book(cluster.now());
        self.crowd_before_s.resize(cluster.jobs().len(), self.crowd_s);
        self.num_jobs = cluster.num_pending() + cluster.num_running();
    }

    /// Mean number of jobs in the cluster since a job came; now, if it has just come.
    fn contention(&self, cluster: &Cluster, id: JobId) -> f64 {
        let age_s = (cluster.now() - cluster.job(id).submit).as_secs_f64();
        if age_s > 0.0 {
            ((self.crowd_s - self.crowd_before_s[id.index()]) / age_s).max(1.0)
        } else {
            self.num_jobs.max(1) as f64
        }
    }

    fn bid(&self, cluster: &Cluster, id: JobId) -> Bid {
        let (job, now) = (cluster.job(id), cluster.now());
        let speeds = &cluster.class(job.request.class).speed;
        let types = cluster.types_in(job.types).map(|kind| speeds[kind.index()]);
        let speed = types.fold(1e-6, f64::max);
        let gang = job.request.gpus();
        let share = f64::from(cluster.num_gpus()) / self.contention(cluster, id);
        let ideal_s = job.request.estimate_s.value / speed / (share / gang).min(1.0);
        let shared_s = (now - job.submit).as_secs_f64() + job.remaining_s_at(now) / speed;
        Bid {
            id,
            rho: shared_s / ideal_s,
            gain: ln(1.0 + self.config.lease_s / shared_s) / gang,
        }
    }

    /// The order in which GPUs are offered: the worst-off job, the other bidders by gain, the rest by `rho`.
    fn order(&self, cluster: &Cluster) -> Vec<JobId> {
        let active = cluster.active();
        let mut bids: Vec<Bid> = active.into_iter().map(|id| self.bid(cluster, id)).collect();
        bids.sort_unstable_by(|a, b| b.rho.total_cmp(&a.rho).then(a.id.cmp(&b.id)));
        // Rounded up, but not because 1 - 0.8 is a little more than 0.2.
        let num_bidders = ((1.0 - self.config.fairness) * bids.len() as f64 - 1e-9).ceil() as usize;
        if num_bidders > 1 {
            bids[1..num_bidders].sort_unstable_by(|a, b| b.gain.total_cmp(&a.gain).then(a.id.cmp(&b.id)));
        }
        bids.into_iter().map(|bid| bid.id).collect()
    }
}

impl Planner for Themis {
    fn name(&self) -> &str {
        "themis"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let now = cluster.now();
        for lease_end in self.timer.rested(now) {
            self.book(lease_end);
        }
        self.look(cluster);
        let leases_end = self.timer.begins(cluster);
        if !leases_end && cluster.num_pending() == 0 {
            return Ok(());
        }
        let order = self.order(cluster);
        let rules = Rules {
            skip: true,
            preempt: leases_end,
        };
        allocate_by_priority(cluster, &order, rules, |_, _, _| true);
        // Counts of GPUs promise too much where CPU or memory is short: what they kept from others is offered again.
        start_what_fits(cluster, &order);
        // Where no job waits the order decides nothing: each running job takes its own GPUs from what is left, and where
        // they sufficed in one order they do in any.
        self.timer.settle(cluster, true);
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
    use crate::test_clusters::{multi_type_cluster, preemptive_cluster, running, submit};

    fn themis(fairness: f64) -> Themis {
        let config = ThemisConfig {
            fairness,
            ..ThemisConfig::default()
        };
        Themis::new(config).unwrap()
    }

    fn at(planner: &mut Themis, cluster: &mut Cluster, now_s: f64) -> Vec<u32> {
        cluster.advance(Time::from_secs_f64(now_s));
        planner.plan(cluster).unwrap();
        cluster.check();
        running(cluster)
    }

    #[test]
    fn the_metric_is_the_time_in_the_cluster_over_the_time_with_a_fair_share() {
        // 4 GPUs. Job 0 (4 GPUs, 1,000 s) comes at 0 and runs; job 1 (2 GPUs, 1,000 s) comes at 500 s.
        let mut cluster = preemptive_cluster(1, 4);
        let mut planner = themis(1.0);
        submit(&mut cluster, 4, 1000.0);
        at(&mut planner, &mut cluster, 0.0);
        assert_eq!(planner.bid(&cluster, JobId(0)).rho, 1.0);
        cluster.advance(Time::from_secs_f64(500.0));
        submit(&mut cluster, 2, 1000.0);
        at(&mut planner, &mut cluster, 500.0);
        cluster.advance(Time::from_secs_f64(1000.0));
        planner.look(&cluster);
        // Job 0: one job for 500 s and two for 500 s, 1.5 in the mean; a share of 4 / 1.5 GPUs stretches its 1,000 s to
        // 1,500 s. It ends now, after 1,000 s.
        let bid = planner.bid(&cluster, JobId(0));
        assert!((bid.rho - 1001.0 / 1500.0).abs() < 1e-9, "{bid:?}");
        // Job 1: two jobs, a share of 2 GPUs: 1,000 s; it has waited 500 s, so 1,500 s in all.
        let bid = planner.bid(&cluster, JobId(1));
        assert!((bid.rho - 1.5).abs() < 1e-9, "{bid:?}");
        assert!((bid.gain - (2700.0_f64 / 1500.0).ln() / 2.0).abs() < 1e-9);
    }

    #[test]
    fn when_the_leases_end_the_worst_off_job_goes_first() {
        // One GPU. Job 0 runs; jobs 1 (1,000 s) and 2 (100 s) wait from the start: after a lease job 2 is worst off.
        let mut cluster = preemptive_cluster(1, 1);
        let mut planner = themis(1.0);
        for work_s in [5000.0, 1000.0, 100.0] {
            submit(&mut cluster, 1, work_s);
        }
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0], "all equal: the first");
        assert_eq!(planner.wake_at(&cluster), Some(Time::from_secs_f64(1200.0)));
        assert_eq!(at(&mut planner, &mut cluster, 1199.0), [0], "a lease is kept");
        // Shares of a third: ideal 15,000, 3,000 and 300 s; shared 5,000, 2,200 and 1,300 s.
        assert_eq!(at(&mut planner, &mut cluster, 1200.0), [2]);
        cluster.advance(Time::from_secs_f64(1300.0));
        cluster.finish(JobId(2));
        assert_eq!(
            at(&mut planner, &mut cluster, 1300.0),
            [1],
            "idle GPUs do not wait"
        );
    }

    #[test]
    fn bidders_with_more_to_gain_per_gpu_go_before_worse_off_ones_but_not_before_the_worst() {
        // All came at 0 and waited 1,200 s. rho = (1,200 + work) / (work x stretch): 2 GPUs, 4 jobs, a share of half a GPU. Job
        // 1: 1 GPU, 400 s: 1,600 / 800 = 2. Job 2: 2 GPUs, 150 s: 1,350 / 600 = 2.25. Job 3: 2 GPUs, 100 s: 1,300 / 400 = 3.25.
        let mut cluster = preemptive_cluster(1, 2);
        submit(&mut cluster, 2, 1e5);
        let mut planner = themis(0.0);
        at(&mut planner, &mut cluster, 0.0);
        for (num_gpus, work_s) in [(1, 400.0), (2, 150.0), (2, 100.0)] {
            submit(&mut cluster, num_gpus, work_s);
        }
        at(&mut planner, &mut cluster, 0.0);
        cluster.advance(Time::from_secs_f64(1200.0));
        planner.look(&cluster);
        let ids = |planner: &Themis| planner.order(&cluster).iter().map(|id| id.0).collect::<Vec<_>>();
        // Gains per GPU: job 1 ln(1 + 1,200 / 1,600) = 0.560, job 2 ln(1 + 1,200 / 1,350) / 2 = 0.318.
        assert_eq!(ids(&planner), [3, 1, 2, 0]);
        planner.config.fairness = 1.0;
        assert_eq!(ids(&planner), [3, 2, 1, 0]);
        // A quarter of four jobs: only the worst bids.
        planner.config.fairness = 0.75;
        assert_eq!(ids(&planner), [3, 2, 1, 0]);
    }

    #[test]
    fn on_several_types_time_is_counted_on_the_fastest() {
        let mut cluster = multi_type_cluster(&[1.0, 4.0], 1);
        let mut planner = themis(0.8);
        submit(&mut cluster, 1, 1000.0);
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0]);
        assert_eq!(cluster.job(JobId(0)).gpu_type.0, 1);
        assert_eq!(planner.bid(&cluster, JobId(0)).rho, 1.0);
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let config = ThemisConfig {
            fairness: 1.5,
            ..ThemisConfig::default()
        };
        let text = Themis::new(config).unwrap_err().to_string();
        assert!(text.contains("themis.fairness"), "{text}");
    }
}
