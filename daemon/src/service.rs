//! The loop: observe, decide, carry out, write down. What fails is told and tried again in the next round.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use pleach_scheduler::ExternalId;
use pleach_scheduler::decision::Action;

use crate::apply::slurm::{self as apply, Late};
use crate::command::Commands;
use crate::config::{EstimatesFrom, Settings};
use crate::error::Error;
use crate::fleet;
use crate::history::History;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::policy::Loaded;
use crate::record::{Planned, RoundRecord, remember_refusals};
use crate::round::{self, Deciders, Plan};
use crate::snapshot::{Phase, Snapshot};
use crate::source::{accounting, ended, site, slurm as source};
use crate::state::{self, State, Status};
use crate::watch::Watch;

/// Longest time for which the file of what was learned may be behind in when the jobs were last seen, s. *Ours*: a third of the
/// time between two looks up to which an end that nobody told is taken to lie between them.
const LOOKS_S: i64 = 20;

/// A daemon between two rounds.
#[derive(Debug)]
pub struct Service {
    settings: Settings,
    commands: Commands,
    partition: String,
    /// Nodes whose GPUs are given in shares.
    share_nodes: Vec<String>,
    /// Whether it is known where the policy leaves the whole cluster to another rule.
    is_judged: bool,
    is_shadow: bool,
    policy_text: String,
    policy: Loaded,
    fallback: Loaded,
    watch: Watch,
    memory: Memory,
    /// None where estimates are time limits.
    history: Option<History>,
    /// When that was last written, Unix time, s; none: what there is now has not been.
    history_written_s: Option<i64>,
    /// Whether accounting is still to be read.
    is_unread: bool,
    /// Jobs that ran in the last round.
    running: BTreeSet<ExternalId>,
    state: State,
    status: Status,
    metrics: Option<Metrics>,
}

impl Service {
    /// Reads the policy and takes the folder. Nothing is done to Slurm yet.
    ///
    /// # Errors
    /// A policy that does not fit, a folder that another daemon has, a Slurm without a default partition where none is named.
    pub fn new(settings: Settings, policy: &str, is_shadow: bool) -> Result<Service, Error> {
        settings.validate()?;
        let rounds = settings.rounds();
        let capabilities = fleet::capabilities(&rounds);
        let mut loaded = Loaded::of(policy, capabilities)?;
        let fallback = loaded.fallback(&rounds, capabilities)?;
        let state = State::take(&settings.state_dir, settings.log_bytes_max)?;
        let metrics = settings.metrics_port.map(Metrics::listen).transpose()?;
        let commands = settings.commands();
        let partition = site::partition(&commands, settings.partition.as_deref())?;
        let (memory, complaint) = state::read_memory(&settings.state_dir);
        let mut warnings = loaded.warnings_with(&settings.estimates);
        warnings.extend(complaint);
        warnings.extend(state.remind(&mut loaded));
        let (history, complaint) = match settings.estimates.from {
            EstimatesFrom::Limit => (None, None),
            EstimatesFrom::History => {
                let (history, complaint) = state::read_history(&settings.state_dir, &settings.estimates);
                (Some(history), complaint)
            }
        };
        warnings.extend(complaint);
        let mut status = Status {
            pid: std::process::id(),
            is_shadow,
            partition: partition.clone(),
            policy: loaded.name.clone(),
            warnings,
            ..Status::default()
        };
        let watch = Watch::begin(&loaded, &rounds, &state, &mut status);
        let share_nodes = settings.share_nodes();
        // A Slurm that does not answer yet is the first round's to tell of.
        let seen = source::observe(&commands, &partition, &share_nodes, 0).ok();
        if let Some((snapshot, _)) = &seen {
            status.warn_aside(loaded.aside_on(snapshot, &rounds)?);
        }
        Ok(Service {
            commands,
            partition,
            share_nodes,
            is_judged: seen.is_some(),
            is_shadow,
            policy_text: policy.to_owned(),
            policy: loaded,
            fallback,
            watch,
            memory,
            is_unread: settings.estimates.seed_days > 0 && history.as_ref().is_some_and(History::is_empty),
            history,
            history_written_s: None,
            running: BTreeSet::new(),
            state,
            status,
            metrics,
            settings,
        })
    }

    /// How the last round went.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.status
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
        let rounds = self.settings.rounds();
        let capabilities = fleet::capabilities(&rounds);
        let mut loaded = Loaded::of(&self.policy_text, capabilities)?;
        let fallback = loaded.fallback(&rounds, capabilities)?;
        self.status.warnings = loaded.warnings_with(&self.settings.estimates);
        loaded.goes_on_from(&self.policy);
        self.status.policy.clone_from(&loaded.name);
        (self.policy, self.fallback) = (loaded, fallback);
        self.is_judged = false;
        self.watch = Watch::anew(&self.policy, &rounds, &self.state, &mut self.status);
        Ok(())
    }

    /// One round at Unix time `now_s`; notes for the operator, one a line.
    pub fn round(&mut self, now_s: i64) -> Vec<String> {
        let mut notes = Vec::new();
        self.status.num_rounds += 1;
        self.status.at_s = now_s;
        self.status.last_error.clear();
        let mut news = Vec::new();
        if let Err(error) = self.try_round(now_s, &mut notes, &mut news) {
            self.status.num_failed += 1;
            notes.push(error.to_string());
        }
        if let Some(last) = notes.last() {
            self.status.last_error.clone_from(last);
        }
        // A heartbeat says that the daemon lives, not that Slurm answered. In shadow mode nothing is to be held.
        let beat = match self.is_shadow {
            true => Ok(()),
            false => self.state.write_heartbeat(now_s),
        };
        let written = [
            beat,
            self.state.write_memory(&self.memory),
            self.write_history(now_s),
            self.state.note(&self.policy),
            self.state.write_status(&self.status),
        ];
        // News and no error of this round.
        notes.extend(news);
        if let Some(metrics) = &mut self.metrics {
            metrics.publish(&self.status);
        }
        notes.extend(
            written
                .into_iter()
                .filter_map(Result::err)
                .map(|error| error.to_string()),
        );
        notes
    }

    /// Writes what was learned where it is other than what was written, and now and then when the jobs were last seen.
    fn write_history(&mut self, now_s: i64) -> Result<(), Error> {
        let is_recent = |written_s: i64| (written_s..written_s + LOOKS_S).contains(&now_s);
        let (Some(history), false) = (&self.history, self.history_written_s.is_some_and(is_recent)) else {
            return Ok(());
        };
        self.state.write_history(history)?;
        self.history_written_s = Some(now_s);
        Ok(())
    }

    fn try_round(
        &mut self,
        now_s: i64,
        notes: &mut Vec<String>,
        news: &mut Vec<String>,
    ) -> Result<(), Error> {
        let began = Instant::now();
        let (mut snapshot, parts) =
            source::observe(&self.commands, &self.partition, &self.share_nodes, now_s)?;
        self.memory.observe(&snapshot);
        if !self.is_judged {
            let why = self.policy.aside_on(&snapshot, &self.settings.rounds())?;
            self.status.warn_aside(why);
            self.is_judged = true;
        }
        notes.extend(self.learn(&mut snapshot));
        self.status.observe_s = began.elapsed().as_secs_f64();
        self.count(&snapshot);
        if !self.is_shadow {
            let kept = apply::keep(&self.commands, &snapshot, &parts, self.settings.release_limit_s);
            notes.extend(kept.refused);
            notes.extend(kept.late.iter().map(|late| self.late(late, now_s)));
        }
        let began = Instant::now();
        let limit = Duration::from_secs_f64(self.settings.deadline_s);
        let deciders = Deciders {
            policy: &mut self.policy,
            fallback: &mut self.fallback,
        };
        let mut plan = self.watch.plan(
            &snapshot,
            &self.memory,
            deciders,
            &self.settings.rounds(),
            self.is_shadow,
            &mut || began.elapsed() > limit,
        )?;
        self.status.decide_s = began.elapsed().as_secs_f64();
        let told = self
            .watch
            .count(&snapshot, &plan.offered, &self.state, &mut self.status);
        news.extend(told);
        match self.status.decided(&plan) {
            // What goes on for as long as the cluster is what it is.
            Some(why) if plan.fallback.is_none() => news.push(why),
            why => notes.extend(why),
        }
        let before = self.memory.clone();
        self.carry_out(&snapshot, &mut plan, now_s);
        let failed = plan.decisions.iter().filter(|planned| !is_sent(planned));
        notes.extend(failed.map(|planned| format!("job {}: {}", planned.job(), planned.outcome)));
        notes.extend(self.write_down(snapshot, before, plan));
        Ok(())
    }

    /// Carries a plan out, counts what was sent, and remembers it.
    fn carry_out(&mut self, snapshot: &Snapshot, plan: &mut Plan, now_s: i64) {
        let began = Instant::now();
        if !self.is_shadow {
            for job in apply::apply(&self.commands, snapshot, &mut plan.decisions) {
                let found = plan.decisions.iter().find(|planned| planned.job() == job);
                if let (Some(fleet), Some(planned)) = (&plan.fleet, found) {
                    self.memory.preempted(&fleet.cluster, job, planned.decision.row);
                }
            }
        }
        self.policy.hear(&plan.decisions, now_s);
        remember_refusals(&plan.decisions, &mut self.memory, now_s);
        let started =
            |planned: &&Planned| planned.decision.action == Action::Start && planned.outcome == "sent";
        for planned in plan.decisions.iter().filter(started) {
            let placement = &planned.decision.placement;
            self.memory.started(planned.job(), &planned.nodes, placement);
        }
        self.status.apply_s = began.elapsed().as_secs_f64();
        let is_done = |planned: &&Planned| round::is_carried_out(planned) && is_sent(planned);
        let num_done = plan.decisions.iter().filter(is_done).count();
        self.status.carried_out(plan, num_done as u64);
    }

    /// Writes a round down in which something was carried out; one in which somebody is no longer running too: the log then shows
    /// how long each job ran. What went wrong about it.
    fn write_down(&mut self, snapshot: Snapshot, memory: Memory, plan: Plan) -> Option<String> {
        let runs = snapshot.jobs.iter().filter(|job| job.phase == Phase::Running);
        let running: BTreeSet<ExternalId> = runs.map(|job| job.id).collect();
        let has_ended = !self.running.is_subset(&running);
        self.running = running;
        if !has_ended && !plan.decisions.iter().any(round::is_carried_out) {
            return None;
        }
        let record = RoundRecord {
            round: self.status.num_rounds,
            is_shadow: self.is_shadow,
            policy: self.policy.name.clone(),
            fallback: plan.fallback,
            aside: plan.aside,
            snapshot,
            memory,
            turn: plan.turn,
            decisions: plan.decisions,
            observe_s: self.status.observe_s,
            decide_s: self.status.decide_s,
            apply_s: self.status.apply_s,
        };
        let error = self.state.append(&record).err()?;
        self.status.num_lines_lost += 1;
        Some(error.to_string())
    }

    /// Learns from jobs that have left, and tells the others what is expected of them; what went wrong about it.
    fn learn(&mut self, snapshot: &mut Snapshot) -> Option<String> {
        let unread = self.seed(snapshot);
        let history = self.history.as_mut()?;
        let ends = match history.misses(snapshot) {
            true => ended::observe(&self.commands),
            false => Ok(BTreeMap::new()),
        };
        // Where Slurm does not say how they ended, the times at which they were seen have to do.
        let (ends, note) = match ends {
            Ok(ends) => (ends, None),
            Err(error) => (BTreeMap::new(), Some(error.to_string())),
        };
        if history.observe(snapshot, &self.memory, &ends, &self.settings.rounds()) {
            self.history_written_s = None;
        }
        unread.or(note)
    }

    /// Learns from Slurm's accounting, in the first round alone; why it did not.
    fn seed(&mut self, snapshot: &Snapshot) -> Option<String> {
        let history = self.history.as_mut().filter(|_| self.is_unread)?;
        self.is_unread = false;
        let rounds = self.settings.rounds();
        match accounting::observe(&self.commands, &self.partition, rounds.estimates.seed_days) {
            Ok(jobs) => {
                history.learn_past(jobs, snapshot, &rounds);
                self.history_written_s = None;
                None
            }
            Err(error) => {
                let warning = format!("estimates begin with nothing learned: {error}");
                self.status.warnings.push(warning.clone());
                Some(warning)
            }
        }
    }

    /// Remembers which node did not take a job; what an operator should know of it.
    fn late(&mut self, late: &Late, now_s: i64) -> String {
        let (job, reason) = (late.job, &late.reason);
        match &late.node {
            Some(node) => {
                let lasts_s = self.memory.refused(job, node, reason, now_s);
                format!(
                    "job {job} was let go to {node} and did not start: {reason}; not there again for {lasts_s} s"
                )
            }
            None => format!(
                "job {job} was let go and did not start: {reason}; not again for {} s",
                late.pause_s
            ),
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

/// Whether a decision was sent, or is a shadow's.
fn is_sent(planned: &Planned) -> bool {
    planned.outcome == "sent" || planned.outcome.is_empty()
}
