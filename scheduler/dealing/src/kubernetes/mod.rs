//! The policies `kubernetes` and `kubernetes-gangs`: what kube-scheduler does with the same jobs, by the site's own settings.
//!
//! A [`Queue`] says which pod is tried, a [`Scoring`] which node it gets, [`victims`] whose pods leave for it. Under `kubernetes`
//! the pods of a gang are placed one by one: those that have a place hold it, idle, until all have one. Under `kubernetes-gangs` (native
//! `PodGroup`s) they are placed all or none. A simulator gives priority classes by `Planner::read_labels`, as qualities of service.
//!
//! # Source
//! A real kube-scheduler 1.36.3, recorded with all its attempts, and its sources. Each rule names its own.
//!
//! # What is deliberately not here
//! The loop without pause in which the real one tries a gang of which one pod fits; preemption for gangs; disruption budgets,
//! affinities and spreading; kubelets and the time in which a removed pod ends. A removed pod keeps the progress that jobs of the
//! list keep.

mod config;
mod planner;
mod pods;
mod preemption;
mod queue;
mod score;

pub use config::{KubernetesConfig, Scoring, Strategy};
pub use planner::Kubernetes;
pub use preemption::{Bound, victims};
pub use queue::Queue;
