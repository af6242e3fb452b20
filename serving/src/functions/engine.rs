//! The engine: one heap of events at whole microseconds, queues by deadline, batches that end.
//!
//! All events of one instant come before the dispatcher is asked. A queue has at most one wake to come, the earliest
//! asked for. Requests and batches lie in slabs, so memory is what is in flight.

use std::borrow::Cow;
use std::cmp::Reverse;

use pleach_scheduler::Problem;
use pleach_scheduler::portable_math::exp;
use pleach_scheduler::settings::Settings as _;
use pleach_workloads::Seed;
use pleach_workloads::normal::standard_normal;

use super::app::{STAGES_MAX, Work};
use super::arrivals::Arrivals;
use super::calls::Call;
use super::events::Event;
use super::outcome::Outcome;
use super::platform::{Late, Platform};
use super::state::{Batch, Copies, Flight, Request, State, Waiting};

/// Weight of the last gap in a queue's mean gap between requests. *Assumed.*
const GAP_WEIGHT: f64 = 0.1;

/// Decides what runs next. It is asked after all events of an instant, and acts on the state until it has nothing more to do.
pub trait Dispatcher: Send {
    /// Starts batches, drops requests, asks to be woken.
    ///
    /// # Errors
    /// A policy that cannot decide.
    fn pass(&mut self, state: &mut State<'_>) -> Result<(), Problem>;
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
) -> Result<Outcome, Problem> {
    let run = Run::drawn(Cow::Borrowed(work), Cow::Borrowed(platform), arrivals, seed)?;
    run.play(dispatcher)
}

/// Plays calls of a recorded list: each is a request of the application of its function's number, runs as long as it did, and is
/// in time within `slo` times that. Deterministic in all arguments.
///
/// # Errors
/// As [`simulate`]; a target out of range.
pub fn replay(
    work: &Work,
    platform: &Platform,
    (calls, slo): (&[Call], f64),
    dispatcher: &mut dyn Dispatcher,
) -> Result<Outcome, Problem> {
    Problem::refuse_if(
        !(0.01..=1e3).contains(&slo),
        "slo",
        slo,
        "0.01 to 1000",
        "2: as long again as it runs.",
    )?;
    let list = calls.iter().map(|call| Coming {
        at_us: call.at_us,
        app: call.function as usize,
        run_us: call.run_us,
    });
    let (work, platform) = (Cow::Borrowed(work), Cow::Borrowed(platform));
    Run::new((work, platform), (Box::new(list), slo), Seed(0))?.play(dispatcher)
}

/// A request to come.
#[derive(Clone, Copy, Debug)]
struct Coming {
    at_us: u64,
    app: usize,
    /// How long it runs on the smallest shape, us; 0: as the profile says.
    run_us: u32,
}

/// Requests to come, and their target.
type List<'a> = (Box<dyn Iterator<Item = Coming> + Send + Sync + 'a>, f64);

/// A run under way, from pass to pass.
pub(super) struct Run<'a> {
    work: Cow<'a, Work>,
    platform: Cow<'a, Platform>,
    list: List<'a>,
    next: Option<Coming>,
    flight: Flight,
}

impl<'a> Run<'a> {
    /// # Errors
    /// Settings out of range; a configuration that fits no node.
    pub(super) fn drawn(
        work: Cow<'a, Work>,
        platform: Cow<'a, Platform>,
        arrivals: &Arrivals,
        seed: Seed,
    ) -> Result<Run<'a>, Problem> {
        arrivals.check()?;
        let list = arrivals.draw(work.apps.len(), seed);
        let list = list.map(|(at_us, app)| Coming {
            at_us,
            app,
            run_us: 0,
        });
        Run::new((work, platform), (Box::new(list), arrivals.slo), seed)
    }

    fn new(
        (work, platform): (Cow<'a, Work>, Cow<'a, Platform>),
        list: List<'a>,
        seed: Seed,
    ) -> Result<Run<'a>, Problem> {
        platform.check_at("", "")?;
        check_sizes(&work, &platform)?;
        let flight = Flight::new(&work, &platform, Box::new(seed.stream("noise", 0)));
        let mut run = Run {
            list,
            next: None,
            work,
            platform,
            flight,
        };
        run.draw();
        Ok(run)
    }

    /// Draws the next request.
    fn draw(&mut self) {
        self.next = self.list.0.next();
        if let Some(coming) = self.next {
            self.flight.events.put(coming.at_us, Event::Arrive);
        }
    }

    fn play(mut self, dispatcher: &mut dyn Dispatcher) -> Result<Outcome, Problem> {
        while self.meet() {
            dispatcher.pass(&mut self.state())?;
        }
        Ok(self.into_outcome())
    }

    /// The system as a dispatcher sees it.
    pub(super) fn state(&mut self) -> State<'_> {
        State {
            work: &self.work,
            platform: &self.platform,
            flight: &mut self.flight,
        }
    }

    fn go_to(&mut self, at_us: u64) {
        let (platform, flight) = (&*self.platform, &mut self.flight);
        let (cores, slices) = flight.slots.free();
        let all = |of_node: u16| u64::from(of_node) * u64::from(platform.nodes);
        let held = (
            all(platform.cores) - u64::from(cores),
            all(platform.slices) - u64::from(slices),
        );
        let (span, waiting) = ((flight.now_us, at_us), flight.num_waiting as u64);
        flight.outcome.timeline.book(span, held, waiting);
        flight.now_us = at_us;
    }

    /// Goes on to the next instant at which something waits after all its events. False where nothing more happens.
    pub(super) fn meet(&mut self) -> bool {
        while let Some(Reverse((at_us, _, event))) = self.flight.events.heap.pop() {
            self.go_to(at_us);
            match event {
                Event::Arrive => {
                    if let Some(coming) = self.next {
                        let slo = self.list.1;
                        self.state().arrive(coming, slo);
                    }
                    self.draw();
                }
                Event::Wake(_) => {}
                Event::End(batch) => self.state().end(batch),
            }
            let next = self.flight.events.heap.peek();
            if next.is_some_and(|Reverse((then_us, ..))| *then_us == at_us) {
                continue;
            }
            if self.platform.late != Late::Serve {
                self.state().expire(at_us);
            }
            if self.flight.num_waiting > 0 {
                return true;
            }
        }
        false
    }

    /// Now, us.
    pub(super) fn now_us(&self) -> u64 {
        self.flight.now_us
    }

    /// What became of requests so far.
    pub(super) fn outcome(&self) -> &Outcome {
        &self.flight.outcome
    }

    /// The outcome. Requests that still wait when nothing more will happen count as not served.
    pub(super) fn into_outcome(mut self) -> Outcome {
        self.state().close();
        let mut outcome = self.flight.outcome;
        outcome.idle_us = self.flight.slots.idle_us(self.flight.now_us);
        debug_assert_eq!(
            outcome.num_requests,
            outcome.hits + outcome.late + outcome.shed + outcome.expired,
            "a request was lost or counted twice"
        );
        outcome
    }
}

/// # Errors
/// A configuration that fits no node.
fn check_sizes(work: &Work, platform: &Platform) -> Result<(), Problem> {
    for function in &work.functions {
        let too_large = |k: &&super::Configuration| k.cores > platform.cores || k.slices > platform.slices;
        if let Some(k) = function.configurations().iter().find(too_large) {
            let key = format!("functions.{}", function.name());
            let value = format!("{} cores, {} slices", k.cores, k.slices);
            let allowed = format!(
                "what fits a node of {} cores and {} slices",
                platform.cores, platform.slices
            );
            return Err(Problem::new(key, value, allowed, "Take larger nodes."));
        }
    }
    Ok(())
}

impl State<'_> {
    fn arrive(&mut self, Coming { app, run_us, .. }: Coming, slo: f64) {
        let steps = self.work.apps[app].steps.clone();
        let base_us = match run_us {
            0 => self.work.apps[app].base_us,
            run_us => u64::from(run_us),
        };
        let target_us = (base_us as f64 * slo) as u64;
        let mut open = [0; STAGES_MAX];
        for (open, step) in open.iter_mut().zip(steps.clone()) {
            *open = self.work.steps[step].num_previous as u8;
        }
        let request = Request {
            arrival_us: self.flight.now_us,
            deadline_us: self.flight.now_us + target_us,
            run_us,
            left: steps.len() as u8,
            open,
            homes: [None; STAGES_MAX],
            copies: Copies::default(),
        };
        self.flight.outcome.num_requests += 1;
        let id = match self.flight.free_requests.pop() {
            Some(id) => {
                self.flight.requests[id as usize] = request;
                id
            }
            None => {
                self.flight.requests.push(request);
                (self.flight.requests.len() - 1) as u32
            }
        };
        let in_flight = self.flight.requests.len() - self.flight.free_requests.len();
        self.flight.outcome.in_flight_max = self.flight.outcome.in_flight_max.max(in_flight);
        for step in steps {
            if self.work.steps[step].num_previous == 0 {
                self.enqueue(id, step, None);
            }
        }
    }

    /// By deadline, from the back: later steps mix ages.
    fn enqueue(&mut self, id: u32, step: usize, home: Option<u16>) {
        let request = &mut self.flight.requests[id as usize];
        request.copies.waiting += 1;
        let waiting = Waiting {
            request: id,
            ready_us: self.flight.now_us,
            arrival_us: request.arrival_us,
            deadline_us: request.deadline_us,
            home,
        };
        let queue = &mut self.flight.queues[step];
        if let Some(last_us) = queue.last_us {
            let gap_us = (self.flight.now_us - last_us) as f64;
            queue.gap_us = if queue.gap_us == 0.0 {
                gap_us
            } else {
                GAP_WEIGHT * gap_us + (1.0 - GAP_WEIGHT) * queue.gap_us
            };
        }
        queue.last_us = Some(self.flight.now_us);
        let before = |other: &&Waiting| other.deadline_us > waiting.deadline_us;
        let at = queue.waiting.len() - queue.waiting.iter().rev().take_while(before).count();
        queue.waiting.insert(at, waiting);
        self.flight.num_waiting += 1;
    }

    fn end(&mut self, batch: u32) {
        let Batch {
            requests,
            step,
            node,
            held,
        } = &mut self.flight.batches[batch as usize];
        let (requests, step, node, held) = (std::mem::take(requests), *step, *node, *held);
        let work = self.work;
        let place = &work.steps[step];
        let warm = (self.flight.now_us, self.flight.now_us + self.platform.keep_us);
        self.flight
            .slots
            .give(usize::from(node), place.function, held, warm);
        self.flight.outcome.makespan_us = self.flight.now_us;
        let first = work.apps[place.app].steps.start;
        for &id in &requests {
            let request = &mut self.flight.requests[id as usize];
            request.copies.running -= 1;
            if request.copies.is_dropped {
                self.leave(id);
                continue;
            }
            request.left -= 1;
            if request.left == 0 {
                let latency_us = self.flight.now_us - request.arrival_us;
                let is_hit = self.flight.now_us <= request.deadline_us;
                *(if is_hit {
                    &mut self.flight.outcome.hits
                } else {
                    &mut self.flight.outcome.late
                }) += 1;
                self.flight.outcome.latencies.add(latency_us);
                self.leave(id);
                continue;
            }
            for &next in &place.next {
                let request = &mut self.flight.requests[id as usize];
                let stage = next - first;
                request.open[stage] -= 1;
                // Input that lies on two nodes is fetched wherever the step runs.
                let is_first = request.homes[stage].is_none();
                let home = (is_first || request.homes[stage] == Some(node)).then_some(node);
                request.homes[stage] = Some(home.unwrap_or(u16::MAX));
                if request.open[stage] == 0 {
                    let home = self.flight.requests[id as usize].homes[stage];
                    self.enqueue(id, next, home);
                }
            }
        }
        self.flight.batches[batch as usize].requests = requests;
        self.flight.free_batches.push(batch);
    }

    /// Frees a request of which nothing waits or runs.
    fn leave(&mut self, id: u32) {
        let copies = self.flight.requests[id as usize].copies;
        if copies.waiting + copies.running == 0 {
            self.flight.free_requests.push(id);
        }
    }

    /// Takes a request that waits at a step out of the system, wherever else it waits; what runs of it ends by itself.
    pub(super) fn drop_request(&mut self, step: usize, id: u32) {
        self.flight.requests[id as usize].copies.is_dropped = true;
        let steps = self.work.apps[self.work.steps[step].app].steps.clone();
        for step in std::iter::once(step).chain(steps) {
            if self.flight.requests[id as usize].copies.waiting == 0 {
                break;
            }
            let waiting = &mut self.flight.queues[step].waiting;
            if let Some(at) = waiting.iter().position(|waiting| waiting.request == id) {
                waiting.remove(at);
                self.flight.requests[id as usize].copies.waiting -= 1;
                self.flight.num_waiting -= 1;
            }
        }
        self.leave(id);
    }

    /// Drops requests whose deadline is before a time.
    fn expire(&mut self, before_us: u64) {
        for step in 0..self.flight.queues.len() {
            while let Some(head) = self.head(step).filter(|head| head.deadline_us < before_us) {
                self.flight.outcome.expired += 1;
                self.drop_request(step, head.request);
            }
        }
    }

    /// Drops all that waits.
    pub(super) fn close(&mut self) {
        self.expire(u64::MAX);
    }

    /// True latency of a batch: the profile's times a log-normal factor of median 1.
    pub(super) fn true_us(&mut self, profile_us: u64) -> u64 {
        if self.platform.noise == 0.0 {
            return profile_us;
        }
        let factor = exp(self.platform.noise * standard_normal(&mut self.flight.rng));
        (profile_us as f64 * factor) as u64
    }
}
