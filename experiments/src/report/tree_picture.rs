//! A tree as a picture: from the left, a branch for each answer, a leaf at the end of each path with what it does.

use std::fmt::Write as _;

use pleach_scheduler::tree::{Node, Outline, OutlineNode, Tree};

use crate::plot::text::{escape, wrapped};

/// Most leaves that are drawn; text and page of a larger tree have it whole. *Ours*: two screens.
const LEAVES_MAX: usize = 48;
/// Width of a level and of a leaf's words, pixels.
const LEVEL: f64 = 190.0;
/// Height of a line of words, and what a leaf has besides, pixels.
const LINE: f64 = 14.0;
const GAP: f64 = 18.0;
const MARGIN: f64 = 10.0;

/// The picture; none of a tree of one leaf or of very many.
#[must_use]
pub(super) fn draw(tree: &Tree) -> Option<String> {
    let num_leaves = tree.num_leaves();
    if !(2..=LEAVES_MAX).contains(&num_leaves) {
        return None;
    }
    let outline = tree.outline();
    let lines_max = outline.nodes.iter().map(lines_of).max().unwrap_or(1) as f64;
    // The words of an answer stand above its branch, so the first leaf needs half a row more.
    let (above, row) = (LINE * lines_max / 2.0, GAP + LINE * lines_max);
    let width = MARGIN * 2.0 + 40.0 + LEVEL * (tree.depth() + 1) as f64;
    let height = above + row * num_leaves as f64;
    let mut svg = format!(
        "<div class=\"wide\"><svg class=\"tree\" style=\"width:{width:.0}px\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"The tree: {num_leaves} leaves, depth {}\">\n",
        tree.depth()
    );
    let mut picture = Picture {
        tree,
        outline,
        above,
        row,
        num_leaves: 0,
        svg: String::new(),
    };
    picture.branch(0, MARGIN);
    svg.push_str(&picture.svg);
    Some(svg + "</svg></div>\n")
}

/// From a node to where its sides part, pixels.
const TRUNK: f64 = 14.0;

fn leaf_lines(does: &str) -> Vec<String> {
    wrapped(does, LEVEL - 12.0)
}

fn side_lines(words: &str) -> Vec<String> {
    wrapped(words, LEVEL - TRUNK - 10.0)
}

/// Lines of the longest words of a node.
fn lines_of(node: &OutlineNode) -> usize {
    let of_sides = node.sides.iter().flatten().map(|words| side_lines(words).len());
    let of_leaf = node.leaf.iter().map(|leaf| 1 + leaf_lines(&leaf.does).len());
    of_sides.chain(of_leaf).max().unwrap_or(1)
}

struct Picture<'a> {
    tree: &'a Tree,
    outline: Outline,
    /// Room above the first leaf, pixels.
    above: f64,
    /// Height of a leaf, pixels.
    row: f64,
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
            let y = self.above + self.row * (self.num_leaves as f64 + 0.5);
            self.num_leaves += 1;
            if let Some(leaf) = &node.leaf {
                let mut lines = vec![format!("tier {}", leaf.tier)];
                lines.extend(leaf_lines(&leaf.does));
                let top = y + 4.0 - LINE / 2.0 * (lines.len() - 1) as f64;
                for (line, text) in lines.iter().enumerate() {
                    let class = if line == 0 { "leaf" } else { "tick" };
                    self.text((x + 8.0, top + LINE * line as f64), class, text);
                }
            }
            return y;
        };
        // A little room for the trunk, then a level for the words of each answer.
        let (trunk, end) = (x + TRUNK, x + LEVEL);
        let ends = [left, right].map(|child| self.branch(child as usize, end));
        let y = ends.iter().sum::<f64>() / 2.0;
        let _ = writeln!(self.svg, "<path class=\"axis\" d=\"M{x:.1} {y:.1}H{trunk:.1}\"/>");
        for (child_y, words) in ends.iter().zip(&sides) {
            let _ = writeln!(
                self.svg,
                "<path class=\"axis\" d=\"M{trunk:.1} {y:.1}V{child_y:.1}H{end:.1}\"/>"
            );
            let lines = side_lines(words);
            let below = LINE * (lines.len() - 1) as f64;
            for (line, text) in lines.iter().enumerate() {
                let top = child_y - 5.0 - below;
                self.text((trunk + 6.0, top + LINE * line as f64), "name", text);
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
    use crate::plot::text::width_of;
    use pleach_tests::assert_well_formed;

    fn shipped() -> impl Iterator<Item = (String, Tree)> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../checkpoints/reference");
        let files = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let trees = files.filter(|path| path.to_string_lossy().ends_with("-tree.json"));
        trees.map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path.display().to_string(), Tree::from_json(&text).unwrap())
        })
    }

    /// Of `attribute="NUMBER"`.
    fn number(element: &str, attribute: &str) -> f64 {
        let after = element.split(&format!(" {attribute}=\"")).nth(1).unwrap();
        after.split('"').next().unwrap().parse().unwrap()
    }

    /// The words of all texts in a picture, after a look at whether they are inside it.
    fn words_inside(name: &str, svg: &str) -> String {
        let size = svg.split("viewBox=\"0 0 ").nth(1).unwrap();
        let mut size = size.split(['"', ' ']).map(|number| number.parse::<f64>());
        let [width, height] = [0, 1].map(|_| size.next().unwrap().unwrap());
        let mut words = String::new();
        for element in svg.split("<text").skip(1) {
            let text = element.split(['>', '<']).nth(1).unwrap();
            let (x, y) = (number(element, "x"), number(element, "y"));
            // Letters of 12 px: 11 above the line that they stand on, 3 below.
            assert!(
                y >= 11.0 && y + 3.0 <= height,
                "{name}: {text:?} at {y} of {height}"
            );
            let end = x + width_of(text.replace("&lt;", "<").as_str());
            assert!(
                x >= 0.0 && end <= width,
                "{name}: {text:?} ends at {end} of {width}"
            );
            words.push_str(text);
            words.push(' ');
        }
        words
    }

    #[test]
    fn every_word_of_every_leaf_and_answer_lies_inside_the_picture() {
        let mut num_drawn = 0;
        for (name, tree) in shipped() {
            let Some(svg) = draw(&tree) else { continue };
            num_drawn += 1;
            assert_well_formed(&svg);
            assert_eq!(svg.matches("class=\"leaf\"").count(), tree.num_leaves());
            let drawn = words_inside(&name, &svg);
            for node in tree.outline().nodes {
                let leaf = node.leaf.map(|leaf| leaf.does);
                for words in node.sides.into_iter().flatten().chain(leaf) {
                    let words = escape(&words.split_whitespace().collect::<Vec<_>>().join(" "));
                    assert!(drawn.contains(&words), "{name}: {words:?} is cut");
                }
            }
        }
        assert!(num_drawn >= 5, "{num_drawn}");
    }
}
