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

/// Running jobs of each type that have left the first service class, most attained service first. Gathered once for each
/// instant and sorted only as far as somebody looks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Served {
    types: Vec<ServedOfType>,
    /// Bit mask of the types whose rows are filled.
    known: u64,
}

#[derive(Clone, Debug, Default)]
struct ServedOfType {
    /// The first so many in order.
    sorted: Vec<Attained>,
    rest: BinaryHeap<Attained>,
}

/// GPU·s that a running job has received. The greatest is the one that received most; of equals, the lowest id.
#[derive(Clone, Copy, Debug)]
struct Attained {
    gpu_s: f64,
    job: JobId,
}

impl Ord for Attained {
    fn cmp(&self, other: &Attained) -> Ordering {
        self.gpu_s
            .total_cmp(&other.gpu_s)
            .then_with(|| other.job.cmp(&self.job))
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

impl Served {
    /// Time has moved on. What is known stays right while decisions are taken at one instant: a job that they stop or
    /// start is no victim any more.
    pub(crate) fn forget(&mut self) {
        self.known = 0;
    }

    /// The job at a place of the order, from 0 on; none past the last.
    fn get(&mut self, cluster: &Cluster, kind: GpuTypeId, place: usize) -> Option<Attained> {
        if self.known >> kind.0 & 1 == 0 {
            self.fill(cluster, kind);
        }
        let ServedOfType { sorted, rest } = &mut self.types[kind.index()];
        while sorted.len() <= place {
            sorted.push(rest.pop()?);
        }
        Some(sorted[place])
    }

    fn fill(&mut self, cluster: &Cluster, kind: GpuTypeId) {
        if self.types.len() < cluster.num_types() {
            self.types.resize_with(cluster.num_types(), ServedOfType::default);
        }
        self.known |= 1 << kind.0;
        let ServedOfType { sorted, rest } = &mut self.types[kind.index()];
        sorted.clear();
        let mut rows = std::mem::take(rest).into_vec();
        rows.clear();
        rows.extend(cluster.running_of(kind).iter().filter_map(|(_, job)| {
            let gpu_s = cluster.job(*job).attained_gpu_s_at(cluster.now());
            has_passed_first_class(gpu_s).then_some(Attained { gpu_s, job: *job })
        }));
        *rest = BinaryHeap::from(rows);
    }
}

/// Writes the fewest first victims on `kind` that make room for a gang, and returns the believed end of the last job that
/// was looked at: under [`Newcomer::Shorter`] the earliest of all of them. None (and nothing written) if there
/// are not enough.
pub(crate) fn find_victims(
    cluster: &Cluster,
    (kind, wanted): (GpuTypeId, u32),
    newcomer: Newcomer,
    served: &mut Served,
    out: &mut Vec<JobId>,
) -> Option<Time> {
    let start = out.len();
    let now = cluster.now();
    let mut free = cluster.num_free_of(kind);
    if cluster.num_gpus_of(kind) < wanted {
        return None;
    }
    let mut take = |victim: JobId| {
        let running = cluster.job(victim);
        let may_stop = running.run_start < now && running.state == JobState::Running;
        if free < wanted && may_stop && cluster.gives_back_whole_gpus(victim) {
            free += running.num_held;
            out.push(victim);
        }
        free >= wanted
    };
    let last = match newcomer {
        Newcomer::Shorter { own_end_s } => {
            let least_s = own_end_s + cluster.restart_cost_s_min();
            let rest_s = |end: Time| (end - now).as_secs_f64();
            cluster
                .running_of(kind)
                .iter()
                .rev()
                .take_while(|(end, _)| rest_s(*end) > least_s)
                .filter(|(end, victim)| rest_s(*end) > own_end_s + cluster.restart_cost_s(*victim))
                .find(|(_, victim)| take(*victim))
                .map(|(end, _)| *end)
        }
        Newcomer::ServedLess { class } => (0..)
            .map_while(|place| served.get(cluster, kind, place))
            .take_while(|attained| service_class(attained.gpu_s) > class)
            .find(|attained| take(attained.job))
            .map(|attained| cluster.job(attained.job).expected_finish),
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
