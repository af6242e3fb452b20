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

Seal again after every edit: docs/policy-file.md, Sealing.")]
pub struct SealArgs {
    /// A policy file with a tree
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The heuristic that decides where the tree cannot, in a daemon whose settings name none [default: what the file says]
    #[arg(long, value_name = "NAME")]
    pub fallback: Option<String>,
}
