//! A world of one's own: items of drawn sizes come one by one, each goes into a bin with room or into a new one, and few bins are to be
//! used. This folder is all of it, and it has every verb:
//!
//! ```text
//! own evaluate --workload packing --set spread=0.4
//! own distill --search --workload packing --simulations 2000 --out packed
//! own train --workload packing --learner evolution --out trained
//! own explain packed --workload packing --decision 40
//! own export packed/tree.json --to c
//! ```

mod environment;
mod game;

use pleach_cli::env::Seed;
use pleach_cli::experiments::Error;
use pleach_cli::experiments::evaluate::metric::{Better, Metric, Versus, figure};
use pleach_cli::experiments::worlds::{
    Branch, Description, Draw, Habits, Kind, Loss, Player, SearchConfig, Turn, World, by_hand, nodes, opened,
    split,
};
use pleach_cli::scheduler::features::{FeatureSchema, View};
use pleach_cli::scheduler::settings::Settings as _;
use pleach_cli::scheduler::tree::Tree;
use pleach_cli::serving::Environment;

use self::environment::Packing;
use self::game::{Game, PACKING_1, RULES, SCHEMA, chooser};

/// The world by name.
pub const KIND: Kind = Kind {
    name: "packing",
    doc: "items that come one by one into bins of size 1: an example",
    policies: RULES,
    schema: &SCHEMA,
    reads: |_| false,
    open: |settings| opened(settings, |settings| Ok(PackingWorld { settings })),
    keys: || PackingSettings::fields(""),
};

pleach_cli::scheduler::settings! {
    /// Items and lists.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PackingSettings {
        /// Items of a list
        pub items: u32 = 200, in 1..=100_000;
        /// Smallest item
        pub least: f64 = 0.1, in 0.001..=0.5;
        /// Largest item less the smallest one
        pub spread: f64 = 0.5, in 0.0..=0.5;
        /// Lists of a comparison
        pub lists: u16 = 20, in 1..=1_000;
    }
}

const METRICS: &[Metric] = &[
    figure(
        ("bins", "bins", 1),
        (Better::Lower, Versus::Percent),
        "bins that were used",
    ),
    figure(
        ("full_pct", "full %", 2),
        (Better::Higher, Versus::Points),
        "mean level of the bins",
    ),
];

/// Bins and items.
pub struct PackingWorld {
    settings: PackingSettings,
}

impl World for PackingWorld {
    type List = Vec<f64>;
    type Outcome = Game;

    fn name(&self) -> &'static str {
        "packing"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn schema(&self) -> (&'static FeatureSchema, View) {
        (&SCHEMA, PACKING_1)
    }

    fn policies(&self) -> Vec<String> {
        RULES.iter().map(|rule| rule.name.to_string()).collect()
    }

    fn asked(&self) -> (Vec<f64>, usize) {
        (vec![1.0], self.settings.lists.into())
    }

    fn draw(&self, draw: Draw<'_>) -> Result<Vec<Vec<f64>>, Error> {
        let seed = Seed(draw.seed)
            .child(draw.stream, draw.verb as u64)
            .child("number", draw.number);
        let list = |list: usize| game::items(&self.settings, seed.child("list", list as u64));
        Ok((0..draw.num).map(list).collect())
    }

    fn play(&self, list: &Vec<f64>, _turn: Turn<'_>, player: Player<'_>) -> Result<Game, Error> {
        let mut choose = chooser(player)?;
        let mut game = Game::default();
        for &size in list {
            let rows = game.rows(size);
            let row = choose(&rows)?;
            game.put(size, row);
        }
        Ok(game)
    }

    fn figures(&self, game: &Game) -> Vec<(&'static str, f64)> {
        vec![
            ("bins", game.bins.len() as f64),
            ("full_pct", 100.0 * game.mean_level()),
        ]
    }

    fn loss(&self, game: &Game) -> Loss {
        Loss {
            misses: 1.0 - game.mean_level(),
            tail_s: 1.0,
            cost: 0.0,
        }
    }

    fn habits(&self) -> Habits {
        Habits {
            loads: vec![1.0],
            tune_lists: (9, 1),
            choice_lists: 9,
            first_of_choice: 1,
            judge_lists: 40,
            search: SearchConfig {
                simulations: 1_000,
                rungs: vec![3, 9, 27],
                starts: 2,
                leaves_max: 8,
                // There is no tail.
                tail_weight: 0.0,
                ..SearchConfig::default()
            },
        }
    }

    fn rivals(&self) -> Vec<Vec<String>> {
        vec![self.policies()]
    }

    /// Best fit and worst fit, each with a new bin last.
    fn starts(&self, without: &[u16]) -> Result<Vec<Tree>, Error> {
        let is_allowed = |name: &str| {
            SCHEMA
                .joined_index(name)
                .is_some_and(|number| !without.contains(&(number as u16)))
        };
        let root = split(&SCHEMA, "is_new", 0.5, Branch::Leaf(1), Branch::Leaf(0));
        let both = [("best fit", "left", 1.0), ("worst fit", "left", -1.0)];
        let allowed = both
            .into_iter()
            .filter(|(_, column, _)| is_allowed(column) && is_allowed("is_new"));
        allowed
            .map(|(name, column, weight)| by_hand(&SCHEMA, name, &[(column, weight)], &nodes(&root)))
            .collect()
    }

    fn environments(&self, draw: Draw<'_>, _num_steps: usize) -> Result<Vec<Box<dyn Environment>>, Error> {
        let env = || Box::new(Packing::new(self.settings.clone())) as Box<dyn Environment>;
        Ok((0..draw.num).map(|_| env()).collect())
    }

    fn row_name(&self, row: usize, num_rows: usize) -> String {
        match row + 1 == num_rows {
            true => "a new bin".into(),
            false => format!("bin {row}"),
        }
    }

    fn describe(&self, _seed: u64) -> Result<Description, Error> {
        Err(Error::Failed("items have a size each, and that is all".into()))
    }
}
