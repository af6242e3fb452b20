//! The parts of the page beside the tree: the form, tables and lists.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pleach_scheduler::features::{Feature, FeatureSchema};
use pleach_scheduler::tree::{Certificate, Node, Outline, Tree, Verdict};
use serde_json::{Map, Value, json};

use crate::plot::text::escape;

/// Longest value of the provenance that is shown, bytes.
const VALUE_BYTES_MAX: usize = 4 << 10;

/// `4,064 samples, 71 %`.
pub(super) fn coverage(samples: u64, total: u64) -> String {
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

fn is_flag(feature: &Feature) -> bool {
    feature.name.starts_with("is_") && (feature.min, feature.max) == (0.0, 1.0)
}

/// The form in which a reader enters a candidate, and the answer.
pub(super) fn example(outline: &Outline) -> String {
    let mut html = String::from(
        "<aside id=\"example\"><h2>An example</h2>\n\
         <p class=\"note\">Enter what a candidate has; its path is marked. Times may have units: 90, 1.5 h, 2 d.</p>\n\
         <form id=\"values\" autocomplete=\"off\">\n<label for=\"kind\">Kind of action</label><select id=\"kind\">",
    );
    for (place, kind) in outline.kinds.iter().enumerate() {
        let _ = write!(html, "<option value=\"{place}\">{}</option>", escape(kind.name));
    }
    html.push_str("</select>\n");
    for (place, (_, feature)) in outline.features.iter().enumerate() {
        let unit = match feature.unit {
            "" => String::new(),
            unit => format!(" [{unit}]"),
        };
        // The kind of action says these.
        let hidden = if feature.is_kind() { " hidden=\"\"" } else { "" };
        let _ = write!(
            html,
            "<label for=\"value-{place}\"{hidden}>{}{}<small>{}</small></label>",
            escape(feature.name),
            escape(&unit),
            escape(feature.doc)
        );
        if is_flag(feature) {
            let _ = writeln!(
                html,
                "<select id=\"value-{place}\"{hidden}><option value=\"0\">no</option><option value=\"1\">yes</option></select>"
            );
        } else {
            let _ = writeln!(
                html,
                "<input id=\"value-{place}\" type=\"text\" inputmode=\"text\" placeholder=\"{} to {}\"/>",
                feature.min, feature.max
            );
        }
    }
    html.push_str(
        "<div class=\"buttons\"><button type=\"button\" id=\"clear\">Clear</button></div>\n</form>\n\
         <noscript><p class=\"note\">Examples need the page's own script.</p></noscript>\n\
         <div id=\"answer\" role=\"status\" aria-live=\"polite\"></div></aside>\n",
    );
    html
}

/// The tiers with the rules of their leaves, the best first.
pub(super) fn tiers(tree: &Tree, outline: &Outline) -> String {
    let total = outline.nodes[0].samples;
    let mut html = String::from(
        "<div class=\"wide\"><table id=\"tiers\">\n<thead><tr><th>tier</th><th class=\"text\">a candidate with</th>\
         <th class=\"text\">what ends there</th><th>leaf</th><th>score</th><th>samples</th></tr></thead>\n<tbody>\n",
    );
    for rule in &outline.rules {
        let node = &outline.nodes[rule.place];
        let (Some(leaf), Node::Leaf { score, .. }) = (&node.leaf, tree.nodes()[rule.place]) else {
            continue;
        };
        let words = match rule.conditions.is_empty() {
            true => "anything".to_string(),
            false => rule.conditions.join(" and "),
        };
        let _ = writeln!(
            html,
            "<tr><td data-name=\"tier\">{}</td><td class=\"rule\">{}</td><td class=\"text\">{}</td><td data-name=\"leaf\">{}</td>\
             <td data-name=\"score\">{score}</td><td>{}</td></tr>",
            rule.tier,
            escape(&words),
            escape(&leaf.does),
            rule.leaf,
            coverage(node.samples, total)
        );
    }
    let key = escape(&outline.key);
    let guards = outline.guards.iter();
    let guards: String = guards
        .map(|line| format!("<p class=\"guard\">{}</p>\n", escape(line)))
        .collect();
    html + "</tbody>\n</table></div>\n" + &format!("<p id=\"key\">{key}</p>\n") + &guards
}

/// What each kind of action does.
pub(super) fn actions(outline: &Outline) -> String {
    let lines = outline
        .actions
        .iter()
        .map(|line| format!("<li>{}</li>\n", escape(line)));
    format!("<ul id=\"actions\">\n{}</ul>\n", lines.collect::<String>())
}

/// Each property with its verdict; what refutes it can be shown in the tree.
pub(super) fn certificates(certificates: &[Certificate]) -> String {
    let mut html = String::from(
        "<div class=\"wide\"><table id=\"certificates\">\n<thead><tr><th>verdict</th><th class=\"text\">for every decision</th>\
         </tr></thead>\n<tbody>\n",
    );
    for own in certificates {
        let (verdict, more) = match &own.verdict {
            Verdict::Proved => ("proved", String::new()),
            Verdict::Open(reason) => ("open", format!("<p class=\"note\">{}</p>", escape(reason))),
            Verdict::Refuted(witness) if witness.first.is_empty() => ("refuted", String::new()),
            Verdict::Refuted(witness) => {
                let words = own.in_words(FeatureSchema::current());
                let lines = words
                    .lines()
                    .skip(1)
                    .map(|line| escape(line.trim()) + "<br>")
                    .collect::<String>();
                let buttons = [("the one", &witness.first), ("the other", &witness.second)];
                let buttons = buttons
                    .map(|(which, values)| witness_button(which, values))
                    .concat();
                let more = format!("<p class=\"note\">{lines}</p><div class=\"buttons\">{buttons}</div>");
                ("refuted", more)
            }
        };
        let _ = writeln!(
            html,
            "<tr><td><span class=\"verdict {verdict}\">{verdict}</span></td><td class=\"text\">{}{more}</td></tr>",
            escape(&own.property.to_string())
        );
    }
    html + "</tbody>\n</table></div>\n<p class=\"note\">Found when this page was written: proved for every candidate there can be, \
            refuted by two candidates that show it, or open.</p>\n"
}

/// A button that enters one of two candidates: its scaled values, and raw ones for the reader.
fn witness_button(which: &str, values: &BTreeMap<String, f32>) -> String {
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
    let given = escape(&Value::Object(given).to_string());
    format!("<button type=\"button\" data-witness=\"{given}\">show {which}</button>")
}

/// The features that the tree reads.
pub(super) fn features(outline: &Outline) -> String {
    let mut html = String::from(
        "<div class=\"wide\"><table id=\"features\">\n<thead><tr><th>name</th><th class=\"text\">unit</th>\
         <th class=\"text\">meaning</th></tr></thead>\n<tbody>\n",
    );
    for (_, feature) in &outline.features {
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td></tr>",
            escape(feature.name),
            escape(feature.unit),
            escape(feature.doc)
        );
    }
    html + "</tbody>\n</table></div>\n"
}

/// What made the tree, and what it chooses among.
pub(super) fn provenance(tree: &Tree) -> String {
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
    let mut html = String::from("<div class=\"wide\"><table id=\"provenance\">\n<tbody>\n");
    for (key, value) in rows {
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td class=\"text\">{}</td></tr>",
            escape(&key),
            escape(&value)
        );
    }
    html + "</tbody>\n</table></div>\n"
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
