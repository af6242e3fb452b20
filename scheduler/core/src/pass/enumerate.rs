//! Candidate enumeration: the first few jobs under each lens, times a few placements.

mod resize;

use super::cache::{Ask, KeptStarts, Known};
use super::colocate::push_beside;
use super::gangs::{self, Gang};
use super::opportunity::{KnownAlternatives, NEVER_S, fill_opportunity_costs};
use super::preempt::{Overs, Stoppable, push_preempts};
use super::reservation::{Beside, Ends, Reservation, Wanted, believed_end, place_undelaying};
use super::scan::Scan;
use crate::actions::ActionKind;
use crate::candidate::{Candidate, CandidateKind, CandidateSet, MAX_CANDIDATES};
use crate::cluster::{Cluster, Demand, Slice};
use crate::ids::{GpuTypeId, JobId};
use crate::lens::{Lens, LensSet};
use crate::policy::Needs;

/// No place in the picks.
const NOT_PICKED: u32 = u32::MAX;

/// Working memory of the enumeration; kept between calls, so that it allocates nothing once warm.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    scan: Scan,
    picks: Vec<(JobId, LensSet)>,
    /// Place of each job in the picks; [`NOT_PICKED`] between two looks. `[job]`
    picked: Vec<u32>,
    slices: Vec<Slice>,
    ends: Ends,
    stoppable: Stoppable,
    overs: Overs,
    known: Known,
    alternatives: KnownAlternatives,
    /// Starts from pass to pass, where all passes are of one cluster.
    pub(crate) kept: Option<KeptStarts>,
}

impl Scratch {
    /// Holds nodes for a job, on one type if that is given, with what the last enumeration found of the running jobs' ends; the
    /// cluster is as it was then.
    pub(crate) fn reserve(
        &mut self,
        cluster: &Cluster,
        job: JobId,
        kind: Option<GpuTypeId>,
    ) -> Option<Reservation> {
        self.ends.reserve(cluster, job, kind)
    }

    /// A reservation is over.
    pub(crate) fn recycle(&mut self, held: Reservation) {
        self.ends.recycle(held);
    }

    /// These jobs were stopped in this pass.
    pub(crate) fn stopped(&mut self, jobs: &[JobId]) {
        self.stoppable.stopped(jobs);
    }

    /// A new pass begins.
    pub(crate) fn forget(&mut self) {
        self.stoppable.forget();
        self.scan.forget();
    }
}

/// Fills `set` with what may be done now. Lists are merged rank by rank over the lenses, so a cut at the bound takes the
/// same depth from each.
pub(crate) fn enumerate(
    cluster: &Cluster,
    needs: &Needs,
    reservation: Option<&Reservation>,
    scratch: &mut Scratch,
    set: &mut CandidateSet,
) {
    set.clear();
    let open = needs.actions.intersection(cluster.capabilities().actions());
    let offered = |kind| open.contains(kind);
    let resizes = reservation.is_none() && offered(ActionKind::Resize);
    if cluster.num_pending() == 0 && !resizes {
        return;
    }
    // Behind a reservation there is nothing but starts on free GPUs.
    if reservation.is_some() && !something_fits(cluster) {
        return;
    }
    pick_jobs(cluster, needs, reservation, scratch);
    let Scratch {
        picks,
        ends,
        stoppable,
        overs,
        known,
        alternatives,
        kept,
        ..
    } = scratch;
    ends.forget();
    known.forget();
    alternatives.forget();
    overs.forget();
    stoppable.changed(cluster);
    let beside = reservation.is_none() && offered(ActionKind::Share);
    for (job, heads) in picks.iter() {
        if set.rows.len() >= MAX_CANDIDATES {
            break;
        }
        let types = cluster.fitting_types(cluster.demand(*job));
        if beside {
            push_beside(cluster, *job, *heads, set);
        }
        if types != 0 {
            push_starts(
                cluster,
                needs,
                reservation,
                (*job, types),
                *heads,
                (known, kept.as_mut()),
                set,
            );
        }
        if offered(ActionKind::Sizes) || offered(ActionKind::GrantCores) {
            gangs::push_others(cluster, needs, reservation, *job, *heads, set);
        }
        if types != 0 {
            if offered(ActionKind::WaitForType) && offered(ActionKind::Reserve) && reservation.is_none() {
                push_wait(cluster, (*job, types), *heads, (ends, alternatives), set);
            }
        } else {
            if offered(ActionKind::Reserve) && reservation.is_none() {
                push_reserve(cluster, *job, *heads, (ends, known), set);
            }
            // Victims give way to the first jobs of the queue; with GPUs held back for another job, no job is stopped.
            if offered(ActionKind::Preempt) && reservation.is_none() {
                push_preempts(cluster, needs, *job, *heads, (stoppable, overs), set);
            }
        }
    }
    // Resizes are the first to be cut: under a long queue no job is resized.
    if resizes && set.rows.len() < MAX_CANDIDATES {
        resize::push_resizes(cluster, needs, set);
    }
    set.rows.truncate(MAX_CANDIDATES);
    if needs.opportunity_costs() {
        fill_opportunity_costs(cluster, (ends, alternatives), set);
    }
    set.hold_refused = cluster.num_running() == 0 && set.rows.len() > 1;
}

/// Whether some pending job could start now.
fn something_fits(cluster: &Cluster) -> bool {
    let mut heads = cluster.queue().heads().iter();
    heads.any(|head| cluster.fitting_types(head.demand) != 0)
}

fn pick_jobs(cluster: &Cluster, needs: &Needs, reservation: Option<&Reservation>, scratch: &mut Scratch) {
    let Scratch {
        scan,
        picks,
        picked,
        slices,
        ..
    } = scratch;
    picks.clear();
    picked.resize(cluster.jobs().len().max(picked.len()), NOT_PICKED);
    scan.run(
        cluster,
        needs,
        reservation.map(|held| held.job),
        reservation.is_none(),
    );
    if let Some(held) = reservation {
        let beside = Beside::of(cluster, held);
        let at_any_end = |demand: &Demand, types| {
            let mut kinds = cluster.types_in(types);
            !needs.templates.is_empty() && kinds.all(|kind| beside.is_open(cluster, demand, kind))
        };
        let rest_max = |demand: &Demand, types| rest_us_max(cluster, beside, demand, types);
        scan.run_allowed(cluster, needs, (at_any_end, rest_max), |job, types| {
            may_backfill(cluster, needs, beside, (job, types), slices)
        });
    }
    for rank in 0..needs.heads.max(needs.fitting) {
        for lens in Lens::ALL {
            if let Some((_, job)) = scan.heads(lens).get(rank) {
                let heads = if rank == 0 {
                    LensSet::of(lens)
                } else {
                    LensSet::NONE
                };
                pick(picks, picked, *job, heads);
            }
            if let Some((_, job)) = scan.fitting(lens).get(rank) {
                pick(picks, picked, *job, LensSet::NONE);
            }
        }
    }
    for (job, _) in picks {
        picked[job.index()] = NOT_PICKED;
    }
}

fn pick(picks: &mut Vec<(JobId, LensSet)>, picked: &mut [u32], job: JobId, heads: LensSet) {
    let place = &mut picked[job.index()];
    match picks.get_mut(*place as usize) {
        Some((_, known)) => *known = known.union(heads),
        None => {
            *place = picks.len() as u32;
            picks.push((job, heads));
        }
    }
}

/// Whether some template has a start for the job that does not delay the reserved one.
fn may_backfill(
    cluster: &Cluster,
    needs: &Needs,
    beside: Beside<'_>,
    (job, types): (JobId, u64),
    slices: &mut Vec<Slice>,
) -> bool {
    let (held, demand) = (beside.held, cluster.demand(job));
    let request = &cluster.job(job).request;
    let types = beside.open_types(cluster, job, types);
    let Some(first) = needs.templates.first() else {
        return false;
    };
    let Some(kind) = cluster.preferred_type(*first, request.class, types) else {
        return false;
    };
    // Where even the loosest placement would end in time, no placement need be worked out.
    let class = cluster.class(request.class);
    let loosest = class.locality.more_nodes.min(class.locality.cross_rack);
    let end = believed_end(cluster, job, class.speed[kind.index()] * loosest);
    if end <= held.shadow || beside.is_open(cluster, &demand, kind) {
        return true;
    }
    let wanted = Wanted {
        job,
        shape: cluster.shape(demand.shape),
        num_gpus: demand.num_gpus,
    };
    needs.templates.iter().any(|template| {
        slices.clear();
        let kind = cluster.preferred_type(*template, request.class, types);
        let place = |kind| {
            let place = (*template, kind);
            place_undelaying(cluster, Some(held), place, wanted, |_, _| false, slices)
        };
        kind.and_then(place).is_some()
    })
}

/// A believed remaining time, µs, beyond which the reservation lets no job of a demand start on any of the types, were it of
/// the fastest class; the largest number where it lets jobs through whenever they end.
fn rest_us_max(cluster: &Cluster, beside: Beside<'_>, demand: &Demand, types: u64) -> i64 {
    let until_us = (beside.held.shadow - cluster.now()).0 as f64;
    let kinds = cluster.types_in(types);
    let of_type = kinds.map(|kind| {
        if beside.is_open(cluster, demand, kind) {
            return i64::MAX;
        }
        // Ends are rounded to a microsecond and remaining times to what a float tells apart; a second more is no loss, for
        // every job is asked again.
        ((until_us + 1.0) * cluster.best_speed_on(kind) * (1.0 + 1e-9) + 1e6) as i64
    });
    of_type.max().unwrap_or(i64::MIN)
}

fn push_starts(
    cluster: &Cluster,
    needs: &Needs,
    reservation: Option<&Reservation>,
    (job, types): (JobId, u64),
    heads: LensSet,
    (known, kept): (&mut Known, Option<&mut KeptStarts>),
    set: &mut CandidateSet,
) {
    let first = set.rows.len();
    let ask = Ask::of(cluster, job);
    if reservation.is_none()
        && let Some((_, rows)) = known.starts.iter().find(|(other, _)| *other == ask)
    {
        for row in rows.clone() {
            let mut candidate = set.rows[row].clone();
            (candidate.job, candidate.heads) = (Some(job), heads);
            set.rows.push(candidate);
        }
        return;
    }
    let gang = Gang::asked(cluster, job);
    if let Some(held) = reservation {
        let types = Beside::of(cluster, held).open_types(cluster, job, types);
        gangs::push_gang(cluster, needs, reservation, (job, types), gang, heads, set);
        return;
    }
    let kept = kept.filter(|_| ask.alone.is_none());
    match kept.and_then(|kept| Some((kept, cluster.num_place_changes(types)?))) {
        Some((kept, num_changes)) => {
            let asked = (ask, types, num_changes);
            if !kept.offer(asked, (job, heads), set) {
                gangs::push_gang(cluster, needs, None, (job, types), gang, heads, set);
                kept.keep(asked, first, set);
            }
        }
        None => gangs::push_gang(cluster, needs, None, (job, types), gang, heads, set),
    }
    known.starts.push((ask, first..set.rows.len()));
}

fn push_reserve(
    cluster: &Cluster,
    job: JobId,
    heads: LensSet,
    (ends, known): (&mut Ends, &mut Known),
    set: &mut CandidateSet,
) {
    let demand = cluster.demand(job);
    // Of what comes with GPUs only tasks count.
    let tasks = cluster.shape(demand.shape).tasks;
    let asked = (demand.types, demand.num_gpus, tasks);
    let place = known.fits.iter().find(|(key, _)| *key == asked);
    let fit = place.map(|(_, fit)| *fit).unwrap_or_else(|| {
        let found = ends.earliest_of_all(cluster, job);
        let fit = found.map(|(shadow, kind)| ((shadow - cluster.now()).as_secs_f64(), kind));
        known.fits.push((asked, fit));
        fit
    });
    if let Some((wait_s, kind)) = fit {
        let mut candidate = Candidate::new(CandidateKind::Reserve, Some(job));
        candidate.heads = heads;
        candidate.wait_to_fit_s = wait_s;
        candidate.reserved_type = Some(kind);
        set.rows.push(candidate);
    }
}

/// Holds GPUs back on the type where a job that fits now would end soonest if it waited for it.
fn push_wait(
    cluster: &Cluster,
    (job, types): (JobId, u64),
    heads: LensSet,
    (ends, alternatives): (&mut Ends, &mut KnownAlternatives),
    set: &mut CandidateSet,
) {
    if let Some(best) = alternatives.of(cluster, ends, job).first
        && types >> best.kind.0 & 1 == 0
        && best.wait_s > 0.0
        && best.wait_s < NEVER_S
    {
        let mut candidate = Candidate::new(CandidateKind::Reserve, Some(job));
        candidate.heads = heads;
        candidate.wait_to_fit_s = best.wait_s;
        candidate.reserved_type = Some(best.kind);
        set.rows.push(candidate);
    }
}

#[cfg(test)]
mod oracle_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::JobState;
    use crate::cluster::tests::{cluster_of, submit};
    use crate::cluster_spec::ClusterSpec;
    use crate::heuristics::by_name;
    use crate::ids::{NodeId, Time};
    use crate::pass::Pass;

    fn start(cluster: &mut Cluster, node: u32, gpus: u64, run_s: f64) -> JobId {
        let job = submit(cluster, gpus.count_ones(), run_s);
        let slice = Slice {
            node: NodeId(node),
            gpus,
        };
        cluster.start(job, [slice].into_iter().collect());
        job
    }

    fn needs_of(name: &str) -> Needs {
        by_name(name).unwrap().needs()
    }

    #[test]
    fn a_job_that_would_be_late_on_its_loose_placement_does_not_hide_the_next_one() {
        // Two nodes of 2 with one GPU busy in each until 100 s; the head wants all 4 and reserves 100 s. On two nodes
        // the job of 90 s would run for 90 / 0.854 = 105 s; the one of 50 s takes one GPU.
        let mut cluster = cluster_of(&ClusterSpec::uniform(2, 2, 2));
        start(&mut cluster, 0, 0b1, 100.0);
        start(&mut cluster, 1, 0b1, 100.0);
        submit(&mut cluster, 4, 10.0);
        let late = submit(&mut cluster, 2, 90.0);
        let next = submit(&mut cluster, 1, 50.0);
        Pass::new()
            .run(&mut cluster, by_name("easy").unwrap().as_mut())
            .unwrap();
        assert_eq!(cluster.job(late).state, JobState::Pending);
        assert_eq!(cluster.job(next).state, JobState::Running);
    }

    #[test]
    fn a_newcomer_stops_nobody_if_its_loose_placement_eats_up_what_it_would_gain() {
        // One GPU of each node ends at 50 s, the other at 200 s. At 10 s a newcomer of 2 GPUs x 140 s would end at 150 s
        // and the restart be paid for by 180 s; but on two nodes it would end at 10 + 164 s, 204 s with the restart.
        let preempts = |run_s: f64| {
            let mut cluster = cluster_of(&ClusterSpec::uniform(2, 2, 2));
            for node in [0, 1] {
                start(&mut cluster, node, 0b01, 50.0);
                start(&mut cluster, node, 0b10, 200.0);
            }
            cluster.advance(Time::from_secs_f64(10.0));
            submit(&mut cluster, 2, run_s);
            let mut pass = Pass::new();
            pass.open(&cluster, &needs_of("srtf"));
            let is_preempt = |row: &Candidate| row.kind == CandidateKind::Preempt;
            pass.candidates().iter().any(is_preempt)
        };
        assert!(!preempts(140.0));
        assert!(preempts(100.0));
    }

    #[test]
    fn an_idle_cluster_may_not_hold_and_a_busy_one_may() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(1, 4, 1));
        submit(&mut cluster, 2, 10.0);
        submit(&mut cluster, 2, 10.0);
        let (mut pass, needs) = (Pass::new(), Needs::full());
        pass.open(&cluster, &needs);
        assert!(!pass.candidates().is_admissible(0));
        assert!(!pass.observe(&cluster).mask()[0]);
        pass.act(&mut cluster, &needs, 1);
        assert!(pass.candidates().is_admissible(0));
        assert!(pass.observe(&cluster).mask()[0]);
    }

    #[test]
    fn a_long_queue_of_different_jobs_gives_no_more_candidates_than_the_bound() {
        let mut cluster = cluster_of(&ClusterSpec::uniform(64, 8, 8));
        for number in 0..200 {
            submit(
                &mut cluster,
                1 + number * 37 % 300,
                f64::from(1 + number * 71 % 997),
            );
        }
        let needs = Needs {
            heads: 32,
            fitting: 32,
            ..Needs::full()
        };
        let mut pass = Pass::new();
        pass.open(&cluster, &needs);
        assert_eq!(pass.candidates().len(), MAX_CANDIDATES);
        assert_eq!(pass.candidates().get(0).unwrap().kind, CandidateKind::Hold);
    }
}
