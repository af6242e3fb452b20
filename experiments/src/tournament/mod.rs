//! A tournament: every scheduler that we have on several kinds of workloads, each with the capabilities that it asks for,
//! under ideal and under realistic conditions.
//!
//! All meet the same workloads with the same seeds. What a scheduler asks of its cluster (preemption, sharing, mixed types)
//! it gets, so a table compares whole systems: schedulers *and* what they need. The lower bound allows everything that any
//! of them may use.
//!
//! # What is deliberately not here
//! Tuning: planners run with their published settings. And `hadare`, unless it is named: its jobs train as several averaged
//! copies whose steps are taken to add up, which no other scheduler's jobs may do and which the lower bound does not know, so
//! it would win by an assumption.

mod page;
mod play;
mod standings;

use std::time::Duration;

use pleach_env::simulate::SimConfig;
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::physics::overheads::Overheads;

pub use page::render;
pub use play::{Match, play};
pub use standings::{COLUMNS, Standing, standings, table};

use crate::contestant::Contestant;
use crate::error::Error;
use crate::estimate_source::EstimateSource;
use crate::scheduling::model;

/// Time since the program began, for the time that planning takes. It does not reach a decision.
pub type Clock<'a> = &'a (dyn Fn() -> Duration + Sync);

/// What the schedulers know and what moving a job costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Run times are known and stopping costs nothing.
    Ideal,
    /// Run times are guessed from the jobs that have ended, and stopping costs by the size of the model's state.
    Realistic,
    /// Run times are known, stopping costs.
    Overheads,
    /// Run times are guessed, stopping costs nothing.
    Estimates,
}

impl Condition {
    /// All of them.
    pub const ALL: [Condition; 4] = [
        Condition::Ideal,
        Condition::Realistic,
        Condition::Overheads,
        Condition::Estimates,
    ];

    /// Name on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Condition::Ideal => "ideal",
            Condition::Realistic => "realistic",
            Condition::Overheads => "overheads",
            Condition::Estimates => "estimates",
        }
    }

    /// In words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Condition::Ideal => "run times known, starting and stopping free",
            Condition::Realistic => {
                "run times guessed from the jobs that have ended, starting and stopping cost by state size"
            }
            Condition::Overheads => "run times known, starting and stopping cost by state size",
            Condition::Estimates => {
                "run times guessed from the jobs that have ended, starting and stopping free"
            }
        }
    }

    /// The settings of a simulation.
    #[must_use]
    pub fn sim(self) -> SimConfig {
        let costs = matches!(self, Condition::Realistic | Condition::Overheads);
        let guesses = matches!(self, Condition::Realistic | Condition::Estimates);
        let overheads = if costs { "by-state-size" } else { "zero" };
        SimConfig {
            capabilities: Capabilities {
                overheads: Overheads::from_name(overheads).ok(),
                ..Capabilities::DEFAULT
            },
            estimates: model(if guesses {
                EstimateSource::History
            } else {
                EstimateSource::Oracle
            }),
            ..SimConfig::default()
        }
    }
}

/// The workloads of the default tournament: generated, so that it needs no file.
pub const WORKLOADS: [&str; 6] = [
    "Pleach/Philly-v0",
    "helios-like",
    "gavel-multi",
    "synergy-multi",
    "pai-share",
    "sia-philly",
];

/// Planners that play only if they are named, because their jobs are not the same computation.
pub const APART: [&str; 1] = ["hadare"];

/// Everyone with a name but those [`APART`], or those that were named.
///
/// # Errors
/// An unknown name.
pub fn field(names: &[String]) -> Result<Vec<Contestant>, Error> {
    if !names.is_empty() {
        return Contestant::open_all(names);
    }
    let heuristics = pleach_scheduler::heuristics::names().iter().copied();
    let all = heuristics.chain(pleach_baselines::names());
    let names: Vec<String> = all
        .filter(|name| !APART.contains(name))
        .map(str::to_string)
        .collect();
    Contestant::open_all(&names)
}
