//! The loop, whatever the batch system: observe, decide, carry out, write down. What fails is reported and tried again in the
//! next round.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use pleach_scheduler::ExternalId;
use pleach_scheduler::decision::Action;

use crate::config::RoundSettings;
use crate::deciding::Deciding;
use crate::drive::Drive;
use crate::error::Error;
use crate::execution::{self, carry_out};
use crate::forecasts::{Forecasts, Served};
use crate::learning::{Learning, ends};
use crate::leases::LeaseStatus;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::order::Order;
use crate::policy::Loaded;
use crate::promised;
use crate::pulse::Pulse;
use crate::record::{Planned, RoundRecord, remember_refusals};
use crate::round::{self, Deciders, Plan};
use crate::snapshot::{Phase, Snapshot};
use crate::state::{self, State, Status};
use crate::status::OrderStatus;
use crate::system::{BatchSystem, Hands, Kept, Late, Look};
use crate::watch::Watch;

/// Time after which a batch system is decided on anew in which nothing has changed, s: policies read how long jobs wait. *Ours*.
const REST_S: i64 = 20;

/// A driver between two rounds.
#[derive(Debug)]
pub struct Driver<S> {
    system: S,
    settings: RoundSettings,
    is_shadow: bool,
    policy_text: String,
    policy: Loaded,
    fallback: Loaded,
    /// Whether it is known where the policy leaves the whole cluster to another rule.
    is_judged: bool,
    watch: Watch,
    memory: Arc<Memory>,
    /// The memory that was last written, and when, Unix time, s.
    written: Option<(i64, Arc<Memory>)>,
    learning: Learning,
    /// Jobs of the last round, and whether they ran.
    stand: BTreeMap<ExternalId, bool>,
    /// Unix time, s, of the last round that looked, if it carried nothing out and all went well, and its notes for the operator.
    rested: Option<(i64, Vec<String>)>,
    pulse: Pulse,
    /// The order of the last round, under [`Drive::Order`].
    last_order: Vec<ExternalId>,
    forecasts: Forecasts,
    state: State,
    status: Status,
    metrics: Metrics,
}

impl<S: BatchSystem> Driver<S> {
    /// Reads the policy and what is remembered in the folder. Nothing is asked of the batch system yet. `port` of the loopback
    /// address serves the metrics; none: no port is opened, and the caller may serve [`Driver::metrics_text`].
    ///
    /// # Errors
    /// Settings out of their ranges, a policy that does not fit, a port that cannot be had.
    pub fn new(
        system: S,
        settings: RoundSettings,
        state: State,
        port: Option<u16>,
        (policy, is_shadow): (&str, bool),
    ) -> Result<Driver<S>, Error> {
        settings.validate()?;
        let mut loaded = Loaded::driving(policy, &settings)?;
        let fallback = loaded.fallback(&settings)?;
        let promised = promised::read(&settings)?;
        let mut metrics = Metrics::new(S::WORDS.left_alone);
        port.map_or(Ok(()), |port| metrics.listen(port))?;
        let (memory, complaint) = state::read_memory(state.folder());
        let mut warnings = loaded.warnings_with(&settings.estimates);
        warnings.extend(system.warnings());
        warnings.extend(complaint);
        warnings.extend(state.remind(&mut loaded));
        let (learning, complaint) = Learning::begin(state.folder(), &settings.estimates);
        warnings.extend(complaint);
        let mut status = Status {
            pid: std::process::id(),
            is_shadow,
            order: OrderStatus::begin(settings.drive),
            partition: system.place(),
            policy: loaded.name.clone(),
            warnings,
            ..Status::default()
        };
        let pulse = system.pulse();
        let watch = Watch::begin(&loaded, promised, &settings, &state, &mut status);
        Ok(Driver {
            system,
            settings,
            is_shadow,
            policy_text: policy.to_owned(),
            policy: loaded,
            fallback,
            is_judged: false,
            watch,
            memory: Arc::new(memory),
            written: None,
            learning,
            stand: BTreeMap::new(),
            rested: None,
            pulse,
            last_order: Vec::new(),
            forecasts: Forecasts::of(state.folder(), metrics.served()),
            state,
            status,
            metrics,
        })
    }

    /// How the last round went.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// What is driven.
    #[must_use]
    pub fn system(&self) -> &S {
        &self.system
    }

    /// Whether nothing is carried out.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    /// The life signs of the loop that drives.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// How much of the policy is carried out.
    #[must_use]
    pub fn drive(&self) -> Drive {
        self.settings.drive
    }

    /// Figures of the last round, in the OpenMetrics text format.
    #[must_use]
    pub fn metrics_text(&self) -> Arc<Mutex<String>> {
        self.metrics.text()
    }

    /// Forecasts of starts as the driver serves them.
    #[must_use]
    pub fn served(&self) -> Served {
        self.metrics.served()
    }

    /// Looks before the first round whether the policy leaves the whole cluster to another rule, which the status then warns of.
    /// A batch system that does not answer yet is the first round's to tell of.
    ///
    /// # Errors
    /// A policy that fails on what is seen.
    pub async fn look_ahead(&mut self, now_s: i64) -> Result<(), Error> {
        match self.system.observe(now_s).await {
            Ok(look) => self.judge(look.snapshot()),
            Err(_) => Ok(()),
        }
    }

    fn judge(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        if !self.is_judged {
            let why = self.policy.aside_on(snapshot, &self.settings)?;
            self.status.warn_aside(why);
            self.is_judged = true;
        }
        Ok(())
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
        let mut loaded = Loaded::driving(&self.policy_text, &self.settings)?;
        let fallback = loaded.fallback(&self.settings)?;
        let promised = promised::read(&self.settings)?;
        self.status.warnings = loaded.warnings_with(&self.settings.estimates);
        self.status.warnings.extend(self.system.warnings());
        loaded.goes_on_from(&self.policy);
        self.status.policy.clone_from(&loaded.name);
        (self.policy, self.fallback) = (loaded, fallback);
        self.is_judged = false;
        self.watch = Watch::anew(
            &self.policy,
            promised,
            &self.settings,
            &self.state,
            &mut self.status,
        );
        Ok(())
    }

    /// One round at Unix time `now_s`; notes for the operator, one a line.
    pub async fn round(&mut self, now_s: i64) -> Vec<String> {
        let mut notes = Vec::new();
        self.pulse.beat();
        self.status.num_rounds += 1;
        self.status.at_s = now_s;
        self.status.last_error.clear();
        notes.extend(self.forecasts.look(now_s));
        let mut news = Vec::new();
        if let Err(error) = self.try_round(now_s, &mut notes, &mut news).await {
            self.status.num_failed += 1;
            notes.push(error.to_string());
        }
        if let Some(last) = notes.last() {
            self.status.last_error.clone_from(last);
        }
        let written = [
            self.write_memory(now_s),
            self.learning.write(&self.state, now_s),
            self.state.note(&self.policy),
            self.state.write_status(&self.status),
        ];
        // News and no error of this round.
        notes.extend(news);
        self.metrics.publish(&self.status);
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
    ) -> Result<(), S::Error> {
        if let Some((since_s, told)) = self.rested.take()
            && (since_s..since_s + REST_S).contains(&now_s)
            && self.system.rests(now_s).await?
        {
            notes.extend(told.iter().cloned());
            self.rested = Some((since_s, told));
            return Ok(());
        }
        let look = self.observe(now_s, notes, news).await?;
        self.pulse.beat();
        self.judge(look.snapshot())?;
        let name = self.policy.name.clone();
        if !self.is_shadow {
            let news = self.forecasts.news(look.snapshot());
            let taken = self.system.foretell(&look, &news);
            notes.extend(taken.as_ref().err().cloned());
            // What is refused is not said again until there is something else to say.
            if !matches!(taken, Ok(false)) {
                self.forecasts.remember(&news, now_s);
            }
        }
        let (system, is_live) = (&self.system, !self.is_shadow);
        let mut hands = system.hands(&look, &name);
        if is_live {
            let kept = hands.keep(now_s).await;
            notes.extend(take_in(kept, &*look, &mut self.memory, now_s));
        }
        self.pulse.beat();
        let snapshot = look.snapshot();
        let deciding = Deciding {
            pulse: &self.pulse,
            settings: &self.settings,
            is_shadow: self.is_shadow,
            watch: &mut self.watch,
            state: &self.state,
            status: &mut self.status,
        };
        let deciders = Deciders {
            policy: &mut self.policy,
            fallback: &mut self.fallback,
        };
        let mut plan = deciding.decide(snapshot, &self.memory, deciders, notes, news)?;
        let before = Arc::clone(&self.memory);
        let began = Instant::now();
        let stopped = match (&mut plan.order, is_live) {
            (_, false) => Vec::new(),
            (Some(order), true) => {
                notes.extend(hands.rank(order, &mut plan.decisions).await);
                execution::stopped(&plan.decisions)
            }
            (None, true) => carry_out(&mut hands, (snapshot, now_s), &mut plan.decisions, &self.pulse).await,
        };
        drop(hands);
        self.remember((&plan, snapshot), &stopped, now_s);
        self.status.truth.read(&*look, &plan);
        self.status.apply_s = began.elapsed().as_secs_f64();
        let is_done = |planned: &&Planned| round::is_carried_out(planned) && execution::is_sent(planned);
        match &plan.order {
            Some(order) => {
                self.status.told_order(order);
                self.status.carried_out(&plan, stopped.len() as u64);
            }
            None => {
                let num_done = plan.of_policy().iter().filter(is_done).count();
                self.status.carried_out(&plan, num_done as u64);
            }
        }
        notes.extend(execution::unsent(&*look, &plan.decisions));
        // Reservations are made anew in each round and change nothing.
        let has_acted = plan.order.is_some() || plan.decisions.iter().any(round::is_carried_out);
        let is_well = || notes.iter().all(|note| look.notes().contains(note));
        self.rested = (!has_acted && is_well()).then(|| (now_s, notes.clone()));
        notes.extend(self.write_down(look, before, plan));
        Ok(())
    }

    /// Looks, remembers, learns, holds waits against what was promised.
    async fn observe(
        &mut self,
        now_s: i64,
        notes: &mut Vec<String>,
        news: &mut Vec<String>,
    ) -> Result<Arc<S::Look>, S::Error> {
        let began = Instant::now();
        let mut look = self.system.observe(now_s).await?;
        Arc::make_mut(&mut self.memory).observe(look.snapshot());
        let (learning, settings) = (&mut self.learning, &self.settings);
        let unread = learning.seed(&self.system, &look, settings).await;
        let snapshot = look.snapshot_mut();
        let misses = learning.misses(snapshot) || !self.is_shadow && self.watch.misses(snapshot);
        let (ends, note) = ends(&self.system, misses).await;
        learning.learn(snapshot, &self.memory, &ends, settings);
        // What jobs wait beside a shadow is not the policy's doing.
        if !self.is_shadow {
            let seen = (&*snapshot, &*self.memory);
            let said = self.watch.observe(seen, &ends, &self.state, &mut self.status);
            said.iter().for_each(|text| self.system.announce(text, now_s));
            news.extend(said);
        }
        self.status.warnings.extend(unread.clone());
        notes.extend(unread.or(note));
        notes.extend(look.notes().iter().cloned());
        self.status.standing = look.standing().to_owned();
        self.status.num_unheld = look.num_unheld();
        self.status.rival = look.rival().map(str::to_owned);
        notes.extend(look.rival().map(str::to_owned));
        let look = Arc::new(look);
        self.system.show(&look);
        self.status.observe_s = began.elapsed().as_secs_f64();
        self.count(look.snapshot());
        Ok(look)
    }

    fn count(&mut self, snapshot: &Snapshot) {
        let jobs = || snapshot.jobs.iter().filter(|job| !job.terms.is_lease);
        let num = |is: &dyn Fn(&Phase) -> bool| jobs().filter(|job| is(&job.phase)).count();
        self.status.num_waiting =
            num(&|phase| matches!(phase, Phase::Waiting | Phase::Loose | Phase::Blocked { .. }));
        self.status.num_placed = num(&|phase| matches!(phase, Phase::Running | Phase::Released { .. }));
        self.status.num_foreign = num(&|phase| matches!(phase, Phase::Foreign { .. }));
        self.status.leases = LeaseStatus::of(snapshot, self.status.leases.as_ref());
    }

    /// Writes the memory where it is other than what was written, and now and then when jobs were last seen.
    fn write_memory(&mut self, now_s: i64) -> Result<(), Error> {
        let is_known = |(written_s, written): &(i64, Arc<Memory>)| {
            state::is_recent(*written_s, now_s) && self.memory.is_same_but_seen(written)
        };
        if self.written.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        self.written = None;
        self.state.write_memory(&self.memory)?;
        self.written = Some((now_s, Arc::clone(&self.memory)));
        Ok(())
    }

    /// What is remembered of what was sent.
    fn remember(&mut self, (plan, snapshot): (&Plan, &Snapshot), stopped: &[ExternalId], now_s: i64) {
        for job in stopped {
            self.learning.stopped(*job);
            let found = plan.decisions.iter().find(|planned| planned.job() == *job);
            if let (Some(fleet), Some(planned)) = (&plan.fleet, found) {
                let (memory, row) = (Arc::make_mut(&mut self.memory), planned.decision.row);
                if plan.order.is_none() {
                    memory.preempted(&fleet.cluster, *job, row);
                    continue;
                }
                // Beside an order the tables are as they were seen.
                let mut tables = fleet.cluster.clone();
                tables.preempt(row);
                memory.preempted(&tables, *job, row);
            }
        }
        if let Some(status) = &mut self.status.leases {
            let of_leases = &plan.decisions[..plan.num_for_leases];
            if !of_leases.is_empty() {
                status.hear(of_leases, Arc::make_mut(&mut self.memory), now_s);
            }
        }
        self.policy.hear(&plan.decisions, now_s);
        if !plan.decisions.is_empty() {
            remember_refusals(&plan.decisions, snapshot, Arc::make_mut(&mut self.memory), now_s);
        }
        let started =
            |planned: &&Planned| planned.decision.action == Action::Start && planned.outcome == "sent";
        for planned in plan.decisions.iter().filter(started) {
            let placement = &planned.decision.placement;
            Arc::make_mut(&mut self.memory).started(planned.job(), &planned.nodes, placement);
        }
    }

    /// Writes a round down in which something was carried out; one in which a job came, began or left too: the log then shows how long
    /// each job waited and ran. What went wrong about it.
    fn write_down(&mut self, look: Arc<S::Look>, memory: Arc<Memory>, plan: Plan) -> Option<String> {
        let jobs = look.snapshot().jobs.iter();
        let stand = jobs.map(|job| (job.id, job.phase == Phase::Running)).collect();
        let has_changed = std::mem::replace(&mut self.stand, stand) != self.stand;
        let is_news = match &plan.order {
            // What would start now is decided again in each round until it starts.
            Some(order) if !self.is_shadow => {
                !order.written.is_empty() || !execution::stopped(&plan.decisions).is_empty()
            }
            Some(order) => self.last_order != order.jobs,
            None => plan.decisions.iter().any(round::is_carried_out),
        };
        if let Some(order) = &plan.order {
            self.last_order.clone_from(&order.jobs);
        }
        if !has_changed && !is_news {
            return None;
        }
        let record = RoundRecord {
            round: self.status.num_rounds,
            is_shadow: self.is_shadow,
            policy: self.policy.name.clone(),
            fallback: plan.fallback,
            aside: plan.aside,
            snapshot: Arc::try_unwrap(look)
                .map_or_else(|shown| shown.snapshot().clone(), Look::into_snapshot),
            memory: Arc::unwrap_or_clone(memory),
            turn: plan.turn,
            order: plan.order.map(Order::for_log),
            decisions: plan.decisions,
            observe_s: self.status.observe_s,
            decide_s: self.status.decide_s,
            apply_s: self.status.apply_s,
        };
        let error = self.state.append(record).err()?;
        self.status.num_lines_lost += 1;
        Some(error.to_string())
    }
}

/// Remembers which nodes did not take jobs; what an operator should know of what was done before the decisions.
fn take_in(kept: Kept, look: &impl Look, memory: &mut Arc<Memory>, now_s: i64) -> Vec<String> {
    let mut notes = kept.notes;
    for Late {
        job,
        node,
        reason,
        pause_s,
    } in kept.late
    {
        let name = look.name(job);
        notes.push(match node {
            Some(node) => {
                let lasts_s =
                    Arc::make_mut(memory).refused(look.snapshot().refused_as(job), &node, &reason, now_s);
                format!(
                    "{name} was let go to {node} and did not start: {reason}; not there again for {lasts_s} s"
                )
            }
            None => {
                format!("{name} was let go and did not start: {reason}; not again for {pause_s} s")
            }
        });
    }
    notes
}
