//! What is done to the batch system.

pub mod slurm;
