//! Nodes, racks, GPUs and links: what of them is free, what fits where, and how gangs lie.

pub(in crate::cluster) mod beside;
pub(in crate::cluster) mod consolidated;
pub(in crate::cluster) mod fit;
pub(in crate::cluster) mod free;
pub(in crate::cluster) mod free_counts;
pub(in crate::cluster) mod gang_links;
pub(in crate::cluster) mod links;
pub(in crate::cluster) mod node_set;
pub(in crate::cluster) mod nodes;
pub(in crate::cluster) mod place;
pub(in crate::cluster) mod place_changes;
pub(in crate::cluster) mod shared;
pub(in crate::cluster) mod task_limits;
pub(in crate::cluster) mod tasks;
pub(in crate::cluster) mod wide;

#[cfg(test)]
mod consolidated_tests;
#[cfg(test)]
mod link_tests;
#[cfg(test)]
mod tasks_tests;
