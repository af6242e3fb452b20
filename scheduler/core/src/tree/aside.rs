//! A tree steps aside where it has not been: on clusters of more GPU types than it was judged on its fallback decides, and where gangs
//! are wide or run times guessed a heuristic that it names.
//!
//! On a cluster of one GPU type every feature that tells types apart is a constant, so nothing was learned of it, and leaves that
//! looked harmless there can hold a queue for ever elsewhere. The heuristic orders the tree's own candidates, under its guards.

use super::Tree;
use super::check;
use super::error::TreeError;
use crate::cluster::Cluster;
use crate::error::PolicyError;
use crate::heuristics::Ranking;
use crate::policy::DecisionPoint;
use crate::wide_gangs::WideGangs;

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

    /// What decides where gangs are wide, if not the tree.
    #[must_use]
    pub fn wide_gangs(&self) -> Option<&WideGangs> {
        self.wide_gangs.as_ref()
    }

    /// The same tree, which leaves wide gangs to another.
    ///
    /// # Errors
    /// A bound out of its range, a name that is no heuristic's.
    pub fn with_wide_gangs(mut self, wide: Option<WideGangs>) -> Result<Tree, TreeError> {
        if let Some(wide) = &wide {
            check::wide_gangs(wide)?;
        }
        if wide != self.wide_gangs {
            // As with other guards: it meets other candidates.
            self.visits = None;
        }
        self.wide_gangs = wide;
        Ok(self)
    }

    /// Made with its tree, which has checked the names.
    pub(super) fn rankings(&self) -> Vec<Ranking> {
        let types = self.gpu_types_max.and(self.fallback());
        let names = self.wide_gangs.iter().flat_map(WideGangs::names).chain(types);
        names.filter_map(|name| Ranking::new(name).ok()).collect()
    }

    /// The heuristic that decides on this cluster now; none: the tree.
    #[must_use]
    pub fn decider(&self, cluster: &Cluster) -> Option<&str> {
        let wide = self.wide_gangs.as_ref().and_then(|wide| wide.decider(cluster));
        wide.or_else(|| self.fallback().filter(|_| self.has_too_many_types(cluster)))
    }

    fn has_too_many_types(&self, cluster: &Cluster) -> bool {
        self.gpu_types_max
            .is_some_and(|most| cluster.num_types() > most as usize)
    }

    /// Why another decides on this cluster than the tree, which is called so; none where the tree does.
    #[must_use]
    pub fn aside(&self, cluster: &Cluster, tree: &str) -> Option<String> {
        let decider = self.decider(cluster)?;
        Some(
            match self.gpu_types_max.filter(|_| self.has_too_many_types(cluster)) {
                Some(most) => format!(
                    "{decider} decides: the cluster has {} GPU types, and {tree} was judged on {most}",
                    cluster.num_types()
                ),
                None if cluster.has_predicted() => {
                    format!(
                        "{decider} decides: run times are guessed, or gangs wide, and {tree} was not judged so"
                    )
                }
                None => format!("{decider} decides: gangs are wide, and {tree} was not judged on such"),
            },
        )
    }

    /// The same as rules, for readers of the tree.
    pub(super) fn aside_lines(&self) -> impl Iterator<Item = String> {
        let types = self.gpu_types_max.map(|most| {
            format!(
                "Guard: on clusters of more than {most} GPU type{} {} decides, under the other guards.",
                if most == 1 { "" } else { "s" },
                self.fallback().unwrap_or_default()
            )
        });
        let wide = self.wide_gangs.as_ref();
        types
            .into_iter()
            .chain(wide.map(|wide| format!("Guard: {wide}, under the other guards.")))
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
