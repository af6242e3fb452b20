//! A tree without one of its leaves: what the leaf is worth is what this loses.

use pleach_scheduler::tree::{Node, Tree, TreeError};

/// The tree in which the split above a leaf gives way to its other side; none for a tree of one leaf and for a place that is no leaf.
/// Guards and where it steps aside stay.
///
/// # Errors
/// Never for a valid tree.
pub fn without_leaf(tree: &Tree, place: usize) -> Result<Option<Tree>, TreeError> {
    let nodes = tree.nodes();
    let is_parent = |node: &Node| match node {
        Node::Split { left, right, .. } => *left as usize == place || *right as usize == place,
        Node::Leaf { .. } => false,
    };
    let is_leaf = matches!(nodes.get(place), Some(Node::Leaf { .. }));
    let Some(parent) = nodes.iter().position(is_parent).filter(|_| is_leaf) else {
        return Ok(None);
    };
    let mut kept = Vec::new();
    copy(nodes, 0, (parent, place), &mut kept);
    let smaller = Tree::over(tree.schema(), tree.meta().clone(), &kept)?
        .with_guards(tree.guards())?
        .with_fallback(tree.fallback().map(str::to_owned))?
        .with_gpu_types_max(tree.gpu_types_max())?
        .with_wide_gangs(tree.wide_gangs().cloned())?;
    Ok(Some(smaller))
}

/// Copies what hangs at a place; the parent of the leaf that goes is passed over. Returns where it came to stand.
fn copy(nodes: &[Node], at: usize, gone: (usize, usize), kept: &mut Vec<Node>) -> u32 {
    let place = kept.len();
    match nodes[at] {
        Node::Split { left, right, .. } if at == gone.0 => {
            let other = if left as usize == gone.1 { right } else { left };
            return copy(nodes, other as usize, gone, kept);
        }
        leaf @ Node::Leaf { .. } => kept.push(leaf),
        Node::Split {
            feature,
            threshold,
            left,
            right,
        } => {
            kept.push(nodes[at]);
            let left = copy(nodes, left as usize, gone, kept);
            let right = copy(nodes, right as usize, gone, kept);
            kept[place] = Node::Split {
                feature,
                threshold,
                left,
                right,
            };
        }
    }
    place as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_trees::{split, tree};

    fn leaf(id: u32) -> Node {
        crate::test_trees::leaf(id, id as f32, 1.0)
    }

    #[test]
    fn the_other_side_of_its_split_takes_its_place() {
        // 0.5: (0.25: leaf 0, leaf 1), leaf 2
        let whole = tree(&[split(0.5, 1, 4), split(0.25, 2, 3), leaf(0), leaf(1), leaf(2)]);
        let without = |place: usize| without_leaf(&whole, place).unwrap().unwrap();
        assert_eq!(without(4).nodes(), [split(0.25, 1, 2), leaf(0), leaf(1)]);
        assert_eq!(without(2).nodes(), [split(0.5, 1, 2), leaf(1), leaf(2)]);
        assert_eq!(without(3).nodes(), [split(0.5, 1, 2), leaf(0), leaf(2)]);
        assert!(without_leaf(&whole, 0).unwrap().is_none());
        assert!(without_leaf(&whole, 9).unwrap().is_none());
        assert!(without_leaf(&tree(&[leaf(7)]), 0).unwrap().is_none());
    }

    #[test]
    fn where_it_steps_aside_stays() {
        let whole = tree(&[split(0.5, 1, 2), leaf(0), leaf(1)]);
        let whole = whole.with_fallback(Some("sjf".into())).unwrap();
        let whole = whole.with_gpu_types_max(Some(1)).unwrap();
        let smaller = without_leaf(&whole, 1).unwrap().unwrap();
        assert_eq!(
            (smaller.fallback(), smaller.gpu_types_max()),
            (Some("sjf"), Some(1))
        );
    }
}
