//! A tree as a picture: from the left, a branch for each answer, a leaf at the end of each path with what it does.

use std::fmt::Write as _;

use pleach_scheduler::tree::{Node, Outline, Tree};

use crate::plot::text::{escape, wrapped};

/// Most leaves that are drawn; text and page of a larger tree have it whole. *Ours*: two screens.
const LEAVES_MAX: usize = 48;
/// Width of a level and of a leaf's words, pixels.
const LEVEL: f64 = 190.0;
/// Height of a leaf, pixels.
const ROW: f64 = 46.0;
const MARGIN: f64 = 10.0;

/// The picture; none of a tree of one leaf or of very many.
#[must_use]
pub(super) fn draw(tree: &Tree) -> Option<String> {
    let num_leaves = tree.num_leaves();
    if !(2..=LEAVES_MAX).contains(&num_leaves) {
        return None;
    }
    let width = MARGIN * 2.0 + 40.0 + LEVEL * (tree.depth() + 1) as f64;
    let height = ROW * num_leaves as f64;
    let mut svg = format!(
        "<div class=\"wide\"><svg class=\"tree\" style=\"width:{width:.0}px\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"The tree: {num_leaves} leaves, depth {}\">\n",
        tree.depth()
    );
    let mut picture = Picture {
        tree,
        outline: tree.outline(),
        num_leaves: 0,
        svg: String::new(),
    };
    picture.branch(0, MARGIN);
    svg.push_str(&picture.svg);
    Some(svg + "</svg></div>\n")
}

struct Picture<'a> {
    tree: &'a Tree,
    outline: Outline,
    /// Leaves drawn so far.
    num_leaves: usize,
    svg: String,
}

impl Picture<'_> {
    /// Draws what follows from a node at `x`; its height, between those of its sides.
    fn branch(&mut self, place: usize, x: f64) -> f64 {
        let node = &self.outline.nodes[place];
        let (Node::Split { left, right, .. }, Some(sides)) = (self.tree.nodes()[place], node.sides.clone())
        else {
            let y = ROW * (self.num_leaves as f64 + 0.5);
            self.num_leaves += 1;
            if let Some(leaf) = &node.leaf {
                let mut lines = vec![format!("tier {}", leaf.tier)];
                lines.extend(wrapped(&leaf.does, LEVEL - 12.0).into_iter().take(2));
                let top = y + 4.0 - 7.0 * (lines.len() - 1) as f64;
                for (line, text) in lines.iter().enumerate() {
                    let class = if line == 0 { "leaf" } else { "tick" };
                    self.text((x + 8.0, top + 14.0 * line as f64), class, text);
                }
            }
            return y;
        };
        // A little room for the trunk, then a level for the words of each answer.
        let (trunk, end) = (x + 14.0, x + LEVEL);
        let ends = [left, right].map(|child| self.branch(child as usize, end));
        let y = ends.iter().sum::<f64>() / 2.0;
        let _ = writeln!(self.svg, "<path class=\"axis\" d=\"M{x:.1} {y:.1}H{trunk:.1}\"/>");
        for (child_y, words) in ends.iter().zip(&sides) {
            let _ = writeln!(
                self.svg,
                "<path class=\"axis\" d=\"M{trunk:.1} {y:.1}V{child_y:.1}H{end:.1}\"/>"
            );
            let lines = wrapped(words, end - trunk - 10.0);
            let lines: Vec<&String> = lines.iter().take(2).collect();
            let below = 14.0 * (lines.len() - 1) as f64;
            for (line, text) in lines.iter().enumerate() {
                self.text(
                    (trunk + 6.0, child_y - 5.0 - below + 14.0 * line as f64),
                    "name",
                    text,
                );
            }
        }
        y
    }

    fn text(&mut self, (x, y): (f64, f64), class: &str, text: &str) {
        let text = escape(text);
        let _ = writeln!(
            self.svg,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_tests::assert_well_formed;

    #[test]
    fn every_leaf_and_every_answer_of_a_shipped_tree_is_drawn() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../checkpoints/reference/PhillyGang-v1-tree.json"
        );
        let tree = Tree::from_json(&std::fs::read_to_string(path).unwrap()).unwrap();
        let svg = draw(&tree).unwrap();
        assert_well_formed(&svg);
        assert_eq!(svg.matches("class=\"leaf\"").count(), tree.num_leaves());
        let sides = 2 * (tree.num_leaves() - 1);
        assert!(svg.matches("class=\"name\"").count() >= sides, "{svg}");
    }
}
