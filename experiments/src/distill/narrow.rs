//! A tree leaves clusters that it was not judged on to a heuristic.

use pleach_scheduler::tree::{Tree, TreeError};

/// Heuristics that wait for a better place, and the orders beneath them. On a cluster that was not tried, waiting is what can
/// cost most. On Philly's two sizes of nodes those that wait take 6 to 13 % longer (docs/distilling.md).
const BENEATH: [(&str, &str); 3] = [
    ("sjf-delay", "sjf-reserve"),
    ("gpu-time-delay", "gpu-time-reserve"),
    ("best-type-delay", "sjf-best-type"),
];

/// The tree, which steps aside where a cluster has more GPU types than any did here: for the heuristic that was best here, or the
/// order beneath it if it waits.
///
/// # Errors
/// A name that is no heuristic's, more types than a file can say; neither in practice.
pub fn narrowed(tree: Tree, best: &str, num_types: usize) -> Result<Tree, TreeError> {
    let beneath = BENEATH.iter().find(|(waits, _)| *waits == best);
    let fallback = beneath.map_or(best, |(_, order)| order);
    let most = u32::try_from(num_types).unwrap_or(u32::MAX);
    tree.with_fallback(Some(fallback.to_owned()))?
        .with_gpu_types_max(Some(most.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_scheduler::heuristics::names;

    #[test]
    fn a_tree_steps_aside_for_the_best_heuristic_or_the_order_beneath_it() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/trees/GavelShare-v1-tree.json"
        );
        let tree = Tree::load(path.as_ref()).unwrap();
        for name in names() {
            let own = narrowed(tree.clone(), name, 2).unwrap();
            let fallback = own.fallback().unwrap();
            assert_eq!(own.gpu_types_max(), Some(2));
            assert!(!fallback.ends_with("-delay"), "{fallback}");
            assert_eq!(fallback == *name, !name.ends_with("-delay"));
        }
    }
}
