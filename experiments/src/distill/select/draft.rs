//! A selector that is being changed, and what may be changed of it.

use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::observation::NUM_CANDIDATE_FEATURES;
use pleach_scheduler::selector::{Selector, SelectorMeta, SelectorNode};

use super::visited::Visited;
use crate::error::Error;

/// Parts of the visited states at which a leaf may be split. *Assumed*.
const QUANTILES: [f64; 9] = [0.05, 0.15, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 0.95];
/// A leaf in which fewer of the visited states end is not split. *Assumed*.
const STATES_MIN: usize = 20;

/// One change of a selector.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    /// The leaf at a place becomes a split; left and right get these rules.
    Split {
        place: usize,
        feature: u16,
        threshold: f32,
        rules: [String; 2],
    },
    /// The leaf at a place gets another rule.
    Rule { place: usize, rule: String },
    /// The split at a place gets another threshold.
    Threshold { place: usize, threshold: f32 },
}

/// A selector with one leaf.
pub(super) fn single(meta: &SelectorMeta, rule: &str) -> Result<Selector, Error> {
    numbered(
        meta,
        vec![SelectorNode::Leaf {
            id: 0,
            rule: rule.into(),
        }],
    )
}

/// The changed selector; leaves are numbered from the left.
///
/// # Errors
/// A change that leaves no valid selector.
pub(super) fn changed(selector: &Selector, change: &Change) -> Result<Selector, Error> {
    let mut nodes = selector.nodes().to_vec();
    match change {
        Change::Split {
            place,
            feature,
            threshold,
            rules,
        } => {
            let first = nodes.len() as u32;
            nodes[*place] = SelectorNode::Split {
                feature: *feature,
                threshold: *threshold,
                left: first,
                right: first + 1,
            };
            nodes.extend(rules.iter().map(|rule| SelectorNode::Leaf {
                id: 0,
                rule: rule.clone(),
            }));
        }
        Change::Rule { place, rule: own } => {
            if let SelectorNode::Leaf { rule, .. } = &mut nodes[*place] {
                rule.clone_from(own);
            }
        }
        Change::Threshold {
            place,
            threshold: own,
        } => {
            if let SelectorNode::Split { threshold, .. } = &mut nodes[*place] {
                *threshold = *own;
            }
        }
    }
    numbered(selector.meta(), nodes)
}

fn numbered(meta: &SelectorMeta, mut nodes: Vec<SelectorNode>) -> Result<Selector, Error> {
    let with_ids = |nodes: &mut Vec<SelectorNode>| {
        let mut next = 0..;
        for node in nodes {
            if let SelectorNode::Leaf { id, .. } = node {
                *id = next.next().unwrap_or(0);
            }
        }
    };
    let made = |nodes: &[SelectorNode]| {
        Selector::new(meta.clone(), nodes).map_err(|error| Error::Failed(error.to_string()))
    };
    // Any ids tell the leaves apart; those of the canonical order stay.
    with_ids(&mut nodes);
    let mut nodes = made(&nodes)?.nodes().to_vec();
    with_ids(&mut nodes);
    made(&nodes)
}

/// Every way to split one leaf, in which one side keeps its rule and the other gets another.
pub(super) fn splits(selector: &Selector, visited: &Visited, rules: &[String]) -> Vec<Change> {
    let mut found = Vec::new();
    for (place, node) in selector.nodes().iter().enumerate() {
        let SelectorNode::Leaf { rule: own, .. } = node else {
            continue;
        };
        let states = visited.ending_at(selector, place);
        if states.len() < STATES_MIN {
            continue;
        }
        for feature in global_features() {
            for threshold in thresholds(visited, &states, feature) {
                for other in rules.iter().filter(|rule| *rule != own) {
                    for rules in [[own.clone(), other.clone()], [other.clone(), own.clone()]] {
                        found.push(Change::Split {
                            place,
                            feature,
                            threshold,
                            rules,
                        });
                    }
                }
            }
        }
    }
    found
}

/// Every other rule for a leaf and every other threshold for a split.
pub(super) fn tunings(selector: &Selector, visited: &Visited, rules: &[String]) -> Vec<Change> {
    let mut found = Vec::new();
    for (place, node) in selector.nodes().iter().enumerate() {
        match node {
            SelectorNode::Leaf { rule: own, .. } => {
                let others = rules.iter().filter(|rule| *rule != own).cloned();
                found.extend(others.map(|rule| Change::Rule { place, rule }));
            }
            SelectorNode::Split { feature, .. } => {
                let states = visited.ending_at(selector, place);
                let other = thresholds(visited, &states, *feature);
                found.extend(
                    other
                        .into_iter()
                        .map(|threshold| Change::Threshold { place, threshold }),
                );
            }
        }
    }
    found
}

fn global_features() -> impl Iterator<Item = u16> {
    let num = FeatureSchema::current().num_global();
    (NUM_CANDIDATE_FEATURES..NUM_CANDIDATE_FEATURES + num).map(|index| index as u16)
}

/// Thresholds between values of a feature among some states, at most one for each of the quantiles; each sends some of the states to
/// either side.
fn thresholds(visited: &Visited, states: &[usize], feature: u16) -> Vec<f32> {
    let mut values: Vec<f32> = states
        .iter()
        .map(|state| visited.value(*state, feature))
        .collect();
    values.sort_unstable_by(f32::total_cmp);
    let Some(last) = values.last().copied() else {
        return Vec::new();
    };
    let mut found: Vec<f32> = Vec::new();
    for quantile in QUANTILES {
        let low = values[(quantile * (values.len() - 1) as f64) as usize];
        if low >= last {
            continue;
        }
        let high = values[values.partition_point(|value| *value <= low)];
        let middle = low + (high - low) / 2.0;
        let threshold = if middle < high { middle } else { low };
        if found.last() != Some(&threshold) {
            found.push(threshold);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::visited::tests::visited;
    use super::*;

    fn rules() -> Vec<String> {
        ["easy", "fifo", "sjf"].map(str::to_string).to_vec()
    }

    #[test]
    fn every_split_is_a_selector_of_one_leaf_more_that_sends_states_to_both_sides() {
        let meta = SelectorMeta {
            name: "test".into(),
            estimates: Vec::new(),
            trained_by: std::collections::BTreeMap::default(),
        };
        let visited = visited(50);
        let mut selector = single(&meta, "easy").unwrap();
        for leaves in 2..5 {
            let changes = splits(&selector, &visited, &rules());
            assert!(!changes.is_empty());
            for change in changes.iter().step_by(7) {
                let grown = changed(&selector, change).unwrap();
                assert_eq!(grown.num_leaves(), leaves);
                let Change::Split {
                    feature, threshold, ..
                } = change
                else {
                    panic!("{change:?}");
                };
                let values = (0..50).map(|state| visited.value(state, *feature));
                let num_left = values.filter(|value| value <= threshold).count();
                assert!((1..50).contains(&num_left), "{num_left}");
            }
            selector = changed(&selector, &changes[changes.len() / 2]).unwrap();
            let ids = selector.nodes().iter().filter_map(|node| match node {
                SelectorNode::Leaf { id, .. } => Some(*id),
                SelectorNode::Split { .. } => None,
            });
            assert!(ids.eq(0..leaves as u32));
        }
        for change in tunings(&selector, &visited, &rules()) {
            assert_eq!(changed(&selector, &change).unwrap().num_leaves(), 4);
        }
    }
}
