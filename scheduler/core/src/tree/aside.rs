//! A tree steps aside where it has not been: on clusters of more GPU types than it was judged on, its fallback decides.
//!
//! On a cluster of one GPU type every feature that tells types apart is a constant, so nothing was learned of it, and leaves that
//! looked harmless there can hold a queue for ever elsewhere. The fallback orders the tree's own candidates, under the tree's guards.

use super::Tree;
use super::check;
use super::error::TreeError;
use crate::cluster::Cluster;
use crate::error::PolicyError;
use crate::heuristics::Ranking;
use crate::policy::DecisionPoint;

impl Tree {
    /// The most GPU types of a cluster on which the tree decides; none: any.
    #[must_use]
    pub fn gpu_types_max(&self) -> Option<u32> {
        self.gpu_types_max
    }

    /// The same tree, which leaves clusters of more GPU types than this to its fallback.
    ///
    /// # Errors
    /// A number outside 1 to 64, a tree without a fallback.
    pub fn with_gpu_types_max(mut self, most: Option<u32>) -> Result<Tree, TreeError> {
        if let Some(most) = most {
            check::gpu_types_max(most, self.fallback())?;
        }
        self.gpu_types_max = most;
        Ok(self)
    }

    /// Made with its tree, which has checked the name.
    pub(super) fn ranking(&self) -> Option<Ranking> {
        self.gpu_types_max?;
        Ranking::new(self.fallback()?).ok()
    }

    /// Whether this cluster is left to the fallback.
    #[must_use]
    pub fn steps_aside(&self, cluster: &Cluster) -> bool {
        self.gpu_types_max
            .is_some_and(|most| cluster.num_types() > most as usize)
    }

    /// Why the fallback decides on this cluster; none where the tree does.
    pub(super) fn aside_in_words(&self, cluster: &Cluster) -> Option<String> {
        let most = self.gpu_types_max.filter(|_| self.steps_aside(cluster))?;
        Some(format!(
            "{} decides: the cluster has {} GPU types, and the tree was judged on {most}",
            self.fallback().unwrap_or_default(),
            cluster.num_types()
        ))
    }

    /// The same as a rule, for readers of the tree.
    pub(super) fn aside_line(&self) -> Option<String> {
        let most = self.gpu_types_max?;
        Some(format!(
            "Guard: on clusters of more than {most} GPU type{} {} decides, under the other guards.",
            if most == 1 { "" } else { "s" },
            self.fallback().unwrap_or_default()
        ))
    }
}

/// Scores by the place that a heuristic gives: its choice highest, what is masked lowest.
pub(super) fn score(
    ranking: &mut Ranking,
    point: DecisionPoint<'_>,
    scores: &mut [f32],
) -> Result<(), PolicyError> {
    scores.fill(-(scores.len() as f32));
    for (place, index) in ranking.order(point)?.enumerate() {
        scores[index] = -(place as f32);
    }
    Ok(())
}
