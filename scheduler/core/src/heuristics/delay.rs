//! Waiting for a better place: for a tight placement by patience, for a faster GPU type by a margin; with a reservation for
//! the head of the order where there is one.
//!
//! # Source
//! Delay scheduling: a job passes over a place far from its data until it has been passed over for long enough (Zaharia et al.,
//! EuroSys'10); Philly's scheduler waits for a tight place and gives the wish up in the end (Jeon et al., ATC'19). Patience in
//! parts of the job's own run time, and the margin between types, are ours; so are the values, which were tuned on validation
//! lists (lab/notes/suite.md).

use super::heuristic::Heuristic;
use super::rank::{rank, rank_rows, start_alone, under};
use crate::actions::{ActionKind, ActionSet};
use crate::candidate::{Candidate, CandidateKind};
use crate::cluster::{Cluster, PlacementFacts};
use crate::ids::{GpuTypeId, JobId, Time};
use crate::lens::{Lens, LensSet, first_with_room};
use crate::pass::believed_end;
use crate::policy::Needs;

/// Jobs that fit now, first in the order, that are looked at: those that wait must not hide all others. The most that a
/// [`Pass`](crate::pass::Pass) offers.
const FITTING: usize = 16;

/// How often patience is looked at again while nothing happens, s. *Assumed.*
const TICK_S: f64 = 600.0;

/// When a job starts on a loose placement although a tight one is worth waiting for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// Jobs that are believed to run for less start anywhere, s; at least 0.
    pub short_s: f64,
    /// A job that has waited so many times its believed run time starts anywhere; at least 0.
    pub wait_ratio: f64,
    /// Placements with a locality factor above this are tight enough. 0 to 1
    pub locality: f64,
}

impl Patience {
    /// Tuned on the validation lists of `PhillyGang-v1` and `HeliosTenants-v1`: `cargo run --release -p pleach-experiments --example
    /// tune_delay` at commit 996874d.
    pub const TUNED: Patience = Patience {
        short_s: 3600.0,
        wait_ratio: 0.5,
        locality: 0.96,
    };

    /// Whether a job waits rather than to start on a candidate.
    fn waits(&self, cluster: &Cluster, candidate: &Candidate, id: JobId) -> bool {
        let Some(facts) = candidate.facts else {
            return false;
        };
        facts.locality <= self.locality && self.lasts(cluster, id)
    }

    /// Whether a job is long enough to have patience and has not waited for too long.
    fn lasts(&self, cluster: &Cluster, id: JobId) -> bool {
        let job = cluster.job(id);
        let run_s = job.work_s();
        let waited_s = job.without_gpus_s_at(cluster.now());
        run_s >= self.short_s && waited_s < self.wait_ratio * run_s
    }
}

fn needs(lens: Lens) -> Needs {
    Needs {
        heads: 1,
        fitting: FITTING,
        actions: ActionSet::of(ActionKind::Reserve),
        tick: Some(Time::from_secs_f64(TICK_S)),
        ..Needs::first_fitting(LensSet::of(lens))
    }
}

/// The first job of an order that fits tightly, or has no patience left; when the head of the order does not fit its GPUs are
/// reserved once in the pass, and what is believed not to delay it starts.
#[must_use]
pub fn delayed_backfill(name: &'static str, lens: Lens, patience: Patience) -> Heuristic {
    Heuristic::new(name, needs(lens), move |point, scores| {
        let cluster = point.cluster;
        let head = first_with_room(cluster, lens);
        let may_fill = cluster.capabilities().can(ActionKind::Reserve);
        // Where no job runs one must start, tight or not: the first of the order.
        let may_hold = point.candidates.is_admissible(0);
        rank(point, scores, |candidate, job| {
            let tier = u8::from(Some(job) != head);
            match candidate.kind {
                CandidateKind::Reserve if tier == 0 => under(cluster, lens, tier, job),
                CandidateKind::Start if tier == 0 || may_fill => {
                    let waits = may_hold && patience.waits(cluster, candidate, job);
                    (!waits).then(|| under(cluster, lens, tier, job))?
                }
                _ => None,
            }
        });
    })
}

/// Whether a job that waits can be offered something faster: on a faster type, or on this one in fewer nodes. A type that comes
/// first by speed is offered for as long as it has free GPUs, so no job need wait for another type of the same speed, however few
/// nodes that would take.
fn may_be_better(cluster: &Cluster, id: JobId, facts: &PlacementFacts) -> bool {
    let class = cluster.job(id).request.class;
    let fewest_here = facts
        .num_gpus
        .div_ceil(cluster.node_gpus_max_of(facts.gpu_type).max(1));
    let speed = &cluster.class(class).speed;
    let is_faster = |kind: GpuTypeId| speed[kind.index()] > speed[facts.gpu_type.index()];
    fewest_here <= facts.num_nodes_min || cluster.types_in(cluster.demand(id).types).any(is_faster)
}

/// A job waits for another type if it then ends sooner by more than so many times its run time here. Tuned on the validation lists of
/// `GavelMulti-v1`: `cargo run --release -p pleach-experiments --example tune_delay` at commit 996874d.
const MARGIN: f64 = 0.1;

/// The job that ends first on a free type, unless another type would end it sooner by more than a margin, or a tight placement
/// is worth waiting for. Unlike `sjf-best-type` it also waits where the other type has enough free GPUs, which then lie too far
/// apart or are slower: whether the gain is worth it is the margin's business alone. Where nothing better can ever be offered it
/// starts.
#[must_use]
pub fn best_type_delay(name: &'static str, patience: Patience) -> Heuristic {
    let needs = Needs {
        heads: 0,
        actions: ActionSet::of(ActionKind::WaitForType),
        ..needs(Lens::Shortest)
    };
    Heuristic::new(name, needs, move |point, scores| {
        let cluster = point.cluster;
        let may_hold = point.candidates.is_admissible(0);
        rank_rows(point, scores, |index, candidate, job| {
            let facts = start_alone(candidate)?;
            let other = point.candidates.opportunity_cost(index);
            let waits_for_type = other.end_gain > MARGIN && may_be_better(cluster, job, &facts);
            if may_hold && (waits_for_type || patience.waits(cluster, candidate, job)) {
                return None;
            }
            Some((believed_end(cluster, job, facts.rate), job))
        });
    })
}
