//! A tree leaves clusters that it was not judged on to a heuristic.

use pleach_scheduler::tree::{Tree, TreeError};

/// The tree, which steps aside for the heuristic that was best here where a cluster has more GPU types than any did here.
///
/// # Errors
/// A name that is no heuristic's, more types than a file can say; neither in practice.
pub fn narrowed(tree: Tree, best: &str, num_types: usize) -> Result<Tree, TreeError> {
    let most = u32::try_from(num_types).unwrap_or(u32::MAX);
    tree.with_fallback(Some(best.to_owned()))?
        .with_gpu_types_max(Some(most.max(1)))
}
