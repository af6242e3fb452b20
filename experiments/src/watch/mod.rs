//! A schedule that one can watch: one self-contained page made from a record, with a time to slide along, the GPUs of all nodes
//! as cells, the queue beside them and figures running along, for two policies in step. A click on a job shows where it stands.
//!
//! What the page says of a job is what the record shows: which jobs waited, what was free, which place it had by arrival, run
//! time and size. A policy's own reasons are not in a record; `pleach explain` has a tree's. No network and no file beside it:
//! the page forbids both to itself.

use std::collections::BTreeMap;

use maud::{Markup, html};
use pleach_env::schedule::{Gpus, Record, Run};
use pleach_env::workload::Workload;
use serde_json::{Value, json};

use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::plot::look::series_of;
use crate::report::{Block, Report, Script};
use crate::schedule::instance_of;

/// Most policies of a page. *Ours*: as many as there are colours.
const RUNS_MAX: usize = 6;
/// Most segments of a page. *Ours*: some tens of megabytes.
const SEGMENTS_MAX: usize = 300_000;
/// Most GPUs of a page. *Ours*: cells that a screen has pixels for.
const GPUS_MAX: u64 = 16_384;

/// The report of the first workload and seed of a record.
///
/// # Errors
/// A record without segments or with more than a page has room for; a run of a workload or seed that is not there.
pub fn report(record: &Record, instances: &[Instance], command_line: &str) -> Result<Report, Error> {
    let Some(first) = record.runs.iter().find(|run| !run.segments.is_empty()) else {
        let hint = "Write one by `pleach evaluate --schedule FILE`.";
        return Err(Error::config(
            "record",
            "no segments",
            "a record in which jobs ran",
            hint,
        ));
    };
    let alike = |run: &&Run| run.workload == first.workload && run.seed == first.seed;
    let runs: Vec<&Run> = record.runs.iter().filter(alike).take(RUNS_MAX).collect();
    let workload = &instances[instance_of(first, instances)?].workload;
    refuse_too_large(workload, &runs)?;
    let about = format!(
        "{} jobs on {} nodes · {} of the {} schedules of the record. A row of cells is a node, a cell a GPU, pale where its job makes no \
         progress. Bars of the queue are as long as jobs are wide, with the time they have waited.",
        workload.jobs.len(),
        num_nodes(workload),
        runs.len(),
        record.runs.len(),
    );
    let own = |markup: Markup| {
        let words = String::new();
        [Block::Own { words, markup }]
    };
    let figures = "busy GPUs, jobs that wait, mean completion time";
    let mut report = Report::new(format!("{} · seed {}", workload.name, first.seed))
        .note(&about)
        .section("", own(boards(runs.len())))
        .section("A job", own(html! { div id="words" aria-live="polite" {} }))
        .section(
            "Figures until then",
            own(html! { canvas id="figures" role="img" aria-label=(figures) {} }),
        )
        .made_by(command_line, "");
    report.script = Some(Script {
        style: include_str!("style.css"),
        code: include_str!("script.js"),
        id: "watch-data",
        data: data(workload, &runs)?,
    });
    Ok(report)
}

/// The controls, and GPUs and queue of one or two policies.
fn boards(num_runs: usize) -> Markup {
    html! {
        div.controls {
            button type="button" id="play" { "Play" }
            input type="range" id="time" min="0" max="100000" value="0" aria-label="time";
            output id="at" {}
            label { "speed " select id="speed" {
                @for speed in ["0.25", "0.5", "1", "2", "4"] { option selected[speed == "1"] { (speed) } }
            } }
            label { "colour by " select id="colour" {
                @for kind in ["job", "tenant", "class"] { option value=(kind) { (kind) } }
            } }
            label { "job " input id="find" size="8" aria-label="name of a job"; }
        }
        ul.legend id="legend" {}
        div.sides {
            @for side in ["first", "second"].into_iter().take(num_runs) {
                section.side {
                    h2 { i {} select aria-label={ "the " (side) " policy" } {} }
                    p.now {}
                    div.board {
                        div { h3 { "GPUs" } canvas.cells role="img" aria-label={ "the GPUs of the " (side) " policy" } {} }
                        div { h3 { "Queue" } canvas.queue role="img" aria-label={ "the queue of the " (side) " policy" } {} }
                    }
                }
            }
        }
    }
}

fn num_nodes(workload: &Workload) -> u64 {
    workload
        .cluster
        .node_groups
        .iter()
        .map(|group| u64::from(group.count))
        .sum()
}

fn refuse_too_large(workload: &Workload, runs: &[&Run]) -> Result<(), Error> {
    let groups = workload.cluster.node_groups.iter();
    let num_gpus: u64 = groups
        .map(|group| u64::from(group.count) * u64::from(group.gpus_per_node))
        .sum();
    let num_segments: usize = runs.iter().map(|run| run.segments.len()).sum();
    let hint = "Record a shorter list or fewer policies.";
    Error::refuse_if(
        num_gpus > GPUS_MAX,
        "cluster",
        format_args!("{num_gpus} GPUs"),
        format_args!("at most {GPUS_MAX}"),
        hint,
    )?;
    Error::refuse_if(
        num_segments > SEGMENTS_MAX,
        "record",
        format_args!("{num_segments} segments"),
        format_args!("at most {SEGMENTS_MAX}"),
        hint,
    )?;
    Ok(())
}

/// What the script reads: nodes as [GPUs, type], jobs as [id, submission (s), GPUs, run time (s), tenant, class, partition], segments as [job,
/// from (s), to (s), rate, thousandths of each GPU, why it ended, places], places as [node, GPUs as bits, those from 32 on].
fn data(workload: &Workload, runs: &[&Run]) -> Result<Value, Error> {
    let cluster = &workload.cluster;
    let nodes: Vec<Value> = cluster
        .node_groups
        .iter()
        .flat_map(|group| {
            let kind = cluster
                .gpu_types
                .iter()
                .position(|kind| kind.name == group.gpu_type);
            std::iter::repeat_n(
                json!([group.gpus_per_node, kind.unwrap_or(0)]),
                group.count as usize,
            )
        })
        .collect();
    let jobs: Vec<Value> = workload
        .jobs
        .iter()
        .map(|job| {
            let submit_s = job.submit.as_secs_f64();
            json!([
                job.id,
                submit_s,
                job.num_gpus,
                job.run_time_s,
                job.tenant,
                job.class,
                job.observed.as_deref().map(|seen| seen.partition.as_str())
            ])
        })
        .collect();
    let places: BTreeMap<&str, usize> = workload
        .jobs
        .iter()
        .enumerate()
        .map(|(place, job)| (job.id.as_str(), place))
        .collect();
    let last = workload
        .jobs
        .iter()
        .map(|job| job.submit.as_secs_f64())
        .fold(0.0, f64::max);
    let until_s = runs
        .iter()
        .flat_map(|run| &run.segments)
        .fold(last.max(1.0), |most, segment| most.max(segment.to_s));
    let looks = series_of(runs.iter().map(|run| run.policy.as_str()));
    let runs = runs.iter().zip(looks);
    let runs: Result<Vec<Value>, Error> = runs
        .map(|(run, look)| of_run(run, look, &places, nodes.len()))
        .collect();
    let names = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>();
    Ok(json!({
        "nodes": nodes,
        "jobs": jobs,
        "types": names(cluster.gpu_types.iter().map(|kind| &kind.name).collect()),
        "tenants": names(cluster.tenants.iter().map(|tenant| &tenant.name).collect()),
        "classes": names(workload.classes.iter().map(|class| &class.name).collect()),
        "until_s": until_s,
        "runs": runs?,
    }))
}

fn of_run(run: &Run, look: usize, jobs: &BTreeMap<&str, usize>, num_nodes: usize) -> Result<Value, Error> {
    let unknown = |what: &str, name: &str| {
        let hint =
            "Give --workload, --cluster and what changes the list as they were when the record was made.";
        Error::config(
            "record",
            format!("{what} {name}"),
            format!("one of the list's {what}s"),
            hint,
        )
    };
    let mut nodes = Vec::with_capacity(run.nodes.len());
    for name in &run.nodes {
        let node = name.parse::<usize>().ok().filter(|node| *node < num_nodes);
        nodes.push(node.ok_or_else(|| unknown("node", name))?);
    }
    let mut segments = Vec::with_capacity(run.segments.len());
    for (segment, masks) in run.segments.iter().zip(lanes(run)) {
        let name = run.jobs[segment.job as usize].as_str();
        let job = jobs.get(name).ok_or_else(|| unknown("job", name))?;
        let places = masks.into_iter().map(|(node, mask)| {
            let (node, low, high) = (nodes[node as usize], mask as u32, (mask >> 32) as u32);
            match high {
                0 => json!([node, low]),
                high => json!([node, low, high]),
            }
        });
        segments.push(json!([
            job,
            segment.from_s,
            segment.to_s,
            segment.rate,
            segment.gpu_milli,
            segment.ended.word(),
            places.collect::<Vec<Value>>(),
        ]));
    }
    Ok(json!({ "policy": run.policy, "look": look, "segments": segments }))
}

/// The GPUs of each segment as node and bits. Where only their number is known, as in a daemon's log, they are the first ones of
/// the node that no other job holds then; a job keeps them while it stays there.
fn lanes(run: &Run) -> Vec<Vec<(u32, u64)>> {
    let mut order: Vec<usize> = (0..run.segments.len()).collect();
    order.sort_by(|a, b| {
        let from_s = |place: &usize| run.segments[*place].from_s;
        from_s(a).total_cmp(&from_s(b)).then(a.cmp(b))
    });
    // By node: which job holds what until when.
    let mut held: BTreeMap<u32, Vec<(f64, u32, u64)>> = BTreeMap::new();
    let mut lanes = vec![Vec::new(); run.segments.len()];
    for place in order {
        let segment = &run.segments[place];
        for slice in &segment.slices {
            for node in slice.node..slice.node + slice.num_nodes {
                let held = held.entry(node).or_default();
                let own = held
                    .iter()
                    .find(|(to_s, job, _)| *job == segment.job && *to_s == segment.from_s);
                let own = own.map(|(_, _, mask)| *mask);
                held.retain(|(to_s, _, _)| *to_s > segment.from_s);
                let mask = match slice.gpus {
                    Gpus::Which(mask) => mask,
                    Gpus::Num(num) => {
                        let others = held.iter().fold(0, |all, (_, _, mask)| all | mask);
                        let kept = own.filter(|own| own & others == 0 && own.count_ones() == num);
                        kept.unwrap_or_else(|| first_free(others, num))
                    }
                };
                held.push((segment.to_s, segment.job, mask));
                lanes[place].push((node, mask));
            }
        }
    }
    lanes
}

/// The first `num` bits that are not taken; of a node that is too full to hold them, the first ones.
fn first_free(taken: u64, num: u32) -> u64 {
    let num = num.clamp(1, 64);
    let free: Vec<u64> = (0..64)
        .map(|bit| 1 << bit)
        .filter(|bit| taken & bit == 0)
        .take(num as usize)
        .collect();
    match free.len() == num as usize {
        true => free.iter().fold(0, |all, bit| all | bit),
        false => u64::MAX >> (64 - num),
    }
}

#[cfg(test)]
mod tests;
