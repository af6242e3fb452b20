//! The batch system between a decision and what comes of it: rounds, and delays that no policy decides about.
//!
//! A simulated scheduler decides at every event and its decisions happen at once. One that drives a batch system looks at it
//! every few seconds, its jobs begin a moment after they were let go, and ends and failures come into sight later than they
//! happen. Policies do not see these delays: the tables count a job from the decision on, as the daemon for Slurm counts one that
//! was let go.
//!
//! Whether a job gets whole GPUs or a share of one is fixed before it starts, so such a cluster puts no whole-GPU jobs beside
//! each other and mixes no GPU types.
//!
//! Simplified: a submission is in sight at once, and so is a job that was stopped; every delay is the same each time.

use pleach_scheduler::Problem;
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::settings;
use pleach_scheduler::settings::Settings as _;

settings! {
    /// Times of a batch system, each 0 where it is not named.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct BatchSystem {
        /// Decisions are made at whole multiples of this and nowhere between, s, 0 to 3600; 0: at every event.
        pub tick_s: f64, in 0.0..=MOST_S;
        /// From the decision to the start of a job, s, 0 to 3600. It holds its GPUs meanwhile.
        pub start_delay_s: f64, in 0.0..=MOST_S;
        /// From the end of a job, or of a trial that failed, until it is seen and its GPUs are free, s, 0 to 3600.
        pub end_delay_s: f64, in 0.0..=MOST_S;
        /// What a job that was stopped by a preemption or a failure waits besides, whenever it is let go again, s, 0 to 86,400. It
        /// holds its GPUs meanwhile. After a preemption others begin on its nodes once `end_delay_s` is over.
        pub requeue_delay_s: f64, in 0.0..=MOST_REQUEUE_S;
        /// From the failure of a node until it is seen, s, 0 to 86,400. Its jobs make no progress meanwhile, and it is given new
        /// ones. Planned changes are seen at once.
        pub failure_delay_s: f64, in 0.0..=MOST_REQUEUE_S;
        /// Gangs get one node, or whole nodes and one node for the rest, and a node gives its GPUs lowest first, as Slurm does.
        pub whole_nodes: bool;
    }
}

/// Most that a tick, a start or an end may take, s.
const MOST_S: f64 = 3600.0;
/// Most that a requeue or the sight of a failure may take, s.
const MOST_REQUEUE_S: f64 = 86_400.0;

impl BatchSystem {
    /// Slurm 22.05 under `pleach-scheduler`.
    ///
    /// # Source
    /// `tick_s`: the daemon's default. `start_delay_s`, `end_delay_s`, `requeue_delay_s`: medians that
    /// `deploy/daemon/tests/delays_slurm.sh` measured on a Slurm on loopback (lab/notes/slurm-measured.md, "Delays").
    /// `failure_delay_s`: `SlurmdTimeout`, whose default is 300 s (slurm.conf(5)).
    pub const SLURM: BatchSystem = BatchSystem {
        tick_s: 2.0,
        start_delay_s: 0.5,
        end_delay_s: 0.15,
        requeue_delay_s: 2.8,
        failure_delay_s: 300.0,
        whole_nodes: true,
    };

    /// The one of this name.
    ///
    /// # Errors
    /// An unknown name.
    pub fn from_name(name: &str) -> Result<BatchSystem, Problem> {
        match name {
            "slurm" => Ok(BatchSystem::SLURM),
            _ => Err(Problem::new(
                "batch_system",
                name,
                "slurm",
                "or a TOML file with tick_s, start_delay_s, end_delay_s, requeue_delay_s, failure_delay_s and whole_nodes",
            )),
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first time out of its range.
    pub fn validate(&self) -> Result<(), Problem> {
        self.check_at("batch_system", "0 for no delay")
    }

    /// What a cluster behind it can do.
    #[must_use]
    pub fn capabilities(&self, own: Capabilities) -> Capabilities {
        Capabilities {
            consolidated: own.consolidated || self.whole_nodes,
            lowest_gpu: own.lowest_gpu || self.whole_nodes,
            ..own
        }
    }
}
