//! Slurm as a batch system: observed and driven by its own commands, on one partition.

pub mod accounting;
pub mod apply;
pub mod command;
pub mod ended;
pub mod lua;
pub mod mark;
mod node;
pub(crate) mod node_list;
pub mod observe;
pub(crate) mod parts;
pub mod reason;
mod request;
pub mod seen;
pub mod shares;
pub mod site;
mod table;

use std::collections::BTreeMap;

use pleach_scheduler::ExternalId;

use crate::config::Settings;
use crate::driver::Driver;
use crate::error::Error;
use crate::history::{End, EndedJob};
use crate::pulse::Pulse;
use crate::state::State;
use crate::system::{BatchSystem, Words};

use self::apply::Scontrol;
use self::command::Commands;
use self::seen::Seen;

/// A partition of Slurm's.
#[derive(Clone, Debug)]
pub struct Slurm {
    commands: Commands,
    partition: String,
    /// Nodes whose GPUs are given in shares.
    share_nodes: Vec<String>,
    release_limit_s: i64,
}

impl Slurm {
    /// The partition of the settings, else Slurm's default one.
    ///
    /// # Errors
    /// As [`site::partition`].
    pub fn new(settings: &Settings) -> Result<Slurm, Error> {
        let commands = settings.commands();
        Ok(Slurm {
            partition: site::partition(&commands, settings.partition.as_deref())?,
            commands,
            share_nodes: settings.share_nodes(),
            release_limit_s: settings.release_limit_s,
        })
    }

    /// A driver of Slurm with a policy of that name or in that file. Takes the folder.
    ///
    /// # Errors
    /// Settings out of their ranges, a policy that does not fit, a folder that another daemon has, a Slurm without a default
    /// partition where none is named.
    pub fn driver(settings: &Settings, policy: &str, is_shadow: bool) -> Result<Driver<Slurm>, Error> {
        settings.validate()?;
        let state = State::take(&settings.state_dir, settings.log())?;
        let system = Slurm::new(settings)?;
        Driver::new(
            system,
            settings.rounds(),
            state,
            settings.metrics_port,
            (policy, is_shadow),
        )
    }
}

impl BatchSystem for Slurm {
    type Look = Seen;
    type Hands<'a> = Scontrol<'a>;
    type Error = Error;

    const WORDS: Words = Words {
        scheduler: "Slurm",
        left_alone: ("jobs_left_to_slurm", "Jobs that are left to Slurm"),
        place: "partition ",
        held: "jobs",
        program: "pleach-scheduler",
    };

    fn place(&self) -> String {
        self.partition.clone()
    }

    fn pulse(&self) -> Pulse {
        self.commands.pulse.clone()
    }

    async fn observe(&mut self, now_s: i64) -> Result<Seen, Error> {
        observe::observe(&self.commands, &self.partition, &self.share_nodes, now_s)
    }

    async fn ended(&self) -> Result<BTreeMap<ExternalId, End>, Error> {
        ended::observe(&self.commands)
    }

    async fn past(&self, _seen: &Seen, days: u32) -> Result<Vec<EndedJob>, Error> {
        accounting::observe(&self.commands, &self.partition, days)
    }

    fn hands<'a>(&'a self, seen: &'a Seen, _policy: &'a str) -> Scontrol<'a> {
        Scontrol::new(&self.commands, seen, self.release_limit_s)
    }
}
