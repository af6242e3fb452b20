//! `pleach distill seal`: flags.

use std::path::PathBuf;

use clap::Args;

/// Makes a tree ready to be deployed: puts certificates, golden vectors and the fallback into its file. What decides is not
/// changed. Golden vectors are rows on and beside every threshold with what the tree says of them, as one hash: whoever reads the
/// file checks it.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach distill seal runs/mine/tree.json
  pleach distill seal tree.json --fallback gpu-time-reserve
  pleach distill seal tree.json --fallback gpu-time-reserve --gpu-types-max 1
                            which decides on clusters of several GPU types too

Seal again after every edit: docs/policy-file.md, Sealing.")]
pub struct SealArgs {
    /// A policy file with a tree
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The heuristic that decides where the tree cannot, in a daemon whose settings name none [default: what the file says]
    #[arg(long, value_name = "NAME")]
    pub fallback: Option<String>,
    /// Most GPU types of a cluster on which the tree decides; on others its fallback does [default: what the file says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub gpu_types_max: Option<u32>,
}
