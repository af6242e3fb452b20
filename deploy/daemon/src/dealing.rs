//! A dealer as a policy of the daemon: it deals the GPUs of all jobs anew, stopping and moving those that run, when something has
//! happened and its last deal is long enough ago. In between it fills free GPUs.
//!
//! Tables are made anew in every round, so what a deal hangs on beside them is a [`Turn`], which the log keeps; what turns are
//! made from is remembered in a file. No job is stopped while one that was let go has not started: that one could not be stopped.

use std::collections::{BTreeMap, BTreeSet};

use pleach_dealing::{RoundDealer, Trust};
use pleach_scheduler::cluster::JobState;
use pleach_scheduler::decision::Action;
use pleach_scheduler::{ActionKind, Cluster, Decision, ExternalId, JobId, PolicyError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::fleet::Fleet;
use crate::snapshot::{Phase, Snapshot};

/// Time for which a job that could not be stopped is left alone, s. *Assumed*: budgets of disruption change in minutes, interactive
/// jobs never; the second costs one refusal each time.
const REFUSED_S: i64 = 600;

/// What a deal hangs on beside the tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Whether running jobs may be stopped; else free GPUs are filled.
    pub moves: bool,
    /// What estimates of run times have been worth.
    pub trust: Trust,
    /// Jobs that the batch system would not stop when it was asked to.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub stays: BTreeSet<ExternalId>,
}

/// What is remembered from round to round. Lost, it costs one deal that comes early, and the trust in estimates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DealMemory {
    /// When GPUs were last dealt, Unix time, s.
    dealt_s: Option<i64>,
    /// Hash of the jobs and nodes that took part then.
    dealt_with: String,
    trust: Trust,
    /// Jobs that the batch system would not stop (no batch script, not to be requeued, a disruption budget), and when, Unix time, s.
    stays: BTreeMap<ExternalId, i64>,
    /// Jobs that ran in the last round.
    running: BTreeMap<ExternalId, Progress>,
}

/// How far a running job had come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Progress {
    /// Believed progress, s of the reference run.
    executed_s: f64,
    /// What its run time was believed to be, s.
    estimate_s: f64,
}

/// A dealer and what it remembers.
#[derive(Clone, Debug)]
pub struct Dealing {
    dealer: RoundDealer,
    memory: DealMemory,
    /// The turn of the next round, where a log says what it was.
    told: Option<Turn>,
}

impl Dealing {
    /// A dealer that remembers nothing yet.
    #[must_use]
    pub fn new(dealer: RoundDealer) -> Dealing {
        Dealing {
            dealer,
            memory: DealMemory::default(),
            told: None,
        }
    }

    /// The dealer.
    #[must_use]
    pub fn dealer(&self) -> &RoundDealer {
        &self.dealer
    }

    /// What is remembered.
    #[must_use]
    pub fn memory(&self) -> &DealMemory {
        &self.memory
    }

    /// Goes on from what was remembered.
    pub fn remember(&mut self, memory: DealMemory) {
        self.memory = memory;
    }

    /// The batch system would not stop a job at Unix time `now_s`: it is left alone for ten minutes.
    pub fn refused(&mut self, job: ExternalId, now_s: i64) {
        self.memory.stays.insert(job, now_s);
    }

    /// The next round is decided on this turn, as a log has it.
    pub fn told(&mut self, turn: Turn) {
        self.told = Some(turn);
    }

    /// What the deal of a round hangs on: learns from the jobs that have ended since the last look, and takes its turn if it is due.
    pub(crate) fn take_turn(&mut self, snapshot: &Snapshot, fleet: &Fleet) -> Turn {
        let cluster = &fleet.cluster;
        let there: BTreeSet<ExternalId> = snapshot.jobs.iter().map(|job| job.id).collect();
        let memory = &mut self.memory;
        for (job, progress) in std::mem::take(&mut memory.running) {
            if !there.contains(&job) {
                memory.trust.learn(progress.executed_s, progress.estimate_s);
            }
        }
        let progress = |id: JobId| {
            let job = cluster.job(id);
            let progress = Progress {
                executed_s: job.executed_s_at(cluster.now()),
                estimate_s: job.request.estimate_s.value,
            };
            (job.external, progress)
        };
        let jobs = cluster.running().filter(|id| !cluster.job(*id).is_lease);
        memory.running = jobs.map(progress).collect();
        let trust = memory.trust;
        let now_s = snapshot.taken_s;
        let lasts = |refused_s: i64| (refused_s..refused_s + REFUSED_S).contains(&now_s);
        memory
            .stays
            .retain(|job, refused_s| there.contains(job) && lasts(*refused_s));
        if let Some(turn) = self.told.take() {
            return turn;
        }
        let rules = self.dealer.rules();
        let players = players(fleet);
        let changed = players != memory.dealt_with;
        // A clock that was set back must not keep all jobs where they are.
        let since_s = memory.dealt_s.map(|dealt_s| now_s - dealt_s).filter(|s| *s >= 0);
        let is_due = since_s.is_none_or(|since_s| {
            let since_s = since_s as f64;
            since_s >= rules.deal_min_s && (changed || since_s >= rules.deal_max_s)
        });
        // Nor in the second in which it started, which is as fine as the batch system's clock is.
        let is_starting = snapshot.jobs.iter().any(|job| match job.phase {
            Phase::Released { .. } => true,
            Phase::Running => job.start_s.is_none_or(|start_s| start_s >= now_s),
            _ => false,
        });
        let moves =
            is_due && !is_starting && rules.preempt && cluster.capabilities().can(ActionKind::Preempt);
        if moves {
            (memory.dealt_s, memory.dealt_with) = (Some(now_s), players);
        }
        Turn {
            moves,
            trust,
            stays: memory.stays.keys().copied().collect(),
        }
    }

    /// Deals; the decisions in their order, each with its reason.
    ///
    /// # Errors
    /// A policy that cannot be asked.
    pub(crate) fn deal(
        &self,
        cluster: &mut Cluster,
        turn: &Turn,
    ) -> Result<Vec<(Decision, String)>, PolicyError> {
        let before = cluster.clone();
        let scores = self.dealer.scores(&before, turn.trust, turn.moves)?;
        let mut stays: Vec<JobId> = turn.stays.iter().filter_map(|job| cluster.find(*job)).collect();
        stays.extend(cluster.running().filter(|id| cluster.job(*id).is_lease));
        self.dealer.deal(cluster, turn.trust, turn.moves, &stays)?;
        let mut decisions = Vec::new();
        cluster.take_decisions(&mut decisions);
        let name = self.dealer.name();
        let told = |decision: &Decision| {
            let job = before.job(decision.row);
            let on = match decision.action {
                Action::Start => decision.placement.first(),
                _ => job.placement.first(),
            };
            let Some(kind) = on.map(|slice| before.nodes()[slice.node.index()].gpu_type) else {
                return String::new();
            };
            let words = match decision.action {
                Action::Preempt => "stopped: its GPUs go to jobs with better scores, or it moves",
                _ if turn.moves => "dealt its GPUs",
                _ => "given free GPUs",
            };
            let score = scores.told(&before, decision.row, kind);
            format!("{words} by {name}, {score}\n")
        };
        let with_words = decisions.into_iter().map(|decision| {
            let why = told(&decision);
            (decision, why)
        });
        Ok(with_words.collect())
    }

    /// Where a waiting job stands, in words, if it is dealt now.
    ///
    /// # Errors
    /// A policy that cannot be asked.
    pub fn standing(&self, fleet: &Fleet, id: JobId) -> Result<String, PolicyError> {
        let cluster = &fleet.cluster;
        let scores = self.dealer.scores(cluster, self.memory.trust, true)?;
        let best = |id: JobId| {
            let kinds = cluster.types_in(cluster.job(id).types);
            let scored = kinds.map(|kind| (scores.of(cluster, id, kind), kind));
            scored.max_by(|a, b| a.0.total_cmp(&b.0))
        };
        let Some((score, kind)) = best(id) else {
            return Ok("No GPU type is one on which it can run.".into());
        };
        let others = cluster.active().into_iter().filter(|other| *other != id);
        let before: Vec<JobId> = others
            .filter(|other| {
                let allowed = cluster.types_in(cluster.job(*other).types).any(|of| of == kind);
                allowed && scores.of(cluster, *other, kind) > score
            })
            .collect();
        let held = before
            .iter()
            .map(|other| u64::from(cluster.job(*other).request.num_gpus));
        let runs = |other: &&JobId| cluster.job(**other).state == JobState::Running;
        Ok(format!(
            "By {} {} jobs come before it on {} ({} of them run); they ask for {} of its {} GPUs, it asks for {}.\n{}\n",
            self.dealer.name(),
            before.len(),
            fleet.gpu_types[kind.index()],
            before.iter().filter(runs).count(),
            held.sum::<u64>(),
            cluster.num_gpus_of(kind),
            cluster.job(id).request.num_gpus,
            scores.told(cluster, id, kind)
        ))
    }
}

/// Hash of the jobs that take part and of the nodes with their states: while it stays, nothing has happened.
fn players(fleet: &Fleet) -> String {
    let (cluster, mut hash) = (&fleet.cluster, Sha256::new());
    let later = fleet.later.values().flatten();
    let mut jobs: Vec<String> = cluster
        .active()
        .into_iter()
        .map(|id| cluster.job(id).external.to_string())
        .chain(later.map(|record| record.job.to_string()))
        .collect();
    jobs.sort_unstable();
    for job in jobs {
        hash.update(job.as_bytes());
        hash.update([0]);
    }
    for node in cluster.nodes() {
        hash.update(format!("{:?} {} {};", node.state, node.gpu_type.index(), node.num_gpus).as_bytes());
    }
    let bytes = hash.finalize();
    bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RoundSettings;
    use crate::fleet;
    use crate::memory::Memory;
    use crate::policy::Loaded;
    use crate::round::{self, Deciders};
    use crate::snapshot::{JobSeen, NodeSeen, Site, Terms, VERSION};
    use pleach_scheduler::cluster::NodeState;

    /// Two nodes with four GPUs; jobs of four GPUs with a limit of 1,000 s, that run from the first second on, or wait.
    fn seen(taken_s: i64, jobs: &[(u64, Phase)]) -> Snapshot {
        let node = |name: &str| NodeSeen {
            name: name.into(),
            gpu_type: "a100".into(),
            num_gpus: 4,
            num_gpus_used: 0,
            num_cpus_free: 100,
            host: None,
            shared: None,
            state: NodeState::Up,
        };
        let mut nodes = vec![node("g1"), node("g2")];
        let mut placed = 0;
        let mut job = |(number, phase): &(u64, Phase)| {
            let is_placed = matches!(phase, Phase::Running | Phase::Released { .. });
            let on = is_placed.then(|| nodes[placed].name.clone());
            if is_placed {
                nodes[placed].num_gpus_used = 4 * u32::from(*phase == Phase::Running);
                placed += 1;
            }
            JobSeen {
                id: ExternalId::number(*number),
                phase: phase.clone(),
                account: String::new(),
                user: String::new(),
                submit_s: 0,
                start_s: (*phase == Phase::Running).then_some(1),
                limit_s: Some(1000),
                num_nodes: 1,
                gpus_per_node: 4,
                is_packed: false,
                share: None,
                gpu_type: None,
                gpu_types: Vec::new(),
                num_cpus: 1,
                nodes: on.into_iter().collect(),
                num_restarts: 0,
                num_tries: 0,
                not_before_s: 0,
                predicted_s: None,
                terms: Terms::default(),
            }
        };
        let jobs = jobs.iter().map(&mut job).collect();
        Snapshot {
            version: VERSION,
            taken_s,
            site: Site::default(),
            nodes,
            jobs,
        }
    }

    fn turn(dealing: &mut Dealing, snapshot: &Snapshot) -> Turn {
        let settings = RoundSettings {
            preemption: true,
            ..RoundSettings::default()
        };
        let mut memory = Memory::default();
        memory.observe(snapshot);
        let fleet = fleet::build(snapshot, &memory, &settings, false).unwrap();
        dealing.take_turn(snapshot, &fleet.unwrap())
    }

    fn dealing() -> Dealing {
        // Deals are at least 60 s and at most 1,200 s apart.
        Dealing::new(RoundDealer::by_name("las-deal").unwrap())
    }

    #[test]
    fn it_deals_when_something_has_happened_and_the_last_deal_is_old_enough() {
        use Phase::{Running, Waiting};
        let mut dealing = dealing();
        let two = [(1, Running), (2, Running)];
        let three = [(1, Running), (2, Running), (3, Waiting)];
        let mut moves = |taken_s: i64, jobs: &[(u64, Phase)]| turn(&mut dealing, &seen(taken_s, jobs)).moves;
        assert!(moves(1000, &two), "the first time");
        assert!(!moves(1070, &two), "nothing has happened");
        assert!(moves(1080, &three), "somebody came");
        assert!(!moves(1139, &two), "somebody left, 59 s after");
        assert!(moves(1140, &two));
        assert!(
            !moves(2339, &two) && moves(2340, &two),
            "nothing has happened for 1,200 s"
        );
        assert!(moves(500, &two), "the clock was set back");
        let starting = [(1, Running), (2, Phase::Released { since_s: 600 })];
        assert!(!moves(700, &starting), "who was let go cannot be stopped");
        let other = [(1, Running), (3, Running)];
        assert!(moves(701, &other));
    }

    #[test]
    fn who_cannot_be_stopped_stays_until_it_is_gone() {
        use Phase::{Running, Waiting};
        let mut dealing = dealing();
        let settings = RoundSettings {
            preemption: true,
            ..RoundSettings::default()
        };
        // Two gangs that have run for 2,000 s, and one that came now: with least service it takes the GPUs of one of them.
        let snapshot = seen(2000, &[(1, Running), (2, Running), (3, Waiting)]);
        let stopped = |dealing: &mut Dealing| -> Vec<String> {
            let fleet = fleet::build(&snapshot, &Memory::default(), &settings, false).unwrap();
            let mut fleet = fleet.unwrap();
            let mut turn = dealing.take_turn(&snapshot, &fleet);
            turn.moves = true;
            let decided = dealing.deal(&mut fleet.cluster, &turn).unwrap();
            let stops = decided
                .iter()
                .filter(|(decision, _)| decision.action == Action::Preempt);
            stops.map(|(decision, _)| decision.job.to_string()).collect()
        };
        let first = stopped(&mut dealing);
        assert_eq!(first.len(), 1);
        dealing.refused(first[0].parse().unwrap(), 2000);
        let second = stopped(&mut dealing);
        assert!(second.len() == 1 && second != first, "{second:?}");
        dealing.refused(second[0].parse().unwrap(), 2000);
        assert_eq!(stopped(&mut dealing), [""; 0]);
        assert_eq!(turn(&mut dealing, &seen(2100, &[(1, Running)])).stays.len(), 1);
        assert_eq!(turn(&mut dealing, &seen(2600, &[(1, Running)])).stays.len(), 0);
    }

    /// What a round on these jobs stops and starts.
    fn decided(snapshot: &Snapshot) -> Vec<String> {
        let settings = RoundSettings {
            preemption: true,
            ..RoundSettings::default()
        };
        let loaded = |name| Loaded::of(name, fleet::capabilities(&settings)).unwrap();
        let (mut policy, mut fallback) = (loaded("las-deal"), loaded("easy"));
        let mut deciders = Deciders {
            policy: &mut policy,
            fallback: &mut fallback,
        };
        let mut memory = Memory::default();
        memory.observe(snapshot);
        let plan = round::plan(snapshot, &memory, &mut deciders, &settings, false, &mut || false).unwrap();
        let words = plan.decisions.iter().map(|planned| {
            let decision = &planned.decision;
            format!("{:?} {}", decision.action, decision.job)
        });
        words.collect()
    }

    #[test]
    fn a_higher_class_is_dealt_to_first_and_none_of_it_is_stopped_for_a_lower_one() {
        use Phase::{Running, Waiting};
        // Job 2 came with job 3, and before it in the list; one node is free.
        let mut snapshot = seen(2000, &[(1, Running), (2, Waiting), (3, Waiting)]);
        snapshot.jobs[0].start_s = Some(1990);
        assert_eq!(decided(&snapshot), ["Start 2"]);
        snapshot.jobs[2].terms.priority = 5;
        assert_eq!(decided(&snapshot), ["Start 3"]);
        // Two that have run long, and one that has had nothing: it takes the GPUs of one of its class, and of none above it.
        let mut snapshot = seen(2000, &[(1, Running), (2, Running), (3, Waiting)]);
        let stops = |snapshot: &Snapshot| {
            let mut all = decided(snapshot);
            all.retain(|words| words.starts_with("Preempt"));
            all
        };
        assert_eq!(stops(&snapshot).len(), 1);
        snapshot.jobs[0].terms.priority = 5;
        assert_eq!(stops(&snapshot), ["Preempt 2"]);
        snapshot.jobs[1].terms.priority = 5;
        assert_eq!(stops(&snapshot), [""; 0]);
        // Nor does a lower class get in the same round what those leave that are stopped for a higher one.
        let mut snapshot = seen(2000, &[(1, Running), (2, Running), (3, Waiting), (4, Waiting)]);
        snapshot.jobs[2].terms.priority = 5;
        let all = decided(&snapshot);
        assert!(all.iter().all(|words| words != "Start 4"), "{all:?}");
    }

    #[test]
    fn it_trusts_estimates_as_far_as_those_of_the_jobs_that_left() {
        use Phase::Running;
        let mut dealing = dealing();
        let first = turn(&mut dealing, &seen(501, &[(1, Running), (2, Running)]));
        assert_eq!(first.trust, Trust::default());
        // Job 1 had run for 500 of 1,000 s when it was last seen.
        let second = turn(&mut dealing, &seen(510, &[(2, Running)]));
        assert_eq!(second.trust.num_ended, 1);
        assert!(
            (second.trust.error - std::f64::consts::LN_2).abs() < 1e-9,
            "{}",
            second.trust.error
        );
        let text = serde_json::to_string(dealing.memory()).unwrap();
        let mut other = super::tests::dealing();
        other.remember(serde_json::from_str(&text).unwrap());
        assert_eq!(other.memory(), dealing.memory());
        // With a turn from a log, it takes that turn.
        other.told(first.clone());
        assert_eq!(turn(&mut other, &seen(520, &[])), first);
        assert_eq!(turn(&mut other, &seen(521, &[])).trust.num_ended, 2);
    }
}
