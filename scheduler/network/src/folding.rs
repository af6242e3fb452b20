//! Taking the features that never varied in training out of a network.
//!
//! On a cluster of one GPU type every feature that tells types apart is a constant, and what the network has learned to
//! multiply it by is chance: a constant times a weight is a part of a bias, and nothing in training tells them apart. On
//! another cluster the feature moves, and that chance decides. So a network that is done is folded: the product goes into the
//! bias, the weight becomes zero. Where the feature has its one value the network says what it said before, within rounding;
//! elsewhere it does as it would there.
//!
//! Training itself does not know of it: a run that goes on goes on from weights that were not folded.

use pleach_scheduler::PolicyError;
use pleach_scheduler::policy::{DecisionPoint, Needs, Policy};

use crate::parameters::{Layout, at};
use crate::policy::LearnedPolicy;

/// Features that had one value, with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Constants {
    /// Columns of the global features.
    pub global: Vec<(usize, f32)>,
    /// Columns of the features of admissible candidates.
    pub candidates: Vec<(usize, f32)>,
}

/// Smallest and largest value of every feature that a policy has decided by.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureRanges {
    /// `[G]`
    global: Vec<(f32, f32)>,
    /// `[F]`, over admissible candidates.
    candidates: Vec<(f32, f32)>,
}

impl FeatureRanges {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(layout: &Layout) -> FeatureRanges {
        let nothing = (f32::INFINITY, f32::NEG_INFINITY);
        FeatureRanges {
            global: vec![nothing; layout.num_global],
            candidates: vec![nothing; layout.num_features],
        }
    }

    /// Looks at one decision: `global` is `[G]`, `candidates` is `[C, F]`, `mask` is `[C]`.
    pub fn observe(&mut self, global: &[f32], candidates: &[f32], mask: &[bool]) {
        widen(&mut self.global, global);
        let rows = candidates.chunks_exact(self.candidates.len().max(1));
        for (row, _) in rows.zip(mask).filter(|(_, admissible)| **admissible) {
            widen(&mut self.candidates, row);
        }
    }

    /// The features that had one value. One that was never seen is none of them.
    #[must_use]
    pub fn constants(&self) -> Constants {
        let of = |ranges: &[(f32, f32)]| {
            let columns = ranges.iter().enumerate();
            let constant = columns.filter(|(_, (least, most))| least == most);
            constant.map(|(column, (least, _))| (column, *least)).collect()
        };
        Constants {
            global: of(&self.global),
            candidates: of(&self.candidates),
        }
    }

    /// Both together; the order does not matter.
    #[must_use]
    pub fn merge(mut self, other: &FeatureRanges) -> FeatureRanges {
        let others = [
            (&mut self.global, &other.global),
            (&mut self.candidates, &other.candidates),
        ];
        for (own, other) in others {
            for (own, other) in own.iter_mut().zip(other) {
                *own = (own.0.min(other.0), own.1.max(other.1));
            }
        }
        self
    }
}

fn widen(ranges: &mut [(f32, f32)], values: &[f32]) {
    for (range, value) in ranges.iter_mut().zip(values) {
        *range = (range.0.min(*value), range.1.max(*value));
    }
}

/// Folds features that had one value into the biases of their layers. A network of operators stays as it is: it is not known
/// which of its products is a bias of which feature.
pub fn fold(layout: &Layout, parameters: &mut [f32], constants: &Constants) {
    if layout.graph.is_some() {
        return;
    }
    // The context's layer reads the pooled codes first.
    let pooled = layout.num_codes();
    let layers = [
        (at::ENCODER_0, at::ENCODER_0_BIAS, 0, &constants.candidates),
        (at::CONTEXT_0, at::CONTEXT_0_BIAS, pooled, &constants.global),
    ];
    for (weight, bias, first_row, constants) in layers {
        let (weight, bias) = (&layout.entries[weight], &layout.entries[bias]);
        let width = weight.shape[1];
        for (feature, value) in constants {
            let start = weight.range.start + (first_row + feature) * width;
            for output in 0..width {
                parameters[bias.range.start + output] += value * parameters[start + output];
                parameters[start + output] = 0.0;
            }
        }
    }
}

/// A network at work, with the ranges of the features that it sees.
#[derive(Clone, Debug)]
pub struct Watched {
    policy: LearnedPolicy,
    seen: FeatureRanges,
}

impl Watched {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(policy: LearnedPolicy) -> Watched {
        let seen = FeatureRanges::new(policy.layout());
        Watched { policy, seen }
    }

    /// Features that it has decided by.
    #[must_use]
    pub fn into_seen(self) -> FeatureRanges {
        self.seen
    }
}

impl Policy for Watched {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn needs(&self) -> Needs {
        self.policy.needs()
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let seen = point.observation;
        self.seen.observe(seen.global, seen.candidates, seen.mask);
        self.policy.score(point, scores)
    }
}

#[cfg(test)]
mod tests {
    use pleach_scheduler::observation::Spaces;

    use super::*;
    use crate::decision_batch::DecisionRef;
    use crate::fixtures;
    use crate::forward::Inference;
    use crate::parameters::NetworkConfig;

    fn logits(layout: &Layout, parameters: &[f32], row: DecisionRef<'_>) -> Vec<f32> {
        let inference = Inference::new(layout, parameters).unwrap();
        let mut logits = vec![0.0; row.num_candidates];
        inference.forward(row, &mut inference.scratch(row.num_candidates), &mut logits);
        logits
    }

    #[test]
    fn a_folded_network_says_the_same_where_features_are_constant_and_does_not_read_them_elsewhere() {
        let spaces = Spaces::new(3, 4, 4);
        for heads in [0, 2] {
            let config = NetworkConfig {
                hidden: 8,
                context: 8,
                heads,
                ..NetworkConfig::default()
            };
            let layout = Layout::new(config, spaces).unwrap();
            let parameters = fixtures::parameters(&layout, 5);
            let (global, mut candidates) = ([0.5, -1.0, 2.0], vec![0.0_f32; 12]);
            for (index, x) in candidates.iter_mut().enumerate() {
                *x = if index % 4 == 2 {
                    0.75
                } else {
                    (index as f32).sin()
                };
            }
            // The fourth row is masked, so its third feature does not count.
            candidates.extend([1.0, 1.0, -9.0, 1.0]);
            let mut ranges = FeatureRanges::new(&layout);
            let mask = [true, true, true, false];
            ranges.observe(&[0.1, -1.0, 2.0], &candidates, &mask);
            let mut other = FeatureRanges::new(&layout);
            other.observe(&global, &candidates, &mask);
            let ranges = ranges.merge(&other);
            let mut folded = parameters.clone();
            let constants = ranges.constants();
            assert_eq!(constants.global, [(1, -1.0), (2, 2.0)]);
            assert_eq!(constants.candidates, [(2, 0.75)]);
            fold(&layout, &mut folded, &constants);
            let logits = |parameters: &[f32], global: &[f32], candidates: &[f32]| {
                let row = DecisionRef {
                    global,
                    candidates,
                    num_candidates: 3,
                    prior: &[0.0; 3],
                };
                logits(&layout, parameters, row)
            };
            let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
            let said = logits(&parameters, &global, &candidates[..12]);
            assert!(near(&said, &logits(&folded, &global, &candidates[..12])));
            let mut moved = candidates[..12].to_vec();
            moved[6] = 3.0;
            let away = [0.5, 4.0, -2.0];
            assert!(near(&said, &logits(&folded, &away, &moved)));
            assert!(!near(&said, &logits(&parameters, &away, &moved)));
            let again = folded.clone();
            fold(&layout, &mut folded, &constants);
            assert_eq!(folded, again);
        }
    }
}
