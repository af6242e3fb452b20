//! Why one candidate comes before another: the split where their paths part, or what decides inside the tier.
//!
//! # Source
//! People ask why this *rather than that* (Miller, Artif. Intell. 267, 2019); of two paths of a tree the answer is the first
//! condition that one meets and the other does not.

use std::fmt;

use serde::Serialize;

use super::reach::tier_of;
use super::text::{condition, quantity};
use super::{Node, Tree, TreePolicy};
use crate::error::PolicyError;
use crate::key_weight::weighted_sum_of_row;
use crate::policy::{DecisionPoint, TieKey};

/// The split where two paths part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parting {
    /// Name of the feature.
    pub feature: &'static str,
    /// The condition that the first meets, with the threshold in its unit.
    pub condition: String,
    /// The first one's value, in its unit.
    pub value: String,
    /// The other's.
    pub other_value: String,
}

/// How one candidate stands to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contrast {
    /// Tier of the first; 1 is the best.
    pub tier: usize,
    /// Tier of the other.
    pub other_tier: usize,
    /// Where their paths part; none where both come to one leaf.
    pub parting: Option<Parting>,
    /// What decides where the tiers are the same, with both values.
    pub key: Option<String>,
    /// What decides here in place of the tree, and why; the tiers then decide nothing.
    pub aside: Option<String>,
    /// Why a guard does not allow the other, whatever the tiers say.
    pub guard: Option<String>,
}

impl Tree {
    /// The split where the paths of two joined rows part; none where they end in the same leaf.
    ///
    /// # Panics
    /// If a row is shorter than the joined row of the schema.
    #[must_use]
    pub fn parting(&self, row: &[f32], other: &[f32]) -> Option<Parting> {
        let mut place = 0;
        while let Node::Split {
            feature,
            threshold,
            left,
            right,
        } = self.nodes()[place]
        {
            let (value, others) = (row[usize::from(feature)], other[usize::from(feature)]);
            let holds = value <= threshold;
            if holds != (others <= threshold) {
                let found = self.feature(feature);
                let said = |value: f32| quantity(found.scale.invert(value), found.unit);
                return Some(Parting {
                    feature: found.name,
                    condition: condition(found, threshold, holds),
                    value: said(value),
                    other_value: said(others),
                });
            }
            place = if holds { left as usize } else { right as usize };
        }
        None
    }
}

impl TreePolicy {
    /// How candidate `first` stands to candidate `other`.
    ///
    /// # Errors
    /// As `score`: where the observation was not filled.
    ///
    /// # Panics
    /// If one of the candidates is not there.
    pub fn contrast(
        &self,
        point: &DecisionPoint<'_>,
        (first, other): (usize, usize),
    ) -> Result<Contrast, PolicyError> {
        self.check_shape(&point.observation, point.candidates.len())?;
        let tree = self.tree();
        let rows = (self.joined_row(point, first), self.joined_row(point, other));
        let tiers = tree.tiers();
        let tier = |row: &[f32]| match tree.nodes()[tree.walk(row)] {
            Node::Leaf { score, .. } => tier_of(score, &tiers),
            Node::Split { .. } => 0,
        };
        let (tier, other_tier) = (tier(&rows.0), tier(&rows.1));
        Ok(Contrast {
            tier,
            other_tier,
            parting: tree.parting(&rows.0, &rows.1),
            key: (tier == other_tier).then(|| self.key_words(point, (first, other))),
            aside: tree.aside(point.cluster, "the tree"),
            guard: (!self.is_allowed(point, other))
                .then(|| self.guard_in_words(point, other))
                .flatten(),
        })
    }

    /// Whether the guards let a candidate be chosen.
    pub(super) fn is_allowed(&self, point: &DecisionPoint<'_>, index: usize) -> bool {
        let allowed = self.tree().guards().allowed(point.cluster, point.candidates);
        allowed >> index & 1 == 1
    }

    /// What decides between two candidates of a tier.
    fn key_words(&self, point: &DecisionPoint<'_>, (first, other): (usize, usize)) -> String {
        let meta = self.tree().meta();
        let set = point.candidates;
        for (index, whose) in [(first, "the first"), (other, "the other")] {
            if set.get(index).is_none_or(|row| row.job.is_none()) {
                return format!("{whose} of them holds, which comes last of its tier");
            }
        }
        let weights = &meta.key_weights;
        if !weights.is_empty() {
            let sum = |index: usize| weighted_sum_of_row(weights, point.observation.row(index));
            let (own, others) = (sum(first), sum(other));
            if own != others {
                return format!("the least weighted key, {own:.4} against {others:.4}");
            }
        }
        let key = |index: usize| meta.tie_key.of(point.cluster, set, index);
        let (own, others) = (key(first), key(other));
        if own == others {
            return "the order of the candidates, for all else is equal".into();
        }
        match meta.tie_key {
            TieKey::Index => "the order of the candidates".into(),
            TieKey::Arrival => "the earlier arrival".into(),
            TieKey::ShortestEstimate => {
                let (own, others) = (quantity(own, "s"), quantity(others, "s"));
                format!("the shortest believed rest, {own} against {others}")
            }
            TieKey::SmallestGpuTime => {
                let (own, others) = (quantity(own, "GPU s"), quantity(others, "GPU s"));
                format!("the smallest believed GPU time, {own} against {others}")
            }
        }
    }
}

impl fmt::Display for Parting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parting {
            feature,
            condition,
            value,
            other_value,
        } = self;
        write!(out, "{condition} ({feature} is {value} against {other_value})")
    }
}

impl fmt::Display for Contrast {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Contrast { tier, other_tier, .. } = self;
        if let Some(decider) = self.guard.as_ref().or(self.aside.as_ref()) {
            return write!(out, "{decider}");
        }
        if let Some(key) = &self.key {
            return write!(out, "both are in tier {tier}, where {key}, decides");
        }
        write!(out, "tier {tier} against tier {other_tier}")?;
        match &self.parting {
            Some(parting) => write!(out, ", parted by {parting}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_tree;
    use super::*;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::pass::Pass;
    use crate::policy::Policy;

    /// Four GPUs; job 0 of 2 x 3,000 s came before job 1 of 2 x 600 s and job 2 of 1 x 900 s. The tree prefers what needs at
    /// most 3,600 GPU s: 6,000 against 1,200 and 900.
    #[test]
    fn the_paths_of_two_jobs_part_where_one_sees_it_by_hand() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
        for (gpus, run_s) in [(2, 3000.0), (2, 600.0), (1, 900.0)] {
            submit(&mut cluster, gpus, run_s);
        }
        let policy = TreePolicy::new(small_tree());
        let mut pass = Pass::new();
        pass.open(&cluster, &policy.needs());
        pass.observe(&cluster);
        let of = |job: u32| {
            let mut rows = pass.candidates().iter();
            let place = rows.position(|row| row.job.is_some_and(|found| found.0 == job));
            place.unwrap()
        };
        let point = DecisionPoint {
            cluster: &cluster,
            candidates: pass.candidates(),
            observation: pass.observation().as_ref(),
        };
        let said = |pair| policy.contrast(&point, pair).unwrap().to_string();
        assert_eq!(
            said((of(1), of(0))),
            "tier 1 against tier 2, parted by gpu_time_gpu_s <= 3,600 GPU s (gpu_time_gpu_s is 1,200 GPU s against \
             6,000 GPU s)"
        );
        assert_eq!(
            said((of(1), of(2))),
            "both are in tier 1, where the shortest believed rest, 600 s (10.0 min) against 900 s (15.0 min), decides"
        );
        assert!(
            said((of(1), 0))
                .starts_with("tier 1 against tier 3, parted by is_hold = 0 (is_hold is 0 against 1)")
        );
    }
}
