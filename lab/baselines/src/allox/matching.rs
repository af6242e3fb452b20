//! Jobs and places in the queues of GPUs, matched at least total cost.
//!
//! The cost of a place is `place from the end x time of the job on the type + time until the GPU is free`. Two places at the
//! same depth on GPUs of one type differ only by when their GPU is free, for every job alike, so of those that are not
//! taken yet only the one that is free first can be the next. The method of Kuhn and Munkres, job after job along a path of
//! least cost, therefore looks at the places that are taken, at most one for each job, and at one more for each depth and
//! type: `O(jobs^2 (jobs + depths))` at worst, whatever the number of GPUs, where the whole matrix would take
//! `O(jobs^2 GPUs depths)`.
//!
//! Ties are decided as on the whole matrix, whose columns go by GPU and then by depth: the matching is the same one, which a
//! test checks against the crate `pathfinding`.
//!
//! # Source
//! Kuhn (1955) and Munkres (1957), in the form that keeps the slack of every column.

use pleach_scheduler::GpuTypeId;

/// A place in the queue of a GPU. The order is that in which ties are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Number of the GPU among the machines.
    pub(super) gpu: usize,
    /// 1 = the last.
    pub(super) from_end: i64,
}

/// A GPU as the matching sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Machine {
    pub(super) gpu_type: GpuTypeId,
    /// Until it is free, µs.
    pub(super) busy_us: i64,
}

/// Queues are looked at to so many places more than their part of the jobs.
const DEEPER: usize = 3;
/// No cost is above this, µs (eighteen years), so that sums over two thousand jobs fit.
const COST_MAX_US: i64 = i64::MAX / 8 / 2001;
/// The slack of a place where none of the jobs looked at can go.
const UNREACHED: i64 = i64::MAX;

/// How deep the queues of a type with so many GPUs are looked at.
pub(super) fn depth(num_jobs: usize, num_gpus: usize) -> usize {
    num_jobs.min(num_jobs.div_ceil(num_gpus.max(1)) + DEEPER)
}

/// A column of the matrix: a place and what it costs.
#[derive(Clone, Copy, Debug)]
struct Column {
    place: Place,
    kind: usize,
    busy_us: i64,
    /// Which of the levels it is the next place of; none = taken.
    level: Option<usize>,
}

/// The places at one depth of all GPUs of one type, taken in the order in which the GPUs are free.
#[derive(Clone, Copy, Debug)]
struct Level {
    kind: usize,
    from_end: i64,
    num_taken: usize,
}

/// A place that has a job.
#[derive(Clone, Copy, Debug)]
struct Taken {
    column: Column,
    job: usize,
    label: i64,
}

/// The matching as far as it is found.
struct Search<'a> {
    times_us: &'a [Vec<Option<i64>>],
    machines: &'a [Machine],
    /// GPUs of each type, those that are free first in front. `[type]`
    by_type: Vec<Vec<usize>>,
    levels: Vec<Level>,
    taken: Vec<Taken>,
    /// The place of each job, as a number among the taken. `[job]`
    taken_by: Vec<Option<usize>>,
    /// `[job]`
    labels: Vec<i64>,
}

/// The place of each job in the matching of least cost; none for a job that can run on no machine. `times_us` is the time
/// of each job on each type, none where it cannot run. `[job][type]`
pub(super) fn matching(times_us: &[Vec<Option<i64>>], machines: &[Machine]) -> Vec<Option<Place>> {
    let of_machines = machines.iter().map(|machine| machine.gpu_type.index() + 1);
    let num_types = of_machines
        .chain(times_us.iter().map(Vec::len))
        .max()
        .unwrap_or(0);
    let mut by_type: Vec<Vec<usize>> = vec![Vec::new(); num_types];
    for (gpu, machine) in machines.iter().enumerate() {
        by_type[machine.gpu_type.index()].push(gpu);
    }
    let mut levels = Vec::new();
    for (kind, gpus) in by_type
        .iter_mut()
        .enumerate()
        .filter(|(_, gpus)| !gpus.is_empty())
    {
        // Stable: GPUs that are free at the same time keep their order.
        gpus.sort_by_key(|gpu| machines[*gpu].busy_us);
        levels.extend((1..=depth(times_us.len(), gpus.len())).map(|from_end| Level {
            kind,
            from_end: from_end as i64,
            num_taken: 0,
        }));
    }
    let mut search = Search {
        times_us,
        machines,
        by_type,
        levels,
        taken: Vec::new(),
        taken_by: vec![None; times_us.len()],
        labels: vec![0; times_us.len()],
    };
    for job in 0..times_us.len() {
        search.place(job);
    }
    let place = |taken: Option<usize>| taken.map(|taken| search.taken[taken].column.place);
    search.taken_by.iter().copied().map(place).collect()
}

impl Search<'_> {
    fn cost_us(&self, job: usize, column: &Column) -> Option<i64> {
        let time_us = self.times_us[job][column.kind]?;
        let all_us = time_us.saturating_mul(column.place.from_end);
        Some(all_us.saturating_add(column.busy_us).min(COST_MAX_US))
    }

    /// The next place of a level; none if all are taken.
    fn next(&self, number: usize) -> Option<Column> {
        let level = self.levels[number];
        let gpu = *self.by_type[level.kind].get(level.num_taken)?;
        Some(Column {
            place: Place {
                gpu,
                from_end: level.from_end,
            },
            kind: level.kind,
            busy_us: self.machines[gpu].busy_us,
            level: Some(number),
        })
    }

    /// Finds a place for one more job, for which others may change theirs.
    fn place(&mut self, root: usize) {
        let num_taken = self.taken.len();
        let mut columns: Vec<Column> = self.taken.iter().map(|taken| taken.column).collect();
        columns.extend((0..self.levels.len()).filter_map(|level| self.next(level)));
        let label = |taken: Option<&Taken>| taken.map_or(0, |taken| taken.label);
        // The label of a job is at first what it would cost at least, below zero.
        let first_free = |kind: usize| self.by_type[kind].first().map(|gpu| self.machines[*gpu].busy_us);
        let at_best = (0..self.by_type.len()).filter_map(|kind| {
            let last = self.times_us[root][kind]?.saturating_add(first_free(kind)?);
            Some(last.min(COST_MAX_US))
        });
        let Some(at_best) = at_best.min() else {
            return;
        };
        self.labels[root] = -at_best;
        let mut slack = vec![UNREACHED; columns.len()];
        let mut via = vec![root; columns.len()];
        let mut is_reached = vec![false; columns.len()];
        let mut jobs = vec![root];
        let mut newest = root;
        let end = loop {
            for (number, column) in columns.iter().enumerate() {
                if is_reached[number] {
                    continue;
                }
                let Some(cost_us) = self.cost_us(newest, column) else {
                    continue;
                };
                let own = self.labels[newest] + label(self.taken.get(number)) + cost_us;
                if own < slack[number] {
                    (slack[number], via[number]) = (own, newest);
                }
            }
            let open =
                (0..columns.len()).filter(|number| !is_reached[*number] && slack[*number] != UNREACHED);
            let Some(chosen) = open.min_by_key(|number| (slack[*number], columns[*number].place)) else {
                return;
            };
            let delta = slack[chosen];
            if delta > 0 {
                jobs.iter().for_each(|job| self.labels[*job] -= delta);
                for (number, slack) in slack.iter_mut().enumerate() {
                    if is_reached[number] {
                        // Only places that are taken are reached and passed.
                        self.taken[number].label += delta;
                    } else if *slack != UNREACHED {
                        *slack -= delta;
                    }
                }
            }
            is_reached[chosen] = true;
            if chosen >= num_taken {
                break chosen;
            }
            newest = self.taken[chosen].job;
            jobs.push(newest);
        };
        self.hand_over(columns[end], via[end], &via);
    }

    /// Gives the free place at the end of a path to the job before it, whose own goes to the job before that one, and so on.
    fn hand_over(&mut self, free: Column, mut job: usize, via: &[usize]) {
        if let Some(level) = free.level {
            self.levels[level].num_taken += 1;
        }
        let mut at = self.taken.len();
        self.taken.push(Taken {
            column: Column { level: None, ..free },
            job,
            label: 0,
        });
        loop {
            self.taken[at].job = job;
            let Some(before) = self.taken_by[job].replace(at) else {
                return;
            };
            at = before;
            job = via[before];
        }
    }
}

#[cfg(test)]
mod tests {
    use pathfinding::matrix::Matrix;
    use pathfinding::prelude::kuhn_munkres_min;
    use proptest::prelude::*;

    use super::*;

    /// The same on the whole matrix, by a crate.
    fn on_the_whole_matrix(times_us: &[Vec<Option<i64>>], machines: &[Machine]) -> Vec<Option<Place>> {
        let num_of = |kind: GpuTypeId| machines.iter().filter(|machine| machine.gpu_type == kind).count();
        let mut places = Vec::new();
        for (gpu, machine) in machines.iter().enumerate() {
            let depth = depth(times_us.len(), num_of(machine.gpu_type)) as i64;
            places.extend((1..=depth).map(|from_end| Place { gpu, from_end }));
        }
        let never = 1_i64 << 40;
        let mut costs = Matrix::new(times_us.len(), places.len(), never);
        for (job, times_us) in times_us.iter().enumerate() {
            for (column, place) in places.iter().enumerate() {
                let machine = machines[place.gpu];
                if let Some(time_us) = times_us[machine.gpu_type.index()] {
                    costs[(job, column)] = place.from_end * time_us + machine.busy_us;
                }
            }
        }
        let (_, columns) = kuhn_munkres_min(&costs);
        columns.into_iter().map(|column| Some(places[column])).collect()
    }

    #[test]
    fn a_job_that_can_run_nowhere_has_no_place_and_takes_none() {
        let machines = [Machine {
            gpu_type: GpuTypeId(0),
            busy_us: 0,
        }];
        // The second runs on a type without machines only. The first and third: short before long.
        let times_us = [vec![Some(9), None], vec![None, Some(1)], vec![Some(4), Some(1)]];
        let last = Place { gpu: 0, from_end: 1 };
        let before = Place { gpu: 0, from_end: 2 };
        assert_eq!(matching(&times_us, &machines), [Some(last), None, Some(before)]);
        assert_eq!(matching(&times_us, &[]), [None; 3]);
        assert_eq!(matching(&[], &machines), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        /// Small numbers, so that there are ties everywhere; type 0 is there and open to all.
        #[test]
        fn it_is_the_matching_on_the_whole_matrix_ties_and_all(
            times in proptest::collection::vec((1_i64..9, proptest::option::of(1_i64..9), proptest::option::of(1_i64..9)), 1..24),
            others in proptest::collection::vec((0_u8..3, 0_i64..12), 0..20),
            first_busy in 0_i64..12,
        ) {
            let times_us: Vec<Vec<Option<i64>>> = times.iter().map(|(a, b, c)| vec![Some(*a), *b, *c]).collect();
            let others = others.iter().map(|(kind, busy)| (*kind, busy / 3 * 3));
            let machines: Vec<Machine> = std::iter::once((0, first_busy))
                .chain(others)
                .map(|(kind, busy_us)| Machine { gpu_type: GpuTypeId(kind), busy_us })
                .collect();
            prop_assert_eq!(matching(&times_us, &machines), on_the_whole_matrix(&times_us, &machines));
        }
    }
}
