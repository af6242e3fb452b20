//! What a row holds, for the forms that name their columns.

use pleach_scheduler::tree::Tree;

/// Names of the columns of a row, in order: as many as the tree needs.
pub(super) fn columns(tree: &Tree) -> Vec<&'static str> {
    let features = tree.schema().features[..tree.width()].iter();
    features.map(|feature| feature.name).collect()
}
