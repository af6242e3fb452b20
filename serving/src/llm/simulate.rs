//! A list of requests played on a fleet: gateways look and send, replicas go on, and what they tell is booked.

use std::borrow::Cow;

use pleach_scheduler::Problem;

use crate::environment::Tally;
use crate::llm::fleet::Fleet;
use crate::llm::gateway::Gateway;
use crate::llm::link::Link;
use crate::llm::outcome::{Outcome, Served};
use crate::llm::replica::{Event, Replica, Told, Work};
use crate::llm::request::{Request, Requests};
use crate::llm::router::{Decision, Router};
use crate::llm::step_time::{Pace, ps_of_s, s_of_ps};
use crate::llm::turns::{Next, Turns};

/// A run under way: [`Run::meet`] the next request, ask for the [`Run::decision`], [`Run::send`] it, until no request comes.
#[derive(Clone, Debug)]
pub(super) struct Run<'a> {
    fleet: Cow<'a, Fleet>,
    requests: Cow<'a, Requests>,
    replicas: Vec<Replica>,
    gateways: Vec<Gateway>,
    /// Number of the next look, of all gateways together.
    next_look: u64,
    /// Number of the next request.
    next: usize,
    /// Of requests that come after answers.
    turns: Option<Turns>,
    /// The request that was met, its number, and when, ps.
    met: (usize, Option<Request>),
    now_ps: u64,
    told: Vec<Told>,
    first_ps: Vec<u64>,
    /// By which keys and values of computed prompts come.
    link: Option<Link>,
    tally: Tally,
    outcome: Outcome,
}

/// Plays a list. Deterministic in the list, the fleet and the router's own seed.
///
/// # Errors
/// A fleet out of range; a request that fits into no replica; a router that fails.
pub fn simulate(requests: &Requests, fleet: &Fleet, router: &mut dyn Router) -> Result<Outcome, Problem> {
    let mut run = Run::new(Cow::Borrowed(requests), Cow::Borrowed(fleet))?;
    while run.meet() {
        let chosen = router.route(&run.decision())?;
        run.send(chosen);
    }
    Ok(run.into_outcome())
}

impl<'a> Run<'a> {
    pub(super) fn new(requests: Cow<'a, Requests>, fleet: Cow<'a, Fleet>) -> Result<Run<'a>, Problem> {
        fleet.check()?;
        let rows = requests.rows();
        let replica = Replica::with_blocks(fleet.pace, requests.block_ids());
        let unfit = |row: &Request| !replica.takes(row.prompt_tokens, row.output_tokens);
        if let Some(id) = rows.iter().position(unfit) {
            let value = format!("{} + {} tokens", rows[id].prompt_tokens, rows[id].output_tokens);
            let allowed = format!("at most {}, what a replica holds", fleet.pace.kv_tokens);
            let hint = "Take a larger GPU, or leave the request out.";
            return Err(Problem::new(format!("requests[{id}]"), value, allowed, hint));
        }
        Ok(Run {
            replicas: vec![replica; fleet.num_replicas],
            gateways: (0..fleet.num_gateways).map(|_| Gateway::new(&fleet)).collect(),
            next_look: 0,
            next: 0,
            turns: Turns::of(&requests),
            met: (0, None),
            now_ps: 0,
            told: Vec::new(),
            first_ps: vec![0; rows.len()],
            link: None,
            tally: Tally::default(),
            outcome: Outcome {
                requests: vec![None; rows.len()],
                makespan_s: 0.0,
                output_tokens: 0,
                prompt_tokens: 0,
                reused_tokens: 0,
                num_recomputed: 0,
                num_steps: 0,
            },
            fleet,
            requests,
        })
    }

    /// Replicas that decode what others are going to compute ([`Run::computed`]). They believe that prompts take no time.
    pub(super) fn of_decodes(requests: &'a Requests, fleet: Fleet, link: Link) -> Result<Run<'a>, Problem> {
        let pace = Pace {
            before_queue_ps: 0,
            before_queue_token_ps: 0,
            ..fleet.pace
        };
        let believed = Pace {
            prompt_token_ps: 0,
            prompt_link_ps: 0,
            prompt_pair_parts: 0,
            ..pace
        };
        let fleet = Fleet {
            pace: believed,
            may_refuse: false,
            ..fleet
        };
        let num_replicas = fleet.num_replicas;
        Ok(Run {
            replicas: vec![Replica::new(pace); num_replicas],
            link: Some(link),
            ..Run::new(Cow::Borrowed(requests), Cow::Owned(fleet))?
        })
    }

    /// When others gave the first token of each request, ps; 0: never.
    pub(super) fn computed(&mut self, first_ps: Vec<u64>) {
        self.first_ps = first_ps;
    }

    /// Goes on to the next request; false where none is left, when all that was sent has ended.
    pub(super) fn meet(&mut self) -> bool {
        if self.turns.is_some() {
            return self.meet_in_a_loop();
        }
        let Some(request) = self.requests.rows().get(self.next).copied() else {
            self.advance(u64::MAX);
            return false;
        };
        self.meet_again(self.next, request, ps_of_s(request.arrival_s));
        true
    }

    /// The same where requests come after answers. After what has been played, the next unknown request comes no sooner than the
    /// least wait. So until then the requests that are known to come are all.
    fn meet_in_a_loop(&mut self) -> bool {
        loop {
            let Some(turns) = &mut self.turns else {
                return false;
            };
            match turns.next() {
                Next::Comes(at_ps, id) => {
                    self.meet_again(id, self.requests.rows()[id], at_ps);
                    return true;
                }
                Next::Play(to_ps) => {
                    self.now_ps = to_ps;
                    self.looks();
                    self.advance(to_ps);
                }
                Next::Ended => {
                    self.advance(u64::MAX);
                    return false;
                }
            }
        }
    }

    /// Goes on to a time at which a request is to be sent that came before, or the next one.
    pub(super) fn meet_again(&mut self, id: usize, request: Request, now_ps: u64) {
        (self.met, self.now_ps) = ((id, Some(request)), now_ps);
        let place = self.place();
        self.look(place);
        self.gateways[place].meet(&request, now_ps);
    }

    /// The request that was met.
    fn request(&self) -> &Request {
        self.met.1.as_ref().expect("a request was met")
    }

    /// Its gateway.
    fn place(&self) -> usize {
        self.request().session as usize % self.gateways.len()
    }

    /// What is to be decided of the request that was met.
    pub(super) fn decision(&self) -> Decision<'_> {
        let (request, gateway) = (self.request(), &self.gateways[self.place()]);
        Decision {
            prompt_tokens: request.prompt_tokens,
            home: gateway.home(request),
            facts: &gateway.facts,
            sent: &gateway.sent,
            lately: &gateway.lately,
            flow: gateway.flow(),
            num_routed: gateway.num_routed,
            facts_age_s: gateway.facts_age_s(self.now_ps),
            fleet: &self.fleet,
        }
    }

    /// Sends the request that was met to a replica, or refuses it; its number.
    pub(super) fn send(&mut self, chosen: Option<usize>) -> usize {
        let (id, place) = (self.met.0, self.place());
        let (request, gateway) = (*self.request(), &mut self.gateways[place]);
        self.next = if self.turns.is_some() {
            self.next + 1
        } else {
            self.next.max(id + 1)
        };
        gateway.num_routed += 1;
        let Some(replica) = chosen else {
            self.tally.refused += 1;
            if let Some(turns) = &mut self.turns {
                turns.refused(id, self.now_ps);
            }
            return id;
        };
        if let Some(turns) = &mut self.turns {
            turns.sent(id, self.now_ps);
        }
        gateway.send(replica, &request, self.now_ps);
        self.outcome.prompt_tokens += u64::from(request.prompt_tokens);
        self.outcome.output_tokens += u64::from(request.output_tokens);
        let work = Work {
            id: id as u32,
            session: request.session,
            prompt_tokens: request.prompt_tokens,
            prefix_tokens: request.prefix_tokens,
            output_tokens: request.output_tokens,
            blocks: request.blocks,
            is_computed: self.link.is_some(),
        };
        let move_ps = self.link.map_or(0, |link| link.move_ps(request.prompt_tokens));
        self.replicas[replica].send(self.now_ps + move_ps, work);
        id
    }

    /// Gateways look at the replicas as often as they were due, the last time at most now. They look one after another, evenly
    /// spread over the time between two looks of one of them.
    fn look(&mut self, place: usize) {
        if ps_of_s(self.fleet.scrape_s) == 0 {
            self.advance(self.now_ps);
            self.gateways[place].ask(&self.replicas, &self.fleet, self.now_ps);
        } else {
            self.looks();
        }
    }

    /// All looks that are due, where there is a time between them.
    fn looks(&mut self) {
        let (period_ps, num) = (ps_of_s(self.fleet.scrape_s), self.gateways.len() as u64);
        if period_ps == 0 {
            return;
        }
        // Of a long time without requests only the last look of each gateway counts.
        let due = |look: u64| (u128::from(look) * u128::from(period_ps) / u128::from(num)) as u64;
        let rounds = self.now_ps.saturating_sub(due(self.next_look)) / period_ps;
        self.next_look += rounds.saturating_sub(1) * num;
        while due(self.next_look) <= self.now_ps {
            let at_ps = due(self.next_look);
            self.advance(at_ps);
            self.gateways[(self.next_look % num) as usize].ask(&self.replicas, &self.fleet, at_ps);
            self.next_look += 1;
        }
    }

    /// Replicas go on to a time, and what they tell is booked.
    pub(super) fn advance(&mut self, to_ps: u64) {
        for replica in &mut self.replicas {
            replica.advance(to_ps, &mut self.told);
        }
        if let Some(turns) = &mut self.turns {
            turns.played(to_ps);
        }
        self.book();
    }

    /// A replica that takes no more requests goes on to a time.
    pub(super) fn advance_one(&mut self, replica: &mut Replica, to_ps: u64) {
        replica.advance(to_ps, &mut self.told);
        self.book();
    }

    /// Takes over what replicas reported. A request that was begun anew elsewhere had its first token before.
    fn book(&mut self) {
        for (id, event, at_ps) in self.told.drain(..) {
            let id = id as usize;
            match event {
                Event::First if self.first_ps[id] == 0 => self.first_ps[id] = at_ps,
                Event::First => {}
                Event::Last => {
                    let request = &self.requests.rows()[id];
                    let after_ps = self.fleet.pace.after_first_ps;
                    let arrival_ps = match &mut self.turns {
                        Some(turns) => turns.answered(id, at_ps + after_ps),
                        None => ps_of_s(request.arrival_s),
                    };
                    let more = f64::from(request.output_tokens - 1);
                    let served = Served {
                        ttft_s: s_of_ps(self.first_ps[id] + after_ps - arrival_ps),
                        tpot_s: s_of_ps(at_ps - self.first_ps[id]) / more.max(1.0),
                        latency_s: s_of_ps(at_ps + after_ps - arrival_ps),
                    };
                    self.tally.book(served.is_hit(self.fleet.targets));
                    self.outcome.makespan_s = self.outcome.makespan_s.max(s_of_ps(at_ps + after_ps));
                    let old = self.outcome.requests[id].replace(served);
                    assert!(old.is_none(), "request {id} ended twice");
                }
            }
        }
    }

    /// When each request had its first token, ps; 0: not yet.
    pub(super) fn first_ps(&self) -> &[u64] {
        &self.first_ps
    }

    /// What has been booked so far.
    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    /// Seconds since the beginning.
    pub(super) fn now_s(&self) -> f64 {
        s_of_ps(self.now_ps)
    }

    /// Requests that are not decided.
    pub(super) fn num_left(&self) -> usize {
        self.requests.rows().len() - self.next
    }

    /// The next request, or all that are to come.
    pub(super) fn to_come(&self) -> &[Request] {
        &self.requests.rows()[self.next..]
    }

    /// A request that no replica can take now is left for [`Run::meet_again`].
    pub(super) fn put_by(&mut self) -> Option<(usize, Request)> {
        let request = *self.requests.rows().get(self.next)?;
        self.next += 1;
        Some((self.next - 1, request))
    }

    /// An empty one for these requests.
    pub(super) fn replica(&self) -> Replica {
        Replica::with_blocks(self.fleet.pace, self.requests.block_ids())
    }

    /// Replicas that take requests.
    pub(super) fn replicas(&self) -> &[Replica] {
        &self.replicas
    }

    /// A replica takes requests from now on, at a place among the others.
    pub(super) fn open(&mut self, place: usize, number: u64, replica: Replica) {
        for gateway in &mut self.gateways {
            gateway.open(place, number, &replica);
        }
        self.replicas.insert(place, replica);
    }

    /// The replica at a place takes no more.
    pub(super) fn close(&mut self, place: usize) -> Replica {
        for gateway in &mut self.gateways {
            gateway.close(place);
        }
        self.replicas.remove(place)
    }

    /// A replica leaves; its requests that have not ended, with what is left of each.
    pub(super) fn leave(&mut self, mut replica: Replica) -> Vec<(usize, Request)> {
        self.count(&replica);
        let rest_of = |work: Work| {
            self.outcome.output_tokens -= u64::from(work.output_tokens);
            let id = work.id as usize;
            let request = Request {
                prompt_tokens: work.prompt_tokens,
                output_tokens: work.output_tokens,
                ..self.requests.rows()[id]
            };
            (id, request)
        };
        replica.take_back().into_iter().map(rest_of).collect()
    }

    fn count(&mut self, replica: &Replica) {
        self.outcome.reused_tokens += replica.reused_tokens();
        self.outcome.num_recomputed += replica.num_recomputed();
        self.outcome.num_steps += replica.num_steps();
    }

    /// Of a run whose last request was sent.
    pub(super) fn into_outcome(mut self) -> Outcome {
        for replica in std::mem::take(&mut self.replicas) {
            self.count(&replica);
        }
        self.outcome
    }
}
