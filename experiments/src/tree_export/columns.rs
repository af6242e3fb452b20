//! What a row holds, for the forms that name their columns.

use pleach_scheduler::features::FeatureSchema;

/// Names of the columns of a row, in order: features of the candidate, then those of the cluster.
pub(super) fn columns() -> Vec<&'static str> {
    let schema = FeatureSchema::current();
    (0..schema.num_candidate() + schema.num_global())
        .map(|index| schema.joined_name(index))
        .collect()
}
