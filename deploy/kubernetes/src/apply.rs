//! Carries decisions out by patches and evictions, so that ending at any point leaves pods that work.
//!
//! A gate that was lifted cannot be put back. So a pod gets its node, its mark and its freedom in one request, which the API
//! server refuses if the pod is not the one that was read. The pods of a gang are all marked first, each with the seats of all,
//! and then let go one by one; the next round finishes what was cut short.

mod room;
mod sent;
mod stop;
mod suspend;
mod unready;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pleach_daemon::order::Order;
use pleach_daemon::record::Planned;
use pleach_daemon::snapshot::{JobSeen, Phase};
use pleach_daemon::system::{self, Kept, NotSent};
use pleach_scheduler::ExternalId;
use tokio::task::JoinSet;

use crate::api::{Cluster, Lift};
use crate::asks::Host;
use crate::claims::Claims;
use crate::config::Settings;
use crate::error::Error;
use crate::job_pods::JobPods;
use crate::lease::Held;
use crate::let_go::LetGo;
use crate::mark::Decided;
use crate::missing_pods::late;
use crate::node::node_of;
use crate::observe::Observed;
use crate::pod::PodSeen;
use crate::ranking;
use crate::seats::{self, rest};
use crate::standing::Duty;

/// Requests without an answer, one after the other, after which a round sends no more.
const SILENCE_MAX: u32 = 3;

/// What a round does to pods.
#[derive(Debug)]
pub struct Hands<'a> {
    cluster: &'a Cluster,
    settings: &'a Settings,
    observed: &'a Observed,
    policy: &'a str,
    hosts: Arc<BTreeMap<String, Host>>,
    /// Pods that were let go to a node and may not be bound yet: namespace, name.
    unbound: BTreeMap<String, Vec<(String, String)>>,
    emptied: BTreeSet<String>,
    wait_left: Duration,
    silence: u32,
    /// GPUs of each unit that this round has given.
    given: BTreeMap<String, u32>,
    claims: Option<&'a Claims>,
    lease: Option<&'a Held>,
    /// Places of Jobs of one pod, for the webhook.
    let_go: LetGo,
    /// Requests about single pods and Jobs that are under way, and what became of those that are over and went wrong.
    sent: JoinSet<(ExternalId, Result<(), Error>)>,
    refused: Vec<(ExternalId, NotSent)>,
    /// Jobs that this round has suspended.
    num_suspended: usize,
    /// Jobs that were let go and have no pods yet.
    num_unmade: usize,
}

impl<'a> Hands<'a> {
    /// For one round, by a policy of that name.
    #[must_use]
    pub fn new(
        cluster: &'a Cluster,
        settings: &'a Settings,
        observed: &'a Observed,
        policy: &'a str,
    ) -> Hands<'a> {
        let mut unbound: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for job in observed.jobs.values() {
            for pod in job.pods.iter().filter(|pod| pod.node.is_none() && !pod.is_held()) {
                if let Some(mark) = &pod.decided {
                    let node = node_of(&mark.seat).to_owned();
                    unbound
                        .entry(node)
                        .or_default()
                        .push((pod.namespace.clone(), pod.name.clone()));
                }
            }
        }
        Hands {
            cluster,
            settings,
            observed,
            policy,
            hosts: Arc::clone(&observed.hosts),
            unbound,
            emptied: BTreeSet::new(),
            wait_left: Duration::from_secs_f64(settings.bind_wait_s),
            silence: 0,
            given: BTreeMap::new(),
            claims: None,
            lease: None,
            let_go: LetGo::default(),
            sent: JoinSet::new(),
            refused: Vec::new(),
            num_suspended: 0,
            num_unmade: observed.num_unmade(),
        }
    }

    /// Only while a Lease is ours.
    #[must_use]
    pub fn while_held(self, lease: Option<&'a Held>) -> Hands<'a> {
        Hands { lease, ..self }
    }

    /// With a webhook that lets the pods of Jobs by.
    #[must_use]
    pub fn letting_by(self, let_go: &LetGo) -> Hands<'a> {
        Hands {
            let_go: let_go.clone(),
            ..self
        }
    }

    /// With the claims, which hear of jobs that are stopped.
    #[must_use]
    pub fn telling(self, claims: &'a Claims) -> Hands<'a> {
        Hands {
            claims: Some(claims),
            ..self
        }
    }

    /// Finishes releases that were cut short, gives back what the tables have no place for, makes pods anew that cannot be bound.
    async fn keep_all(&mut self, now_s: i64) -> Kept {
        let mut kept = Kept::default();
        let notes = &mut kept.notes;
        // Jobs are listed by arrival.
        let mut is_turn = true;
        for job in &self.observed.snapshot.jobs {
            is_turn &= job.phase != Phase::Waiting;
            let Some(pods) = self.observed.jobs.get(&job.id) else {
                continue;
            };
            let result = match (&pods.duty, &job.phase) {
                (Duty::Suspend, _) => self.suspend(pods, now_s).await,
                (Duty::Finish, phase) => {
                    let is_running = *phase == Phase::Running;
                    self.finish((job.id, pods), is_running, now_s).await
                }
                (Duty::GiveBackInTurn, _) if !is_turn => continue,
                (Duty::GiveBack | Duty::GiveBackInTurn, Phase::Foreign { reason }) => {
                    let given = self.give_back(pods, reason, now_s).await;
                    given.map(|()| Some(format!("{} is left to kube-scheduler: it {reason}", pods.name)))
                }
                (_, Phase::Released { since_s }) if self.is_overdue(*since_s, now_s) => {
                    notes.push(self.overdue_note(&pods.name, &pods.pods, now_s - since_s));
                    kept.late.extend(late(job.id, pods));
                    self.make_anew(&pods.pods).await.map(|()| None)
                }
                // The others of a gang that runs stay where they are, whatever becomes of one that came back.
                (_, Phase::Running) => match self.make_stuck_anew(pods, now_s).await {
                    Ok(None) => self.give_up_unready(job.id, pods, now_s).await.map(|found| {
                        let (note, late) = found?;
                        kept.late.extend(late);
                        Some(note)
                    }),
                    found => found,
                },
                _ => continue,
            };
            match result {
                Ok(note) => notes.extend(note),
                Err(error) => notes.push(error.to_string()),
            }
        }
        // What was sent is answered before the policy decides on what it changes.
        while self.answer().await {}
        kept.notes
            .extend(self.refused.drain(..).map(|(_, not_sent)| not_sent.why));
        kept
    }

    /// Pods of a running gang that were let go and are not bound in time; none is the rule.
    async fn make_stuck_anew(&mut self, job: &JobPods, now_s: i64) -> Result<Option<String>, Error> {
        let at_s = |pod: &PodSeen| match (&pod.node, &pod.decided) {
            (None, Some(mark)) if !pod.is_held() => Some(mark.at_s),
            _ => None,
        };
        let is_stuck = |pod: &&PodSeen| at_s(pod).is_some_and(|at_s| self.is_overdue(at_s, now_s));
        let stuck: Vec<PodSeen> = job.pods.iter().filter(is_stuck).cloned().collect();
        let Some(first_s) = stuck.iter().filter_map(at_s).min() else {
            return Ok(None);
        };
        let names: Vec<&str> = stuck.iter().map(|pod| pod.name.as_str()).collect();
        let note = self.overdue_note(
            &format!("{}, of {}", names.join(", "), job.name),
            &stuck,
            now_s - first_s,
        );
        self.make_anew(&stuck).await.map(|()| Some(note))
    }

    /// Time since a release; one that lies in the future comes from a clock that was set back, and is over.
    fn is_overdue(&self, since_s: i64, now_s: i64) -> bool {
        let limit_s = self.settings.release_limit_s;
        now_s - since_s > limit_s || since_s > now_s + limit_s
    }

    fn overdue_note(&self, name: &str, pods: &[PodSeen], age_s: i64) -> String {
        let end = match self.settings.recreate && pods.iter().all(|pod| pod.is_owned) {
            true => "its pods are evicted, and made anew by their controller",
            false => "its pods must be deleted by hand: nothing would make them anew",
        };
        format!("{name} was let go {age_s} s ago and is not bound to its node; {end}")
    }

    /// Lets the rest of a gang go, to what it was given. One that runs already waits where its node lacks something for a pod that
    /// came back: pinned there, it could only be evicted again.
    async fn finish(
        &mut self,
        (id, job): (ExternalId, &JobPods),
        is_running: bool,
        now_s: i64,
    ) -> Result<Option<String>, Error> {
        if !job.is_made {
            let is_held = job.owners.iter().any(|owner| owner.is_suspended);
            return match is_held {
                true => self.resume(job, &job.seats, now_s).await.map(|()| None),
                false => Ok(None),
            };
        }
        let rest = rest(&job.pods, &job.seats, self.settings);
        let places = rest.iter().map(|(pod, seat)| (*pod, seat.as_str()));
        if is_running && let Some((_, why)) = self.lacking(places) {
            return Ok(Some(format!(
                "{}: a pod that came back is put off: {why}",
                job.name
            )));
        }
        if let ([(pod, seat)], 1) = (&rest[..], job.pods.len())
            && pod.other_gate().is_none()
        {
            let sent = self.send(id, pod, seat, &job.seats, now_s).await;
            return Ok(sent.err().map(|not_sent| not_sent.why));
        }
        // A gang whose Job alone was let go yet: its pods are marked first, as those of any gang.
        if rest.len() == job.pods.len() && rest.iter().all(|(pod, _)| pod.other_gate().is_none()) {
            let (pods, places): (Vec<PodSeen>, Vec<&str>) = rest
                .iter()
                .map(|(pod, seat)| ((*pod).clone(), seat.as_str()))
                .unzip();
            let (_, sent) = self.let_all_go(&pods, &places, &job.seats, now_s).await;
            return sent.map(|()| None);
        }
        for (pod, seat) in rest {
            if pod.other_gate().is_none() {
                self.let_go(pod, &seat, &job.seats, now_s).await?;
            }
        }
        Ok(None)
    }

    async fn give_back(&mut self, job: &JobPods, reason: &str, now_s: i64) -> Result<(), Error> {
        if !job.is_made {
            return self.resume(job, &[], now_s).await;
        }
        for pod in job.pods.iter().filter(|pod| pod.is_held()) {
            let sent = self.cluster.lift(pod, &Lift::Free { reason }).await;
            self.hear(sent)?;
        }
        Ok(())
    }

    async fn make_anew(&mut self, pods: &[PodSeen]) -> Result<(), Error> {
        if self.settings.recreate && pods.iter().all(|pod| pod.is_owned) {
            self.evict(pods).await?;
        }
        Ok(())
    }

    /// Keeps count of an API server that does not answer.
    fn hear<T>(&mut self, answer: Result<T, Error>) -> Result<T, Error> {
        match &answer {
            Err(Error::Deadline { .. }) => self.silence += 1,
            _ => self.silence = 0,
        }
        answer
    }

    fn hostname(&self, pod: &PodSeen, node: &str) -> Result<String, Error> {
        let hostname = self.hosts.get(node).map(|host| host.hostname.clone());
        hostname
            .filter(|name| !name.is_empty())
            .ok_or_else(|| Error::Unknown {
                what: format!("node {node}, where {}/{} was to go", pod.namespace, pod.name),
            })
    }

    async fn let_go(
        &mut self,
        pod: &PodSeen,
        seat: &str,
        seats: &[(String, u32)],
        now_s: i64,
    ) -> Result<(), Error> {
        let node = node_of(seat);
        let mark = self.text_of_mark(&pod.uid, seat, seats, now_s);
        let hostname = self.hostname(pod, node)?;
        let lift = Lift::To {
            hostname: &hostname,
            mark: &mark,
        };
        let sent = self.cluster.lift(pod, &lift).await;
        self.hear(sent)?;
        let entry = self.unbound.entry(node.to_owned()).or_default();
        entry.push((pod.namespace.clone(), pod.name.clone()));
        Ok(())
    }

    fn text_of_mark(&self, uid: &str, seat: &str, seats: &[(String, u32)], now_s: i64) -> String {
        let mark = Decided {
            at_s: now_s,
            seat: seat.to_owned(),
            seats: seats.to_vec(),
            by: self.policy.to_owned(),
        };
        mark.text(uid, &self.settings.marks)
    }

    /// Lets a gang go: every pod is marked before the first one is free. A controller that begins anew must know where the rest
    /// goes, even if the first ones have ended by then. Where one cannot be marked or the first not be let go, as one that was
    /// evicted, the marks are taken off again: the others would begin without it. How many were let go, and what went wrong.
    async fn let_all_go(
        &mut self,
        pods: &[PodSeen],
        places: &[&str],
        seats: &[(String, u32)],
        now_s: i64,
    ) -> (usize, Result<(), Error>) {
        let mut marked: Vec<PodSeen> = pods.to_vec();
        if pods.len() > 1 {
            for number in 0..marked.len() {
                let mark = self.text_of_mark(&marked[number].uid, places[number], seats, now_s);
                let sent = self.cluster.mark(&marked[number], Some(&mark)).await;
                match self.hear(sent) {
                    Ok(version) => marked[number].resource_version = version,
                    Err(error) => {
                        self.take_marks_off(&marked[..number], &error).await;
                        return (0, Err(error));
                    }
                }
            }
        }
        for (number, (pod, seat)) in marked.iter().zip(places).enumerate() {
            if let Err(error) = self.let_go(pod, seat, seats, now_s).await {
                if number == 0 {
                    self.take_marks_off(&marked[1..], &error).await;
                }
                return (number, Err(error));
            }
        }
        (pods.len(), Ok(()))
    }

    /// Takes marks off pods of which none was let go, where the API server answers.
    async fn take_marks_off(&self, marked: &[PodSeen], error: &Error) {
        for pod in marked.iter().filter(|_| error.code().is_some()) {
            if self.cluster.mark(pod, None).await.is_err() {
                break;
            }
        }
    }

    /// The pods of a job, while the API server answers.
    fn pods_of(&self, job: &JobSeen) -> Result<&'a JobPods, NotSent> {
        if self.silence >= SILENCE_MAX {
            return Err(NotSent::put_off("the API server does not answer"));
        }
        if self.lease.is_some_and(|lease| !lease.is_ours()) {
            return Err(NotSent::put_off("the Lease may be another controller's by now"));
        }
        let pods = self.observed.jobs.get(&job.id).map(Arc::as_ref);
        pods.ok_or_else(|| NotSent::put_off("its pods were not seen"))
    }
}

impl system::Hands for Hands<'_> {
    async fn keep(&mut self, now_s: i64) -> Kept {
        match self.settings.drive.is_order() || self.lease.is_some_and(|lease| !lease.is_ours()) {
            true => Kept::default(),
            false => self.keep_all(now_s).await,
        }
    }

    async fn rank(&mut self, order: &mut Order, _now: &mut [Planned]) -> Vec<String> {
        let bounds = (
            i64::from(self.settings.order_step),
            self.settings.order_updates_max as usize,
        );
        ranking::tell(self.cluster, &self.observed.line, order, bounds).await
    }

    async fn stop(&mut self, job: &JobSeen, planned: &Planned) -> Result<(), NotSent> {
        let pods = self.pods_of(job)?;
        if let Some(pod) = pods.pods.iter().find(|pod| !pod.is_owned) {
            let why = format!("no controller would make {} anew", pod.name);
            return Err(NotSent::refused(why));
        }
        self.may_be_evicted(&pods.pods).await?;
        self.claims.iter().for_each(|claims| claims.stopped(job.id));
        self.evict(&pods.pods).await.map_err(NotSent::refused)?;
        let nodes = planned.nodes.iter().map(|unit| node_of(unit).to_owned());
        self.emptied.extend(nodes);
        Ok(())
    }

    async fn start(&mut self, job: &JobSeen, planned: &Planned, now_s: i64) -> Result<(), NotSent> {
        let pods = self.pods_of(job)?;
        if pods.duty == Duty::Suspend {
            return Err(NotSent::put_off("its Job is being suspended"));
        }
        if let Some(reason) = &pods.turn {
            let given = self.give_back(pods, reason, now_s).await;
            return given.map_err(NotSent::refused);
        }
        if !pods.is_made && !self.may_resume() {
            let why = "the Job controller makes the pods of others first";
            return Err(NotSent::put_off(why));
        }
        let seats = seats::placed(job, &pods.pods, planned).map_err(NotSent::put_off)?;
        let places: Vec<&str> = seats
            .iter()
            .flat_map(|(unit, num)| std::iter::repeat_n(unit.as_str(), *num as usize))
            .collect();
        let each = pods.pods.iter().zip(places.iter().copied());
        if let Some((node, why)) = self.lacking(each) {
            let units = planned.nodes.iter().filter(|unit| node_of(unit) == node);
            return Err(NotSent::put_off(why).by(units.cloned()));
        }
        let each = job.gpus_per_node.max(1);
        for (unit, num) in &seats {
            // While no more GPUs are given than are free, kube-scheduler has room for all pods, in whatever order it binds them.
            let gpus = self.given.entry(unit.clone()).or_default();
            *gpus = gpus.saturating_add(num.saturating_mul(each));
            if *gpus <= self.observed.free.get(unit).copied().unwrap_or(0) {
                continue;
            }
            if let Some(pod) = self.is_waited_for(node_of(unit)).await {
                let node = node_of(unit);
                let why = format!("{pod} was let go to {node} and is not bound yet");
                return Err(NotSent::put_off(why));
            }
        }
        if !pods.is_made {
            self.begin_resume(job.id, pods, &seats, now_s).await;
            self.num_unmade += 1;
        } else if let ([pod], [seat]) = (&pods.pods[..], &places[..]) {
            self.send(job.id, pod, seat, &seats, now_s).await?;
        } else if let (number, Err(error)) = self.let_all_go(&pods.pods, &places, &seats, now_s).await {
            return Err(match number {
                0 => NotSent::refused(error),
                _ => NotSent {
                    why: format!("cut short after {number} of {} pods: {error}", places.len()),
                    nodes: Vec::new(),
                },
            });
        }
        for (pod, seat) in pods.pods.iter().zip(&places) {
            if let Some(host) = Arc::make_mut(&mut self.hosts).get_mut(node_of(seat)) {
                host.take(&pod.asks, &pod.ports);
            }
        }
        Ok(())
    }

    async fn settle(&mut self) -> Vec<(ExternalId, NotSent)> {
        while self.answer().await {}
        std::mem::take(&mut self.refused)
    }
}
