//! A selector for readers: indented text, thresholds in raw units, and below it what its rules do and what its features mean.

use super::{Selector, SelectorNode};
use crate::heuristics;
use crate::tree::count;
use crate::tree::feature_of;
use crate::tree::text::condition;

impl Selector {
    /// The whole selector as indented text, then a line for each rule and each feature.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{}: {}, depth {}; in each leaf one heuristic decides\n",
            self.meta().name,
            count(self.num_leaves() as u64, "leaf", "leaves"),
            self.depth(),
        );
        self.write_text(0, 0, &mut text);
        for rule in self.rules() {
            text.push_str(&format!("{rule}: {}.\n", decides(rule)));
        }
        let mut features: Vec<u16> = self
            .nodes()
            .iter()
            .filter_map(|node| match node {
                SelectorNode::Split { feature, .. } => Some(*feature),
                SelectorNode::Leaf { .. } => None,
            })
            .collect();
        features.sort_unstable();
        features.dedup();
        for feature in features.into_iter().map(feature_of) {
            let unit = match feature.unit {
                "" => String::new(),
                unit => format!(" [{unit}]"),
            };
            text.push_str(&format!("{}{unit}: {}\n", feature.name, feature.doc));
        }
        text
    }

    fn write_text(&self, place: usize, depth: usize, text: &mut String) {
        let indent = "    ".repeat(depth);
        match &self.nodes()[place] {
            SelectorNode::Leaf { id, rule } => text.push_str(&format!("{indent}{rule} (leaf {id})\n")),
            SelectorNode::Split {
                feature,
                threshold,
                left,
                right,
            } => {
                let words = condition(feature_of(*feature), *threshold, true);
                text.push_str(&format!("{indent}if {words}:\n"));
                self.write_text(*left as usize, depth + 1, text);
                text.push_str(&format!("{indent}else:\n"));
                self.write_text(*right as usize, depth + 1, text);
            }
        }
    }
}

/// What a heuristic does, as tables say it.
pub(super) fn decides(rule: &str) -> &'static str {
    let info = heuristics::infos().iter().find(|info| info.name == rule);
    info.map_or("", |info| info.decides)
}
