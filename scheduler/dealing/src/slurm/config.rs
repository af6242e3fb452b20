//! Settings of the policy `slurm`: what slurm.conf and the accounting database say, in their words.

use std::collections::BTreeMap;

use pleach_scheduler::settings::{self as ranges, OwnOrNone, Settings as _};
use pleach_scheduler::{Problem, settings};
use serde::{Deserialize, Serialize};

use super::factors::Priority;
use super::fair_share::Share;
use super::schedule::Bounds;
use crate::settings::DEFAULT_HINT;

/// Most partitions, limits, shares and qualities of service, *ours*.
const ROWS_MAX: usize = 100_000;

settings! {
    /// What a site's Slurm is set to; the defaults are those of slurm.conf(5), but for `PriorityType`, which is multifactor only
    /// where `priority` is there.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SlurmConfig {
        /// `SchedulerType=sched/backfill`; false: `sched/builtin`.
        pub backfill: bool = true;
        /// `bf_interval`, s. 1 to 10,800
        pub bf_interval_s: f64 = 30.0, in 1.0..=10_800.0;
        /// `bf_resolution`, s. 1 to 3,600
        pub bf_resolution_s: u32 = 60, in 1..=3600;
        /// `bf_window`, s. 60 to 43,200 min
        pub bf_window_s: u32 = 86_400, in 60..=2_592_000;
        /// `bf_max_job_test`. 1 to 1,000,000
        pub bf_max_job_test: u32 = 500, in 1..=1_000_000;
        /// `default_queue_depth`. 0 to 1,000,000
        pub default_queue_depth: u32 = 100, in 0..=1_000_000;
        /// From an event to the pass of the main scheduler, s: half a second where `sched_min_interval=0` and `batch_sched_delay=0`,
        /// up to 3 by default. 0 to 3,600. *Fitted* on one recorded list.
        pub main_lag_s: f64 = 0.5, in 0.0..=3600.0;
        /// From a requeue to the next start, s. 0 to 86,400. *Measured.*
        pub requeue_delay_s: f64 = 121.0, in 0.0..=86_400.0;
        /// `priority/multifactor`; none: `priority/basic`, first come, first served.
        pub priority: Option<Priority>, in OwnOrNone;
        /// Whether `AccountingStorageEnforce` has `limits` or `safe`.
        pub enforce_limits: bool;
        /// `PreemptType`, where `PreemptMode` requeues or cancels. What a requeued job keeps is the cluster's to say.
        pub preempt: Preempt;
        /// Partitions; none: one with all nodes. A job of another partition is in the first.
        pub partitions: Vec<Partition>;
        /// Priorities of qualities of service.
        pub qos: Vec<Qos>;
        /// The tree of accounts.
        pub shares: Vec<Share>;
        /// Limits of associations and qualities of service.
        pub limits: Vec<Limit>;
        /// `Features` of the nodes by their numbers in the cluster; of those behind the last none.
        pub features: Vec<Vec<String>>;
        /// `Licenses`: how many there are of each.
        pub licences: BTreeMap<String, u64>;
    }
}

/// Which jobs are requeued for which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preempt {
    /// None for any.
    #[default]
    None,
    /// Those of partitions with a lower `PriorityTier`.
    Partition,
    /// Those of the qualities of service that a quality of service names.
    Qos,
}

settings! {
    /// A partition.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Partition {
        /// Its name.
        pub name: String;
        /// Its nodes by their numbers in the cluster; none: all.
        pub nodes: Vec<u32>;
        /// `PriorityTier`.
        pub tier: u32 = 1;
        /// `PriorityJobFactor`.
        pub job_factor: u32 = 1;
        /// Whether its jobs may be preempted (`PreemptMode`).
        pub preemptable: bool = true;
        /// `TRESBillingWeights`: what a core, a GPU and a GiB cost.
        pub billing: [f64; 3] = [1.0, 0.0, 0.0];
    }
}

/// A quality of service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qos {
    /// Its name.
    pub name: String,
    /// Its priority.
    pub priority: u32,
    /// Those whose jobs go for its own (`Preempt`).
    #[serde(default)]
    pub preempts: Vec<String>,
}

/// What a limit is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Each {
    /// Each user apart.
    User,
    /// Each account apart.
    Account,
}

/// Some jobs: those of these users, accounts and qualities of service; an empty list is all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scope {
    /// Users.
    pub users: Vec<String>,
    /// Accounts.
    pub accounts: Vec<String>,
    /// Qualities of service.
    pub qos: Vec<String>,
}

/// A limit at once on some jobs together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limit {
    /// The jobs that it bounds.
    pub bounds: Scope,
    /// The running jobs that it counts.
    pub counts: Scope,
    /// Whose jobs it counts apart.
    pub each: Vec<Each>,
    /// GPUs; none: no limit.
    pub gpus: Option<u32>,
    /// Cores.
    pub cpus: Option<u32>,
    /// Nodes.
    pub nodes: Option<u32>,
    /// Jobs.
    pub jobs: Option<u32>,
}

impl SlurmConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first key out of its range.
    pub fn validate(&self) -> Result<(), Problem> {
        self.check_at("slurm", DEFAULT_HINT)?;
        let of = |key, value: f64, most: f64| {
            ranges::check(&value, &(0.0..=most), ("slurm", key), (DEFAULT_HINT, ""))
        };
        if let Some(priority) = &self.priority {
            of(
                "priority.calc_phase_s",
                priority.calc_phase_s,
                priority.calc_period_s,
            )?;
        }
        for (key, num) in [
            ("partitions", self.partitions.len()),
            ("qos", self.qos.len()),
            ("shares", self.shares.len()),
            ("limits", self.limits.len()),
            ("features", self.features.len()),
            ("licences", self.licences.len()),
        ] {
            of(key, num as f64, ROWS_MAX as f64)?;
        }
        let mut billed = self.partitions.iter().flat_map(|partition| partition.billing);
        billed.try_for_each(|weight| of("partitions.billing", weight, 1e9))
    }

    /// What bounds the two schedulers.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        Bounds {
            backfill_jobs: self.bf_max_job_test as usize,
            window_s: i64::from(self.bf_window_s),
            resolution_s: i64::from(self.bf_resolution_s),
            main_jobs: self.default_queue_depth as usize,
        }
    }
}
