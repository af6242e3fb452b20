//! `pleach export`: flags.

use std::path::PathBuf;

use clap::Args;
use pleach_experiments::worlds::requests::DeploymentConfig;

use super::FormsFlag;

const FORMS: &str = "Forms to write, repeated or with commas: c, rust, go, python, onnx; of a network onnx alone; of a tree that \
                     routes requests also gie, llm-d-router (docs/serving.md)";

/// Writes a tree as source code of other languages or for the runtimes of ONNX. What runs
/// answers bit for bit as the tree; the rows are the features of `pleach policies --features`, scaled. A network is written for the runtimes of
/// ONNX, which round differently; such a file, ours or of another program, is a policy here too.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("to", |to| to.required(true).help(FORMS)))]
#[command(after_help = "\
Examples:
  pleach export runs/mine/tree.json --to c,python --out export
  pleach export tree.json --to c,rust,go,python,onnx --out export
  pleach export runs/mine/network.ckpt --to onnx
  pleach export router.json --to gie --model llama-3-8b --gpu H100 --refuse    a plug-in of the inference gateway's picker
  pleach evaluate --workload Pleach/Philly-v0 --policy sjf,network.onnx    a network of PyTorch decides as well as ours")]
pub struct ExportArgs {
    /// A policy file with a tree, or a network
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Forms to write.
    #[command(flatten)]
    pub forms: FormsFlag,
    /// Folder for the files; files of the same names there are replaced
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// What is baked into plug-ins of endpoint pickers.
    #[command(flatten)]
    pub deployment: DeploymentConfig,
}
