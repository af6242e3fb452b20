//! The first jobs under all wanted lenses in one look at each demand: what [`first_jobs`] finds lens by lens, faster.

use crate::cluster::{Cluster, Demand, Group};
use crate::ids::{JobId, Time};
use crate::lens::{Lens, deficit_key, ratio_heads};
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
}

impl Scan {
    /// Looks at the whole queue; `skip` is never a head. Without `fitting`, only heads are looked for.
    pub(super) fn run(&mut self, cluster: &Cluster, needs: &Needs, skip: Option<JobId>, fitting: bool) {
        self.heads.iter_mut().for_each(|best| best.reset(needs.heads));
        let num_fitting = if fitting { needs.fitting } else { 0 };
        self.fitting.iter_mut().for_each(|best| best.reset(num_fitting));
        for (demand, group) in cluster.groups() {
            if !cluster.has_room(*demand) {
                continue;
            }
            let fits = num_fitting > 0 && cluster.fitting_types(*demand) != 0;
            // One head more than wanted, because one may be skipped.
            let num = if fits {
                (needs.heads + 1).max(num_fitting)
            } else if needs.heads > 0 {
                needs.heads + 1
            } else {
                continue;
            };
            self.arrival.clear();
            self.arrival.extend(group.arrival.iter().take(num));
            self.remaining.clear();
            self.remaining.extend(group.remaining.iter().take(num));
            for lens in Lens::ALL {
                if needs.lenses.contains(lens) {
                    self.offer(cluster, lens, (demand, group), num, fits, skip);
                }
            }
        }
    }

    fn offer(
        &mut self,
        cluster: &Cluster,
        lens: Lens,
        (demand, group): (&Demand, &Group),
        num: usize,
        fits: bool,
        skip: Option<JobId>,
    ) {
        let (heads, fitting) = (&mut self.heads[lens as usize], &mut self.fitting[lens as usize]);
        let (mut head_open, mut fitting_open) = (heads.num > 0, fits);
        let mut take = |key: i64, job: JobId| {
            if head_open && Some(job) != skip {
                head_open = heads.offer((key, job));
            }
            fitting_open = fitting_open && fitting.offer((key, job));
            head_open || fitting_open
        };
        let gang = i64::from(demand.num_gpus);
        // Each stops at the first job that no list wants.
        let _ = match lens {
            Lens::Arrival => self.arrival.iter().all(|job| take(i64::from(job.0), *job)),
            Lens::Shortest => self.remaining.iter().all(|(rest, job)| take(rest.0, *job)),
            Lens::SmallestGpuTime => {
                let mut rows = self.remaining.iter();
                rows.all(|(rest, job)| take(rest.0.saturating_mul(gang), *job))
            }
            Lens::LeastAttained => {
                let mut rows = group.service.iter().take(num);
                rows.all(|(class, job)| take(i64::from(*class), *job))
            }
            Lens::WaitRatio => {
                let mut rows = ratio_heads(cluster, group).into_iter().flatten();
                rows.all(|(key, job)| take(key, job))
            }
            Lens::TenantDeficit => {
                let key = deficit_key(cluster, demand.tenant);
                self.arrival.iter().all(|job| take(key, *job))
            }
            Lens::LargestGang => self.arrival.iter().all(|job| take(-gang, *job)),
        };
    }

    /// First jobs of a lens, whether they fit or not.
    pub(super) fn heads(&self, lens: Lens) -> &[(i64, JobId)] {
        &self.heads[lens as usize].rows
    }

    /// First jobs of a lens that fit.
    pub(super) fn fitting(&self, lens: Lens) -> &[(i64, JobId)] {
        &self.fitting[lens as usize].rows
    }

    /// The list of fitting jobs of a lens, to be filled by other means.
    pub(super) fn fitting_mut(&mut self, lens: Lens) -> &mut Vec<(i64, JobId)> {
        &mut self.fitting[lens as usize].rows
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
                    if step == 0 {
                        watched_pass(&mut cluster, policy.as_mut(), |_, _| ());
                    }
                }
            }
        }
    }
}
