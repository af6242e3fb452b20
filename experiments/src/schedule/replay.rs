//! A record played again: the policy that it names, on the workload and under the settings that it names, must have made it.

use std::collections::BTreeMap;

use pleach_env::schedule::{Record, Run, Segment};

use super::Checked;
use super::settings::RecordSettings;
use crate::door::{DOOR, PolicySpec};
use crate::error::Error;
use crate::evaluate::evaluation::EvaluationConfig;
use crate::evaluate::instances::Instance;
use crate::progress::Watcher;
use crate::worlds::jobs::JobsWorld;

/// The word of what a replay finds, beside the rules of the validator.
pub const REPLAY: &str = "replay";

/// Plays every run of a record again, and adds the first difference of each to what was found.
///
/// # Errors
/// A record of a real cluster, a policy that cannot be opened, a run that fails.
pub fn replay(
    record: &Record,
    settings: &RecordSettings,
    instances: &[Instance],
    watcher: &Watcher,
    checked: &mut [Checked],
) -> Result<(), Error> {
    Error::refuse_if(
        settings.observed,
        "replay",
        "a record of a real cluster",
        "a simulated one",
        "Leave --replay out: nothing says what would have happened there.",
    )?;
    let again = play(record, settings, instances, watcher)?;
    let known: BTreeMap<(&str, &str, u64), &Run> = again.runs.iter().map(|run| (name(run), run)).collect();
    for (run, checked) in record.runs.iter().zip(checked) {
        // A record by hand names no workload and is of the only one.
        let workload = match run.workload.as_str() {
            "" => instances
                .first()
                .map_or("", |instance| instance.workload.name.as_str()),
            named => named,
        };
        let seed = match run.workload.as_str() {
            "" => instances.first().map_or(0, |instance| instance.seed),
            _ => run.seed,
        };
        let found = match known.get(&(run.policy.as_str(), workload, seed)) {
            Some(played) => difference(run, played),
            None => Some(format!(
                "{} was not played on {workload} with seed {seed}",
                run.policy
            )),
        };
        if let Some(found) = found {
            checked.num_faults += 1;
            checked
                .faults
                .push((REPLAY.to_string(), format!("{REPLAY}: {found}")));
        }
    }
    Ok(())
}

fn name(run: &Run) -> (&str, &str, u64) {
    (&run.policy, &run.workload, run.seed)
}

/// Every policy that the record names, on every instance.
fn play(
    record: &Record,
    settings: &RecordSettings,
    instances: &[Instance],
    watcher: &Watcher,
) -> Result<Record, Error> {
    let config = EvaluationConfig {
        reference: None,
        ..settings.evaluation.clone()
    };
    let mut policies: Vec<PolicySpec> = match config.policy.is_empty() {
        true => Vec::new(),
        false => DOOR.open_all(&config.policy)?,
    };
    // What the record names counts: another one's name is another one's record.
    for run in &record.runs {
        if !policies.iter().any(|policy| policy.name() == run.policy) {
            policies.extend(DOOR.open_all(std::slice::from_ref(&run.policy))?);
        }
    }
    policies.retain(|policy| record.runs.iter().any(|run| run.policy == policy.name()));
    if policies.is_empty() {
        return Ok(Record::default());
    }
    JobsWorld::of(&config, policies)?.record(instances, watcher)
}

/// The first segment in which two runs differ.
fn difference(told: &Run, played: &Run) -> Option<String> {
    let mut played_segments = played.segments.iter();
    for segment in &told.segments {
        let Some(other) = played_segments.next() else {
            return Some(format!(
                "{} makes {} segments, and the record has {}",
                told.policy,
                played.segments.len(),
                told.segments.len()
            ));
        };
        if row(told, segment) != row(played, other) {
            return Some(format!(
                "{} plays {}, where the record has {}",
                told.policy,
                words(played, other),
                words(told, segment)
            ));
        }
    }
    played_segments.next().map(|missing| {
        format!(
            "{} goes on with {}, and the record ends",
            told.policy,
            words(played, missing)
        )
    })
}

/// A segment with names for the indexes of its run.
fn row(run: &Run, segment: &Segment) -> (String, String, Segment) {
    let plain = Segment {
        job: 0,
        slices: Vec::new(),
        ..segment.clone()
    };
    (
        run.jobs[segment.job as usize].clone(),
        run.nodes_text(segment),
        plain,
    )
}

fn words(run: &Run, segment: &Segment) -> String {
    format!(
        "job {} (attempt {}) on {} from {} s to {} s at {}, {}",
        run.jobs[segment.job as usize],
        segment.attempt,
        run.nodes_text(segment),
        segment.from_s,
        segment.to_s,
        segment.rate,
        segment.ended.word()
    )
}
