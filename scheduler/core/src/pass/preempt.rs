//! Starts in place of running jobs: which of them would make room for a pending one, and whether that pays.
//!
//! Two orders: *shortest first* stops the jobs with the longest believed rest, and only where the newcomer ends so much
//! earlier that even the restart is paid for; *least attained* stops jobs that have received a class more of service.
//! A job that started at this very instant is never a victim, so a pass always ends.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::cache::Ask;
use super::reservation::believed_end;
use super::room::{Counted, Room};
use crate::candidate::{Candidate, CandidateKind, CandidateSet, Stopped};
use crate::cluster::{
    Cluster, JobState, PlacementFacts, TaskRoom, Template, has_passed_first_class, service_class,
};
use crate::cluster_spec::Tasks;
use crate::ids::{GpuTypeId, JobId, Time};
use crate::lens::{Lens, LensSet};
use crate::policy::Needs;

/// For whose sake jobs are stopped, and with that in which order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Newcomer {
    /// The jobs with the longest rest go first, as long as they end later than the newcomer, which ends in `own_end_s` at
    /// its best, and a restart besides.
    /// Without an end, whenever the newcomer ends: whether that pays is then up to the caller.
    Shorter { own_end_s: Option<f64> },
    /// The jobs that received most go first, as long as they are of a higher service class than the newcomer's.
    ServedLess { class: u8 },
}

/// Running jobs of each type in the two orders in which they would be stopped. They are gathered only as far as a search goes,
/// and remembered while decisions are taken at one instant: a job that these stop or start is no victim any more, and where jobs
/// do not share GPUs nothing that is said here of other jobs changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stoppable {
    types: Vec<StoppableOfType>,
    /// Bit mask of the types whose rest is filled.
    known: u64,
}

#[derive(Clone, Debug, Default)]
struct StoppableOfType {
    /// The first so many, latest believed end first.
    latest: Vec<(Time, Running)>,
    /// The first so many that have left the first service class with their classes, most attained service first.
    served: Vec<(u8, Running)>,
    rest: BinaryHeap<Attained>,
}

/// What stopping a running job would give back.
#[derive(Clone, Copy, Debug)]
struct Running {
    job: JobId,
    /// GPUs that are free for others then; 0 if it gives back no whole GPUs or may not be stopped, which a lease may not, nor a
    /// job that started at this instant. Where jobs may share GPUs, whether all of them become free is checked later.
    num_given: u32,
}

impl Running {
    fn of(cluster: &Cluster, id: JobId) -> Running {
        let job = cluster.job(id);
        let may_stop = job.run_start < cluster.now() && job.state == JobState::Running && !job.is_lease;
        let gives = may_stop && (cluster.may_share() || cluster.gives_back_whole_gpus(id));
        Running {
            job: id,
            num_given: if gives { job.num_held } else { 0 },
        }
    }
}

/// GPU·s that a running job has received. The greatest is the one that received most; of equals, the lowest id.
#[derive(Clone, Copy, Debug)]
struct Attained {
    gpu_s: f64,
    job: JobId,
}

impl Ord for Attained {
    fn cmp(&self, other: &Attained) -> Ordering {
        // Of numbers that are not negative, the bits stand in the numbers' order.
        let (own, others) = (self.gpu_s.to_bits(), other.gpu_s.to_bits());
        own.cmp(&others).then_with(|| other.job.cmp(&self.job))
    }
}

impl PartialOrd for Attained {
    fn partial_cmp(&self, other: &Attained) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Attained {
    fn eq(&self, other: &Attained) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Attained {}

impl Stoppable {
    /// Time has moved on.
    pub(crate) fn forget(&mut self) {
        self.known = 0;
        self.forget_ends();
    }

    /// The cluster has changed at the same instant.
    pub(super) fn changed(&mut self, cluster: &Cluster) {
        // Neighbours end at another time than before. Where free GPUs can be scattered, it matters which jobs a gang would stop
        // first even if none need be stopped.
        if cluster.may_share() || cluster.capabilities().consolidated {
            self.forget_ends();
        }
    }

    /// These jobs were stopped at the same instant: they have nothing more to give.
    pub(super) fn stopped(&mut self, jobs: &[JobId]) {
        for StoppableOfType { latest, served, .. } in &mut self.types {
            let latest = latest.iter_mut().map(|(_, running)| running);
            let served = served.iter_mut().map(|(_, running)| running);
            for running in latest.chain(served).filter(|running| jobs.contains(&running.job)) {
                running.num_given = 0;
            }
        }
    }

    fn forget_ends(&mut self) {
        self.types.iter_mut().for_each(|rows| rows.latest.clear());
    }

    /// The jobs of a type, with those that have received service gathered if they are wanted.
    fn of_type(&mut self, cluster: &Cluster, kind: GpuTypeId, served: bool) -> &mut StoppableOfType {
        if self.types.len() < cluster.num_types() {
            self.types
                .resize_with(cluster.num_types(), StoppableOfType::default);
        }
        let rows = &mut self.types[kind.index()];
        if served && self.known >> kind.0 & 1 == 0 {
            self.known |= 1 << kind.0;
            rows.gather_served(cluster, kind);
        }
        rows
    }
}

impl StoppableOfType {
    fn gather_served(&mut self, cluster: &Cluster, kind: GpuTypeId) {
        let StoppableOfType { served, rest, .. } = self;
        served.clear();
        let mut rows = std::mem::take(rest).into_vec();
        rows.clear();
        rows.extend(cluster.attained_service_of(kind).iter().filter_map(|service| {
            let (gpu_s, job) = (service.attained_gpu_s_at(cluster.now()), service.job);
            has_passed_first_class(gpu_s).then_some(Attained { gpu_s, job })
        }));
        *rest = BinaryHeap::from(rows);
    }

    /// The job at a place of the order by believed end, from 0 on; none past the last. All before it have been looked at.
    #[inline(always)]
    fn latest(&mut self, cluster: &Cluster, kind: GpuTypeId, place: usize) -> Option<(Time, Running)> {
        if place == self.latest.len() {
            self.next_latest(cluster, kind)?;
        }
        self.latest.get(place).copied()
    }

    #[inline(never)]
    fn next_latest(&mut self, cluster: &Cluster, kind: GpuTypeId) -> Option<()> {
        let last = self.latest.last().map(|(end, running)| (*end, running.job));
        let before = cluster.running_of(kind).last_before(last.as_ref());
        // A search rarely ends with the first: a few more cost less than to find the place again.
        let few = before.iter().rev().take(4);
        self.latest
            .extend(few.map(|(end, job)| (*end, Running::of(cluster, *job))));
        (!before.is_empty()).then_some(())
    }

    /// The job at a place of the order by attained service, as [`StoppableOfType::latest`].
    #[inline(always)]
    fn served(&mut self, cluster: &Cluster, place: usize) -> Option<(u8, Running)> {
        if place == self.served.len() {
            self.next_served(cluster)?;
        }
        self.served.get(place).copied()
    }

    #[inline(never)]
    fn next_served(&mut self, cluster: &Cluster) -> Option<()> {
        let Attained { gpu_s, job } = self.rest.pop()?;
        let running = Running::of(cluster, job);
        self.served.push((service_class(gpu_s), running));
        Some(())
    }
}

/// Writes the fewest first victims on `kind` that make room for a gang, and returns the believed end of the last job that
/// was looked at: under [`Newcomer::Shorter`] the earliest of all of them. None (and nothing written) if there
/// are not enough.
fn find_victims<R: Room>(
    cluster: &Cluster,
    kind: GpuTypeId,
    mut room: R,
    newcomer: Newcomer,
    stoppable: &mut Stoppable,
    out: &mut Vec<JobId>,
) -> Option<Time> {
    let start = out.len();
    let now = cluster.now();
    let may_share = cluster.may_share();
    let mut take = |victim: Running| {
        if !room.fits() && victim.num_given > 0 && (!may_share || cluster.gives_back_whole_gpus(victim.job)) {
            room.give(cluster, victim.job, victim.num_given);
            out.push(victim.job);
        }
        room.fits()
    };
    let is_served = matches!(newcomer, Newcomer::ServedLess { .. });
    let stoppable = stoppable.of_type(cluster, kind, is_served);
    let last = match newcomer {
        Newcomer::Shorter { own_end_s: None } => (0..)
            .map_while(|place| stoppable.latest(cluster, kind, place))
            .find(|(_, victim)| take(*victim))
            .map(|(end, _)| end),
        Newcomer::Shorter {
            own_end_s: Some(own_end_s),
        } => {
            let least_s = own_end_s + cluster.restart_cost_s_min();
            let rest_s = |end: Time| (end - now).as_secs_f64();
            (0..)
                .map_while(|place| stoppable.latest(cluster, kind, place))
                .take_while(|(end, _)| rest_s(*end) > least_s)
                .filter(|(end, victim)| rest_s(*end) > own_end_s + cluster.restart_cost_s(victim.job))
                .find(|(_, victim)| take(*victim))
                .map(|(end, _)| end)
        }
        Newcomer::ServedLess { class } => (0..)
            .map_while(|place| stoppable.served(cluster, place))
            .take_while(|(higher, _)| *higher > class)
            .find(|(_, victim)| take(*victim))
            .map(|(_, victim)| cluster.job(victim.job).expected_finish),
    };
    if last.is_none() {
        out.truncate(start);
        return None;
    }
    // A large last victim can make earlier small ones superfluous: spare those that would lose least first.
    let mut position = out.len();
    while room.has_more() && position > start {
        position -= 1;
        if room.take_back(cluster, out[position]) {
            out.remove(position);
        }
    }
    last
}

/// What was worked out for one newcomer and holds for all that ask for the same: victims and placements are ranges of the
/// candidate set, and shared.
#[derive(Clone, Debug, Default)]
pub(super) struct Overs {
    rows: Vec<((Ask, Newcomer), Option<Over>)>,
}

impl Overs {
    pub(super) fn forget(&mut self) {
        self.rows.clear();
    }
}

/// Running jobs that a gang would stop.
#[derive(Clone, Debug)]
struct Over {
    victims: Range<usize>,
    /// Believed end of the last job that was looked at.
    last_end: Time,
    /// Worked out for the first job that may.
    place: Option<Place>,
}

/// Where a gang would go over its victims, and what that does to them.
#[derive(Clone, Debug)]
struct Place {
    slices: Range<usize>,
    facts: PlacementFacts,
    stopped: Stopped,
    /// The newcomer must end before this for the restart of every victim to be paid for.
    end_max: Time,
}

impl Over {
    fn new(victims: Range<usize>, last_end: Time) -> Over {
        Over {
            victims,
            last_end,
            place: None,
        }
    }

    /// Where the gang would go; none if what is free with the victims' GPUs is too little.
    fn place(
        &mut self,
        cluster: &Cluster,
        job: JobId,
        kind: GpuTypeId,
        set: &mut CandidateSet,
    ) -> Option<&Place> {
        if self.place.is_none() {
            let CandidateSet { slices, victims, .. } = set;
            let start = slices.len();
            let request = &cluster.job(job).request;
            let (num_gpus, tasks) = (request.num_gpus, request.resources.tasks);
            let shape = cluster.shape(cluster.job(job).shape);
            let victims_of = &victims[self.victims.clone()];
            let placed = cluster.place_tasks_over(kind, (shape, num_gpus), victims_of, slices);
            let consolidated = cluster.capabilities().consolidated && tasks.is_any();
            let loose = consolidated && !cluster.is_consolidated(&slices[start..]);
            if placed && !loose {
                self.place = Some(Place::over(
                    cluster,
                    &victims[self.victims.clone()],
                    start..slices.len(),
                    cluster.job_facts(job, &slices[start..]),
                ));
            } else {
                slices.truncate(start);
            }
        }
        self.place.as_ref()
    }
}

impl Place {
    fn over(cluster: &Cluster, victims: &[JobId], slices: Range<usize>, facts: PlacementFacts) -> Place {
        let (mut num_gpus, mut remaining_s_min, mut end_max) = (0, f64::INFINITY, Time::MAX);
        for victim in victims {
            let job = cluster.job(*victim);
            num_gpus += job.num_held;
            remaining_s_min = f64::min(remaining_s_min, job.remaining_s_at(cluster.now()));
            let cost = Time::from_secs_f64(cluster.restart_cost_s(*victim));
            end_max = end_max.min(job.expected_finish - cost);
        }
        Place {
            slices,
            facts,
            stopped: Stopped {
                num_gpus,
                remaining_s_min: if victims.is_empty() { 0.0 } else { remaining_s_min },
            },
            end_max,
        }
    }
}

/// Offers to start a job in place of running ones where the policy may look at them so and it pays.
pub(super) fn push_preempts(
    cluster: &Cluster,
    needs: &Needs,
    job: JobId,
    heads: LensSet,
    (stoppable, overs): (&mut Stoppable, &mut Overs),
    set: &mut CandidateSet,
) {
    let (row, demand) = (cluster.job(job), cluster.demand(job));
    let class = row.request.class;
    let Some(kind) = cluster.preferred_type(Template::Fastest, class, demand.types) else {
        return;
    };
    let shape = cluster.shape(demand.shape);
    // What comes with GPUs is known node by node, for gangs of tasks.
    let is_counted = shape.is_gpus_alone() || shape.is_of_whole_gpus() && !shape.tasks.is_any();
    if !cluster.has_room(demand) || !is_counted {
        return;
    }
    let (first, ask, now) = (set.rows.len(), Ask::of(cluster, job), cluster.now());
    let own_end_s = row.remaining_s_at(now) / cluster.class(class).speed[kind.index()];
    let served_class = service_class(row.attained_gpu_s_at(now));
    // Where all restarts cost the same, the jobs that end last are the same for every newcomer: they are looked for once, and
    // each newcomer need only ask whether it ends before the first of them.
    let uniform = cluster.restarts_cost_the_same();
    for (lens, newcomer) in [
        (
            Lens::Shortest,
            Newcomer::Shorter {
                own_end_s: (!uniform).then_some(own_end_s),
            },
        ),
        (Lens::LeastAttained, Newcomer::ServedLess { class: served_class }),
    ] {
        if !needs.lenses.contains(lens) {
            continue;
        }
        let key = (ask, newcomer);
        let place = overs.rows.iter().position(|(other, _)| *other == key);
        let at = place.unwrap_or_else(|| {
            let start = set.victims.len();
            let (num_gpus, victims) = (demand.num_gpus, &mut set.victims);
            let last = match shape.tasks {
                Tasks::ANY => Counted::now(cluster, kind, num_gpus)
                    .and_then(|room| find_victims(cluster, kind, room, newcomer, stoppable, victims)),
                _ => {
                    let room = TaskRoom::now(cluster, kind, (shape, num_gpus));
                    find_victims(cluster, kind, room, newcomer, stoppable, victims)
                }
            };
            let over = last.map(|last_end| Over::new(start..set.victims.len(), last_end));
            overs.rows.push((key, over));
            overs.rows.len() - 1
        });
        let Some(over) = &mut overs.rows[at].1 else {
            continue;
        };
        let least_s = own_end_s + cluster.restart_cost_s_min();
        if lens == Lens::Shortest && (over.last_end - now).as_secs_f64() <= least_s {
            continue;
        }
        let victims = over.victims.clone();
        let Some(place) = over.place(cluster, job, kind, set) else {
            continue;
        };
        // On a loose placement it may end too late; two jobs would then stop each other in turn.
        let pays = |end: Time| victims.is_empty() || end < place.end_max;
        if lens == Lens::Shortest && !pays(believed_end(cluster, job, place.facts.rate)) {
            continue;
        }
        let same = |row: &Candidate| {
            row.victims == victims || set.victims[row.victims.clone()] == set.victims[victims.clone()]
        };
        let mut rows = set.rows[first..].iter();
        if rows.any(|row| row.kind == CandidateKind::Preempt && same(row)) {
            continue;
        }
        let mut candidate = Candidate::new(CandidateKind::Preempt, Some(job));
        candidate.facts = Some(place.facts);
        candidate.heads = heads;
        candidate.placement = place.slices.clone();
        candidate.victims = victims;
        candidate.stopped = place.stopped;
        set.rows.push(candidate);
    }
}
