//! A list of requests played on a fleet: gateways look and send, replicas go on, and what they tell is booked.

use std::collections::HashMap;

use pleach_scheduler::ConfigError;

use crate::llm::fleet::Fleet;
use crate::llm::outcome::{Outcome, Served};
use crate::llm::replica::{Event, Replica, Told, Work};
use crate::llm::request::{Request, Requests};
use crate::llm::router::{Decision, Facts, Router, Sent};
use crate::llm::step_time::{ps_of_s, s_of_ps};

/// What a gateway knows.
struct Gateway {
    facts: Vec<Facts>,
    sent: Vec<Sent>,
    asked_ps: Option<u64>,
    num_routed: u64,
    /// Where each conversation was sent last, and the tokens of its context without the answer, which it does not count.
    homes: HashMap<u32, (usize, u32)>,
}

impl Gateway {
    fn new(fleet: &Fleet) -> Gateway {
        Gateway {
            facts: vec![Facts::default(); fleet.num_replicas],
            sent: vec![Sent::default(); fleet.num_replicas],
            asked_ps: None,
            num_routed: 0,
            homes: HashMap::new(),
        }
    }

    /// Looks at all replicas.
    fn ask(&mut self, replicas: &[Replica], now_ps: u64) {
        for (facts, replica) in self.facts.iter_mut().zip(replicas) {
            *facts = Facts {
                waiting_requests: replica.num_waiting(),
                waiting_tokens: replica.prompt_tokens_left(),
                running_requests: replica.num_running(),
                context_tokens: replica.context_tokens(),
            };
        }
        for sent in &mut self.sent {
            (sent.requests, sent.tokens) = (0, 0);
        }
        self.asked_ps = Some(now_ps);
    }
}

/// A run under way.
struct Run<'a> {
    fleet: &'a Fleet,
    requests: &'a [Request],
    replicas: Vec<Replica>,
    gateways: Vec<Gateway>,
    /// Number of the next look, of all gateways together.
    next_look: u64,
    told: Vec<Told>,
    first_ps: Vec<u64>,
    outcome: Outcome,
}

/// Plays a list. Deterministic in the list, the fleet and the router's own seed.
///
/// # Errors
/// A fleet out of range; a request that fits into no replica; a router that fails.
pub fn simulate(requests: &Requests, fleet: &Fleet, router: &mut dyn Router) -> Result<Outcome, ConfigError> {
    fleet.check()?;
    let rows = requests.rows();
    let mut run = Run {
        fleet,
        requests: rows,
        replicas: vec![Replica::new(fleet.pace); fleet.num_replicas],
        gateways: (0..fleet.num_gateways).map(|_| Gateway::new(fleet)).collect(),
        next_look: 0,
        told: Vec::new(),
        first_ps: vec![0; rows.len()],
        outcome: Outcome {
            requests: vec![None; rows.len()],
            makespan_s: 0.0,
            output_tokens: 0,
            prompt_tokens: 0,
            reused_tokens: 0,
            num_recomputed: 0,
            num_steps: 0,
        },
    };
    for (id, request) in rows.iter().enumerate() {
        run.arrive(id, request, router)?;
    }
    run.advance(u64::MAX);
    for replica in &run.replicas {
        run.outcome.reused_tokens += replica.reused_tokens();
        run.outcome.num_recomputed += replica.num_recomputed();
        run.outcome.num_steps += replica.num_steps();
    }
    Ok(run.outcome)
}

impl Run<'_> {
    fn arrive(&mut self, id: usize, request: &Request, router: &mut dyn Router) -> Result<(), ConfigError> {
        if !self.replicas[0].takes(request.prompt_tokens, request.output_tokens) {
            let value = format!("{} + {} tokens", request.prompt_tokens, request.output_tokens);
            let allowed = format!("at most {}, what a replica holds", self.fleet.pace.kv_tokens);
            let hint = "Take a larger GPU, or leave the request out.";
            return Err(ConfigError::new(format!("requests[{id}]"), value, allowed, hint));
        }
        let now_ps = ps_of_s(request.arrival_s);
        let place = request.session as usize % self.gateways.len();
        self.look(place, now_ps);
        let gateway = &self.gateways[place];
        let home = gateway.homes.get(&request.session);
        let decision = Decision {
            prompt_tokens: request.prompt_tokens,
            home: home.map(|(replica, tokens)| (*replica, (*tokens).min(request.prefix_tokens))),
            facts: &gateway.facts,
            sent: &gateway.sent,
            num_routed: gateway.num_routed,
            facts_age_s: s_of_ps(now_ps - gateway.asked_ps.unwrap_or(now_ps)),
            fleet: self.fleet,
        };
        let chosen = router.route(&decision)?;
        let gateway = &mut self.gateways[place];
        gateway.num_routed += 1;
        let Some(replica) = chosen else {
            return Ok(());
        };
        let sent = &mut gateway.sent[replica];
        sent.requests += 1;
        sent.tokens += u64::from(request.prompt_tokens);
        sent.last = gateway.num_routed;
        gateway
            .homes
            .insert(request.session, (replica, request.prompt_tokens));
        self.outcome.prompt_tokens += u64::from(request.prompt_tokens);
        self.outcome.output_tokens += u64::from(request.output_tokens);
        let work = Work {
            id: id as u32,
            session: request.session,
            prompt_tokens: request.prompt_tokens,
            prefix_tokens: request.prefix_tokens,
            output_tokens: request.output_tokens,
        };
        self.replicas[replica].send(now_ps, work);
        Ok(())
    }

    /// Gateways look at the replicas as often as they were due, the last time at most now. They look one after another, evenly
    /// spread over the time between two looks of one of them.
    fn look(&mut self, place: usize, now_ps: u64) {
        let (period_ps, num) = (ps_of_s(self.fleet.scrape_s), self.gateways.len() as u64);
        if period_ps == 0 {
            self.advance(now_ps);
            self.gateways[place].ask(&self.replicas, now_ps);
            return;
        }
        // Of a long time without requests only the last look of each gateway counts.
        let due = |look: u64| (u128::from(look) * u128::from(period_ps) / u128::from(num)) as u64;
        let rounds = now_ps.saturating_sub(due(self.next_look)) / period_ps;
        self.next_look += rounds.saturating_sub(1) * num;
        while due(self.next_look) <= now_ps {
            let at_ps = due(self.next_look);
            self.advance(at_ps);
            self.gateways[(self.next_look % num) as usize].ask(&self.replicas, at_ps);
            self.next_look += 1;
        }
    }

    /// Replicas go on to a time, and what they tell is booked.
    fn advance(&mut self, to_ps: u64) {
        for replica in &mut self.replicas {
            replica.advance(to_ps, &mut self.told);
        }
        for (id, event, at_ps) in self.told.drain(..) {
            let id = id as usize;
            match event {
                Event::First => self.first_ps[id] = at_ps,
                Event::Last => {
                    let request = &self.requests[id];
                    let arrival_ps = ps_of_s(request.arrival_s);
                    let after_ps = self.fleet.pace.after_first_ps;
                    let more = f64::from(request.output_tokens - 1);
                    let served = Served {
                        ttft_s: s_of_ps(self.first_ps[id] + after_ps - arrival_ps),
                        tpot_s: s_of_ps(at_ps - self.first_ps[id]) / more.max(1.0),
                        latency_s: s_of_ps(at_ps + after_ps - arrival_ps),
                    };
                    self.outcome.makespan_s = self.outcome.makespan_s.max(s_of_ps(at_ps + after_ps));
                    let old = self.outcome.requests[id].replace(served);
                    debug_assert!(old.is_none(), "request {id} ended twice");
                }
            }
        }
    }
}
