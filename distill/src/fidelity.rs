//! How faithful a tree is to its teacher, by the decisions that both would take.
//!
//! A diagnostic and not a goal: a tree that agrees less can schedule better. Trees are chosen by simulation
//! ([`crate::prune`]).

use pleach_scheduler::policy::TieKey;
use pleach_scheduler::tree::FlatTree;
use serde::{Deserialize, Serialize};

use crate::dataset::Dataset;

/// Agreement of a tree with its teacher over recorded decision points. Shares are 0 to 1, and 1 where there is nothing
/// to disagree about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fidelity {
    /// Decision points.
    pub num_points: usize,
    /// Share of them at which both choose alike.
    pub agreement: f64,
    /// The same, each point weighted by how much the teacher cares: its best score less its mean score.
    pub agreement_weighted: f64,
    /// Share of the points at which the teacher holds.
    pub hold_share: f64,
    /// Agreement where the teacher holds.
    pub agreement_hold: f64,
    /// Agreement where the teacher acts.
    pub agreement_act: f64,
    /// Mean of the teacher's best score less its score for the tree's choice; in units of the teacher, at most `span`.
    pub regret: f64,
}

impl Fidelity {
    /// Compares a tree with the teacher over some points. Scores further than `span` below the best count as that far.
    #[must_use]
    pub fn of(data: &Dataset, points: &[usize], tree: &FlatTree, key: TieKey, span: f32) -> Fidelity {
        let (mut alike, mut holds, mut holds_alike) = (0, 0, 0);
        let (mut spread_sum, mut spread_alike, mut regret) = (0.0, 0.0, 0.0);
        for &index in points {
            let point = data.point(index);
            let choice = point.choice_of(tree, key);
            let best = f64::from(point.teacher.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            let below = |score: f32| (best - f64::from(score)).min(f64::from(span));
            let spread = point.teacher.iter().map(|score| below(*score)).sum::<f64>() / point.len() as f64;
            spread_sum += spread;
            regret += below(point.teacher[choice]);
            let is_hold = point.is_hold(point.choice);
            holds += usize::from(is_hold);
            if choice == point.choice {
                alike += 1;
                spread_alike += spread;
                holds_alike += usize::from(is_hold);
            }
        }
        let share = |part: usize, of: usize| if of == 0 { 1.0 } else { part as f64 / of as f64 };
        let num_points = points.len();
        Fidelity {
            num_points,
            agreement: share(alike, num_points),
            agreement_weighted: if spread_sum > 0.0 {
                spread_alike / spread_sum
            } else {
                1.0
            },
            hold_share: if num_points == 0 {
                0.0
            } else {
                share(holds, num_points)
            },
            agreement_hold: share(holds_alike, holds),
            agreement_act: share(alike - holds_alike, num_points - holds),
            regret: if num_points == 0 {
                0.0
            } else {
                regret / num_points as f64
            },
        }
    }
}
