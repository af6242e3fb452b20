//! The scheduler extender: `filter` and `prioritize`, in the exact JSON of kube-scheduler.
//!
//! It chooses nodes for pods that no gate holds, and keeps the GPUs of jobs that were let go and are not bound yet. It binds
//! nothing and preempts nothing: kube-scheduler does, with all its checks.
//!
//! # Source
//! `k8s.io/kube-scheduler/extender/v1`: the types have no JSON tags, so keys are Go's names; scores are whole numbers, and an
//! answer with any other is thrown away without a word.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use pleach_daemon::memory::Memory;
use pleach_daemon::policy::Loaded;
use pleach_daemon::round::{self, Deciders};
use pleach_daemon::snapshot::{JobSeen, NodeSeen, Phase, Site, Snapshot, Terms};
use pleach_scheduler::ExternalId;
use pleach_scheduler::cluster::NodeState;
use pleach_scheduler::decision::Action;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Settings;
use crate::error::Error;
use crate::node::{node_of, unit_name};
use crate::observe::Observed;
use crate::pod::{self, PodSeen};

/// The highest score of an extender.
///
/// # Source
/// `MaxExtenderPriority` of the same package.
const SCORE_MAX: i64 = 10;
/// The score of the best node that the policy did not choose. Assumed.
const SCORE_REST: i64 = 8;

/// What kube-scheduler asks. It sends nodes or names of nodes, by its `nodeCacheCapable`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Args {
    /// The pod.
    #[serde(rename = "Pod", alias = "pod")]
    pub pod: Pod,
    /// Nodes that are left.
    #[serde(rename = "Nodes", alias = "nodes", default)]
    pub nodes: Option<NodeList>,
    /// Their names.
    #[serde(rename = "NodeNames", alias = "nodenames", alias = "nodeNames", default)]
    pub node_names: Option<Vec<String>>,
}

/// A list of nodes, kept as they came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeList {
    /// The list's own metadata.
    #[serde(default)]
    pub metadata: Value,
    /// The nodes.
    #[serde(default)]
    pub items: Option<Vec<Value>>,
}

/// The answer to `filter`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FilterResult {
    /// Nodes that are left, where nodes were sent.
    #[serde(rename = "Nodes")]
    pub nodes: Option<NodeList>,
    /// Names of nodes that are left, where names were sent.
    #[serde(rename = "NodeNames")]
    pub node_names: Option<Vec<String>>,
    /// Why others are not.
    #[serde(rename = "FailedNodes")]
    pub failed: BTreeMap<String, String>,
    /// Those where preempting others would not help either.
    #[serde(rename = "FailedAndUnresolvableNodes")]
    pub unresolvable: BTreeMap<String, String>,
    /// What went wrong; empty where nothing did.
    #[serde(rename = "Error")]
    pub error: String,
}

/// One line of the answer to `prioritize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostPriority {
    /// The node.
    #[serde(rename = "Host")]
    pub host: String,
    /// 0 to 10, a whole number.
    #[serde(rename = "Score")]
    pub score: i64,
}

/// Reads a request.
///
/// # Errors
/// A body that is none; to be answered with 400.
pub fn read(body: &[u8]) -> Result<Args, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

fn name_of(node: &Value) -> &str {
    node.pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

impl Args {
    /// Names of the nodes that are left.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        match (&self.node_names, &self.nodes) {
            (Some(names), _) => names.iter().map(String::as_str).collect(),
            (None, Some(nodes)) => nodes.items.iter().flatten().map(name_of).collect(),
            (None, None) => Vec::new(),
        }
    }
}

/// Which nodes are left for a pod. Without a recent view, and for pods without GPUs, all are.
#[must_use]
pub fn filter(args: Args, observed: Option<&Observed>, settings: &Settings) -> FilterResult {
    let mut result = FilterResult::default();
    let seen = pod::read(&args.pod, settings);
    let free = observed.map(|observed| &observed.free);
    let mut why_not = |name: &str| -> bool {
        let why = match (&seen, &free) {
            (Some(seen), Some(free)) => why_not(seen, name, free, settings),
            _ => None,
        };
        let is_left = why.is_none();
        if let Some(why) = why {
            result.failed.insert(name.to_owned(), why);
        }
        is_left
    };
    let node_names = args.node_names.map(|mut names| {
        names.retain(|name| why_not(name));
        names
    });
    let nodes = args.nodes.map(|mut list| {
        if let Some(items) = &mut list.items {
            items.retain(|node| why_not(name_of(node)));
        }
        list
    });
    FilterResult {
        nodes,
        node_names,
        ..result
    }
}

fn why_not(seen: &PodSeen, name: &str, free: &BTreeMap<String, u32>, settings: &Settings) -> Option<String> {
    if let Some(mark) = &seen.decided {
        let node = node_of(&mark.seat);
        return (node != name).then(|| format!("the pod was let go to {node}"));
    }
    let free = free.get(unit_name(name, &seen.resource, settings).as_str())?;
    (*free < seen.num_gpus).then(|| {
        format!(
            "{free} GPU(s) of {} are left beside those of jobs that were let go there",
            seen.num_gpus
        )
    })
}

/// Scores of nodes for a pod: 10 for the node that the policy chooses, and less for others the more GPUs would stay free there.
///
/// # Errors
/// A policy that fails, and its fallback too.
pub fn prioritize(
    args: &Args,
    observed: Option<&Observed>,
    policy: &mut Loaded,
    settings: &Settings,
    is_late: &mut dyn FnMut() -> bool,
) -> Result<Vec<HostPriority>, Error> {
    let names = args.names();
    let score = |name: &str, score: i64| HostPriority {
        host: name.to_owned(),
        score,
    };
    let (Some(seen), Some(observed)) = (pod::read(&args.pod, settings), observed) else {
        return Ok(names.into_iter().map(|name| score(name, 0)).collect());
    };
    let free = &observed.free;
    let chosen = choose(&seen, &names, observed, policy, settings, is_late)?;
    let scores = names.into_iter().map(|name| {
        let unit = unit_name(name, &seen.resource, settings);
        let left = free
            .get(unit.as_str())
            .and_then(|free| free.checked_sub(seen.num_gpus));
        match left {
            Some(_) if chosen.as_deref() == Some(name) => score(name, SCORE_MAX),
            Some(left) => score(name, (SCORE_REST - i64::from(left)).clamp(1, SCORE_REST)),
            None => score(name, 0),
        }
    });
    Ok(scores.collect())
}

/// The node that the policy chooses where this pod is all that waits.
fn choose(
    seen: &PodSeen,
    names: &[&str],
    observed: &Observed,
    policy: &mut Loaded,
    settings: &Settings,
    is_late: &mut dyn FnMut() -> bool,
) -> Result<Option<String>, Error> {
    let offered: BTreeMap<String, ()> = names
        .iter()
        .map(|name| (unit_name(name, &seen.resource, settings), ()))
        .collect();
    // Only free GPUs of offered nodes: what others hold makes no difference to a job that is alone.
    let node = |node: &NodeSeen| NodeSeen {
        num_gpus_used: node.num_gpus
            - observed
                .free
                .get(&node.name)
                .copied()
                .unwrap_or(0)
                .min(node.num_gpus),
        state: NodeState::Up,
        ..node.clone()
    };
    let all = observed.snapshot.nodes.iter();
    let nodes = all
        .filter(|node| offered.contains_key(&node.name))
        .map(node)
        .collect();
    let now_s = observed.snapshot.taken_s;
    let snapshot = Snapshot {
        nodes,
        jobs: vec![alone(seen, now_s)],
        ..Snapshot {
            version: observed.snapshot.version,
            taken_s: now_s,
            site: Site::default(),
            nodes: Vec::new(),
            jobs: Vec::new(),
        }
    };
    let mut fallback = policy.fallback(&settings.rounds)?;
    let mut deciders = Deciders {
        policy,
        fallback: &mut fallback,
    };
    let plan = round::plan(
        &snapshot,
        &Memory::default(),
        &mut deciders,
        &settings.rounds,
        true,
        is_late,
    )?;
    let start = plan
        .decisions
        .iter()
        .find(|planned| planned.decision.action == Action::Start);
    let unit = start.and_then(|planned| planned.nodes.first());
    Ok(unit.map(|unit| node_of(unit).to_owned()))
}

fn alone(seen: &PodSeen, now_s: i64) -> JobSeen {
    JobSeen {
        id: ExternalId::number(1),
        phase: Phase::Waiting,
        account: seen.namespace.clone(),
        user: String::new(),
        submit_s: seen.created_s.min(now_s),
        start_s: None,
        limit_s: seen.limit_s,
        num_nodes: 1,
        gpus_per_node: seen.num_gpus.max(1),
        is_packed: false,
        gpu_type: None,
        share: None,
        gpu_types: Vec::new(),
        num_cpus: u32::try_from(seen.cpu_milli().div_ceil(1000)).unwrap_or(u32::MAX),
        nodes: Vec::new(),
        num_restarts: 0,
        num_tries: 0,
        not_before_s: 0,
        predicted_s: None,
        terms: Terms::default(),
    }
}

/// A policy for the extender: the same file, of its own.
///
/// # Errors
/// A policy that does not fit.
pub fn load(text: &str, settings: &Settings) -> Result<Loaded, pleach_daemon::Error> {
    Loaded::driving(text, &settings.rounds)
}
