//! What a distillation did, as data for a table or a page: the size/performance frontier and how it came about.

use pleach_scheduler::policy::TieKey;
use pleach_scheduler::tree::Tree;
use serde::{Deserialize, Serialize};

use crate::config::DistillConfig;
use crate::fidelity::Fidelity;

/// One tree that was fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudentReport {
    /// Round of DAgger; 0 = fitted on the teacher's own episodes.
    pub round: usize,
    /// Number of leaves.
    pub leaves: usize,
    /// Splits on the longest path.
    pub depth: usize,
    /// Order inside a tier.
    pub tie_key: TieKey,
    /// Names of the features that it reads.
    pub features: Vec<String>,
    /// Agreement with the teacher on decision points that it was not fitted to.
    pub fidelity: Fidelity,
    /// Paired ratio to the judge's baseline, of average JCT or of what else the judge compares by; none if it was not judged.
    pub ratio: Option<f64>,
}

impl StudentReport {
    pub(crate) fn of(round: usize, tree: &Tree, fidelity: Fidelity, ratio: Option<f64>) -> StudentReport {
        StudentReport {
            round,
            leaves: tree.num_leaves(),
            depth: tree.depth(),
            tie_key: tree.meta().tie_key,
            features: tree.features().into_iter().map(String::from).collect(),
            fidelity,
            ratio,
        }
    }
}

/// The whole distillation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the teacher.
    pub teacher: String,
    /// The settings.
    pub config: DistillConfig,
    /// Hash of the feature schema.
    pub schema_hash: String,
    /// Episodes that were run.
    pub num_episodes: usize,
    /// Decision points that were seen.
    pub num_offered: u64,
    /// Decision points that were kept.
    pub num_points: usize,
    /// Candidates that were kept.
    pub num_rows: usize,
    /// Every tree that was fitted, in the order of fitting.
    pub students: Vec<StudentReport>,
    /// Place among the students of the one that was taken.
    pub taken: usize,
    /// The path of pruning by simulation from there, the student first; empty without pruning.
    pub pruning: Vec<StudentReport>,
    /// The result.
    pub result: StudentReport,
    /// The result as text.
    pub text: String,
}
