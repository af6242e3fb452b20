//! A decision tree as nested lists that fold: nothing of it is cut, however wide it is.

use maud::{Markup, html};
use pleach_scheduler::tree::{Node, Outline, Tree};

/// Leaves of the largest tree that is shown unfolded as a whole.
const LEAVES_UNFOLDED: usize = 32;
/// Levels of a larger one that are.
pub(crate) const LEVELS_UNFOLDED: usize = 4;

/// The tree; a branch is as wide as its share of the samples.
#[must_use]
pub(crate) fn folding(tree: &Tree) -> Markup {
    let folded = Folded {
        tree,
        outline: &tree.outline(),
        unfolded: match tree.num_leaves() <= LEAVES_UNFOLDED {
            true => usize::MAX,
            false => LEVELS_UNFOLDED,
        },
    };
    html! {
        ul.tree {
            @match tree.nodes()[0] {
                Node::Leaf { .. } => (folded.branch(0, "always", 0)),
                Node::Split { .. } => (folded.sides(0, 0)),
            }
        }
    }
}

struct Folded<'a> {
    tree: &'a Tree,
    outline: &'a Outline,
    unfolded: usize,
}

impl Folded<'_> {
    fn sides(&self, place: usize, depth: usize) -> Markup {
        html! {
            @if let (Node::Split { left, right, .. }, Some(words)) = (self.tree.nodes()[place], &self.outline.nodes[place].sides) {
                @for (child, words) in [left, right].into_iter().zip(words) { (self.branch(child as usize, words, depth)) }
            }
        }
    }

    /// One branch: its condition and what follows.
    fn branch(&self, place: usize, condition: &str, depth: usize) -> Markup {
        let (node, total) = (&self.outline.nodes[place], self.outline.nodes[0].samples);
        let share = node.samples as f64 / total.max(1) as f64;
        let words = html! {
            span.words { (condition) } " " span.share { (coverage(node.samples, total)) }
        };
        html! {
            li id={ "node-" (place) } style=(format!("--w:{share:.4}")) {
                @if let Some(leaf) = &node.leaf {
                    (words)
                    div.leaf { span.tier.waits[leaf.does.ends_with("waits")] { "tier " (leaf.tier) } (leaf.does) }
                } @else {
                    details open[depth < self.unfolded] { summary { (words) } ul { (self.sides(place, depth + 1)) } }
                }
            }
        }
    }
}

/// `4,064 samples, 71 %`.
pub(crate) fn coverage(samples: u64, total: u64) -> String {
    if total == 0 {
        return "no samples".into();
    }
    let percent = 100.0 * samples as f64 / total as f64;
    let percent = match percent {
        percent if percent > 0.0 && percent < 1.0 => format!("{percent:.2}"),
        percent => format!("{percent:.0}"),
    };
    let word = if samples == 1 { "sample" } else { "samples" };
    format!("{} {word}, {percent} %", grouped(samples))
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
