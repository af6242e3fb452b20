//! What `sacct --json` prints, of Slurm 21.08 to 26.05.
//!
//! Only what a list needs is kept of each job; the rest of the document, steps first of all, passes by.

use std::io::Read as _;
use std::path::Path;

use pleach_tables::open_unpacked;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::document::{BYTES_MAX, in_list};
use super::reason::Reason;
use super::row::{Facts, Reader};
use super::taken::Taken;
use crate::Error;

/// A number, plain or as `{"set": true, "infinite": false, "number": 7}`; none where it is not set.
#[derive(Clone, Copy, Debug, Default)]
struct Number(Option<f64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Plain(f64),
            Full {
                set: Option<bool>,
                infinite: Option<bool>,
                number: f64,
            },
            Other(IgnoredAny),
        }
        Ok(Number(match Form::deserialize(deserializer)? {
            Form::Plain(number) => Some(number),
            Form::Full {
                set,
                infinite,
                number,
            } => Some(number).filter(|_| set.unwrap_or(true) && !infinite.unwrap_or(false)),
            Form::Other(_) => None,
        }))
    }
}

/// A word, alone or in a list; the first counts.
#[derive(Clone, Debug, Default)]
struct Word(String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            One(String),
            Many(Vec<String>),
            Other(IgnoredAny),
        }
        Ok(Word(match Form::deserialize(deserializer)? {
            Form::One(word) => word,
            Form::Many(words) => words.into_iter().next().unwrap_or_default(),
            Form::Other(_) => String::new(),
        }))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Job {
    job_id: Number,
    account: Word,
    user: Word,
    partition: Word,
    qos: Word,
    constraints: Word,
    licenses: Word,
    nodes: Word,
    array: Array,
    het: Het,
    state: State,
    time: Times,
    tres: Tres,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Array {
    job_id: Number,
    task_id: Number,
    task: Word,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Het {
    job_id: Number,
    job_offset: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    current: Word,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Times {
    submission: Number,
    eligible: Number,
    start: Number,
    end: Number,
    elapsed: Number,
    /// Minutes.
    limit: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tres {
    allocated: Vec<Resource>,
    requested: Vec<Resource>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resource {
    #[serde(rename = "type")]
    kind: Word,
    name: Word,
    count: Number,
}

/// Whether the first lines of a file are of such a document.
pub(in crate::import) fn is_start(start: &str) -> bool {
    let start = start.trim_start();
    start.starts_with('{')
        && (start.contains("\"jobs\"") || (start.contains("\"meta\"") && start.contains("\"plugin\"")))
}

/// Reads the jobs of a document.
pub(super) fn read(path: &Path, reader: &mut Reader<'_>, taken: &mut Taken) -> Result<(), Error> {
    let bytes = open_unpacked(path)?.take(BYTES_MAX);
    let mut refused = None;
    let mut take = |job: &Job| {
        let counted = taken.count_row();
        if let Err(error) = counted {
            refused = Some(error);
            return false;
        }
        let line = taken.account.rows_read;
        match row(line, job, reader) {
            Ok(row) => taken.rows.push(row),
            Err(reason) => taken.leave_out(reason),
        }
        true
    };
    let outcome = in_list(bytes, "jobs", &mut take);
    if let Some(error) = refused {
        return Err(error);
    }
    outcome.map_err(|error| {
        Error::at(
            path,
            error.line() as u64,
            "-",
            format!("{error}; allowed is what sacct --json prints, or sacct -P as text"),
        )
    })
}

fn row(line: u64, job: &Job, reader: &mut Reader<'_>) -> Result<super::row::Row, Reason> {
    let whole = |number: Number| {
        number
            .0
            .filter(|number| *number > 0.0)
            .map(|number| number as u64)
    };
    // Without an array its job is 0; a task is none's own id but the array's.
    let mut id = match (whole(job.array.job_id), job.array.task_id.0) {
        (Some(array), Some(task)) => format!("{array}_{}", task as u64),
        (Some(array), None) if !job.array.task.0.is_empty() => format!("{array}_[{}]", job.array.task.0),
        _ => whole(job.job_id).map(|id| id.to_string()).unwrap_or_default(),
    };
    if let (Some(first), Some(offset)) = (whole(job.het.job_id), job.het.job_offset.0) {
        id = format!("{first}+{}", offset as u64);
    }
    let tres = |of: &[Resource]| {
        let part = |resource: &Resource| {
            let count = resource.count.0.unwrap_or(0.0).max(0.0) as u64;
            match resource.name.0.as_str() {
                "" => format!("{}={count}", resource.kind.0),
                name => format!("{}/{name}={count}", resource.kind.0),
            }
        };
        of.iter().map(part).collect::<Vec<_>>().join(",")
    };
    let time = |number: Number| number.0.filter(|time| *time > 0.0 && *time < 64e9);
    let is_waiting = job.time.start.0.is_none_or(|start| start <= 0.0);
    let facts = Facts {
        id: &id,
        submit_s: time(job.time.submission),
        eligible_s: time(job.time.eligible),
        start_s: time(job.time.start).filter(|_| !is_waiting),
        end_s: time(job.time.end),
        unread: [""; 3],
        tells_starts: true,
        run_time: &job
            .time
            .elapsed
            .0
            .map(|span| span.to_string())
            .unwrap_or_default(),
        time_limit: &job
            .time
            .limit
            .0
            .map(|minutes| (minutes * 60.0).to_string())
            .unwrap_or_default(),
        gpus: &tres(&job.tres.allocated),
        gpus_asked: &tres(&job.tres.requested),
        num_nodes: "",
        gpu_type: "",
        nodes: &job.nodes.0,
        tenant: &job.account.0,
        user: &job.user.0,
        class: "",
        state: &job.state.current.0,
        partition: &job.partition.0,
        qos: &job.qos.0,
        constraint: &job.constraints.0,
        licences: &job.licenses.0,
    };
    reader.row(line, &facts)
}
