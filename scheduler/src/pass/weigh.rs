//! What candidates are worth beside what else their jobs could have: the type on which a job is fastest, the type on which it
//! would end soonest, the size at which its GPUs do most, the cores with which it loses nothing.
//!
//! Only on clusters where there is such a choice, and only for policies that read features. When a gang fits on a type is
//! believed from the ends of the running jobs, as for a reservation: other jobs that wait do not count, and where the
//! nodes lie scattered or lack cores the time is too short.

use super::reservation::Ends;
use crate::candidate::{Candidate, CandidateKind, CandidateSet, Worth};
use crate::cluster::{Cluster, ShapeId, Slice, Template};
use crate::ids::{GpuTypeId, JobId};

/// A wait for what never comes, s: the upper end of every feature of a time.
const NEVER_S: f64 = 1e8;

/// What is the same for all candidates of one job.
#[derive(Clone, Copy, Debug)]
struct Alternatives {
    /// The type on which the job is fastest, and the believed time until its gang fits there, s.
    fastest: Option<(GpuTypeId, f64)>,
    /// The type on which it would end soonest if it waited, and in how many seconds.
    first: Option<(GpuTypeId, f64)>,
    /// In how many seconds it would end on the next best type.
    second_s: f64,
}

/// Writes the [`Worth`]s of all candidates; none where all are plain.
pub(super) fn weigh(cluster: &Cluster, ends: &mut Ends, set: &mut CandidateSet) {
    if !cluster.has_choice() {
        return;
    }
    let mut known: Option<(JobId, Alternatives)> = None;
    for row in &set.rows {
        let Some(job) = row.job else {
            set.worths.push(Worth::PLAIN);
            continue;
        };
        let others = match known {
            Some((other, others)) if other == job => others,
            _ => Alternatives::of(cluster, ends, job),
        };
        known = Some((job, others));
        let placement = &set.slices[row.placement.clone()];
        set.worths.push(worth(cluster, job, row, placement, &others));
    }
}

impl Alternatives {
    fn of(cluster: &Cluster, ends: &mut Ends, job: JobId) -> Alternatives {
        let mut found = Alternatives {
            fastest: None,
            first: None,
            second_s: f64::INFINITY,
        };
        if cluster.num_types() < 2 {
            return found;
        }
        let demand = cluster.demand(job);
        let row = cluster.job(job);
        let class = row.request.class;
        let remaining_s = row.remaining_s_at(cluster.now());
        let fastest = cluster.preferred_type(Template::Fastest, class, demand.types);
        for kind in cluster.types_in(demand.types) {
            // Where a gang asks for more than whole GPUs, or for less, counts of free ones do not tell whether it fits now.
            let wait_s = if demand.shape != ShapeId::PLAIN && cluster.fits_on(kind, demand) {
                0.0
            } else {
                let fit = ends.earliest_fit(cluster, kind, demand.num_gpus);
                fit.map_or(NEVER_S, |(at, _)| (at - cluster.now()).as_secs_f64())
            };
            if fastest == Some(kind) {
                found.fastest = Some((kind, wait_s));
            }
            let rate = cluster.class(class).speed[kind.index()] * cluster.asked_input_speed(job, kind);
            let end_s = wait_s + cluster.resume_cost_s(job) + remaining_s / rate;
            match found.first {
                Some((_, first_s)) if end_s >= first_s => found.second_s = found.second_s.min(end_s),
                first => {
                    found.second_s = first.map_or(f64::INFINITY, |(_, first_s)| first_s);
                    found.first = Some((kind, end_s));
                }
            }
        }
        found
    }
}

fn worth(
    cluster: &Cluster,
    job: JobId,
    row: &Candidate,
    placement: &[Slice],
    others: &Alternatives,
) -> Worth {
    let request = &cluster.job(job).request;
    let Some(kind) = row.facts.map(|facts| facts.gpu_type).or(row.reserved_type) else {
        return Worth::PLAIN;
    };
    let (speed, shape) = (
        cluster.class(request.class).speed[kind.index()],
        cluster.job(job).shape,
    );
    // What is held back for a reserved gang is taken to be as it asks.
    let rate = || speed * cluster.asked_input_speed(job, kind);
    let (rate, num_gpus) = row.facts.map_or_else(
        || (rate(), request.num_gpus),
        |facts| (facts.rate, facts.num_gpus),
    );
    let somewhere = cluster.node_of(kind).map(|node| Slice { node, gpus: 1 });
    let placement = if placement.is_empty() {
        somewhere.as_slice()
    } else {
        placement
    };
    let remaining_s = cluster.job(job).remaining_s_at(cluster.now());
    let duration_s = cluster.resume_cost_s(job) + remaining_s / rate;
    let wait_s = if row.kind == CandidateKind::Reserve {
        row.wait_to_fit_s
    } else {
        0.0
    };
    let other_s = match others.first {
        Some((first, end_s)) if first != kind => end_s,
        _ => others.second_s,
    };
    let (size, peak) = (f64::from(num_gpus), cluster.job(job).peak_per_gpu);
    Worth {
        best_type_wait_s: match others.fastest {
            Some((fastest, wait_s)) if fastest != kind => wait_s,
            _ => 0.0,
        },
        end_gain: if other_s.is_finite() {
            (wait_s + duration_s - other_s) / duration_s
        } else {
            0.0
        },
        type_advantage: cluster.type_advantage(request.class, kind),
        size_ratio: size / f64::from(request.num_gpus),
        gpu_efficiency: if peak > 0.0 {
            (rate / speed / size / peak).min(1.0)
        } else {
            1.0
        },
        cores_ratio: placement
            .first()
            .map_or(1.0, |slice| cluster.cores_ratio(shape, slice.node)),
        demand_rate_ratio: cluster.demand_rate_ratio(request.class, shape, placement),
    }
}
