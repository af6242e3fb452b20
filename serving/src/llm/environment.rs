//! Routing in steps: a list is drawn, each request shows its rows, and a choice earns what has been booked since the last one.

use std::borrow::Cow;

use pleach_scheduler::{ConfigError, Rows};
use pleach_workloads::Seed;
use serde::{Deserialize, Serialize};

use crate::llm::columns::{self, ROW_WIDTH, SCHEMA};
use crate::llm::fleet::Fleet;
use crate::llm::generate::RequestGenerator;
use crate::llm::outcome::{Outcome, Tally, Targets};
use crate::llm::request::Requests;
use crate::llm::simulate::Run;

/// Where the list of an episode comes from.
#[derive(Clone, Debug)]
pub enum Lists {
    /// Drawn with the episode's seed.
    Drawn(RequestGenerator),
    /// One of these, at least one, by the episode's seed.
    Given(Vec<Requests>),
}

/// What a request earns when it is booked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reward {
    /// Served within both targets.
    pub hit: f64,
    /// Served later.
    pub miss: f64,
    /// Refused.
    pub refused: f64,
}

impl Default for Reward {
    /// The return is hits less all others.
    fn default() -> Reward {
        Reward {
            hit: 1.0,
            miss: -1.0,
            refused: -1.0,
        }
    }
}

impl Reward {
    fn check(self) -> Result<(), ConfigError> {
        for (key, value) in [("hit", self.hit), ("miss", self.miss), ("refused", self.refused)] {
            if !(-1e6..=1e6).contains(&value) {
                let key = format!("reward.{key}");
                return Err(ConfigError::new(key, value, "-1000000 to 1000000", "Try 1."));
            }
        }
        Ok(())
    }

    fn of(self, now: Tally, before: Tally) -> f64 {
        let gained = |figure: fn(&Tally) -> u64| (figure(&now) - figure(&before)) as f64;
        self.hit * gained(|tally| tally.hits)
            + self.miss * gained(|tally| tally.misses)
            + self.refused * gained(|tally| tally.refused)
    }
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Of what was booked since the last step; the last one books all that was in the air.
    pub reward: f64,
    /// Until the next request, s; 0 in the last step.
    pub dt_s: f64,
    /// No request is left.
    pub is_last: bool,
}

/// The environment: the loop of [`simulate`](crate::llm::simulate), one request at a time.
#[derive(Clone, Debug)]
pub struct Routing {
    fleet: Fleet,
    lists: Lists,
    reward: Reward,
    run: Option<Run<'static>>,
    rows: Vec<f32>,
    context: Vec<f32>,
    mask: Vec<bool>,
}

impl Routing {
    /// An environment before its first episode.
    ///
    /// # Errors
    /// A number out of range, no list.
    pub fn new(fleet: Fleet, lists: Lists, reward: Reward) -> Result<Routing, ConfigError> {
        fleet.check()?;
        reward.check()?;
        if matches!(&lists, Lists::Given(lists) if lists.is_empty()) {
            return Err(ConfigError::new("lists", 0, "at least 1", "Give a list."));
        }
        let num_choices = fleet.num_replicas + usize::from(fleet.may_refuse);
        Ok(Routing {
            rows: vec![0.0; num_choices * ROW_WIDTH],
            context: vec![0.0; SCHEMA.of_context().count()],
            mask: vec![true; num_choices],
            run: None,
            fleet,
            lists,
            reward,
        })
    }

    /// Rows of a decision: replicas in their order, and refusing where it is allowed.
    #[must_use]
    pub fn num_choices(&self) -> usize {
        self.mask.len()
    }

    /// What users expect.
    #[must_use]
    pub fn targets(&self) -> Targets {
        self.fleet.targets
    }

    /// Begins an episode. The same seed is the same episode.
    ///
    /// # Errors
    /// A list that cannot be drawn, or that no replica can hold.
    pub fn reset(&mut self, seed: u64) -> Result<(), ConfigError> {
        let list = match &self.lists {
            Lists::Drawn(generator) => generator.draw(Seed(seed))?,
            Lists::Given(lists) => lists[(seed % lists.len() as u64) as usize].clone(),
        };
        let mut run = Run::new(Cow::Owned(list), Cow::Owned(self.fleet.clone()))?;
        run.meet();
        columns::write(&run.decision(), &mut self.rows, &mut self.context);
        self.run = Some(run);
        Ok(())
    }

    /// What is to be decided: rows `[C, F]` and context `[G]` of [`SCHEMA`], all of them admissible.
    #[must_use]
    pub fn rows(&self) -> Rows<'_> {
        Rows {
            schema: &SCHEMA,
            rows: &self.rows,
            width: ROW_WIDTH,
            context: &self.context,
            mask: &self.mask,
        }
    }

    /// Takes a row. In the last step the rows stay as they were.
    ///
    /// # Errors
    /// A row that is not there; a step before the first episode or after the last request.
    pub fn step(&mut self, choice: usize) -> Result<Step, ConfigError> {
        let num_choices = self.num_choices();
        let Some(run) = self.run.as_mut().filter(|run| run.num_left() > 0) else {
            return Err(ConfigError::new(
                "step",
                choice,
                "a step of an episode",
                "Reset it.",
            ));
        };
        if choice >= num_choices {
            let allowed = format!("0 to {}", num_choices - 1);
            return Err(ConfigError::new("action", choice, allowed, "Take a row."));
        }
        let (before, then_s) = (run.tally(), run.now_s());
        run.send((choice < self.fleet.num_replicas).then_some(choice));
        let is_last = !run.meet();
        if !is_last {
            columns::write(&run.decision(), &mut self.rows, &mut self.context);
        }
        Ok(Step {
            reward: self.reward.of(run.tally(), before),
            dt_s: run.now_s() - then_s,
            is_last,
        })
    }

    /// Of an episode that has ended, once; none before.
    pub fn take_outcome(&mut self) -> Option<Outcome> {
        self.run.take_if(|run| run.num_left() == 0).map(Run::into_outcome)
    }

    /// What has been booked in this episode.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.run.as_ref().map_or(Tally::default(), Run::tally)
    }
}
