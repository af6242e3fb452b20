//! Where snapshots come from: Slurm itself, or a log that was written while Slurm was watched.

pub mod accounting;
pub mod ended;
mod node;
pub(crate) mod node_list;
pub(crate) mod parts;
pub mod reason;
pub mod replay;
mod request;
pub mod shares;
pub mod site;
pub mod slurm;
mod table;
