//! HadarE: a job is forked onto as many nodes as it can use, so that none idles while a job is left.
//!
//! In every round the nodes, fastest first, are given copies of jobs, each to the job whose utility a copy there raises
//! most. The copies of one job train independently on a node each; its remaining steps are split in proportion to their
//! speeds, so that all end together, and at the end of the round their weights are averaged, which takes a part of it.
//!
//! # Source
//! Hadar's journal version, arXiv 2503.10918, from a secondary description.
//!
//! # Deviations
//! - Speeds are known; the paper estimates the unknown ones by formula and measures them in the first round.
//! - A copy takes the job's gang, or what the node has of it, not the whole node, so nodes of many GPUs hold copies of
//!   several jobs. A copy on fewer GPUs is slower in proportion. A single whole copy is the plain gang.
//! - A job that gets other nodes than before is stopped and pays a restart; a copy is only added where that is worth it,
//!   so the last minutes of a job may leave nodes idle.
//! - Averaging sends and receives the weights over one link: a part of the class's state, or a default, both assumed. What
//!   averaging does to the quality of a model is not modelled.
//! - Jobs that ask for parts of GPUs start where they fit, before the plan.

use pleach_scheduler::cluster::{Cluster, JobState, Placement};
use pleach_scheduler::physics::mixed::Copies;
use pleach_scheduler::{ActionKind, ClassId, ConfigError, JobId, Planner, PolicyError, Time};
use serde::{Deserialize, Serialize};

use super::forks::{Fork, grant, nodes_by_speed, serve};
use super::market::Stock;
use super::utility::{Prices, Request, Utility, requests};
use crate::shared::allocation::{Allocation, apply, start_fractions};
use crate::shared::settings::check;
use crate::shared::timer::RoundTimer;
use crate::shared::what_if::is_whole_gpu_job;

/// Settings of [`HadarE`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HadarEConfig {
    /// What the schedule is to be good at.
    pub utility: Utility,
    /// Length of a round, s, 1 to 1e9. Published: 360.
    pub round_s: f64,
    /// Scale of the lowest price; larger is cheaper. Above 0. *Assumed.*
    pub eta: f64,
    /// Most copies of one job; none = the number of nodes (published).
    pub copies_max: Option<usize>,
    /// Part of a class's state that is weights, 0 to 1: 4 of the 16 bytes per parameter of Adam in mixed precision.
    /// *Assumed.*
    pub weight_part: f64,
    /// Weights of a class whose state is not known, GB: ResNet-50 in single precision. *Assumed.*
    pub weight_gb: f64,
    /// Bandwidth of averaging, GB/s, above 0: 10 Gb/s Ethernet. *Assumed.*
    pub gb_per_s: f64,
}

impl Default for HadarEConfig {
    fn default() -> HadarEConfig {
        HadarEConfig {
            utility: Utility::EffectiveThroughput,
            round_s: 360.0,
            eta: 1.0,
            copies_max: None,
            weight_part: 0.25,
            weight_gb: 0.1,
            gb_per_s: 1.25,
        }
    }
}

/// The planner.
#[derive(Clone, Debug)]
pub struct HadarE {
    config: HadarEConfig,
    timer: RoundTimer,
}

impl HadarE {
    /// From its settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: HadarEConfig) -> Result<HadarE, ConfigError> {
        let name = "hadare";
        let ok = (1.0..=1e9).contains(&config.round_s);
        check(name, "round_s", config.round_s, ok, "1 to 1e9 s")?;
        let ok = config.eta > 0.0 && config.eta <= 1e9;
        check(name, "eta", config.eta, ok, "above 0, at most 1e9")?;
        let most = config.copies_max.unwrap_or(1);
        check(name, "copies_max", most, most >= 1, "1 or more, or left out")?;
        let ok = (0.0..=1.0).contains(&config.weight_part);
        check(name, "weight_part", config.weight_part, ok, "0 to 1")?;
        let ok = (0.0..=1e6).contains(&config.weight_gb);
        check(name, "weight_gb", config.weight_gb, ok, "0 to 1e6 GB")?;
        let ok = config.gb_per_s > 0.0 && config.gb_per_s <= 1e6;
        check(name, "gb_per_s", config.gb_per_s, ok, "above 0, at most 1e6 GB/s")?;
        Ok(HadarE {
            timer: RoundTimer::new(Time::from_secs_f64(config.round_s)),
            config,
        })
    }

    /// How the copies of a class are brought together.
    #[must_use]
    pub fn copies(&self, cluster: &Cluster, class: ClassId) -> Copies {
        let state_gib = cluster.class(class).state_gib;
        let weight_bytes = if state_gib > 0.0 {
            state_gib * 1_073_741_824.0 * self.config.weight_part
        } else {
            self.config.weight_gb * 1e9
        };
        Copies {
            round_s: self.config.round_s,
            weight_bytes,
            gb_per_s: self.config.gb_per_s,
        }
    }

    fn plan_round(&self, cluster: &Cluster) -> Allocation {
        let moves = cluster.capabilities().can(ActionKind::Preempt);
        let takes_part = |id: JobId| {
            let job = cluster.job(id);
            is_whole_gpu_job(job) && (moves || job.state == JobState::Pending)
        };
        let requests = requests(cluster, self.config.utility, takes_part);
        let mut stock = Stock::new(cluster, moves);
        let prices = Prices::new(cluster, &requests, self.config.eta, self.timer.round());
        let order = nodes_by_speed(cluster, &stock, &requests);
        let fork = |request: Request| Fork {
            copies: self.copies(cluster, request.class),
            start_s: cluster.resume_cost_s(request.id),
            slices: Placement::new(),
            sum_rates: 0.0,
            moves: cluster.job(request.id).state != JobState::Running,
            utility: 0.0,
            known: None,
            request,
        };
        let mut forks: Vec<Fork> = requests.into_iter().map(fork).collect();
        let copies_max = self.config.copies_max.unwrap_or(cluster.nodes().len());
        for node in order {
            // Again with smaller copies while there is room and a job that a copy would help.
            while serve(cluster, &mut stock, &prices, node, &mut forks, copies_max) {}
        }
        let started = forks.into_iter().filter(|fork| !fork.slices.is_empty());
        started.map(|fork| (fork.request.id, grant(fork))).collect()
    }
}

impl Planner for HadarE {
    fn name(&self) -> &str {
        "hadare"
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

    fn hadare(config: HadarEConfig) -> HadarE {
        HadarE::new(config).unwrap()
    }

    fn at(planner: &mut HadarE, cluster: &mut Cluster, now_s: f64) -> Vec<u32> {
        cluster.advance(Time::from_secs_f64(now_s));
        planner.plan(cluster).unwrap();
        cluster.check();
        running(cluster)
    }

    fn nodes_of(cluster: &Cluster, id: u32) -> Vec<u32> {
        let slices = cluster.job(JobId(id)).placement.iter();
        slices.map(|slice| slice.node.0).collect()
    }

    #[test]
    fn a_lone_job_runs_on_every_node_and_its_copies_end_together() {
        // Nodes of one GPU with speeds 4, 2 and 1; averaging costs nothing. 7,000 s of work: 1,000 s.
        let mut cluster = multi_type_cluster(&[4.0, 2.0, 1.0], 1);
        let free = HadarEConfig {
            weight_gb: 0.0,
            ..HadarEConfig::default()
        };
        let mut planner = hadare(free);
        submit(&mut cluster, 1, 7000.0);
        assert_eq!(at(&mut planner, &mut cluster, 0.0), [0]);
        assert_eq!(nodes_of(&cluster, 0), [0, 1, 2]);
        assert_eq!(cluster.job(JobId(0)).expected_finish, Time::from_secs_f64(1000.0));
        // The second round begins with 4,480 s left: it does 360 x (4, 2, 1), and all copies end with it.
        let copies = planner.copies(&cluster, ClassId(0));
        let (rates, mut steps) = ([4.0, 2.0, 1.0], [0.0; 3]);
        assert_eq!(copies.split(4480.0, &rates, &mut steps), 2520.0);
        assert_eq!(steps, [1440.0, 720.0, 360.0]);
        // The last 1,960 s: 280 s on every node.
        copies.split(1960.0, &rates, &mut steps);
        assert_eq!(steps.map(|step| (step * 1e6_f64).round()), [1120e6, 560e6, 280e6]);
    }

    #[test]
    fn averaging_takes_a_part_of_every_round() {
        // Two copies send and receive 9 GB over 1 GB/s: 18 s of 360 s, 5 %.
        let mut cluster = preemptive_cluster(2, 1);
        let config = HadarEConfig {
            weight_gb: 9.0,
            gb_per_s: 1.0,
            ..HadarEConfig::default()
        };
        submit(&mut cluster, 1, 1900.0);
        at(&mut hadare(config), &mut cluster, 0.0);
        assert_eq!(cluster.job(JobId(0)).rate, 2.0 * 0.95);
        // 90 GB: the second copy would cost half of the round. It is not worth it.
        let mut cluster = preemptive_cluster(2, 1);
        let config = HadarEConfig {
            weight_gb: 90.0,
            gb_per_s: 1.0,
            ..HadarEConfig::default()
        };
        submit(&mut cluster, 1, 1900.0);
        at(&mut hadare(config), &mut cluster, 0.0);
        assert_eq!((cluster.job(JobId(0)).rate, cluster.num_free()), (1.0, 1));
    }

    #[test]
    fn every_job_gets_a_node_before_anybody_gets_two_and_no_node_idles() {
        // Four equal nodes, three equal jobs: one of them is forked. Two jobs: two nodes each.
        for (num_jobs, expected) in [(3, vec![1, 1, 2]), (2, vec![2, 2]), (1, vec![4])] {
            let mut cluster = preemptive_cluster(4, 1);
            for _ in 0..num_jobs {
                submit(&mut cluster, 1, 7200.0);
            }
            at(&mut hadare(HadarEConfig::default()), &mut cluster, 0.0);
            let mut copies: Vec<usize> = (0..num_jobs).map(|id| nodes_of(&cluster, id).len()).collect();
            copies.sort_unstable();
            assert_eq!(copies, expected);
            assert_eq!(cluster.num_free(), 0);
        }
    }

    #[test]
    fn copies_can_be_limited_and_a_gang_larger_than_a_node_runs_in_parts() {
        let mut cluster = preemptive_cluster(4, 2);
        let config = HadarEConfig {
            copies_max: Some(3),
            weight_gb: 0.0,
            ..HadarEConfig::default()
        };
        submit(&mut cluster, 4, 7200.0);
        at(&mut hadare(config), &mut cluster, 0.0);
        // Three halves of a gang of 4.
        assert_eq!((cluster.job(JobId(0)).rate, cluster.num_free()), (1.5, 2));
    }

    #[test]
    fn who_keeps_its_nodes_is_not_stopped() {
        let mut cluster = preemptive_cluster(2, 1);
        let mut planner = hadare(HadarEConfig::default());
        submit(&mut cluster, 1, 72_000.0);
        submit(&mut cluster, 1, 72_000.0);
        at(&mut planner, &mut cluster, 0.0);
        for round in 1..10 {
            assert_eq!(at(&mut planner, &mut cluster, 360.0 * f64::from(round)), [0, 1]);
        }
        let stops = [0, 1].map(|id| cluster.job(JobId(id)).num_preemptions);
        assert_eq!(stops, [0, 0]);
        cluster.finish(JobId(1));
        at(&mut planner, &mut cluster, 3600.0);
        assert_eq!(
            nodes_of(&cluster, 0),
            [0, 1],
            "the node that is left is worth a restart"
        );
    }

    #[test]
    fn settings_out_of_range_are_refused_by_name() {
        let config = HadarEConfig {
            gb_per_s: 0.0,
            ..HadarEConfig::default()
        };
        let text = HadarE::new(config).unwrap_err().to_string();
        assert!(text.contains("hadare.gb_per_s"), "{text}");
    }
}
