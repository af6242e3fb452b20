//! BFTrainer: elastic training on the nodes that a machine's other users leave idle.
//!
//! Whenever the idle GPUs or the jobs change, an integer programme decides on how many of them each job trains until the
//! next change, which is expected a forward time ahead. A job that changes loses its present rate for as long as that takes:
//!
//! ```text
//! max  sum over j of  T_fwd thr_j(n_j) - thr_j(c_j) (up_j [n_j > c_j] + down_j [n_j < c_j])
//!                     n_j in {0} or [least, most],  sum n_j <= idle
//! ```
//!
//! with `thr` relative to the job's rate on its least number of GPUs and counted in as many, `c_j` what it has now, `up_j` its
//! restart and `down_j` a part of that. What has no GPUs starts for nothing, and what is left without any pays `down_j`.
//!
//! # Source
//! Liu et al., "BFTrainer: Low-Cost Training of Neural Networks on Unfillable Supercomputer Nodes" (arXiv 2106.12091). The
//! programme is that of the released code, with its ten jobs and its costs of two to one; the forward time is *assumed*.
//!
//! # Deviations
//! - The paper models the throughput as piecewise linear (SOS2) and calls a solver with a time limit. Here it is a table, and the
//!   programme is the knapsack of this folder, solved exactly while its table is small, else greedily.
//! - The unit is a GPU, not a node; sizes that fill whole nodes need no others than that.
//! - What a change costs is the time that this cluster charges for a restart.
//! - Rigid jobs take part with their gang as the only size.

use std::cmp::Ordering;

use pleach_scheduler::cluster::{Cluster, NodeState};
use pleach_scheduler::{ConfigError, GpuTypeId, JobId, Planner, PolicyError};
use serde::{Deserialize, Serialize};

use super::field::Field;
use super::knapsack::{Choice, choose};
use super::scaling::{Paces, Scaling};
use crate::shared::settings::check;

/// Settings of [`BfTrainer`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BfTrainerConfig {
    /// Time for which a plan is expected to hold, s, 1 to 1e6. *Assumed.*
    pub forward_s: f64,
    /// What shrinking costs, over a restart, 0 to 1. Released: 0.5.
    pub down_part: f64,
    /// Most jobs in a plan, by arrival, at least 1; the others wait. Released: 10.
    pub jobs_max: usize,
}

impl Default for BfTrainerConfig {
    fn default() -> BfTrainerConfig {
        BfTrainerConfig {
            forward_s: 120.0,
            down_part: 0.5,
            jobs_max: 10,
        }
    }
}

/// The planner.
#[derive(Clone, Debug)]
pub struct BfTrainer {
    config: BfTrainerConfig,
    paces: Paces,
    /// The jobs and the nodes' states at the last plan.
    seen: Option<(Vec<JobId>, Vec<NodeState>)>,
}

impl BfTrainer {
    /// From its settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: BfTrainerConfig) -> Result<BfTrainer, ConfigError> {
        let name = "bftrainer";
        let ok = (1.0..=1e6).contains(&config.forward_s);
        check(name, "forward_s", config.forward_s, ok, "1 to 1e6")?;
        let ok = (0.0..=1.0).contains(&config.down_part);
        check(name, "down_part", config.down_part, ok, "0 to 1")?;
        check(
            name,
            "jobs_max",
            config.jobs_max,
            config.jobs_max >= 1,
            "1 or more",
        )?;
        Ok(BfTrainer {
            config,
            paces: Paces::default(),
            seen: None,
        })
    }

    /// What a size with a rate is worth beyond having none, from the rate now, what a restart takes, s, and whether the job grows or
    /// shrinks.
    fn worth(&self, rate: f64, now: f64, up_s: f64, change: Ordering) -> f64 {
        let down_s = up_s * self.config.down_part;
        let lost_s = match change {
            Ordering::Greater => up_s,
            Ordering::Equal => 0.0,
            Ordering::Less => down_s,
        };
        // Giving up all shrinks as well.
        self.config.forward_s * rate + now * (down_s - lost_s)
    }

    /// Every size of a job on every type, and what it is worth beyond having none in the forward time.
    fn choices(&self, cluster: &Cluster, job: &Scaling, capacity: &[u32], quota: u32) -> Vec<Choice> {
        let unit = job
            .types()
            .first()
            .map_or(1.0, |kind| job.rate_tight(*kind, job.least))
            / f64::from(job.least);
        let rate = |(kind, num_gpus): (GpuTypeId, u32)| job.rate_tight(kind, num_gpus) / unit;
        let (now, up_s) = (job.held.map_or(0.0, rate), cluster.resume_cost_s(job.id));
        let mut choices = Vec::new();
        for kind in job.types() {
            let most = job.most.min(capacity[kind.index()]).min(quota);
            for num_gpus in job.least..=most {
                let change = match job.held {
                    Some((held, num)) if held == kind => num_gpus.cmp(&num),
                    _ => Ordering::Greater,
                };
                choices.push(Choice {
                    kind: kind.index(),
                    num_gpus,
                    value: self.worth(rate((kind, num_gpus)), now, up_s, change),
                });
            }
        }
        choices
    }
}

impl Planner for BfTrainer {
    fn name(&self) -> &str {
        "bftrainer"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        let states = cluster.nodes().iter().map(|node| node.state).collect();
        let now = Some((cluster.active(), states));
        if now == self.seen && cluster.num_running() > 0 {
            return Ok(());
        }
        self.seen = now;
        let mut field = Field::open(cluster);
        field.jobs.truncate(self.config.jobs_max);
        let scalings = self.paces.scalings(cluster, &field.jobs);
        let capacity = field.capacity(cluster);
        let items: Vec<Vec<Choice>> = scalings
            .iter()
            .map(|job| self.choices(cluster, job, &capacity, field.quota_left(job.tenant)))
            .collect();
        let chosen = choose(&items, &capacity);
        let wants: Vec<_> = scalings
            .iter()
            .zip(&items)
            .zip(chosen)
            .filter_map(|((job, choices), at)| {
                let choice = choices[at?];
                Some((job, GpuTypeId(choice.kind as u8), choice.num_gpus))
            })
            .collect();
        field.place(cluster, &wants);
        field.start_left_over(cluster, &scalings);
        field.close(cluster);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elastic::tests::{
        elastic_cluster, elastic_cluster_with, held_gpus, proportional, saturating, submit_class,
    };
    use pleach_scheduler::{NodeId, Time};

    fn planner() -> BfTrainer {
        BfTrainer::new(BfTrainerConfig::default()).unwrap()
    }

    #[test]
    fn jobs_shrink_when_nodes_leave_and_grow_when_they_return() {
        let mut cluster = elastic_cluster(2, 4, &[proportional(16)]);
        let mut planner = planner();
        submit_class(&mut cluster, 0, 1, 1e6);
        planner.plan(&mut cluster).unwrap();
        assert_eq!(held_gpus(&cluster), [8]);
        let mut stopped = Vec::new();
        cluster.advance(Time::from_secs_f64(100.0));
        cluster.set_node_state(NodeId(1), NodeState::Down, &mut stopped);
        planner.plan(&mut cluster).unwrap();
        cluster.check();
        assert_eq!(held_gpus(&cluster), [4]);
        cluster.advance(Time::from_secs_f64(200.0));
        cluster.set_node_state(NodeId(1), NodeState::Up, &mut stopped);
        planner.plan(&mut cluster).unwrap();
        assert_eq!(held_gpus(&cluster), [8]);
        assert_eq!(planner.wake_at(&cluster), None, "it acts when something changes");
    }

    #[test]
    fn a_change_must_be_worth_its_restart() {
        // Forward 120 s, restart 70 s: to run on k GPUs instead of 4 brings 120 k less 280, to stay 480. Job 0 has 4; when the
        // other job leaves, 6 GPUs bring 440 and 8 bring 680.
        for (others, expected) in [(2_u32, 4), (4, 8)] {
            let mut cluster = elastic_cluster_with(1, 4 + others, &[proportional(16), saturating(16)], 70.0);
            let mut planner = planner();
            let rigid = submit_class(&mut cluster, 2, others, 1e6);
            planner.plan(&mut cluster).unwrap();
            submit_class(&mut cluster, 0, 1, 1e6);
            planner.plan(&mut cluster).unwrap();
            assert_eq!(held_gpus(&cluster), [others, 4]);
            cluster.advance(Time::from_secs_f64(100.0));
            cluster.finish(rigid);
            planner.plan(&mut cluster).unwrap();
            assert_eq!(held_gpus(&cluster)[1], expected, "{others} GPUs come free");
        }
    }

    /// A and B have so many of the GPUs: what both get of so many idle ones, and what that is worth.
    fn programme(held: [u32; 2], idle: u32) -> ([u32; 2], f64) {
        let thr = |num: u32| f64::from(num) / (1.0 + 0.02 * f64::from(num.saturating_sub(1)));
        let planner = planner();
        let sizes = |now: u32| -> Vec<Choice> {
            let of = |num_gpus: u32| Choice {
                kind: 0,
                num_gpus,
                value: planner.worth(thr(num_gpus), thr(now), 20.0, num_gpus.cmp(&now)),
            };
            (2..=idle).map(of).collect()
        };
        let items = held.map(sizes);
        let chosen = choose(&items, &[idle]);
        let taken = |item: usize| chosen[item].map(|at| items[item][at]);
        let value: f64 = (0..2).filter_map(|item| Some(taken(item)?.value)).sum();
        let gpus = [0, 1].map(|item| taken(item).map_or(0, |choice| choice.num_gpus));
        (gpus, value - 10.0 * held.map(thr).iter().sum::<f64>())
    }

    /// T 120 s, up 20 s, down 10 s, from two GPUs on, thr(n) = n / (1 + 0.02 (n - 1)). Eight idle: (4, 4) is worth 905.7, (3, 5) 864.0
    /// and (8, 0) 766.6. Then six idle: (4, 2) or (2, 4) 650.4, (3, 3) 616.8.
    #[test]
    fn the_programme_chooses_what_was_worked_by_hand() {
        let (gpus, value) = programme([4, 0], 8);
        assert_eq!(gpus, [4, 4]);
        assert!((value - 905.7).abs() < 0.05, "{value}");
        let (gpus, value) = programme([4, 4], 6);
        assert!(gpus == [4, 2] || gpus == [2, 4], "{gpus:?}");
        assert!((value - 650.4).abs() < 0.05, "{value}");
        let worth = |new: f64, now: f64, change| planner().worth(new, now, 20.0, change) - 10.0 * now;
        let thr = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0].map(|num: f64| num / (0.98 + 0.02 * num));
        let three = worth(thr[3], thr[4], Ordering::Less);
        assert!((three + 120.0 * thr[5] - 864.0).abs() < 0.05 && (2.0 * three - 616.8).abs() < 0.05);
        assert!((worth(thr[8], thr[4], Ordering::Greater) - 766.6).abs() < 0.05);
    }

    #[test]
    fn ten_jobs_are_in_a_plan_and_the_others_wait() {
        let mut cluster = elastic_cluster(2, 8, &[saturating(16)]);
        for _ in 0..12 {
            submit_class(&mut cluster, 0, 1, 1e6);
        }
        planner().plan(&mut cluster).unwrap();
        assert_eq!(held_gpus(&cluster).iter().filter(|held| **held > 0).count(), 10);
    }

    #[test]
    fn a_job_that_gains_most_from_a_gpu_gets_it() {
        let mut cluster = elastic_cluster(1, 8, &[proportional(16), saturating(16)]);
        submit_class(&mut cluster, 1, 1, 1e6);
        submit_class(&mut cluster, 0, 1, 1e6);
        planner().plan(&mut cluster).unwrap();
        assert_eq!(held_gpus(&cluster), [1, 7]);
    }
}
