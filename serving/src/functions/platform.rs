//! The machines: nodes with cores and slices of a GPU, what holds them, and containers that are warm.

use std::collections::VecDeque;

use pleach_scheduler::settings;
use serde::{Deserialize, Serialize};

use super::profile::Configuration;

/// Slices of a whole GPU, the most that a node has: instances of an A100.
pub const GPU_SLICES: u16 = 7;

/// How slices are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Shares of MPS: a container may be given any number of slices anew at each batch. Nothing isolates them.
    Mps,
    /// Instances of MIG: a container keeps the slices that it was made with, idle or not, and any other number is a cold
    /// start.
    Mig,
}

/// What becomes of requests that are late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
    /// They are served.
    Serve,
    /// They are dropped once their deadline is past.
    Expire,
    /// So they are, and a dispatcher may drop those that it believes to be late.
    Shed,
}

settings! {
    /// Machines, and how they behave.
    ///
    /// ESG's testbed (HPDC'24): 16 nodes of 16 cores and an A100 of seven slices; OpenWhisk's ten minutes. Noise, the
    /// fetch (5 MB at 1 GB/s) and three warm containers are *assumed*.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Platform {
        /// Nodes, 1 to 1,024.
        pub nodes: u16 = 16, in 1..=1024;
        /// Cores of a node, 1 to 1,024.
        pub cores: u16 = 16, in 1..=1024;
        /// Slices of a node's GPU, 1 to 7.
        pub slices: u16 = 7, in 1..=GPU_SLICES;
        /// How slices are made.
        pub sharing: Sharing = Sharing::Mps;
        /// Spread of the logarithm of a true latency around the profile's, 0 to 1.
        pub noise: f64 = 0.05, in 0.0..=1.0;
        /// Time that a batch takes longer where the output of the step before lies on another node, us.
        pub fetch_us: u64 = 5_000, in 0..=1_000_000_000;
        /// Warm containers of each function on each node at the beginning, 0 to 1,000; none with MIG.
        pub prewarmed: u16 = 3, in 0..=1000;
        /// How long an idle container is kept, us.
        pub keep_us: u64 = 600_000_000, in 0..=1_000_000_000_000;
        /// What becomes of late requests.
        pub late: Late = Late::Serve;
    }
}

/// How a node is chosen for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    /// Where its input lies, if a container is warm there; else where one is warm; else the freest (ESG's dispatch).
    Warm,
    /// The same, but never a cold start while the function has a container anywhere. *Ours.*
    Kept,
    /// The fullest node on which it fits, whatever is warm.
    Tight,
}

/// An idle container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Idle {
    since_us: u64,
    until_us: u64,
    slices: u16,
}

#[derive(Clone, Debug)]
struct Node {
    cores: u16,
    slices: u16,
    /// Of each function, by the end of their time.
    idle: Vec<VecDeque<Idle>>,
}

/// What is free, and what is warm.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    nodes: Vec<Node>,
    sharing: Sharing,
    whole: (u16, u16),
    /// Of each function: batches that run, with MIG by slices.
    running: Vec<[u32; GPU_SLICES as usize + 1]>,
    cores: u32,
    slices: u32,
    /// Time that containers were warm and idle, those that are so now left out, us.
    idle_us: u64,
}

impl Slots {
    pub(crate) fn new(platform: &Platform, num_functions: usize) -> Slots {
        let warm = Idle {
            since_us: 0,
            until_us: u64::MAX,
            slices: 0,
        };
        let prewarmed = match platform.sharing {
            Sharing::Mps => usize::from(platform.prewarmed),
            Sharing::Mig => 0,
        };
        let node = Node {
            cores: platform.cores,
            slices: platform.slices,
            idle: vec![vec![warm; prewarmed].into(); num_functions],
        };
        Slots {
            nodes: vec![node; usize::from(platform.nodes)],
            sharing: platform.sharing,
            whole: (platform.cores, platform.slices),
            running: vec![[0; GPU_SLICES as usize + 1]; num_functions],
            cores: u32::from(platform.cores) * u32::from(platform.nodes),
            slices: u32::from(platform.slices) * u32::from(platform.nodes),
            idle_us: 0,
        }
    }

    pub(crate) fn num_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Free cores and slices of a node.
    pub(crate) fn free_of(&self, node: usize) -> (u16, u16) {
        (self.nodes[node].cores, self.nodes[node].slices)
    }

    /// Free cores and slices of all nodes together.
    pub(crate) fn free(&self) -> (u32, u32) {
        (self.cores, self.slices)
    }

    pub(crate) fn fits(&self, node: usize, k: &Configuration) -> bool {
        self.nodes[node].cores >= k.cores && self.nodes[node].slices >= k.slices
    }

    /// Whether an idle container takes the configuration at once.
    pub(crate) fn is_warm(&self, node: usize, function: usize, k: &Configuration, now_us: u64) -> bool {
        let idle = &self.nodes[node].idle[function];
        match self.sharing {
            Sharing::Mps => idle.back().is_some_and(|idle| idle.until_us >= now_us),
            Sharing::Mig => idle
                .iter()
                .any(|idle| idle.slices == k.slices && idle.until_us >= now_us),
        }
    }

    /// A node for a configuration, with whether a container is warm there; `home` holds the input.
    pub(crate) fn place(
        &self,
        (function, k): (usize, &Configuration),
        home: Option<usize>,
        placing: Placing,
        now_us: u64,
    ) -> Option<usize> {
        if self.cores < u32::from(k.cores) || self.slices < u32::from(k.slices) {
            return None;
        }
        let free = |node: usize| {
            u32::from(self.nodes[node].slices) * u32::from(self.whole.0) + u32::from(self.nodes[node].cores)
        };
        let fitting = (0..self.nodes.len()).filter(|node| self.fits(*node, k));
        match placing {
            // The first of equal ones: the lowest number.
            Placing::Tight => fitting.min_by_key(|node| free(*node)),
            Placing::Warm | Placing::Kept => {
                let is_warm = |node: usize| self.is_warm(node, function, k, now_us);
                if let Some(home) = home.filter(|home| self.fits(*home, k) && is_warm(*home)) {
                    return Some(home);
                }
                let mut best = None;
                for node in fitting {
                    let key = (is_warm(node), free(node));
                    if best.is_none_or(|(than, _)| key > than) {
                        best = Some((key, node));
                    }
                }
                let is_kept = placing == Placing::Kept && self.has_container(function, k, now_us);
                best.filter(|((is_warm, _), _)| *is_warm || !is_kept)
                    .map(|(_, node)| node)
            }
        }
    }

    /// Whether a container of a function that can take the configuration, now or later, runs or waits anywhere.
    fn has_container(&self, function: usize, k: &Configuration, now_us: u64) -> bool {
        let is_warm = |node: usize| self.is_warm(node, function, k, now_us);
        self.running[function][self.kind_of(k.slices)] > 0 || (0..self.nodes.len()).any(is_warm)
    }

    /// Containers of one kind take one another's batches: with MPS all do, with MIG those of as many slices.
    fn kind_of(&self, slices: u16) -> usize {
        match self.sharing {
            Sharing::Mps => 0,
            Sharing::Mig => usize::from(slices),
        }
    }

    /// Holds what a configuration needs. Whether a container had to be made.
    pub(crate) fn take(&mut self, node: usize, function: usize, k: &Configuration, now_us: u64) -> bool {
        debug_assert!(self.fits(node, k), "node {node} is full");
        self.cores -= u32::from(k.cores);
        self.slices -= u32::from(k.slices);
        let kind = self.kind_of(k.slices);
        self.running[function][kind] += 1;
        let sharing = self.sharing;
        let node = &mut self.nodes[node];
        node.cores -= k.cores;
        node.slices -= k.slices;
        let idle = &mut node.idle[function];
        while let Some(past) = idle.pop_front_if(|idle| idle.until_us < now_us) {
            self.idle_us = self.idle_us.saturating_add(past.until_us - past.since_us);
        }
        let taken = match sharing {
            Sharing::Mps => idle.pop_back(),
            Sharing::Mig => {
                let same = idle.iter().rposition(|idle| idle.slices == k.slices);
                let taken = same.and_then(|place| idle.remove(place));
                if taken.is_none() {
                    self.idle_us = self.idle_us.saturating_add(node.make_room(now_us));
                }
                taken
            }
        };
        let idle_us = taken.map_or(0, |idle| now_us - idle.since_us);
        self.idle_us = self.idle_us.saturating_add(idle_us);
        taken.is_none()
    }

    /// Time that containers have been warm and idle up to now, us; at most what 64 bits hold.
    pub(crate) fn idle_us(&self, now_us: u64) -> u64 {
        let idle = self.nodes.iter().flat_map(|node| node.idle.iter().flatten());
        let spans_us = idle.map(|idle| idle.until_us.min(now_us) - idle.since_us);
        spans_us.fold(self.idle_us, u64::saturating_add)
    }

    /// Gives it back; the container stays warm for a while.
    pub(crate) fn give(
        &mut self,
        node: usize,
        function: usize,
        (cores, slices): (u16, u16),
        (since_us, until_us): (u64, u64),
    ) {
        self.cores += u32::from(cores);
        self.slices += u32::from(slices);
        let kind = self.kind_of(slices);
        self.running[function][kind] -= 1;
        let node = &mut self.nodes[node];
        node.cores += cores;
        node.slices += slices;
        let idle = &mut node.idle[function];
        let at = idle.partition_point(|idle| idle.until_us <= until_us);
        let container = Idle {
            since_us,
            until_us,
            slices,
        };
        idle.insert(at, container);
    }
}

impl Node {
    /// Idle instances that end first go, until those that are left fit beside what runs. How long they were idle, us.
    fn make_room(&mut self, now_us: u64) -> u64 {
        let mut idle_us = 0;
        let held = |idle: &[VecDeque<Idle>]| {
            idle.iter()
                .flatten()
                .map(|idle| u32::from(idle.slices))
                .sum::<u32>()
        };
        while held(&self.idle) > u32::from(self.slices) {
            let first = |idle: &VecDeque<Idle>| {
                idle.iter()
                    .position(|idle| idle.slices > 0)
                    .map(|place| (idle[place].until_us, place))
            };
            let ends = self
                .idle
                .iter()
                .enumerate()
                .filter_map(|(function, idle)| Some((first(idle)?, function)));
            let Some(((_, place), function)) = ends.min() else {
                break;
            };
            if let Some(gone) = self.idle[function].remove(place) {
                idle_us += gone.until_us.min(now_us) - gone.since_us;
            }
        }
        idle_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn k(slices: u16) -> Configuration {
        Configuration {
            batch: 1,
            cores: 1,
            slices,
            latency_us: 1,
        }
    }

    fn slots(sharing: Sharing, prewarmed: u16) -> Slots {
        let platform = Platform {
            nodes: 2,
            cores: 8,
            sharing,
            prewarmed,
            ..Platform::default()
        };
        Slots::new(&platform, 2)
    }

    #[test]
    fn containers_are_warm_for_their_time_and_shares_of_mps_are_any() {
        let mut slots = slots(Sharing::Mps, 0);
        assert!(slots.take(0, 0, &k(2), 0), "none was there");
        slots.give(0, 0, (1, 2), (0, 100));
        assert!(slots.is_warm(0, 0, &k(4), 100) && !slots.is_warm(0, 0, &k(4), 101));
        assert!(!slots.is_warm(0, 1, &k(2), 50) && !slots.is_warm(1, 0, &k(2), 50));
        assert!(!slots.take(0, 0, &k(4), 100), "warm");
        assert_eq!((slots.free_of(0), slots.free()), ((7, 3), (15, 10)));
    }

    #[test]
    fn an_instance_of_mig_keeps_its_slices_and_goes_where_room_is_needed() {
        let mut slots = slots(Sharing::Mig, 5);
        assert!(slots.take(0, 0, &k(3), 0), "nothing is made beforehand");
        slots.give(0, 0, (1, 3), (0, 100));
        assert!(slots.is_warm(0, 0, &k(3), 1) && !slots.is_warm(0, 0, &k(4), 1));
        assert!(slots.take(0, 1, &k(4), 1), "beside the idle three");
        assert!(slots.is_warm(0, 0, &k(3), 1));
        slots.give(0, 1, (1, 4), (0, 200));
        assert!(
            slots.take(0, 1, &k(2), 2),
            "seven idle slices: that which ends first goes"
        );
        assert!(!slots.is_warm(0, 0, &k(3), 2) && slots.is_warm(0, 1, &k(4), 2));
    }

    #[test]
    fn idle_times_that_no_64_bits_hold_stay_at_the_most_that_they_do() {
        let mut slots = slots(Sharing::Mps, 1_000);
        assert_eq!(slots.idle_us(10), 2 * 2 * 1_000 * 10);
        assert_eq!(slots.idle_us(u64::MAX / 2), u64::MAX);
        for _ in 0..3 {
            assert!(!slots.take(0, 0, &k(1), u64::MAX / 2));
        }
        assert_eq!(slots.idle_us(u64::MAX / 2), u64::MAX);
    }

    #[test]
    fn an_instance_of_other_slices_keeps_no_batch_of_mig_waiting() {
        let mut slots = slots(Sharing::Mig, 0);
        let place = |slots: &Slots, slices| slots.place((0, &k(slices)), None, Placing::Kept, 5);
        assert!(slots.take(0, 0, &k(2), 0));
        assert_eq!(place(&slots, 2), None, "one of two slices runs and is waited for");
        assert_eq!(
            place(&slots, 3),
            Some(1),
            "none of three ever comes unless one is made"
        );
        slots.give(0, 0, (1, 2), (0, 100));
        assert_eq!((place(&slots, 2), place(&slots, 3)), (Some(0), Some(0)), "idle");
    }

    #[test]
    fn a_batch_goes_to_its_input_then_where_it_is_warm_then_to_the_freest() {
        let mut slots = slots(Sharing::Mps, 0);
        let place = |slots: &Slots, home, placing| slots.place((0, &k(2)), home, placing, 5);
        assert_eq!(
            place(&slots, Some(1), Placing::Warm),
            Some(0),
            "cold at home: the first of the freest"
        );
        slots.take(1, 0, &k(1), 0);
        slots.take(1, 1, &k(1), 0);
        slots.give(1, 0, (1, 1), (0, 100));
        assert_eq!(place(&slots, None, Placing::Warm), Some(1), "warm");
        slots.take(0, 0, &k(1), 0);
        slots.give(0, 0, (1, 1), (0, 100));
        assert_eq!(
            place(&slots, None, Placing::Warm),
            Some(0),
            "both warm: the freest"
        );
        assert_eq!(place(&slots, Some(1), Placing::Warm), Some(1), "input");
        assert_eq!(place(&slots, None, Placing::Tight), Some(1), "fullest");
        slots.take(1, 0, &k(6), 0);
        assert_eq!(place(&slots, Some(1), Placing::Tight), Some(0), "full");
        assert_eq!(place(&slots, None, Placing::Kept), Some(0), "warm");
        slots.take(0, 0, &k(1), 5);
        assert_eq!(
            place(&slots, None, Placing::Kept),
            None,
            "one runs, so none is made"
        );
        assert_eq!(
            slots.place((1, &k(2)), None, Placing::Kept, 5),
            None,
            "its only one runs too"
        );
        slots.give(1, 1, (1, 1), (0, 0));
        assert_eq!(
            slots.place((1, &k(2)), None, Placing::Kept, 5),
            Some(0),
            "its time is past: one is made"
        );
    }
}
