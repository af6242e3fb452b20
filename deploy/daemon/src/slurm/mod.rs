//! Slurm as a batch system: observed and driven by its own commands, on one partition.

pub mod accounting;
mod apart;
pub mod apply;
pub mod command;
pub mod ended;
pub mod feed;
pub mod holding;
mod job;
pub mod lua;
pub mod mark;
mod node;
pub mod observe;
mod outside;
pub(crate) mod parts;
mod pins;
pub mod queue;
pub mod ranking;
pub mod reason;
mod records;
mod request;
mod rivals;
pub mod rules;
pub mod scope;
pub mod seen;
pub mod shares;
pub mod site;
mod standing;
mod table;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pleach_scheduler::ExternalId;

use crate::config::Settings;
use crate::drive::Drive;
use crate::driver::Driver;
use crate::error::Error;
use crate::history::{End, EndedJob};
use crate::pulse::Pulse;
use crate::state::State;
use crate::system::{BatchSystem, Words};

use self::apply::Scontrol;
use self::command::Commands;
use self::feed::Feed;
use self::outside::Outsiders;
use self::pins::Pins;
use self::ranking::{Telling, Writes};
use self::rivals::Rivals;
use self::scope::Scope;
use self::seen::Seen;

/// A partition of Slurm's.
#[derive(Debug)]
pub struct Slurm {
    commands: Commands,
    partition: String,
    /// Nodes whose GPUs are given in shares.
    share_nodes: Vec<String>,
    /// Nodes that the policy does not use.
    spare_nodes: Vec<String>,
    /// Partitions on the same nodes whose jobs are left to Slurm.
    left_partitions: Vec<String>,
    release_limit_s: i64,
    /// How long the last look took.
    look_took: Duration,
    /// How the order is told; none: jobs are held and let go.
    telling: Option<Telling>,
    /// What of Slurm's own may turn neighbours round; none: it is not known yet whether it takes an order.
    weights: Option<u64>,
    writes: Mutex<Writes>,
}

impl Slurm {
    /// The partition of the settings, else Slurm's default one.
    ///
    /// # Errors
    /// As [`site::partition`]; a Slurm that answers and takes no order, where it is to be told one.
    pub fn new(settings: &Settings) -> Result<Slurm, Error> {
        Slurm::by(settings.commands(), settings)
    }

    /// The same by other commands than those of the settings.
    ///
    /// # Errors
    /// As [`Slurm::new`].
    pub fn by(commands: Commands, settings: &Settings) -> Result<Slurm, Error> {
        let is_order = settings.drive.is_order();
        // Where it does not answer, rounds fail until it does and is asked again.
        let weights = match is_order {
            true => site::takes_order(&commands)?,
            false => None,
        };
        Ok(Slurm {
            partition: site::partition(&commands, settings.partition.as_deref())?,
            commands,
            share_nodes: settings.share_nodes(),
            spare_nodes: settings.spare_nodes(),
            left_partitions: settings.left_partitions.clone(),
            release_limit_s: settings.release_limit_s,
            look_took: Duration::ZERO,
            telling: is_order.then(|| Telling {
                step: i64::from(settings.order_step),
                updates_max: settings.order_updates_max as usize,
                places: settings.drive == Drive::OrderAndPlace,
            }),
            weights,
            writes: Mutex::new(Writes {
                feed: Feed::default(),
                pins: Pins::of(&settings.state_dir),
                rivals: Rivals::default(),
                outside: Outsiders::default(),
            }),
        })
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            partition: &self.partition,
            left_partitions: &self.left_partitions,
            spare_nodes: &self.spare_nodes,
        }
    }

    /// A driver of Slurm with a policy of that name or in that file. Takes the folder.
    ///
    /// # Errors
    /// Settings out of their ranges, a policy that does not fit, a folder that another daemon has, a Slurm without a default
    /// partition where none is named.
    pub fn driver(settings: &Settings, policy: &str, is_shadow: bool) -> Result<Driver<Slurm>, Error> {
        Slurm::driver_by(settings.commands(), settings, policy, is_shadow)
    }

    /// The same by other commands than those of the settings.
    ///
    /// # Errors
    /// As [`Slurm::driver`].
    pub fn driver_by(
        commands: Commands,
        settings: &Settings,
        policy: &str,
        is_shadow: bool,
    ) -> Result<Driver<Slurm>, Error> {
        settings.validate()?;
        let state = State::take(&settings.state_dir, settings.log())?;
        let system = Slurm::by(commands, settings)?;
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

    fn warnings(&self) -> Vec<String> {
        let (Some(telling), Some(weights)) = (self.telling, self.weights) else {
            let names = self.left_partitions.join(", ");
            let words = "jobs of these partitions start before who waits here, for they are left to Slurm (`left_partitions`)";
            let is_left = self.telling.is_none() && !names.is_empty();
            return is_left.then(|| format!("{words}: {names}")).into_iter().collect();
        };
        let may_turn = u64::try_from(telling.step).is_ok_and(|step| weights >= step);
        let text = format!(
            "weights of age, fair share, size and partition sum to {weights}, and neighbours in the order are {} apart: where they \
             differ by more, Slurm turns them round; raise `order_step` where the policy's order is to prevail",
            telling.step
        );
        may_turn.then_some(text).into_iter().collect()
    }

    async fn observe(&mut self, now_s: i64) -> Result<Seen, Error> {
        if self.telling.is_none() {
            let began = Instant::now();
            let seen = observe::observe(&self.commands, &self.scope(), &self.share_nodes, now_s);
            self.look_took = began.elapsed();
            let mut seen = seen?;
            let writes = self.writes.get_mut().unwrap_or_else(PoisonError::into_inner);
            seen.rival = writes.rivals.by_marks(&seen.snapshot);
            return Ok(seen);
        }
        if self.weights.is_none() {
            self.weights = site::takes_order(&self.commands)?;
        }
        let writes = self.writes.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut seen = observe::observe_queue(&self.commands, &self.partition, writes.pins.names(), now_s)?;
        seen.rival = writes.rivals.by_factors(&seen.waiting.queue, now_s);
        Ok(seen)
    }

    async fn ended(&self) -> Result<BTreeMap<ExternalId, End>, Error> {
        ended::observe(&self.commands)
    }

    async fn past(&self, _seen: &Seen, days: u32) -> Result<Vec<EndedJob>, Error> {
        accounting::observe(&self.commands, &self.partition, days)
    }

    fn hands<'a>(&'a self, seen: &'a Seen, _policy: &'a str) -> Scontrol<'a> {
        Scontrol::new(
            &self.commands,
            seen,
            (self.release_limit_s, self.look_took),
            (self.telling, &self.writes),
        )
    }
}
