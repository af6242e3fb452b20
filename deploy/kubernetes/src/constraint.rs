//! Where a pod may run by its own word: node selector, required node affinity, tolerations.
//!
//! # Source
//! The rules of `NodeAffinity` and `TaintToleration` as the Kubernetes documentation states them: terms are alternatives, the
//! expressions of a term all have to hold, `NotIn` and `DoesNotExist` hold where the label is missing.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

use crate::node::{is_hard, labels};

/// What keeps a pod from being described to the policy; none where selectors, required node affinity and tolerations are all.
#[must_use]
pub fn strange(spec: &PodSpec) -> Option<&'static str> {
    let affinity = spec.affinity.as_ref();
    let required = |has: bool, why| has.then_some(why);
    let pods = affinity.and_then(|all| all.pod_affinity.as_ref());
    let anti = affinity.and_then(|all| all.pod_anti_affinity.as_ref());
    let is_required = |list: Option<usize>| list.unwrap_or(0) > 0;
    let list = |len: Option<&Vec<_>>| is_required(len.map(Vec::len));
    let spread = spec.topology_spread_constraints.iter().flatten();
    required(
        list(pods.and_then(|of| of.required_during_scheduling_ignored_during_execution.as_ref()))
            || list(anti.and_then(|of| of.required_during_scheduling_ignored_during_execution.as_ref())),
        "asks for its place by where other pods are",
    )
    .or(required(
        spread
            .into_iter()
            .any(|constraint| constraint.when_unsatisfiable == "DoNotSchedule"),
        "asks to be spread",
    ))
    .or(required(
        is_required(spec.resource_claims.as_ref().map(Vec::len)),
        "asks for devices by resource claims (DRA)",
    ))
}

/// A text that is the same for pods that may run on the same nodes.
#[must_use]
pub fn key(spec: &PodSpec) -> String {
    let affinity = spec.affinity.as_ref().and_then(|all| all.node_affinity.as_ref());
    let required = affinity.and_then(|of| of.required_during_scheduling_ignored_during_execution.as_ref());
    if spec.node_selector.is_none() && required.is_none() && spec.tolerations.is_none() {
        return String::new();
    }
    serde_json::to_string(&(&spec.node_selector, required, &spec.tolerations)).unwrap_or_default()
}

/// Whether a pod may run on a node, whatever is free there.
#[must_use]
pub fn may_run(spec: &PodSpec, node: &Node) -> bool {
    let labels = labels(node);
    let selected = spec
        .node_selector
        .iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value));
    let affinity = spec.affinity.as_ref().and_then(|all| all.node_affinity.as_ref());
    let required = affinity.and_then(|of| of.required_during_scheduling_ignored_during_execution.as_ref());
    selected
        && required.is_none_or(|terms| is_in(terms, node))
        && hard_taints(node).all(|taint| is_tolerated(spec.tolerations.as_deref(), taint))
}

/// Whether a selector of nodes takes a node.
#[must_use]
pub fn is_in(selector: &NodeSelector, node: &Node) -> bool {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let mut terms = selector.node_selector_terms.iter();
    terms.any(|term| meets_term(term, labels(node), name))
}

/// The taints of a node that keep pods away which do not tolerate them.
pub fn hard_taints(node: &Node) -> impl Iterator<Item = &Taint> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.into_iter().flatten().filter(|taint| is_hard(taint))
}

/// Whether one of these tolerations is for a taint.
#[must_use]
pub fn is_tolerated(tolerations: Option<&[Toleration]>, taint: &Taint) -> bool {
    let mut all = tolerations.into_iter().flatten();
    all.any(|toleration| tolerates(toleration, taint))
}

fn meets_term(term: &NodeSelectorTerm, labels: &BTreeMap<String, String>, name: &str) -> bool {
    let by_label = term.match_expressions.as_deref().unwrap_or_default();
    let by_field = term.match_fields.as_deref().unwrap_or_default();
    // A term without any expression matches nothing.
    !(by_label.is_empty() && by_field.is_empty())
        && by_label
            .iter()
            .all(|one| meets(one, labels.get(&one.key).map(String::as_str)))
        && by_field
            .iter()
            .all(|one| one.key == "metadata.name" && meets(one, Some(name)))
}

fn meets(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let is_in = || value.is_some_and(|value| values.iter().any(|other| other == value));
    let numbers = || Some((value?.parse::<i64>().ok()?, values.first()?.parse::<i64>().ok()?));
    match requirement.operator.as_str() {
        "In" => is_in(),
        "NotIn" => !is_in(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(has, than)| has > than),
        "Lt" => numbers().is_some_and(|(has, than)| has < than),
        _ => false,
    }
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let is_effect = effect.is_empty() || effect == taint.effect;
    let is_key = key.is_empty() || key == taint.key;
    let is_value = match toleration.operator.as_deref().unwrap_or("Equal") {
        "Exists" => true,
        "" | "Equal" => {
            !key.is_empty()
                && toleration.value.as_deref().unwrap_or("") == taint.value.as_deref().unwrap_or("")
        }
        _ => false,
    };
    is_effect && is_key && is_value
}
