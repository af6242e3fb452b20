//! The game in steps, for learners that want rewards: less what a new bin costs.

use pleach_cli::env::Seed;
use pleach_cli::scheduler::features::View;
use pleach_cli::scheduler::{Problem, Rows};
use pleach_cli::serving::{Environment, Step};

use super::PackingSettings;
use super::game::{self, Game, PACKING_1, ROWS};

/// One list.
pub struct Packing {
    settings: PackingSettings,
    game: Game,
    items: Vec<f64>,
    next: usize,
    rows: Vec<f32>,
    context: [f32; 1],
    mask: Vec<bool>,
}

impl Packing {
    /// Before the first list.
    pub fn new(settings: PackingSettings) -> Packing {
        Packing {
            settings,
            game: Game::default(),
            items: Vec::new(),
            next: 0,
            rows: vec![0.0; ROWS * PACKING_1.num_row],
            context: [0.0],
            mask: vec![false; ROWS],
        }
    }

    fn show(&mut self) {
        let decision = self.game.rows(self.items[self.next]);
        let num = decision.rows.len() / PACKING_1.num_row;
        self.rows.fill(0.0);
        self.rows[..decision.rows.len()].copy_from_slice(&decision.rows);
        self.context = decision.context;
        for (row, may) in self.mask.iter_mut().enumerate() {
            *may = row < num;
        }
    }
}

impl Environment for Packing {
    fn view(&self) -> View {
        PACKING_1
    }

    fn reset(&mut self, seed: u64) -> Result<(), Problem> {
        self.items = game::items(&self.settings, Seed(seed));
        (self.game, self.next) = (Game::default(), 0);
        self.show();
        Ok(())
    }

    fn rows(&self) -> Rows<'_> {
        game::shown(&self.rows, &self.context, &self.mask)
    }

    fn step(&mut self, choice: usize) -> Result<Step, Problem> {
        Problem::refuse_if(
            self.next >= self.items.len() || !self.mask.get(choice).is_some_and(|may| *may),
            "step",
            choice,
            "a row that the mask allows",
            "Read the mask.",
        )?;
        let before = self.game.bins.len();
        self.game.put(self.items[self.next], choice);
        self.next += 1;
        let is_last = self.next == self.items.len();
        if !is_last {
            self.show();
        }
        Ok(Step {
            reward: before as f64 - self.game.bins.len() as f64,
            dt_s: 1.0,
            is_last,
        })
    }

    fn take_figures(&mut self) -> Option<Vec<(&'static str, f64)>> {
        let is_over = self.next == self.items.len() && self.next > 0;
        is_over.then(|| vec![("bins", self.game.bins.len() as f64)])
    }
}
