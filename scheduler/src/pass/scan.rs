//! The first jobs under all wanted lenses in one look at each demand: what [`first_jobs`] finds lens by lens, faster.

use crate::cluster::{Cluster, Demand, Group};
use crate::ids::{JobId, Time};
use crate::lens::{Lens, LensSet, SCAN_MAX, deficit_key, ratio_heads};
use crate::policy::Needs;

#[cfg(doc)]
use crate::lens::first_jobs;

/// The best few rows of what was offered, best first.
#[derive(Clone, Debug, Default)]
struct Best {
    rows: Vec<(i64, JobId)>,
    num: usize,
}

impl Best {
    fn reset(&mut self, num: usize) {
        self.rows.clear();
        self.num = num;
    }

    /// False if the list is full and the row no better than its last one; what comes after it is then no better either.
    fn offer(&mut self, row: (i64, JobId)) -> bool {
        if self.rows.len() == self.num {
            if self.rows.last().is_none_or(|last| row >= *last) {
                return false;
            }
            self.rows.pop();
        }
        let at = self.rows.iter().rposition(|other| *other < row);
        self.rows.insert(at.map_or(0, |at| at + 1), row);
        true
    }
}

/// First jobs of each lens; kept between calls for its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Scan {
    heads: [Best; Lens::ALL.len()],
    fitting: [Best; Lens::ALL.len()],
    arrival: Vec<JobId>,
    remaining: Vec<(Time, JobId)>,
    service: Vec<(u8, JobId)>,
    ratio: [Option<(i64, JobId)>; 2],
    /// Orders under which a tenant's first job has no room. `[tenant]`
    blocked: Vec<LensSet>,
}

impl Scan {
    /// Looks at the whole queue; `skip` is never a head. Without `fitting`, only heads are looked for.
    pub(super) fn run(&mut self, cluster: &Cluster, needs: &Needs, skip: Option<JobId>, fitting: bool) {
        self.heads.iter_mut().for_each(|best| best.reset(needs.heads));
        let num_fitting = if fitting { needs.fitting } else { 0 };
        self.fitting.iter_mut().for_each(|best| best.reset(num_fitting));
        // One head more than wanted, where one is skipped.
        let num_heads = if needs.heads == 0 {
            0
        } else {
            needs.heads + usize::from(skip.is_some())
        };
        self.find_blocked(cluster, needs);
        for (demand, group) in cluster.groups() {
            if !cluster.has_room(*demand) {
                continue;
            }
            let blocked = self.blocked.get(demand.tenant.index());
            let blocked = blocked.copied().unwrap_or(LensSet::NONE);
            let fits = num_fitting > 0 && cluster.fitting_types(*demand) != 0;
            let num = num_heads.max(if fits { num_fitting } else { 0 });
            if num == 0 {
                continue;
            }
            self.arrival.clear();
            self.arrival.extend(group.arrival.iter().take(num));
            self.remaining.clear();
            self.remaining.extend(group.remaining.iter().take(num));
            self.service.clear();
            match (group.service.first(), group.service.last()) {
                // Jobs of one class go by arrival.
                (Some((class, _)), Some((last, _))) if class == last => {
                    self.service.extend(self.arrival.iter().map(|job| (*class, *job)));
                }
                _ => self.service.extend(group.service.iter().take(num)),
            }
            if needs.lenses.contains(Lens::WaitRatio) {
                self.ratio = ratio_heads(cluster, group);
            }
            let heads = (needs.heads > 0, blocked);
            self.offer(cluster, needs, demand, heads, fits, skip);
        }
    }

    /// Finds the tenants whose first job of an order has no room.
    fn find_blocked(&mut self, cluster: &Cluster, needs: &Needs) {
        self.blocked.clear();
        if !needs.tenants_in_order || cluster.borrowing() {
            return;
        }
        self.blocked.resize(cluster.tenants().len(), LensSet::NONE);
        for lens in Lens::ALL.into_iter().filter(|lens| needs.lenses.contains(*lens)) {
            // Demands of one tenant follow each other.
            let mut first: Option<((i64, JobId), &Demand)> = None;
            for (demand, group) in cluster.groups() {
                let Some(row) = first_of(cluster, lens, demand, group) else {
                    continue;
                };
                match &mut first {
                    Some((known, other)) if other.tenant == demand.tenant => {
                        if row < *known {
                            (*known, *other) = (row, demand);
                        }
                    }
                    _ => {
                        self.block(cluster, lens, first.map(|(_, demand)| demand));
                        first = Some((row, demand));
                    }
                }
            }
            self.block(cluster, lens, first.map(|(_, demand)| demand));
        }
    }

    fn block(&mut self, cluster: &Cluster, lens: Lens, first: Option<&Demand>) {
        if let Some(demand) = first.filter(|demand| !cluster.has_room(**demand)) {
            let lenses = &mut self.blocked[demand.tenant.index()];
            *lenses = lenses.with(lens);
        }
    }

    /// Looks for fitting jobs among those that `allowed` lets through; the heads stay as they are.
    pub(super) fn run_allowed(
        &mut self,
        cluster: &Cluster,
        needs: &Needs,
        mut allowed: impl FnMut(JobId) -> bool,
    ) {
        let num = needs.fitting;
        self.fitting.iter_mut().for_each(|best| best.reset(num));
        for (demand, group) in cluster.groups() {
            if num == 0 || cluster.fitting_types(*demand) == 0 {
                continue;
            }
            self.arrival.clear();
            let rows = group.arrival.iter().take(SCAN_MAX);
            self.arrival.extend(rows.filter(|job| allowed(**job)).take(num));
            self.remaining.clear();
            let rows = group.remaining.iter().take(SCAN_MAX);
            self.remaining
                .extend(rows.filter(|(_, job)| allowed(*job)).take(num));
            self.service.clear();
            if needs.lenses.contains(Lens::LeastAttained) {
                let rows = group.service.iter().take(SCAN_MAX);
                self.service
                    .extend(rows.filter(|(_, job)| allowed(*job)).take(num));
            }
            if needs.lenses.contains(Lens::WaitRatio) {
                self.ratio = ratio_heads(cluster, group).map(|row| row.filter(|(_, job)| allowed(*job)));
            }
            self.offer(cluster, needs, demand, (false, LensSet::NONE), true, None);
        }
    }

    /// Offers the gathered rows of one demand to the lists of every wanted lens. Always inline: it runs for every demand,
    /// and a call was measured to cost a tenth of a whole enumeration.
    #[inline(always)]
    fn offer(
        &mut self,
        cluster: &Cluster,
        needs: &Needs,
        demand: &Demand,
        (heads_open, blocked): (bool, LensSet),
        fitting_open: bool,
        skip: Option<JobId>,
    ) {
        let gang = i64::from(demand.num_gpus);
        for lens in Lens::ALL {
            if !needs.lenses.contains(lens) {
                continue;
            }
            let (heads, fitting) = (&mut self.heads[lens as usize], &mut self.fitting[lens as usize]);
            let (mut head_open, mut fitting_open) = (heads_open && !blocked.contains(lens), fitting_open);
            let mut take = |key: i64, job: JobId| {
                if head_open && Some(job) != skip {
                    head_open = heads.offer((key, job));
                }
                fitting_open = fitting_open && fitting.offer((key, job));
                head_open || fitting_open
            };
            // Each stops at the first job that no list wants.
            let _ = match lens {
                Lens::Arrival => self.arrival.iter().all(|job| take(i64::from(job.0), *job)),
                Lens::Shortest => self.remaining.iter().all(|(rest, job)| take(rest.0, *job)),
                Lens::SmallestGpuTime => {
                    let mut rows = self.remaining.iter();
                    rows.all(|(rest, job)| take(rest.0.saturating_mul(gang), *job))
                }
                Lens::LeastAttained => {
                    let mut rows = self.service.iter();
                    rows.all(|(class, job)| take(i64::from(*class), *job))
                }
                Lens::WaitRatio => self.ratio.iter().flatten().all(|(key, job)| take(*key, *job)),
                Lens::TenantDeficit => {
                    let key = deficit_key(cluster, demand.tenant);
                    self.arrival.iter().all(|job| take(key, *job))
                }
                Lens::LargestGang => self.arrival.iter().all(|job| take(-gang, *job)),
            };
        }
    }

    /// First jobs of a lens, whether they fit or not.
    pub(super) fn heads(&self, lens: Lens) -> &[(i64, JobId)] {
        &self.heads[lens as usize].rows
    }

    /// First jobs of a lens that fit.
    pub(super) fn fitting(&self, lens: Lens) -> &[(i64, JobId)] {
        &self.fitting[lens as usize].rows
    }
}

/// The first job of a demand under an order, with its key.
fn first_of(cluster: &Cluster, lens: Lens, demand: &Demand, group: &Group) -> Option<(i64, JobId)> {
    let gang = i64::from(demand.num_gpus);
    let oldest = group.arrival.first().copied();
    match lens {
        Lens::Arrival => oldest.map(|job| (i64::from(job.0), job)),
        Lens::Shortest => group.remaining.first().map(|(rest, job)| (rest.0, *job)),
        Lens::SmallestGpuTime => {
            let first = group.remaining.first();
            first.map(|(rest, job)| (rest.0.saturating_mul(gang), *job))
        }
        Lens::LeastAttained => group
            .service
            .first()
            .map(|(class, job)| (i64::from(*class), *job)),
        Lens::WaitRatio => ratio_heads(cluster, group)[0],
        Lens::TenantDeficit => oldest.map(|job| (deficit_key(cluster, demand.tenant), job)),
        Lens::LargestGang => oldest.map(|job| (-gang, job)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::heuristics::by_name;
    use crate::heuristics::tests::world::{cluster, events, happen, watched_pass};
    use crate::lens::first_jobs;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn one_look_at_the_queue_finds_what_the_lenses_find_one_by_one(
            mut cluster in cluster(2, any::<bool>().boxed()),
            events in events(60),
            name in proptest::sample::select(vec!["fifo", "las", "srtf"]),
            heads in 0_usize..4,
            fitting in 0_usize..4,
            in_order in any::<bool>(),
            skip in proptest::option::of((0_u32..40).prop_map(JobId)),
        ) {
            let mut policy = by_name(name).unwrap();
            let needs = Needs { heads, fitting, tenants_in_order: in_order, ..Needs::full() };
            let (mut scan, mut found) = (Scan::default(), Vec::new());
            for event in events {
                happen(&mut cluster, event);
                for step in 0..2 {
                    scan.run(&cluster, &needs, skip, true);
                    for lens in Lens::ALL {
                        // The slow way to see whether the first job of the tenant has room.
                        let blocked = |demand: &Demand| {
                            let own = |other: &Demand| other.tenant == demand.tenant;
                            let mut first = Vec::new();
                            first_jobs(&cluster, lens, 1, own, |_| true, &mut first);
                            in_order && first.iter().any(|(_, job)| !cluster.has_room(cluster.demand(*job)))
                        };
                        let room = |demand: &Demand| cluster.has_room(*demand) && !blocked(demand);
                        let fits = |demand: &Demand| cluster.fitting_types(*demand) != 0;
                        first_jobs(&cluster, lens, heads, room, |job| Some(job) != skip, &mut found);
                        prop_assert_eq!(scan.heads(lens), &found, "heads, {:?}", lens);
                        first_jobs(&cluster, lens, fitting, fits, |_| true, &mut found);
                        prop_assert_eq!(scan.fitting(lens), &found, "fitting, {:?}", lens);
                    }
                    let odd = |job: JobId| job.0 % 2 == 1;
                    scan.run_allowed(&cluster, &needs, odd);
                    for lens in Lens::ALL {
                        let fits = |demand: &Demand| cluster.fitting_types(*demand) != 0;
                        first_jobs(&cluster, lens, fitting, fits, odd, &mut found);
                        prop_assert_eq!(scan.fitting(lens), &found, "allowed, {:?}", lens);
                    }
                    if step == 0 {
                        watched_pass(&mut cluster, policy.as_mut(), |_, _| ());
                    }
                }
            }
        }
    }
}
