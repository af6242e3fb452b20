//! A comparison as one configuration: what `pleach evaluate` does, without flags, files of results or a terminal.

use std::path::PathBuf;

use crate::evaluate::flag_values;
use clap::{ArgAction, Args};
use pleach_scheduler::Problem;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::metric::MAIN_METRIC;
use super::sim_config::SchedulingConfig;
use super::workload_source::{DEFAULT_WORKLOAD, WorkloadSource};
use crate::command::grid_table::{self, Group};
use crate::error::Error;

/// Columns of the table of a comparison.
pub const COLUMNS: [&str; 9] = [
    "avg_jct_s",
    "avg_jct_gap",
    "p99_jct_s",
    "avg_slowdown",
    "avg_wait_s",
    "makespan_s",
    "makespan_gap",
    "utilisation",
    "fairness",
];

/// Which policies meet which workloads with which seeds, in what cluster. The fields are flags of `pleach evaluate` too, in these
/// words.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EvaluationConfig {
    /// Policies by name or file: heuristics, planners (`pleach policies` lists both), policy files, formulas of an index, run folders,
    /// `deal:` before a heuristic or a policy file, `order:` before any policy or dealer, or LABEL=PATH; repeated or with commas,
    /// each once; files with policies of the same name are called by their folders [default: all heuristics]
    #[arg(long, value_name = "NAME|PATH", value_delimiter = ',', action = ArgAction::Append)]
    pub policy: Vec<String>,
    /// Settings of planners in TOML, one table for each (tiresias.quantum_gpu_s = 1000). `pleach policies --show NAME` prints the
    /// defaults
    #[arg(long, value_name = "FILE")]
    pub policy_config: Option<PathBuf>,
    /// Measure the others against this one [default: the first policy]
    #[arg(long, value_name = "NAME")]
    pub reference: Option<String>,
    /// Metric of the paired ratios and of their plot, by its key: p99_jct_s, avg_slowdown, makespan_s, ...; a policy with a value of 0
    /// has none
    #[arg(long, value_name = "METRIC", default_value = MAIN_METRIC)]
    pub metric: String,
    /// Change a setting of a world that is not of jobs, repeated: `pleach workload` lists worlds and keys
    #[arg(long, value_name = "KEY=VALUE", action = ArgAction::Append, help_heading = "Workload")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "pairs")]
    pub set: Vec<String>,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
    /// Seeds to run each policy and workload with, 1 to 10,000; one run is made where nothing is drawn, as of a trace with known run
    /// times
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = flag_values::whole::<u32>(1..=10_000))]
    pub seeds: u32,
    /// Root of all randomness. It is read, and not written: what is written of a run has it beside the configuration.
    #[arg(skip)]
    #[serde(skip_serializing)]
    pub seed: u64,
}

impl Default for EvaluationConfig {
    fn default() -> EvaluationConfig {
        EvaluationConfig {
            policy: Vec::new(),
            policy_config: None,
            reference: None,
            metric: MAIN_METRIC.to_string(),
            set: Vec::new(),
            workload: WorkloadSource::of(DEFAULT_WORKLOAD),
            scheduling: SchedulingConfig::default(),
            seeds: 10,
            seed: 0,
        }
    }
}

/// Refuses settings of a world that has none: that of jobs has flags.
///
/// # Errors
/// A setting.
pub fn no_settings(pairs: &[String]) -> Result<(), Error> {
    let Some(pair) = pairs.first() else {
        return Ok(());
    };
    let allowed = "none of a world of jobs, which has flags";
    let hint = "Name another world with --workload; pleach workload lists them.";
    Err(Error::config("set", pair, allowed, hint))
}

/// Settings as `KEY=VALUE`, or as a table.
fn pairs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Pairs(Vec<String>),
        Table(serde_json::Map<String, serde_json::Value>),
    }
    Ok(match Either::deserialize(from)? {
        Either::Pairs(pairs) => pairs,
        Either::Table(table) => table
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect(),
    })
}

impl EvaluationConfig {
    /// The metric where it was chosen, and is not what jobs are compared by anyway.
    #[must_use]
    pub fn own_metric(&self) -> Option<String> {
        (self.metric != MAIN_METRIC).then(|| self.metric.clone())
    }

    /// The same from a table of settings, as a grid has it.
    ///
    /// # Errors
    /// A key that there is not, a value of another kind.
    pub fn of_table(table: Map<String, Value>) -> Result<EvaluationConfig, Problem> {
        let groups = [
            Group::of::<WorkloadSource>("workload"),
            Group::of::<SchedulingConfig>("scheduling"),
        ];
        let mut config: EvaluationConfig = grid_table::read("evaluate", table, &groups)?;
        if config.workload.workload.is_empty() {
            config.workload.workload = vec![DEFAULT_WORKLOAD.to_owned()];
        }
        Ok(config)
    }
}
