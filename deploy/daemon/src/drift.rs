//! The watch for drift: whether what the tree is offered still ends in its leaves as it did where it was judged.
//!
//! A round comes every few seconds, whether anything happened or not, and decides the same again while nothing does. In the
//! simulator, where the histogram of the file is from, decisions are taken when something happens. So a round counts only where
//! jobs or nodes are others than in the last round that counted.
//!
//! What is remembered is written to `drift.json` of the daemon's folder after each round that changed it, so a restart goes on
//! with the same window and stays with the fallback where drift has led to it. Reading the policy again begins anew.

use std::hash::{DefaultHasher, Hash, Hasher};

use pleach_scheduler::tree::{DriftWindow, Visits};
use serde::{Deserialize, Serialize};

use crate::config::{OnDrift, RoundSettings};
use crate::policy::Loaded;
use crate::snapshot::{Phase, Snapshot};

/// What is remembered of a watch, also across restarts. Its size is bounded by the tree's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// The tree that it is about.
    tree_hash: String,
    /// Candidates of the last decisions.
    window: DriftWindow,
    /// The last index; none until a window was full.
    psi: Option<f64>,
    /// Whether the fallback decides.
    is_degraded: bool,
}

/// A watch over one tree.
#[derive(Clone, Debug)]
pub struct Drift {
    visits: Visits,
    limit: f64,
    on_drift: OnDrift,
    remembered: Remembered,
    /// Of jobs and nodes in the last round that counted.
    seen: Option<u64>,
}

impl Drift {
    /// A watch over a policy; none where it is no tree, or one whose file has no visits.
    #[must_use]
    pub fn new(loaded: &Loaded, settings: &RoundSettings) -> Option<Drift> {
        let tree = loaded.tree.as_ref()?.tree();
        let visits = tree.visits()?.clone();
        Some(Drift {
            remembered: Remembered {
                tree_hash: tree.hash(),
                window: DriftWindow::new(settings.drift_window, visits.offered.len()),
                psi: None,
                is_degraded: false,
            },
            visits,
            limit: settings.drift_limit,
            on_drift: settings.on_drift,
            seen: None,
        })
    }

    /// Goes on where another process ended, if that was about the same tree and as long a window.
    #[must_use]
    pub fn going_on(mut self, remembered: Option<Remembered>, settings: &RoundSettings) -> Drift {
        let fits = |found: &Remembered| {
            found.tree_hash == self.remembered.tree_hash
                && found
                    .window
                    .is_of(settings.drift_window, self.visits.offered.len())
                && found.psi.is_none_or(f64::is_finite)
        };
        if let Some(found) = remembered.filter(fits) {
            self.remembered = found;
            // The operator may have turned the fallback off since.
            self.remembered.is_degraded &= self.on_drift == OnDrift::Fallback;
        }
        self
    }

    /// What is to be written down.
    #[must_use]
    pub fn remembered(&self) -> &Remembered {
        &self.remembered
    }

    /// The last index; none until a window was full.
    #[must_use]
    pub fn psi(&self) -> Option<f64> {
        self.remembered.psi
    }

    /// Whether the last window has drifted.
    #[must_use]
    pub fn is_drifted(&self) -> bool {
        self.remembered.psi.is_some_and(|psi| psi > self.limit)
    }

    /// Why the fallback is to decide; none while the tree may.
    #[must_use]
    pub fn degraded(&self) -> Option<String> {
        let reason = format!(
            "{}; the fallback decides until the policy is read again",
            self.words()?
        );
        self.remembered.is_degraded.then_some(reason)
    }

    /// What an operator should know; none while all is well.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.degraded()
            .or_else(|| self.words().filter(|_| self.is_drifted()))
    }

    fn words(&self) -> Option<String> {
        let (psi, limit) = (self.remembered.psi?, self.limit);
        Some(format!(
            "drift: what the tree is offered is not what it was judged on (stability index {psi:.3}, limit {limit})"
        ))
    }

    /// Counts a round's decisions: the leaves' numbers of all that was offered at each. What is new to the operator, if anything.
    pub fn count(&mut self, snapshot: &Snapshot, offered: &[Vec<u32>]) -> Option<String> {
        let now = digest(snapshot);
        if offered.is_empty() || self.seen.replace(now) == Some(now) {
            return None;
        }
        let was_drifted = self.is_drifted();
        let mut is_new = false;
        for leaves in offered {
            is_new |= self.remembered.window.add(leaves);
        }
        if !is_new {
            return None;
        }
        self.remembered.psi = self.remembered.window.psi(&self.visits);
        match (was_drifted, self.is_drifted()) {
            (false, true) => {
                self.remembered.is_degraded = self.on_drift == OnDrift::Fallback;
                self.warning()
            }
            (true, false) => {
                let psi = self.remembered.psi.unwrap_or_default();
                Some(format!(
                    "drift: it is over (stability index {psi:.3}, limit {})",
                    self.limit
                ))
            }
            _ => None,
        }
    }
}

/// Of all whose change is an event: jobs with their phases, nodes with their states.
fn digest(snapshot: &Snapshot) -> u64 {
    // Its keys are fixed, and it is compared with itself only.
    let mut hasher = DefaultHasher::new();
    for job in snapshot.jobs.iter().filter(|job| !job.terms.is_lease) {
        job.id.to_string().hash(&mut hasher);
        let phase = match &job.phase {
            // In shadow mode one waits as the other does.
            Phase::Waiting | Phase::Loose => 0_u8,
            Phase::Released { .. } | Phase::Running => 1,
            Phase::Blocked { .. } => 2,
            Phase::Foreign { .. } => 3,
        };
        phase.hash(&mut hasher);
    }
    for node in &snapshot.nodes {
        node.name.hash(&mut hasher);
        node.num_gpus_used.hash(&mut hasher);
        format!("{:?}", node.state).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
