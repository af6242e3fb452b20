//! The game: its columns, its rules, and what a choice does.

use pleach_cli::env::Seed;
use pleach_cli::experiments::Error;
use pleach_cli::experiments::worlds::Player;
use pleach_cli::scheduler::Rows;
use pleach_cli::scheduler::features::{Among, Feature, FeatureSchema, Group, Kinds, RowKind, Scale, View};
use pleach_cli::scheduler::heuristics::Info;
use pleach_cli::serving::columns::{column, kind};
use pleach_cli::serving::scoring::Scoring;
use pleach_cli::serving::settings::rule;

use super::PackingSettings;

/// Rows of a decision, at most: the newest bins, and a new one.
pub const ROWS: usize = 24;
const WIDTH: usize = 4;

const KINDS: [RowKind; 2] = [
    kind("put", "put it into this bin"),
    kind("open", "open a new bin for it"),
];
const ALL: Among = Among::Varies(Kinds::of(&[0, 1]));
const ONE: Scale = Scale::Linear(1.0);
const FEATURES: [Feature; 5] = [
    column(
        Group::Row,
        Among::Flag(1),
        "is_new",
        "",
        1.0,
        ONE,
        "1: a new bin.",
    ),
    column(
        Group::Row,
        Among::Varies(Kinds::of(&[0])),
        "level",
        "",
        1.0,
        ONE,
        "What is in the bin.",
    ),
    column(
        Group::Row,
        ALL,
        "left",
        "",
        1.0,
        ONE,
        "Room that is left once the item is in.",
    ),
    column(
        Group::Row,
        Among::Varies(Kinds::of(&[0])),
        "age",
        "items",
        1e3,
        Scale::Log(4.0),
        "Items since the bin was opened.",
    ),
    column(Group::Context, ALL, "size", "", 1.0, ONE, "Size of the item."),
];

/// All columns.
pub const PACKING_1: View = View::of("packing-1", &FEATURES, FEATURES.len());
/// What policies that pack read.
pub static SCHEMA: FeatureSchema = FeatureSchema::new("packing", &KINDS, &FEATURES, &[], &[PACKING_1]);

/// The rules, and what each knows.
pub const RULES: &[Info] = &[
    rule(
        "packing",
        "first-fit",
        "bins",
        "the oldest bin with room",
        "Johnson, 1974",
    ),
    rule(
        "packing",
        "best-fit",
        "bins",
        "the fullest bin with room",
        "Johnson, 1974",
    ),
    rule(
        "packing",
        "worst-fit",
        "bins",
        "the emptiest bin with room",
        "Johnson, 1974",
    ),
    rule(
        "packing",
        "next-fit",
        "the newest bin",
        "the newest bin where it has room",
        "Johnson, 1974",
    ),
];

/// Items of a list.
pub fn items(settings: &PackingSettings, seed: Seed) -> Vec<f64> {
    let unit = |item: u32| (seed.child("size", u64::from(item)).0 >> 11) as f64 / (1_u64 << 53) as f64;
    (0..settings.items)
        .map(|item| settings.least + settings.spread * unit(item))
        .collect()
}

/// Bins in the order in which they were opened.
#[derive(Clone, Debug, Default)]
pub struct Game {
    /// Level of each, 0 to 1, and the item with which it was opened.
    pub bins: Vec<(f64, usize)>,
    /// Bins of the rows of the last decision; none: a new one.
    shown: Vec<Option<usize>>,
    num_items: usize,
}

/// What is decided: scaled rows of columns, and the size.
pub struct Decision {
    pub rows: Vec<f32>,
    pub context: [f32; 1],
}

impl Game {
    /// Rows of bins with room, the newest of them, and of a new bin last.
    pub fn rows(&mut self, size: f64) -> Decision {
        let has_room = |bin: &usize| self.bins[*bin].0 + size <= 1.0 + 1e-12;
        let mut open: Vec<usize> = (0..self.bins.len())
            .rev()
            .filter(has_room)
            .take(ROWS - 1)
            .collect();
        open.reverse();
        self.shown = open.into_iter().map(Some).chain([None]).collect();
        let encode = |place: usize, raw: f64| FEATURES[place].encode(raw as f32);
        let rows = self.shown.iter().flat_map(|bin| {
            let (level, opened) = bin.map_or((0.0, self.num_items), |bin| self.bins[bin]);
            let age = (self.num_items - opened) as f64;
            let raw = [
                f64::from(u8::from(bin.is_none())),
                level,
                (1.0 - level - size).max(0.0),
                age,
            ];
            std::array::from_fn::<f32, WIDTH, _>(|place| encode(place, raw[place]))
        });
        Decision {
            rows: rows.collect(),
            context: [encode(4, size)],
        }
    }

    /// Puts the item into the bin of a row.
    pub fn put(&mut self, size: f64, row: usize) {
        match self.shown[row] {
            Some(bin) => self.bins[bin].0 += size,
            None => self.bins.push((size, self.num_items)),
        }
        self.num_items += 1;
    }

    /// Mean level of the bins.
    pub fn mean_level(&self) -> f64 {
        let sum: f64 = self.bins.iter().map(|bin| bin.0).sum();
        sum / self.bins.len().max(1) as f64
    }
}

/// Makes a choice among rows.
pub type Choose<'a> = Box<dyn FnMut(&Decision) -> Result<usize, Error> + 'a>;

/// How a player chooses.
pub fn chooser(player: Player<'_>) -> Result<Choose<'_>, Error> {
    let scored = |mut scoring: Scoring| -> Choose<'_> {
        Box::new(move |decision| {
            let rows = (decision.rows.as_slice(), WIDTH);
            Ok(scoring.first(rows, &decision.context, |row| row as u64)?)
        })
    };
    let name = match player {
        Player::Scorer(scorer) => return Ok(scored(Scoring::new("packer", scorer, &SCHEMA)?)),
        Player::Keyed(scorer, tree) => return Ok(scored(Scoring::keyed("packer", scorer, tree, &SCHEMA)?)),
        Player::Rule(name) => name,
    };
    let left = |decision: &Decision, row: usize| decision.rows[row * WIDTH + 2];
    let fit = move |sign: f32| -> Choose<'_> {
        Box::new(move |decision| {
            let num = decision.rows.len() / WIDTH - 1;
            let best = (0..num).min_by(|one, other| {
                (sign * left(decision, *one)).total_cmp(&(sign * left(decision, *other)))
            });
            Ok(best.unwrap_or(num))
        })
    };
    Ok(match name {
        "first-fit" => Box::new(|_| Ok(0)),
        "best-fit" => fit(1.0),
        "worst-fit" => fit(-1.0),
        "next-fit" => Box::new(|decision| Ok((decision.rows.len() / WIDTH).saturating_sub(2))),
        other => {
            let known: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
            return Err(Error::config(
                "policy",
                other,
                known.join(", "),
                "Take one of them.",
            ));
        }
    })
}

/// The rows of a decision as scorers and learners read them.
pub fn shown<'a>(rows: &'a [f32], context: &'a [f32], mask: &'a [bool]) -> Rows<'a> {
    Rows {
        schema: &SCHEMA,
        rows,
        width: WIDTH,
        context,
        mask,
    }
}
