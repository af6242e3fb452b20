//! The engine: one heap of events at whole microseconds, queues by deadline, batches that end.
//!
//! All events of one instant come before the dispatcher is asked. A queue has at most one wake to come, the earliest
//! asked for. Requests and batches lie in slabs, so memory is what is in flight.

use std::cmp::Reverse;

use pleach_scheduler::ConfigError;
use pleach_scheduler::portable_math::exp;
use pleach_workloads::Seed;
use pleach_workloads::normal::standard_normal;

use super::app::{STAGES_MAX, Work};
use super::arrivals::Arrivals;
use super::events::Event;
use super::outcome::Outcome;
use super::platform::{Late, Platform};
use super::state::{Batch, Copies, Request, State, Waiting};

/// Weight of the last gap in a queue's mean gap between requests. *Assumed.*
const GAP_WEIGHT: f64 = 0.1;

/// Decides what runs next. It is asked after all events of an instant, and acts on the state until it has nothing more to do.
pub trait Dispatcher: Send {
    /// Starts batches, drops requests, asks to be woken.
    ///
    /// # Errors
    /// A policy that cannot decide.
    fn pass(&mut self, state: &mut State<'_>) -> Result<(), ConfigError>;
}

/// Plays requests. Deterministic in all arguments.
///
/// # Errors
/// Settings out of range; a configuration that fits no node; a dispatcher that fails.
pub fn simulate(
    work: &Work,
    platform: &Platform,
    arrivals: &Arrivals,
    dispatcher: &mut dyn Dispatcher,
    seed: Seed,
) -> Result<Outcome, ConfigError> {
    platform.check()?;
    arrivals.check()?;
    for function in &work.functions {
        let too_large = |k: &&super::Configuration| k.cores > platform.cores || k.slices > platform.slices;
        if let Some(k) = function.configurations().iter().find(too_large) {
            let key = format!("functions.{}", function.name());
            let value = format!("{} cores, {} slices", k.cores, k.slices);
            let allowed = format!(
                "what fits a node of {} cores and {} slices",
                platform.cores, platform.slices
            );
            return Err(ConfigError::new(key, value, allowed, "Take larger nodes."));
        }
    }
    let mut state = State::new(work, platform, Box::new(seed.stream("noise", 0)));
    let mut list = arrivals.draw(work.apps.len(), seed);
    let mut next = list.next();
    if let Some((at_us, _)) = next {
        state.events.put(at_us, Event::Arrive);
    }
    while let Some(Reverse((at_us, _, event))) = state.events.heap.pop() {
        state.now_us = at_us;
        match event {
            Event::Arrive => {
                if let Some((_, app)) = next {
                    state.arrive(app, arrivals.slo);
                }
                next = list.next();
                if let Some((at_us, _)) = next {
                    state.events.put(at_us, Event::Arrive);
                }
            }
            Event::Wake(_) => {}
            Event::End(batch) => state.end(batch),
        }
        let more = state
            .events
            .heap
            .peek()
            .is_some_and(|Reverse((then_us, ..))| *then_us == at_us);
        if !more {
            if platform.late != Late::Serve {
                state.expire();
            }
            if state.num_waiting > 0 {
                dispatcher.pass(&mut state)?;
            }
        }
    }
    Ok(state.close())
}

impl State<'_> {
    fn arrive(&mut self, app: usize, slo: f64) {
        let steps = self.work.apps[app].steps.clone();
        let target_us = (self.work.apps[app].base_us as f64 * slo) as u64;
        let mut open = [0; STAGES_MAX];
        for (open, step) in open.iter_mut().zip(steps.clone()) {
            *open = self.work.steps[step].num_previous as u8;
        }
        let request = Request {
            arrival_us: self.now_us,
            deadline_us: self.now_us + target_us,
            left: steps.len() as u8,
            open,
            homes: [None; STAGES_MAX],
            copies: Copies::default(),
        };
        self.outcome.num_requests += 1;
        let id = match self.free_requests.pop() {
            Some(id) => {
                self.requests[id as usize] = request;
                id
            }
            None => {
                self.requests.push(request);
                (self.requests.len() - 1) as u32
            }
        };
        let in_flight = self.requests.len() - self.free_requests.len();
        self.outcome.in_flight_max = self.outcome.in_flight_max.max(in_flight);
        for step in steps {
            if self.work.steps[step].num_previous == 0 {
                self.enqueue(id, step, None);
            }
        }
    }

    /// By deadline, from the back: later steps mix ages.
    fn enqueue(&mut self, id: u32, step: usize, home: Option<u16>) {
        let request = &mut self.requests[id as usize];
        request.copies.waiting += 1;
        let waiting = Waiting {
            request: id,
            ready_us: self.now_us,
            arrival_us: request.arrival_us,
            deadline_us: request.deadline_us,
            home,
        };
        let queue = &mut self.queues[step];
        if let Some(last_us) = queue.last_us {
            let gap_us = (self.now_us - last_us) as f64;
            queue.gap_us = if queue.gap_us == 0.0 {
                gap_us
            } else {
                GAP_WEIGHT * gap_us + (1.0 - GAP_WEIGHT) * queue.gap_us
            };
        }
        queue.last_us = Some(self.now_us);
        let before = |other: &&Waiting| other.deadline_us > waiting.deadline_us;
        let at = queue.waiting.len() - queue.waiting.iter().rev().take_while(before).count();
        queue.waiting.insert(at, waiting);
        self.num_waiting += 1;
    }

    fn end(&mut self, batch: u32) {
        let Batch {
            requests,
            step,
            node,
            held,
        } = &mut self.batches[batch as usize];
        let (requests, step, node, held) = (std::mem::take(requests), *step, *node, *held);
        let work = self.work;
        let place = &work.steps[step];
        let until_us = self.now_us + self.platform.keep_us;
        self.slots.give(usize::from(node), place.function, held, until_us);
        self.outcome.makespan_us = self.now_us;
        let first = work.apps[place.app].steps.start;
        for &id in &requests {
            let request = &mut self.requests[id as usize];
            request.copies.running -= 1;
            if request.copies.is_dropped {
                self.leave(id);
                continue;
            }
            request.left -= 1;
            if request.left == 0 {
                let latency_us = self.now_us - request.arrival_us;
                let is_hit = self.now_us <= request.deadline_us;
                *(if is_hit {
                    &mut self.outcome.hits
                } else {
                    &mut self.outcome.late
                }) += 1;
                self.outcome.latencies.add(latency_us);
                self.leave(id);
                continue;
            }
            for &next in &place.next {
                let request = &mut self.requests[id as usize];
                let stage = next - first;
                request.open[stage] -= 1;
                // Input that lies on two nodes is fetched wherever the step runs.
                let is_first = request.homes[stage].is_none();
                let home = (is_first || request.homes[stage] == Some(node)).then_some(node);
                request.homes[stage] = Some(home.unwrap_or(u16::MAX));
                if request.open[stage] == 0 {
                    let home = self.requests[id as usize].homes[stage];
                    self.enqueue(id, next, home);
                }
            }
        }
        self.batches[batch as usize].requests = requests;
        self.free_batches.push(batch);
    }

    /// Frees a request of which nothing waits or runs.
    fn leave(&mut self, id: u32) {
        let copies = self.requests[id as usize].copies;
        if copies.waiting + copies.running == 0 {
            self.free_requests.push(id);
        }
    }

    /// Takes a request that waits at a step out of the system, wherever else it waits; what runs of it ends by itself.
    pub(super) fn drop_request(&mut self, step: usize, id: u32) {
        self.requests[id as usize].copies.is_dropped = true;
        let steps = self.work.apps[self.work.steps[step].app].steps.clone();
        for step in std::iter::once(step).chain(steps) {
            if self.requests[id as usize].copies.waiting == 0 {
                break;
            }
            let waiting = &mut self.queues[step].waiting;
            if let Some(at) = waiting.iter().position(|waiting| waiting.request == id) {
                waiting.remove(at);
                self.requests[id as usize].copies.waiting -= 1;
                self.num_waiting -= 1;
            }
        }
        self.leave(id);
    }

    /// Drops requests whose deadline is past.
    fn expire(&mut self) {
        for step in 0..self.queues.len() {
            while let Some(head) = self.queues[step].waiting.front() {
                if head.deadline_us >= self.now_us {
                    break;
                }
                let id = head.request;
                self.outcome.expired += 1;
                self.drop_request(step, id);
            }
        }
    }

    /// Whoever waits although nothing more will happen is not served.
    fn close(mut self) -> Outcome {
        for step in 0..self.queues.len() {
            while let Some(head) = self.queues[step].waiting.front() {
                let id = head.request;
                self.outcome.expired += 1;
                self.drop_request(step, id);
            }
        }
        let outcome = self.outcome;
        debug_assert_eq!(
            outcome.num_requests,
            outcome.hits + outcome.late + outcome.shed + outcome.expired,
            "a request was lost or counted twice"
        );
        outcome
    }

    /// True latency of a batch: the profile's times a log-normal factor of median 1.
    pub(super) fn true_us(&mut self, profile_us: u64) -> u64 {
        if self.platform.noise == 0.0 {
            return profile_us;
        }
        let factor = exp(self.platform.noise * standard_normal(&mut self.rng));
        (profile_us as f64 * factor) as u64
    }
}
