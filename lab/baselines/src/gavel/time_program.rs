//! The programme that all policies share: which part of its time each group of jobs spends on each GPU type, alone or
//! beside another group.
//!
//! ```text
//! time >= 0;  time of a group <= its jobs;  gangs times time on a type <= its GPUs
//! ```
//!
//! Jobs of one kind that are due the same are interchangeable, so they are one *group* with a number of jobs: the programme
//! of a thousand jobs is that of some dozens of groups, and its optimum is the same, because the mean over all ways to
//! exchange equal jobs is as good as any of them. The time of a group is then divided among its jobs in equal parts.

use std::collections::BTreeMap;

use super::snapshot::Snapshot;
use crate::rounds::{JobCombination, Targets};
use crate::shared::linear_program::{Column, Limits, LinearProgram, Solution, Unsolved};

/// Jobs of one kind that are due the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Their kind, as in the snapshot.
    pub kind: usize,
    /// The jobs, as places among the jobs of the snapshot.
    pub jobs: Vec<usize>,
}

/// Groups the jobs of a snapshot by kind and by a key of the policy, in the order in which they first come.
#[must_use]
pub fn group_by<K: Ord>(snapshot: &Snapshot, key: impl Fn(usize) -> K) -> Vec<Group> {
    let mut numbers = BTreeMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for (job, (_, kind)) in snapshot.jobs.iter().enumerate() {
        let number = *numbers.entry((*kind, key(job))).or_insert(groups.len());
        if number == groups.len() {
            groups.push(Group {
                kind: *kind,
                jobs: Vec::new(),
            });
        }
        groups[number].jobs.push(job);
    }
    groups
}

/// The time that a group, or two groups together, spend on a type.
#[derive(Clone, Debug)]
struct Slot {
    /// One group, or two; the same twice where two of its jobs share.
    groups: (usize, Option<usize>),
    gpu_type: usize,
    column: Column,
}

/// The programme of one snapshot. Rows and objective of a policy are added to it.
#[derive(Clone, Debug)]
pub struct TimeProgram<'a> {
    snapshot: &'a Snapshot,
    groups: &'a [Group],
    /// The programme, for rows of the policy's own.
    pub program: LinearProgram,
    slots: Vec<Slot>,
    /// Work per second of each job of the group, as terms. `[group]`
    throughput: Vec<Vec<(Column, f64)>>,
}

/// How much time the combinations of a snapshot spend on each type.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// Time on one type of one group, or of two together.
    pub times: Vec<((usize, Option<usize>), usize, f64)>,
}

impl<'a> TimeProgram<'a> {
    /// Columns and rows of the time of all groups. `pairs_max` is the most pairs of groups that are looked at: those
    /// that gain most from sharing.
    #[must_use]
    pub fn new(snapshot: &'a Snapshot, groups: &'a [Group], pairs_max: usize) -> TimeProgram<'a> {
        let mut this = TimeProgram {
            snapshot,
            groups,
            program: LinearProgram::new(),
            slots: Vec::new(),
            throughput: vec![Vec::new(); groups.len()],
        };
        let mut time: Vec<Vec<(Column, f64)>> = vec![Vec::new(); groups.len()];
        let mut held: Vec<Vec<(Column, f64)>> = vec![Vec::new(); snapshot.gpus.len()];
        for (number, group) in groups.iter().enumerate() {
            let kind = &snapshot.kinds[group.kind];
            for (gpu_type, speed) in kind.speed.iter().enumerate() {
                if *speed <= 0.0 || snapshot.gpus[gpu_type] < f64::from(kind.num_gpus) {
                    continue;
                }
                let column = this.slot((number, None), gpu_type);
                time[number].push((column, 1.0));
                held[gpu_type].push((column, f64::from(kind.num_gpus)));
                this.throughput[number].push((column, speed / group.jobs.len() as f64));
            }
        }
        for (a, b) in this.best_pairs(pairs_max) {
            let kinds = (groups[a].kind, groups[b].kind);
            let is_turned = kinds.0 > kinds.1;
            let key = if is_turned { (kinds.1, kinds.0) } else { kinds };
            let num_gpus = f64::from(snapshot.kinds[kinds.0].num_gpus);
            for (gpu_type, speeds) in snapshot.pairs[&key].iter().enumerate() {
                if speeds[0] <= 0.0 || snapshot.gpus[gpu_type] < num_gpus {
                    continue;
                }
                let column = this.slot((a, Some(b)), gpu_type);
                held[gpu_type].push((column, num_gpus));
                if a == b {
                    let both = (speeds[0] + speeds[1]) / groups[a].jobs.len() as f64;
                    time[a].push((column, 2.0));
                    this.throughput[a].push((column, both));
                    continue;
                }
                let of_first = speeds[usize::from(is_turned)];
                let of_second = speeds[usize::from(!is_turned)];
                for (group, speed) in [(a, of_first), (b, of_second)] {
                    time[group].push((column, 1.0));
                    this.throughput[group].push((column, speed / groups[group].jobs.len() as f64));
                }
            }
        }
        for (terms, group) in time.into_iter().zip(groups) {
            this.program.at_most(terms, group.jobs.len() as f64);
        }
        for (terms, gpus) in held.into_iter().zip(&snapshot.gpus) {
            this.program.at_most(terms, *gpus);
        }
        this
    }

    fn slot(&mut self, groups: (usize, Option<usize>), gpu_type: usize) -> Column {
        let column = self.program.column(0.0, 0.0, f64::INFINITY);
        self.slots.push(Slot {
            groups,
            gpu_type,
            column,
        });
        column
    }

    /// Pairs of groups that can share, those first whose speeds, as parts of their best alone, add up to most.
    fn best_pairs(&self, pairs_max: usize) -> Vec<(usize, usize)> {
        if self.snapshot.pairs.is_empty() {
            return Vec::new();
        }
        let mut pairs = Vec::new();
        for (a, first) in self.groups.iter().enumerate() {
            for (b, second) in self.groups.iter().enumerate().skip(a) {
                if a == b && first.jobs.len() < 2 {
                    continue;
                }
                let key = (first.kind.min(second.kind), first.kind.max(second.kind));
                let Some(speeds) = self.snapshot.pairs.get(&key) else {
                    continue;
                };
                let best = [key.0, key.1].map(|kind| self.snapshot.kinds[kind].speed_max());
                let gains = speeds.iter().map(|pair| pair[0] / best[0] + pair[1] / best[1]);
                pairs.push((gains.fold(0.0, f64::max), a, b));
            }
        }
        pairs.sort_by(|x, y| y.0.total_cmp(&x.0).then((x.1, x.2).cmp(&(y.1, y.2))));
        pairs.truncate(pairs_max);
        pairs.into_iter().map(|(_, a, b)| (a, b)).collect()
    }

    /// Work per second of each job of a group, as terms.
    #[must_use]
    pub fn throughput(&self, group: usize) -> &[(Column, f64)] {
        &self.throughput[group]
    }

    /// Adds a unit of the work per second of each job of a group to the objective, times a factor.
    pub fn add_objective(&mut self, group: usize, objective: f64) {
        for (column, speed) in &self.throughput[group] {
            self.program.add_objective(*column, objective * speed);
        }
    }

    /// Adds progress on each type to the objective, times a factor: work per second of every job, as a part of its best and per
    /// GPU of its gang, times what the type says.
    pub(crate) fn add_objective_by_type(&mut self, objective: impl Fn(usize) -> f64) {
        for (terms, group) in self.throughput.iter().zip(self.groups) {
            let kind = &self.snapshot.kinds[group.kind];
            let jobs_per_gpu = group.jobs.len() as f64 / f64::from(kind.num_gpus);
            for (column, speed) in terms {
                // Slots have the first columns.
                let of_type = objective(self.slots[column.index()].gpu_type);
                let progress = speed / kind.speed_max() * jobs_per_gpu;
                self.program.add_objective(*column, progress * of_type);
            }
        }
    }

    /// The best times.
    ///
    /// # Errors
    /// Why there are none.
    pub fn solve(&self, limits: Limits) -> Result<(Solution, Shares), Unsolved> {
        let answer = self.program.solve(limits)?;
        let used = self.slots.iter().filter(|slot| answer.value(slot.column) > 1e-9);
        let times = used.map(|slot| (slot.groups, slot.gpu_type, answer.value(slot.column)));
        let shares = Shares {
            times: times.collect(),
        };
        Ok((answer, shares))
    }
}

impl Shares {
    /// Every job has an equal part of every type.
    #[must_use]
    pub fn equal(snapshot: &Snapshot, groups: &[Group]) -> Shares {
        let num_jobs = snapshot.jobs.len() as f64;
        let mut times = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            let kind = &snapshot.kinds[group.kind];
            let parts = snapshot
                .gpus
                .iter()
                .map(|gpus| gpus / num_jobs / f64::from(kind.num_gpus));
            let sum: f64 = parts.clone().sum();
            for (gpu_type, part) in parts
                .enumerate()
                .filter(|(gpu_type, _)| kind.speed[*gpu_type] > 0.0)
            {
                let time = part / sum.max(1.0) * group.jobs.len() as f64;
                times.push(((number, None), gpu_type, time));
            }
        }
        Shares { times }
    }

    /// Deals the time of the groups out to their jobs: the same to each, pairs among as few pairs of jobs as possible.
    #[must_use]
    pub fn targets(&self, snapshot: &Snapshot, groups: &[Group]) -> Targets {
        let mut targets = Targets::new();
        let mut add = |combination: JobCombination, gpu_type: usize, time: f64| {
            let zeros = || vec![0.0; snapshot.gpus.len()];
            targets.entry(combination).or_insert_with(zeros)[gpu_type] += time;
        };
        let id = |group: usize, number: usize| snapshot.jobs[groups[group].jobs[number]].0;
        for ((first, second), gpu_type, time) in &self.times {
            match second {
                None => {
                    let num = groups[*first].jobs.len();
                    for number in 0..num {
                        add(
                            JobCombination::alone(id(*first, number)),
                            *gpu_type,
                            time / num as f64,
                        );
                    }
                }
                Some(second) => {
                    let sizes = (groups[*first].jobs.len(), groups[*second].jobs.len());
                    for (a, b, part) in couples(sizes, first == second) {
                        add(
                            JobCombination::pair(id(*first, a), id(*second, b)),
                            *gpu_type,
                            time * part,
                        );
                    }
                }
            }
        }
        for (job, _) in &snapshot.jobs {
            let zeros = || vec![0.0; snapshot.gpus.len()];
            targets.entry(JobCombination::alone(*job)).or_insert_with(zeros);
        }
        targets
    }
}

/// Couples of two groups, or within one, and the part of the time of each, so that every job of a group comes to the same.
fn couples(sizes: (usize, usize), within: bool) -> Vec<(usize, usize, f64)> {
    let (num_a, num_b) = sizes;
    if within {
        return match num_a {
            2 => vec![(0, 1, 1.0)],
            num => (0..num)
                .map(|job| (job, (job + 1) % num, 1.0 / num as f64))
                .collect(),
        };
    }
    // In units of 1 / (num_a num_b), job a holds num_b of them and job b num_a: laid end to end, couples are the overlaps.
    let unit = 1.0 / (num_a as f64 * num_b as f64);
    let (mut a, mut b, mut at) = (0, 0, 0);
    let mut couples = Vec::new();
    while a < num_a && b < num_b {
        let (end_a, end_b) = ((a + 1) * num_b, (b + 1) * num_a);
        let end = end_a.min(end_b);
        couples.push((a, b, (end - at) as f64 * unit));
        at = end;
        a += usize::from(end_a == end);
        b += usize::from(end_b == end);
    }
    couples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn couples_give_every_job_of_a_group_the_same_with_few_couples() {
        for sizes in [(1, 1), (2, 3), (4, 4), (5, 2), (7, 3)] {
            let couples = couples(sizes, false);
            assert!(couples.len() < sizes.0 + sizes.1);
            let sum_of = |side: usize, job: usize| -> f64 {
                let with = couples.iter().filter(|couple| [couple.0, couple.1][side] == job);
                with.map(|couple| couple.2).sum()
            };
            for job in 0..sizes.0 {
                assert!((sum_of(0, job) - 1.0 / sizes.0 as f64).abs() < 1e-12);
            }
            for job in 0..sizes.1 {
                assert!((sum_of(1, job) - 1.0 / sizes.1 as f64).abs() < 1e-12);
            }
        }
        // Within a group of 5 each job is in two couples of a fifth, alone in none with itself.
        let within = couples((5, 5), true);
        assert!(within.iter().all(|(a, b, part)| a != b && *part == 0.2));
        assert_eq!(couples((2, 2), true), [(0, 1, 1.0)]);
    }
}
