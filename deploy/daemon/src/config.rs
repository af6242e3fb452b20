//! The configuration file: every key has a default, unknown keys are refused, and every value is checked once.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pleach_scheduler::settings;
use pleach_scheduler::settings::{Own, Settings as _};
use pleach_scheduler::tree::{PSI_LIMIT_DEFAULT, WINDOW_DECISIONS, WINDOW_DEFAULT};
use pleach_scheduler::{Problem, heuristics};
use serde::{Deserialize, Serialize};

use crate::drive::Drive;
use crate::error::Error;
use crate::files;
use crate::pulse::Pulse;
use crate::slurm::command::Commands;
use pleach_site::slurm::expand;

/// What stands behind a value out of its range.
pub const DEFAULT_HINT: &str = "leave it out for the default";
/// Bytes of the decision log that may be kept.
pub const LOG_BYTES: RangeInclusive<u64> = 65_536..=1_000_000_000_000_000;
/// Days for which it may be.
pub const LOG_DAYS: RangeInclusive<u32> = 1..=3660;

/// Largest configuration that is read, bytes.
const SETTINGS_MAX: u64 = 1 << 20;

/// Keys that this program does not have, and what to do instead.
const LEFT_KEYS: [(&str, &str); 5] = [
    ("leases", "; leases are pods, which pleach-kubernetes drives"),
    ("drive", ONE_WAY),
    ("release_limit_s", ONE_WAY),
    (
        "spare_nodes",
        "; take it out: every job with GPUs is ranked now, whatever it asks for",
    ),
    (
        "left_partitions",
        "; take it out: partitions on the same nodes are ranked too; `PriorityTier` in slurm.conf puts one before all others",
    ),
];
const ONE_WAY: &str = "; take it out: there is one way, Slurm starts the jobs in the policy's order and none is held (docs/deploy-slurm.md)";

settings! {
    /// Settings of the daemon.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Settings {
        /// The partition that is driven; jobs and nodes of others are left alone. None: Slurm's default partition.
        pub partition: Option<String>;
        /// Distance of neighbours in the order, as `SiteFactor`, 1 to 100,000: more than what else may turn them round.
        pub order_step: u32 = 1000, in 1..=100_000;
        /// Most changes of the order in one round, 1 to 100,000; the others are made in the next ones.
        pub order_updates_max: u32 = 500, in 1..=100_000;
        /// The heuristic that answers where the policy fails or takes too long. None: the one that the tree's file names, else
        /// `easy`.
        pub fallback: Option<String>;
        /// Time between two rounds, s, 0.1 to 600.
        pub tick_s: f64 = 2.0, in 0.1..=600.0;
        /// Longest time for the decisions of one round, s, 0.001 to 600; then the fallback answers.
        pub deadline_s: f64 = RoundSettings::default().deadline_s;
        /// Longest time for one command of Slurm's, s, 0.1 to 600.
        pub command_limit_s: f64 = 10.0, in 0.1..=600.0;
        /// The folder of Slurm's commands; none: they are found in the path.
        pub slurm_bin: Option<PathBuf>;
        /// Folder of the log, the status and what is remembered of jobs.
        pub state_dir: PathBuf = "/var/lib/pleach".into();
        /// Most bytes of all files of the decision log, beside the one that is being compressed; at least 65,536. The oldest leave.
        pub log_bytes_max: u64 = LogSettings::default().bytes_max, in LOG_BYTES;
        /// Days for which the decision log is kept, 1 to 3660.
        pub log_days: u32 = LogSettings::default().days, in LOG_DAYS;
        /// Believed run time of a job without time limit, s, 1 to 1e9.
        pub default_limit_s: i64 = RoundSettings::default().default_limit_s;
        /// Nodes that share the fast network, in Slurm's order; at least 1.
        pub nodes_per_rack: u32 = RoundSettings::default().nodes_per_rack;
        /// Whether the policy may stop running jobs. They are requeued, so they must write checkpoints.
        pub preemption: bool;
        /// What a restart is believed to cost a job, s, 0 to 1e6.
        pub restart_cost_s: f64 = RoundSettings::default().restart_cost_s;
        /// Port of 127.0.0.1 where `GET /metrics` answers Prometheus, 1 to 65535; none: no port is opened.
        pub metrics_port: Option<u16>, in 1..=u16::MAX;
        /// What is done where the tree is offered something else than it was judged on; only for trees whose files have visits.
        pub on_drift: OnDrift;
        /// Decisions of the window that is watched, 100 to 1,000,000.
        pub drift_window: u32 = WINDOW_DEFAULT;
        /// Stability index above which it has drifted, 0.001 to 1,000.
        pub drift_limit: f64 = PSI_LIMIT_DEFAULT;
        /// What `pleach run` promised of the policy, its `promise.json`; where waits break it, the fallback decides until the policy is
        /// read again. None: nothing is held against a promise.
        pub promise: Option<PathBuf>;
        /// What may come on top of the promise, as a part of it, 0 to 100.
        pub margin: f64 = RoundSettings::default().margin;
        /// Days of the window in which waits are held against it, 0.01 to 366.
        pub promise_days: f64 = RoundSettings::default().promise_days;
        /// What is known of GPU types, by Slurm's names.
        pub gpu_types: BTreeMap<String, GpuType>;
        /// Nodes whose GPUs are given in shares, to jobs that ask for `--gres=shard:K`, as Slurm writes lists (`g[1-4]`); empty:
        /// such jobs are left to Slurm.
        pub share_nodes: String;
        /// GPUs that are an account's by right, by Slurm's names; other accounts share the rest.
        pub tenants: BTreeMap<String, u32>;
        /// Estimates of run times that policies get.
        pub estimates: EstimateSettings;
    }
}

/// What is done about drift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnDrift {
    /// The operator is warned.
    #[default]
    Warn,
    /// The operator is warned, and the fallback decides until the policy is read again.
    Fallback,
}

/// How much of the decision log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Most bytes of all its files, at least 65,536: `log_bytes_max`.
    pub bytes_max: u64,
    /// Days, 1 to 3660: `log_days`.
    pub days: u32,
}

impl Default for LogSettings {
    /// Two weeks, in at most 4 GiB: *ours*, twice what 5,000 nodes and 20,000 jobs need (docs/deploy-slurm.md).
    fn default() -> LogSettings {
        LogSettings {
            bytes_max: 4 << 30,
            days: 14,
        }
    }
}

settings! {
    /// The part of the settings that a round's decisions depend on, whatever the batch system: what a driver for another one reuses.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RoundSettings {
        /// How much of the policy is carried out; not a key here, for it is the batch system's to say which ways there are.
        #[serde(skip)]
        pub drive: Drive = Drive::Hold;
        /// The heuristic that answers where the policy fails or takes too long. None: the one that the tree's file names, else
        /// `easy`.
        pub fallback: Option<String>;
        /// Longest time for the decisions of one round, s, 0.001 to 600; then the fallback answers.
        pub deadline_s: f64 = 1.0, in 0.001..=600.0;
        /// Believed run time of a job without time limit, s, 1 to 1e9.
        pub default_limit_s: i64 = 86_400, in 1..=1_000_000_000;
        /// Nodes that share the fast network, in the order of the batch system; at least 1.
        pub nodes_per_rack: u32 = 1_000_000, in 1..;
        /// Whether the policy may stop running jobs.
        pub preemption: bool;
        /// Whether it stops some beside an order; the batch system's to say, as `drive`.
        #[serde(skip)]
        pub stops_beside_order: bool;
        /// What a restart is believed to cost a job, s, 0 to 1e6.
        pub restart_cost_s: f64 = 30.0, in 0.0..=1e6;
        /// Work after which jobs are believed to have written a checkpoint, s; none: a stop loses nothing. It is a key of leases.
        #[serde(skip)]
        pub checkpoint_interval_s: Option<f64>;
        /// What is known of GPU types, by their names in the batch system.
        pub gpu_types: BTreeMap<String, GpuType>;
        /// GPUs that are an account's by right; other accounts share the rest.
        pub tenants: BTreeMap<String, u32>;
        /// What policies read of run times.
        pub estimates: EstimateSettings, in Own;
        /// What is done where the tree is offered something else than it was judged on; only for trees whose files have visits.
        pub on_drift: OnDrift = OnDrift::Warn;
        /// Decisions of the window that is watched, 100 to 1,000,000.
        pub drift_window: u32 = WINDOW_DEFAULT, in WINDOW_DECISIONS.0..=WINDOW_DECISIONS.1;
        /// Stability index above which it has drifted, 0.001 to 1,000.
        pub drift_limit: f64 = PSI_LIMIT_DEFAULT, in 0.001..=1000.0;
        /// What `pleach run` promised of the policy, its `promise.json`; where waits break it, the fallback decides until the
        /// policy is read again. None: nothing is held against a promise.
        pub promise: Option<PathBuf>;
        /// What may come on top of the promise, as a part of it, 0 to 100.
        pub margin: f64 = 0.2, in 0.0..=100.0;
        /// Days of the window in which waits are held against it, 0.01 to 366.
        pub promise_days: f64 = 7.0, in 0.01..=366.0;
    }
}

/// Where estimates of run times come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EstimatesFrom {
    /// The job's time limit.
    #[default]
    Limit,
    /// Jobs like it that have ended, and the limit where that is shorter or nothing has ended yet.
    History,
}

settings! {
    /// Estimates of run times that policies get.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct EstimateSettings {
        /// Where the estimates come from.
        pub from: EstimatesFrom = EstimatesFrom::Limit;
        /// Ended jobs that count, 1 to 50: the last of the same user and gang size, else of the user, of the gang size, of anyone.
        pub num_last: u32 = 10, in 1..=50;
        /// Users that are kept in mind, 1 to 10,000; the one whose last job ended longest ago is forgotten first.
        pub num_users: u32 = 2000, in 1..=10_000;
        /// Days of accounting that are read where nothing was learned yet, 0 to 366; 0: none. Slurm's is `sacct`; that of Kubernetes
        /// are the pods that have ended and are still listed.
        pub seed_days: u32 = 0, in 0..=366;
    }
}

settings! {
    /// A GPU type.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct GpuType {
        /// Speed of the average job, 1 = the reference type; 1e-6 to 1e6.
        pub speed: f64 = 1.0, in 1e-6..=1e6;
        /// Device memory, GiB, 0.001 to 1e6.
        pub memory_gib: f64 = 32.0, in 1e-3..=1e6;
    }
}

impl RoundSettings {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value out of its range.
    pub fn validate(&self) -> Result<(), Problem> {
        if let Some(name) = &self.fallback {
            heuristics::by_name(name)?;
        }
        self.check_at("", DEFAULT_HINT)?;
        for (name, gpu) in &self.gpu_types {
            gpu.check_at(&format!("gpu_types.{name}"), "1 is the reference type")?;
        }
        let is_name = |name: &String| {
            !name.is_empty() && name.len() <= 256 && name != "*" && !name.contains(char::is_control)
        };
        match self.tenants.keys().find(|name| !is_name(name)) {
            Some(name) => Err(Problem::new(
                "tenants",
                format!("{name:?}"),
                "names of accounts",
                "as the batch system has them (`sacctmgr show account`, namespaces)",
            )),
            None => Ok(()),
        }
    }
}

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    /// A file that cannot be read or is longer than 1 MiB, an unknown key, a value out of range.
    pub fn load(path: &Path) -> Result<Settings, Error> {
        let text = files::text(path, SETTINGS_MAX)?;
        let settings: Settings = toml::from_str(&text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.as_bytes()[..at]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count()
                + 1;
            let shown = text.lines().nth(line - 1).unwrap_or("").trim();
            let shown: String = shown.chars().take(100).collect();
            let has_begin =
                |(key, _): &&(&str, &str)| error.message().starts_with(&format!("unknown field `{key}`"));
            let hint = LEFT_KEYS.iter().find(has_begin).map_or("", |(_, hint)| hint);
            Error::Text {
                path: path.to_owned(),
                line,
                reason: format!(
                    "{shown:?}: {}{hint}",
                    error.message().trim_end().replace('\n', " ")
                ),
            }
        })?;
        settings.validate()?;
        Ok(settings)
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first value out of its range.
    pub fn validate(&self) -> Result<(), Problem> {
        self.rounds().validate()?;
        self.check_at("", DEFAULT_HINT)?;
        if let Err(error) = expand(&self.share_nodes) {
            let (value, allowed) = (
                format!("{:?}", self.share_nodes),
                "a list of names such as g[1-4],h2",
            );
            let hint = format!("{error}; leave it out for none");
            return Err(Problem::new("share_nodes", value, allowed, hint));
        }
        Ok(())
    }

    /// The part that rounds depend on. The file has its keys beside Slurm's own, without a table.
    #[must_use]
    pub fn rounds(&self) -> RoundSettings {
        RoundSettings {
            drive: Drive::Order,
            fallback: self.fallback.clone(),
            deadline_s: self.deadline_s,
            default_limit_s: self.default_limit_s,
            nodes_per_rack: self.nodes_per_rack,
            preemption: self.preemption,
            stops_beside_order: self.preemption,
            restart_cost_s: self.restart_cost_s,
            checkpoint_interval_s: None,
            gpu_types: self.gpu_types.clone(),
            tenants: self.tenants.clone(),
            estimates: self.estimates,
            on_drift: self.on_drift,
            drift_window: self.drift_window,
            drift_limit: self.drift_limit,
            promise: self.promise.clone(),
            margin: self.margin,
            promise_days: self.promise_days,
        }
    }

    /// How much of the decision log is kept.
    #[must_use]
    pub fn log(&self) -> LogSettings {
        LogSettings {
            bytes_max: self.log_bytes_max,
            days: self.log_days,
        }
    }

    /// Names of the nodes whose GPUs are given in shares; none where the list was refused when it was checked.
    #[must_use]
    pub fn share_nodes(&self) -> Vec<String> {
        expand(&self.share_nodes).unwrap_or_default()
    }

    /// Slurm's commands.
    #[must_use]
    pub fn commands(&self) -> Commands {
        Commands {
            folder: self.slurm_bin.clone(),
            limit: Duration::from_secs_f64(self.command_limit_s),
            pulse: Pulse::default(),
            model: None,
            shows_exclusive: Default::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_and_values_out_of_range_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pleach.toml");
        let load = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Settings::load(&path).map_err(|error| error.to_string())
        };
        assert_eq!(load("").unwrap(), Settings::default());
        let settings =
            load("partition = 'gpu'\n[gpu_types.a100]\nspeed = 2.5\n[tenants]\nvision = 8").unwrap();
        assert_eq!(
            (settings.gpu_types["a100"].speed, settings.tenants["vision"]),
            (2.5, 8)
        );
        for (text, word) in [
            ("tick = 1", "tick"),
            ("tick_s = 0", "tick_s"),
            ("deadline_s = nan", "deadline_s"),
            ("fallback = 'esay'", "easy"),
            ("metrics_port = 0", "1 to 65535"),
            ("on_drift = 'panic'", "`warn`"),
            (
                "drift_window = 99",
                "drift_window = 99: allowed is 100 to 1000000",
            ),
            ("drift_window = -1", "drift_window"),
            ("drift_limit = nan", "drift_limit"),
            ("drift_limit = 0", "drift_limit = 0"),
            ("margin = -0.1", "margin = -0.1: allowed is 0 to 100"),
            ("promise_days = 0", "promise_days = 0: allowed is 0.01 to 366"),
            ("metrics_port = 65536", "65536"),
            ("share_nodes = 'g['", "share_nodes"),
            ("spare_nodes = 'g1'", "every job with GPUs is ranked"),
            ("left_partitions = ['debug']", "PriorityTier"),
            ("drive = 'hold'", "there is one way"),
            ("drive = 'order'", "take it out"),
            ("release_limit_s = 5", "there is one way"),
            ("order_step = 0", "order_step = 0: allowed is 1 to 100000"),
            ("order_updates_max = 0", "order_updates_max"),
            ("[leases]\nnamespaces = ['x']", "leases are pods"),
            ("[gpu_types.a100]\nspeed = -1", "gpu_types.a100"),
            ("[tenants]\n'*' = 3", "tenants"),
            ("[estimates]\nfrom = 'oracle'", "`history`"),
            (
                "[estimates]\nnum_last = 0",
                "estimates.num_last = 0: allowed is 1 to 50",
            ),
            ("[estimates]\nnum_users = 10001", "estimates.num_users"),
            ("[estimates]\nseed_days = 367", "estimates.seed_days"),
        ] {
            let error = load(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
