//! `pleach train`: flags.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, Resettable, TypedValueParser as _};
use pleach_agents::{Device, Learner};
use pleach_experiments::evaluate::flag_values;
use pleach_experiments::{SchedulingConfig, WorkloadSource};
use serde::Serialize;

use super::{RunArgs, SettingsFlags};

/// Flags that say how a run is begun; clap has a group of all flags of a structure by its name.
const OF_A_NEW_RUN: [&str; 11] = [
    "env",
    "reward",
    "learner",
    "config",
    "set",
    "warm_start",
    "fine_tune",
    "env_steps",
    "num_envs",
    "WorkloadSource",
    "SchedulingConfig",
];

/// Trains a network. Everything that shapes the result is in the configuration; flags override single values of it.
#[derive(Args, Clone, Debug, Serialize)]
#[command(mut_arg("workload", |flag| flag.default_value(Resettable::Reset).conflicts_with("env").help("Lists of your own, presets \
    or environment ids to train on, as evaluate plays them, repeated or with commas. Of a list the first six tenths of the jobs \
    train, the next two choose, the last two are left for evaluate [default: that of --env]")))]
#[command(mut_arg("format", |flag| flag.requires("workload")), mut_arg("cluster", |flag| flag.requires("workload")))]
#[command(mut_arg("from_day", |flag| flag.requires("workload")), mut_arg("days", |flag| flag.requires("workload")))]
#[command(mut_arg("virtual_clusters", |flag| flag.requires("workload")))]
#[command(after_help = "\
Examples:
  pleach train                                          imitate the best heuristic, then PPO, on Pleach/Philly-v0
  pleach train --learner evolution --env Pleach/GavelMulti-v1   as pleach suite does, in minutes; in the same time ahead
                                                        of PPO on the two tasks measured (docs/learning.md)
  pleach train --env Pleach/GavelMulti-v1 --env-steps 5000000 --num-envs 64 --out runs/mine
  pleach train --warm-start srtf --env-steps 0          only learn to do as a heuristic does
  pleach train --learner evolution --set 'objective={avg_jct_s=1.0,p99_jct_s=0.2}' --set train.num_updates=100
  pleach train --config train.toml
  pleach train --workload month.csv --cluster 16x8:A100 --estimates history --preemption --learner evolution
                                                        on a list of your own, in the words of pleach evaluate
  pleach train --fine-tune checkpoints/reference/GavelMulti-v1.ckpt --config mine.toml
                                                        go on from a network with jobs and a cluster of your own
  pleach train --device wgpu --set train.ppo.minibatch_size=8192   needs a build with --features wgpu
  pleach train --out runs/mine --resume                 go on after an interruption, with the run's own settings and seed
  pleach train --out runs/mine --extend 100             train a finished run for a hundred updates more
  pleach train --learner evolution --out runs/mine --units 4      with three more processes, here or on other machines that
  pleach train --out runs/mine --unit 1                 see the folder, as array tasks: sbatch --array=1-3 ... --unit $SLURM_ARRAY_TASK_ID

What is given twice is taken from the later of: built in (for the learner), --config, --env, --set, the other flags.
The configuration that was used is in the run's folder as settings.toml and can be given back with --config.
The same seed gives the same bytes on any number of threads, resumed or not, on the CPU. A GPU rounds differently, so that
its runs equal those of the CPU within rounding at first and part later; a run may go on on another device.")]
pub struct TrainArgs {
    /// Environment id [default: from the configuration, or else Pleach/Philly-v0]
    #[arg(long, value_name = "ID")]
    pub env: Option<String>,
    /// Learning algorithm; selects its default settings [default: ppo]
    #[arg(long, value_name = "LEARNER", value_parser = PossibleValuesParser::from(learners()).try_map(learner_named), conflicts_with = "config")]
    pub learner: Option<Learner>,
    /// Settings of the learner.
    #[command(flatten)]
    #[serde(flatten)]
    pub settings: SettingsFlags,
    /// Imitate this heuristic or planner before PPO begins: a name, best (on the validation workloads), or none
    #[arg(long, value_name = "NAME")]
    pub warm_start: Option<String>,
    /// Go on from this network, a checkpoint or a run's folder, with the jobs and the cluster given here
    #[arg(long, value_name = "PATH", conflicts_with = "warm_start")]
    pub fine_tune: Option<PathBuf>,
    /// What PPO is paid: an expression of sums over time, such as `-jobs_in_system_s / total_run_s - 0.1 * idle_gpu_s / total_gpu_s`,
    /// whose names and units docs/learning.md lists [default: from the configuration, or else -jct]
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    pub reward: Option<String>,
    /// Decisions to train for [default: from the configuration]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u64>(0..=1_000_000_000_000))]
    pub env_steps: Option<u64>,
    /// Environments that step together [default: from the configuration]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u32>(1..=65_536))]
    pub num_envs: Option<u32>,
    /// Which jobs on which cluster, instead of an environment.
    #[command(flatten)]
    pub workload: WorkloadSource,
    /// What the scheduler may do and knows.
    #[command(flatten)]
    pub scheduling: SchedulingConfig,
    /// Train the run in --out for so many updates or generations more, with its own settings and seed
    #[arg(long, value_name = "N", requires = "out", value_parser = flag_values::whole::<u64>(1..=1_000_000_000_000),
        conflicts_with_all = OF_A_NEW_RUN, conflicts_with = "force")]
    #[serde(skip)]
    pub extend: Option<u64>,
    /// Where gradients are taken: cuda and wgpu need a build with that feature, a driver, and a minibatch of thousands of
    /// decisions to pay (pleach bench --only devices says how many)
    #[arg(long, value_name = "DEVICE", default_value = "cpu", help_heading = "Machine",
        value_parser = PossibleValuesParser::new(Device::ALL.map(Device::name)).map(|name| Device::named(&name).unwrap_or_default()))]
    #[serde(skip)]
    pub device: Device,
    /// Processes that play each generation of evolution together, this one among them; the others are started with --unit. The
    /// result does not depend on them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = flag_values::whole::<u32>(1..=1024), help_heading = "Machine")]
    #[serde(skip)]
    pub units: u32,
    /// Be such a process: play part K, 1 to N - 1, of the generations of the training in --out until that ends
    #[arg(long, value_name = "K", requires = "out", value_parser = flag_values::whole::<u32>(1..=1023), help_heading = "Machine",
        conflicts_with_all = OF_A_NEW_RUN, conflicts_with_all = ["extend", "device", "units"])]
    #[serde(skip)]
    pub unit: Option<u32>,
    /// Seed, output and machine.
    #[command(flatten)]
    #[serde(skip)]
    pub run: RunArgs,
}

/// Names of learners, those of a program's own among them, each with what it does.
fn learners() -> Vec<PossibleValue> {
    let all = pleach_agents::learner::all();
    all.map(|learner| PossibleValue::new(learner.name()).help(learner.doc()))
        .collect()
}

/// A learner of `--learner`, whose parser has let no other name through.
#[expect(clippy::needless_pass_by_value, reason = "clap gives the text away")]
pub(super) fn learner_named(name: String) -> Result<Learner, String> {
    Learner::find(&name).ok_or_else(|| format!("there is no learner {name}"))
}
