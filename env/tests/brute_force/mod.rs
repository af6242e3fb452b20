//! The best that any schedule can do on a tiny instance, by trying them all.
//!
//! Time goes by whole seconds and so do releases; at every second each job that is there runs on one of the types or
//! rests, in every combination that fits. Stopping and starting again costs nothing.

use std::collections::HashMap;

/// A job: release (s), gang, work (units of the reference type).
pub type Row = (u32, u32, u32);

/// GPUs and speed (units of work a second) of each type.
pub type Pool = (u32, u32);

/// What a second costs, in the number of jobs that are there and not done.
type Cost = fn(num_present: u64) -> u64;

struct Search<'a> {
    pools: &'a [Pool],
    rows: &'a [Row],
    cost: Cost,
    known: HashMap<(u32, Vec<u32>), u64>,
}

/// Least sum of finish less release, s.
pub fn least_sum_jct_s(pools: &[Pool], rows: &[Row]) -> u64 {
    search(pools, rows, |num_present| num_present)
}

/// Least time from 0 to the last finish, s, where at least one job is released at 0.
pub fn least_makespan_s(pools: &[Pool], rows: &[Row]) -> u64 {
    search(pools, rows, |_| 1)
}

fn search(pools: &[Pool], rows: &[Row], cost: Cost) -> u64 {
    let known = HashMap::new();
    let mut search = Search {
        pools,
        rows,
        cost,
        known,
    };
    search.least(0, rows.iter().map(|row| row.2).collect())
}

impl Search<'_> {
    fn least(&mut self, now: u32, rest: Vec<u32>) -> u64 {
        if rest.iter().all(|rest| *rest == 0) {
            return 0;
        }
        if let Some(known) = self.known.get(&(now, rest.clone())) {
            return *known;
        }
        let present: Vec<usize> = (0..rest.len())
            .filter(|job| rest[*job] > 0 && self.rows[*job].0 <= now)
            .collect();
        let mut free: Vec<u32> = self.pools.iter().map(|pool| pool.0).collect();
        let here = (self.cost)(present.len() as u64);
        let least = here + self.try_from(&present, &mut free, now, &mut rest.clone(), present.is_empty());
        self.known.insert((now, rest), least);
        least
    }

    /// Everything that the jobs `present` may do in this second. Leaving all of them waiting never helps, and is not tried.
    fn try_from(
        &mut self,
        present: &[usize],
        free: &mut Vec<u32>,
        now: u32,
        rest: &mut Vec<u32>,
        anything: bool,
    ) -> u64 {
        let Some((job, others)) = present.split_first() else {
            return if anything {
                self.least(now + 1, rest.clone())
            } else {
                u64::MAX
            };
        };
        let mut least = self.try_from(others, free, now, rest, anything);
        let gang = self.rows[*job].1;
        for (kind, pool) in self.pools.iter().enumerate() {
            if free[kind] >= gang {
                let before = rest[*job];
                free[kind] -= gang;
                rest[*job] = before.saturating_sub(pool.1);
                least = least.min(self.try_from(others, free, now, rest, true));
                rest[*job] = before;
                free[kind] += gang;
            }
        }
        least
    }
}

/// Least sum of finish less release of jobs (release s, run s) on one server that never stops a job, over all orders.
pub fn least_sum_jct_without_preemption_s(rows: &[(u32, u32)]) -> u64 {
    fn from(now: u32, left: &[(u32, u32)]) -> u64 {
        let of = |at: usize| {
            let (release, run) = left[at];
            let end = now.max(release) + run;
            let mut others = left.to_vec();
            others.remove(at);
            u64::from(end - release) + from(end, &others)
        };
        (0..left.len()).map(of).min().unwrap_or(0)
    }
    from(0, rows)
}
