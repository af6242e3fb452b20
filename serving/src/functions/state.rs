//! What a dispatcher sees and may do. True latencies of what is to come are not in it.

use std::collections::VecDeque;

use rand::Rng;

use super::app::{STAGES_MAX, Work};
use super::events::{Event, Events};
use super::outcome::Outcome;
use super::platform::{Late, Placing, Platform, Slots};
use super::profile::Configuration;

/// A request at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub(super) request: u32,
    /// Since when, us.
    pub ready_us: u64,
    /// When it came, us.
    pub arrival_us: u64,
    /// End of its target, us.
    pub deadline_us: u64,
    /// Node of its input; none at the first step, 65,535 where it lies on several.
    pub home: Option<u16>,
}

/// Requests of a step.
#[derive(Clone, Debug)]
pub struct Queue {
    /// By deadline.
    pub waiting: VecDeque<Waiting>,
    /// Mean time between two that came, later ones counted more, us; 0 before the second.
    pub gap_us: f64,
    pub(super) last_us: Option<u64>,
    pub(super) wake_us: Option<u64>,
}

/// Where parts of a request are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copies {
    pub waiting: u8,
    pub running: u8,
    pub is_dropped: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub arrival_us: u64,
    pub deadline_us: u64,
    /// How long it is known to run on the smallest shape, us; 0: as the profile says.
    pub run_us: u32,
    /// Steps that have not ended.
    pub left: u8,
    /// Of each stage: inputs that are not there.
    pub open: [u8; STAGES_MAX],
    /// Of each stage: where its inputs lie.
    pub homes: [Option<u16>; STAGES_MAX],
    pub copies: Copies,
}

#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub requests: Vec<u32>,
    pub step: usize,
    pub node: u16,
    /// Cores and slices.
    pub held: (u16, u16),
}

/// All that moves.
pub(super) struct Flight {
    pub now_us: u64,
    pub slots: Slots,
    pub queues: Vec<Queue>,
    pub num_waiting: usize,
    pub requests: Vec<Request>,
    pub free_requests: Vec<u32>,
    pub batches: Vec<Batch>,
    pub free_batches: Vec<u32>,
    pub events: Events,
    pub rng: Box<dyn Rng + Send + Sync>,
    pub outcome: Outcome,
}

impl Flight {
    pub fn new(work: &Work, platform: &Platform, rng: Box<dyn Rng + Send + Sync>) -> Flight {
        Flight {
            now_us: 0,
            slots: Slots::new(platform, work.functions.len()),
            queues: queues(work),
            num_waiting: 0,
            requests: Vec::new(),
            free_requests: Vec::new(),
            batches: Vec::new(),
            free_batches: Vec::new(),
            events: Events::default(),
            rng,
            outcome: Outcome::new(),
        }
    }
}

/// The system at an instant.
pub struct State<'a> {
    pub(super) work: &'a Work,
    pub(super) platform: &'a Platform,
    pub(super) flight: &'a mut Flight,
}

impl<'a> State<'a> {
    /// Functions and applications.
    #[must_use]
    pub fn work(&self) -> &'a Work {
        self.work
    }

    /// Machines and their rules.
    #[must_use]
    pub fn platform(&self) -> &'a Platform {
        self.platform
    }

    /// Now, us.
    #[must_use]
    pub fn now_us(&self) -> u64 {
        self.flight.now_us
    }

    /// Of each step.
    #[must_use]
    pub fn queues(&self) -> &[Queue] {
        &self.flight.queues
    }

    /// The first by deadline of a step's queue.
    #[must_use]
    pub fn head(&self, step: usize) -> Option<Waiting> {
        self.flight.queues[step].waiting.front().copied()
    }

    /// Nodes.
    #[must_use]
    pub fn num_nodes(&self) -> usize {
        self.flight.slots.num_nodes()
    }

    /// Free cores and slices of a node.
    #[must_use]
    pub fn free_of(&self, node: usize) -> (u16, u16) {
        self.flight.slots.free_of(node)
    }

    /// Free cores and slices of all nodes.
    #[must_use]
    pub fn free(&self) -> (u32, u32) {
        self.flight.slots.free()
    }

    /// Batches that run.
    #[must_use]
    pub fn num_running(&self) -> usize {
        self.flight.batches.len() - self.flight.free_batches.len()
    }

    /// Whether a node has room.
    #[must_use]
    pub fn fits(&self, node: usize, k: &Configuration) -> bool {
        self.flight.slots.fits(node, k)
    }

    /// Whether a container of the step's function is warm for a configuration.
    #[must_use]
    pub fn is_warm(&self, step: usize, node: usize, k: &Configuration) -> bool {
        self.flight
            .slots
            .is_warm(node, self.work.steps[step].function, k, self.flight.now_us)
    }

    /// A node for a batch of the step's head.
    #[must_use]
    pub fn place(&self, step: usize, k: &Configuration, placing: Placing) -> Option<usize> {
        let home = self.head(step).and_then(|head| head.home);
        let home = home
            .map(usize::from)
            .filter(|home| *home < self.flight.slots.num_nodes());
        self.flight.slots.place(
            (self.work.steps[step].function, k),
            home,
            placing,
            self.flight.now_us,
        )
    }

    /// Starts a batch where there is room for it, as [`State::place`] says. Whether there is.
    pub fn start(&mut self, step: usize, k: &Configuration, placing: Placing) -> bool {
        self.flight.outcome.asked += 1;
        match self.place(step, k, placing) {
            Some(node) => {
                self.dispatch(step, k, node);
                true
            }
            None => {
                self.flight.outcome.refused += 1;
                false
            }
        }
    }

    /// Starts a batch of the first requests of a queue, as many as there are up to the configuration's batch.
    ///
    /// # Panics
    /// If nothing waits or the node has no room.
    pub fn dispatch(&mut self, step: usize, k: &Configuration, node: usize) {
        assert!(self.flight.slots.fits(node, k), "node {node} has no room");
        let function_id = self.work.steps[step].function;
        let function = &self.work.functions[function_id];
        let queue = &mut self.flight.queues[step];
        let num = queue.waiting.len().min(usize::from(k.batch));
        assert!(num > 0, "nothing waits at step {step}");
        let batch = self.flight.free_batches.pop().unwrap_or_else(|| {
            self.flight.batches.push(Batch {
                requests: Vec::new(),
                step,
                node: 0,
                held: (0, 0),
            });
            (self.flight.batches.len() - 1) as u32
        });
        let slot = &mut self.flight.batches[batch as usize];
        slot.requests.clear();
        let (mut is_fetched, mut longest_us) = (false, 0);
        for waiting in queue.waiting.drain(..num) {
            is_fetched |= waiting.home.is_some_and(|home| usize::from(home) != node);
            slot.requests.push(waiting.request);
            let request = &mut self.flight.requests[waiting.request as usize];
            longest_us = longest_us.max(request.run_us);
            request.copies.waiting -= 1;
            request.copies.running += 1;
        }
        (slot.step, slot.node, slot.held) = (step, node as u16, (k.cores, k.slices));
        self.flight.num_waiting -= num;
        let is_cold = self.flight.slots.take(node, function_id, k, self.flight.now_us);
        let cold_us = if is_cold { function.cold_start_us() } else { 0 };
        let fetch_us = if is_fetched { self.platform.fetch_us } else { 0 };
        let profile_us = function.latency_us(k, num);
        let true_us = if longest_us > 0 {
            let of_smallest = profile_us as f64 / function.reference_us() as f64;
            (f64::from(longest_us) * of_smallest).round() as u64
        } else {
            self.true_us(profile_us)
        };
        let run_us = (true_us + fetch_us).max(1);
        let outcome = &mut self.flight.outcome;
        let usd_per_us = k.usd_per_us();
        outcome.usd += (run_us + cold_us) as f64 * usd_per_us;
        outcome.cold_usd += cold_us as f64 * usd_per_us;
        outcome.cold_starts += u64::from(is_cold);
        if is_cold {
            outcome.timeline.book_cold_start(self.flight.now_us);
        }
        outcome.batches += 1;
        outcome.batched += num as u64;
        outcome.slice_us += (run_us + cold_us) as f64 * f64::from(k.slices);
        outcome.core_us += (run_us + cold_us) as f64 * f64::from(k.cores);
        self.flight
            .events
            .put(self.flight.now_us + cold_us + run_us, Event::End(batch));
    }

    /// Drops the first request of a queue, where that is allowed. Whether it is.
    pub fn shed(&mut self, step: usize) -> bool {
        let Some(head) = self.head(step).filter(|_| self.platform.late == Late::Shed) else {
            return false;
        };
        self.flight.outcome.shed += 1;
        self.drop_request(step, head.request);
        true
    }

    /// Asks for a pass at a time because of a queue; an earlier one that was asked for stays.
    pub fn wake(&mut self, step: usize, at_us: u64) {
        let at_us = at_us.max(self.flight.now_us + 1);
        let queue = &mut self.flight.queues[step];
        if queue
            .wake_us
            .is_some_and(|wake_us| wake_us > self.flight.now_us && wake_us <= at_us)
        {
            return;
        }
        queue.wake_us = Some(at_us);
        self.flight.events.put(at_us, Event::Wake(step as u32));
    }
}

/// An empty queue for each step.
fn queues(work: &Work) -> Vec<Queue> {
    let queue = Queue {
        waiting: VecDeque::new(),
        gap_us: 0.0,
        last_us: None,
        wake_us: None,
    };
    vec![queue; work.steps.len()]
}
