//! Dispatching in steps: each instant shows what may be run, dropped or left waiting, until nothing more is started there.

use std::borrow::Cow;

use pleach_scheduler::features::View;
use pleach_scheduler::{Problem, Rows};
use pleach_workloads::Seed;
use rand::RngExt as _;

use super::app::Work;
use super::arrivals::Arrivals;
use super::columns::{DISPATCHING_1, ROW_WIDTH, SCHEMA, Short, Table, rows_max, short};
use super::engine::Run;
use super::outcome::Outcome;
use super::platform::Platform;
use crate::environment::{Environment, Reward, Step, Tally, not_a_row, not_in_an_episode};

/// The environment: the loop of [`simulate`](super::simulate) under a [`ScorerDispatcher`](super::ScorerDispatcher), one choice at
/// a time. Rows are those of [`SCHEMA`] that there are, in their order, and zeros after them.
pub struct Dispatching {
    work: Work,
    platform: Platform,
    arrivals: Arrivals,
    loads: (f64, f64),
    reward: Reward,
    short: Short,
    run: Option<Run<'static>>,
    table: Table,
    /// Rows, those that there are not among them.
    rows: Vec<f32>,
    mask: Vec<bool>,
    num_choices: usize,
    is_over: bool,
}

impl Dispatching {
    /// An environment before its first episode, each of which has its load drawn evenly from `loads`, over that of the arrivals.
    ///
    /// # Errors
    /// A number out of range.
    pub fn new(
        work: Work,
        platform: Platform,
        arrivals: Arrivals,
        loads: (f64, f64),
        reward: Reward,
    ) -> Result<Dispatching, Problem> {
        reward.check()?;
        Problem::refuse_if(
            !(loads.0 > 0.0 && loads.0 <= loads.1),
            "loads",
            format_args!("{} to {}", loads.0, loads.1),
            "above 0, ascending",
            "Give the least and the most times the load.",
        )?;
        // An episode's load lies between the two, so both ends being allowed is all that it takes.
        for end in [loads.0, loads.1] {
            arrivals.times(end).check()?;
        }
        let short = short(&work);
        let num_rows = rows_max(&work, &short);
        let env = Dispatching {
            rows: vec![0.0; num_rows * ROW_WIDTH],
            mask: vec![false; num_rows],
            table: Table::new(),
            num_choices: 0,
            is_over: true,
            run: None,
            short,
            work,
            platform,
            arrivals,
            loads,
            reward,
        };
        env.episode(0)?;
        Ok(env)
    }

    /// # Errors
    /// A number out of range.
    fn episode(&self, seed: u64) -> Result<Run<'static>, Problem> {
        let seed = Seed(seed);
        let (least, most) = self.loads;
        let part: f64 = seed.stream("load", 0).random();
        let arrivals = self.arrivals.times(least + (most - least) * part);
        let (work, platform) = (Cow::Owned(self.work.clone()), Cow::Owned(self.platform.clone()));
        Run::drawn(work, platform, &arrivals, seed)
    }

    /// Goes on until there is something to choose. False where nothing more happens.
    fn meet(&mut self, mut is_in_pass: bool) -> bool {
        let Some(run) = &mut self.run else {
            return false;
        };
        loop {
            if is_in_pass {
                self.table.write(&run.state(), &self.short);
                if !self.table.choices.is_empty() {
                    break;
                }
            }
            if !run.meet() {
                return false;
            }
            is_in_pass = true;
        }
        let (num, before) = (self.table.choices.len(), self.num_choices);
        self.rows[..num * ROW_WIDTH].copy_from_slice(&self.table.rows);
        self.mask[..num].fill(true);
        if num < before {
            self.rows[num * ROW_WIDTH..before * ROW_WIDTH].fill(0.0);
            self.mask[num..before].fill(false);
        }
        self.num_choices = num;
        true
    }

    /// What has been booked in this episode.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.run
            .as_ref()
            .map_or(Tally::default(), |run| tally(run.outcome()))
    }

    /// Of an episode that has ended, once; none before.
    pub fn take_outcome(&mut self) -> Option<Outcome> {
        let is_over = self.is_over;
        self.run.take_if(|_| is_over).map(Run::into_outcome)
    }
}

fn tally(outcome: &Outcome) -> Tally {
    Tally {
        hits: outcome.hits,
        misses: outcome.late,
        refused: outcome.shed + outcome.expired,
    }
}

impl Environment for Dispatching {
    fn view(&self) -> View {
        DISPATCHING_1
    }

    fn reset(&mut self, seed: u64) -> Result<(), Problem> {
        self.run = Some(self.episode(seed)?);
        // A request that has come has a row, for all nodes are free.
        self.is_over = !self.meet(false);
        Ok(())
    }

    fn rows(&self) -> Rows<'_> {
        Rows {
            schema: &SCHEMA,
            rows: &self.rows,
            width: ROW_WIDTH,
            context: &self.table.context,
            mask: &self.mask,
        }
    }

    fn step(&mut self, choice: usize) -> Result<Step, Problem> {
        let (num_choices, is_over) = (self.num_choices, self.is_over);
        let Some(run) = self.run.as_mut().filter(|_| !is_over) else {
            return Err(not_in_an_episode(choice));
        };
        if choice >= num_choices {
            return Err(not_a_row(choice, num_choices));
        }
        let (before, then_us) = (tally(run.outcome()), run.now_us());
        let goes_on = self.table.choices[choice].take(&mut run.state());
        let is_last = !self.meet(goes_on);
        self.is_over = is_last;
        let (mut now, mut now_us) = (before, then_us);
        if let Some(run) = &mut self.run {
            if is_last {
                run.state().close();
            }
            (now, now_us) = (tally(run.outcome()), run.now_us());
        }
        Ok(Step {
            reward: self.reward.of(now, before),
            dt_s: 1e-6 * (now_us - then_us) as f64,
            is_last,
        })
    }

    fn take_figures(&mut self) -> Option<Vec<(&'static str, f64)>> {
        let outcome = self.take_outcome()?;
        let latency_s = |part: f64| 1e-6 * outcome.latencies.quantile_us(part);
        Some(vec![
            ("num_requests", outcome.num_requests as f64),
            ("hits_pct", 100.0 * outcome.hit_share()),
            ("refused_pct", 100.0 * outcome.dropped_share()),
            ("usd_per_1000_hits", outcome.usd_per_1000_hits()),
            ("latency_p50_s", latency_s(0.5)),
            ("latency_p99_s", latency_s(0.99)),
            ("batch", outcome.batch_mean()),
            ("cold_starts", outcome.cold_starts as f64),
            ("makespan_s", 1e-6 * outcome.makespan_us as f64),
        ])
    }
}
