//! The event log of a Spark application: each of its jobs becomes a graph.
//!
//! A stage that ran has the tasks that ended well, with their durations; an executor's first task of a stage is a first one, unless
//! it is the executor's first task at all, which is a fresh one. Durations are those of the one level at which the log was written.
//! Stages that were skipped, and tasks that failed or were killed, are left out.
//!
//! # Source
//! Lines of JSON as of Spark 3 (`SparkListenerJobStart`, `SparkListenerStageCompleted`, `SparkListenerTaskEnd`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pleach_scheduler::Problem;
use serde::Deserialize;

use crate::graph::{LEVELS, Profile, STAGES_MAX, TASK_MS_MAX};

/// Most durations that are kept of a wave. *Assumed.*
const KEPT_MAX: usize = 1_000;

/// Stages and edges of a graph.
pub(crate) type Parts = (Vec<Profile>, Vec<(u32, u32)>);

/// A line, of which no more is read than is needed.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "Event")]
    event: String,
    #[serde(rename = "Stage IDs", default)]
    stage_ids: Vec<u64>,
    #[serde(rename = "Stage Infos", default)]
    stage_infos: Vec<StageInfo>,
    #[serde(rename = "Stage ID")]
    stage_id: Option<u64>,
    #[serde(rename = "Task Info")]
    task: Option<TaskInfo>,
}

#[derive(Deserialize)]
struct StageInfo {
    #[serde(rename = "Stage ID")]
    id: u64,
    #[serde(rename = "Parent IDs", default)]
    parents: Vec<u64>,
}

#[derive(Deserialize)]
struct TaskInfo {
    #[serde(rename = "Launch Time")]
    launch_ms: u64,
    #[serde(rename = "Finish Time")]
    finish_ms: u64,
    #[serde(rename = "Executor ID")]
    executor: String,
    #[serde(rename = "Failed", default)]
    has_failed: bool,
    #[serde(rename = "Killed", default)]
    was_killed: bool,
}

/// Tasks of a stage in the order of launching: time, executor, duration (ms).
type Tasks = Vec<(u64, String, u32)>;

/// Whether a text begins as an event log does.
pub(crate) fn is_one(text: &str) -> bool {
    text.lines()
        .next()
        .is_some_and(|line| line.contains("\"Event\":\"SparkListener"))
}

/// The graphs of a log.
///
/// # Errors
/// A line that is no event, too many stages.
pub(crate) fn graphs(path: &Path, text: &str) -> Result<Vec<Parts>, Problem> {
    let mut jobs: Vec<BTreeSet<u64>> = Vec::new();
    let mut parents: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut tasks: BTreeMap<u64, Tasks> = BTreeMap::new();
    for (number, text) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let line: Line = serde_json::from_str(text)
            .map_err(|error| Problem::data(path, format!("line {}: no event: {error}", number + 1)))?;
        match line.event.as_str() {
            "SparkListenerJobStart" => {
                jobs.push(line.stage_ids.into_iter().collect());
                for info in line.stage_infos {
                    parents.insert(info.id, info.parents);
                }
            }
            "SparkListenerTaskEnd" => {
                if let (Some(stage), Some(task)) = (line.stage_id, line.task) {
                    keep(tasks.entry(stage).or_default(), task);
                }
            }
            _ => {}
        }
    }
    for own in tasks.values_mut() {
        own.sort_unstable();
    }
    let fresh = first_tasks(&tasks);
    let graphs = jobs.iter().map(|job| graph(job, &parents, &tasks, &fresh));
    let graphs: Vec<Parts> = graphs.filter(|(stages, _)| !stages.is_empty()).collect();
    match graphs.iter().find(|(stages, _)| stages.len() > STAGES_MAX) {
        Some((stages, _)) => {
            let message = format!("a job of {} stages, more than {STAGES_MAX}", stages.len());
            Err(Problem::data(path, message))
        }
        None => Ok(graphs),
    }
}

fn keep(tasks: &mut Tasks, task: TaskInfo) {
    if task.has_failed || task.was_killed || task.finish_ms == 0 {
        return;
    }
    let ms = task
        .finish_ms
        .saturating_sub(task.launch_ms)
        .clamp(1, u64::from(TASK_MS_MAX));
    tasks.push((task.launch_ms, task.executor, ms as u32));
}

/// When each executor launched its first task, ms.
fn first_tasks(tasks: &BTreeMap<u64, Tasks>) -> BTreeMap<&str, u64> {
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for (launch_ms, executor, _) in tasks.values().flatten() {
        let first = found.entry(executor).or_insert(*launch_ms);
        *first = (*first).min(*launch_ms);
    }
    found
}

fn graph(
    job: &BTreeSet<u64>,
    parents: &BTreeMap<u64, Vec<u64>>,
    tasks: &BTreeMap<u64, Tasks>,
    fresh: &BTreeMap<&str, u64>,
) -> Parts {
    let ran: Vec<u64> = job
        .iter()
        .copied()
        .filter(|id| tasks.get(id).is_some_and(|own| !own.is_empty()))
        .collect();
    let places: BTreeMap<u64, u32> = ran
        .iter()
        .enumerate()
        .map(|(place, id)| (*id, place as u32))
        .collect();
    let num_executors = ran
        .iter()
        .flat_map(|id| &tasks[id])
        .map(|task| &task.1)
        .collect::<BTreeSet<_>>()
        .len();
    let level = LEVELS
        .iter()
        .rev()
        .find(|level| **level as usize <= num_executors);
    let level = *level.unwrap_or(&LEVELS[0]);
    let profiles = ran.iter().map(|id| profile(&tasks[id], fresh, level)).collect();
    let edges = ran.iter().flat_map(|id| {
        let own = parents.get(id).into_iter().flatten();
        own.filter_map(|parent| Some((*places.get(parent)?, places[id])))
    });
    (profiles, edges.collect())
}

/// Of the tasks of a stage, of which there is at least one.
fn profile(tasks: &Tasks, fresh: &BTreeMap<&str, u64>, level: u32) -> Profile {
    let mut waves = [Vec::new(), Vec::new(), Vec::new()];
    let mut met: BTreeSet<&str> = BTreeSet::new();
    let mut sum_ms = 0;
    for (launch_ms, executor, ms) in tasks {
        let wave = match met.insert(executor) {
            true if fresh.get(executor.as_str()) == Some(launch_ms) => 0,
            true => 1,
            false => 2,
        };
        sum_ms += u64::from(*ms);
        if waves[wave].len() < KEPT_MAX {
            waves[wave].push(*ms);
        }
    }
    let [fresh, first, rest] = waves.map(|wave| vec![wave]);
    Profile {
        tasks: tasks.len() as u32,
        mean_ms: (sum_ms / tasks.len().max(1) as u64).max(1) as u32,
        levels: vec![level],
        fresh,
        first,
        rest,
    }
}
