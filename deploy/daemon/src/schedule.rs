//! A log as the record of a schedule (docs/schedule-record.md): of the jobs that [`Capture`](crate::capture::Capture) writes into its
//! list, on which nodes each held GPUs and when, as far as rounds show it.
//!
//! Times are seconds after the first submission of the list. Nodes are numbers in the order of the list's cluster. Which GPUs of a node
//! they are is recorded for shares alone. The rate is the speed that the settings give to the slowest node: how fast a job really
//! was is not known.

use std::collections::BTreeMap;
use std::path::Path;

use pleach_scheduler::ExternalId;
use pleach_tables::schedule::{Ended, Gpus, Record, Run, Segment, Slice};

use crate::error::Error;
use crate::record::Planned;
use crate::snapshot::JobSeen;

/// What a run held: names of nodes with GPUs on each.
pub(crate) type Places = Vec<(String, u32)>;

/// A run that is over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) from_s: i64,
    pub(crate) to_s: i64,
    pub(crate) places: Places,
    /// s of the reference run per s.
    pub(crate) rate: f64,
    /// Work that did not count when it ended, s of the reference run.
    pub(crate) lost_s: f64,
    pub(crate) ended: Ended,
}

/// Where a job is seen: its parts, node by node.
pub(crate) fn places_of(seen: &JobSeen) -> Places {
    let mut places: BTreeMap<&str, u32> = BTreeMap::new();
    for node in &seen.nodes {
        *places.entry(node).or_default() += seen.gpus_per_node;
    }
    places
        .into_iter()
        .map(|(node, num)| (node.to_owned(), num))
        .collect()
}

/// Where a job was let go to.
pub(crate) fn places_decided(planned: &Planned) -> Places {
    let slices = &planned.decision.placement;
    let each = planned.decision.num_gpus / (planned.nodes.len().max(1) as u32);
    let nodes = planned.nodes.iter().enumerate();
    nodes
        .map(|(index, node)| {
            (
                node.clone(),
                slices.get(index).map_or(each, |slice| slice.num_gpus()),
            )
        })
        .collect()
}

/// A job of the list with its runs.
pub(crate) struct Told<'a> {
    pub(crate) id: ExternalId,
    pub(crate) seen: &'a JobSeen,
    pub(crate) pieces: &'a [Piece],
}

/// Writes the runs of jobs; says how many were on nodes that the cluster of the list does not have.
pub(crate) fn write<'a>(
    path: &Path,
    (policy, settings): (&str, &serde_json::Value),
    nodes: &[String],
    first_s: i64,
    jobs: impl Iterator<Item = Told<'a>>,
) -> Result<usize, Error> {
    let numbers: BTreeMap<&str, u32> = nodes
        .iter()
        .zip(0..)
        .map(|(name, number)| (name.as_str(), number))
        .collect();
    let mut run = Run {
        policy: policy.to_owned(),
        nodes: (0..nodes.len()).map(|number| number.to_string()).collect(),
        ..Run::default()
    };
    let mut num_left_out = 0;
    for job in jobs {
        let row = run.jobs.len() as u32;
        run.jobs.push(job.id.to_string());
        let gpu = job.seen.share.and_then(|share| share.gpu).filter(|gpu| *gpu < 64);
        let slice = |(name, num): &(String, u32)| {
            Some(Slice {
                node: *numbers.get(name.as_str())?,
                num_nodes: 1,
                gpus: match gpu {
                    Some(gpu) if *num == 1 => Gpus::Which(1 << gpu),
                    _ => Gpus::Num((*num).clamp(1, 64)),
                },
            })
        };
        for (piece, attempt) in job.pieces.iter().zip(1..) {
            let slices: Option<Vec<Slice>> = piece.places.iter().map(slice).collect();
            let Some(slices) = slices.filter(|slices| !slices.is_empty()) else {
                num_left_out += 1;
                continue;
            };
            run.segments.push(Segment {
                job: row,
                attempt,
                slices,
                gpu_milli: job.seen.gpu_milli(),
                gpu_memory_gib: 0.0,
                cpu_cores: 0.0,
                memory_gib: 0.0,
                copies: 0,
                from_s: (piece.from_s - first_s).max(0) as f64,
                to_s: (piece.to_s - first_s).max(1) as f64,
                rate: piece.rate,
                lost_s: piece.lost_s,
                ended: piece.ended,
            });
        }
    }
    let record = Record {
        runs: vec![run],
        settings: settings.to_string(),
    };
    record.write(path).map_err(|error| Error::Capture {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(num_left_out)
}
