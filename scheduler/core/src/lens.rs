//! Lenses: the orders under which a scheduler looks at the queue.
//!
//! Every classic heuristic takes the first job under one of them, so a candidate set that holds the first few jobs of
//! each lens holds every classic heuristic's choice, and its size does not grow with the queue.

use crate::cluster::{Cluster, Demand, Head, Kept, Order, Rekey, Row, service_class};
use crate::ids::{JobId, TenantId, Time};

/// An order of the pending jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Lens {
    /// First come, first served.
    Arrival = 0,
    /// Shortest believed remaining time.
    Shortest = 1,
    /// Smallest believed remaining GPU-time.
    SmallestGpuTime = 2,
    /// Least attained service: the lowest Tiresias service class first, arrival within a class.
    LeastAttained = 3,
    /// Highest response ratio (wait + remaining) / remaining, among each demand's oldest and shortest job.
    WaitRatio = 4,
    /// Tenants that use least of their quota first, then arrival.
    TenantDeficit = 5,
    /// Largest gang first, then arrival.
    LargestGang = 6,
}

impl Lens {
    /// All lenses.
    pub const ALL: [Lens; 7] = [
        Lens::Arrival,
        Lens::Shortest,
        Lens::SmallestGpuTime,
        Lens::LeastAttained,
        Lens::WaitRatio,
        Lens::TenantDeficit,
        Lens::LargestGang,
    ];

    /// The order that the queue keeps for this lens; none where keys change while jobs wait.
    #[inline]
    pub(crate) fn order(self) -> Option<Order> {
        match self {
            Lens::Arrival => Some(Order::Arrival),
            Lens::Shortest => Some(Order::Remaining),
            Lens::SmallestGpuTime => Some(Order::GpuTime),
            Lens::LeastAttained => Some(Order::Service),
            Lens::LargestGang => Some(Order::LargestGang),
            Lens::WaitRatio | Lens::TenantDeficit => None,
        }
    }

    /// The order, kept of each demand, in which its jobs stand under this lens; none for response ratios.
    #[inline]
    pub(crate) fn kept(self) -> Option<Kept> {
        match self {
            Lens::TenantDeficit => Some(Kept::Arrival),
            lens => lens.order().map(|order| order.within(1).0),
        }
    }

    /// How the jobs of one demand stand under this lens: as they do in an order that is kept, with keys made from those
    /// there. None for response ratios, of which only two are looked at; see [`ratio_heads`].
    #[inline]
    pub(crate) fn within(self, cluster: &Cluster, demand: &Demand) -> Option<(Kept, Rekey)> {
        match self {
            Lens::TenantDeficit => Some((Kept::Arrival, Rekey::all(deficit_key(cluster, demand.tenant)))),
            lens => lens.order().map(|order| order.within(demand.num_gpus)),
        }
    }
}

/// A set of lenses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LensSet(u8);

impl LensSet {
    /// No lens.
    pub const NONE: LensSet = LensSet(0);
    /// Every lens.
    pub const ALL: LensSet = LensSet(0x7f);

    /// The set of one lens.
    #[must_use]
    pub const fn of(lens: Lens) -> LensSet {
        LensSet(1 << lens as u8)
    }
    /// This set and one lens more.
    #[must_use]
    pub const fn with(self, lens: Lens) -> LensSet {
        LensSet(self.0 | 1 << lens as u8)
    }
    /// What is in either set.
    #[must_use]
    pub const fn union(self, other: LensSet) -> LensSet {
        LensSet(self.0 | other.0)
    }
    /// Whether the lens is in the set.
    #[must_use]
    pub const fn contains(self, lens: Lens) -> bool {
        self.0 >> lens as u8 & 1 == 1
    }
}

/// Jobs of one demand that are looked at beyond those taken, when a reservation refuses some of them. Slurm's backfill
/// has the same kind of bound (`bf_max_job_test`, default 500).
pub(crate) const SCAN_MAX: usize = 500;

/// Writes the first `num` jobs of the queue under a lens as (key, job), best first, among demands that pass `demand_ok`
/// and jobs that pass `job_ok`.
pub(crate) fn first_jobs(
    cluster: &Cluster,
    lens: Lens,
    num: usize,
    demand_ok: impl Fn(&Demand) -> bool,
    mut job_ok: impl FnMut(JobId) -> bool,
    out: &mut Vec<Row>,
) {
    out.clear();
    if num == 0 {
        return;
    }
    for head in cluster.queue().heads() {
        let (demand, group) = (&head.demand, cluster.queue().group(head.row));
        if !demand_ok(demand) {
            continue;
        }
        let mut take = |jobs: &mut dyn Iterator<Item = Row>| {
            out.extend(jobs.take(SCAN_MAX).filter(|(_, job)| job_ok(*job)).take(num));
        };
        match lens.within(cluster, demand) {
            Some((kept, rekey)) => take(&mut group.rows(kept).iter().map(|waiting| rekey.of(waiting.row()))),
            None => take(&mut ratio_heads(cluster, head).into_iter().flatten()),
        }
    }
    out.sort_unstable();
    out.truncate(num);
}

/// The first job of the queue under a lens among demands whose tenants have room for them, as [`first_jobs`] finds it.
pub(crate) fn first_with_room(cluster: &Cluster, lens: Lens) -> Option<JobId> {
    let Some(order) = lens.order() else {
        let mut first = Vec::new();
        first_jobs(
            cluster,
            lens,
            1,
            |demand| cluster.has_room(*demand),
            |_| true,
            &mut first,
        );
        return first.first().map(|(_, job)| *job);
    };
    let mut firsts = cluster.queue().firsts(order).iter();
    if cluster.borrowing() {
        return firsts.next().map(|first| first.job);
    }
    firsts
        .map(|first| first.job)
        .find(|job| cluster.has_room(cluster.demand(*job)))
}

/// The two oldest pending jobs, as far as there are so many.
pub(crate) fn oldest_two(cluster: &Cluster) -> [Option<JobId>; 2] {
    let mut firsts = cluster.queue().firsts(Order::Arrival).iter();
    let Some(oldest) = firsts.next() else {
        return [None; 2];
    };
    let mut own = cluster.queue().group(oldest.row).rows(Kept::Arrival).iter();
    let own = own.nth(1).map(|waiting| waiting.row().1);
    let second = match (firsts.next().map(|first| first.job), own) {
        (Some(other), Some(own)) => Some(other.min(own)),
        (other, own) => other.or(own),
    };
    [Some(oldest.job), second]
}

/// The key of a pending job under a lens, as [`first_jobs`] orders it; smaller comes first.
pub(crate) fn lens_key(cluster: &Cluster, lens: Lens, id: JobId) -> i64 {
    let job = cluster.job(id);
    let remaining = || Time::from_secs_f64(job.remaining_s_at(cluster.now())).0;
    let gang = i64::from(job.request.num_gpus);
    match lens {
        Lens::Arrival => i64::from(id.0),
        Lens::Shortest => remaining(),
        Lens::SmallestGpuTime => remaining().saturating_mul(gang),
        Lens::LeastAttained => i64::from(service_class(job.attained_gpu_s)),
        Lens::WaitRatio => ratio_key(cluster, id),
        Lens::TenantDeficit => deficit_key(cluster, job.request.tenant),
        Lens::LargestGang => -gang,
    }
}

pub(crate) fn deficit_key(cluster: &Cluster, tenant: TenantId) -> i64 {
    (cluster.tenant(tenant).use_ratio() * 1e9) as i64
}

/// Negated response ratio in millionths.
fn ratio_key(cluster: &Cluster, id: JobId) -> i64 {
    let job = cluster.job(id);
    let wait_s = (cluster.now() - job.submit).as_secs_f64();
    let rest_s = job.remaining_s_at(cluster.now());
    -((wait_s + rest_s) / rest_s * 1e6) as i64
}

/// The oldest and the shortest job of a demand with their negated response ratios, best first.
#[inline]
pub(crate) fn ratio_heads(cluster: &Cluster, head: &Head) -> [Option<Row>; 2] {
    let ((_, oldest), (_, shortest)) = (head.first(Kept::Arrival), head.first(Kept::Remaining));
    let old = (ratio_key(cluster, oldest), oldest);
    if shortest == oldest {
        return [Some(old), None];
    }
    let short = (ratio_key(cluster, shortest), shortest);
    [Some(old.min(short)), Some(old.max(short))]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::heuristics::by_name;
    use crate::heuristics::tests::world::{cluster, events, happen, pending, watched_pass};

    /// Sorts the whole queue; the slow obvious version of [`first_jobs`].
    fn slow_first_jobs(cluster: &Cluster, lens: Lens, num: usize) -> Vec<(i64, JobId)> {
        let is_extreme = |id: &JobId| {
            let same = |other: &JobId| cluster.demand(*other) == cluster.demand(*id);
            let same: Vec<JobId> = pending(cluster).into_iter().filter(same).collect();
            let shortest = same
                .iter()
                .min_by_key(|id| (lens_key(cluster, Lens::Shortest, **id), **id));
            same.first() == Some(id) || shortest == Some(id)
        };
        let mut jobs: Vec<(i64, JobId)> = pending(cluster)
            .into_iter()
            .filter(|id| cluster.has_room(cluster.demand(*id)))
            .filter(|id| lens != Lens::WaitRatio || is_extreme(id))
            .map(|id| (lens_key(cluster, lens, id), id))
            .collect();
        jobs.sort_unstable();
        jobs.truncate(num);
        jobs
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_first_jobs_of_a_lens_are_those_of_the_sorted_queue(
            mut cluster in cluster(2, any::<bool>().boxed()),
            events in events(60),
            name in proptest::sample::select(vec!["fifo", "las", "srtf"]),
            num in 1_usize..6,
        ) {
            let mut policy = by_name(name).unwrap();
            let mut found = Vec::new();
            for event in events {
                happen(&mut cluster, event);
                watched_pass(&mut cluster, policy.as_mut(), |_, _| ());
                for lens in Lens::ALL {
                    first_jobs(&cluster, lens, num, |demand| cluster.has_room(*demand), |_| true, &mut found);
                    prop_assert_eq!(&found, &slow_first_jobs(&cluster, lens, num), "{:?}", lens);
                }
                for lens in Lens::ALL {
                    first_jobs(&cluster, lens, 1, |demand| cluster.has_room(*demand), |_| true, &mut found);
                    let first = found.first().map(|(_, job)| *job);
                    prop_assert_eq!(first_with_room(&cluster, lens), first, "{:?}", lens);
                }
                first_jobs(&cluster, Lens::Arrival, 2, |_| true, |_| true, &mut found);
                let oldest: Vec<JobId> = oldest_two(&cluster).into_iter().flatten().collect();
                prop_assert!(found.iter().map(|(_, job)| job).eq(&oldest));
            }
        }
    }
}
