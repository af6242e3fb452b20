//! The commands beside `run`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use pleach_daemon::config::EstimatesFrom;
use pleach_daemon::fleet;
use pleach_daemon::output::say;
use pleach_daemon::policy::Loaded;
use pleach_daemon::state::{self, State};
use pleach_kubernetes::api::Cluster;
use pleach_kubernetes::mark::Key;
use pleach_kubernetes::observe::{Observed, observe};
use pleach_kubernetes::server::{Pem, Shared};
use pleach_kubernetes::view::View;
use pleach_kubernetes::{Error, Settings, controller};
use pleach_scheduler::ExternalId;

use crate::arguments::{Check, HandBack, WhyNot};
use crate::host::now_s;

/// Time for a controller that was told to end, before its pods are handed back. *Ours*: longer than one round of most sites.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

fn code(is_well: bool) -> ExitCode {
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

pub fn status(settings: &Settings) -> Result<ExitCode, Error> {
    let status = state::read_status(&settings.state_dir)?;
    let now_s = now_s();
    say(&status.told(now_s, &status.partition, "kube-scheduler"))?;
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
    Ok(observe(&cluster.lists().await?, &settings, now_s()))
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
    let rounds = state::rounds_of(&settings.state_dir, job, 5)?;
    if rounds.is_empty() {
        say(&format!(
            "The log has no decision about {text} ({job}); `why-not {text}` tells why it does not run."
        ))?;
        return Ok(ExitCode::FAILURE);
    }
    for record in rounds {
        for told in record.told(job, text) {
            say(&told)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn why_not(settings: &Settings, args: &WhyNot) -> Result<ExitCode, Error> {
    let mut loaded = Loaded::of(&args.policy, fleet::capabilities(&settings.rounds))?;
    let mut observed = look(settings).await?;
    let job = match args.job.parse::<ExternalId>() {
        Ok(job) => job,
        Err(_) => job_of(&observed, &args.job)?,
    };
    // Where the controller's folder is not here, it is not known which nodes would not take the job.
    let (mut memory, complaint) = state::read_memory(&settings.state_dir);
    complaint.iter().for_each(|text| tracing::warn!("{text}"));
    memory.observe(&observed.snapshot);
    let rounds = &settings.rounds;
    if rounds.estimates.from == EstimatesFrom::History {
        let (mut history, complaint) = state::read_history(&settings.state_dir, &rounds.estimates);
        complaint.iter().for_each(|text| tracing::warn!("{text}"));
        history.observe(&mut observed.snapshot, &memory, &BTreeMap::new(), rounds);
    }
    say(&pleach_daemon::why_not::answer(
        &observed.snapshot,
        &memory,
        &mut loaded,
        &settings.rounds,
        job,
    )?)?;
    if let Some(remark) = observed.jobs.get(&job).and_then(|job| job.remark.as_deref()) {
        say(remark)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub async fn hand_back(settings: &Settings, args: &HandBack) -> Result<ExitCode, Error> {
    let (folder, bytes_max) = (&settings.state_dir, settings.log_bytes_max);
    let _lock = State::take_to_hand_back(folder, bytes_max, args.force, ENDS_WITHIN)?;
    let cluster = Cluster::infer(settings).await?;
    let (num, refused) = controller::hand_back(&cluster, settings).await?;
    say(&format!("{num} pods were given back to kube-scheduler"))?;
    for text in &refused {
        tracing::warn!("{text}");
    }
    Ok(code(refused.is_empty()))
}

pub async fn check(settings: &Settings, args: &Check) -> Result<ExitCode, Error> {
    settings.validate()?;
    Key::find(settings.key_place())?;
    say("settings: well")?;
    if let Some(policy) = &args.policy {
        let loaded = Loaded::of(policy, fleet::capabilities(&settings.rounds))?;
        say(&format!("policy: {}", loaded.name))?;
        for warning in loaded.warnings_with(&settings.rounds.estimates) {
            say(&format!("  warning: {warning}"))?;
        }
    }
    match &settings.server {
        None => say("server: none; no webhook holds pods, no extender answers")?,
        Some(server) => {
            Pem::read(server)?.config()?;
            Shared::new(settings, "fifo", View::default(), std::sync::Arc::default(), true)?;
            say(&format!(
                "server: {}, certificates and token well",
                server.address
            ))?;
        }
    }
    let cluster = Cluster::infer(settings).await?;
    let mut is_well = true;
    for (verb, group, resource, subresource) in [
        ("list", "", "nodes", ""),
        ("list", "", "pods", ""),
        ("get", "", "pods", ""),
        ("patch", "", "pods", ""),
        ("create", "", "pods", "eviction"),
        ("list", "batch", "jobs", ""),
    ] {
        let is_allowed = cluster.may(verb, group, resource, subresource).await?;
        is_well &= is_allowed;
        let what = if subresource.is_empty() {
            resource.to_owned()
        } else {
            format!("{resource}/{subresource}")
        };
        let mark = if is_allowed {
            "allowed"
        } else {
            "NOT ALLOWED: see the ClusterRole in kubernetes/deploy"
        };
        say(&format!("{verb} {what}: {mark}"))?;
    }
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
    Ok(ExitCode::SUCCESS)
}
