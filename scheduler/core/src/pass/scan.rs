//! The first jobs under all wanted lenses in one look at each demand: what [`first_jobs`] finds lens by lens, faster.

use super::cache::{Ratios, Verdicts};
use super::top_k::TopK;
use crate::cluster::{Cluster, Demand, Head, Kept, Order, Queue, Rekey, Row, Waiting, rest_weight};
use crate::ids::{JobId, TenantId};
use crate::lens::{Lens, LensSet, SCAN_MAX, deficit_key, ratio_heads};
use crate::policy::Needs;

#[cfg(doc)]
use crate::lens::first_jobs;

/// First jobs of each lens; kept between calls for its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Scan {
    heads: [TopK; Lens::ALL.len()],
    fitting: [TopK; Lens::ALL.len()],
    /// What is open to each demand, by the row of its group.
    open: Vec<Open>,
    buffer: Vec<Waiting>,
    /// First jobs of one demand that a reservation lets through, in each order that is kept.
    let_through: [Vec<Row>; 3],
    /// Orders under which a tenant's first job has no room; empty where that blocks no job. `[tenant]`
    blocked: Vec<LensSet>,
    /// The open demands of one order, less those of blocked tenants.
    unblocked: Vec<Open>,
    ratios: Ratios,
    /// What was found out about jobs in one look behind a reservation: each is asked about once, and in three orders.
    verdicts: Verdicts,
}

/// Whether a demand has room in its tenant's quota, and whether it fits now.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    room: bool,
    fits: bool,
}

/// The lists of one lens, and the job that is never a head.
struct Lists<'a> {
    heads: &'a mut TopK,
    fitting: &'a mut TopK,
    skip: Option<JobId>,
    open: &'a [Open],
    /// Demands that fit.
    num_fits: usize,
    /// Jobs that are enough to fill each list; one of the heads may be the one that is never a head.
    num_heads: usize,
    num_fitting: usize,
}

impl Lists<'_> {
    #[inline(always)]
    fn want(&self, open: Open, row: Row) -> bool {
        open.room && self.heads.wants(row) || open.fits && self.fitting.wants(row)
    }

    /// Offers the ascending rows of one demand, up to the first that no list wants.
    #[inline(always)]
    fn merge(&mut self, open: Open, rows: impl Iterator<Item = Row>) {
        let (mut heads, mut fitting) = (open.room, open.fits);
        for row in rows {
            heads = heads && (Some(row.1) == self.skip || self.heads.offer(row));
            fitting = fitting && self.fitting.offer(row);
            if !(heads || fitting) {
                return;
            }
        }
    }

    /// Looks at the demands in the order of their first jobs, up to the first that no list wants.
    fn look(&mut self, queue: &Queue, order: Order, buffer: &mut Vec<Waiting>) {
        // A list that is not full wants anything, but there may be nothing left that fits.
        let mut num_fits = self.num_fits;
        // The jobs of a demand stand behind the first jobs of those before it: of each, one less is needed.
        let (mut num_heads, mut num_fitting) = (self.num_heads, self.num_fitting);
        for first in queue.firsts(order) {
            let best = (first.key, first.job);
            let (heads, fitting) = (self.heads.wants(best), num_fits > 0 && self.fitting.wants(best));
            if !(heads || fitting) {
                return;
            }
            let open = self.open[first.row as usize];
            num_fits -= usize::from(open.fits);
            if heads && open.room || fitting && open.fits {
                let group = queue.group(first.row);
                let (kept, rekey) = order.within(group.num_gpus);
                let of_heads = if open.room { num_heads } else { 0 };
                let of_fitting = if open.fits { num_fitting } else { 0 };
                let rows = group.rows(kept).first_few(of_heads.max(of_fitting), buffer);
                self.merge(open, rows.iter().map(|waiting| rekey.of(waiting.row())));
                num_heads = num_heads.saturating_sub(usize::from(open.room));
                num_fitting = num_fitting.saturating_sub(usize::from(open.fits));
            }
        }
    }

    /// Looks at each demand's oldest and shortest job.
    fn look_at_ratios(&mut self, cluster: &Cluster, ratios: &mut Ratios) {
        for head in cluster.queue().heads() {
            let open = self.open[head.row as usize];
            if open.room || open.fits {
                let rows = ratios.of(cluster, head);
                if self.want(open, rows[0]) {
                    self.merge(open, rows.iter().copied());
                }
            }
        }
    }

    /// Looks at each tenant's jobs.
    fn look_at_deficits(&mut self, cluster: &Cluster, buffer: &mut Vec<Waiting>) {
        let queue = cluster.queue();
        // Demands of one tenant follow each other.
        let mut last = None;
        for head in queue.heads() {
            let tenant = head.demand.tenant;
            let key = match last {
                Some((other, key)) if other == tenant => key,
                _ => deficit_key(cluster, tenant),
            };
            last = Some((tenant, key));
            let (open, (_, oldest)) = (self.open[head.row as usize], head.first(Kept::Arrival));
            if self.want(open, (key, oldest)) {
                let rows = queue.group(head.row).rows(Kept::Arrival);
                let num = self.num_heads.max(self.num_fitting);
                let rows = rows.first_few(num, buffer).iter();
                self.merge(open, rows.map(|waiting| Rekey::all(key).of(waiting.row())));
            }
        }
    }
}

impl Scan {
    /// A new pass begins: jobs may have come back with less to do, or be others altogether.
    pub(super) fn forget(&mut self) {
        self.ratios.forget();
    }

    /// Looks at the whole queue; `skip` is never a head. Without `fitting`, only heads are looked for.
    pub(super) fn run(&mut self, cluster: &Cluster, needs: &Needs, skip: Option<JobId>, fitting: bool) {
        let queue = cluster.queue();
        let num_fitting = if fitting { needs.fitting } else { 0 };
        self.open.resize(queue.num_rows(), Open::default());
        let mut num_fits = 0;
        for head in queue.heads() {
            let room = cluster.has_room(head.demand);
            let fits = room && num_fitting > 0 && cluster.fitting_types(head.demand) != 0;
            num_fits += usize::from(fits);
            self.open[head.row as usize] = Open {
                room: room && needs.heads > 0,
                fits,
            };
        }
        self.find_blocked(cluster, needs);
        self.ratios.at(cluster.now(), queue.num_rows());
        for lens in Lens::ALL {
            if lens == Lens::TenantDeficit && self.is_arrival(cluster, needs) {
                let key = deficit_key(cluster, TenantId(0));
                for lists in [&mut self.heads, &mut self.fitting] {
                    let (before, own) = lists.split_at_mut(lens as usize);
                    own[0].copy_under(key, &before[Lens::Arrival as usize]);
                }
                continue;
            }
            let (heads, fitting) = (&mut self.heads[lens as usize], &mut self.fitting[lens as usize]);
            heads.reset(needs.heads);
            fitting.reset(num_fitting);
            if !needs.lenses.contains(lens) {
                continue;
            }
            if !self.blocked.is_empty() {
                self.unblocked.clone_from(&self.open);
                for head in queue.heads() {
                    if self.blocked[head.demand.tenant.index()].contains(lens) {
                        self.unblocked[head.row as usize].room = false;
                    }
                }
            }
            let mut lists = Lists {
                heads,
                fitting,
                skip,
                open: if self.blocked.is_empty() {
                    &self.open
                } else {
                    &self.unblocked
                },
                num_fits,
                num_heads: needs.heads + 1,
                num_fitting,
            };
            match lens.order() {
                Some(order) => lists.look(queue, order, &mut self.buffer),
                None if lens == Lens::WaitRatio => lists.look_at_ratios(cluster, &mut self.ratios),
                None => lists.look_at_deficits(cluster, &mut self.buffer),
            }
        }
    }

    /// Whether the tenants' order is that of arrival, which has been looked at: there is one tenant, which nothing blocks.
    fn is_arrival(&self, cluster: &Cluster, needs: &Needs) -> bool {
        let both = [Lens::Arrival, Lens::TenantDeficit];
        cluster.tenants().len() == 1
            && self.blocked.is_empty()
            && both.into_iter().all(|lens| needs.lenses.contains(lens))
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
            for head in cluster.queue().heads() {
                let (demand, row) = (&head.demand, first_of(cluster, lens, head));
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

    /// Looks for fitting jobs among those that `allowed` lets through, given the types on which they fit; the heads stay as
    /// they are. `all_allowed` says of a demand that its every job would be let through, `rest_max` a believed remaining time,
    /// µs, beyond which none of its jobs would be: those are passed over without a look at each.
    pub(super) fn run_allowed(
        &mut self,
        cluster: &Cluster,
        needs: &Needs,
        (all_allowed, rest_max): (impl Fn(&Demand, u64) -> bool, impl Fn(&Demand, u64) -> i64),
        mut allowed: impl FnMut(JobId, u64) -> bool,
    ) {
        let num = needs.fitting;
        let wanted = [Kept::Arrival, Kept::Remaining, Kept::Service].map(|kept| {
            let mut lenses = Lens::ALL.into_iter().filter(|lens| needs.lenses.contains(*lens));
            lenses.any(|lens| lens.kept() == Some(kept))
        });
        self.ratios.at(cluster.now(), cluster.queue().num_rows());
        self.verdicts.forget(cluster.jobs().len());
        self.fitting.iter_mut().for_each(|best| best.reset(num));
        for head in cluster.queue().heads() {
            let types = cluster.fitting_types(head.demand);
            if num == 0 || types == 0 {
                continue;
            }
            let all = all_allowed(&head.demand, types);
            let rest_max = if all {
                i64::MAX
            } else {
                rest_max(&head.demand, types)
            };
            if head.first(Kept::Remaining).0 > rest_max {
                continue;
            }
            let verdicts = &mut self.verdicts;
            let mut allowed = |job: JobId| all || verdicts.of(job, || allowed(job, types));
            let group = cluster.queue().group(head.row);
            for kept in [Kept::Arrival, Kept::Remaining, Kept::Service] {
                let rows = &mut self.let_through[kept as usize];
                rows.clear();
                if wanted[kept as usize] {
                    let jobs = group.rows(kept).lights(SCAN_MAX, rest_weight(rest_max));
                    let jobs = jobs.map(|waiting| waiting.row());
                    rows.extend(jobs.filter(|(_, job)| allowed(*job)).take(num));
                }
            }
            for lens in Lens::ALL {
                if !needs.lenses.contains(lens) {
                    continue;
                }
                let fitting = &mut self.fitting[lens as usize];
                // Each stops at the first job that is not wanted.
                let _ = match lens.within(cluster, &head.demand) {
                    Some((kept, rekey)) => {
                        let mut rows = self.let_through[kept as usize].iter();
                        rows.all(|row| fitting.offer(rekey.of(*row)))
                    }
                    None => {
                        let rows = self.ratios.of(cluster, head).iter();
                        let mut rows = rows.filter(|(_, job)| allowed(*job));
                        rows.all(|row| fitting.offer(*row))
                    }
                };
            }
        }
    }

    /// First jobs of a lens, whether they fit or not.
    pub(super) fn heads(&self, lens: Lens) -> &[Row] {
        self.heads[lens as usize].rows()
    }

    /// First jobs of a lens that fit.
    pub(super) fn fitting(&self, lens: Lens) -> &[Row] {
        self.fitting[lens as usize].rows()
    }
}

/// The first job of a demand under an order, with its key.
fn first_of(cluster: &Cluster, lens: Lens, head: &Head) -> Row {
    match lens.within(cluster, &head.demand) {
        Some((kept, rekey)) => rekey.of(head.first(kept)),
        None => ratio_heads(cluster, head)[0].unwrap_or(head.first(Kept::Arrival)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::heuristics::by_name;
    use crate::heuristics::tests::world::{cluster, events, happen, pending, watched_pass};
    use crate::lens::{first_jobs, lens_key};

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
            let all_of = |demand: &Demand| demand.num_gpus == 2;
            for event in events {
                happen(&mut cluster, event);
                for step in 0..2 {
                    scan.forget();
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
                    let odd = |job: JobId| job.0 % 2 == 1 || all_of(&cluster.demand(job));
                    let rest_max = |demand: &Demand, _| {
                        let jobs = pending(&cluster).into_iter().filter(|job| cluster.demand(*job) == *demand && odd(*job));
                        jobs.map(|job| lens_key(&cluster, Lens::Shortest, job)).max().unwrap_or(i64::MIN)
                    };
                    scan.run_allowed(&cluster, &needs, (|demand: &Demand, _| all_of(demand), rest_max), |job, _| odd(job));
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
