//! One self-contained HTML page about a tree: the tree itself to fold, how many samples took each branch as its width, the tiers,
//! the key as a sentence, the certificates, and where the tree comes from. A reader may enter a candidate's values and see its path.
//!
//! No network and no file beside it: the page forbids both to itself. Without its script it is whole but for the example. Every text
//! that comes from the policy file is escaped.

mod parts;

use maud::{Markup, html};
use pleach_scheduler::features::{Feature, Scale};
use pleach_scheduler::tree::{Node, Outline, Tree};
use serde_json::{Value, json};

use crate::report::outline::folding;
use crate::report::{Block, Report, Script};

/// The report, with the certificates as they are found now.
#[must_use]
pub fn report(tree: &Tree) -> Report {
    let outline = tree.outline();
    let own = |words: &str, markup: Markup| {
        let words = words.to_string();
        [Block::Own { words, markup }]
    };
    let about = format!(
        "a decision tree that schedules GPU jobs: {} leaves in {} tiers, depth {}",
        tree.num_leaves(),
        tree.tiers().len(),
        tree.depth()
    );
    let taken = "Every candidate (start this job there, hold GPUs back for that one, hold) goes down the tree on its own. The best tier in \
                 which a candidate ends is taken first.";
    let guards = outline.guards.iter().cloned().map(Block::Text);
    let mut report = Report::new(&tree.meta().name)
        .note(&about)
        .section("", [Block::Text(format!("{taken} {}", outline.key))])
        .section("", own(&tree.to_text(), panes(tree, &outline)))
        .section(
            "Tiers",
            [parts::tiers(tree, &outline).into()].into_iter().chain(guards),
        )
        .section(
            "What is done",
            own(&outline.actions.join("\n"), parts::actions(&outline)),
        )
        .section("What is certain", own("", parts::certificates(&tree.certify())))
        .section("Features that it reads", [parts::features(&outline).into()])
        .section("Where it comes from", [parts::provenance(tree).into()]);
    report.script = Some(Script {
        style: include_str!("style.css"),
        code: include_str!("script.js"),
        id: "tree-data",
        data: data(tree, &outline),
    });
    report
}

/// The tree beside the form for an example.
fn panes(tree: &Tree, outline: &Outline) -> Markup {
    html! {
        div.panes {
            div {
                h2 id="tree" { "The tree" }
                div.buttons {
                    button type="button" id="expand" { "Unfold all" }
                    button type="button" id="collapse" { "Fold all" }
                }
                (folding(tree))
            }
            (parts::example(outline))
        }
    }
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

#[cfg(test)]
mod tests;
