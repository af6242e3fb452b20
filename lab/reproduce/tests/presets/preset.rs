//! What a preset is, how it is run, and what presets share.

use pleach_env::workload::{JobSpec, Workload};
use pleach_env::{Error, SimConfig, SimResult, simulate_planner};
use pleach_scheduler::cluster::{Capabilities, Cluster, Placement, Template};
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass};
use pleach_scheduler::{ConfigError, JobId, Planner};

/// What a preemption costs by the size of the gang, s; nodes have eight GPUs there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RestartCost {
    /// Of a job with one GPU.
    pub one_gpu_s: f64,
    /// Of a gang of 2 to 8 GPUs.
    pub one_node_s: f64,
    /// Of a larger gang.
    pub more_nodes_s: f64,
}

/// How one policy of another simulator is reproduced.
pub struct Preset {
    /// What its cluster can do.
    pub capabilities: Capabilities,
    /// What a preemption costs there.
    pub restart: RestartCost,
    /// Time by which every job holds its GPUs longer than its run time there, s.
    pub extra_run_s: f64,
    pub(super) planner: Box<dyn Planner>,
}

impl Preset {
    pub(super) fn new(capabilities: Capabilities, planner: impl Planner + 'static) -> Preset {
        Preset {
            capabilities,
            restart: RestartCost::default(),
            extra_run_s: 0.0,
            planner: Box::new(planner),
        }
    }

    /// Runs jobs to their end under the preset, on equal nodes in one network where the placement does not change the
    /// speed. Run times are known to the planner, as they are there. The jobs are sorted by submission.
    ///
    /// # Errors
    /// As [`simulate_planner`].
    pub fn simulate(
        mut self,
        num_nodes: u32,
        gpus_per_node: u32,
        jobs: &[JobSpec],
    ) -> Result<SimResult, Error> {
        let config = SimConfig {
            capabilities: self.capabilities,
            ..SimConfig::default()
        };
        // A class for each cost of a restart.
        let costs = [
            self.restart.one_gpu_s,
            self.restart.one_node_s,
            self.restart.more_nodes_s,
        ];
        let classes = costs.map(|cost_s| ModelClass {
            restart_cost_s: Some(cost_s),
            ..ModelClass::default()
        });
        let jobs = jobs.iter().map(|job| JobSpec {
            run_time_s: job.run_time_s + self.extra_run_s,
            class: match job.num_gpus {
                0..=1 => 0,
                2..=8 => 1,
                _ => 2,
            },
            ..job.clone()
        });
        let workload = Workload {
            name: self.planner.name().into(),
            cluster: ClusterSpec::uniform(num_nodes, gpus_per_node, num_nodes),
            classes: classes.into(),
            jobs: jobs.collect(),
        };
        simulate_planner(&workload, &config, self.planner.as_mut())
    }
}

/// The refusal of a policy that the other simulator does not have.
pub(super) fn unknown(policy: &str, allowed: &[&str]) -> ConfigError {
    ConfigError::new(
        "policy",
        policy,
        format!("one of {}", allowed.join(", ")),
        "only what the other simulator has can be reproduced",
    )
}

/// Starts a pending job on the tightest placement, if there is one that the cluster's rules allow.
pub(super) fn start(cluster: &mut Cluster, job: JobId) -> bool {
    let demand = cluster.demand(job);
    let kind = cluster.types_in(cluster.fitting_types(demand)).next();
    let mut slices = Vec::new();
    let placed = kind.is_some_and(|kind| {
        let num_gpus = demand.num_gpus;
        cluster.place(Template::Fastest, kind, num_gpus, &mut slices)
    });
    if placed {
        cluster.start(job, Placement::from(slices));
    }
    placed
}
