//! BFTrainer: elastic training on the nodes that a machine's other users leave idle.
//!
//! Whenever the idle GPUs or the jobs change, an integer programme decides on how many of them each job trains until the
//! next change, which is expected a forward time ahead; a job that changes loses its rescaling:
//!
//! ```text
//! max  sum over j of  T_fwd thr_j(n_j) - R_j thr_j(n_j) [n_j != c_j]     n_j in {0} or [least, most],  sum n_j <= idle
//! ```
//!
//! with `thr` relative to the job's rate on its least number of GPUs and counted in as many, `c_j` what it has now, and
//! `R_j` its restart.
//!
//! # Source
//! Liu et al., "BFTrainer: Low-Cost Training of Neural Networks on Unfillable Supercomputer Nodes" (arXiv 2106.12091). The
//! programme is quoted second-hand; the forward time is *assumed*.
//!
//! # Deviations
//! - The paper models the throughput as piecewise linear (SOS2) and calls a solver with a time limit. Here it is a table, and the
//!   programme is the knapsack of this folder, solved exactly while its table is small, else greedily.
//! - The unit is a GPU, not a node; sizes that fill whole nodes need no others than that.
//! - What a rescaling costs is lost at the new rate, in the time that this cluster charges.
//! - Rigid jobs take part with their gang as the only size.

use pleach_scheduler::cluster::{Cluster, NodeState};
use pleach_scheduler::{ConfigError, JobId, Planner, PolicyError};
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
}

impl Default for BfTrainerConfig {
    fn default() -> BfTrainerConfig {
        BfTrainerConfig { forward_s: 120.0 }
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
        let forward_s = config.forward_s;
        check(
            "bftrainer",
            "forward_s",
            forward_s,
            (1.0..=1e6).contains(&forward_s),
            "1 to 1e6",
        )?;
        Ok(BfTrainer {
            config,
            paces: Paces::default(),
            seen: None,
        })
    }

    /// Every size of a job on every type, and the work that it brings in the forward time.
    fn choices(&self, cluster: &Cluster, job: &Scaling, capacity: &[u32], quota: u32) -> Vec<Choice> {
        let unit = job
            .types()
            .first()
            .map_or(1.0, |kind| job.rate_tight(*kind, job.least))
            / f64::from(job.least);
        let mut choices = Vec::new();
        for kind in job.types() {
            let most = job.most.min(capacity[kind.index()]).min(quota);
            for num_gpus in job.least..=most {
                let rate = job.rate_tight(kind, num_gpus) / unit;
                let lost_s = if job.held == Some((kind, num_gpus)) {
                    0.0
                } else {
                    cluster.resume_cost_s(job.id)
                };
                // Where starting takes longer than the plan is expected to hold, a little is still better than nothing.
                let gained_s = (self.config.forward_s - lost_s).max(1.0);
                choices.push(Choice {
                    kind: kind.index(),
                    num_gpus,
                    value: rate * gained_s,
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
                Some((
                    job,
                    pleach_scheduler::GpuTypeId(choice.kind as u8),
                    choice.num_gpus,
                ))
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
        // Forward 120 s, restart 50 s: to run on k GPUs instead of 4 brings 70 k, to stay 480. Job 0 has 4; when the other
        // job leaves, 6 GPUs bring 420 and 8 bring 560.
        for (others, expected) in [(2_u32, 4), (4, 8)] {
            let mut cluster = elastic_cluster_with(1, 4 + others, &[proportional(16), saturating(16)], 50.0);
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

    #[test]
    fn a_job_that_gains_most_from_a_gpu_gets_it() {
        let mut cluster = elastic_cluster(1, 8, &[proportional(16), saturating(16)]);
        submit_class(&mut cluster, 1, 1, 1e6);
        submit_class(&mut cluster, 0, 1, 1e6);
        planner().plan(&mut cluster).unwrap();
        assert_eq!(held_gpus(&cluster), [1, 7]);
    }
}
