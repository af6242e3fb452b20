//! Lucid's packing: jobs share only if both are light enough to feel little of it, and only if they must.
//!
//! No job is ever stopped, and no speed of a pair is asked for: from what a class does to a GPU alone each job gets a
//! weight of 0 (light), 1 (medium) or 2 (heavy), and two jobs may share if their weights add up to the capacity at most.
//! Jobs go by least GPU time, and none blocks those behind. A job that finds no free GPUs goes beside the first
//! running job that has its GPUs to itself, holds as many of them, is light enough, has memory left and is not much shorter.
//!
//! # Source
//! Lucid (ASPLOS'23): scores by how a job fares in company, capacity 2, no packing of gangs on several nodes, and the rule of
//! its released simulator (equal gangs, at most twice the partner's GPU time, first match in the order of starts), which
//! `lab/baselines/tests/sharing.rs` holds this rule to, start by start.
//!
//! # Deviations
//! - Lucid learns a job's score from hardware counters of a profiling run; here it follows from the class's utilisation, with
//!   limits that are assumed: half way between the mean utilisations of Lucid's own light, medium and heavy jobs (21, 49
//!   and 83 %).
//! - Lucid lowers the capacity when it expects little load. Here a job never shares while it fits on free GPUs
//!   (`pack_first` brings back what the released simulator does), which has the same aim and needs no forecast.
//! - The profiling stage itself and the learned run times are left out: estimates are those of the cluster.

use pleach_scheduler::cluster::{Cluster, Sharing};
use pleach_scheduler::{ClassId, ConfigError, JobId, Planner, PolicyError, Time};
use serde::{Deserialize, Serialize};

use super::hosts::can_share;
use crate::shared::allocate_by_priority::tightest;
use crate::shared::settings::check;

/// Settings of [`Indolent`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IndolentConfig {
    /// Utilisation above which a class is medium, 0 to 1. *Assumed.*
    pub medium_above: f64,
    /// Utilisation above which a class is heavy, `medium_above` to 1. *Assumed.*
    pub heavy_above: f64,
    /// What the weights of two jobs that share may add up to, 0 to 4.
    pub capacity: u32,
    /// A newcomer may have so many times the GPU time of its partner, above 0.
    pub longer_max: f64,
    /// Look for a partner before looking for free GPUs.
    pub pack_first: bool,
}

impl Default for IndolentConfig {
    fn default() -> IndolentConfig {
        IndolentConfig {
            medium_above: 0.35,
            heavy_above: 0.66,
            capacity: 2,
            longer_max: 2.0,
            pack_first: false,
        }
    }
}

impl IndolentConfig {
    fn validate(&self) -> Result<(), ConfigError> {
        let name = "indolent";
        let part = self.medium_above;
        check(name, "medium_above", part, (0.0..=1.0).contains(&part), "0 to 1")?;
        let part = self.heavy_above;
        let ok = (self.medium_above..=1.0).contains(&part);
        check(name, "heavy_above", part, ok, "medium_above to 1")?;
        check(name, "capacity", self.capacity, self.capacity <= 4, "0 to 4")?;
        let most = self.longer_max;
        let ok = most > 0.0 && most <= 1e9;
        check(name, "longer_max", most, ok, "above 0, at most 1e9")
    }
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Indolent {
    config: IndolentConfig,
    slices: Vec<pleach_scheduler::cluster::Slice>,
}

impl Indolent {
    /// From its settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: IndolentConfig) -> Result<Indolent, ConfigError> {
        config.validate()?;
        Ok(Indolent {
            config,
            slices: Vec::new(),
        })
    }

    /// How much a job of a class asks of its partner: 0, 1 or 2.
    fn weight(&self, cluster: &Cluster, class: ClassId) -> u32 {
        let utilisation = cluster.class(class).load.utilisation;
        u32::from(utilisation > self.config.medium_above) + u32::from(utilisation > self.config.heavy_above)
    }

    /// Whether a pending job may go beside a running one.
    fn may_share(&self, cluster: &Cluster, id: JobId, partner: JobId) -> bool {
        let (job, other) = (cluster.job(id), cluster.job(partner));
        let weights = [job, other].map(|job| self.weight(cluster, job.request.class));
        other.placement.len() == 1
            && weights[0] + weights[1] <= self.config.capacity
            && gpu_time_s(cluster, id) <= self.config.longer_max * gpu_time_s(cluster, partner)
            && cluster.can_pack(id, partner)
    }

    /// The running jobs beside which a pending one may go, in the order in which they were started; the planner takes the
    /// first.
    #[must_use]
    pub fn partners(&self, cluster: &Cluster, id: JobId) -> Vec<JobId> {
        let mut partners: Vec<(Time, JobId)> = cluster
            .running()
            .filter(|partner| self.may_share(cluster, id, *partner))
            .map(|partner| (cluster.job(partner).run_start, partner))
            .collect();
        partners.sort_unstable();
        partners.into_iter().map(|(_, partner)| partner).collect()
    }

    /// The first of a list of running jobs beside which a pending one may go.
    fn beside(&self, cluster: &Cluster, running: &[JobId], id: JobId) -> Option<JobId> {
        let may = |partner: &&JobId| self.may_share(cluster, id, **partner);
        running.iter().find(may).copied()
    }
}

/// Believed GPU time of a job in all, GPU·s.
fn gpu_time_s(cluster: &Cluster, id: JobId) -> f64 {
    let request = &cluster.job(id).request;
    request.estimate_s.value * request.gpus()
}

impl Planner for Indolent {
    fn name(&self) -> &str {
        "indolent"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let mut order: Vec<(f64, JobId)> = cluster
            .pending()
            .map(|id| (gpu_time_s(cluster, id), id))
            .collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        // Those with their GPUs to themselves, by start.
        let mut alone: Vec<JobId> = Vec::new();
        if cluster.capabilities().sharing != Sharing::Off && !order.is_empty() {
            alone.extend(cluster.running().filter(|id| !cluster.job(*id).is_sharing));
            alone.sort_unstable_by_key(|id| (cluster.job(*id).run_start, *id));
        }
        for (_, id) in order {
            let shares = can_share(cluster, id);
            let mut partner = None;
            if shares && self.config.pack_first {
                partner = self.beside(cluster, &alone, id);
            }
            if partner.is_none() {
                if let Some(placement) = tightest(cluster, id, &mut self.slices) {
                    cluster.start(id, placement);
                    alone.push(id);
                    continue;
                }
                if shares && !self.config.pack_first {
                    partner = self.beside(cluster, &alone, id);
                }
            }
            if let Some(partner) = partner {
                cluster.start(id, cluster.job(partner).placement.clone());
                alone.retain(|other| *other != partner);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{class, cluster_of, plan_at, submit_as};
    use super::*;

    /// One node; classes 0 light, 1 medium, 2 heavy.
    fn node(num_gpus: u32) -> Cluster {
        let classes = [class("light", 0.2), class("medium", 0.5), class("heavy", 0.9)];
        cluster_of(1, num_gpus, &classes, &[])
    }

    fn lazy() -> Indolent {
        Indolent::new(IndolentConfig::default()).unwrap()
    }

    /// Whether a newcomer of a class shares the only GPU with a job of another class.
    fn shares(running: u16, newcomer: u16, capacity: u32) -> bool {
        let mut cluster = node(1);
        let mut planner = Indolent::new(IndolentConfig {
            capacity,
            ..IndolentConfig::default()
        })
        .unwrap();
        submit_as(&mut cluster, running, 1, 100.0, 1.0);
        plan_at(&mut planner, &mut cluster, 0.0);
        submit_as(&mut cluster, newcomer, 1, 100.0, 1.0);
        plan_at(&mut planner, &mut cluster, 1.0).len() == 2
    }

    #[test]
    fn weights_of_a_pair_add_up_to_two_at_most() {
        let table = [[true, true, true], [true, true, false], [true, false, false]];
        for (running, row) in (0..).zip(table) {
            for (newcomer, expected) in (0..).zip(row) {
                assert_eq!(shares(running, newcomer, 2), expected, "{running} {newcomer}");
            }
        }
        assert!(shares(0, 1, 1) && !shares(1, 1, 1) && shares(0, 0, 0) && !shares(0, 1, 0));
    }

    #[test]
    fn a_job_shares_only_where_no_gpu_is_free_unless_told_to_pack_first() {
        for (pack_first, gpu) in [(false, 0b10), (true, 0b1)] {
            let mut cluster = node(2);
            let mut planner = Indolent::new(IndolentConfig {
                pack_first,
                ..IndolentConfig::default()
            })
            .unwrap();
            for _ in 0..2 {
                submit_as(&mut cluster, 0, 1, 100.0, 1.0);
            }
            let running = plan_at(&mut planner, &mut cluster, 0.0);
            assert_eq!(running, [(0, vec![(0, 0b1)]), (1, vec![(0, gpu)])]);
        }
    }

    #[test]
    fn equal_gangs_share_with_the_first_started_that_is_not_much_shorter() {
        // GPU 0: 40 s; GPU 1: 60 s, started later. Of 100 s, a newcomer may go beside 50 s and more.
        let mut cluster = node(4);
        let mut planner = lazy();
        submit_as(&mut cluster, 0, 1, 40.0, 1.0);
        plan_at(&mut planner, &mut cluster, 0.0);
        submit_as(&mut cluster, 0, 1, 60.0, 1.0);
        submit_as(&mut cluster, 0, 2, 500.0, 1.0);
        plan_at(&mut planner, &mut cluster, 1.0);
        submit_as(&mut cluster, 0, 1, 100.0, 1.0);
        let running = plan_at(&mut planner, &mut cluster, 2.0);
        assert_eq!(
            running[3],
            (3, vec![(0, 0b10)]),
            "no gang of another size, no short one"
        );
        submit_as(&mut cluster, 0, 1, 50.0, 1.0);
        let running = plan_at(&mut planner, &mut cluster, 3.0);
        assert_eq!(running[4], (4, vec![(0, 0b1)]));
        submit_as(&mut cluster, 0, 1, 1.0, 1.0);
        assert_eq!(
            plan_at(&mut planner, &mut cluster, 4.0).len(),
            5,
            "two is the most"
        );
    }

    #[test]
    fn memory_binds_and_least_gpu_time_goes_first() {
        let mut cluster = node(1);
        let mut planner = lazy();
        submit_as(&mut cluster, 0, 1, 1000.0, 20.0);
        plan_at(&mut planner, &mut cluster, 0.0);
        submit_as(&mut cluster, 0, 1, 30.0, 10.0);
        submit_as(&mut cluster, 0, 1, 20.0, 13.0);
        submit_as(&mut cluster, 0, 1, 25.0, 12.0);
        // 20 + 13 GiB are more than 32; of the others the one of 25 s is first.
        let running = plan_at(&mut planner, &mut cluster, 1.0);
        assert_eq!(running.iter().map(|job| job.0).collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let wrong = IndolentConfig {
            heavy_above: 0.2,
            ..IndolentConfig::default()
        };
        let text = Indolent::new(wrong).unwrap_err().to_string();
        assert!(text.contains("indolent.heavy_above"), "{text}");
    }
}
