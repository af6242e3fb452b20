//! The first jobs under all wanted lenses in one look at each demand: what [`first_jobs`] finds lens by lens, faster.

use crate::cluster::{Cluster, Demand, Group};
use crate::ids::{JobId, Time};
use crate::lens::{Lens, SCAN_MAX, deficit_key, ratio_heads};
use crate::policy::Needs;

#[cfg(doc)]
use crate::lens::first_jobs;

/// Most rows of a list: as many jobs of one order as a policy may ask for, and one that is skipped.
const ROWS_MAX: usize = 33;

/// The best few rows of what was offered, best first.
#[derive(Clone, Debug)]
struct Best {
    rows: Vec<(i64, JobId)>,
    num: usize,
    /// The first row that is not wanted any more: the last one of a full list.
    bar: (i64, JobId),
}

/// No row is worse.
const WORST: (i64, JobId) = (i64::MAX, JobId(u32::MAX));

impl Default for Best {
    fn default() -> Best {
        Best {
            rows: Vec::with_capacity(ROWS_MAX),
            num: 0,
            bar: WORST,
        }
    }
}

impl Best {
    fn reset(&mut self, num: usize) {
        self.rows.clear();
        self.num = num;
        // No row is better than the best one, so that a list of none takes none.
        self.bar = if num == 0 { (i64::MIN, JobId(0)) } else { WORST };
    }

    /// False if the list is full and the row no better than its last one; what comes after it is then no better either.
    #[inline(always)]
    fn offer(&mut self, row: (i64, JobId)) -> bool {
        let wanted = row.0 < self.bar.0 || (row.0 == self.bar.0 && row.1 < self.bar.1);
        if wanted {
            self.insert(row);
        }
        wanted
    }

    fn insert(&mut self, row: (i64, JobId)) {
        if self.rows.len() == self.num {
            self.rows.pop();
        }
        let mut at = self.rows.len();
        self.rows.push(row);
        while at > 0 && row < self.rows[at - 1] {
            self.rows[at] = self.rows[at - 1];
            at -= 1;
        }
        self.rows[at] = row;
        if self.rows.len() == self.num {
            self.bar = self.rows[self.num - 1];
        }
    }
}

/// First jobs of each lens; kept between calls for its memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Scan {
    lists: Lists,
    arrival: Vec<JobId>,
    remaining: Vec<(Time, JobId)>,
    service: Vec<(u8, JobId)>,
}

/// What is found.
#[derive(Clone, Debug, Default)]
struct Lists {
    heads: [Best; Lens::ALL.len()],
    fitting: [Best; Lens::ALL.len()],
}

/// The first jobs of one demand in its three orders, and its candidates for the highest response ratio.
#[derive(Clone, Copy, Debug)]
struct Rows<'a> {
    arrival: &'a [JobId],
    remaining: &'a [(Time, JobId)],
    service: &'a [(u8, JobId)],
    ratio: [Option<(i64, JobId)>; 2],
}

/// Which lists a demand is offered to.
#[derive(Clone, Copy, Debug)]
struct Open {
    heads: bool,
    fitting: bool,
    /// Never a head.
    skip: Option<JobId>,
}

impl Scan {
    /// Looks at the whole queue; `skip` is never a head. Without `fitting`, only heads are looked for.
    pub(super) fn run(&mut self, cluster: &Cluster, needs: &Needs, skip: Option<JobId>, fitting: bool) {
        let Scan {
            lists,
            arrival,
            remaining,
            service,
        } = self;
        let num_fitting = if fitting { needs.fitting } else { 0 };
        lists.heads.iter_mut().for_each(|best| best.reset(needs.heads));
        lists.fitting.iter_mut().for_each(|best| best.reset(num_fitting));
        // One head more than wanted, where one is skipped.
        let num_heads = if needs.heads == 0 {
            0
        } else {
            needs.heads + usize::from(skip.is_some())
        };
        for (demand, group) in cluster.groups() {
            if !cluster.has_room(*demand) {
                continue;
            }
            let fits = num_fitting > 0 && cluster.fitting_types(*demand) != 0;
            let num = num_heads.max(if fits { num_fitting } else { 0 });
            if num == 0 {
                continue;
            }
            let open = Open {
                heads: needs.heads > 0,
                fitting: fits,
                skip,
            };
            let rows = Rows {
                arrival: group.arrival.first_few(num, arrival),
                remaining: group.remaining.first_few(num, remaining),
                service: group.service.first_few(num, service),
                ratio: ratio_rows(cluster, needs, group, |_| true),
            };
            lists.offer(cluster, needs, demand, rows, open);
        }
    }

    /// Looks for fitting jobs among those that `allowed` lets through; the heads stay as they are.
    pub(super) fn run_allowed(
        &mut self,
        cluster: &Cluster,
        needs: &Needs,
        mut allowed: impl FnMut(JobId) -> bool,
    ) {
        let Scan {
            lists,
            arrival,
            remaining,
            service,
        } = self;
        let num = needs.fitting;
        lists.fitting.iter_mut().for_each(|best| best.reset(num));
        for (demand, group) in cluster.groups() {
            if num == 0 || cluster.fitting_types(*demand) == 0 {
                continue;
            }
            arrival.clear();
            let rows = group.arrival.iter().take(SCAN_MAX);
            arrival.extend(rows.filter(|job| allowed(**job)).take(num));
            remaining.clear();
            let rows = group.remaining.iter().take(SCAN_MAX);
            remaining.extend(rows.filter(|(_, job)| allowed(*job)).take(num));
            service.clear();
            if needs.lenses.contains(Lens::LeastAttained) {
                let rows = group.service.iter().take(SCAN_MAX);
                service.extend(rows.filter(|(_, job)| allowed(*job)).take(num));
            }
            let rows = Rows {
                arrival,
                remaining,
                service,
                ratio: ratio_rows(cluster, needs, group, &mut allowed),
            };
            let open = Open {
                heads: false,
                fitting: true,
                skip: None,
            };
            lists.offer(cluster, needs, demand, rows, open);
        }
    }
    /// First jobs of a lens, whether they fit or not.
    pub(super) fn heads(&self, lens: Lens) -> &[(i64, JobId)] {
        &self.lists.heads[lens as usize].rows
    }

    /// First jobs of a lens that fit.
    pub(super) fn fitting(&self, lens: Lens) -> &[(i64, JobId)] {
        &self.lists.fitting[lens as usize].rows
    }
}

/// The candidates of a demand for the highest response ratio that are allowed, best first.
fn ratio_rows(
    cluster: &Cluster,
    needs: &Needs,
    group: &Group,
    mut allowed: impl FnMut(JobId) -> bool,
) -> [Option<(i64, JobId)>; 2] {
    if needs.lenses.contains(Lens::WaitRatio) {
        ratio_heads(cluster, group).map(|row| row.filter(|(_, job)| allowed(*job)))
    } else {
        [None; 2]
    }
}

impl Lists {
    /// Offers the first rows of one demand to the lists of every wanted lens. Always inline: it runs for every demand,
    /// and a call was measured to cost a tenth of a whole enumeration.
    #[inline(always)]
    fn offer(&mut self, cluster: &Cluster, needs: &Needs, demand: &Demand, rows: Rows<'_>, open: Open) {
        let gang = i64::from(demand.num_gpus);
        let by_arrival = |key: i64| rows.arrival.iter().map(move |job| (key, *job));
        if needs.lenses.contains(Lens::Arrival) {
            let rows = rows.arrival.iter().map(|job| (i64::from(job.0), *job));
            self.merge(Lens::Arrival, rows, open);
        }
        if needs.lenses.contains(Lens::Shortest) {
            let rows = rows.remaining.iter().map(|(rest, job)| (rest.0, *job));
            self.merge(Lens::Shortest, rows, open);
        }
        if needs.lenses.contains(Lens::SmallestGpuTime) {
            let rows = rows.remaining.iter();
            let rows = rows.map(|(rest, job)| (rest.0.saturating_mul(gang), *job));
            self.merge(Lens::SmallestGpuTime, rows, open);
        }
        if needs.lenses.contains(Lens::LeastAttained) {
            let rows = rows.service.iter().map(|(class, job)| (i64::from(*class), *job));
            self.merge(Lens::LeastAttained, rows, open);
        }
        if needs.lenses.contains(Lens::WaitRatio) {
            self.merge(Lens::WaitRatio, rows.ratio.into_iter().flatten(), open);
        }
        if needs.lenses.contains(Lens::TenantDeficit) {
            let rows = by_arrival(deficit_key(cluster, demand.tenant));
            self.merge(Lens::TenantDeficit, rows, open);
        }
        if needs.lenses.contains(Lens::LargestGang) {
            self.merge(Lens::LargestGang, by_arrival(-gang), open);
        }
    }

    /// Offers ascending rows of one demand to the lists of one lens, up to the first that no list wants.
    #[inline(always)]
    fn merge(&mut self, lens: Lens, rows: impl Iterator<Item = (i64, JobId)>, open: Open) {
        let (heads, fitting) = (&mut self.heads[lens as usize], &mut self.fitting[lens as usize]);
        let mut now = open;
        for row in rows {
            now.heads = now.heads && (Some(row.1) == open.skip || heads.offer(row));
            now.fitting = now.fitting && fitting.offer(row);
            if !(now.heads || now.fitting) {
                return;
            }
        }
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
