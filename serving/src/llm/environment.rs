//! Routing in steps: a list is drawn, each request shows its rows, and a choice earns what has been booked since the last one.

use std::borrow::Cow;

use pleach_scheduler::features::View;
use pleach_scheduler::{Problem, Rows};
use pleach_workloads::Seed;

use crate::environment::{Environment, Reward, Step, Tally, not_a_row, not_in_an_episode};
use crate::llm::columns::{self, ROUTING_2, ROW_WIDTH, SCHEMA};
use crate::llm::fleet::Fleet;
use crate::llm::generate::RequestGenerator;
use crate::llm::outcome::Outcome;
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
    pub fn new(fleet: Fleet, lists: Lists, reward: Reward) -> Result<Routing, Problem> {
        fleet.check()?;
        reward.check()?;
        Problem::refuse_if(
            matches!(&lists, Lists::Given(lists) if lists.is_empty()),
            "lists",
            0,
            "at least 1",
            "Give a list.",
        )?;
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

impl Environment for Routing {
    fn view(&self) -> View {
        ROUTING_2
    }

    fn reset(&mut self, seed: u64) -> Result<(), Problem> {
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

    fn rows(&self) -> Rows<'_> {
        Rows {
            schema: &SCHEMA,
            rows: &self.rows,
            width: ROW_WIDTH,
            context: &self.context,
            mask: &self.mask,
        }
    }

    fn step(&mut self, choice: usize) -> Result<Step, Problem> {
        let num_choices = self.mask.len();
        let Some(run) = self.run.as_mut().filter(|run| run.num_left() > 0) else {
            return Err(not_in_an_episode(choice));
        };
        if choice >= num_choices {
            return Err(not_a_row(choice, num_choices));
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

    fn take_figures(&mut self) -> Option<Vec<(&'static str, f64)>> {
        let targets = self.fleet.targets;
        let outcome = self.take_outcome()?;
        let ttft_s = |part: f64| outcome.quantile(part, |served| served.ttft_s);
        let reused = outcome.reused_tokens as f64 / outcome.prompt_tokens.max(1) as f64;
        Some(vec![
            ("num_requests", outcome.requests.len() as f64),
            ("hits_pct", 100.0 * outcome.hit_share(targets)),
            ("refused_pct", 100.0 * outcome.refused_share()),
            ("ttft_p50_s", ttft_s(0.5)),
            ("ttft_p99_s", ttft_s(0.99)),
            ("tpot_p99_s", outcome.quantile(0.99, |served| served.tpot_s)),
            ("reused_pct", 100.0 * reused),
            ("makespan_s", outcome.makespan_s),
        ])
    }
}
