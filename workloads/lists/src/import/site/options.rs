//! How a site's list is read.

use std::path::PathBuf;

use super::{Mapping, NodeTable};
use crate::import::ImportOptions;

/// How a site's list is read.
#[derive(Clone, Debug, Default)]
pub struct SiteOptions {
    /// Which column means what; guessed where absent.
    pub mapping: Option<Mapping>,
    /// The site's nodes. They are the cluster where the options name none, and say which types a partition has.
    pub nodes: Option<NodeTable>,
    /// Window, cluster, walls.
    pub import: ImportOptions,
    /// How long after the end of the list jobs are said to start that wait then, s; none: they are left out. Slurm's alone.
    pub later_s: Option<f64>,
    /// The file beside the list from which the cluster of the options was read; found by the reader.
    pub beside: Option<PathBuf>,
}

impl SiteOptions {
    /// Where the cluster of the options comes from.
    pub(super) fn cluster_note(&self) -> String {
        match &self.beside {
            Some(path) => format!("cluster: {}, beside the list", path.display()),
            None => "cluster: given by the caller".to_owned(),
        }
    }
}
