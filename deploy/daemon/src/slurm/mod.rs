//! Slurm as a batch system: observed by its own commands, and given the order in which to start the jobs of one partition.

pub mod accounting;
pub mod apply;
pub mod command;
pub mod ended;
pub mod feed;
mod job;
pub mod left_over;
pub mod mark;
mod node;
pub mod observe;
mod outside;
mod pins;
pub mod queue;
pub mod ranking;
mod records;
mod request;
mod rivals;
pub mod rules;
mod scope;
pub mod seen;
pub mod shares;
pub mod site;
mod stops;
mod table;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use pleach_scheduler::ExternalId;

use crate::config::Settings;
use crate::driver::Driver;
use crate::error::Error;
use crate::forecasts::News;
use crate::history::{End, EndedJob};
use crate::pulse::Pulse;
use crate::state::State;
use crate::system::{BatchSystem, Words};

use self::apply::Scontrol;
use self::command::Commands;
use self::feed::{Feed, Line, refused};
use self::observe::Known;
use self::outside::Outsiders;
use self::pins::Pins;
use self::ranking::{Telling, Writes};
use self::rivals::Rivals;
use self::seen::Seen;
use self::stops::Stops;

/// A partition of Slurm's.
#[derive(Debug)]
pub struct Slurm {
    commands: Commands,
    partition: String,
    /// Nodes whose GPUs are given in shares.
    share_nodes: Vec<String>,
    telling: Telling,
    /// What of Slurm's own may turn neighbours round; none: it is not known yet whether it takes an order.
    weights: Option<u64>,
    writes: Mutex<Writes>,
    known: Known,
}

impl Slurm {
    /// The partition of the settings, else Slurm's default one.
    ///
    /// # Errors
    /// As [`site::partition`]; a Slurm that answers and takes no order.
    pub fn new(settings: &Settings) -> Result<Slurm, Error> {
        Slurm::by(settings.commands(), settings)
    }

    /// The same by other commands than those of the settings.
    ///
    /// # Errors
    /// As [`Slurm::new`].
    pub fn by(commands: Commands, settings: &Settings) -> Result<Slurm, Error> {
        // Where it does not answer, rounds fail until it does and is asked again.
        let weights = site::takes_order(&commands)?;
        Ok(Slurm {
            partition: site::partition(&commands, settings.partition.as_deref())?,
            commands,
            share_nodes: settings.share_nodes(),
            telling: Telling {
                step: i64::from(settings.order_step),
                updates_max: settings.order_updates_max as usize,
            },
            weights,
            writes: Mutex::new(Writes {
                feed: Feed::default(),
                pins: Pins::of(&settings.state_dir),
                rivals: Rivals::default(),
                outside: Outsiders::default(),
                stops: Stops::new(settings.preemption),
            }),
            known: Known::default(),
        })
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
        let Some(weights) = self.weights else {
            return Vec::new();
        };
        let step = self.telling.step;
        let may_turn = u64::try_from(step).is_ok_and(|step| weights >= step);
        let text = format!(
            "weights of age, fair share, size and partition sum to {weights}, and neighbours in the order are {step} apart: where they \
             differ by more, Slurm turns them round; raise `order_step` where the policy's order is to prevail"
        );
        may_turn.then_some(text).into_iter().collect()
    }

    async fn observe(&mut self, now_s: i64) -> Result<Seen, Error> {
        if self.weights.is_none() {
            self.weights = site::takes_order(&self.commands)?;
        }
        let writes = self.writes.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut seen = observe::observe(
            &self.commands,
            (&self.partition, &self.share_nodes),
            (writes.pins.names(), &mut self.known),
            now_s,
        )?;
        writes.stops.look(&self.commands, &self.partition, &mut seen);
        seen.rival = writes.rivals.by_factors(&seen.waiting.queue, now_s);
        Ok(seen)
    }

    fn foretell(&mut self, seen: &Seen, news: &[News]) -> Result<bool, String> {
        let line = |news: &News| {
            let at = UNIX_EPOCH + Duration::from_secs(u64::try_from(news.made_s).unwrap_or(0));
            let at = humantime::format_rfc3339_seconds(at);
            let bucket = news.forecast.bucket().name();
            Line::foretold(&news.job.to_string(), &format!("{bucket}-at-{at}"))
        };
        let own = news.iter().filter(|news| !seen.commented.contains(&news.job));
        let lines: Vec<Line> = own.filter_map(line).collect();
        let writes = self.writes.get_mut().unwrap_or_else(PoisonError::into_inner);
        let said = writes.feed.carry_out(&self.commands, &lines);
        refused(&said.map_err(|error| error.to_string())?).map_or(Ok(true), Err)
    }

    async fn ended(&self) -> Result<BTreeMap<ExternalId, End>, Error> {
        ended::observe(&self.commands)
    }

    async fn past(&self, _seen: &Seen, days: u32) -> Result<Vec<EndedJob>, Error> {
        accounting::observe(&self.commands, &self.partition, days)
    }

    fn hands<'a>(&'a self, seen: &'a Seen, _policy: &'a str) -> Scontrol<'a> {
        Scontrol {
            commands: &self.commands,
            seen,
            telling: self.telling,
            writes: &self.writes,
        }
    }
}
