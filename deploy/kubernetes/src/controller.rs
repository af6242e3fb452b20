//! Kubernetes as a batch system: observed by what its API server lists or shows of changes, driven by patches and evictions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use pleach_daemon::Driver;
use pleach_daemon::forecasts::News;
use pleach_daemon::history::{End, EndedJob};
use pleach_daemon::pulse::Pulse;
use pleach_daemon::snapshot::Snapshot;
use pleach_daemon::state::State;
use pleach_daemon::system::{BatchSystem, Look, Words};
use pleach_scheduler::ExternalId;

use crate::api::{Cluster, Lift};
use crate::apply::Hands;
use crate::arrival::by_name;
use crate::claims::Claims;
use crate::config::Settings;
use crate::ended::{self, Ended};
use crate::error::Error;
use crate::events::{self, Events};
use crate::lease::Held;
use crate::mark::Key;
use crate::memo::Memo;
use crate::observe::Observed;
use crate::pod;
use crate::ranking;
use crate::seats::Traces;
use crate::suspended::Owner;
use crate::suspended::maker::Maker;
use crate::unheld::{self, Unheld};
use crate::view::View;
use crate::workload_queue::Workloads;

/// A day, s.
const DAY_S: i64 = 86_400;

/// A driver of Kubernetes.
pub type Controller = Driver<Kubernetes>;

/// The namespaces of a cluster that are driven.
#[derive(Debug)]
pub struct Kubernetes {
    settings: Settings,
    cluster: Cluster,
    /// Life signs: each answer of the API server is one.
    pulse: Pulse,
    /// What the last look left, and whether nothing of it was under way.
    traces: Traces,
    is_settled: bool,
    memo: Memo,
    /// What is believed of what users say.
    claims: Claims,
    /// None: every controller that runs drives.
    lease: Option<Held>,
    view: View,
    is_shadow: bool,
    /// When it first looked, Unix time, s.
    began_s: Option<i64>,
    /// What was last said of pods that came by the webhook.
    unheld: Unheld,
    /// Events for users.
    events: Events,
}

impl Kubernetes {
    /// A controller with a policy of that name or in that file. Takes the folder; nothing is asked of the API server yet.
    ///
    /// # Errors
    /// Settings out of their ranges, a policy that does not fit, a folder that another controller has, a key of marks that cannot
    /// be had.
    pub fn driver(
        mut settings: Settings,
        cluster: Cluster,
        policy: &str,
        is_shadow: bool,
    ) -> Result<Controller, Error> {
        settings.validate()?;
        if !is_shadow {
            settings.validate_live()?;
        }
        let state = State::take(&settings.state_dir, settings.log())?;
        settings.marks = Key::take(settings.key_place())?;
        let rounds = settings.rounds();
        let claims = Claims::begin(&settings.state_dir, &rounds.estimates);
        // In shadow mode no controller is in another's way.
        let lease = Held::of(&settings).filter(|_| !is_shadow);
        let pulse = Pulse::default();
        let system = Kubernetes {
            lease,
            settings,
            cluster: cluster.beating(&pulse),
            pulse,
            traces: Traces::default(),
            is_settled: false,
            memo: Memo::default(),
            claims,
            view: View::default(),
            is_shadow,
            began_s: None,
            unheld: Unheld::default(),
            events: Events::default(),
        };
        Ok(Driver::new(system, rounds, state, None, (policy, is_shadow))?)
    }

    fn ended_of(&self, pods: &[Arc<Pod>], jobs: &[Arc<Job>]) -> BTreeMap<ExternalId, Ended> {
        let (pods, jobs) = (pods.iter().map(Arc::as_ref), jobs.iter().map(Arc::as_ref));
        ended::ended(pods, jobs, &self.settings)
    }

    /// Gives the Lease back, if it is held.
    ///
    /// # Errors
    /// An API server that refuses or does not answer.
    pub async fn give_lease_back(&self) -> Result<(), Error> {
        match &self.lease {
            Some(lease) => lease.give_back(&self.cluster).await,
            None => Ok(()),
        }
    }

    /// Looks for pods that came by the webhook, where pods are held; what is new of them is an error in the log.
    async fn look_for_unheld(&mut self, observed: &mut Observed) -> Result<(), Error> {
        let now_s = observed.snapshot.taken_s;
        let began_s = *self.began_s.get_or_insert(now_s);
        if self.is_shadow || self.settings.drive.is_order() || self.settings.server.is_none() {
            return Ok(());
        }
        let pods = unheld::without_gate(observed.jobs.values().map(Arc::as_ref), began_s);
        let labelled = match pods.is_empty() {
            true => Ok(BTreeSet::new()),
            false => self.cluster.labelled().await,
        };
        let found = match labelled {
            Err(error) if error.code() == Some(403) => {
                let why = "whether GPU pods arrive unheld is not known";
                observed.notes.push(format!("{why}: {error}"));
                return Ok(());
            }
            labelled => Unheld::of(&pods, &labelled?),
        };
        if !found.pods.is_subset(&self.unheld.pods)
            && let Some(text) = found.told()
        {
            tracing::error!("{text}");
        }
        self.unheld = found.clone();
        observed.unheld = Some(found);
        Ok(())
    }

    /// The Lease, to be renewed beside the rounds; none where there is none.
    #[must_use]
    pub fn lease(&self) -> Option<Held> {
        self.lease.clone()
    }

    /// The settings, with the key of marks.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the server shows of it: the last view.
    #[must_use]
    pub fn view(&self) -> View {
        self.view.clone()
    }
}

impl Look for Observed {
    fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    fn snapshot_mut(&mut self) -> &mut Snapshot {
        &mut self.snapshot
    }

    fn into_snapshot(self) -> Snapshot {
        self.snapshot
    }

    fn name(&self, job: ExternalId) -> String {
        let seen = self.jobs.get(&job);
        seen.map_or_else(|| job.to_string(), |seen| seen.name.clone())
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn num_unheld(&self) -> Option<usize> {
        self.unheld.as_ref().map(|unheld| unheld.pods.len())
    }
}

impl BatchSystem for Kubernetes {
    type Look = Observed;
    type Hands<'a> = Hands<'a>;
    type Error = Error;

    const WORDS: Words = Words {
        scheduler: "kube-scheduler",
        left_alone: ("jobs_left_alone", "Jobs that are left to the batch system"),
        place: "",
        held: "pods",
        program: "pleach-kubernetes",
    };

    fn place(&self) -> String {
        match self.settings.drives_all() {
            true => "all namespaces".to_owned(),
            false => self.settings.namespaces.join(","),
        }
    }

    async fn observe(&mut self, now_s: i64) -> Result<Observed, Error> {
        let right = match &self.lease {
            Some(lease) => lease.hold(&self.cluster, now_s).await,
            None => Ok(()),
        };
        let lists = self.cluster.lists().await?;
        let mut observed = self.memo.observe(&self.traces, &lists, &self.settings, now_s);
        self.is_settled = observed.is_settled();
        self.claims.learn(&observed.snapshot, &observed.jobs);
        self.claims.bound(&mut observed.snapshot, &mut observed.jobs);
        self.traces.clone_from(&observed.traces);
        if let Err(error) = right {
            // A controller that stands by answers the webhook as the one that drives does.
            if matches!(error, Error::StandsBy { .. }) {
                self.view.show(Arc::new(observed));
            }
            return Err(error);
        }
        self.look_for_unheld(&mut observed).await?;
        if self.settings.events && !self.is_shadow && !self.settings.drive.is_order() {
            let (events, note) = self.events.changes(&observed);
            self.events.send(&self.cluster, events);
            observed.notes.extend(note);
        }
        Ok(observed)
    }

    async fn rests(&mut self, now_s: i64) -> Result<bool, Error> {
        if !self.is_settled {
            return Ok(false);
        }
        if let Some(lease) = &self.lease {
            lease.hold(&self.cluster, now_s).await?;
        }
        let lists = self.cluster.lists().await?;
        let rests = self.memo.sees_the_same(&self.traces, &lists, now_s);
        if rests {
            self.view.keep();
        }
        Ok(rests)
    }

    fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    fn foretell(&mut self, observed: &Observed, news: &[News]) -> Result<bool, String> {
        if !self.settings.events || self.settings.drive.is_order() || news.is_empty() {
            return Ok(true);
        }
        let is_free = self.events.are_sent();
        if is_free {
            let now_s = observed.snapshot.taken_s;
            let of = |news: &News| Some(events::of_forecast(observed.jobs.get(&news.job)?, news, now_s));
            let events = news.iter().filter_map(of).flatten().collect();
            self.events.send(&self.cluster, events);
        }
        Ok(is_free)
    }

    fn announce(&self, news: &str, now_s: i64) {
        let lease = self
            .settings
            .lease
            .as_deref()
            .and_then(|lease| lease.split_once('/'));
        if let Some(lease) = lease.filter(|_| self.settings.events) {
            let event = events::of_lease(lease, news, now_s);
            self.events.send(&self.cluster, vec![event]);
        }
    }

    fn show(&self, observed: &Arc<Observed>) {
        self.view.show(Arc::clone(observed));
    }

    async fn ended(&self) -> Result<BTreeMap<ExternalId, End>, Error> {
        let (pods, jobs) = self.cluster.ended().await?;
        let ended = self.ended_of(&pods, &jobs);
        Ok(ended.into_iter().map(|(id, ended)| (id, ended.end())).collect())
    }

    async fn past(&self, observed: &Observed, days: u32) -> Result<Vec<EndedJob>, Error> {
        let (pods, jobs) = self.cluster.ended().await?;
        let live: BTreeSet<ExternalId> = observed.jobs.keys().copied().collect();
        let since_s = observed.snapshot.taken_s.saturating_sub(i64::from(days) * DAY_S);
        let ended = self.ended_of(&pods, &jobs);
        Ok(ended::accounting(ended, &live, since_s))
    }

    fn hands<'a>(&'a self, observed: &'a Observed, policy: &'a str) -> Hands<'a> {
        Hands::new(&self.cluster, &self.settings, observed, policy)
            .telling(&self.claims)
            .while_held(self.lease.as_ref())
            .letting_by(&self.view.let_go)
    }
}

/// Lets all Jobs go that were suspended, lifts the gates of all pods that are held, in the order of arrival, and leaves their places
/// to kube-scheduler: how many, and what was refused. Needs no policy and no state.
///
/// # Errors
/// A list that cannot be had.
pub async fn hand_back(cluster: &Cluster, settings: &Settings) -> Result<(u64, Vec<String>), Error> {
    let pods = cluster.pods().await?;
    let mut held: Vec<_> = pods.iter().filter_map(|pod| pod::read(pod, settings)).collect();
    held.retain(|pod| pod.is_held() && settings.drives(&pod.namespace));
    held.sort_by(|a, b| {
        let came = a.created_s.cmp(&b.created_s);
        came.then_with(|| a.namespace.cmp(&b.namespace))
            .then_with(|| by_name(&a.name, &b.name))
    });
    let mut back = Vec::new();
    let (jobs, others) = (cluster.jobs().await?, cluster.others(&mut Vec::new()).await?);
    let others = others.iter().map(|(kind, object)| Maker::of_other(kind, object));
    let makers = jobs.iter().map(Maker::of_job).chain(others);
    let owners = makers.filter_map(|maker| Owner::read(&maker, settings));
    for owner in owners.filter(|owner| owner.is_suspended && settings.drives(&owner.namespace)) {
        back.push(cluster.resume(&owner, None).await);
    }
    for pod in &held {
        let reason = "handed back by an operator";
        back.push(cluster.lift(pod, &Lift::Free { reason }).await);
    }
    let num = back.iter().filter(|sent| sent.is_ok()).count();
    let refused = back.into_iter().filter_map(Result::err);
    // Gone in the meantime.
    let refused = refused.filter(|error| error.code() != Some(404));
    Ok((num as u64, refused.map(|error| error.to_string()).collect()))
}

/// Gives the workloads that wait for Kueue the priorities of their classes: how many, and what was refused.
///
/// # Errors
/// A list that cannot be had.
pub async fn take_back(cluster: &Cluster, settings: &Settings) -> Result<(u64, Vec<String>), Error> {
    let line = Workloads::read(&cluster.kueue().await?, settings);
    Ok(ranking::take_back(cluster, &line.places).await)
}
