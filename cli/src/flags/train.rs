//! `pleach train`: flags.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use pleach_agents::Device;
use pleach_experiments::evaluate::flag_values;
use pleach_experiments::train::TrainRequest;

use super::RunArgs;

/// Trains a network. Everything that shapes the result is in the configuration; flags override single values of it.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach train                                          imitate the best heuristic, then learn from forks, on Pleach/Philly-v0
  pleach train --learner evolution --env Pleach/GavelMulti-v1   as pleach suite does, in minutes
  pleach train --env Pleach/GavelMulti-v1 --set train.num_updates=400 --out runs/mine
  pleach train --learner imitation --warm-start srtf    only learn to do as a heuristic does
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
    /// How it is begun.
    #[command(flatten)]
    pub request: TrainRequest,
    /// Train the run in --out for so many updates or generations more, with its own settings and seed
    #[arg(long, value_name = "N", requires = "out", value_parser = flag_values::whole::<u64>(1..=1_000_000_000_000),
        conflicts_with_all = TrainRequest::GROUPS, conflicts_with = "force")]
    pub extend: Option<u64>,
    /// Where gradients are taken: cuda and wgpu need a build with that feature, a driver, and a minibatch of thousands of
    /// decisions to pay (pleach bench --only devices says how many)
    #[arg(long, value_name = "DEVICE", default_value = "cpu", help_heading = "Machine",
        value_parser = PossibleValuesParser::new(Device::ALL.map(Device::name)).map(|name| Device::named(&name).unwrap_or_default()))]
    pub device: Device,
    /// Processes that play each generation of evolution together, this one among them; the others are started with --unit. The
    /// result does not depend on them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = flag_values::whole::<u32>(1..=1024), help_heading = "Machine")]
    pub units: u32,
    /// Be such a process: play part K, 1 to N - 1, of the generations of the training in --out until that ends
    #[arg(long, value_name = "K", requires = "out", value_parser = flag_values::whole::<u32>(1..=1023), help_heading = "Machine",
        conflicts_with_all = TrainRequest::GROUPS, conflicts_with_all = ["extend", "device", "units"])]
    pub unit: Option<u32>,
    /// Seed, output and machine.
    #[command(flatten)]
    pub run: RunArgs,
}
