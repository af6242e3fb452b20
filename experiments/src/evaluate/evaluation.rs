//! A comparison as one configuration: what `pleach evaluate` does, without flags, files of results or a terminal.

use std::path::PathBuf;
use std::time::Duration;

use crate::evaluate::flag_values;
use clap::{ArgAction, Args};
use pleach_env::SimConfig;
use pleach_env::availability::AvailabilityConfig;
use pleach_env::schedule::Record;
use pleach_scheduler::{ActionSet, Problem};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::instances::{Instance, seeds};
use super::metric::{MAIN_METRIC, METRICS, Metric};
use super::results::Results;
use super::run::Runner;
use super::sim_config::SchedulingConfig;
use super::stand_in::stand_ins;
use super::workload_source::{DEFAULT_WORKLOAD, WorkloadSource};
use crate::command::grid_table::{self, Group};
use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::progress::Watcher;
use crate::run_folder::atomic_file::read_toml;
use crate::schedule::run_of;

/// Largest file with settings of planners, bytes.
const POLICY_CONFIG_BYTES_MAX: u64 = 1 << 20;

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

/// A comparison that can begin: everything that is named is there and fits.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Who is compared.
    pub policies: Vec<PolicySpec>,
    /// The simulated cluster.
    pub sim: SimConfig,
    config: EvaluationConfig,
    metric: &'static Metric,
    reference: Option<String>,
}

impl Evaluation {
    /// Opens the policies, and refuses before the work what would be found out after it.
    ///
    /// # Errors
    /// [`Error::Problem`] for what is unknown, out of range, or asks for more than the cluster can do; files that cannot be
    /// used.
    pub fn open(config: &EvaluationConfig) -> Result<Evaluation, Error> {
        Evaluation::of(config, DOOR.open_all(&config.policy)?)
    }

    /// The same with policies that are there already, instead of those that the configuration names.
    ///
    /// # Errors
    /// As [`Evaluation::open`].
    pub fn of(config: &EvaluationConfig, mut policies: Vec<PolicySpec>) -> Result<Evaluation, Error> {
        no_settings(&config.set)?;
        if let Some(path) = &config.policy_config {
            let settings: serde_json::Value = read_toml(path, POLICY_CONFIG_BYTES_MAX)?;
            PolicySpec::configure(&mut policies, &settings)?;
        }
        let reference = reference(config, &policies)?;
        config.workload.check()?;
        config.scheduling.check()?;
        let sim = config.scheduling.sim(&config.workload.workload);
        for policy in &policies {
            policy.check(sim.capabilities)?;
        }
        if !(1..=10_000).contains(&config.seeds) {
            return Err(Error::config(
                "seeds",
                config.seeds,
                "1 to 10000",
                "Ten is usual.",
            ));
        }
        let metric = Metric::find(&config.metric).ok_or_else(|| {
            let known: Vec<&str> = METRICS.iter().map(|metric| metric.key).collect();
            Error::config("metric", &config.metric, known.join(", "), "avg_jct_s is usual.")
        })?;
        Ok(Evaluation {
            policies,
            sim,
            config: config.clone(),
            metric,
            reference,
        })
    }

    /// All workloads with their seeds; `note` is told what importers mended.
    ///
    /// # Errors
    /// A workload that cannot be made.
    pub fn instances(&self, note: &mut dyn FnMut(String)) -> Result<Vec<Instance>, Error> {
        let seeds = seeds(self.config.seed, "test", self.config.seeds as usize);
        self.config.workload.instances(&self.sim, &seeds, note)
    }

    /// Runs every policy on every instance.
    ///
    /// # Errors
    /// The first run, in the order of instances and policies, that failed.
    pub fn run(&self, instances: &[Instance], watcher: &Watcher) -> Result<Results, Error> {
        Ok(self.run_recorded(instances, watcher)?.0)
    }

    /// The same with the record of the schedules: their runs have no segments unless the simulation is to record them.
    ///
    /// # Errors
    /// As [`Evaluation::run`].
    pub fn run_recorded(
        &self,
        instances: &[Instance],
        watcher: &Watcher,
    ) -> Result<(Results, Record), Error> {
        // The instances have their facts.
        let sim = SimConfig {
            class_facts: false,
            ..self.sim.clone()
        };
        let runner = Runner::new(&sim).watched("evaluate", watcher);
        let timed = runner.run_timed(instances, &self.policies, &|| Duration::ZERO)?;
        let (mut runs, mut record) = (Vec::with_capacity(timed.len()), Record::default());
        for (index, timed) in timed.into_iter().enumerate() {
            if self.sim.record_segments {
                let instance = &instances[index / self.policies.len()];
                let (policy, seed) = (&timed.run.policy, instance.seed);
                record
                    .runs
                    .push(run_of(policy, &instance.workload, seed, timed.segments));
            }
            runs.push(timed.run);
        }
        let results = Results::by(self.metric, "evaluate", runs, self.reference.as_deref())?;
        let results = results.drawn(self.config.workload.is_drawn(&self.sim)?);
        let results = results.in_world(self.sim.in_words());
        let results = results.with_stand_ins(stand_ins(&self.policies, instances, &self.sim));
        Ok((results, record))
    }

    /// Columns of the table, with those that only this cluster has something to say in.
    #[must_use]
    pub fn columns(&self) -> Vec<&'static str> {
        let mut columns = COLUMNS.to_vec();
        let can = self.sim.capabilities.actions();
        if !can.intersection(ActionSet::STOPPING).is_empty() {
            columns.push("preemptions");
        }
        if self.sim.outcomes.is_some() || self.sim.capacity != AvailabilityConfig::default() {
            columns.extend(["failures", "lost_work"]);
        }
        columns
    }
}

/// Runs every policy on every workload with every seed.
///
/// ```
/// use pleach_experiments::{EvaluationConfig, evaluate};
///
/// let config: EvaluationConfig = toml::from_str(
///     "policy = ['fifo', 'srtf']\nseeds = 2\n[workload]\nworkload = ['philly-like']\nnum_jobs = 40",
/// )?;
/// let results = evaluate(&config)?;
/// assert_eq!(results.runs().len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`Evaluation::open`], [`Evaluation::instances`] and [`Evaluation::run`].
pub fn evaluate(config: &EvaluationConfig) -> Result<Results, Error> {
    let evaluation = Evaluation::open(config)?;
    let instances = evaluation.instances(&mut |_| {})?;
    evaluation.run(&instances, &Watcher::nobody())
}

/// Whom the others are measured against; checked before the work.
fn reference(config: &EvaluationConfig, policies: &[PolicySpec]) -> Result<Option<String>, Error> {
    let names: Vec<&str> = policies.iter().map(PolicySpec::name).collect();
    match &config.reference {
        Some(name) if !names.contains(&name.as_str()) => Err(Error::config(
            "reference",
            name,
            names.join(", "),
            "Name a policy of this comparison.",
        )),
        Some(name) => Ok(Some(name.clone())),
        None => Ok(names.first().map(ToString::to_string)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_without_flags_is_run_and_refused_as_the_command_line_is() {
        let text =
            "policy = ['fifo', 'sjf']\nseeds = 2\n[workload]\nworkload = ['philly-like']\nnum_jobs = 30";
        let config: EvaluationConfig = toml::from_str(text).unwrap();
        let results = evaluate(&config).unwrap();
        let drawn: Vec<u64> = seeds(0, "test", 2).iter().map(|seed| seed.0).collect();
        let run: Vec<u64> = results.runs().iter().map(|run| run.seed).collect();
        assert_eq!(run, [drawn[0], drawn[0], drawn[1], drawn[1]]);
        assert_eq!(results.reference(), Some("fifo"));
        for (text, words) in [
            ("reference = 'sjf'\npolicy = ['fifo']", "reference = sjf"),
            ("seeds = 0", "1 to 10000"),
            (
                "[scheduling]\nnode_mtbf_days = 0.0",
                "node_mtbf_days = 0: allowed is above 0",
            ),
            (
                "[scheduling]\nrestart_cost_s = 1.0\noverheads = { model = 'tacc-empirical' }",
                "none beside overheads",
            ),
            ("metric = 'jct'", "avg_jct_s"),
            ("[workload]\nworkload = ['philly-like']\nload = 0", "0.01 to 10"),
            (
                "[workload]\nworkload = ['philly-like']\nnum_jobs = 0",
                "1 to 10000000",
            ),
            ("[workload]\nworkload = ['philly-like']\ndays = -1.0", "above 0"),
        ] {
            let config: EvaluationConfig = toml::from_str(text).unwrap();
            let said = evaluate(&config).unwrap_err();
            assert!(
                said.to_string().contains(words) && said.exit_code() == 2,
                "{text}: {said}"
            );
        }
    }
}
