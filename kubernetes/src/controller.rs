//! The loop: observe, decide, carry out, write down. What fails is told and tried again in the next round.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pleach_daemon::config::EstimatesFrom;
use pleach_daemon::fleet;
use pleach_daemon::history::History;
use pleach_daemon::memory::Memory;
use pleach_daemon::metrics::Metrics;
use pleach_daemon::policy::Loaded;
use pleach_daemon::record::{Planned, RoundRecord, remember_refusals};
use pleach_daemon::round::{self, Deciders, Plan};
use pleach_daemon::snapshot::{Phase, Snapshot};
use pleach_daemon::state::{self, State, Status};
use pleach_daemon::watch::Watch;
use pleach_scheduler::ExternalId;
use pleach_scheduler::decision::Action;

use crate::api::{Cluster, Lift};
use crate::apply::Hands;
use crate::arrival::by_name;
use crate::config::Settings;
use crate::error::Error;
use crate::mark::Key;
use crate::observe::{self, Observed};
use crate::pod;
use crate::seats::Lost;
use crate::view::View;

/// A controller between two rounds.
#[derive(Debug)]
pub struct Controller {
    settings: Settings,
    cluster: Cluster,
    is_shadow: bool,
    policy_text: String,
    policy: Loaded,
    fallback: Loaded,
    watch: Watch,
    memory: Memory,
    /// Places that running gangs have lost.
    lost: BTreeMap<ExternalId, Lost>,
    /// None where estimates are time limits.
    history: Option<History>,
    state: State,
    status: Status,
    metrics: Metrics,
    view: View,
    /// Whether it is known where the policy leaves the whole cluster to another rule.
    is_judged: bool,
}

impl Controller {
    /// Reads the policy and takes the folder. Nothing is asked of the API server yet.
    ///
    /// # Errors
    /// A policy that does not fit, a folder that another controller has.
    pub fn new(
        mut settings: Settings,
        cluster: Cluster,
        policy: &str,
        is_shadow: bool,
    ) -> Result<Controller, Error> {
        settings.validate()?;
        let capabilities = fleet::capabilities(&settings.rounds);
        let mut loaded = Loaded::of(policy, capabilities)?;
        let fallback = loaded.fallback(&settings.rounds, capabilities)?;
        let state = State::take(&settings.state_dir, settings.log_bytes_max)?;
        settings.marks = Key::take(settings.key_place())?;
        let (memory, complaint) = state::read_memory(&settings.state_dir);
        let mut warnings = loaded.warnings_with(&settings.rounds.estimates);
        warnings.extend(complaint);
        warnings.extend(state.remind(&mut loaded));
        let estimates = &settings.rounds.estimates;
        let (history, complaint) = match estimates.from {
            EstimatesFrom::Limit => (None, None),
            EstimatesFrom::History => {
                let (history, complaint) = state::read_history(&settings.state_dir, estimates);
                (Some(history), complaint)
            }
        };
        warnings.extend(complaint);
        let partition = match settings.namespaces.is_empty() {
            true => "all namespaces".to_owned(),
            false => settings.namespaces.join(","),
        };
        let mut status = Status {
            pid: std::process::id(),
            is_shadow,
            partition,
            policy: loaded.name.clone(),
            warnings,
            ..Status::default()
        };
        let watch = Watch::begin(&loaded, &settings.rounds, &state, &mut status);
        Ok(Controller {
            settings,
            cluster,
            is_shadow,
            policy_text: policy.to_owned(),
            policy: loaded,
            fallback,
            watch,
            memory,
            lost: BTreeMap::new(),
            history,
            state,
            status,
            metrics: Metrics::silent(),
            view: View::default(),
            is_judged: false,
        })
    }

    /// How the last round went.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
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

    /// What the server shows of it: its figures.
    #[must_use]
    pub fn metrics_text(&self) -> Arc<Mutex<String>> {
        self.metrics.text()
    }

    /// Reads the policy again. It takes the place of the present one as a whole, or not at all, which the status then says. The
    /// settings are those of the start.
    ///
    /// # Errors
    /// A policy that does not fit; the present one stays.
    pub fn reload(&mut self) -> Result<(), Error> {
        let read = self.try_reload();
        if let Err(error) = &read {
            self.status.refuse_reload(error);
        }
        read
    }

    fn try_reload(&mut self) -> Result<(), Error> {
        let rounds = &self.settings.rounds;
        let capabilities = fleet::capabilities(rounds);
        let mut loaded = Loaded::of(&self.policy_text, capabilities)?;
        let fallback = loaded.fallback(rounds, capabilities)?;
        loaded.goes_on_from(&self.policy);
        self.status.warnings = loaded.warnings_with(&rounds.estimates);
        self.status.policy.clone_from(&loaded.name);
        (self.policy, self.fallback) = (loaded, fallback);
        self.is_judged = false;
        self.watch = Watch::anew(&self.policy, rounds, &self.state, &mut self.status);
        Ok(())
    }

    /// One round at Unix time `now_s`; notes for the operator, one a line.
    pub async fn round(&mut self, now_s: i64) -> Vec<String> {
        let mut notes = Vec::new();
        self.status.num_rounds += 1;
        self.status.at_s = now_s;
        self.status.last_error.clear();
        let mut news = Vec::new();
        if let Err(error) = self.try_round(now_s, &mut notes, &mut news).await {
            self.status.num_failed += 1;
            notes.push(error.to_string());
        }
        if let Some(last) = notes.last() {
            self.status.last_error.clone_from(last);
        }
        let written = [
            self.state.write_memory(&self.memory),
            self.history
                .as_ref()
                .map_or(Ok(()), |history| self.state.write_history(history)),
            self.state.note(&self.policy),
            self.state.write_status(&self.status),
        ];
        self.metrics.publish(&self.status);
        // News and no note of this round.
        notes.extend(news);
        notes.extend(
            written
                .into_iter()
                .filter_map(Result::err)
                .map(|error| error.to_string()),
        );
        notes
    }

    async fn try_round(
        &mut self,
        now_s: i64,
        notes: &mut Vec<String>,
        news: &mut Vec<String>,
    ) -> Result<(), Error> {
        let began = Instant::now();
        let lists = self.cluster.lists().await?;
        let mut observed = observe::observe_after(&self.lost, &lists, &self.settings, now_s);
        self.lost.clone_from(&observed.lost);
        drop(lists);
        self.memory.observe(&observed.snapshot);
        if let Some(history) = &mut self.history {
            // Nobody tells how a pod ended that is no longer in the list: the times at which it was seen have to do.
            let ends = BTreeMap::new();
            history.observe(&mut observed.snapshot, &self.memory, &ends, &self.settings.rounds);
        }
        let observed = Arc::new(observed);
        self.status.observe_s = began.elapsed().as_secs_f64();
        self.view.show(Arc::clone(&observed));
        self.count(&observed.snapshot);
        if !self.is_judged {
            let why = self.policy.aside_on(&observed.snapshot, &self.settings.rounds)?;
            self.status.warn_aside(why);
            self.is_judged = true;
        }
        notes.extend(observed.notes.iter().cloned());
        let policy = self.policy.name.clone();
        let mut hands = Hands::new(&self.cluster, &self.settings, &observed, &policy);
        if !self.is_shadow {
            let kept = hands.keep(now_s).await;
            notes.extend(kept.notes);
            for late in kept.late {
                notes.push(late.told(self.memory.refused(late.job, &late.unit, &late.reason, now_s)));
            }
        }
        let began = Instant::now();
        let limit = Duration::from_secs_f64(self.settings.rounds.deadline_s);
        let deciders = Deciders {
            policy: &mut self.policy,
            fallback: &mut self.fallback,
        };
        let mut plan = self.watch.plan(
            &observed.snapshot,
            &self.memory,
            deciders,
            &self.settings.rounds,
            self.is_shadow,
            &mut || began.elapsed() > limit,
        )?;
        self.status.decide_s = began.elapsed().as_secs_f64();
        let told = self
            .watch
            .count(&observed.snapshot, &plan.offered, &self.state, &mut self.status);
        news.extend(told);
        match self.status.decided(&plan) {
            // What goes on for as long as the cluster is what it is.
            Some(why) if plan.fallback.is_none() => news.push(why),
            why => notes.extend(why),
        }
        let began = Instant::now();
        let before = self.memory.clone();
        if !self.is_shadow {
            let stopped = hands.apply(&mut plan.decisions, now_s).await;
            self.remember(&plan, &stopped);
            self.policy.hear(&plan.decisions, now_s);
            remember_refusals(&plan.decisions, &mut self.memory, now_s);
        }
        self.status.apply_s = began.elapsed().as_secs_f64();
        self.write(&observed, plan, before, notes);
        Ok(())
    }

    /// What is remembered of what was sent.
    fn remember(&mut self, plan: &Plan, stopped: &[ExternalId]) {
        for planned in &plan.decisions {
            match (&plan.fleet, planned.decision.action) {
                (Some(fleet), Action::Preempt) if stopped.contains(&planned.job()) => {
                    self.memory
                        .preempted(&fleet.cluster, planned.job(), planned.decision.row);
                }
                (_, Action::Start) if is_sent(&planned.outcome) => {
                    let placement = &planned.decision.placement;
                    self.memory.started(planned.job(), &planned.nodes, placement);
                }
                _ => {}
            }
        }
    }

    /// Counts a round and writes it down.
    fn write(&mut self, observed: &Observed, plan: Plan, before: Memory, notes: &mut Vec<String>) {
        let carried_out = plan
            .decisions
            .iter()
            .filter(|planned| round::is_carried_out(planned));
        let num = carried_out.filter(|planned| is_sent(&planned.outcome)).count();
        self.status.carried_out(&plan, num as u64);
        let name = |planned: &Planned| {
            let job = observed.jobs.get(&planned.job());
            job.map_or_else(|| planned.job().to_string(), |job| job.name.clone())
        };
        let failed = plan.decisions.iter().filter(|planned| !is_sent(&planned.outcome));
        notes.extend(failed.map(|planned| format!("{}: {}", name(planned), planned.outcome)));
        if !plan.decisions.iter().any(round::is_carried_out) {
            return;
        }
        let record = RoundRecord {
            round: self.status.num_rounds,
            is_shadow: self.is_shadow,
            policy: self.policy.name.clone(),
            fallback: plan.fallback,
            aside: plan.aside,
            snapshot: observed.snapshot.clone(),
            memory: before,
            turn: plan.turn,
            decisions: plan.decisions,
            observe_s: self.status.observe_s,
            decide_s: self.status.decide_s,
            apply_s: self.status.apply_s,
        };
        if let Err(error) = self.state.append(&record) {
            self.status.num_lines_lost += 1;
            notes.push(error.to_string());
        }
    }

    fn count(&mut self, snapshot: &Snapshot) {
        let num = |is: &dyn Fn(&Phase) -> bool| snapshot.jobs.iter().filter(|job| is(&job.phase)).count();
        self.status.num_waiting =
            num(&|phase| matches!(phase, Phase::Waiting | Phase::Loose | Phase::Blocked { .. }));
        self.status.num_placed = num(&|phase| matches!(phase, Phase::Running | Phase::Released { .. }));
        self.status.num_foreign = num(&|phase| matches!(phase, Phase::Foreign { .. }));
    }
}

fn is_sent(outcome: &str) -> bool {
    outcome == "sent" || outcome.is_empty()
}

/// Lifts the gates of all pods that are held, in the order of arrival, and leaves their places to kube-scheduler: how many, and
/// what was refused. Needs no policy and no state.
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
    let (mut num, mut refused) = (0, Vec::new());
    for pod in &held {
        let reason = "handed back by an operator";
        match cluster.lift(pod, &Lift::Free { reason }).await {
            Ok(()) => num += 1,
            // Gone in the meantime.
            Err(error) if error.code() == Some(404) => {}
            Err(error) => refused.push(error.to_string()),
        }
    }
    Ok((num, refused))
}
