//! Placing in steps: each stage that becomes ready joins a context's queue, is held back once, or takes its frame with it.

use std::borrow::Cow;

use pleach_scheduler::features::View;
use pleach_scheduler::{Problem, Rows};
use pleach_workloads::Seed;

use super::columns::{CONTEXT_WIDTH, PLACING_1, ROW_WIDTH, SCHEMA, write};
use super::policy::Discipline;
use super::simulate::{Run, State};
use super::{Gpu, Outcome, released};
use pleach_serving::environment::{Environment, Reward, Step, Tally, not_a_row, not_in_an_episode};

/// The environment: the loop of [`simulate`](super::simulate), one stage at a time, of cameras whose first releases are the
/// episode's ([`released::cameras`]). Rows are the contexts in their order, holding back and giving up.
pub struct Placing {
    gpu: Gpu,
    discipline: Discipline,
    num_cameras: usize,
    run: Run,
    reward: Reward,
    state: Option<State<'static>>,
    is_over: bool,
    rows: Vec<f32>,
    context: [f32; CONTEXT_WIDTH],
    mask: Vec<bool>,
}

impl Placing {
    /// An environment before its first episode. The run's seed is not used.
    ///
    /// # Errors
    /// A number out of range.
    pub fn new(
        gpu: Gpu,
        discipline: Discipline,
        num_cameras: usize,
        run: Run,
        reward: Reward,
    ) -> Result<Placing, Problem> {
        reward.check()?;
        let num_rows = gpu.contexts().len() + 2;
        let env = Placing {
            gpu,
            discipline,
            num_cameras,
            run,
            reward,
            state: None,
            is_over: true,
            rows: vec![0.0; num_rows * ROW_WIDTH],
            context: [0.0; CONTEXT_WIDTH],
            mask: vec![true; num_rows],
        };
        env.episode(0)?;
        Ok(env)
    }

    fn episode(&self, seed: u64) -> Result<State<'static>, Problem> {
        let run = Run {
            seed: Seed(seed),
            ..self.run
        };
        let tasks = Cow::Owned(released::cameras(self.num_cameras, Seed(seed))?);
        State::new(Cow::Owned(self.gpu.clone()), tasks, self.discipline, run)
    }

    /// Goes on to the next stage that is to be placed. False where nothing more happens.
    fn meet(&mut self) -> bool {
        let Some(state) = &mut self.state else {
            return false;
        };
        if !state.meet() {
            return false;
        }
        let decision = state.decision();
        write(&decision, self.num_cameras, &mut self.rows, &mut self.context);
        let hold = self.mask.len() - 2;
        self.mask[hold] = !decision.was_held && decision.begin_us() > decision.now_us;
        true
    }

    /// What has been booked in this episode.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.state
            .as_ref()
            .map_or(Tally::default(), |state| tally(state.outcome()))
    }

    /// Of an episode that has ended, once; none before.
    pub fn take_outcome(&mut self) -> Option<Outcome> {
        let is_over = self.is_over;
        self.state.take_if(|_| is_over).map(|state| state.outcome())
    }
}

fn tally(outcome: Outcome) -> Tally {
    Tally {
        hits: outcome.met,
        misses: outcome.late,
        refused: outcome.skipped,
    }
}

impl Environment for Placing {
    fn view(&self) -> View {
        PLACING_1
    }

    fn reset(&mut self, seed: u64) -> Result<(), Problem> {
        self.state = Some(self.episode(seed)?);
        self.is_over = !self.meet();
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
        let (num_choices, is_over) = (self.mask.len(), self.is_over);
        let Some(state) = self.state.as_mut().filter(|_| !is_over) else {
            return Err(not_in_an_episode(choice));
        };
        if choice >= num_choices {
            return Err(not_a_row(choice, num_choices));
        }
        if !self.mask[choice] {
            let hint = "The mask says which rows may be taken.";
            return Err(Problem::new("action", choice, "a row but holding back", hint));
        }
        let (before, then_us) = (tally(state.outcome()), state.now_us());
        if choice + 2 < num_choices {
            state.join(choice)?;
        } else if choice + 2 == num_choices {
            let until_us = state.decision().begin_us();
            state.hold(until_us);
        } else {
            state.give_up();
        }
        self.is_over = !self.meet();
        let (mut now, mut now_us) = (before, then_us);
        if let Some(state) = &self.state {
            (now, now_us) = (tally(state.outcome()), state.now_us());
        }
        Ok(Step {
            reward: self.reward.of(now, before),
            dt_s: 1e-6 * (now_us - then_us) as f64,
            is_last: self.is_over,
        })
    }

    fn take_figures(&mut self) -> Option<Vec<(&'static str, f64)>> {
        let outcome = self.take_outcome()?;
        let ended = (outcome.met + outcome.late).max(1) as f64;
        Some(vec![
            ("num_frames", outcome.released as f64),
            ("hits_pct", 100.0 * (1.0 - outcome.missed_share())),
            (
                "skipped_pct",
                100.0 * outcome.skipped as f64 / outcome.released.max(1) as f64,
            ),
            ("frames_per_s", outcome.fps()),
            ("response_mean_s", 1e-6 * outcome.response_us as f64 / ended),
        ])
    }
}
