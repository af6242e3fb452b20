//! What a search for a tree did: its frontier and the others on lists that it has never met.

use std::collections::BTreeMap;

use pleach_distill::search::{Move, SearchConfig};
use serde::Serialize;

use crate::evaluate::stats::Ratio;
use crate::judge::{PartRow, in_words, markdown};

/// A tree of the frontier, on lists that it has never met.
#[derive(Clone, Debug, Serialize)]
pub struct FrontierRow {
    /// Leaves.
    pub leaves: usize,
    /// Features of its key.
    pub key_features: usize,
    /// The start that it comes from.
    pub origin: String,
    /// Objective on the lists of the race, which chose it.
    pub objective_of_race: f64,
    /// Objective on the lists of the choice.
    pub objective_of_choice: f64,
    /// On the lists of the acceptance.
    pub parts: Vec<PartRow>,
}

/// Another policy on the same lists.
#[derive(Clone, Debug, Serialize)]
pub struct OtherRow {
    /// Its name.
    pub policy: String,
    /// On the lists of the acceptance.
    pub parts: Vec<PartRow>,
    /// The chosen tree's average JCT over its, part by part.
    pub tree_over_it: Vec<Option<Ratio>>,
}

/// What a search did.
#[derive(Clone, Debug, Serialize)]
pub struct SearchReport {
    /// The settings.
    pub config: SearchConfig,
    /// Lists that were simulated in the race.
    pub simulations: u64,
    /// Batches.
    pub batches: u64,
    /// The starts' best: where it comes from and its objective on the lists of the race.
    pub best_start: (String, f64),
    /// Whether the searched tree was accepted; if not, the best start is the result.
    pub accepted: bool,
    /// The chosen tree's average JCT over the best start's on all lists of the acceptance.
    pub tree_over_start: Option<Ratio>,
    /// Why.
    pub verdict: String,
    /// Sizes and what they are worth, smallest first.
    pub frontier: Vec<FrontierRow>,
    /// Place of the chosen tree in the frontier.
    pub chosen: usize,
    /// The best start and the policies that were asked for.
    pub others: Vec<OtherRow>,
    /// Of each kind of change: children that it took part in, and those of them that were kept.
    pub moves: BTreeMap<Move, [u64; 2]>,
}

impl SearchReport {
    /// The frontier and the others as a table in Markdown, then how much the tree is ahead of each of the others.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut rows: Vec<(String, Vec<PartRow>)> = Vec::new();
        for (place, row) in self.frontier.iter().enumerate() {
            let key = match row.key_features {
                0 => String::new(),
                num => format!(" + key of {num}"),
            };
            let mark = if place == self.chosen { " (chosen)" } else { "" };
            rows.push((format!("{} leaves{key}{mark}", row.leaves), row.parts.clone()));
        }
        rows.extend(
            self.others
                .iter()
                .map(|row| (row.policy.clone(), row.parts.clone())),
        );
        let parts = rows.first().map_or(&[][..], |(_, parts)| parts).to_vec();
        let mut text = markdown(&parts, &rows);
        for row in &self.others {
            let ahead = row
                .tree_over_it
                .iter()
                .zip(&row.parts)
                .filter_map(|(ratio, part)| Some(format!("{} {}", part.part, in_words(ratio.as_ref()?))));
            let ahead: Vec<String> = ahead.collect();
            text.push_str(&format!(
                "\nThe tree over {}: {}.\n",
                row.policy,
                ahead.join(", ")
            ));
        }
        text
    }
}
