//! The nearest counterfactual: the fewest changes of a candidate, and of those the smallest, with which it would have come before
//! the one that was chosen.
//!
//! A leaf holds the rows of a box, so every leaf whose score would do is asked for the nearest row in its box
//! ([`search`]). What belongs together moves together: `gpu_time_gpu_s`, `wait_ratio`, `gpu_fraction`, `duration_s` and what a
//! start leaves free follow from the size of the gang, the believed rest and the wait. Features of the cluster and its queue
//! belong to all candidates and stay; so do the ranks among the offered jobs unless a change of their own is found.
//!
//! # Source
//! Counterfactual explanations: Wachter, Mittelstadt and Russell (Harv. J. Law & Tech. 31, 2018). Exact ones of trees by their
//! leaves: Carreira-Perpiñán and Hada (AAAI'21).

use std::fmt;

use serde::Serialize;

use super::TreePolicy;
use super::boxes::LeafBox;
use super::reach::tier_of;
use super::text::{quantity, span};
use crate::error::PolicyError;
use crate::features::Control;
use crate::features::decision::{FEATURES, Id as C};
use crate::policy::DecisionPoint;

mod key;
mod rank;
mod search;
#[cfg(test)]
mod tests;

use rank::{Rank, score_at};
use search::{Found, Search};

/// A candidate that would have been chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counterfactual {
    /// What would have to differ; at least one.
    pub changes: Vec<Change>,
    /// What would follow from that among the features that the tree reads.
    pub follows: Vec<Change>,
    /// Sum of the changes, each over the scaled range of its feature.
    pub distance: f64,
    /// The leaf that it would come to.
    pub leaf: u32,
    /// The tier of that leaf; 1 is the best.
    pub tier: usize,
}

/// A feature with another number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Name of the feature.
    pub feature: &'static str,
    /// What it was, in its unit.
    pub from: String,
    /// What it would have to be, in its unit.
    pub to: String,
    /// The two as numbers, in its unit.
    pub raw: (f64, f64),
    /// What could change it.
    pub control: Control,
}

impl TreePolicy {
    /// The nearest counterfactual of candidate `own` that comes before candidate `rival`, among changes of features that are
    /// `allowed`; none where no leaf gives one. Exact but for a part in ten thousand where the tree has no weighted key; with one, a
    /// nearer one of the same tier may exist. None too where a guard does not allow the candidate: no feature of it would help.
    ///
    /// # Errors
    /// As `score`: where the observation was not filled.
    ///
    /// # Panics
    /// If one of the candidates is not there.
    pub fn counterfactual(
        &self,
        point: &DecisionPoint<'_>,
        (own, rival): (usize, usize),
        allowed: &dyn Fn(Control) -> bool,
    ) -> Result<Option<Counterfactual>, PolicyError> {
        self.check_shape(&point.observation, point.candidates.len())?;
        let (Some(candidate), true) = (point.candidates.get(own), rival < point.candidates.len()) else {
            panic!("candidates {own} and {rival} of {}", point.candidates.len());
        };
        let Some(job) = candidate
            .job
            .filter(|_| self.is_allowed(point, own) && !self.steps_aside(point))
        else {
            return Ok(None);
        };
        let rate = candidate.facts.as_ref().map_or_else(
            || point.cluster.best_speed_of(point.cluster.job(job).request.class),
            |facts| facts.rate,
        );
        let row = self.joined_row(point, own);
        let ranks = (Rank::of(self, point, own), Rank::of(self, point, rival));
        let search = Search::new(self.tree(), &row, candidate.kind, rate, ranks, allowed);
        Ok(search.nearest().and_then(|found| self.verified(&search, &found)))
    }

    /// What was found in words, if the tree itself agrees: a wrong answer is worse than none.
    fn verified(&self, search: &Search<'_>, found: &Found) -> Option<Counterfactual> {
        let tree = self.tree();
        let (score, leaf) = score_at(tree, tree.walk(&found.row));
        if !search.wins(score, found) {
            return None;
        }
        let change = |index: usize| {
            let feature = &FEATURES[index];
            let raw = |row: &[f32]| {
                let raw = feature.scale.invert(row[index]);
                // A gang is a whole number; its logarithm is not.
                if index == C::NumGpus as usize {
                    raw.round()
                } else {
                    raw
                }
            };
            let (from, to) = (raw(search.row), raw(&found.row));
            Change {
                feature: feature.name,
                from: quantity(from, feature.unit),
                to: quantity(to, feature.unit),
                raw: (from, to),
                control: feature.control,
            }
        };
        let reads = tree.features();
        let differs = |index: &usize| found.row[*index] != search.row[*index];
        let is_change = |index: &usize| found.changed.contains(index);
        Some(Counterfactual {
            changes: found.changed.iter().map(|index| change(*index)).collect(),
            follows: (0..found.row.len())
                .filter(|index| differs(index) && !is_change(index))
                .map(change)
                .filter(|change| reads.contains(&change.feature))
                .collect(),
            distance: found.cost,
            leaf,
            tier: tier_of(score, &tree.tiers()),
        })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change {
            feature,
            from,
            to,
            raw,
            control,
        } = self;
        write!(out, "{feature} {to} instead of {from}")?;
        let longer_s = raw.1 - raw.0;
        match control {
            Control::Time if longer_s > 0.0 && *feature == "wait_s" => {
                write!(out, " (in {} of waiting; {})", span(longer_s), control.words())
            }
            _ => write!(out, " ({})", control.words()),
        }
    }
}

impl fmt::Display for Counterfactual {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes: Vec<String> = self.changes.iter().map(ToString::to_string).collect();
        write!(out, "{}", changes.join(" and "))?;
        let follows = self.follows.iter();
        let follows: Vec<String> = follows
            .map(|change| format!("{} {}", change.feature, change.to))
            .collect();
        if !follows.is_empty() {
            write!(out, ", hence {}", follows.join(", "))?;
        }
        write!(out, ": tier {}", self.tier)
    }
}
