//! Eva's lists: jobs rented in a cloud, in JSON.
//!
//! # Source
//! Chang et al., "Eva: Cost-Efficient Cloud-Based Cluster Scheduling", EuroSys 2025; `uw-mad-dash/Eva`: 200 jobs with
//! PAI's run times. An object of jobs by number; each has a name, `arrival_time` and `duration` in seconds, and tasks
//! whose demand is `[GPUs, vCPU, GiB]`, for any instance type or by type (refused). A job's tasks run at once, so they
//! are one gang, which is cut so where all that have GPUs have as many; the delays of fetching and building images are
//! not read. Eva rents nodes; here the cluster is fixed.
//!
//! The file must be spread over lines, as its generator writes it.

use std::fmt;
use std::path::Path;

use pleach_scheduler::cluster_spec::Resources;
use pleach_scheduler::{Tasks, Time};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::cluster_of_list::{NODES_PER_RACK, Nodes, Plan, sized_for};
use super::row::raised;
use super::{Draft, ImportOptions, RawRow};
use crate::Error;
use crate::table::{Lines, shorten};
use crate::{Outcome, RUN_TIME_S_MAX, SUBMIT_S_MAX, is_printable};

/// Largest file, bytes; one job takes about 700.
const FILE_BYTES_MAX: usize = 1 << 28;

/// # Source
/// Amazon's p3.16xlarge, the largest of the GPU instances that Eva chooses from: 8 V100, 64 vCPU, 488 GiB.
const NODES: Nodes<'static> = Nodes {
    count: 1,
    gpus_per_node: 8,
    gpu_type: "V100",
    cpu_cores: 64.0,
    memory_gib: 488.0,
    nodes_per_rack: NODES_PER_RACK,
};

#[derive(Deserialize)]
struct EvaJob {
    name: String,
    arrival_time: f64,
    duration: f64,
    tasks: InOrder<EvaTask>,
}

#[derive(Deserialize)]
struct EvaTask {
    demand: InOrder<[f64; 3]>,
}

/// The entries of an object in the order of the file.
struct InOrder<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for InOrder<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<InOrder<T>, D::Error> {
        struct Entries<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = InOrder<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder<T>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(InOrder(entries))
            }
        }
        deserializer.deserialize_map(Entries(std::marker::PhantomData))
    }
}

/// Whether the first lines of a file are of such a list.
pub(super) fn is_start(start: &str) -> bool {
    start.trim_start().starts_with('{') && start.contains("\"arrival_time\"")
}

pub(super) fn read(path: &Path, options: &ImportOptions) -> Result<Draft, Error> {
    let text = read_text(path)?;
    let file = path.display().to_string();
    let refuse = |line: usize, column: &str, message: String| Error::at(&file, line as u64, column, message);
    let InOrder::<EvaJob>(jobs) = serde_json::from_str(&text).map_err(|error| {
        let message =
            format!("{error}; allowed is an object of jobs with name, arrival_time, duration and tasks");
        refuse(error.line(), "-", message)
    })?;
    let mut plan = Plan::sized(Box::new(|rows| sized_for(rows, ("V100", 16.0), NODES)));
    plan.notes = vec!["nodes as Amazon's p3.16xlarge: 8 V100, 64 vCPU, 488 GiB".into()];
    let mut draft = Draft::new(path, plan.site(&options.cluster));
    let (mut at, mut line) = (0, 1);
    for (key, job) in jobs {
        draft.account.rows_read += 1;
        // The line on which the job's key stands: keys come in the order of the file.
        let found = text[at..]
            .find(&format!("\"{key}\""))
            .map_or(at, |found| at + found);
        line += text[at..found].matches('\n').count();
        at = found;
        match row_of(&key, &job, &mut draft) {
            Ok(Some(row)) => draft.rows.push(RawRow {
                line: line as u64,
                ..row
            }),
            Ok(None) => {}
            Err((column, message)) => return Err(refuse(line, column, message)),
        }
    }
    Ok(draft)
}

type Refusal = (&'static str, String);

fn row_of(key: &str, job: &EvaJob, draft: &mut Draft) -> Result<Option<RawRow>, Refusal> {
    let bad = |column, value: String, allowed: &str, fix: &str| {
        Err((
            column,
            format!("`{value}` is not allowed here: allowed is {allowed}; {fix}"),
        ))
    };
    if key.is_empty() || !is_printable(key) {
        return bad(
            "job",
            shorten(key),
            "1 to 256 printable characters",
            "give every job a name",
        );
    }
    if !(-SUBMIT_S_MAX..=SUBMIT_S_MAX).contains(&job.arrival_time) {
        return bad(
            "arrival_time",
            job.arrival_time.to_string(),
            "-2e9 to 2e9",
            "give seconds",
        );
    }
    if !(0.0..=RUN_TIME_S_MAX).contains(&job.duration) {
        return bad("duration", job.duration.to_string(), "0 to 1e9", "give seconds");
    }
    let mut total = [0.0; 3];
    for (_, task) in &job.tasks.0 {
        let [(instance, demand)] = task.demand.0.as_slice() else {
            return bad(
                "demand",
                "several".into(),
                "one entry, `any`",
                "give one demand per task",
            );
        };
        if instance != "any" {
            return bad(
                "demand",
                shorten(instance),
                "`any`",
                "demands by instance type are not read",
            );
        }
        if !demand.iter().all(|amount| (0.0..=1e6).contains(amount)) || demand[0].fract() != 0.0 {
            let allowed = "[GPUs, vCPU, GiB], each from 0 to 1e6, GPUs whole";
            return bad("demand", format!("{demand:?}"), allowed, "correct the task");
        }
        for (total, amount) in total.iter_mut().zip(demand) {
            *total += amount;
        }
    }
    let [num_gpus, cpu_cores, memory_gib] = total;
    let tasks = tasks_of(&job.tasks.0);
    if num_gpus == 0.0 {
        draft.exclude("asks for no GPU");
        return Ok(None);
    }
    let model = job.name.split('[').next().unwrap_or_default().trim();
    let class = (!model.is_empty() && is_printable(model))
        .then(|| draft.class_of(model))
        .flatten();
    let Some(class) = class else {
        let allowed = "at most 10,000 different names of 1 to 256 printable characters";
        return bad("name", shorten(&job.name), allowed, "correct the job");
    };
    Ok(Some(RawRow {
        line: 0,
        id: key.to_owned(),
        submit: Time::from_secs_f64(job.arrival_time),
        num_gpus: num_gpus as u32,
        run_time_s: raised(job.duration, draft),
        estimate_s: None,
        tenant: None,
        class,
        user: None,
        outcome: Outcome::Unknown,
        resources: Resources {
            cpu_cores: cpu_cores / num_gpus,
            memory_gib: memory_gib / num_gpus,
            tasks,
            ..Resources::WHOLE_GPU
        },
        observed: None,
    }))
}

/// How a gang of such tasks is cut: as one likes where they have different numbers of GPUs, which cannot be said here.
fn tasks_of(tasks: &[(String, EvaTask)]) -> Tasks {
    let gpus = tasks
        .iter()
        .filter_map(|(_, task)| Some(task.demand.0.first()?.1[0]));
    let mut gpus = gpus.filter(|num| *num > 0.0);
    match gpus.next() {
        Some(first) if first <= 64.0 && gpus.all(|num| num == first) => Tasks::of(first as u8),
        _ => Tasks::ANY,
    }
}

/// The whole file, with its line breaks.
fn read_text(path: &Path) -> Result<String, Error> {
    let mut lines = Lines::open(path)?;
    let mut text = String::new();
    loop {
        let before = lines.line;
        let Some(next) = lines.next_line()? else {
            return Ok(text);
        };
        let next = next.to_owned();
        if text.len() + next.len() > FILE_BYTES_MAX {
            let message = format!("the file is larger than {FILE_BYTES_MAX} bytes; cut the list");
            return Err(lines.error("-", message));
        }
        // Blank lines are skipped by the reader and counted here, so that line numbers hold.
        text.extend(std::iter::repeat_n('\n', (lines.line - before - 1) as usize));
        text.push_str(&next);
        text.push('\n');
    }
}
