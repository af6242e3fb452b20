//! The scheduling queue: pods to be tried (`activeQ`), pods that back off (`backoffQ`), and refused ones that wait for a change.
//!
//! # Source
//! `pkg/scheduler/backend/queue` of Kubernetes 1.36 with the gate `SchedulerPopFromBackoffQ`, on by default; held to the attempts of
//! a recorded scheduler.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::Time;

/// `podInitialBackoffSeconds` and `podMaxBackoffSeconds`, s: defaults of `KubeSchedulerConfiguration`.
const BACKOFF_S: (i64, i64) = (1, 10);
/// `backoffQOrderingWindowDuration`.
const SECOND_US: i64 = 1_000_000;

/// When a pod came or was last refused; those of one instant in their order.
type Stamp = (Time, u64);
/// Highest priority first, then the earliest stamp.
type Rank = (Reverse<i32>, Stamp);

#[derive(Clone, Copy, Debug)]
struct Row {
    rank: Rank,
    refusals: u32,
}

/// Pods by keys of any kind.
#[derive(Clone, Debug)]
pub struct Queue<K> {
    rows: BTreeMap<K, Row>,
    active: BTreeSet<(Rank, K)>,
    backoff: BTreeSet<(i64, Rank, K)>,
    refused: BTreeSet<K>,
    /// Time 0 on the wall clock, µs: backoffs end with its seconds.
    zero_us: i64,
    num_stamps: u64,
}

impl<K: Copy + Ord> Queue<K> {
    /// An empty queue whose time 0 is so long after a whole second of the wall clock, s.
    #[must_use]
    pub fn new(zero_s: f64) -> Queue<K> {
        Queue {
            rows: BTreeMap::new(),
            active: BTreeSet::new(),
            backoff: BTreeSet::new(),
            refused: BTreeSet::new(),
            zero_us: Time::from_secs_f64(zero_s).0,
            num_stamps: 0,
        }
    }

    /// The second of the wall clock.
    pub(super) fn second(&self, at: Time) -> i64 {
        (self.zero_us + at.0).div_euclid(SECOND_US)
    }

    fn stamp(&mut self, now: Time) -> Stamp {
        self.num_stamps += 1;
        (now, self.num_stamps)
    }

    /// The second in which the backoff of a pod ends.
    fn ends(&self, row: &Row) -> i64 {
        let (first_s, most_s) = BACKOFF_S;
        let backoff_s = (first_s << row.refusals.saturating_sub(1).min(8)).min(most_s);
        let (_, (at, _)) = row.rank;
        self.second(at + Time(backoff_s * SECOND_US))
    }

    /// A new pod, to be tried.
    pub fn add(&mut self, pod: K, priority: i32, now: Time) {
        self.remove(pod);
        let rank = (Reverse(priority), self.stamp(now));
        self.rows.insert(pod, Row { rank, refusals: 0 });
        self.active.insert((rank, pod));
    }

    /// A pod that is gone.
    pub fn remove(&mut self, pod: K) {
        self.take(pod);
        self.rows.remove(&pod);
    }

    /// Takes a pod out for a try: it is in no queue until it is refused, added anew or removed.
    pub fn take(&mut self, pod: K) {
        if let Some(row) = self.rows.get(&pod).copied() {
            self.active.remove(&(row.rank, pod));
            self.backoff.remove(&(self.ends(&row), row.rank, pod));
            self.refused.remove(&pod);
        }
    }

    /// Takes out the pod that is tried next: of those to be tried the first; where there is none, of those that back off the one whose
    /// backoff ends first.
    pub fn pop(&mut self, now: Time) -> Option<K> {
        let second = self.second(now);
        while let Some((ends, rank, pod)) = self.backoff.first().copied().filter(|first| first.0 < second) {
            self.backoff.remove(&(ends, rank, pod));
            self.active.insert((rank, pod));
        }
        let active = self.active.pop_first().map(|(_, pod)| pod);
        active.or_else(|| self.backoff.pop_first().map(|(.., pod)| pod))
    }

    /// A pod that was tried and fits nowhere waits for a change.
    pub fn refuse(&mut self, pod: K, now: Time) {
        let stamp = self.stamp(now);
        if let Some(row) = self.rows.get_mut(&pod) {
            row.rank.1 = stamp;
            row.refusals += 1;
            self.refused.insert(pod);
        }
    }

    /// A change for one refused pod; whether it backs off.
    pub fn wake_one(&mut self, pod: K, now: Time) -> bool {
        let Some(row) = self.rows.get(&pod).copied().filter(|_| self.refused.remove(&pod)) else {
            return false;
        };
        let ends = self.ends(&row);
        let backs_off = ends >= self.second(now);
        match backs_off {
            true => self.backoff.insert((ends, row.rank, pod)),
            false => self.active.insert((row.rank, pod)),
        };
        backs_off
    }

    /// A change for all: a pod has ended, or a node has come.
    pub fn wake(&mut self, now: Time) {
        for pod in self.refused.clone() {
            self.wake_one(pod, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_back_off_are_tried_after_those_that_do_not_by_the_second_of_their_end() {
        let at = Time::from_secs_f64;
        let mut queue = Queue::new(0.5);
        for pod in 0..3 {
            queue.add(pod, 0, at(0.0));
            assert_eq!(queue.pop(at(0.0)), Some(pod));
            queue.refuse(pod, at(0.1 * f64::from(pod)));
        }
        assert_eq!(queue.pop(at(9.0)), None, "refused ones wait for a change");
        queue.add(3, 0, at(0.3));
        queue.add(4, 1, at(0.4));
        queue.wake(at(0.4));
        // By priority, then by the last refusal.
        let order: Vec<i32> = std::iter::from_fn(|| queue.pop(at(0.4))).collect();
        assert_eq!(order, [4, 3, 0, 1, 2]);
        // 0 is refused for the second time and backs off for 2 s, 1 for 1 s, 2 since long ago.
        queue.refuse(2, at(1.0));
        queue.add(1, 0, at(8.0));
        assert_eq!(queue.pop(at(8.0)), Some(1));
        queue.refuse(0, at(8.0));
        queue.refuse(1, at(8.1));
        assert!(queue.wake_one(0, at(8.2)) && queue.wake_one(1, at(8.2)) && !queue.wake_one(2, at(8.2)));
        let order: Vec<i32> = std::iter::from_fn(|| queue.pop(at(8.2))).collect();
        assert_eq!(order, [2, 1, 0]);
    }
}
