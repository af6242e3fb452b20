//! Which running jobs would make room for a pending one.
//!
//! Two orders: *shortest first* stops the jobs with the longest believed rest, and only where the newcomer ends so much
//! earlier that even the restart is paid for; *least attained* stops jobs that have received a class more of service.
//! A job that started at this very instant is never a victim, so a pass always ends.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::cluster::{Cluster, JobState, has_passed_first_class, service_class};
use crate::ids::{GpuTypeId, JobId, Time};

/// For whose sake jobs are stopped, and with that in which order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Newcomer {
    /// The jobs with the longest rest go first, as long as they end later than the newcomer, which ends in `own_end_s` at
    /// its best, and a restart besides.
    Shorter { own_end_s: f64 },
    /// The jobs that received most go first, as long as they are of a higher service class than the newcomer's.
    ServedLess { class: u8 },
}

/// Running jobs of each type in the two orders in which they would be stopped, gathered only as far as somebody looks, and
/// remembered while decisions are taken at one instant: a job that they stop or start is no victim any more, and where jobs
/// do not share GPUs nothing is said here of others changes.
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
    /// The first so many that have left the first service class, most attained service first.
    served: Vec<(f64, Running)>,
    rest: BinaryHeap<Attained>,
}

/// What stopping a running job would give back.
#[derive(Clone, Copy, Debug)]
struct Running {
    job: JobId,
    num_held: u32,
    /// Whether the GPUs are free for others then; asked again where that can change.
    whole: bool,
}

impl Running {
    fn of(cluster: &Cluster, job: JobId) -> Running {
        Running {
            job,
            num_held: cluster.job(job).num_held,
            whole: cluster.gives_back_whole_gpus(job),
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
        // Neighbours end at another time than before; and where free GPUs can be scattered, whom a gang would stop first
        // matters even if nobody need be stopped.
        if cluster.may_share() || cluster.capabilities().consolidated {
            self.forget_ends();
        }
    }

    fn forget_ends(&mut self) {
        self.types.iter_mut().for_each(|rows| rows.latest.clear());
    }

    fn of_type(&mut self, cluster: &Cluster, kind: GpuTypeId) -> &mut StoppableOfType {
        if self.types.len() < cluster.num_types() {
            self.types
                .resize_with(cluster.num_types(), StoppableOfType::default);
        }
        &mut self.types[kind.index()]
    }

    /// The job at a place of the order by believed end, from 0 on; none past the last.
    fn latest(&mut self, cluster: &Cluster, kind: GpuTypeId, place: usize) -> Option<(Time, Running)> {
        let latest = &mut self.of_type(cluster, kind).latest;
        while latest.len() <= place {
            let last = latest.last().map(|(end, running)| (*end, running.job));
            let (end, job) = cluster.running_of(kind).last_before(last.as_ref())?;
            latest.push((*end, Running::of(cluster, *job)));
        }
        Some(latest[place])
    }

    /// The job at a place of the order by attained service, from 0 on; none past the last.
    fn served(&mut self, cluster: &Cluster, kind: GpuTypeId, place: usize) -> Option<(f64, Running)> {
        let known = self.known >> kind.0 & 1 == 1;
        self.known |= 1 << kind.0;
        let StoppableOfType { served, rest, .. } = self.of_type(cluster, kind);
        if !known {
            served.clear();
            let mut rows = std::mem::take(rest).into_vec();
            rows.clear();
            rows.extend(cluster.stints_of(kind).iter().filter_map(|stint| {
                let (gpu_s, job) = (stint.attained_gpu_s_at(cluster.now()), stint.job);
                has_passed_first_class(gpu_s).then_some(Attained { gpu_s, job })
            }));
            *rest = BinaryHeap::from(rows);
        }
        while served.len() <= place {
            let Attained { gpu_s, job } = rest.pop()?;
            served.push((gpu_s, Running::of(cluster, job)));
        }
        Some(served[place])
    }
}

/// Writes the fewest first victims on `kind` that make room for a gang, and returns the believed end of the last job that
/// was looked at: under [`Newcomer::Shorter`] the earliest of all of them. None (and nothing written) if there
/// are not enough.
pub(crate) fn find_victims(
    cluster: &Cluster,
    (kind, wanted): (GpuTypeId, u32),
    newcomer: Newcomer,
    stoppable: &mut Stoppable,
    out: &mut Vec<JobId>,
) -> Option<Time> {
    let start = out.len();
    let now = cluster.now();
    let mut free = cluster.num_free_of(kind);
    if cluster.num_gpus_of(kind) < wanted {
        return None;
    }
    let may_share = cluster.may_share();
    let mut take = |victim: Running| {
        if free < wanted {
            let running = cluster.job(victim.job);
            let may_stop = running.run_start < now && running.state == JobState::Running;
            let whole = match may_share {
                true => cluster.gives_back_whole_gpus(victim.job),
                false => victim.whole,
            };
            if may_stop && whole {
                free += victim.num_held;
                out.push(victim.job);
            }
        }
        free >= wanted
    };
    let last = match newcomer {
        Newcomer::Shorter { own_end_s } => {
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
            .map_while(|place| stoppable.served(cluster, kind, place))
            .take_while(|(gpu_s, _)| service_class(*gpu_s) > class)
            .find(|(_, victim)| take(*victim))
            .map(|(_, victim)| cluster.job(victim.job).expected_finish),
    };
    if last.is_none() {
        out.truncate(start);
        return None;
    }
    // A large last victim can make earlier small ones superfluous: spare those that would lose least first.
    let mut position = out.len();
    while position > start {
        position -= 1;
        let held = cluster.job(out[position]).num_held;
        if free - held >= wanted {
            free -= held;
            out.remove(position);
        }
    }
    last
}

/// Shortest believed rest among the victims, s.
pub(crate) fn least_remaining_s(cluster: &Cluster, victims: &[JobId], now: Time) -> f64 {
    victims
        .iter()
        .map(|victim| cluster.job(*victim).remaining_s_at(now))
        .fold(f64::INFINITY, f64::min)
}
