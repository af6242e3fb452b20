//! What candidates are worth beside what else their jobs could have: the type on which a job is fastest, the type on which it
//! would end soonest, the size at which its GPUs do most, the cores with which it loses nothing.
//!
//! Only on clusters where there is such a choice, and only for policies that read features. When a gang fits on a type is
//! believed from the ends of the running jobs, as for a reservation: other jobs that wait do not count, and where the
//! nodes lie scattered or lack cores the time is too short.

use super::reservation::Ends;
use crate::candidate::{Candidate, CandidateKind, CandidateSet, OpportunityCost};
use crate::cluster::{Cluster, ShapeId, Slice, Template};
use crate::ids::{GpuTypeId, JobId};

/// A wait for what never comes, s: the upper end of every feature of a time.
pub(super) const NEVER_S: f64 = 1e8;

/// What jobs could have instead, as far as one enumeration has asked: waiting for a type and the features ask the same.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownAlternatives(Vec<(JobId, Alternatives)>);

impl KnownAlternatives {
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    pub(super) fn of(&mut self, cluster: &Cluster, ends: &mut Ends, job: JobId) -> Alternatives {
        if let Some((_, known)) = self.0.iter().find(|(other, _)| *other == job) {
            return *known;
        }
        let found = Alternatives::of(cluster, ends, job);
        self.0.push((job, found));
        found
    }
}

/// What is the same for all candidates of one job, as it asked to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alternatives {
    /// The type on which the job is fastest.
    fastest: Option<Alternative>,
    /// The type on which it would end soonest if it waited.
    pub(super) first: Option<Alternative>,
    /// The next best type.
    second: Option<Alternative>,
}

/// A type for which a job could wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alternative {
    pub(super) kind: GpuTypeId,
    /// Believed time until its gang fits there, s.
    pub(super) wait_s: f64,
    /// In how many seconds it would end there.
    end_s: f64,
}

/// Writes the [`OpportunityCost`]s of all candidates; none where all are plain.
pub(super) fn fill_opportunity_costs(
    cluster: &Cluster,
    (ends, known): (&mut Ends, &mut KnownAlternatives),
    set: &mut CandidateSet,
) {
    if !cluster.has_choice() {
        return;
    }
    let mut last: Option<(JobId, Alternatives)> = None;
    for row in &set.rows {
        let Some(job) = row.job else {
            set.opportunity_costs.push(OpportunityCost::PLAIN);
            continue;
        };
        let others = match last {
            Some((other, others)) if other == job => others,
            _ => known.of(cluster, ends, job),
        };
        last = Some((job, others));
        let placement = &set.slices[row.placement.clone()];
        set.opportunity_costs
            .push(opportunity_cost(cluster, job, row, placement, &others));
    }
}

impl Alternatives {
    fn of(cluster: &Cluster, ends: &mut Ends, job: JobId) -> Alternatives {
        let mut found = Alternatives {
            fastest: None,
            first: None,
            second: None,
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
                let fit = ends.earliest(cluster, kind, demand);
                fit.map_or(NEVER_S, |at| (at - cluster.now()).as_secs_f64())
            };
            let rate = cluster.class(class).speed[kind.index()] * cluster.asked_input_speed(job, kind);
            let end_s = wait_s + cluster.resume_cost_s(job) + remaining_s / rate;
            let here = Alternative { kind, wait_s, end_s };
            if fastest == Some(kind) {
                found.fastest = Some(here);
            }
            let before = |other: &Alternative| end_s < other.end_s;
            if found.first.as_ref().is_none_or(before) {
                found.second = found.first.replace(here);
            } else if found.second.as_ref().is_none_or(before) {
                found.second = Some(here);
            }
        }
        found
    }
}

fn opportunity_cost(
    cluster: &Cluster,
    job: JobId,
    row: &Candidate,
    placement: &[Slice],
    others: &Alternatives,
) -> OpportunityCost {
    let request = &cluster.job(job).request;
    let Some(kind) = row.facts.map(|facts| facts.gpu_type).or(row.reserved_type) else {
        return OpportunityCost::PLAIN;
    };
    let (speed, shape) = (
        cluster.class(request.class).speed[kind.index()],
        row.granted.unwrap_or(cluster.shape(cluster.job(job).shape)),
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
    let other = others.first.filter(|first| first.kind != kind).or(others.second);
    let (size, peak) = (f64::from(num_gpus), cluster.job(job).pace.peak_per_gpu);
    OpportunityCost {
        best_type_wait_s: match others.fastest {
            Some(fastest) if fastest.kind != kind => fastest.wait_s,
            _ => 0.0,
        },
        end_gain: other.map_or(0.0, |other| (wait_s + duration_s - other.end_s) / duration_s),
        end_gain_wait_s: other.map_or(0.0, |other| other.wait_s),
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
