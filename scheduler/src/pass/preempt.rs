//! Which running jobs would make room for a pending one.
//!
//! Two orders: *shortest first* stops the jobs with the longest believed rest, and only where the newcomer ends so much
//! earlier that even the restart is paid for; *least attained* stops jobs that have received a class more of service.
//! A job that started at this very instant is never a victim, so a pass always ends.

use crate::cluster::{Cluster, service_class};
use crate::ids::{GpuTypeId, JobId, Time};

/// Order in which victims are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VictimOrder {
    LongestRemaining,
    MostAttained,
}

/// Whether a job that ends at `end` ends so much before each of these running jobs that a restart is paid for.
pub(crate) fn pays(cluster: &Cluster, end: Time, victims: &[JobId]) -> bool {
    victims.iter().all(|victim| {
        let cost = Time::from_secs_f64(cluster.restart_cost_s(*victim));
        cluster.job(*victim).expected_finish > end + cost
    })
}

/// Running jobs of each type that have left the first service class, most attained service first; worked out at most once
/// for each state of the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Served {
    /// `[type]`, (attained service in GPU·s, job).
    rows: Vec<Vec<(f64, JobId)>>,
    /// Bit mask of the types whose rows are filled.
    known: u64,
}

impl Served {
    /// The cluster has changed.
    pub(crate) fn forget(&mut self) {
        self.known = 0;
    }

    fn of(&mut self, cluster: &Cluster, kind: GpuTypeId) -> &[(f64, JobId)] {
        if self.rows.len() < cluster.num_types() {
            self.rows.resize_with(cluster.num_types(), Vec::new);
        }
        let rows = &mut self.rows[kind.index()];
        if self.known >> kind.0 & 1 == 0 {
            self.known |= 1 << kind.0;
            rows.clear();
            rows.extend(cluster.running_of(kind).iter().filter_map(|(_, job)| {
                let attained_gpu_s = cluster.job(*job).attained_gpu_s_at(cluster.now());
                (service_class(attained_gpu_s) > 0).then_some((attained_gpu_s, *job))
            }));
            rows.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
        rows
    }
}

/// Writes the fewest first victims on `kind` that make room for `job`; false (and nothing written) if there are not enough.
pub(crate) fn find_victims(
    cluster: &Cluster,
    job: JobId,
    kind: GpuTypeId,
    order: VictimOrder,
    served: &mut Served,
    out: &mut Vec<JobId>,
) -> bool {
    let start = out.len();
    let now = cluster.now();
    let row = cluster.job(job);
    let wanted = row.request.num_gpus;
    let mut free = cluster.num_free_of(kind);
    if free + (cluster.num_gpus_of(kind) - free) < wanted {
        return false;
    }
    let speed = cluster.class(row.request.class).speed[kind.index()];
    let own_end_s = row.remaining_s_at(now) / speed;
    let mut take = |victim: JobId| {
        if free < wanted && cluster.job(victim).run_start < now && cluster.gives_back_whole_gpus(victim) {
            free += cluster.job(victim).request.num_gpus;
            out.push(victim);
        }
        free >= wanted
    };
    let enough = match order {
        VictimOrder::LongestRemaining => cluster
            .running_of(kind)
            .iter()
            .rev()
            .take_while(|(end, _)| (*end - now).as_secs_f64() > own_end_s + cluster.restart_cost_s_min())
            .filter(|(end, victim)| (*end - now).as_secs_f64() > own_end_s + cluster.restart_cost_s(*victim))
            .any(|(_, victim)| take(*victim)),
        VictimOrder::MostAttained => {
            let own = service_class(row.attained_gpu_s_at(now));
            let rows = served.of(cluster, kind).iter();
            rows.take_while(|(attained_gpu_s, _)| service_class(*attained_gpu_s) > own)
                .any(|(_, victim)| take(*victim))
        }
    };
    if !enough {
        out.truncate(start);
        return false;
    }
    // A large last victim can make earlier small ones superfluous: spare those that would lose least first.
    let mut position = out.len();
    while position > start {
        position -= 1;
        let held = cluster.job(out[position]).request.num_gpus;
        if free - held >= wanted {
            free -= held;
            out.remove(position);
        }
    }
    true
}

/// Shortest believed rest among the victims, s.
pub(crate) fn least_remaining_s(cluster: &Cluster, victims: &[JobId], now: Time) -> f64 {
    victims
        .iter()
        .map(|victim| cluster.job(*victim).remaining_s_at(now))
        .fold(f64::INFINITY, f64::min)
}
