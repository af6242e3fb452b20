//! `pleach blend`: flags.

use std::path::PathBuf;

use clap::{ArgAction, Args};

/// Blends networks that went on from the same one with other objectives: the weighted mean of their parameters is a network
/// between them, so that what counts how much is chosen where the network is used.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach train --fine-tune runs/mine --env Pleach/GavelMulti-v1 --out runs/jct
  pleach train --fine-tune runs/mine --env Pleach/GavelMulti-v1 --out runs/wait --set 'objective={avg_wait_s=1.0}'
  pleach blend --network runs/jct,runs/wait --weights 3,1 --to blend.ckpt
  pleach evaluate --workload Pleach/GavelMulti-v1 --policy runs/jct,blend.ckpt,runs/wait

Networks of different beginnings cannot be blended: their mean is no policy. Nothing in them says where they
began, so compare the blend with its ends before it is used.")]
pub struct BlendArgs {
    /// Networks: runs of `train` or checkpoints, repeated or with commas
    #[arg(long, value_name = "PATH", required = true, value_delimiter = ',', action = ArgAction::Append)]
    pub network: Vec<PathBuf>,
    /// A weight for each network, at least 0; only proportions count [default: all the same]
    #[arg(long, value_name = "W", value_delimiter = ',', action = ArgAction::Append)]
    pub weights: Vec<f64>,
    /// Checkpoint to write, NAME.ckpt
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub force: bool,
}
