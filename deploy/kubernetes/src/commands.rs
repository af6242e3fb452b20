//! The commands beside `run`.

use std::process::ExitCode;
use std::sync::Arc;

use pleach_daemon::BatchSystem;
use pleach_daemon::operator::{self, HandBackArgs, code};
use pleach_daemon::output::say;
use pleach_daemon::policy::Loaded;
use pleach_kubernetes::api::Cluster;
use pleach_kubernetes::claims::Claims;
use pleach_kubernetes::controller::{Kubernetes, hand_back as hand_back_all, take_back};
use pleach_kubernetes::kueue;
use pleach_kubernetes::mark::Key;
use pleach_kubernetes::observe::{Observed, observe};
use pleach_kubernetes::server::{Pem, Shared};
use pleach_kubernetes::unheld::{self, Unheld};
use pleach_kubernetes::view::View;
use pleach_kubernetes::{Error, Settings};
use pleach_scheduler::ExternalId;

use crate::arguments::{Check, WhyNot};
use crate::host::now_s;

/// Pods of so long are looked at by `check` for those that came by the webhook, s. *Ours*.
const UNHELD_S: i64 = 600;

pub fn status(settings: &Settings) -> Result<ExitCode, Error> {
    let now_s = now_s();
    let status = operator::status(&settings.state_dir, &Kubernetes::WORDS, now_s)?;
    // A failed round is tried again; only silence is a reason for the kubelet to begin anew.
    Ok(code(now_s - status.at_s <= 60))
}

async fn look(settings: &Settings) -> Result<Observed, Error> {
    let mut settings = settings.clone();
    settings.marks = Key::find(settings.key_place())?;
    if settings.marks == Key::default() {
        tracing::warn!(
            "no key of marks is here (mark_key, or state_dir of the controller): jobs that were let go count as left alone"
        );
    }
    let cluster = Cluster::infer(&settings).await?;
    let mut observed = observe(&cluster.lists().await?, &settings, now_s());
    let claims = Claims::begin(&settings.state_dir, &settings.rounds.estimates);
    claims.bound(&mut observed.snapshot, &mut observed.jobs);
    Ok(observed)
}

/// The job of a pod that is named NAMESPACE/POD.
fn job_of(observed: &Observed, text: &str) -> Result<ExternalId, Error> {
    let has = |pod: &pleach_kubernetes::pod::PodSeen| format!("{}/{}", pod.namespace, pod.name) == text;
    let found = observed
        .jobs
        .iter()
        .find(|(_, job)| job.name == text || job.pods.iter().any(has));
    found.map(|(id, _)| *id).ok_or_else(|| Error::Unknown {
        what: text.to_owned(),
    })
}

pub async fn explain(settings: &Settings, text: &str) -> Result<ExitCode, Error> {
    let job = match text.parse::<ExternalId>() {
        Ok(job) => job,
        Err(_) => job_of(&look(settings).await?, text)?,
    };
    Ok(code(operator::explain(&settings.state_dir, job, text, text)?))
}

pub async fn why_not(settings: &Settings, args: &WhyNot) -> Result<ExitCode, Error> {
    let mut observed = look(settings).await?;
    let job = match args.job.parse::<ExternalId>() {
        Ok(job) => job,
        Err(_) => job_of(&observed, &args.job)?,
    };
    let folder = &settings.state_dir;
    operator::why_not(&mut observed, folder, &settings.rounds(), &args.policy, job)?;
    if let Some(remark) = observed.jobs.get(&job).and_then(|job| job.remark.as_deref()) {
        say(remark)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn hand_back(settings: &Settings, args: &HandBackArgs) -> Result<ExitCode, Error> {
    let back = async {
        let cluster = Cluster::infer(settings).await?;
        if !settings.drive.is_order() {
            return hand_back_all(&cluster, settings).await;
        }
        let (num, mut refused) = take_back(&cluster, settings).await?;
        say(&format!(
            "{num} workloads have the priorities of their classes again"
        ))?;
        // A controller that drove by gates may have left some; a missing right to lift them is reported.
        let (num, others) = hand_back_all(&cluster, settings).await?;
        refused.extend(others);
        Ok((num, refused))
    };
    operator::hand_back(&settings.state_dir, args, &Kubernetes::WORDS, back)
        .await
        .map(code)
}

pub async fn check(settings: &Settings, args: &Check) -> Result<ExitCode, Error> {
    settings.validate()?;
    Key::find(settings.key_place())?;
    say("settings: well")?;
    if settings.lease.is_some() && settings.tick_s >= f64::from(settings.lease_s) {
        let (tick_s, lease_s) = (settings.tick_s, settings.lease_s);
        say(&format!(
            "  warning: tick_s = {tick_s} is not below lease_s = {lease_s}: a controller that stands by looks at the Lease once a \
             round, and takes over that much later"
        ))?;
    }
    if let Some(policy) = &args.policy {
        let loaded = Loaded::driving(policy, &settings.rounds())?;
        say(&format!("policy: {}", loaded.name))?;
        for warning in loaded.warnings_with(&settings.rounds.estimates) {
            say(&format!("  warning: {warning}"))?;
        }
    }
    match &settings.server {
        None => say("server: none; no webhook holds pods")?,
        Some(server) => {
            Pem::read(server)?.config()?;
            Shared::new(settings, View::default(), std::sync::Arc::default(), true)?;
            say(&format!(
                "server: {}, certificates and token well",
                server.address
            ))?;
        }
    }
    let cluster = Cluster::infer(settings).await?;
    let is_well = rights(settings, &cluster).await?;
    if !is_well {
        return Ok(ExitCode::FAILURE);
    }
    let observed = observe(&cluster.lists().await?, settings, now_s());
    say(&format!(
        "{} nodes with GPUs, {} jobs that ask for some",
        observed.snapshot.nodes.len(),
        observed.snapshot.jobs.len()
    ))?;
    for note in &observed.notes {
        say(&format!("  {note}"))?;
    }
    let told = match settings.drive.is_order() {
        true => None,
        false => lately_unheld(&cluster, &observed).await?,
    };
    if let Some(text) = &told {
        say(&format!("ERROR: {text}"))?;
    }
    Ok(code(told.is_none()))
}

/// Says which rights there are; whether all that are needed.
async fn rights(settings: &Settings, cluster: &Cluster) -> Result<bool, Error> {
    let mut is_well = true;
    let looks = [
        ("list", "", "nodes", ""),
        ("watch", "", "nodes", ""),
        ("list", "", "pods", ""),
        ("watch", "", "pods", ""),
        ("get", "batch", "jobs", ""),
        ("list", "batch", "jobs", ""),
        ("watch", "batch", "jobs", ""),
    ];
    let holds: &[_] = &[
        ("get", "", "pods", ""),
        ("patch", "", "pods", ""),
        ("create", "", "pods", "eviction"),
        ("patch", "batch", "jobs", ""),
        ("create", "", "events", ""),
        ("list", "policy", "poddisruptionbudgets", ""),
        ("get", "", "persistentvolumeclaims", ""),
        ("list", "", "persistentvolumeclaims", ""),
        ("watch", "", "persistentvolumeclaims", ""),
        ("get", "", "persistentvolumes", ""),
        ("list", "", "persistentvolumes", ""),
        ("watch", "", "persistentvolumes", ""),
        ("list", "", "namespaces", ""),
        ("list", "", "resourcequotas", ""),
        ("watch", "", "resourcequotas", ""),
        ("list", kueue::POD_CLASSES, "priorityclasses", ""),
        ("watch", kueue::POD_CLASSES, "priorityclasses", ""),
    ];
    let orders: &[_] = &[
        ("get", kueue::GROUP, "workloads", ""),
        ("list", kueue::GROUP, "workloads", ""),
        ("patch", kueue::GROUP, "workloads", ""),
        ("list", kueue::GROUP, "clusterqueues", ""),
        ("list", kueue::GROUP, "localqueues", ""),
        ("list", kueue::GROUP, "workloadpriorityclasses", ""),
        ("list", kueue::POD_CLASSES, "priorityclasses", ""),
    ];
    let does = match settings.drive.is_order() {
        true => orders,
        false => holds,
    };
    let lease: &[_] = &[
        ("get", "coordination.k8s.io", "leases", ""),
        ("create", "coordination.k8s.io", "leases", ""),
        ("update", "coordination.k8s.io", "leases", ""),
    ];
    let of_lease = settings.lease.as_ref().and_then(|lease| lease.split_once('/'));
    let own = of_lease.map(|(namespace, _)| namespace);
    let lease = if own.is_some() { lease } else { &[] };
    let everywhere = looks.iter().chain(does).map(|right| (right, None));
    for (right, namespace) in everywhere.chain(lease.iter().map(|right| (right, own))) {
        let (verb, group, resource, subresource) = *right;
        let is_allowed = cluster.may(verb, group, resource, subresource, namespace).await?;
        is_well &= is_allowed;
        let what = if subresource.is_empty() {
            resource.to_owned()
        } else {
            format!("{resource}/{subresource}")
        };
        let mark = if is_allowed {
            "allowed"
        } else {
            "NOT ALLOWED: see the roles in deploy/kubernetes/deploy"
        };
        say(&format!("{verb} {what}: {mark}"))?;
    }
    Ok(is_well)
}

/// What is to be said of pods of the last minutes that came by the webhook.
async fn lately_unheld(cluster: &Cluster, observed: &Observed) -> Result<Option<String>, Error> {
    let since_s = observed.snapshot.taken_s - UNHELD_S;
    let pods = unheld::without_gate(observed.jobs.values().map(Arc::as_ref), since_s);
    if pods.is_empty() {
        return Ok(None);
    }
    Ok(Unheld::of(&pods, &cluster.labelled().await?).told())
}
