//! The GPU types on which a pod may run, by its own word.
//!
//! The tables tell nodes apart by GPU type alone. A pod whose selectors let it run on some nodes of a type and not on others
//! cannot be described to the policy.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, PodSpec, Taint};
use pleach_daemon::snapshot::Phase;

use crate::config::Settings;
use crate::constraint;
use crate::node::{Unit, is_hard};

/// Answers by what pods ask for: few pods of a cluster differ in it.
#[derive(Debug)]
pub struct Reach<'a> {
    units: Vec<(&'a Unit, &'a Node)>,
    num_types: usize,
    known: BTreeMap<(String, String), Result<Vec<String>, Phase>>,
}

impl<'a> Reach<'a> {
    /// Over the units of nodes; those with a taint that nobody expects take no jobs anyway.
    #[must_use]
    pub fn new(units: &'a [Unit], nodes: &'a [Node], settings: &Settings) -> Reach<'a> {
        let is_odd = |taint: &Taint| is_hard(taint) && !settings.taints_expected.contains(&taint.key);
        let is_plain = |node: &Node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
            !taints.into_iter().flatten().any(is_odd)
        };
        let all = units.iter().map(|unit| (unit, &nodes[unit.row]));
        let mut types: Vec<&str> = units.iter().map(|unit| unit.gpu_type.as_str()).collect();
        types.sort_unstable();
        types.dedup();
        Reach {
            units: all.filter(|(_, node)| is_plain(node)).collect(),
            num_types: types.len(),
            known: BTreeMap::new(),
        }
    }

    /// The GPU types on which a pod that asks for a resource may run; empty: all.
    ///
    /// # Errors
    /// Where it stands instead of waiting.
    pub fn types(&mut self, spec: &PodSpec, resource: &str) -> Result<Vec<String>, Phase> {
        let key = (constraint::key(spec), resource.to_owned());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let found = self.look(spec, resource);
        self.known.insert(key, found.clone());
        found
    }

    fn look(&self, spec: &PodSpec, resource: &str) -> Result<Vec<String>, Phase> {
        // For each type: units where the pod may run, and units.
        let mut types: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for (unit, node) in self.units.iter().filter(|(unit, _)| unit.resource == resource) {
            let entry = types.entry(&unit.gpu_type).or_default();
            entry.0 += u32::from(constraint::may_run(spec, node));
            entry.1 += 1;
        }
        if types.values().all(|(may, _)| *may == 0) {
            return Err(Phase::Blocked {
                reason: format!(
                    "waits for a node with {resource} that its selectors and tolerations allow; none is there"
                ),
            });
        }
        if types.values().any(|(may, all)| *may > 0 && may < all) {
            return Err(Phase::Foreign {
                reason: "has selectors or tolerations that tell nodes of one GPU type apart".into(),
            });
        }
        let allowed: Vec<String> = types
            .into_iter()
            .filter(|(_, (may, _))| *may > 0)
            .map(|(name, _)| name.to_owned())
            .collect();
        Ok(if allowed.len() == self.num_types {
            Vec::new()
        } else {
            allowed
        })
    }
}
