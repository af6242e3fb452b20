//! Which sweep, and where its results are: what all steps but the first take.

use std::path::{Path, PathBuf};

use clap::Args;

/// Which sweep, and where its results are.
#[derive(Args, Clone, Debug)]
pub struct SweepPlace {
    /// The manifest that `plan` wrote
    #[arg(long, value_name = "FILE")]
    pub manifest: PathBuf,
    /// Folder of the results [default: the manifest's folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

impl SweepPlace {
    /// The folder of the results.
    #[must_use]
    pub fn out(&self) -> &Path {
        let beside = self
            .manifest
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        self.out
            .as_deref()
            .unwrap_or_else(|| beside.unwrap_or(Path::new(".")))
    }
}
