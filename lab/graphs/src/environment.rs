//! Choosing stages in steps, for learners.

use std::sync::Arc;

use pleach_scheduler::features::View;
use pleach_scheduler::{Problem, Rows};
use pleach_serving::environment::{Environment, Step, not_a_row, not_in_an_episode};
use pleach_workloads::Seed;

use crate::board::{Board, Offers, ROWS_MAX};
use crate::columns::{ROW_WIDTH, STAGES_1};
use crate::engine::Engine;
use crate::list::List;
use crate::rules::check_offers;

/// Draws the list of an episode.
pub type Drawing = Box<dyn Fn(Seed) -> Result<List, Problem> + Send + Sync>;

/// Episodes of lists that are drawn by their seeds. A reward is less the jobs in the system over the time since the last choice, job s:
/// an episode's sum is less the sum of its completion times.
pub struct Choosing {
    draw: Drawing,
    engine: Option<Engine>,
    board: Board,
    rows: Vec<f32>,
    mask: Vec<bool>,
}

impl Choosing {
    /// Before the first episode.
    ///
    /// # Errors
    /// Lists that cannot be drawn.
    pub fn new(draw: Drawing, offers: Offers) -> Result<Choosing, Problem> {
        draw(Seed(0))?;
        Ok(Choosing {
            draw,
            engine: None,
            board: Board::of(offers),
            rows: vec![0.0; ROWS_MAX * ROW_WIDTH],
            mask: vec![false; ROWS_MAX],
        })
    }

    /// Shows the next decision.
    fn show(&mut self) -> Result<(), Problem> {
        let Some(engine) = self.engine.as_ref().filter(|engine| !engine.is_over()) else {
            return Ok(());
        };
        check_offers(engine)?;
        self.board.look(engine);
        let shown = self.board.rows();
        self.rows[..shown.len()].copy_from_slice(shown);
        self.rows[shown.len()..].fill(0.0);
        let num = self.board.choices().len();
        for (row, may) in self.mask.iter_mut().enumerate() {
            *may = row < num;
        }
        Ok(())
    }
}

impl Environment for Choosing {
    fn view(&self) -> View {
        STAGES_1
    }

    fn reset(&mut self, seed: u64) -> Result<(), Problem> {
        self.engine = Some(Engine::new(Arc::new((self.draw)(Seed(seed))?)));
        self.show()
    }

    fn rows(&self) -> Rows<'_> {
        Board::shown(&self.rows, self.board.context(), &self.mask)
    }

    fn step(&mut self, choice: usize) -> Result<Step, Problem> {
        let Some(engine) = self.engine.as_mut().filter(|engine| !engine.is_over()) else {
            return Err(not_in_an_episode(choice));
        };
        let Some(chosen) = self.board.choices().get(choice) else {
            return Err(match choice < ROWS_MAX {
                true => Problem::new("action", choice, "a row that the mask allows", "Read the mask."),
                false => not_a_row(choice, ROWS_MAX),
            });
        };
        let (before, then_ms) = (engine.job_ms(), engine.now_ms());
        engine.decide(*chosen);
        let step = Step {
            reward: -1e-3 * (engine.job_ms() - before) as f64,
            dt_s: 1e-3 * (engine.now_ms() - then_ms) as f64,
            is_last: engine.is_over(),
        };
        self.show()?;
        Ok(step)
    }

    fn take_figures(&mut self) -> Option<Vec<(&'static str, f64)>> {
        let engine = self.engine.take_if(|engine| engine.is_over())?;
        Some(engine.outcome().figures())
    }
}
