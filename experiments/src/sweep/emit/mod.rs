//! A sweep as a file for a system that hands out indexes: a job array of Slurm, an Indexed Job of Kubernetes, a driver for Ray.
//!
//! Each form calls `pleach sweep unit --index K` and acts on its exit code, the same in all three: 0 is done; 75, and an
//! end by a signal, are tried again so many times; 1 and 2 are not, since a unit is a function of its configuration and
//! would end so again. A unit whose result is there ends at once, so every file may be run again at any time.
//!
//! # What is deliberately not here
//! Submitting anything: the file does that where a person runs it. Knowledge of a cluster beyond what a flag says.

mod call;
mod kubernetes;
mod ray;
mod slurm;
mod words;

pub use call::Call;
pub use kubernetes::{KubernetesConfig, MOUNT, Volume, kubernetes};
pub use ray::ray;
pub use slurm::{SlurmConfig, slurm};
