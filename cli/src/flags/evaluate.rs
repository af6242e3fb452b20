//! `pleach evaluate`: flags.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};
use pleach_env::availability::AvailabilityConfig;
use pleach_env::batch_system::BatchSystem;
use pleach_env::failures::OutcomeModel;
use pleach_env::workload::import::Format;
use pleach_experiments::evaluate::estimate_source::EstimateSource;
use pleach_experiments::evaluate::evaluation::EvaluationConfig;
use pleach_experiments::evaluate::metric::MAIN_METRIC;
use pleach_experiments::evaluate::sim_config::SchedulingConfig;
use pleach_experiments::evaluate::workload_source::WorkloadSource;
use pleach_experiments::run_folder::atomic_file::read_toml;
use pleach_experiments::train::objective::known_metrics;
use pleach_scheduler::cluster::Sharing;
use pleach_scheduler::physics::overheads::Overheads;
use serde::Serialize;

use super::RunArgs;
use super::number;

/// Largest plan of nodes that come and go, bytes: a million changes.
const CAPACITY_BYTES_MAX: u64 = 1 << 26;
/// Largest file of a batch system, bytes.
const BATCH_SYSTEM_BYTES_MAX: u64 = 1 << 16;

/// Compares policies. Every policy meets every workload with every seed, so results come in pairs.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach evaluate                                       all heuristics on the default workload
  pleach evaluate --policy fifo,srtf --seeds 10 --reference fifo
  pleach evaluate --policy srtf,tiresias,tiresias-gittins --preemption
  pleach evaluate --policy srtf --policy runs/mine/tree.json --workload philly-like --load 0.9
  pleach evaluate --workload trace.csv --format philly --cluster cluster.toml --from-day 30 --days 7
  pleach evaluate --estimates lognormal:1 --preemption --restart-cost-s 30 --html report.html
  pleach evaluate --workload Pleach/GavelMulti-v1 --policy best-type-delay,runs/mine --ablate

The ratio column is the geometric mean of paired ratios of --metric (the average JCT) with a 95 % bootstrap interval.
Fewer than ten pairs are a hint and not a result: give --seeds 10, or --window-days for a trace, of which
nothing is drawn.")]
pub struct EvaluateArgs {
    /// Policies by name or file, repeated or with commas [default: all heuristics]
    #[arg(long, value_name = "NAME|PATH", value_delimiter = ',', action = ArgAction::Append)]
    pub policy: Vec<String>,
    /// Settings of planners in TOML, one table for each (tiresias.quantum_gpu_s = 1000). `pleach policies --show NAME` prints the
    /// defaults
    #[arg(long, value_name = "FILE")]
    pub policy_config: Option<PathBuf>,
    /// Measure the others against this one [default: the first policy]
    #[arg(long, value_name = "NAME")]
    pub reference: Option<String>,
    /// Metric of the paired ratios, by its key: p99_jct_s, avg_slowdown, makespan_s, ...
    #[arg(long, value_name = "METRIC", default_value = MAIN_METRIC, value_parser = PossibleValuesParser::new(known_metrics()), hide_possible_values = true)]
    pub metric: String,
    /// Which jobs on which cluster.
    #[command(flatten)]
    pub workload: WorkloadFlags,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingFlags,
    /// Seeds to run each policy and workload with; one run is made where nothing is drawn, as of a trace with known run times
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub seeds: u32,
    /// Also compare with one thing after the other taken away (the cost of loose placements, differences of GPU types, sharing,
    /// preemption, what is known of run times, restarts, sizes, cores): where does a gain come from?
    #[arg(long)]
    pub ablate: bool,
    /// Also write one CSV row for each (policy, workload, seed) to this file; with --out they are in its folder anyway
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub csv: Option<PathBuf>,
    /// Also write the report to this file; with --out it is in its folder anyway
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Seed, output and machine.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Which jobs, and on which cluster.
#[derive(Args, Clone, Debug, Default, Serialize)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadFlags {
    /// Presets, environment ids or trace files, repeated or with commas; `pleach workload list` names them
    #[arg(long, value_name = "FILE|PRESET", value_delimiter = ',', action = ArgAction::Append, default_value = "Pleach/Philly-v0")]
    pub workload: Vec<String>,
    /// Layout of trace files, see docs/workloads.md [default: by the file's first lines]
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    pub format: Option<Format>,
    /// Cluster description in TOML or JSON [default: the workload's own]
    #[arg(long, value_name = "FILE")]
    pub cluster: Option<PathBuf>,
    /// First day of a trace to take, from 0
    #[arg(long, value_name = "DAY", value_parser = number::not_negative)]
    pub from_day: Option<f64>,
    /// Days of a trace to take
    #[arg(long, value_name = "DAYS", value_parser = number::positive)]
    pub days: Option<f64>,
    /// Cut a trace into windows of so many days; each becomes a workload of its own, so results come in more pairs
    #[arg(long, value_name = "DAYS", value_parser = number::positive)]
    pub window_days: Option<f64>,
    /// Make walls of a trace's virtual clusters: each keeps to its own GPUs [default: one shared cluster]
    #[arg(long)]
    pub virtual_clusters: bool,
    /// Jobs to take or to generate
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub num_jobs: Option<u32>,
    /// Offered load: stretches the times between arrivals so that the mean demand is this part of the cluster
    #[arg(long, value_name = "LOAD", value_parser = number::load)]
    pub load: Option<f64>,
}

/// What the scheduler may do, and what it knows.
#[derive(Args, Clone, Debug, Default, Serialize)]
#[command(next_help_heading = "Scheduling")]
pub struct SchedulingFlags {
    /// Let policies stop running jobs and start them again later [default: the environment's, else not]
    #[arg(long)]
    pub preemption: bool,
    /// Let a gang run on several GPU types, at the pace of the slowest; only planners make use of it
    #[arg(long)]
    pub mixed_types: bool,
    /// What policies believe about lengths: oracle, user, history (learned from ended jobs), lognormal:SIGMA or
    /// lognormal:SIGMA:BIAS, or a table as grids have it [default: the environment's, else oracle]
    #[arg(long, value_name = "SOURCE")]
    pub estimates: Option<EstimateSource>,
    /// Seconds that a job loses whenever it starts again [default: the environment's, else 30]
    #[arg(long, value_name = "S", value_parser = number::not_negative)]
    pub restart_cost_s: Option<f64>,
    /// What starts and restarts cost by a published model, instead of --restart-cost-s: zero, pollux30, shockwave20,
    /// by-state-size, tacc-empirical or sia-model
    #[arg(long, value_name = "NAME", value_parser = overheads, conflicts_with = "restart_cost_s")]
    pub overheads: Option<Overheads>,
    /// Let policies put two jobs on the same GPUs [default: the environment's, else off]
    #[arg(long, value_name = "HOW")]
    pub sharing: Option<SharingArg>,
    /// Let jobs fail, be retried, be killed and be given up, as published for a cluster: none, philly or helios
    #[arg(long, value_name = "NAME", value_parser = outcomes)]
    pub outcomes: Option<OutcomeModel>,
    /// Let nodes fail, each once in so many days on average; repairs take an hour on average
    #[arg(long, value_name = "DAYS", value_parser = number::positive)]
    pub node_mtbf_days: Option<f64>,
    /// Let nodes be drained, taken and returned as this TOML file plans: a list `changes` of at_s, node and state (up, draining
    /// or down)
    #[arg(long, value_name = "FILE", value_parser = capacity)]
    pub capacity: Option<AvailabilityConfig>,
    /// Seconds of work between two checkpoints: what a failure can cost a job [default: a failure loses nothing]
    #[arg(long, value_name = "S", value_parser = number::positive)]
    pub checkpoint_interval_s: Option<f64>,
    /// Let decisions be carried out by a batch system, with its rounds and delays: slurm, or a TOML file with tick_s,
    /// start_delay_s, end_delay_s, requeue_delay_s, failure_delay_s and whole_nodes [default: the environment's, else they
    /// happen at once]
    #[arg(long, value_name = "NAME|FILE", value_parser = batch_system)]
    pub batch_system: Option<BatchSystem>,
}

impl EvaluateArgs {
    /// What is compared, without flags and without where results go.
    #[must_use]
    pub fn config(&self) -> EvaluationConfig {
        EvaluationConfig {
            policy: self.policy.clone(),
            policy_config: self.policy_config.clone(),
            reference: self.reference.clone(),
            metric: self.metric.clone(),
            workload: self.workload.source(),
            scheduling: self.scheduling.config(),
            seeds: self.seeds,
            seed: self.run.seed,
        }
    }
}

impl WorkloadFlags {
    /// The same without flags.
    #[must_use]
    pub fn source(&self) -> WorkloadSource {
        WorkloadSource {
            workload: self.workload.clone(),
            format: self.format,
            cluster: self.cluster.clone(),
            from_day: self.from_day,
            days: self.days,
            window_days: self.window_days,
            virtual_clusters: self.virtual_clusters,
            num_jobs: self.num_jobs,
            load: self.load,
        }
    }
}

impl SchedulingFlags {
    /// The same without flags.
    #[must_use]
    pub fn config(&self) -> SchedulingConfig {
        SchedulingConfig {
            preemption: self.preemption,
            mixed_types: self.mixed_types,
            estimates: self.estimates,
            restart_cost_s: self.restart_cost_s,
            overheads: self.overheads,
            sharing: self.sharing.map(Sharing::from),
            outcomes: self.outcomes.clone(),
            node_mtbf_days: self.node_mtbf_days,
            capacity: self.capacity.clone(),
            checkpoint_interval_s: self.checkpoint_interval_s,
            batch_system: self.batch_system,
        }
    }
}

/// Reads the plan of nodes that come and go.
fn capacity(path: &str) -> Result<AvailabilityConfig, String> {
    let config: AvailabilityConfig =
        read_toml(Path::new(path), CAPACITY_BYTES_MAX).map_err(|error| error.to_string())?;
    config.validate().map_err(|error| error.to_string())?;
    Ok(config)
}

/// A batch system by its name, or by a file of its times.
fn batch_system(text: &str) -> Result<BatchSystem, String> {
    let found: BatchSystem = if text.ends_with(".toml") {
        read_toml(Path::new(text), BATCH_SYSTEM_BYTES_MAX).map_err(|error| error.to_string())?
    } else {
        BatchSystem::from_name(text).map_err(|error| error.to_string())?
    };
    found.validate().map_err(|error| error.to_string())?;
    Ok(found)
}

fn outcomes(text: &str) -> Result<OutcomeModel, String> {
    OutcomeModel::from_name(text).map_err(|error| error.to_string())
}

fn overheads(text: &str) -> Result<Overheads, String> {
    Overheads::from_name(text).map_err(|error| error.to_string())
}

/// How two jobs can run on the same GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharingArg {
    /// They cannot
    Off,
    /// In turn
    TimeSlice,
    /// At once (MPS)
    Mps,
}

impl From<SharingArg> for Sharing {
    fn from(arg: SharingArg) -> Sharing {
        match arg {
            SharingArg::Off => Sharing::Off,
            SharingArg::TimeSlice => Sharing::TimeSlice,
            SharingArg::Mps => Sharing::Mps,
        }
    }
}

/// Takes the words of the formats.
pub fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::word)).try_map(|word| {
        let known = Format::ALL.into_iter().find(|format| format.word() == word);
        known.ok_or("not a format")
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Cli, Command};
    use super::*;
    use clap::Parser as _;

    fn parse(line: &str) -> Result<EvaluateArgs, String> {
        match Cli::try_parse_from(line.split_whitespace())
            .map_err(|error| error.to_string())?
            .command
        {
            Command::Evaluate(args) => Ok(args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn policies_may_be_repeated_or_listed() {
        let args = parse("pleach evaluate --policy fifo,srtf --policy tree.json").unwrap();
        assert_eq!(args.policy, ["fifo", "srtf", "tree.json"]);
        assert_eq!(args.workload.workload, ["Pleach/Philly-v0"]);
    }

    #[test]
    fn every_format_of_the_importer_is_a_value() {
        for format in Format::ALL {
            let args = parse(&format!("pleach evaluate --format {}", format.word())).unwrap();
            assert_eq!(args.workload.format, Some(format));
        }
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_allowed_set() {
        assert!(
            parse("pleach evaluate --load 0")
                .unwrap_err()
                .contains("0.01 to 10")
        );
        assert!(
            parse("pleach evaluate --estimates guess")
                .unwrap_err()
                .contains("lognormal:SIGMA")
        );
        assert!(
            parse("pleach evaluate --format x")
                .unwrap_err()
                .contains("philly")
        );
        assert!(parse("pleach evaluate --seeds 0").is_err());
        assert!(parse("pleach evaluate --force --resume").is_err());
    }

    #[test]
    fn where_results_go_and_how_many_threads_make_them_is_no_part_of_the_configuration() {
        let line = "pleach evaluate --load 0.9 --estimates oracle";
        let one = parse(&format!("{line} --threads 1 --out a --json b --html c --quiet")).unwrap();
        let two = parse(&format!("{line} --threads 8")).unwrap();
        let value = |args: &EvaluateArgs| serde_json::to_value(args.config()).unwrap();
        assert_eq!(value(&one), value(&two));
        assert_eq!(value(&one)["workload"]["load"], 0.9);
        assert_eq!(value(&one)["scheduling"]["estimates"], "oracle");
        // As it has always been written: folders are named after it.
        assert_eq!(
            toml::to_string(&one.config()).unwrap(),
            "policy = []\nmetric = \"avg_jct_s\"\nseeds = 10\n\n[workload]\nworkload = [\"Pleach/Philly-v0\"]\n\
             virtual_clusters = false\nload = 0.9\n\n[scheduling]\npreemption = false\nmixed_types = false\n\
             estimates = \"oracle\"\n"
        );
    }
}
