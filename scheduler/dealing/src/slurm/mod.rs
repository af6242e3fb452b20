//! The policy `slurm`: what a site's own Slurm does with the same jobs, by its own settings.
//!
//! Two schedulers ([`State`]): the main one starts jobs in the order of their priorities until one cannot start; backfill plans
//! every job in each cycle. Priorities are those of `priority/multifactor` ([`Priority`], [`Tree`]), limits those of associations
//! and qualities of service ([`Usage`]). A simulator gives users, accounts, partitions and qualities of service by
//! `Planner::read_labels`.
//!
//! # Source
//! A real Slurm 22.05.8, recorded with its plans, factors and shares; slurm.conf(5). Each rule names its own.
//!
//! # What is deliberately not here
//! Reservations, remote licences, jobs in several partitions at once, `--exclusive` in the simulator (no list says them), and the
//! lag of the classic fair share. Fractions of GPUs start first come, first served, where they fit beside all
//! others.

mod asks;
mod config;
mod factors;
mod fair_share;
mod features;
mod limits;
mod nodes;
mod planner;
mod preempt;
mod rules;
mod schedule;

pub(crate) use asks::modelled;
pub use config::{Each, Limit, Partition, Preempt, Qos, Scope, SlurmConfig};
pub use factors::{Facts, Priority};
pub use fair_share::{ROOT, Share, Tree};
pub use features::{licences, matching};
pub use limits::{Allowed, Usage};
pub use nodes::{Ask, NodeSet, Nodes, Room};
pub use planner::Slurm;
pub use rules::Rules;
pub use schedule::{Bounds, Group, Planned, State, Waiting};
