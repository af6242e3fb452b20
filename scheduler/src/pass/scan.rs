//! The first jobs under all wanted lenses in one look at each demand: what [`first_jobs`] finds lens by lens, faster.

use crate::cluster::{Cluster, Group, Head, OrderedSet};
use crate::ids::{JobId, Time};
use crate::lens::{Lens, SCAN_MAX, deficit_key, ratio_heads};
use crate::policy::Needs;

#[cfg(doc)]
use crate::lens::first_jobs;

/// A sort key and its job; smaller comes first.
type Row = (i64, JobId);

/// No row is worse.
const WORST: Row = (i64::MAX, JobId(u32::MAX));
/// No row is better.
const BEST: Row = (i64::MIN, JobId(0));

/// The best few rows of what was offered, best first.
#[derive(Clone, Debug)]
struct Best {
    rows: Vec<Row>,
    num: usize,
    /// The last row of a full list: what is not better is not wanted.
    bar: Row,
}

impl Default for Best {
    fn default() -> Best {
        Best {
            rows: Vec::new(),
            num: 0,
            bar: BEST,
        }
    }
}

impl Best {
    fn reset(&mut self, num: usize) {
        self.rows.clear();
        self.num = num;
        self.bar = if num == 0 { BEST } else { WORST };
    }

    #[inline(always)]
    fn wants(&self, row: Row) -> bool {
        row.0 < self.bar.0 || (row.0 == self.bar.0 && row.1 < self.bar.1)
    }

    /// False if the list is full and the row no better than its last one; what comes after it is then no better either.
    #[inline(always)]
    fn offer(&mut self, row: Row) -> bool {
        let wanted = self.wants(row);
        if wanted {
            self.insert(row);
        }
        wanted
    }

    fn insert(&mut self, row: Row) {
        if self.rows.len() < self.num {
            self.rows.push(row);
        }
        let rows = &mut self.rows[..];
        let Some(mut at) = rows.len().checked_sub(1) else {
            return;
        };
        while at > 0 && row < rows[at - 1] {
            rows[at] = rows[at - 1];
            at -= 1;
        }
        rows[at] = row;
        if rows.len() == self.num {
            self.bar = rows[self.num - 1];
        }
    }
}

/// First jobs of each lens; kept between calls for its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Scan {
    heads: [Best; Lens::ALL.len()],
    fitting: [Best; Lens::ALL.len()],
    open: Vec<Open>,
    arrival: Vec<JobId>,
    remaining: Vec<(Time, JobId)>,
    service: Vec<(u8, JobId)>,
}

/// A demand to look at.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Place among the cluster's heads.
    at: u32,
    fits: bool,
}

/// The lists of one lens, and who is never a head.
struct Lists<'a> {
    heads: &'a mut Best,
    fitting: &'a mut Best,
    skip: Option<JobId>,
}

impl Lists<'_> {
    /// Offers the rows of one demand, up to the first that no list wants.
    #[inline(always)]
    fn merge(&mut self, fits: bool, rows: impl Iterator<Item = Row>) {
        let (mut heads, mut fitting) = (true, fits);
        for row in rows {
            heads = heads && (Some(row.1) == self.skip || self.heads.offer(row));
            fitting = fitting && self.fitting.offer(row);
            if !(heads || fitting) {
                return;
            }
        }
    }

    /// Looks at all open demands, each with its `order` and the first job there. Keys of one demand ascend, so one whose
    /// first job no list wants has none that is wanted: most are passed over without a look at their orders.
    #[inline(always)]
    fn look<'c, T: Copy + Ord + 'c>(
        &mut self,
        cluster: &'c Cluster,
        open: &[Open],
        buffer: &mut Vec<T>,
        first: impl Fn(&Head) -> T,
        order: impl Fn(&'c Group) -> &'c OrderedSet<T>,
        row: impl Fn(&Head, T) -> Row,
    ) {
        let heads = cluster.heads();
        let num = self.fitting.num.max(self.heads.num + 1);
        for demand in open {
            let head = &heads[demand.at as usize];
            let best = row(head, first(head));
            if self.heads.wants(best) || demand.fits && self.fitting.wants(best) {
                let members = order(cluster.group(head)).first_few(num, buffer);
                self.merge(demand.fits, members.iter().map(|member| row(head, *member)));
            }
        }
    }
}

impl Scan {
    /// Looks at the whole queue; `skip` is never a head. Without `fitting`, only heads are looked for.
    pub(super) fn run(&mut self, cluster: &Cluster, needs: &Needs, skip: Option<JobId>, fitting: bool) {
        let num_fitting = if fitting { needs.fitting } else { 0 };
        self.open.clear();
        for (at, head) in (0..).zip(cluster.heads()) {
            if cluster.has_room(head.demand) {
                let fits = num_fitting > 0 && cluster.fitting_types(head.demand) != 0;
                if fits || needs.heads > 0 {
                    self.open.push(Open { at, fits });
                }
            }
        }
        for lens in Lens::ALL {
            let (heads, fitting) = (&mut self.heads[lens as usize], &mut self.fitting[lens as usize]);
            heads.reset(needs.heads);
            fitting.reset(num_fitting);
            if !needs.lenses.contains(lens) {
                continue;
            }
            let mut lists = Lists { heads, fitting, skip };
            let open = &self.open;
            let (arrival, remaining, service) = (&mut self.arrival, &mut self.remaining, &mut self.service);
            match lens {
                Lens::Arrival => {
                    let row = |_: &Head, job: JobId| (i64::from(job.0), job);
                    lists.look(
                        cluster,
                        open,
                        arrival,
                        |head| head.arrival,
                        |group| &group.arrival,
                        row,
                    );
                }
                Lens::Shortest => {
                    let row = |_: &Head, (rest, job): (Time, JobId)| (rest.0, job);
                    lists.look(
                        cluster,
                        open,
                        remaining,
                        |head| head.remaining,
                        |group| &group.remaining,
                        row,
                    );
                }
                Lens::SmallestGpuTime => {
                    let row = |head: &Head, (rest, job): (Time, JobId)| {
                        (rest.0.saturating_mul(i64::from(head.demand.num_gpus)), job)
                    };
                    lists.look(
                        cluster,
                        open,
                        remaining,
                        |head| head.remaining,
                        |group| &group.remaining,
                        row,
                    );
                }
                Lens::LeastAttained => {
                    let row = |_: &Head, (class, job): (u8, JobId)| (i64::from(class), job);
                    lists.look(
                        cluster,
                        open,
                        service,
                        |head| head.service,
                        |group| &group.service,
                        row,
                    );
                }
                Lens::WaitRatio => {
                    for demand in open {
                        let rows = ratio_heads(cluster, &cluster.heads()[demand.at as usize]);
                        lists.merge(demand.fits, rows.into_iter().flatten());
                    }
                }
                Lens::TenantDeficit => {
                    let row = |head: &Head, job: JobId| (deficit_key(cluster, head.demand.tenant), job);
                    lists.look(
                        cluster,
                        open,
                        arrival,
                        |head| head.arrival,
                        |group| &group.arrival,
                        row,
                    );
                }
                Lens::LargestGang => {
                    let row = |head: &Head, job: JobId| (-i64::from(head.demand.num_gpus), job);
                    lists.look(
                        cluster,
                        open,
                        arrival,
                        |head| head.arrival,
                        |group| &group.arrival,
                        row,
                    );
                }
            }
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
        for head in cluster.heads() {
            if num == 0 || cluster.fitting_types(head.demand) == 0 {
                continue;
            }
            let group = cluster.group(head);
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
            let gang = i64::from(head.demand.num_gpus);
            for lens in Lens::ALL {
                if !needs.lenses.contains(lens) {
                    continue;
                }
                let fitting = &mut self.fitting[lens as usize];
                let mut take = |key: i64, job: JobId| fitting.offer((key, job));
                // Each stops at the first job that is not wanted.
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
                    Lens::WaitRatio => {
                        let rows = ratio_heads(cluster, head).into_iter().flatten();
                        let mut rows = rows.filter(|(_, job)| allowed(*job));
                        rows.all(|(key, job)| take(key, job))
                    }
                    Lens::TenantDeficit => {
                        let key = deficit_key(cluster, head.demand.tenant);
                        self.arrival.iter().all(|job| take(key, *job))
                    }
                    Lens::LargestGang => self.arrival.iter().all(|job| take(-gang, *job)),
                };
            }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cluster::Demand;
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
            skip in proptest::option::of((0_u32..40).prop_map(JobId)),
        ) {
            let mut policy = by_name(name).unwrap();
            let needs = Needs { heads, fitting, ..Needs::full() };
            let (mut scan, mut found) = (Scan::default(), Vec::new());
            for event in events {
                happen(&mut cluster, event);
                for step in 0..2 {
                    scan.run(&cluster, &needs, skip, true);
                    for lens in Lens::ALL {
                        let room = |demand: &Demand| cluster.has_room(*demand);
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
