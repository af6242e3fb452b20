//! A tree for readers: indented text and Graphviz, thresholds in raw units, leaves as tiers, with what is done in each and a legend.

use super::reach::{Reach, Standing, tier_of};
use super::{Node, Tree};
use crate::features::{Feature, Scale};

impl Tree {
    /// The whole tree as indented text, and below it in which tiers each kind of action is taken, where *hold* lies, and what the
    /// features mean. Tier 1 is taken first.
    #[must_use]
    pub fn to_text(&self) -> String {
        let meta = self.meta();
        let tie_key = serde_json::to_value(meta.tie_key).unwrap_or_default();
        let mut text = format!(
            "{}: {}, depth {}; tier 1 first, inside a tier by {}\n",
            meta.name,
            count(self.num_leaves() as u64, "leaf", "leaves"),
            self.depth(),
            if meta.key_weights.is_empty() {
                tie_key.as_str().unwrap_or("index")
            } else {
                "a weighted key"
            },
        );
        let reach = Reach::of(self);
        self.write_text(0, 0, (&self.tiers(), &reach), &mut text);
        for line in self
            .key_line()
            .into_iter()
            .chain(self.guard_lines())
            .chain(reach.lines(self))
            .chain(self.legend())
        {
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// One line for each guard.
    pub(super) fn guard_lines(&self) -> Vec<String> {
        let guards = self.guards();
        let overdue = guards.overdue_after_s.map(|after_s| {
            let after = quantity(after_s, "s");
            format!(
                "Guard: of jobs that have waited more than {after} the first to arrive comes before everything else; where it does \
                 not fit, GPUs are held back for it."
            )
        });
        let stopped = guards.preemptions_max.map(|max| {
            let times = count(max.into(), "time", "times");
            format!("Guard: a job that was stopped {times} is not stopped again.")
        });
        let floor = guards.tenant_floor.map(|floor| {
            let share = floor * 100.0;
            format!(
                "Guard: of tenants that hold less than {share:.0} % of their quota the one that holds the least share comes first; where \
                 none of its jobs fits, GPUs are held back for one."
            )
        });
        self.aside_lines()
            .chain(overdue)
            .chain(floor)
            .chain(stopped)
            .collect()
    }

    /// One line for each feature that it reads: name, unit, meaning.
    fn legend(&self) -> Vec<String> {
        let reads = self.reads().into_iter();
        reads
            .map(|number| self.feature(number))
            .map(|feature| match feature.unit {
                "" => format!("{}: {}", feature.name, feature.doc),
                unit => format!("{} [{unit}]: {}", feature.name, feature.doc),
            })
            .collect()
    }

    fn write_text(&self, place: usize, depth: usize, read: (&[f32], &Reach), text: &mut String) {
        let indent = "    ".repeat(depth);
        match self.nodes()[place] {
            Node::Leaf {
                id, score, samples, ..
            } => {
                let tier = tier_of(score, read.0);
                let (does, samples) = (read.1.leaf(place, tier), count(samples, "sample", "samples"));
                text.push_str(&format!(
                    "{indent}tier {tier}: {does} (leaf {id}, score {score}, {samples})\n"
                ));
            }
            Node::Split {
                feature,
                threshold,
                left,
                right,
            } => {
                let words = condition(self.feature(feature), threshold, true);
                text.push_str(&format!("{indent}if {words}:\n"));
                self.write_text(left as usize, depth + 1, read, text);
                text.push_str(&format!("{indent}else:\n"));
                self.write_text(right as usize, depth + 1, read, text);
            }
        }
    }

    /// The whole tree as a Graphviz graph, with the same lines below it. The border of a leaf is heavy where *hold* ends, and dashed
    /// where what ends there waits.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let tiers = self.tiers();
        let reach = Reach::of(self);
        let name = escaped(&self.meta().name);
        let lines = self
            .key_line()
            .into_iter()
            .chain(self.guard_lines())
            .chain(reach.lines(self))
            .chain(self.legend());
        let lines: String = lines.map(|line| escaped(&line) + "\\l").collect();
        let mut text = format!(
            "digraph tree {{\n  label=\"{name}\\n{lines}\";\n  fontname=\"sans-serif\";\n  \
             node [shape=box, fontname=\"sans-serif\"];\n"
        );
        for (place, node) in self.nodes().iter().enumerate() {
            match *node {
                Node::Leaf {
                    id, score, samples, ..
                } => {
                    let tier = tier_of(score, &tiers);
                    let (does, samples) = (reach.leaf(place, tier), count(samples, "sample", "samples"));
                    let style = match (reach.standing(tier), reach.holds_at(place)) {
                        (_, true) => "\"rounded,bold\"",
                        (Standing::Below, false) => "\"rounded,dashed\"",
                        _ => "rounded",
                    };
                    text.push_str(&format!(
                        "  n{place} [label=\"tier {tier}: {does}\\nleaf {id}, score {score}\\n{samples}\", style={style}];\n"
                    ));
                }
                Node::Split {
                    feature,
                    threshold,
                    left,
                    right,
                } => {
                    let words = escaped(&condition(self.feature(feature), threshold, true));
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

/// `1 leaf`, `5,031 leaves`.
#[must_use]
pub fn count(number: u64, one: &str, many: &str) -> String {
    let word = if number == 1 { one } else { many };
    format!("{} {word}", grouped(&number.to_string()))
}

/// A condition in raw units; `holds` says which side of the split is meant.
pub(crate) fn condition(feature: &Feature, threshold: f32, holds: bool) -> String {
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
#[must_use]
pub fn quantity(raw: f64, unit: &str) -> String {
    let number = digits(raw);
    match unit {
        "" => number,
        "s" if raw >= 120.0 => format!("{number} s ({})", span(raw)),
        _ => format!("{number} {unit}"),
    }
}

/// A span of time, s, in the largest unit that it fills twice: `90 s`, `15.0 min`.
#[must_use]
pub fn span(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 2.0 * 3600.0 => format!("{:.1} min", s / 60.0),
        s if s < 2.0 * 86_400.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} d", s / 86_400.0),
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
    use super::super::tests::{leaf, meta, small_tree, split};
    use super::*;
    use crate::ActionKind;

    #[test]
    fn a_tree_reads_as_nested_conditions_in_raw_units_with_what_is_done_and_a_legend() {
        assert_eq!(
            small_tree().to_text(),
            "test: 3 leaves, depth 2; tier 1 first, inside a tier by shortest-estimate\n\
             if is_hold = 0:\n    \
             if gpu_time_gpu_s <= 3,600 GPU s:\n        \
             tier 1: start, reserve, preempt (leaf 1, score 1, 10 samples)\n    \
             else:\n        \
             tier 2: start, reserve, preempt (leaf 2, score 0.25, 10 samples)\n\
             else:\n    \
             tier 3: hold (leaf 0, score -1, 10 samples)\n\
             start: in tiers 1 and 2. Start a job on free GPUs.\n\
             reserve: in tiers 1 and 2. Hold GPUs back for a job that does not fit yet; starts that do not delay it go on.\n\
             preempt: in tiers 1 and 2. Stop running jobs and start one in their place.\n\
             hold: in tier 3, the last of its tier. Start nothing more until the next event; not offered where no job runs \
             and one could start.\n\
             is_hold: 1 if the candidate ends the pass.\n\
             gpu_time_gpu_s [GPU s]: Believed rest times the size of the gang.\n"
        );
    }

    /// The tree of the quickstart at version 0.1.0: it waits in tiers 3 and 4, and reserves for short jobs.
    #[test]
    fn what_ranks_below_holding_is_said_to_wait() {
        let mut meta = meta();
        meta.needs.actions = meta.needs.actions.without(ActionKind::Preempt);
        let nodes = [
            split("end_gain", 0.4186, 1, 2),
            split("locality", 0.886, 3, 4),
            leaf(3, -0.18),
            split("duration_s", 51_600.0, 5, 6),
            leaf(2, 0.44),
            leaf(0, 0.19),
            leaf(1, -0.11),
        ];
        let tree = Tree::new(meta, &nodes).unwrap();
        let text = tree.to_text();
        for line in [
            "            tier 2: start, reserve, hold (leaf 0, score 0.19, 10 samples)\n",
            "            tier 3: start, reserve; below hold: waits (leaf 1, score -0.11, 10 samples)\n",
            "        tier 1: start (leaf 2, score 0.44, 10 samples)\n",
            "    tier 4: start, reserve; below hold: waits (leaf 3, score -0.18, 10 samples)\n",
            "\nstart: in tiers 1 and 2, never in tiers 3 and 4 while a job runs. ",
            "\nreserve: in tier 2, never in tiers 3 and 4 while a job runs. Hold GPUs back",
            "\nhold: in tier 2, the last of its tier. ",
            "\nduration_s [s]: Believed time that it would hold these GPUs, restart included.\n",
        ] {
            assert!(text.contains(line), "{line}in\n{text}");
        }
        assert!(!text.contains("preempt"), "{text}");
        let dot = tree.to_dot();
        assert!(
            dot.contains("tier 4: start, reserve; below hold: waits\\nleaf 3"),
            "{dot}"
        );
        assert!(
            dot.contains("style=\"rounded,bold\"]") && dot.contains("style=\"rounded,dashed\"]"),
            "{dot}"
        );
        assert!(dot.contains("\\lhold: in tier 2, the last of its tier."), "{dot}");
    }

    /// Where *hold* moves with the cluster's state, the text says so rather than naming one tier.
    #[test]
    fn a_hold_that_depends_on_the_cluster_is_said_to_depend() {
        let nodes = [
            split("free_fraction", 0.5, 1, 2),
            split("is_hold", 0.5, 3, 4),
            leaf(0, 0.0),
            leaf(1, 1.0),
            leaf(2, 2.0),
        ];
        let text = Tree::new(meta(), &nodes).unwrap().to_text();
        assert!(
            text.contains("start: in tiers 2 and 3 unless hold is in a better tier."),
            "{text}"
        );
        assert!(
            text.contains("hold: in tiers 1 and 3, by its features."),
            "{text}"
        );
    }

    #[test]
    fn the_graph_has_every_node_and_edge() {
        let dot = small_tree().to_dot();
        assert_eq!(dot.matches(" -> ").count(), 4);
        assert_eq!(dot.matches("label=\"tier ").count(), 3);
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
