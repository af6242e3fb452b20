//! What the tree is fitted to: the teacher's score relative to the others at the same decision point.
//!
//! A policy's scores mean something only among the candidates of one decision point: adding a constant to all of them
//! changes nothing. So they are centred on their mean. Not on the best: against `score - max` the fitted trees fall back
//! to plain rank rules and schedule 10 to 21 % worse than their teacher, against `score - mean` 1.5 to 3.1 %.
//!
//! # Source
//! Our own experiment with an evolved teacher on 64 servers; `docs/distilling.md`. List-wise weights: ListNet's softmax
//! over the list (Cao et al., ICML'07).

use pleach_scheduler::portable_math::exp_f32;
use pleach_scheduler::settings;
use pleach_scheduler::settings::Above;
use serde::{Deserialize, Serialize};

use crate::dataset::Dataset;

/// How scores of different decision points are made comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Centre {
    /// score - mean: for teachers whose scores are logits, such as networks.
    #[default]
    Mean,
    /// -(number of better candidates), centred on the mean: for teachers whose scores have only an order, such as
    /// heuristics in seconds.
    Rank,
    /// The score itself: for teachers whose scores compare between decision points, such as trees.
    None,
}

settings! {
    /// Targets and weights.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct TargetConfig {
        /// How scores are made comparable.
        pub centre: Centre = Centre::Mean;
        /// A score further than this below the best of its decision point counts as this far: how bad a candidate is that is
        /// never chosen need not cost a leaf, and a score that means *never* (-1e9) does not drown all others. In units of the
        /// teacher, above 0; of use with [`Centre::Mean`] only. The default 8 is for logits: e^-8 is 0.03 %. Trees of 4 leaves
        /// agreed with three made-up teachers at 93.0, 89.1 and 99.2 % of the decisions with it; at 86.9, 87.6 and 99.0 % with
        /// 30; at 91.9, 87.5 and 99.1 % with 4.
        pub span: f32 = 8.0, in Above(0.0, 1e12);
        /// Take what smaller trees explain out of the mean, see [`Targets::recentre`]. No use with [`Centre::None`]. Worth a
        /// try where the teacher holds by choice: there the fit of 64 leaves lost 0.002 instead of 0.020 of a made-up teacher's
        /// score per decision. With teachers that hold only when they must it was better for some sizes and worse for others.
        pub recentre: bool;
        /// Weight of a row is `1/n + sharpness * softmax(score)`; 0 = all candidates alike.
        pub sharpness: f32 = 1.0, in 0.0..=1e3;
    }
}

/// Rows to fit a tree on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Targets {
    /// Decision point of each row. `[N]`
    pub point: Vec<u32>,
    /// Row in the dataset. `[N]`
    pub row: Vec<u32>,
    /// What the tree should answer. `[N]`
    pub target: Vec<f32>,
    /// Above 0. `[N]`
    pub weight: Vec<f32>,
}

impl Targets {
    /// Targets of the given decision points.
    #[must_use]
    pub fn of(data: &Dataset, points: &[usize], config: &TargetConfig) -> Targets {
        let mut targets = Targets::default();
        let mut scores = Vec::new();
        for &point in points {
            relative(data.point(point).teacher, config, &mut scores);
            let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = scores.iter().map(|score| exp_f32(score - best)).sum();
            for (row, score) in data.rows_of(point).zip(&scores) {
                targets.point.push(point as u32);
                targets.row.push(row as u32);
                targets.target.push(*score);
                let share = exp_f32(score - best) / sum;
                targets
                    .weight
                    .push(1.0 / scores.len() as f32 + config.sharpness * share);
            }
        }
        targets
    }
}

impl Targets {
    /// Centres the targets of each decision point anew, on the mean of what a tree leaves unexplained.
    ///
    /// Both the tree f and the constants c of the decision points are unknown in `score = c + f(row)`. The plain mean
    /// takes c for the mean score, which moves with the *number* of candidates: one hold far below three starts shifts
    /// it more than below thirty, and leaves would be spent on telling full queues from short ones, which changes no
    /// decision. With f known from a smaller tree, c is the weighted mean of `score - f(row)`.
    pub fn recentre(&mut self, answer: impl Fn(usize) -> f64) {
        let mut start = 0;
        while start < self.row.len() {
            let point = self.point[start];
            let num = self.point[start..]
                .iter()
                .take_while(|other| **other == point)
                .count();
            let rows = start..start + num;
            let (mut sum, mut total) = (0.0, 0.0);
            for row in rows.clone() {
                let weight = f64::from(self.weight[row]);
                sum += weight * (f64::from(self.target[row]) - answer(row));
                total += weight;
            }
            for row in rows {
                self.target[row] = (f64::from(self.target[row]) - sum / total) as f32;
            }
            start += num;
        }
    }
}

/// The scores of one decision point, with a floor and centred.
fn relative(teacher: &[f32], config: &TargetConfig, scores: &mut Vec<f32>) {
    scores.clear();
    if config.centre == Centre::None {
        scores.extend_from_slice(teacher);
        return;
    }
    let best = teacher.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let floor = best - config.span;
    scores.extend(teacher.iter().map(|score| score.max(floor)));
    if config.centre == Centre::Rank {
        for (score, own) in scores.iter_mut().zip(teacher) {
            *score = -(teacher.iter().filter(|other| *other > own).count() as f32);
        }
    }
    let mean = scores.iter().map(|score| f64::from(*score)).sum::<f64>() / scores.len() as f64;
    for score in scores {
        *score = (f64::from(*score) - mean) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worked(teacher: &[f32], config: &TargetConfig) -> Vec<f32> {
        let mut scores = Vec::new();
        relative(teacher, config, &mut scores);
        scores
    }

    #[test]
    fn scores_are_centred_on_the_mean_of_their_decision_point() {
        let config = TargetConfig::default();
        assert_eq!(worked(&[1.0, 2.0, 6.0], &config), [-2.0, -1.0, 3.0]);
        assert_eq!(
            worked(&[101.0, 102.0, 106.0], &config),
            [-2.0, -1.0, 3.0],
            "a constant changes nothing"
        );
    }

    #[test]
    fn a_score_that_means_never_counts_as_the_span() {
        let config = TargetConfig {
            span: 4.0,
            ..TargetConfig::default()
        };
        assert_eq!(worked(&[f32::MIN, 8.0], &config), [-2.0, 2.0]);
    }

    #[test]
    fn recentring_removes_what_the_number_of_candidates_does_to_the_mean() {
        // Two points with the same truth: hold is 8 worse than any start. The means differ, 4 and 2 above hold.
        let mut targets = Targets {
            point: vec![0, 0, 1, 1, 1, 1],
            row: (0..6).collect(),
            target: vec![-4.0, 4.0, -6.0, 2.0, 2.0, 2.0],
            weight: vec![1.0; 6],
        };
        let is_hold = |row: usize| row == 0 || row == 2;
        let of_tree = |row: usize| if is_hold(row) { -5.0 } else { 2.5 };
        targets.recentre(of_tree);
        let (first, second) = (&targets.target[..2], &targets.target[2..]);
        assert!((first[1] - first[0] - 8.0).abs() < 1e-6 && (second[1] - second[0] - 8.0).abs() < 1e-6);
        // Unexplained before: starts at 4 and 2. Now 2.75 and 2.625, and each pass brings them closer.
        assert!(
            (first[1] - 2.75).abs() < 1e-6 && (second[1] - 2.625).abs() < 1e-6,
            "{:?}",
            targets.target
        );
    }

    #[test]
    fn ranks_forget_the_unit_of_the_teacher() {
        let config = TargetConfig {
            centre: Centre::Rank,
            ..TargetConfig::default()
        };
        assert_eq!(worked(&[-3600.0, 0.0, f32::MIN], &config), [0.0, 1.0, -1.0]);
        assert_eq!(worked(&[5.0, 5.0, 6.0, 6.0], &config), [-1.0, -1.0, 1.0, 1.0]);
    }
}
