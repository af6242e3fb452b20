//! The nodes on which a pod may run: by its own word, by its volumes, by what it asks for beside GPUs.
//!
//! GPU types say most of it. Where a pod may run on some nodes of a type and not on others, the others are closed to it by a rule,
//! as a site's rules close nodes on Slurm. Nodes with a taint that no GPU pod tolerates count for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, NodeSelector, PodSpec, Toleration};
use pleach_daemon::site::Rule;
use pleach_daemon::snapshot::Phase;
use pleach_scheduler::cluster::NodeState;

use crate::asks::{self, Amounts, Host, HostPort};
use crate::config::Settings;
use crate::constraint::{self, hard_taints, is_tolerated};
use crate::node::Unit;

/// A unit, its node, and why it is closed for ever.
type Closed<'a> = (&'a Unit, &'a Host, Option<String>);

/// Why a node is closed to pods by their own word.
const NOT_ALLOWED: &str = "is not allowed by its node selector, affinity or tolerations";

/// What a job's pods ask of each node.
#[derive(Debug)]
pub struct Asks<'a> {
    /// Selectors and tolerations.
    pub spec: &'a PodSpec,
    /// The GPU resource.
    pub resource: &'a str,
    /// What else; of pods that differ, the most.
    pub amounts: Amounts,
    /// Ports of the host.
    pub ports: &'a [HostPort],
    /// Where its volumes are.
    pub volumes: Vec<&'a NodeSelector>,
}

impl<'a> Asks<'a> {
    /// Of pods of which no more is known than what they are made from.
    #[must_use]
    pub fn of_template(spec: &'a PodSpec, resource: &'a str) -> Asks<'a> {
        Asks {
            spec,
            resource,
            amounts: Amounts::new(),
            ports: &[],
            volumes: Vec::new(),
        }
    }

    fn key(&self) -> String {
        let rest = serde_json::to_string(&(self.resource, &self.amounts, &self.volumes));
        let ports = format!("{:?}", self.ports);
        constraint::key(self.spec) + &rest.unwrap_or_default() + &ports
    }

    /// Why a node never takes the pods, whatever is free there; in words as what is said of the node.
    fn never(&self, node: &Node, host: &Host) -> Option<String> {
        if !constraint::may_run(self.spec, node) {
            return Some(NOT_ALLOWED.into());
        }
        if !self.volumes.iter().all(|near| constraint::is_in(near, node)) {
            return Some("is not where its volumes are".into());
        }
        let (name, ..) = asks::lacking(&host.has, &self.amounts)?;
        Some(format!("has too little of {name} for it"))
    }

    /// Why a node does not take the pods now. CPUs and memory are counted where a job is let go.
    fn not_now(&self, host: &Host) -> Option<String> {
        if self
            .ports
            .iter()
            .any(|port| host.ports.iter().any(|other| port.meets(other)))
        {
            return Some("has a host port of it in use".into());
        }
        let is_other = |name: &str| !["cpu", "memory"].contains(&name);
        let others = self.amounts.iter().filter(|(name, _)| is_other(name));
        let others: Amounts = others.map(|(name, amount)| (name.clone(), *amount)).collect();
        let (name, ..) = asks::lacking(&host.free, &others)?;
        Some(format!("has too little of {name} free for it"))
    }
}

/// The nodes of a job.
#[derive(Clone, Debug, Default)]
pub struct Reachable {
    /// GPU types on which its pods may run; empty: all.
    pub types: Vec<String>,
    /// Rows of the rules of the look that hold for it, ascending.
    pub rules: Vec<u32>,
    /// Units of these types that never take it.
    pub never: Arc<BTreeSet<String>>,
}

/// For each node, whether it has a taint that keeps all jobs away: none that is expected, and none of these tolerates it.
#[must_use]
pub fn barred(nodes: &[Arc<Node>], tolerations: &[&[Toleration]], settings: &Settings) -> Vec<bool> {
    let is_barred = |node: &Arc<Node>| {
        let is_expected = |key: &String| settings.taints_expected.contains(key);
        let mut hard = hard_taints(node)
            .filter(|taint| !is_expected(&taint.key))
            .peekable();
        let all = || hard_taints(node);
        let is_open = |own: &&[Toleration]| all().all(|taint| is_tolerated(Some(own), taint));
        hard.peek().is_some() && !tolerations.iter().any(is_open)
    };
    nodes.iter().map(is_barred).collect()
}

/// Answers by what pods ask for: few pods of a cluster differ in it.
#[derive(Debug)]
pub struct Reach<'a> {
    units: Vec<(&'a Unit, &'a Node, &'a Host)>,
    num_types: usize,
    known: BTreeMap<String, Result<Reachable, Phase>>,
    rules: Vec<Rule>,
    rows: BTreeMap<(String, String), u32>,
}

impl<'a> Reach<'a> {
    /// Over the units of nodes but those of `barred` nodes.
    #[must_use]
    pub fn new(
        units: &'a [Unit],
        nodes: &'a [Arc<Node>],
        hosts: &'a BTreeMap<String, Host>,
        barred: &[bool],
    ) -> Reach<'a> {
        let mut types: Vec<&str> = units.iter().map(|unit| unit.gpu_type.as_str()).collect();
        types.sort_unstable();
        types.dedup();
        let open = units.iter().filter(|unit| !barred[unit.row]);
        let with_host = |unit: &'a Unit| {
            let node = &*nodes[unit.row];
            Some((unit, node, hosts.get(node.metadata.name.as_deref()?)?))
        };
        Reach {
            units: open.filter_map(with_host).collect(),
            num_types: types.len(),
            known: BTreeMap::new(),
            rules: Vec::new(),
            rows: BTreeMap::new(),
        }
    }

    /// The nodes on which pods may run that ask for this.
    ///
    /// # Errors
    /// Where the job stands instead of waiting.
    pub fn of(&mut self, asks: &Asks<'_>) -> Result<Reachable, Phase> {
        let key = asks.key();
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let found = self.look(asks);
        self.known.insert(key, found.clone());
        found
    }

    /// The rules that jobs refer to.
    #[must_use]
    pub fn into_rules(self) -> Vec<Rule> {
        self.rules
    }

    fn look(&mut self, asks: &Asks<'_>) -> Result<Reachable, Phase> {
        // Units of each type, and why each is closed for ever.
        let mut types: BTreeMap<&str, Vec<Closed<'_>>> = BTreeMap::new();
        for (unit, node, host) in self
            .units
            .iter()
            .filter(|(unit, ..)| unit.resource == asks.resource)
        {
            let entry = types.entry(&unit.gpu_type).or_default();
            entry.push((unit, host, asks.never(node, host)));
        }
        let num_types = self.num_types;
        let closed_for = types.values().flatten().find_map(|(.., never)| never.clone());
        types.retain(|_, units| units.iter().any(|(.., never)| never.is_none()));
        if types.is_empty() {
            let reason = match closed_for {
                Some(why) if why != NOT_ALLOWED => format!(": each {why}"),
                _ => " that its selectors and tolerations allow; none is there".to_owned(),
            };
            let resource = asks.resource;
            return Err(Phase::Blocked {
                reason: format!("waits for a node with {resource}{reason}"),
            });
        }
        let mut never = BTreeSet::new();
        let mut closed: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (unit, host, why) in types.values().flatten() {
            if why.is_some() {
                never.insert(unit.name.clone());
            }
            if let Some(why) = why.clone().or_else(|| asks.not_now(host)) {
                closed.entry(why).or_default().push(&unit.name);
            }
        }
        let closed: Vec<Rule> = closed
            .into_iter()
            .map(|(why, units)| Rule::closes(units, &why))
            .collect();
        let allowed: Vec<String> = types.into_keys().map(str::to_owned).collect();
        let mut rules: Vec<u32> = closed.into_iter().map(|rule| self.row(rule)).collect();
        rules.sort_unstable();
        Ok(Reachable {
            types: if allowed.len() == num_types {
                Vec::new()
            } else {
                allowed
            },
            rules,
            never: Arc::new(never),
        })
    }

    fn row(&mut self, rule: Rule) -> u32 {
        let next = u32::try_from(self.rules.len()).unwrap_or(u32::MAX);
        let key = (rule.closed.clone(), rule.why.clone());
        let row = *self.rows.entry(key).or_insert(next);
        if row == next {
            self.rules.push(rule);
        }
        row
    }
}

/// What becomes of units of barred nodes: they take no new jobs.
pub(crate) fn close(units: &mut [Unit], barred: &[bool]) {
    for unit in units.iter_mut().filter(|unit| barred[unit.row]) {
        if unit.state == NodeState::Up {
            unit.state = NodeState::Draining;
        }
    }
}
