//! Where snapshots come from: Slurm itself, or a log that was written while Slurm was watched.

pub mod accounting;
pub mod ended;
mod node;
mod node_list;
pub mod replay;
pub mod slurm;
mod table;
