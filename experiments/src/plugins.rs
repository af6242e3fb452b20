//! What a program of one's own has beside ours: policies, planners, rewards, generators, architectures,
//! learners and worlds, by name in every command; and commands.
//!
//! ```no_run
//! use pleach_experiments::Plugins;
//!
//! fn idle_gpus(gained: &pleach_env::world::Integrals) -> f64 {
//!     -gained.idle_gpu_s / 3600.0
//! }
//!
//! # fn main() -> Result<(), pleach_experiments::Error> {
//! // A program with a command line gives it to `pleach_cli::main_with`.
//! Plugins::new().reward("idle_gpu_hours", idle_gpus).register()
//! # }
//! ```
//!
//! Columns cannot be added: files, trees and networks know a column by its place in one list, whose width is a constant of the step
//! path (a copied or gathered row costs 5 to 10 % of a step), and a tree that reads one more could not be deployed, for the daemons
//! have no plug-ins. What a policy of one's own wants to know it reads from the cluster itself
//! ([`DecisionPoint`](pleach_scheduler::DecisionPoint)).

use pleach_agents::learner::{Learning, register_learners};
use pleach_agents::networks::{Registered, register_architectures};
use pleach_dealing::Entry;
use pleach_env::workload::generate::{self, OwnGenerator};
use pleach_env::world::Integrals;
use pleach_env::{OwnReward, register_rewards};
use pleach_scheduler::heuristics::Info;
use pleach_scheduler::policy::Policy;

use crate::command::{self, OwnCommand, Runs};
use crate::door::{self, OwnPolicy};
use crate::error::Error;
use crate::worlds::{self, Kind, OwnRoom, register_rooms};

/// What a program has beside ours. No name may be one of ours, and none twice.
#[derive(Clone, Debug, Default)]
pub struct Plugins {
    policies: Vec<OwnPolicy>,
    planners: Vec<Entry>,
    rewards: Vec<OwnReward>,
    generators: Vec<OwnGenerator>,
    architectures: Vec<Registered>,
    learners: Vec<&'static dyn Learning>,
    commands: Vec<OwnCommand>,
    rooms: Vec<OwnRoom>,
    worlds: Vec<Kind>,
}

impl Plugins {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Plugins {
        Plugins::default()
    }

    /// A policy: it scores candidates, and can be dealt by (`deal:NAME`), ordered by (`order:NAME`), imitated (`--warm-start NAME`)
    /// and pruned into a tree (`distill --teacher NAME`).
    #[must_use]
    pub fn policy(mut self, info: Info, make: fn() -> Box<dyn Policy>) -> Plugins {
        self.policies.push(OwnPolicy { info, make });
        self
    }

    /// A planner: it plans whole instants. An order of all waiting jobs is one,
    /// `InOrder::new(NAME, Ranker::by_order(NAME, number_of_a_job))`.
    #[must_use]
    pub fn planner(mut self, entry: Entry) -> Plugins {
        self.planners.push(entry);
        self
    }

    /// A sum over time that rewards may name: what is paid for what a step has gained.
    #[must_use]
    pub fn reward(mut self, name: &str, of: fn(&Integrals) -> f64) -> Plugins {
        self.rewards.push(OwnReward {
            name: name.to_string(),
            of,
        });
        self
    }

    /// A generator of jobs: a preset of its own.
    #[must_use]
    pub fn generator(mut self, generator: OwnGenerator) -> Plugins {
        self.generators.push(generator);
        self
    }

    /// An architecture of networks ([`pleach_agents::networks::architecture`]).
    #[must_use]
    pub fn architecture(mut self, architecture: Registered) -> Plugins {
        self.architectures.push(architecture);
        self
    }

    /// A way to learn (`train --learner NAME`).
    #[must_use]
    pub fn learner(mut self, learner: &'static dyn Learning) -> Plugins {
        self.learners.push(learner);
        self
    }

    /// A command of its own, with flags as ours have them.
    #[must_use]
    pub fn command<A: Runs>(mut self) -> Plugins {
        self.commands.push(OwnCommand::of::<A>());
        self
    }

    /// A world: it gets every verb, by `--workload NAME` (`evaluate`, `distill --search`, `train`, `explain`, `export`, `sweep`).
    #[must_use]
    pub fn world(mut self, kind: Kind) -> Plugins {
        self.worlds.push(kind);
        self
    }

    /// Rooms that serve.
    #[must_use]
    pub fn room(mut self, room: OwnRoom) -> Plugins {
        self.rooms.push(room);
        self
    }

    /// Names all of it, once in a program and before anything is read.
    ///
    /// # Errors
    /// A name that is taken or is none; a second call.
    pub fn register(self) -> Result<(), Error> {
        door::register(self.policies, self.planners)?;
        command::register(self.commands)?;
        register_rooms(self.rooms)?;
        worlds::register(self.worlds)?;
        register_rewards(self.rewards)?;
        generate::register(self.generators)?;
        register_architectures(self.architectures)?;
        Ok(register_learners(self.learners)?)
    }
}
