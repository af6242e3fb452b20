//! A service: replicas of one model that come and go, the gateways in front of them, and a list of requests that they serve.
//!
//! Each replica has a *seat*. Replicas are granted one at a time. A replica takes requests once its model is loaded, and no more
//! once it is taken back. It leaves when it has served what it had or when its grace is over; what it had not served goes back to
//! the gateways. A fleet that stands still is the same with all seats granted at the beginning ([`super::simulate()`]).
//!
//! # What is assumed
//! Gateways know at once which replicas take requests (a readiness probe shows it). A step under way is not cut: grace ends with
//! it.

use std::borrow::Cow;
use std::collections::VecDeque;

use pleach_scheduler::Problem;

use crate::llm::fleet::Fleet;
use crate::llm::outcome::Outcome;
use crate::llm::replica::Replica;
use crate::llm::request::{Request, Requests};
use crate::llm::router::Router;
use crate::llm::simulate::Run;
use crate::llm::step_time::ps_of_s;

/// What a seat holds.
#[derive(Debug)]
enum State {
    Empty,
    /// The model is loaded until then, ps.
    Loading(u64),
    /// It takes requests.
    Open,
    /// It takes no more, and leaves then, ps.
    Draining(u64, Box<Replica>),
}

/// A seat and the replica in it.
#[derive(Debug)]
struct Seat {
    state: State,
    /// Number of the replica, counted from the first of the service.
    number: u64,
}

/// What a service has to do and with what, now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests that have come so far.
    pub arrived: u64,
    /// Requests that were served outside of a target so far.
    pub missed: u64,
    /// Requests whose prompt has not been taken up, at replicas and at the gateways.
    pub waiting: u64,
    /// Requests of all batches.
    pub running: u64,
    /// Tokens in their contexts.
    pub context_tokens: u64,
    /// Replicas that take requests.
    pub open: usize,
    /// Replicas whose model is being loaded.
    pub loading: usize,
    /// Replicas that take no more.
    pub draining: usize,
}

/// A request that was sent: to which seat, and when, ps.
pub type Route = (u32, usize, u64);

/// See the front page of this file.
pub struct Service<'a> {
    run: Run<'a>,
    requests: &'a [Request],
    router: &'a mut dyn Router,
    seats: Vec<Seat>,
    /// Seats that take requests, lowest first: the order of the run's replicas.
    open: Vec<usize>,
    /// When the next model is loaded, ps; none where none is being loaded.
    loaded_ps: Option<u64>,
    /// Replicas so far.
    num_replicas: u64,
    /// Requests that no replica could take when they came.
    held: VecDeque<(usize, Request)>,
    num_returned: u64,
    routes: Option<Vec<Route>>,
}

impl<'a> Service<'a> {
    /// Nothing is granted yet; the fleet's replicas are the most that may be at once.
    ///
    /// # Errors
    /// A fleet out of range; a request that fits into no replica.
    pub fn new(
        requests: &'a Requests,
        fleet: &'a Fleet,
        router: &'a mut dyn Router,
    ) -> Result<Service<'a>, Problem> {
        requests.no_loop("services")?;
        let mut run = Run::new(Cow::Borrowed(requests), Cow::Borrowed(fleet))?;
        while !run.replicas().is_empty() {
            run.close(0);
        }
        let seat = |_| Seat {
            state: State::Empty,
            number: 0,
        };
        Ok(Service {
            run,
            requests: requests.rows(),
            router,
            seats: (0..fleet.num_replicas).map(seat).collect(),
            open: Vec::new(),
            loaded_ps: None,
            num_replicas: 0,
            held: VecDeque::new(),
            num_returned: 0,
            routes: None,
        })
    }

    /// Records to which replica each request is sent, for [`Service::take_routes`].
    pub fn record_routes(&mut self) {
        self.routes = Some(Vec::new());
    }

    /// What was sent so far, in order; empty unless it is recorded.
    pub fn take_routes(&mut self) -> Vec<Route> {
        self.routes.take().unwrap_or_default()
    }

    /// Times that a request went back to the gateways because its replica's grace was over.
    #[must_use]
    pub fn num_returned(&self) -> u64 {
        self.num_returned
    }

    /// Requests that are still to come, by arrival.
    #[must_use]
    pub fn to_come(&self) -> &'a [Request] {
        &self.requests[self.requests.len() - self.run.num_left()..]
    }

    /// The lowest free seat; none where all are taken.
    #[must_use]
    pub fn free_seat(&self) -> Option<usize> {
        self.seats
            .iter()
            .position(|seat| matches!(seat.state, State::Empty))
    }

    /// A replica gets a free seat and takes requests from `ready_ps` on.
    ///
    /// # Panics
    /// If the seat is taken.
    pub fn grant(&mut self, seat: usize, ready_ps: u64) {
        let place = &mut self.seats[seat];
        assert!(matches!(place.state, State::Empty), "seat {seat} is taken");
        place.state = State::Loading(ready_ps);
        place.number = self.num_replicas;
        self.num_replicas += 1;
        self.next_loaded();
    }

    /// A replica takes no more requests from `now_ps` on; when it will have left, at the latest at the end of the step that is
    /// under way when the grace ends, ps. One that has not been loaded leaves at once.
    ///
    /// # Panics
    /// If the seat has no replica that takes or will take requests.
    pub fn reclaim(&mut self, seat: usize, now_ps: u64, grace_ps: u64) -> u64 {
        let (until_ps, replica) = match &self.seats[seat].state {
            State::Loading(_) => (now_ps, self.run.replica()),
            State::Open => {
                let replica = self.close(seat);
                // Nothing more will come to it, so a copy shows what is going to be.
                let (mut copy, mut told) = (replica.clone(), Vec::new());
                copy.advance(now_ps + grace_ps, &mut told);
                let until_ps = if copy.num_waiting() + copy.num_running() > 0 {
                    copy.now_ps()
                } else {
                    // The end of its last step may have been reported before it was there.
                    let idle_ps = replica.now_ps();
                    now_ps.max(told.last().map_or(idle_ps, |(_, _, at_ps)| *at_ps))
                };
                (until_ps, replica)
            }
            state => panic!("seat {seat} cannot be taken back: {state:?}"),
        };
        self.seats[seat].state = State::Draining(until_ps, Box::new(replica));
        self.next_loaded();
        until_ps
    }

    /// A replica that was to leave takes requests again.
    ///
    /// # Panics
    /// If it was not to leave.
    pub fn keep(&mut self, seat: usize) {
        let State::Draining(_, replica) = self.take(seat) else {
            panic!("seat {seat} was not taken back");
        };
        self.open(seat, *replica);
    }

    /// A replica has left, at the time that [`Service::reclaim`] returned; what it had not served goes back to the gateways.
    ///
    /// # Errors
    /// A router that fails.
    ///
    /// # Panics
    /// If it was not to leave, or not yet.
    pub fn release(&mut self, seat: usize, now_ps: u64) -> Result<(), Problem> {
        let State::Draining(until_ps, mut replica) = self.take(seat) else {
            panic!("seat {seat} was not taken back");
        };
        assert!(until_ps <= now_ps, "seat {seat} has not left yet");
        self.run.advance_one(&mut replica, until_ps);
        let returned = self.run.leave(*replica);
        self.num_returned += returned.len() as u64;
        for (id, request) in returned {
            self.route(id, request, now_ps)?;
        }
        Ok(())
    }

    /// The seat that costs least to take back: one whose replica is not loaded yet, the last granted first, else the one with the
    /// fewest requests.
    pub fn least_busy(&mut self, now_ps: u64) -> Option<usize> {
        let is_loading = |seat: &usize| matches!(self.seats[*seat].state, State::Loading(_));
        let loading = (0..self.seats.len()).filter(is_loading);
        if let Some(seat) = loading.max_by_key(|seat| self.seats[*seat].number) {
            return Some(seat);
        }
        self.run.advance(now_ps);
        let requests = |replica: &Replica| replica.num_waiting() + replica.num_running();
        let of_each = self.open.iter().zip(self.run.replicas());
        of_each
            .min_by_key(|(_, replica)| requests(replica))
            .map(|(seat, _)| *seat)
    }

    /// The seat whose replica leaves last of all; none where no replica is to leave.
    #[must_use]
    pub fn last_to_leave(&self) -> Option<usize> {
        let until = |seat: &Seat| match seat.state {
            State::Draining(until_ps, _) => Some(until_ps),
            _ => None,
        };
        let leaving = self.seats.iter().enumerate();
        let leaving = leaving.filter_map(|(place, seat)| Some((until(seat)?, place)));
        leaving.max().map(|(_, place)| place)
    }

    /// What there is to do and with what, at a time to which requests were played.
    pub fn load(&mut self, now_ps: u64) -> Load {
        self.run.advance(now_ps);
        let mut load = Load {
            arrived: (self.requests.len() - self.run.num_left()) as u64,
            missed: self.run.tally().misses,
            waiting: self.held.len() as u64,
            open: self.open.len(),
            ..Load::default()
        };
        for seat in &self.seats {
            match seat.state {
                State::Loading(_) => load.loading += 1,
                State::Draining(..) => load.draining += 1,
                State::Empty | State::Open => {}
            }
        }
        for replica in self.run.replicas() {
            load.waiting += replica.num_waiting();
            load.running += replica.num_running();
            load.context_tokens += replica.context_tokens();
        }
        load
    }

    /// Requests that come before a time are routed, and replicas that are loaded by then take requests.
    ///
    /// # Errors
    /// A router that fails.
    pub fn play(&mut self, to_ps: u64) -> Result<(), Problem> {
        while let Some(request) = self.run.to_come().first() {
            let now_ps = ps_of_s(request.arrival_s);
            if now_ps >= to_ps {
                break;
            }
            self.open_loaded(now_ps)?;
            if self.open.is_empty() {
                self.held.extend(self.run.put_by());
            } else if self.run.meet() {
                self.send(now_ps)?;
            }
        }
        self.open_loaded(to_ps)
    }

    /// Plays the rest with the replicas that there are. Those that were to leave serve what they have; a request that no replica
    /// ever took has no outcome.
    ///
    /// # Errors
    /// A router that fails.
    pub fn finish(mut self) -> Result<Outcome, Problem> {
        self.play(u64::MAX)?;
        for seat in 0..self.seats.len() {
            if let State::Draining(_, mut replica) = self.take(seat) {
                self.run.advance_one(&mut replica, u64::MAX);
                self.run.leave(*replica);
            }
        }
        self.run.advance(u64::MAX);
        Ok(self.run.into_outcome())
    }

    fn take(&mut self, seat: usize) -> State {
        std::mem::replace(&mut self.seats[seat].state, State::Empty)
    }

    /// Replicas whose model is loaded by now take requests, in the order of their times.
    fn open_loaded(&mut self, now_ps: u64) -> Result<(), Problem> {
        while let Some(ready_ps) = self.loaded_ps.filter(|ready_ps| *ready_ps <= now_ps) {
            let is_it = |seat: &Seat| matches!(seat.state, State::Loading(at_ps) if at_ps == ready_ps);
            let seat = self.seats.iter().position(is_it);
            let replica = self.run.replica();
            self.open(seat.expect("it is the time of a seat"), replica);
            self.next_loaded();
            while let Some((id, request)) = self.held.pop_front() {
                self.route(id, request, ready_ps)?;
            }
        }
        Ok(())
    }

    fn next_loaded(&mut self) {
        let loading = self.seats.iter().filter_map(|seat| match seat.state {
            State::Loading(ready_ps) => Some(ready_ps),
            _ => None,
        });
        self.loaded_ps = loading.min();
    }

    fn open(&mut self, seat: usize, replica: Replica) {
        self.seats[seat].state = State::Open;
        let place = self.open.partition_point(|other| *other < seat);
        self.open.insert(place, seat);
        self.run.open(place, self.seats[seat].number, replica);
    }

    fn close(&mut self, seat: usize) -> Replica {
        let place = self.open.binary_search(&seat).expect("it takes requests");
        self.open.remove(place);
        self.run.close(place)
    }

    /// A request that came before is sent now, or held where no replica takes requests.
    fn route(&mut self, id: usize, request: Request, now_ps: u64) -> Result<(), Problem> {
        if self.open.is_empty() {
            self.held.push_back((id, request));
            return Ok(());
        }
        self.run.meet_again(id, request, now_ps);
        self.send(now_ps)
    }

    /// The request that was met is sent or refused.
    fn send(&mut self, now_ps: u64) -> Result<(), Problem> {
        let chosen = self.router.route(&self.run.decision())?;
        let id = self.run.send(chosen);
        if let (Some(chosen), Some(routes)) = (chosen, &mut self.routes) {
            routes.push((id as u32, self.open[chosen], now_ps));
        }
        Ok(())
    }
}
