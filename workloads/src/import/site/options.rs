//! How a site's list is read.

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
}
