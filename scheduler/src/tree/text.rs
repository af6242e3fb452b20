//! A tree for readers: indented text and Graphviz, thresholds in raw units, leaves as tiers.

use super::{Node, Tree, feature_of};
use crate::features::{Feature, Scale};

impl Tree {
    /// The whole tree as indented text. Tier 1 is taken first.
    #[must_use]
    pub fn to_text(&self) -> String {
        let meta = self.meta();
        let tie_key = serde_json::to_value(meta.tie_key).unwrap_or_default();
        let mut text = format!(
            "{}: {}, depth {}; tier 1 first, inside a tier by {}\n",
            meta.name,
            count(self.num_leaves() as u64, "leaf", "leaves"),
            self.depth(),
            tie_key.as_str().unwrap_or("index"),
        );
        self.write_text(0, 0, &self.tiers(), &mut text);
        text
    }

    fn write_text(&self, place: usize, depth: usize, tiers: &[f32], text: &mut String) {
        let indent = "    ".repeat(depth);
        match self.nodes()[place] {
            Node::Leaf {
                id, score, samples, ..
            } => {
                let tier = tier_of(score, tiers);
                let samples = count(samples, "sample", "samples");
                text.push_str(&format!(
                    "{indent}tier {tier} (leaf {id}, score {score}, {samples})\n"
                ));
            }
            Node::Split {
                feature,
                threshold,
                left,
                right,
            } => {
                let words = condition(feature_of(feature), threshold, true);
                text.push_str(&format!("{indent}if {words}:\n"));
                self.write_text(left as usize, depth + 1, tiers, text);
                text.push_str(&format!("{indent}else:\n"));
                self.write_text(right as usize, depth + 1, tiers, text);
            }
        }
    }

    /// The whole tree as a Graphviz graph.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let tiers = self.tiers();
        let name = escaped(&self.meta().name);
        let mut text =
            format!("digraph tree {{\n  label=\"{name}\";\n  node [shape=box, fontname=\"sans-serif\"];\n");
        for (place, node) in self.nodes().iter().enumerate() {
            match *node {
                Node::Leaf {
                    id, score, samples, ..
                } => {
                    let tier = tier_of(score, &tiers);
                    let samples = count(samples, "sample", "samples");
                    text.push_str(&format!(
                        "  n{place} [label=\"tier {tier}\\nleaf {id}, score {score}\\n{samples}\", style=rounded];\n"
                    ));
                }
                Node::Split {
                    feature,
                    threshold,
                    left,
                    right,
                } => {
                    let words = escaped(&condition(feature_of(feature), threshold, true));
                    text.push_str(&format!("  n{place} [label=\"{words}\"];\n"));
                    text.push_str(&format!("  n{place} -> n{left} [label=\"yes\"];\n"));
                    text.push_str(&format!("  n{place} -> n{right} [label=\"no\"];\n"));
                }
            }
        }
        text + "}\n"
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

fn tier_of(score: f32, tiers: &[f32]) -> usize {
    tiers.iter().filter(|other| **other > score).count() + 1
}

fn count(number: u64, one: &str, many: &str) -> String {
    let word = if number == 1 { one } else { many };
    format!("{} {word}", grouped(&number.to_string()))
}

/// A condition in raw units; `holds` says which side of the split is meant.
pub(super) fn condition(feature: &Feature, threshold: f32, holds: bool) -> String {
    let is_flag = feature.scale == Scale::Linear(1.0)
        && (feature.min, feature.max) == (0.0, 1.0)
        && feature.name.starts_with("is_");
    if is_flag {
        return format!("{} = {}", feature.name, u8::from(!holds));
    }
    let relation = if holds { "<=" } else { ">" };
    let raw = quantity(feature.scale.invert(threshold), feature.unit);
    format!("{} {relation} {raw}", feature.name)
}

/// A raw value with its unit, to four digits; long times also in minutes, hours or days.
pub(super) fn quantity(raw: f64, unit: &str) -> String {
    let number = digits(raw);
    match unit {
        "" => number,
        "s" if raw >= 120.0 => {
            let (span, word) = match raw {
                raw if raw < 2.0 * 3600.0 => (60.0, "min"),
                raw if raw < 2.0 * 86400.0 => (3600.0, "h"),
                _ => (86400.0, "d"),
            };
            format!("{number} s ({:.1} {word})", raw / span)
        }
        _ => format!("{number} {unit}"),
    }
}

/// A number to four significant digits, thousands in groups.
fn digits(value: f64) -> String {
    let value: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    // Rounding noise of a scale near zero is zero.
    let value = if value.abs() < 1e-6 { 0.0 } else { value };
    let text = format!("{value}");
    match text.split_once('.') {
        None => grouped(&text),
        Some((whole, fraction)) => format!("{}.{fraction}", grouped(whole)),
    }
}

fn grouped(whole: &str) -> String {
    let (sign, number) = whole
        .strip_prefix('-')
        .map_or(("", whole), |number| ("-", number));
    let mut text = String::from(sign);
    for (index, digit) in number.chars().enumerate() {
        if index > 0 && (number.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_tree;
    use super::*;

    #[test]
    fn a_tree_reads_as_nested_conditions_in_raw_units() {
        assert_eq!(
            small_tree().to_text(),
            "test: 3 leaves, depth 2; tier 1 first, inside a tier by shortest-estimate\n\
             if is_hold = 0:\n    \
             if gpu_time_gpu_s <= 3,600 GPU s:\n        \
             tier 1 (leaf 1, score 1, 10 samples)\n    \
             else:\n        \
             tier 2 (leaf 2, score 0.25, 10 samples)\n\
             else:\n    \
             tier 3 (leaf 0, score -1, 10 samples)\n"
        );
    }

    #[test]
    fn the_graph_has_every_node_and_edge() {
        let dot = small_tree().to_dot();
        assert_eq!(dot.matches(" -> ").count(), 4);
        assert_eq!(dot.matches("tier ").count(), 3);
        assert!(
            dot.contains("n1 [label=\"gpu_time_gpu_s <= 3,600 GPU s\"]"),
            "{dot}"
        );
    }

    #[test]
    fn numbers_are_short_and_times_are_readable() {
        let cases = [
            (3599.9998, "s", "3,600 s (60.0 min)"),
            (86400.0, "s", "86,400 s (24.0 h)"),
            (1_234_567.0, "GPU s", "1,235,000 GPU s"),
            (0.12345678, "", "0.1235"),
            (-1e-12, "", "0"),
            (-1234.0, "", "-1,234"),
            (59.0, "s", "59 s"),
        ];
        for (raw, unit, text) in cases {
            assert_eq!(quantity(raw, unit), text);
        }
    }
}
