//! Drift: whether what a tree is offered now ends in its leaves as it did where the tree was judged.
//!
//! Counted are all candidates that were offered, by the leaf in which they end, and not the chosen ones alone. What is chosen
//! says mostly how busy the cluster is: on real lists it tells a quiet week from a busy one and not one cluster from another
//! (`docs/distilling.md`, *Drift*, has the figures).
//!
//! The distance of two histograms is the population stability index, the sum of (q - p) ln(q / p) over the leaves. Shares are
//! those of counts with half a candidate added to each leaf, so an empty one is no infinity.
//!
//! # Source
//! The index: E. M. Lewis, *An Introduction to Credit Scoring* (1992); it is the symmetric divergence of Kullback and Leibler,
//! *Annals of Mathematical Statistics* 22 (1951). Half a count: Krichevsky and Trofimov, *IEEE Transactions on Information
//! Theory* 27 (1981).

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::error::TreeError;
use super::{Node, Tree};
use crate::portable_math::ln;

/// Added to each count, candidates.
const FLOOR: f64 = 0.5;
/// Fewest and most decisions of a histogram. Fewest: ours, *assumed*. Most: whole numbers that every reader of JSON has.
const DECISIONS: (u64, u64) = (100, 1 << 53);
/// Steps in which a window slides: a twentieth of its decisions each.
const STEPS: usize = 20;
/// Fewest and most decisions of a window.
pub const WINDOW_DECISIONS: (u32, u32) = (100, 1_000_000);
/// Decisions of a window by default; `docs/distilling.md`, *Drift*, says why.
pub const WINDOW_DEFAULT: u32 = 5_000;
/// Index above which a window has drifted by default; as [`WINDOW_DEFAULT`].
pub const PSI_LIMIT_DEFAULT: f64 = 1.0;

/// How often candidates ended in each leaf.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Visits {
    /// Decisions at which they were offered.
    pub num_decisions: u64,
    /// Candidates of each leaf, in the order of [`Tree::nodes`]. `[num_leaves]`
    pub offered: Vec<u64>,
    /// Where that was. Free; not read by the program.
    pub recorded_on: BTreeMap<String, serde_json::Value>,
}

impl Visits {
    /// No visits to so many leaves.
    #[must_use]
    pub fn none(num_leaves: usize) -> Visits {
        Visits {
            offered: vec![0; num_leaves],
            ..Visits::default()
        }
    }

    /// Counts the candidates of a decision by their leaves' numbers; numbers that no leaf has count for nothing.
    pub fn add(&mut self, leaves: &[u32]) {
        self.num_decisions += 1;
        for leaf in leaves {
            if let Some(count) = self.offered.get_mut(*leaf as usize) {
                *count += 1;
            }
        }
    }
}

/// Population stability index of two histograms over the same leaves; 0 = the same shares.
///
/// # Panics
/// Where they are not over the same number of leaves.
#[must_use]
pub fn psi(expected: &[u64], found: &[u64]) -> f64 {
    assert_eq!(
        expected.len(),
        found.len(),
        "both are over the leaves of one tree"
    );
    let shares = |counts: &[u64]| -> Vec<f64> {
        let num: f64 = counts.iter().map(|count| *count as f64 + FLOOR).sum();
        counts.iter().map(|count| (*count as f64 + FLOOR) / num).collect()
    };
    let pairs = shares(expected).into_iter().zip(shares(found));
    pairs.map(|(p, q)| (q - p) * ln(q / p)).sum()
}

/// The last decisions, in steps. Its memory is 21 counts for each leaf, whatever its length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriftWindow {
    /// Decisions of a whole window.
    num_decisions: u32,
    /// Whole steps, oldest first. `[up to STEPS][num_leaves]`
    steps: VecDeque<Vec<u32>>,
    /// The step that is being filled. `[num_leaves]`
    filling: Vec<u32>,
    /// Decisions in it.
    num_filling: u32,
}

impl DriftWindow {
    /// An empty window of about `num_decisions`, rounded down to whole steps.
    #[must_use]
    pub fn new(num_decisions: u32, num_leaves: usize) -> DriftWindow {
        DriftWindow {
            num_decisions: num_decisions.clamp(WINDOW_DECISIONS.0, WINDOW_DECISIONS.1),
            steps: VecDeque::new(),
            filling: vec![0; num_leaves],
            num_filling: 0,
        }
    }

    /// Whether it is one of such a length over so many leaves, and in order: it may come from a file.
    #[must_use]
    pub fn is_of(&self, num_decisions: u32, num_leaves: usize) -> bool {
        let step = self.step_decisions();
        self.num_decisions == DriftWindow::new(num_decisions, 0).num_decisions
            && self.filling.len() == num_leaves
            && self.num_filling < step
            && self.steps.len() <= STEPS
            && self.steps.iter().all(|counts| counts.len() == num_leaves)
    }

    fn step_decisions(&self) -> u32 {
        self.num_decisions / STEPS as u32
    }

    /// Counts the candidates of a decision by their leaves' numbers. Whether a step is whole with it, so that the index changes.
    pub fn add(&mut self, leaves: &[u32]) -> bool {
        for leaf in leaves {
            if let Some(count) = self.filling.get_mut(*leaf as usize) {
                *count = count.saturating_add(1);
            }
        }
        self.num_filling += 1;
        if self.num_filling < self.step_decisions() {
            return false;
        }
        if self.steps.len() == STEPS {
            self.steps.pop_front();
        }
        let empty = vec![0; self.filling.len()];
        self.steps.push_back(std::mem::replace(&mut self.filling, empty));
        self.num_filling = 0;
        true
    }

    /// Index of the window against the histogram of the file; none until the window is full.
    #[must_use]
    pub fn psi(&self, visits: &Visits) -> Option<f64> {
        if self.steps.len() < STEPS {
            return None;
        }
        let mut counts = vec![0_u64; self.filling.len()];
        for step in &self.steps {
            for (sum, count) in counts.iter_mut().zip(step) {
                *sum += u64::from(*count);
            }
        }
        Some(psi(&visits.offered, &counts))
    }

    /// Decisions that it holds, those of the step that is being filled included.
    #[must_use]
    pub fn num_held(&self) -> u32 {
        self.steps.len() as u32 * self.step_decisions() + self.num_filling
    }
}

impl Tree {
    /// Ids of the leaves, in the order of nodes.
    #[must_use]
    pub fn leaf_ids(&self) -> Vec<u32> {
        let ids = self.nodes().iter().filter_map(|node| match node {
            Node::Leaf { id, .. } => Some(*id),
            Node::Split { .. } => None,
        });
        ids.collect()
    }

    /// That a histogram is one of this tree's.
    ///
    /// # Errors
    /// Another number of leaves, too few decisions, too many candidates.
    pub(super) fn check_visits(&self, visits: &Visits) -> Result<(), TreeError> {
        let fail = |key, value: String, allowed: String| Err(TreeError::Value { key, value, allowed });
        let (least, most) = DECISIONS;
        if !(least..=most).contains(&visits.num_decisions) {
            let allowed = format!("{least} to {most}: record more lists");
            return fail("visits.decisions", visits.num_decisions.to_string(), allowed);
        }
        if visits.offered.len() != self.num_leaves() {
            let allowed = format!("{}, one for each leaf", self.num_leaves());
            return fail("visits.leaves", visits.offered.len().to_string(), allowed);
        }
        let sum: u128 = visits.offered.iter().map(|count| u128::from(*count)).sum();
        // A decision offers something, and what is counted is a whole number to every reader.
        if sum < u128::from(visits.num_decisions) || sum > u128::from(most) {
            let allowed = format!("{} to {most} candidates in all", visits.num_decisions);
            return fail("visits.leaves", sum.to_string(), allowed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_that_worked_out_by_hand() {
        // Shares 0.5, 0.3, 0.2 against 0.4, 0.4, 0.2: -0.1 ln 0.8 + 0.1 ln (4/3) = 0.02231 + 0.02877.
        let found = psi(
            &[5_000_000, 3_000_000, 2_000_000],
            &[4_000_000, 4_000_000, 2_000_000],
        );
        assert!((found - 0.051_083).abs() < 1e-5, "{found}");
        assert_eq!(psi(&[7, 0, 3], &[7, 0, 3]), 0.0);
        // Nothing against everything: (0.5/11, 10.5/11) against the reverse is 2 * 10/11 * ln 21.
        let found = psi(&[0, 10], &[10, 0]);
        assert!((found - 20.0 / 11.0 * 21.0_f64.ln()).abs() < 1e-12, "{found}");
        assert_eq!(psi(&[0, 10], &[10, 0]), psi(&[10, 0], &[0, 10]));
        assert_eq!(psi(&[4], &[9]), 0.0, "a tree of one leaf never drifts");
    }

    #[test]
    fn a_window_slides_in_steps_forgets_and_keeps_its_size() {
        let mut visits = Visits::none(2);
        (0..200).for_each(|_| visits.add(&[0, 0, 1]));
        assert_eq!(
            (visits.num_decisions, &visits.offered[..]),
            (200, &[400, 200][..])
        );
        let mut window = DriftWindow::new(100, 2);
        for number in 1..=99 {
            assert_eq!(window.add(&[0, 0, 1]), number % 5 == 0);
            assert_eq!(window.psi(&visits), None);
        }
        assert!(window.add(&[0, 0, 1]));
        assert!(window.psi(&visits).unwrap() < 1e-4);
        // Five of a hundred decisions are others now, then all are.
        for _ in 0..5 {
            window.add(&[1, 1, 1]);
        }
        let early = window.psi(&visits).unwrap();
        for _ in 0..95 {
            window.add(&[1, 1, 1]);
        }
        let late = window.psi(&visits).unwrap();
        assert!(early > 1e-4 && early < 0.1 && late > 3.0, "{early} {late}");
        let bytes = serde_json::to_string(&window).unwrap().len();
        for _ in 0..100_000 {
            window.add(&[1, 1, 1]);
        }
        assert_eq!(serde_json::to_string(&window).unwrap().len(), bytes);
        assert_eq!(window.num_held(), 100);
        // The same decisions again: nothing is left of the others.
        for _ in 0..100 {
            window.add(&[0, 0, 1]);
        }
        assert!(window.psi(&visits).unwrap() < 1e-4);
        // A leaf that there is not counts for nothing.
        window.add(&[9]);
    }

    #[test]
    fn a_window_from_a_file_goes_on_and_one_of_another_shape_is_known() {
        let mut window = DriftWindow::new(100, 3);
        for _ in 0..57 {
            window.add(&[2]);
        }
        let text = serde_json::to_string(&window).unwrap();
        let back: DriftWindow = serde_json::from_str(&text).unwrap();
        assert!(back == window && back.is_of(100, 3));
        assert!(!back.is_of(200, 3) && !back.is_of(100, 4));
        let broken: DriftWindow =
            serde_json::from_str(&text.replace("\"num_filling\":2", "\"num_filling\":5")).unwrap();
        assert!(!broken.is_of(100, 3));
    }
}
