//! What makes nodes a tree, and the one order in which they are kept.

use super::error::{KeyError, NodeError, TreeError};
use super::{MAX_DEPTH, MAX_NODES, Node};
use crate::actions::{ActionKind, ActionSet};
use crate::features::{FeatureSchema, Group};
use crate::guards::Guards;
use crate::heuristics;
use crate::key_weight::{KeyWeight, MAX_KEY_WEIGHTS};
use crate::lens::Lens;
use crate::policy::Needs;
use crate::wide_gangs::WideGangs;

/// Shortest and longest time after which a job may be overdue, s.
const OVERDUE_S: (f64, f64) = (60.0, 1e8);
/// Most preemptions that a guard may allow.
const PREEMPTIONS_MAX: u32 = 1000;
/// Longest name, bytes.
const MAX_NAME: usize = 200;

/// Refuses names that would spoil a table or a log.
pub(crate) fn name(name: &str) -> Result<(), TreeError> {
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(TreeError::Value {
            key: "name",
            value: format!("{:?}", name.chars().take(40).collect::<String>()),
            allowed: format!("1 to {MAX_NAME} bytes without control characters"),
        });
    }
    Ok(())
}

/// Refuses what is no heuristic's name.
pub(super) fn fallback(name: &str) -> Result<(), TreeError> {
    if heuristics::names().contains(&name) {
        return Ok(());
    }
    let known = heuristics::by_name(name).err();
    Err(TreeError::Value {
        key: "fallback",
        value: format!("{:?}", name.chars().take(40).collect::<String>()),
        allowed: known.map_or_else(String::new, |error| format!("{}. {}", error.allowed, error.hint)),
    })
}

/// Most that can be said of GPU types.
const TYPES_MAX: u32 = 64;

/// Refuses a number of GPU types that is out of range, and any number in a tree without a fallback.
pub(super) fn gpu_types_max(most: u32, fallback: Option<&str>) -> Result<(), TreeError> {
    let allowed = match fallback {
        _ if !(1..=TYPES_MAX).contains(&most) => format!("1 to {TYPES_MAX}"),
        None => "none without a fallback, which decides on the other clusters".into(),
        Some(_) => return Ok(()),
    };
    Err(TreeError::Value {
        key: "gpu_types_max",
        value: most.to_string(),
        allowed,
    })
}

/// Refuses wide gangs that cannot be left to another.
pub(super) fn wide_gangs(wide: &WideGangs) -> Result<(), TreeError> {
    wide.check().map_err(|problem| TreeError::Value {
        key: "wide_gangs",
        value: wide.to_string(),
        allowed: problem.to_string(),
    })
}

/// Refuses weights that order nothing, and more of them than a reader can follow; returns them in the order of the features.
pub(super) fn key_weights(schema: &FeatureSchema, terms: &[KeyWeight]) -> Result<Vec<KeyWeight>, TreeError> {
    let fail = |term, reason| Err(TreeError::Key { term, reason });
    if terms.len() > MAX_KEY_WEIGHTS {
        return fail(
            MAX_KEY_WEIGHTS,
            KeyError::TooMany {
                found: terms.len(),
                max: MAX_KEY_WEIGHTS,
            },
        );
    }
    for (place, term) in terms.iter().enumerate() {
        let Some(feature) = schema.joined(term.feature.into()) else {
            let name = format!("number {}", term.feature);
            return fail(place, KeyError::Unknown { name });
        };
        let name = feature.name;
        if feature.group == Group::Context {
            return fail(place, KeyError::Global { name });
        }
        if !term.weight.is_finite() {
            return fail(place, KeyError::NotFinite { name });
        }
        if term.weight == 0.0 {
            return fail(place, KeyError::Zero { name });
        }
        if terms[..place].iter().any(|other| other.feature == term.feature) {
            return fail(place, KeyError::Repeated { name });
        }
    }
    let mut terms = terms.to_vec();
    terms.sort_unstable_by_key(|term| term.feature);
    Ok(terms)
}

/// Refuses guards that are out of range, and those that a policy with these needs cannot obey.
pub(crate) fn guards(guards: Guards, needs: &Needs) -> Result<(), TreeError> {
    let fail = |key, value: String, allowed: String| Err(TreeError::Value { key, value, allowed });
    if let Some(after_s) = guards.overdue_after_s {
        let key = "guards.overdue_after_s";
        let (least, most) = OVERDUE_S;
        if !(least..=most).contains(&after_s) {
            return fail(key, after_s.to_string(), format!("{least} to {most}, in seconds"));
        }
        let reserves = needs.actions.contains(ActionKind::Reserve);
        if !reserves || needs.heads == 0 || !needs.lenses.contains(Lens::Arrival) {
            // Else a wide job that is overdue is not offered, or nothing can be held back for it, and it waits for ever.
            let allowed = "none, or needs with \"reservation\": true, \"arrival\" among the lenses and one head or more";
            return fail(key, after_s.to_string(), allowed.into());
        }
    }
    if let Some(floor) = guards.tenant_floor {
        let key = "guards.tenant_floor";
        if !(floor > 0.0 && floor <= 1.0) {
            return fail(
                key,
                floor.to_string(),
                "above 0, to 1: a share of each quota".into(),
            );
        }
        if needs.heads == 0 || !needs.lenses.contains(Lens::TenantDeficit) {
            // Else no job of the tenant that is owed most need be offered.
            let allowed = "none, or needs with \"tenant-deficit\" among the lenses and one head or more";
            return fail(key, floor.to_string(), allowed.into());
        }
    }
    if let Some(max) = guards.preemptions_max {
        let key = "guards.preemptions_max";
        if !(1..=PREEMPTIONS_MAX).contains(&max) {
            return fail(key, max.to_string(), format!("1 to {PREEMPTIONS_MAX}"));
        }
        if needs.actions.intersection(ActionSet::STOPPING).is_empty() {
            let allowed =
                "none, or needs with \"preemption\": true or the action resize: this tree stops no job";
            return fail(key, max.to_string(), allowed.into());
        }
    }
    Ok(())
}

/// Checks the condition of a split.
pub(crate) fn split(schema: &FeatureSchema, feature: u16, threshold: f32) -> Result<(), NodeError> {
    let Some(found) = schema.joined(feature.into()) else {
        return Err(NodeError::UnknownFeature {
            name: format!("number {feature}"),
        });
    };
    if !threshold.is_finite() {
        return Err(NodeError::NotFinite { what: "threshold" });
    }
    let (min, max) = (found.encode(found.min), found.encode(found.max));
    if !(min <= threshold && threshold < max) {
        return Err(NodeError::Range { threshold, min, max });
    }
    Ok(())
}

/// Checks what can be seen of one node alone.
pub(super) fn node(schema: &FeatureSchema, node: &Node) -> Result<(), NodeError> {
    match *node {
        Node::Split {
            feature, threshold, ..
        } => split(schema, feature, threshold)?,
        Node::Leaf { score, weight, .. } => {
            if !score.is_finite() {
                return Err(NodeError::NotFinite { what: "score" });
            }
            if !weight.is_finite() {
                return Err(NodeError::NotFinite { what: "weight" });
            }
            if weight < 0.0 {
                return Err(NodeError::NegativeWeight { weight });
            }
        }
    }
    Ok(())
}

/// Walks the nodes depth first and renumbers them; refuses whatever is not one tree.
pub(super) fn canonical(nodes: &[Node]) -> Result<Vec<Node>, TreeError> {
    let shape: Vec<Shape> = nodes
        .iter()
        .map(|node| match *node {
            Node::Leaf { id, .. } => Shape::Leaf(id),
            Node::Split { left, right, .. } => Shape::Split([left, right]),
        })
        .collect();
    let (order, place_of) = ordered(&shape, MAX_NODES)?;
    let place = |child: u32| place_of[child as usize];
    let renumbered = order.iter().map(|index| match nodes[*index] {
        Node::Split {
            feature,
            threshold,
            left,
            right,
        } => Node::Split {
            feature,
            // One zero, so that equal trees have equal bytes.
            threshold: threshold + 0.0,
            left: place(left),
            right: place(right),
        },
        Node::Leaf {
            id,
            score,
            samples,
            weight,
        } => Node::Leaf {
            id,
            score: score + 0.0,
            samples,
            weight: weight + 0.0,
        },
    });
    Ok(renumbered.collect())
}

/// What makes nodes of any kind a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// A leaf with its id.
    Leaf(u32),
    /// Places of the children, left and right.
    Split([u32; 2]),
}

/// The nodes depth first, left before right, and the place of each in that order.
///
/// # Errors
/// No node or more than `max`, and whatever is not one tree from node 0 on.
pub(crate) fn ordered(nodes: &[Shape], max: usize) -> Result<(Vec<usize>, Vec<u32>), TreeError> {
    let num_nodes = nodes.len();
    if num_nodes == 0 || num_nodes > max {
        return Err(TreeError::NumNodes {
            found: num_nodes,
            max,
        });
    }
    let fail = |node: usize, reason| Err(TreeError::Node { node, reason });
    let mut place_of = vec![None; num_nodes];
    let mut parent_of = vec![usize::MAX; num_nodes];
    let mut order: Vec<usize> = Vec::with_capacity(num_nodes);
    let mut leaf_ids = Vec::new();
    let mut stack = vec![(0_usize, 0_usize)];
    while let Some((index, depth)) = stack.pop() {
        place_of[index] = Some(order.len() as u32);
        order.push(index);
        match nodes[index] {
            Shape::Leaf(id) => leaf_ids.push((id, index)),
            Shape::Split([left, right]) => {
                if depth == MAX_DEPTH {
                    return fail(left as usize, NodeError::TooDeep { max: MAX_DEPTH });
                }
                for child in [right as usize, left as usize] {
                    if child >= num_nodes {
                        return fail(index, NodeError::Dangling { child, num_nodes });
                    }
                    if child == 0 || parent_of[child] != usize::MAX {
                        let mut above = index;
                        while above != usize::MAX && above != child {
                            above = parent_of[above];
                        }
                        let reason = if above == child {
                            NodeError::Cycle { child }
                        } else {
                            NodeError::Shared { child }
                        };
                        return fail(index, reason);
                    }
                    parent_of[child] = index;
                    stack.push((child, depth + 1));
                }
            }
        }
    }
    if let Some(node) = place_of.iter().position(Option::is_none) {
        return fail(node, NodeError::Unreachable);
    }
    leaf_ids.sort_unstable();
    if let Some(pair) = leaf_ids.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return fail(pair[1].1, NodeError::DuplicateLeaf { leaf: pair[1].0 });
    }
    Ok((
        order,
        place_of.into_iter().map(|place| place.unwrap_or(0)).collect(),
    ))
}
