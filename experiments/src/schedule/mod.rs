//! Schedules written down and checked: the record of a comparison, and what a record is held to.

mod replay;
mod settings;

use std::collections::BTreeMap;

use pleach_env::SimConfig;
use pleach_env::availability::AvailabilityConfig;
use pleach_env::schedule::{Record, Run, Segment};
use pleach_env::workload::Workload;
use pleach_scheduler::ActionKind;
use pleach_scheduler::ActionSet;
use pleach_scheduler::cluster::{Capabilities, NodeState, Sharing};
use pleach_scheduler::physics::overheads::Overheads;
use pleach_verify::{Closed, Conditions, Facts, Failures, Fault, Rule, Starts, Verdict, verify};
use serde::Serialize;

use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::evaluate::table::Table;

pub use replay::{REPLAY, replay};
pub use settings::RecordSettings;

/// The run of a record from the segments of a simulation.
#[must_use]
pub fn run_of(policy: &str, workload: &Workload, seed: u64, segments: Vec<Segment>) -> Run {
    let num_nodes: u32 = workload.cluster.node_groups.iter().map(|group| group.count).sum();
    Run {
        policy: policy.to_string(),
        workload: workload.name.clone(),
        seed,
        jobs: workload.jobs.iter().map(|job| job.id.clone()).collect(),
        nodes: (0..num_nodes).map(|node| node.to_string()).collect(),
        segments,
    }
}

/// What the schedules of a workload are held to: read by the validator itself from the workload as a file has it.
///
/// # Errors
/// A workload that cannot be written down.
pub fn facts_of(workload: &Workload) -> Result<Facts, Error> {
    Ok(Facts::of_text(
        &workload.name,
        workload.jobs_csv(),
        &workload.sidecar()?,
    )?)
}

/// Under which rules a simulated cluster is driven.
#[must_use]
pub fn conditions_of(sim: &SimConfig) -> Conditions {
    let can = sim.capabilities.actions();
    Conditions {
        sharing: sim.capabilities.sharing != Sharing::Off,
        mixed_types: can.contains(ActionKind::MixTypes),
        stopping: !can.intersection(ActionSet::STOPPING).is_empty(),
        closed: closed(&sim.capacity),
        is_observed: false,
        failures: failures(sim),
        starts: starts(&sim.capabilities),
        starts_deviation: sim.beliefs.map_or(0.0, |errors| errors.costs),
        restarts_are_work: sim.capabilities.restart_cost_is_work,
    }
}

/// What fails under these settings, and what is lost by it.
fn failures(sim: &SimConfig) -> Failures {
    let (capabilities, capacity) = (&sim.capabilities, &sim.capacity);
    let writes = capabilities.checkpoint_interval_s.is_some() || capabilities.class_checkpoints;
    let is_taken = |state| state == NodeState::Down;
    Failures {
        jobs: sim.outcomes.is_some(),
        incidents: capacity.site.is_some(),
        nodes: capacity.node_mtbf_s.is_some()
            || capacity.site.is_some()
            || capacity.changes.iter().any(|change| is_taken(change.state)),
        lose: writes,
        stops_lose: writes && capabilities.stop_grace_s.is_some(),
    }
}

/// What starts cost, in the validator's words.
fn starts(capabilities: &Capabilities) -> Starts {
    match capabilities.overheads {
        None => Starts::Each {
            start_s: capabilities.start_cost_s,
            restart_s: capabilities.restart_cost_s,
        },
        Some(Overheads::Fixed(fixed)) => Starts::Each {
            start_s: fixed.start_s,
            restart_s: fixed.checkpoint_s + fixed.restore_s,
        },
        Some(Overheads::ByStateSize(by)) => Starts::ByStateSize {
            gb_per_s: by.storage_gb_per_s,
            init_s: by.init_s,
            stall: by.stall,
        },
        Some(Overheads::TaccEmpirical) => Starts::Drawn,
        Some(Overheads::SiaModel) => Starts::BySiaModel,
        Some(Overheads::ByClass) => Starts::ByClass,
    }
}

/// When nodes take no jobs by plan. Unplanned failures are in the record alone.
fn closed(capacity: &AvailabilityConfig) -> Vec<Closed> {
    let mut changes = capacity.changes.clone();
    changes.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
    let mut since: BTreeMap<u32, (NodeState, f64)> = BTreeMap::new();
    let mut closed = Vec::new();
    let mut close = |node: u32, state: NodeState, from_s: f64, to_s: f64| {
        if state != NodeState::Up && from_s < to_s {
            closed.push(Closed {
                node,
                from_s,
                to_s,
                is_down: state == NodeState::Down,
            });
        }
    };
    for change in &changes {
        let before = since.insert(change.node, (change.state, change.at_s));
        if let Some((state, from_s)) = before {
            close(change.node, state, from_s, change.at_s);
        }
    }
    for (node, (state, from_s)) in since {
        close(node, state, from_s, f64::INFINITY);
    }
    closed
}

/// A run of a record, checked.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// The policy.
    pub policy: String,
    /// The workload.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// Segments that were checked.
    pub num_segments: usize,
    /// Jobs with a segment.
    pub num_jobs: usize,
    /// All faults.
    pub num_faults: u64,
    /// The first of them, in words, with their rules.
    pub faults: Vec<(String, String)>,
}

/// Checks every run of a record against the workload of its name and seed. Whatever a real cluster showed (`is_observed`) was
/// possible: its rates, costs, ends and losses are believed.
///
/// # Errors
/// A run of a workload or seed that is not there; a job or a node that is not there.
pub fn check(
    record: &Record,
    instances: &[Instance],
    sim: &SimConfig,
    is_observed: bool,
) -> Result<Vec<Checked>, Error> {
    let conditions = Conditions {
        is_observed,
        ..conditions_of(sim)
    };
    // Runs stand workload by workload, so the facts of one are read once.
    let mut facts: Option<(usize, Facts)> = None;
    let mut checked = Vec::new();
    for run in &record.runs {
        let index = instance_of(run, instances)?;
        let known = match facts.take().filter(|(known, _)| *known == index) {
            Some((_, known)) => known,
            None => facts_of(&instances[index].workload)?,
        };
        let verdict = verify(&known, &conditions, run)?;
        checked.push(told(run, verdict));
        facts = Some((index, known));
    }
    Ok(checked)
}

fn told(run: &Run, verdict: Verdict) -> Checked {
    let word = |fault: &Fault| (fault.rule.word().to_string(), fault.to_string());
    Checked {
        policy: run.policy.clone(),
        workload: run.workload.clone(),
        seed: run.seed,
        num_segments: verdict.num_segments,
        num_jobs: verdict.num_jobs,
        num_faults: verdict.num_faults,
        faults: verdict.faults.iter().map(word).collect(),
    }
}

/// The workload that a run was made on. A record by hand names none, and is of the only one.
pub(crate) fn instance_of(run: &Run, instances: &[Instance]) -> Result<usize, Error> {
    if let ([_], "") = (instances, run.workload.as_str()) {
        return Ok(0);
    }
    let is_it = |instance: &Instance| instance.workload.name == run.workload && instance.seed == run.seed;
    instances.iter().position(is_it).ok_or_else(|| {
        let known: Vec<String> = instances
            .iter()
            .take(10)
            .map(|instance| format!("{} with seed {}", instance.workload.name, instance.seed))
            .collect();
        let value = format!("{} with seed {}", run.workload, run.seed);
        let hint = "Give --workload, --seed, --seeds and what changes the list as they were when the record was made.";
        Error::config("workload", value, known.join(", "), hint)
    })
}

/// Faults of each rule by run, for the terminal.
#[must_use]
pub fn table(checked: &[Checked]) -> Table {
    let header = ["policy", "workload", "seed", "jobs", "segments", "faults"];
    let rows = checked.iter().map(|run| {
        let num_of = |rule: &str| run.faults.iter().filter(|(word, _)| word == rule).count();
        let words = Rule::ALL.iter().map(|rule| rule.word()).chain([REPLAY]);
        let by_rule: Vec<String> = words
            .filter(|word| num_of(word) > 0)
            .map(|word| format!("{} {word}", num_of(word)))
            .collect();
        let faults = match by_rule.is_empty() {
            true => "none".to_string(),
            false => format!("{}: {}", run.num_faults, by_rule.join(", ")),
        };
        let numbers = [
            run.seed.to_string(),
            run.num_jobs.to_string(),
            run.num_segments.to_string(),
        ];
        [&run.policy, &run.workload]
            .into_iter()
            .cloned()
            .chain(numbers)
            .chain([faults])
            .collect()
    });
    Table {
        header: header.map(str::to_string).to_vec(),
        rows: rows.collect(),
        notes: Vec::new(),
    }
}
