//! The parts of the page beside the tree: the form, tables and lists.

use std::collections::BTreeMap;

use maud::{Markup, html};
use pleach_scheduler::features::{Feature, FeatureSchema};
use pleach_scheduler::tree::{Certificate, Node, Outline, Tree, Verdict};
use serde_json::{Map, Value, json};

use crate::evaluate::table::Table;
use crate::report::outline::coverage;

/// Longest value of the provenance that is shown, bytes.
const VALUE_BYTES_MAX: usize = 4 << 10;

fn is_flag(feature: &Feature) -> bool {
    feature.name.starts_with("is_") && (feature.min, feature.max) == (0.0, 1.0)
}

/// The form in which a reader enters a candidate, and the answer.
pub(super) fn example(outline: &Outline) -> Markup {
    html! {
        aside id="example" {
            h2 { "An example" }
            p.note { "Enter what a candidate has; its path is marked. Times may have units: 90, 1.5 h, 2 d." }
            form id="values" autocomplete="off" {
                label for="kind" { "Kind of action" }
                select id="kind" {
                    @for (place, kind) in outline.kinds.iter().enumerate() { option value=(place) { (kind.name) } }
                }
                @for (place, (_, feature)) in outline.features.iter().enumerate() { (field(place, feature)) }
                div.buttons { button type="button" id="clear" { "Clear" } }
            }
            noscript { p.note { "Examples need the page's own script." } }
            div id="answer" role="status" aria-live="polite" {}
        }
    }
}

fn field(place: usize, feature: &Feature) -> Markup {
    let id = format!("value-{place}");
    // The kind of action says these.
    let hidden = feature.is_kind();
    html! {
        label for=(id) hidden[hidden] {
            (feature.name) @if !feature.unit.is_empty() { " [" (feature.unit) "]" }
            small { (feature.doc) }
        }
        @if is_flag(feature) {
            select id=(id) hidden[hidden] { option value="0" { "no" } option value="1" { "yes" } }
        } @else {
            input id=(id) type="text" inputmode="text" placeholder={ (feature.min) " to " (feature.max) };
        }
    }
}

fn of_words(header: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table {
        header: header.iter().map(|word| (*word).to_string()).collect(),
        rows,
        notes: Vec::new(),
    }
}

/// The tiers with the rules of their leaves, the best first.
pub(super) fn tiers(tree: &Tree, outline: &Outline) -> Table {
    let total = outline.nodes[0].samples;
    let rows = outline.rules.iter().filter_map(|rule| {
        let node = &outline.nodes[rule.place];
        let (Some(leaf), Node::Leaf { score, .. }) = (&node.leaf, tree.nodes()[rule.place]) else {
            return None;
        };
        let words = match rule.conditions.is_empty() {
            true => "anything".to_string(),
            false => rule.conditions.join(" and "),
        };
        let (tier, number) = (rule.tier.to_string(), rule.leaf.to_string());
        Some(vec![
            tier,
            words,
            leaf.does.clone(),
            number,
            score.to_string(),
            coverage(node.samples, total),
        ])
    });
    let header = [
        "tier",
        "a candidate with",
        "what ends there",
        "leaf",
        "score",
        "samples",
    ];
    let table = of_words(&header, rows.collect());
    Table {
        notes: vec![outline.key.clone()],
        ..table
    }
}

/// What each kind of action does.
pub(super) fn actions(outline: &Outline) -> Markup {
    html! { ul id="actions" { @for line in &outline.actions { li { (line) } } } }
}

/// Each property with its verdict; what refutes it can be shown in the tree.
pub(super) fn certificates(certificates: &[Certificate]) -> Markup {
    html! {
        div.wide tabindex="0" {
            table id="certificates" {
                thead { tr { th { "verdict" } th.text { "for every decision" } } }
                tbody { @for own in certificates { (certificate(own)) } }
            }
        }
        p.note {
            "Found when this page was written: proved for every candidate there can be, refuted by two candidates that show it, or open."
        }
    }
}

fn certificate(own: &Certificate) -> Markup {
    let verdict = match &own.verdict {
        Verdict::Proved => "proved",
        Verdict::Open(_) => "open",
        Verdict::Refuted(_) => "refuted",
    };
    html! {
        tr {
            td { span class={ "verdict " (verdict) } { (verdict) } }
            td.text {
                (own.property)
                @match &own.verdict {
                    Verdict::Proved => {},
                    Verdict::Open(reason) => p.note { (reason) },
                    Verdict::Refuted(witness) => @if !witness.first.is_empty() {
                        p.note {
                            @for line in own.in_words(FeatureSchema::current()).lines().skip(1) { (line.trim()) br; }
                        }
                        div.buttons {
                            (witness_button("the one", &witness.first))
                            (witness_button("the other", &witness.second))
                        }
                    },
                }
            }
        }
    }
}

/// A button that enters one of two candidates: its scaled values, and raw ones for the reader.
fn witness_button(which: &str, values: &BTreeMap<String, f32>) -> Markup {
    let schema = FeatureSchema::current();
    let mut given = Map::new();
    for (name, scaled) in values {
        let raw = schema
            .joined_index(name)
            .and_then(|index| schema.joined(index))
            .map(|feature| feature.scale.invert(*scaled));
        // Six digits, for readers; the scaled value is what is taken.
        let raw = raw.and_then(|raw| format!("{raw:.5e}").parse::<f64>().ok());
        given.insert(name.clone(), json!(f64::from(*scaled)));
        given.insert(format!("{name} raw"), json!(raw));
    }
    html! { button type="button" data-witness=(Value::Object(given)) { "show " (which) } }
}

/// The features that the tree reads.
pub(super) fn features(outline: &Outline) -> Table {
    let features = outline.features.iter();
    let rows = features.map(|(_, own)| [own.name, own.unit, own.doc].map(str::to_string).to_vec());
    of_words(&["name", "unit", "meaning"], rows.collect())
}

/// What made the tree, and what it chooses among.
pub(super) fn provenance(tree: &Tree) -> Table {
    let meta = tree.meta();
    let mut rows: Vec<(String, String)> = vec![
        ("hash of the tree".into(), tree.hash()),
        ("hash of the features".into(), tree.features_hash()),
        ("estimates that it was trained with".into(), {
            let estimates = json!(meta.estimates);
            let names = estimates.as_array().into_iter().flatten();
            let names: Vec<&str> = names.filter_map(Value::as_str).collect();
            if names.is_empty() {
                "not known".into()
            } else {
                names.join(", ")
            }
        }),
    ];
    let needs = serde_json::to_value(meta.needs).unwrap_or_default();
    for (key, value) in needs.as_object().into_iter().flatten() {
        rows.push((format!("needs.{key}"), shown(value)));
    }
    for (key, value) in &meta.trained_by {
        rows.push((format!("trained_by.{key}"), shown(value)));
    }
    of_words(
        &["what", ""],
        rows.into_iter().map(|(key, value)| vec![key, value]).collect(),
    )
}

/// A value in few words, cut where it is very long.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(list) if list.iter().all(Value::is_string) => {
            let names: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            names.join(", ")
        }
        other => other.to_string(),
    };
    let end = text.floor_char_boundary(VALUE_BYTES_MAX);
    let cut = if end < text.len() { " … (cut here)" } else { "" };
    format!("{}{cut}", &text[..end])
}
