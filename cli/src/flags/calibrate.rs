//! `pleach calibrate`: flags.

use std::path::PathBuf;

use clap::Args;
use pleach_experiments::evaluate::flag_values;
use pleach_scheduler::WideGangs;

use super::{ForceFlag, ReportFlags};

/// What decides where gangs are wide or run times guessed, and no other type, size or cores is there to choose.
#[derive(Args, Clone, Debug)]
pub struct WideGangsFlags {
    /// Let gpu-time-reserve decide where the jobs that run and wait have more than so many nodes each in the mean, or with a second
    /// number more than this part of all GPUs (8,0.1). Where run times are guessed gpu-time decides there, and at any width with the word
    /// guessed (8,0.1,guessed)
    #[arg(long, value_name = "NODES", value_parser = wide_gangs)]
    pub wide_gangs: Option<WideGangs>,
}

/// Reads `NODES[,PART][,guessed]`.
fn wide_gangs(text: &str) -> Result<WideGangs, String> {
    let mut words: Vec<&str> = text.split(',').collect();
    let guessed_at_any_width = words.pop_if(|word| *word == "guessed").is_some();
    let numbers: Vec<f64> = words
        .into_iter()
        .map(flag_values::not_negative)
        .collect::<Result<_, _>>()?;
    let (nodes_per_job, gpus_part) = match numbers[..] {
        [nodes] => (nodes, None),
        [nodes, part] => (nodes, Some(part)),
        _ => return Err("allowed are one number or two, and the word guessed: 8,0.1,guessed".into()),
    };
    let [policy, guessed] = WideGangs::MEASURED.map(str::to_owned);
    let wide = WideGangs {
        policy,
        nodes_per_job,
        gpus_part,
        guessed: Some(guessed),
        guessed_at_any_width,
    };
    wide.check().map_err(|error| error.to_string())?;
    Ok(wide)
}

/// Chooses what decides while the queue is short: the network, or a heuristic in its place. A network learns what to do where jobs
/// wait; on an almost empty cluster its habits can cost. Judged on lists as long as the environment's, twice as
/// long, and at loads 0.6 and 0.3; reported on others. Two rules more can be written into the network besides, or alone.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach calibrate --network runs/mine --env Pleach/PhillyGang-v1 --to careful.ckpt
  pleach calibrate --network runs/mine --unopposed --wide-gangs 8,0.1 --no-standby --to careful.ckpt
  pleach evaluate --workload Pleach/PhillyGang-v1 --load 0.3 --policy gpu-time-reserve,runs/mine,careful.ckpt")]
pub struct CalibrateArgs {
    /// A run of `train` or a checkpoint
    #[arg(long, value_name = "PATH")]
    pub network: PathBuf,
    /// Environment whose lists judge; `pleach workload` names them
    #[arg(long, value_name = "ID", required_unless_present = "no_standby")]
    pub env: Option<String>,
    /// Let the network make unopposed starts: where no other job wants the GPUs it neither holds nor places a job looser than it could
    #[arg(long)]
    pub unopposed: bool,
    /// What decides where gangs are wide.
    #[command(flatten)]
    pub wide: WideGangsFlags,
    /// Try no standby: what the network has stays
    #[arg(long, conflicts_with_all = ["env", "lists", "seed", "json"])]
    pub no_standby: bool,
    /// Lists of each part
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = flag_values::whole::<u16>(2..=1000))]
    pub lists: u16,
    /// Checkpoint to write, NAME.ckpt
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Whether it may be replaced.
    #[command(flatten)]
    pub target: ForceFlag,
    /// Seed, results as JSON, machine.
    #[command(flatten)]
    pub report: ReportFlags,
}
