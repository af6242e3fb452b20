//! Why a tree chose a row: all rows of one decision in the tree's order, and of each other row the nearest change with which it would
//! have come first.

use std::path::Path;
use std::sync::{Arc, Mutex};

use pleach_scheduler::features::{Feature, FeatureSchema, Group};
use pleach_scheduler::key_weight::weighted_sum;
use pleach_scheduler::tree::{FlatTree, Node, Tree, quantity};
use pleach_scheduler::{PolicyError, Rows, Scorer};
use serde::Serialize;

use super::race::locked;
use super::world::{Draw, Player, Turn, Verb, World, tree_over};
use crate::error::Error;

/// Most rows that are reported.
const ROWS_MAX: usize = 64;

/// A row of the decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowTold {
    /// What it stands for.
    pub row: String,
    /// 1 is the best.
    pub tier: usize,
    /// Of the first row the conditions on its way, of another why it comes after the first.
    pub why: Vec<String>,
    /// Of another row the nearest change with which it would have come first; none where no change of its own columns gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecisionTold {
    /// Its number in its list, from 1.
    pub decision: usize,
    /// What all rows have around them, as far as the tree reads it.
    pub context: Vec<String>,
    /// Tiers of the tree.
    pub num_tiers: usize,
    /// In the tree's order; among equals the world's own order decides.
    pub rows: Vec<RowTold>,
}

/// A row with what orders it.
struct Placed {
    is_first: bool,
    name: String,
    joined: Vec<f32>,
    tier: usize,
    key: f64,
}

/// Why a tree chose as it did at a decision of the first list of a comparison.
///
/// # Errors
/// A file that is no tree of this world, a number that is not in the list.
pub fn explain<W: World>(world: &W, tree: &Path, decision: usize, seed: u64) -> Result<DecisionTold, Error> {
    let tree = tree_over(world.schema().0, tree)?;
    let (loads, num) = world.asked();
    let lists = world.draw(Draw {
        verb: Verb::Compare,
        seed,
        stream: "compare",
        number: 0,
        load: loads[0],
        num,
    })?;
    let seen = Arc::new(Mutex::new(Seen {
        asked: decision,
        ..Seen::default()
    }));
    let watched: Box<dyn Scorer> = Box::new(Explained {
        flat: FlatTree::of(&tree),
        seen: Arc::clone(&seen),
    });
    world.play(&lists[0], Turn::default(), Player::Keyed(watched, &tree))?;
    let Seen {
        num, rows, choice, ..
    } = std::mem::take(&mut *locked(&seen));
    Error::refuse_if(
        rows.is_empty(),
        "decision",
        decision,
        format_args!("1 to {num}"),
        "Take one of the list.",
    )?;
    Ok(told(world, &tree, decision, (rows, choice)))
}

/// What is kept of a play.
#[derive(Default)]
struct Seen {
    /// The decision that is asked about.
    asked: usize,
    /// Decisions so far.
    num: usize,
    /// Its rows by their numbers, joined.
    rows: Vec<(usize, Vec<f32>)>,
    /// The one that was taken.
    choice: usize,
}

/// Plays by a tree and keeps one decision.
struct Explained {
    flat: FlatTree,
    seen: Arc<Mutex<Seen>>,
}

impl Scorer for Explained {
    fn schema(&self) -> &'static FeatureSchema {
        self.flat.schema()
    }

    fn score_rows(&mut self, rows: Rows<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let mut seen = locked(&self.seen);
        if seen.num + 1 == seen.asked {
            let allowed = (0..rows.mask.len()).filter(|row| rows.mask[*row]);
            let joined = allowed.map(|row| (row, rows.schema.joined_row(rows.row(row), rows.context)));
            seen.rows = joined.collect();
        }
        drop(seen);
        self.flat.score_rows(rows, scores)
    }

    fn chose(&mut self, row: usize) {
        let mut seen = locked(&self.seen);
        if seen.num + 1 == seen.asked {
            seen.choice = row;
        }
        seen.num += 1;
    }
}

fn told<W: World>(
    world: &W,
    tree: &Tree,
    decision: usize,
    (rows, choice): (Vec<(usize, Vec<f32>)>, usize),
) -> DecisionTold {
    let tiers = tree.tiers();
    let num_rows = rows.len();
    let mut placed: Vec<Placed> = rows
        .into_iter()
        .map(|(row, joined)| Placed {
            is_first: row == choice,
            name: world.row_name(row, num_rows),
            tier: tier_of(tree, &tiers, &joined),
            key: weighted_sum(&tree.meta().key_weights, &joined),
            joined,
        })
        .collect();
    placed.sort_by(|one, other| {
        let of_tree = one.tier.cmp(&other.tier).then(one.key.total_cmp(&other.key));
        of_tree.then(other.is_first.cmp(&one.is_first))
    });
    let (first, schema) = (&placed[0], tree.schema());
    let told = |row: &Placed| {
        let is_first = std::ptr::eq(row, first);
        RowTold {
            row: row.name.clone(),
            tier: row.tier,
            why: if is_first {
                conditions(tree, &row.joined)
            } else {
                vec![why_after(tree, first, row)]
            },
            nearest: (!is_first).then(|| nearest(tree, &tiers, first, row)).flatten(),
        }
    };
    let reads = tree.reads();
    let around = |number: &&u16| schema.features[usize::from(**number)].group == Group::Context;
    DecisionTold {
        decision,
        context: reads
            .iter()
            .filter(around)
            .map(|number| {
                said(
                    &schema.features[usize::from(*number)],
                    first.joined[usize::from(*number)],
                )
            })
            .collect(),
        num_tiers: tiers.len(),
        rows: placed.iter().take(ROWS_MAX).map(told).collect(),
    }
}

fn tier_of(tree: &Tree, tiers: &[f32], joined: &[f32]) -> usize {
    let score = tree.score_at(tree.walk(joined));
    1 + tiers.iter().filter(|tier| **tier > score).count()
}

fn said(feature: &Feature, scaled: f32) -> String {
    format!(
        "{} {}",
        feature.name,
        quantity(feature.scale.invert(scaled), feature.unit)
    )
}

fn conditions(tree: &Tree, joined: &[f32]) -> Vec<String> {
    let (_, path) = tree.path(joined);
    let path = path.iter();
    path.map(|step| format!("{} (it is {})", step.condition, step.value))
        .collect()
}

fn why_after(tree: &Tree, first: &Placed, row: &Placed) -> String {
    let parting = tree.parting(&first.joined, &row.joined);
    match parting.filter(|_| first.tier != row.tier) {
        Some(parting) => format!(
            "its {} is {}, that of the first {}: not {}",
            parting.feature, parting.other_value, parting.value, parting.condition
        ),
        None if first.key < row.key => {
            format!("its key is {:.4}, that of the first {:.4}", row.key, first.key)
        }
        None => {
            "nothing that the tree reads parts them, and the first has waited longer or comes first".into()
        }
    }
}

/// The leaf with the least change of the row's own columns at which it would come before the first: by its tier, or in the same tier by
/// its key.
fn nearest(tree: &Tree, tiers: &[f32], first: &Placed, row: &Placed) -> Option<String> {
    let mut best: Option<(f32, Vec<f32>)> = None;
    let mut open = vec![(0_usize, row.joined.clone(), 0.0_f32)];
    while let Some((place, joined, cost)) = open.pop() {
        if best.as_ref().is_some_and(|(least, _)| *least <= cost) {
            continue;
        }
        let Node::Split {
            feature,
            threshold,
            left,
            right,
        } = tree.nodes()[place]
        else {
            // Columns of a path move one after another, so the tree itself has the last word.
            let key = weighted_sum(&tree.meta().key_weights, &joined);
            let tier = tier_of(tree, tiers, &joined);
            if tier < first.tier || (tier == first.tier && key < first.key) {
                best = Some((cost, joined));
            }
            continue;
        };
        let number = usize::from(feature);
        let is_own = tree.schema().features[number].group == Group::Row;
        let value = joined[number];
        for (child, is_left) in [(left, true), (right, false)] {
            let is_there = (value <= threshold) == is_left;
            if !is_there && !is_own {
                continue;
            }
            let mut moved = joined.clone();
            if !is_there {
                moved[number] = if is_left { threshold } else { threshold.next_up() };
            }
            let more = (moved[number] - value).abs();
            open.push((child as usize, moved, cost + more));
        }
    }
    let (_, joined) = best?;
    let changed = tree.schema().features.iter().enumerate();
    let changed = changed.filter(|(number, _)| joined[*number] != row.joined[*number]);
    let words = changed.map(|(number, feature)| {
        let is = quantity(feature.scale.invert(row.joined[number]), feature.unit);
        format!("{} in place of {is}", said(feature, joined[number]))
    });
    Some(words.collect::<Vec<_>>().join(", "))
}

impl DecisionTold {
    /// Leaves the first row and one other.
    ///
    /// # Errors
    /// A row that is not there.
    pub fn keep(&mut self, row: &str) -> Result<(), Error> {
        let names: Vec<&str> = self.rows.iter().map(|told| told.row.as_str()).collect();
        Error::refuse_if(
            !names.contains(&row),
            "why-not",
            row,
            names.join(", "),
            "Name a row of the decision.",
        )?;
        let first = self.rows[0].row.clone();
        self.rows.retain(|told| told.row == row || told.row == first);
        Ok(())
    }

    /// In words, a row a line.
    #[must_use]
    pub fn in_words(&self) -> String {
        let around = match self.context.as_slice() {
            [] => String::new(),
            known => format!(": {}", known.join(", ")),
        };
        let mut text = format!("decision {}{around}\n", self.decision);
        for (place, row) in self.rows.iter().enumerate() {
            let does = if place == 0 { "first: " } else { "" };
            let why = row.why.join("; ");
            let nearest = row.nearest.as_ref();
            let nearest = nearest.map_or_else(String::new, |change| format!("; first with {change}"));
            let RowTold { row, tier, .. } = row;
            text += &format!("{does}{row}, tier {tier} of {}: {why}{nearest}\n", self.num_tiers);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use pleach_serving::llm::SCHEMA;

    use super::*;
    use crate::worlds::race::{by_hand, column, nodes, split};
    use pleach_distill::search::Branch;

    /// A row whose columns are 0 but for these.
    fn row(values: &[(&str, f32)], tree: &Tree) -> Placed {
        let mut joined = vec![0.0; SCHEMA.features.len()];
        for (name, raw) in values {
            let (number, scaled) = column(&SCHEMA, name, *raw);
            joined[usize::from(number)] = scaled;
        }
        Placed {
            is_first: false,
            name: String::new(),
            tier: tier_of(tree, &tree.tiers(), &joined),
            key: weighted_sum(&tree.meta().key_weights, &joined),
            joined,
        }
    }

    /// The tree: a load above 2 is for nothing; else a replica with memory left is best, then one that holds the prompt, the rest last.
    /// In a tier the least share of prompts is first.
    #[test]
    fn the_nearest_change_is_the_least_of_own_columns_that_makes_a_row_first() {
        let held = split(&SCHEMA, "held_share", 0.25, Branch::Leaf(0), Branch::Leaf(5));
        let memory = split(&SCHEMA, "kv_share", 0.5, Branch::Leaf(9), held);
        let root = split(&SCHEMA, "load", 2.0, memory, Branch::Leaf(0));
        let tree = by_hand(&SCHEMA, "test", &[("prompt_share", 1.0)], &nodes(&root)).unwrap();
        let of = |first: &[(&str, f32)], other: &[(&str, f32)]| {
            nearest(&tree, &tree.tiers(), &row(first, &tree), &row(other, &tree))
        };
        let full = [("kv_share", 0.9)];
        // A tier above the first's: the prompt held is a change of 0.25, the memory one of 0.4.
        assert_eq!(of(&full, &full).as_deref(), Some("held_share 0.25 in place of 0"));
        let fuller = [("kv_share", 0.6)];
        assert_eq!(
            of(&full, &fuller).as_deref(),
            Some("kv_share 0.5 in place of 0.6")
        );
        // The first is in the best tier: only its tier with a lower key is before it.
        let first = [("kv_share", 0.1), ("prompt_share", 0.5)];
        let lower = [("kv_share", 0.9), ("prompt_share", 0.25)];
        assert_eq!(
            of(&first, &lower).as_deref(),
            Some("kv_share 0.5 in place of 0.9")
        );
        let higher = [("kv_share", 0.9), ("prompt_share", 0.75)];
        assert_eq!(of(&first, &higher), None, "no change of what the tree splits by");
        // The load is all rows' and does not change for one.
        let loaded = [("load", 3.0), ("kv_share", 0.9)];
        assert_eq!(of(&loaded, &loaded), None);
    }
}
