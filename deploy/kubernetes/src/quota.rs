//! What the quotas of namespaces leave to Jobs that have no pods yet: one whose pods would be refused waits, for that reason.
//!
//! Pods that are there count already, those with a gate too: as the quota says or as the pods say, for these may be shown before it. A
//! Job that was let go and has no pods yet takes its part.
//!
//! # Source
//! "Resource quotas" of the Kubernetes documentation: compute resources, `requests.` of extended ones, counts of pods, scopes.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodSpec, ResourceQuota, ScopedResourceSelectorRequirement};
use pleach_daemon::snapshot::{Allowance, JobSeen, Phase};
use pleach_scheduler::ExternalId;

use crate::asks;
use crate::job_pods::JobPods;
use crate::pod;
use crate::reads::{Known, Unmade};
use crate::suspended::Owner;

/// A row of quota: its namespace and name, the resource, and what of that is left, in thousandths.
struct Row<'a> {
    quota: &'a ResourceQuota,
    resource: &'a str,
    hard: u64,
    left: u64,
}

impl Row<'_> {
    fn name(&self) -> &str {
        self.quota.metadata.name.as_deref().unwrap_or_default()
    }
}

/// Takes from quotas what Jobs take that were let go, and blocks those that wait and for which too little is left; what is left, for
/// the others to share.
pub(crate) fn bind(
    (quotas, live): (&[Arc<ResourceQuota>], &[Arc<Pod>]),
    unmade: &[Unmade],
    pods: &BTreeMap<ExternalId, Arc<JobPods>>,
    jobs: &mut [(i64, String, JobSeen)],
) -> Vec<Allowance> {
    let templates: BTreeMap<&str, &[Known]> = unmade
        .iter()
        .map(|(owner, pods)| (owner.uid.as_str(), pods.as_slice()))
        .collect();
    if quotas.is_empty() || templates.is_empty() {
        return Vec::new();
    }
    let mut rows = rows(quotas, live);
    let takes = |job: &JobSeen, rows: &[Row<'_>]| {
        let of = pods.get(&job.id).filter(|pods| !pods.is_made);
        of.map_or_else(Vec::new, |pods| takes(pods, &templates, rows))
    };
    for (.., job) in jobs.iter().filter(|(.., job)| job.is_placed()) {
        for (row, amount) in takes(job, &rows) {
            let left = &mut rows[row as usize].left;
            *left = left.saturating_sub(amount);
        }
    }
    for (.., job) in jobs.iter_mut().filter(|(.., job)| job.phase == Phase::Waiting) {
        let takes = takes(job, &rows);
        let short = takes
            .iter()
            .find(|(row, amount)| rows[*row as usize].left < *amount);
        if let Some((row, amount)) = short {
            let row = &rows[*row as usize];
            let words = |milli| asks::words(row.resource.trim_start_matches("requests."), milli);
            job.phase = Phase::Blocked {
                reason: format!(
                    "waits for the quota {} of its namespace: {} are left of {}, and it takes {}",
                    row.name(),
                    words(row.left),
                    words(row.hard),
                    words(*amount)
                ),
            };
        }
        job.terms.takes = takes;
    }
    let of = |row: Row<'_>| Allowance {
        what: format!("{} of the quota {}", row.resource, row.name()),
        left: row.left,
    };
    rows.into_iter().map(of).collect()
}

fn rows<'a>(quotas: &'a [Arc<ResourceQuota>], live: &[Arc<Pod>]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for quota in quotas {
        let Some(status) = &quota.status else { continue };
        let is_its =
            |pod: &&Arc<Pod>| pod.metadata.namespace == quota.metadata.namespace && !pod::has_ended(pod);
        let own = live.iter().filter(is_its).filter_map(|pod| pod.spec.as_ref());
        let own: Vec<&PodSpec> = own.filter(|spec| is_in_scope(quota, spec)).collect();
        for (resource, hard) in status.hard.iter().flatten() {
            let used = status.used.as_ref().and_then(|used| used.get(resource));
            let hard = asks::milli(hard);
            let of_pods = own.iter().map(|spec| of_pod(spec, resource));
            let used = used
                .map_or(0, asks::milli)
                .max(of_pods.fold(0, u64::saturating_add));
            rows.push(Row {
                quota,
                resource,
                hard,
                left: hard.saturating_sub(used),
            });
        }
    }
    rows
}

/// What a job's pods would take of each row of their namespace.
fn takes(pods: &JobPods, templates: &BTreeMap<&str, &[Known]>, rows: &[Row<'_>]) -> Vec<(u32, u64)> {
    let mut takes = Vec::new();
    for (number, row) in (0..).zip(rows) {
        let of_owner = |owner: &Owner| {
            if row.quota.metadata.namespace.as_ref() != Some(&owner.namespace) {
                return None;
            }
            let num = pods.pods.iter().filter(|pod| pod.uid == owner.uid).count();
            let own = templates.get(owner.uid.as_str())?.iter().take(num);
            let specs = own.filter_map(|(pod, _)| pod.spec.as_ref());
            let counted = specs.filter(|spec| is_in_scope(row.quota, spec));
            Some(
                counted
                    .map(|spec| of_pod(spec, row.resource))
                    .fold(0, u64::saturating_add),
            )
        };
        let amount = pods
            .owners
            .iter()
            .filter_map(of_owner)
            .fold(0, u64::saturating_add);
        if amount > 0 {
            takes.push((number, amount));
        }
    }
    takes
}

/// What a pod takes of a resource of a quota, in thousandths.
fn of_pod(spec: &PodSpec, resource: &str) -> u64 {
    match (resource.split_once('.'), resource) {
        (_, "pods" | "count/pods") => 1000,
        (_, "cpu" | "memory" | "ephemeral-storage") => asks::of(spec, resource),
        (Some(("requests", name)), _) => asks::of(spec, name),
        (Some(("limits", name)), _) => asks::of_containers(spec, &|resources| {
            let limit = resources.limits.as_ref().and_then(|limits| limits.get(name));
            limit.map_or(0, asks::milli)
        }),
        _ => 0,
    }
}

/// Whether a quota counts such pods.
fn is_in_scope(quota: &ResourceQuota, spec: &PodSpec) -> bool {
    let of = quota.spec.as_ref();
    let plain = of.and_then(|spec| spec.scopes.as_ref()).into_iter().flatten();
    let chosen = of.and_then(|spec| spec.scope_selector.as_ref()?.match_expressions.as_ref());
    let exists = |name: &String| has(spec, name, "Exists", &[]);
    let meets = |one: &ScopedResourceSelectorRequirement| {
        has(
            spec,
            &one.scope_name,
            &one.operator,
            one.values.as_deref().unwrap_or_default(),
        )
    };
    plain.into_iter().all(exists) && chosen.into_iter().flatten().all(meets)
}

/// Whether a pod is in a scope. Of scopes that are not known, none is.
fn has(spec: &PodSpec, scope: &str, operator: &str, values: &[String]) -> bool {
    let has_deadline = spec.active_deadline_seconds.is_some();
    let names = asks::names(spec);
    let asks = names
        .iter()
        .any(|name| ["cpu", "memory"].contains(&name.as_str()));
    let class = spec.priority_class_name.as_ref();
    match (scope, operator) {
        ("Terminating", _) => has_deadline,
        ("NotTerminating", _) => !has_deadline,
        ("BestEffort", _) => !asks,
        ("NotBestEffort", _) => asks,
        ("PriorityClass", "In") => class.is_some_and(|class| values.contains(class)),
        ("PriorityClass", "NotIn") => class.is_none_or(|class| !values.contains(class)),
        ("PriorityClass", "DoesNotExist") => class.is_none(),
        ("PriorityClass", _) => class.is_some(),
        _ => false,
    }
}
