//! One self-contained HTML page about a tree: the tree itself to fold, how many samples took each branch as its width, the tiers,
//! the key as a sentence, the certificates, and where the tree comes from. A reader may enter a candidate's values and see its path.
//!
//! No network and no file beside it: the page forbids both to itself. Without its script it is whole but for the example. Every text
//! that comes from the policy file is escaped.

mod parts;

use std::fmt::Write as _;

use pleach_scheduler::features::{Feature, Scale};
use pleach_scheduler::tree::{Node, Outline, Tree};
use serde_json::{Value, json};

use crate::plot::text::escape;
use crate::report::page::{STYLE, section};

const TREE_STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// What the page may do: run its own script and style, and load nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
/// Leaves of the largest tree that is shown unfolded as a whole.
const LEAVES_UNFOLDED: usize = 32;
/// Levels of a larger one that are.
const LEVELS_UNFOLDED: usize = 4;

/// The page, with the certificates as they are found now.
#[must_use]
pub fn render(tree: &Tree) -> String {
    let outline = tree.outline();
    let name = escape(&tree.meta().name);
    let mut body = format!(
        "<h1>{name}</h1>\n<p class=\"note\">A decision tree that schedules GPU jobs: {} leaves in {} tiers, depth {} · Pleach {}</p>\n",
        tree.num_leaves(),
        tree.tiers().len(),
        tree.depth(),
        env!("CARGO_PKG_VERSION")
    );
    let _ = writeln!(
        body,
        "<p>Every candidate (start this job there, hold GPUs back for that one, hold) goes down the tree on its own. The best tier \
         in which a candidate ends is taken first. {}</p>",
        escape(&outline.key)
    );
    body.push_str("<div class=\"panes\">\n<div>\n<h2 id=\"tree\">The tree</h2>\n");
    body.push_str(&folding(tree, &outline));
    body.push_str("</div>\n");
    body.push_str(&parts::example(&outline));
    body.push_str("</div>\n");
    section(&mut body, "Tiers", Some(parts::tiers(tree, &outline)));
    section(&mut body, "What is done", Some(parts::actions(&outline)));
    section(
        &mut body,
        "What is certain",
        Some(parts::certificates(&tree.certify())),
    );
    section(
        &mut body,
        "Features that it reads",
        Some(parts::features(&outline)),
    );
    section(&mut body, "Where it comes from", Some(parts::provenance(tree)));
    let data = embedded(&data(tree, &outline));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{name}</title>\n\
         <style>\n{STYLE}{TREE_STYLE}</style>\n</head>\n<body>\n{body}\
         <script type=\"application/json\" id=\"tree-data\">{data}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// The tree as nested lists that fold; a branch is as wide as its share of the samples.
fn folding(tree: &Tree, outline: &Outline) -> String {
    let mut html = String::from(
        "<div class=\"buttons\"><button type=\"button\" id=\"expand\">Unfold all</button>\
         <button type=\"button\" id=\"collapse\">Fold all</button></div>\n<ul class=\"tree\">\n",
    );
    let whole = tree.num_leaves() <= LEAVES_UNFOLDED;
    let unfolded = if whole { usize::MAX } else { LEVELS_UNFOLDED };
    match tree.nodes()[0] {
        Node::Leaf { .. } => branch(tree, outline, (0, "always"), (0, unfolded), &mut html),
        Node::Split { .. } => sides(tree, outline, 0, (0, unfolded), &mut html),
    }
    html + "</ul>\n"
}

fn sides(tree: &Tree, outline: &Outline, place: usize, depth: (usize, usize), html: &mut String) {
    let (Node::Split { left, right, .. }, Some(words)) = (tree.nodes()[place], &outline.nodes[place].sides)
    else {
        return;
    };
    for (child, words) in [left, right].into_iter().zip(words) {
        branch(tree, outline, (child as usize, words), depth, html);
    }
}

/// One branch: its condition and what follows.
fn branch(
    tree: &Tree,
    outline: &Outline,
    (place, condition): (usize, &str),
    (depth, unfolded): (usize, usize),
    html: &mut String,
) {
    let (node, total) = (&outline.nodes[place], outline.nodes[0].samples);
    let share = node.samples as f64 / total.max(1) as f64;
    let words = format!(
        "<span class=\"words\">{}</span> <span class=\"share\">{}</span>",
        escape(condition),
        parts::coverage(node.samples, total)
    );
    let _ = write!(html, "<li id=\"node-{place}\" style=\"--w:{share:.4}\">");
    if let Some(leaf) = &node.leaf {
        let class = if leaf.does.ends_with("waits") {
            "tier waits"
        } else {
            "tier"
        };
        let _ = writeln!(
            html,
            "{words}<div class=\"leaf\"><span class=\"{class}\">tier {}</span>{}</div></li>",
            leaf.tier,
            escape(&leaf.does)
        );
        return;
    }
    let open = if depth < unfolded { " open=\"\"" } else { "" };
    let _ = writeln!(html, "<details{open}><summary>{words}</summary><ul>");
    sides(tree, outline, place, (depth + 1, unfolded), html);
    html.push_str("</ul></details></li>\n");
}

/// What the script reads. Numbers that decide are written in 64 bits, so that it has exactly them.
fn data(tree: &Tree, outline: &Outline) -> Value {
    let place_of = |index: u16| outline.features.iter().position(|(own, _)| *own == index);
    let nodes = tree
        .nodes()
        .iter()
        .zip(&outline.nodes)
        .map(|(node, words)| match *node {
            Node::Split {
                feature,
                threshold,
                left,
                right,
            } => json!([place_of(feature), f64::from(threshold), left, right]),
            Node::Leaf { id, score, .. } => {
                json!({"leaf": id, "score": score, "tier": words.leaf.as_ref().map(|leaf| leaf.tier)})
            }
        });
    let feature = |(_, own): &(u16, &'static Feature)| {
        let (is_log, divisor) = match own.scale {
            Scale::Linear(divisor) => (false, divisor),
            Scale::Log(divisor) => (true, divisor),
        };
        json!({"name": own.name, "unit": own.unit, "min": f64::from(own.min), "max": f64::from(own.max),
            "log": is_log, "divisor": f64::from(divisor)})
    };
    let kinds = outline.kinds.iter().map(|kind| {
        let fixed = kind.fixed.iter();
        let fixed: Vec<Value> = fixed
            .map(|(index, value)| json!([place_of(*index), f64::from(*value)]))
            .collect();
        json!({"name": kind.name, "fixed": fixed})
    });
    let weights = tree.meta().key_weights.iter();
    let key = weights.map(|term| json!([place_of(term.feature), f64::from(term.weight)]));
    json!({
        "schema": tree.features_hash(),
        "num_tiers": tree.tiers().len(),
        "nodes": nodes.collect::<Vec<_>>(),
        "features": outline.features.iter().map(feature).collect::<Vec<_>>(),
        "kinds": kinds.collect::<Vec<_>>(),
        "key": key.collect::<Vec<_>>(),
    })
}

/// JSON inside an element of script: nothing in it can end the element.
fn embedded(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests;
