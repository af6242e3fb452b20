//! What is believed to be free from now on: steps over time, from which reservations are cut.

use pleach_scheduler::cluster::{Cluster, NodeState};
use pleach_scheduler::{GpuTypeId, TenantId, Time};

/// A quantity over time, in thousandths of GPUs: (from, free), ascending; the last one stays for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Steps(Vec<(Time, i64)>);

impl Steps {
    fn new(now: Time, free: i64) -> Steps {
        Steps(vec![(now, free)])
    }

    /// Makes a step at an instant, if there is none; its position. Instants before the first step count as that one.
    fn cut(&mut self, at: Time) -> usize {
        let position = self.0.partition_point(|(from, _)| *from < at);
        match self.0.get(position) {
            Some((from, _)) if *from == at => {}
            _ if position == 0 => {}
            _ => self.0.insert(position, (at, self.0[position - 1].1)),
        }
        position
    }

    fn add(&mut self, from: Time, until: Time, milli: i64) {
        let (first, end) = (self.cut(from), self.cut(until));
        // The second cut comes behind the first, whose position therefore stays.
        for (_, free) in &mut self.0[first..end] {
            *free += milli;
        }
    }

    fn add_from(&mut self, from: Time, milli: i64) {
        let first = self.cut(from);
        for (_, free) in &mut self.0[first..] {
            *free += milli;
        }
    }

    /// The first instant, not before `from`, from which so much is free for so long; none if that never comes.
    fn clear_from(&self, from: Time, length: Time, milli: i64) -> Option<Time> {
        let mut at = from;
        let first = self.0.partition_point(|(start, _)| *start <= from).max(1) - 1;
        for (position, (start, free)) in self.0.iter().enumerate().skip(first) {
            if *start >= at + length && position > first {
                break;
            }
            if *free < milli {
                at = self.0.get(position + 1)?.0.max(at);
            }
        }
        Some(at)
    }
}

/// A time on a type, held for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) kind: GpuTypeId,
    pub(super) start: Time,
    pub(super) length: Time,
}

/// What a slot takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) tenant: TenantId,
    pub(super) milli: u64,
}

/// Free GPUs of each type, and of each quota where borrowing is off.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    now: Time,
    types: Vec<Steps>,
    quotas: Option<Vec<Steps>>,
}

impl Calendar {
    /// As the running jobs are believed to end; a job that has outlived its estimate ends in a second.
    pub(super) fn of(cluster: &Cluster) -> Calendar {
        let now = cluster.now();
        let mut free: Vec<i64> = (0..cluster.num_types())
            .map(|kind| i64::from(cluster.num_free_of(GpuTypeId(kind as u8))) * 1000)
            .collect();
        for (_, gpu) in cluster.shared_gpus() {
            if cluster.nodes()[gpu.node.index()].state == NodeState::Up {
                free[gpu.gpu_type.index()] += i64::from(gpu.milli_left());
            }
        }
        let mut types: Vec<Steps> = free.into_iter().map(|free| Steps::new(now, free)).collect();
        let mut quotas: Option<Vec<Steps>> = (!cluster.borrowing()).then(|| {
            let left = cluster.tenants().iter().map(|tenant| {
                let quota = i64::from(tenant.quota_gpus) * 1000;
                Steps::new(now, quota - tenant.used_milli as i64)
            });
            left.collect()
        });
        let soon = now + Time::from_secs_f64(1.0);
        let mut ends: Vec<_> = cluster
            .running()
            .map(|id| (cluster.job(id).expected_finish.max(soon), id))
            .collect();
        // Earliest first, so that each step comes behind all others.
        ends.sort_unstable();
        for (end, id) in ends {
            let job = cluster.job(id);
            let each = i64::from(job.request.resources.gpu_milli);
            for slice in &job.placement {
                let node = &cluster.nodes()[slice.node.index()];
                if node.state == NodeState::Up {
                    let milli = i64::from(slice.num_gpus()) * each;
                    types[node.gpu_type.index()].add_from(end, milli);
                }
            }
            if let Some(quotas) = &mut quotas {
                quotas[job.request.tenant.index()].add_from(end, job.milli_held() as i64);
            }
        }
        Calendar { now, types, quotas }
    }

    /// The first slot of a length on a type.
    pub(super) fn earliest(&self, ask: Ask, kind: GpuTypeId, length: Time) -> Option<Slot> {
        let milli = ask.milli as i64;
        let mut at = self.now;
        loop {
            let start = self.types[kind.index()].clear_from(at, length, milli)?;
            let both = match &self.quotas {
                Some(quotas) => quotas[ask.tenant.index()].clear_from(start, length, milli)?,
                None => start,
            };
            if both == start {
                return Some(Slot { kind, start, length });
            }
            at = both;
        }
    }

    /// Whether a slot is free as it is.
    pub(super) fn is_clear(&self, ask: Ask, slot: Slot) -> bool {
        let milli = ask.milli as i64;
        let clear = |steps: &Steps| steps.clear_from(slot.start, slot.length, milli) == Some(slot.start);
        let quotas = self.quotas.as_ref().map(|quotas| &quotas[ask.tenant.index()]);
        clear(&self.types[slot.kind.index()]) && quotas.is_none_or(clear)
    }

    /// Holds a slot.
    pub(super) fn take(&mut self, ask: Ask, slot: Slot) {
        self.change(ask, slot, -(ask.milli as i64));
    }

    /// Gives it back.
    pub(super) fn give_back(&mut self, ask: Ask, slot: Slot) {
        self.change(ask, slot, ask.milli as i64);
    }

    fn change(&mut self, ask: Ask, slot: Slot, milli: i64) {
        let until = slot.start + slot.length;
        self.types[slot.kind.index()].add(slot.start, until, milli);
        if let Some(quotas) = &mut self.quotas {
            quotas[ask.tenant.index()].add(slot.start, until, milli);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_gap_is_used_if_it_is_long_enough() {
        // 2 GPUs are free until 10 s, none until 20 s, 4 from then on.
        let mut steps = Steps::new(Time(0), 2000);
        steps.add_from(Time(10), -2000);
        steps.add_from(Time(20), 4000);
        assert_eq!(steps.clear_from(Time(0), Time(10), 2000), Some(Time(0)));
        assert_eq!(steps.clear_from(Time(0), Time(11), 2000), Some(Time(20)));
        assert_eq!(steps.clear_from(Time(1), Time(10), 1000), Some(Time(20)));
        assert_eq!(steps.clear_from(Time(0), Time(1), 4000), Some(Time(20)));
        assert_eq!(steps.clear_from(Time(0), Time(1), 5000), None);
        assert_eq!(steps.clear_from(Time(30), Time(1), 4000), Some(Time(30)));
    }

    proptest! {
        #[test]
        fn slots_agree_with_a_table_of_instants(
            slots in proptest::collection::vec((0_u64..30, 1_u64..12, 1_i64..4), 0..12),
            from in 0_u64..30, length in 1_u64..12, wanted in 1_i64..6,
        ) {
            // The slow way: free GPUs at every instant of a horizon beyond which all 5 are free.
            const ALL: i64 = 5;
            let mut steps = Steps::new(Time(0), ALL);
            let mut table = [ALL; 100];
            for (start, length, milli) in slots {
                steps.add(Time(start as i64), Time((start + length) as i64), -milli);
                for free in &mut table[start as usize..(start + length) as usize] {
                    *free -= milli;
                }
            }
            let clear = |at: usize| table[at..at + length as usize].iter().all(|free| *free >= wanted);
            let slow = (from as usize..80).find(|at| clear(*at));
            let fast = steps.clear_from(Time(from as i64), Time(length as i64), wanted);
            prop_assert_eq!(fast.map(|at| at.0 as usize), slow);
        }
    }
}
