//! A gateway: what it saw at its last look, what it has sent since, and rates of the last seconds.

use std::collections::HashMap;

use pleach_scheduler::portable_math::exp;

use crate::llm::fleet::Fleet;
use crate::llm::replica::Replica;
use crate::llm::request::Request;
use crate::llm::router::{Facts, Flow, Lately, Sent};
use crate::llm::step_time::s_of_ps;

/// Rates of replicas, and the fast and the slow rate of arrivals, forget with these times, s. *Assumed*: a few answers long, and
/// half of the minute in which drawn rates stand.
const REPLICA_S: f64 = 10.0;
const FAST_S: f64 = 3.0;
const SLOW_S: f64 = 30.0;

/// A mean that forgets, of what has come so far alone.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    /// Adds a rate; `kept` is the share of the past that stays.
    fn add(&mut self, rate: f64, kept: f64) {
        self.sum = self.sum * kept + rate * (1.0 - kept);
        self.weight = self.weight * kept + (1.0 - kept);
    }

    /// Adds an event of some size over the time constant.
    fn count(&mut self, size: f64, constant_s: f64, kept: f64) {
        self.sum = self.sum * kept + size / constant_s;
        self.weight = self.weight * kept + (1.0 - kept);
    }

    fn value(self) -> f64 {
        if self.weight > 0.0 {
            self.sum / self.weight
        } else {
            0.0
        }
    }
}

/// What a gateway knows.
#[derive(Clone, Debug)]
pub(super) struct Gateway {
    pub(super) facts: Vec<Facts>,
    pub(super) sent: Vec<Sent>,
    pub(super) lately: Vec<Lately>,
    pub(super) num_routed: u64,
    asked_ps: Option<u64>,
    rates: Vec<[Mean; 2]>,
    arrivals: [Mean; 2],
    arrived_ps: u64,
    prompt_share: f64,
    /// Where each conversation was sent last, by the replica's number, and the tokens of its context without the answer, which it does not count.
    homes: HashMap<u32, (u64, u32)>,
    /// Number of each replica, counted from the first ever.
    numbers: Vec<u64>,
    /// Whether replicas keep what has ended.
    keeps_prefixes: bool,
}

impl Gateway {
    pub(super) fn new(fleet: &Fleet) -> Gateway {
        Gateway {
            facts: vec![Facts::default(); fleet.num_replicas],
            sent: vec![Sent::default(); fleet.num_replicas],
            lately: vec![Lately::default(); fleet.num_replicas],
            num_routed: 0,
            asked_ps: None,
            rates: vec![[Mean::default(); 2]; fleet.num_replicas],
            arrivals: [Mean::default(); 2],
            arrived_ps: 0,
            prompt_share: 0.0,
            homes: HashMap::new(),
            numbers: (0..fleet.num_replicas as u64).collect(),
            keeps_prefixes: fleet.pace.keeps_prefixes,
        }
    }

    /// A replica takes requests from now on; the gateway looks at it at once.
    pub(super) fn open(&mut self, place: usize, number: u64, replica: &Replica) {
        self.facts.insert(place, facts_of(replica));
        self.sent.insert(place, Sent::default());
        self.lately.insert(place, Lately::default());
        self.rates.insert(place, [Mean::default(); 2]);
        self.numbers.insert(place, number);
    }

    /// A replica takes no more requests.
    pub(super) fn close(&mut self, place: usize) {
        self.facts.remove(place);
        self.sent.remove(place);
        self.lately.remove(place);
        self.rates.remove(place);
        self.numbers.remove(place);
    }

    /// Looks at all replicas.
    pub(super) fn ask(&mut self, replicas: &[Replica], fleet: &Fleet, now_ps: u64) {
        let since_s = s_of_ps(now_ps - self.asked_ps.unwrap_or(0));
        let kept = exp(-since_s / REPLICA_S);
        for (place, replica) in replicas.iter().enumerate() {
            let before = std::mem::replace(&mut self.facts[place], facts_of(replica));
            let facts = &self.facts[place];
            if since_s > 0.0 {
                let computed = (facts.computed_tokens - before.computed_tokens) as f64;
                let ended = (facts.ended_requests - before.ended_requests) as f64;
                for (rate, num) in self.rates[place].iter_mut().zip([computed, ended]) {
                    rate.add(num / since_s, kept);
                }
            }
            let [prompts, ends] = self.rates[place].map(Mean::value);
            self.lately[place] = Lately::of(facts, [prompts, ends], fleet);
            let sent = &mut self.sent[place];
            *sent = Sent {
                last: sent.last,
                queue_tokens: facts.waiting_tokens as f64,
                ..Sent::default()
            };
        }
        let shares = self.lately.iter().map(|lately| lately.prompt_share);
        self.prompt_share = shares.sum::<f64>() / replicas.len() as f64;
        self.asked_ps = Some(now_ps);
    }

    /// A request is there.
    pub(super) fn meet(&mut self, request: &Request, now_ps: u64) {
        let since_s = s_of_ps(now_ps - self.arrived_ps);
        self.arrived_ps = now_ps;
        for (rate, constant_s) in self.arrivals.iter_mut().zip([FAST_S, SLOW_S]) {
            let kept = exp(-since_s / constant_s);
            rate.count(f64::from(request.prompt_tokens), constant_s, kept);
        }
    }

    /// A request goes to a replica.
    pub(super) fn send(&mut self, replica: usize, request: &Request, now_ps: u64) {
        let age_s = self.facts_age_s(now_ps);
        let held = self.home(request).filter(|(home, _)| *home == replica);
        let new_tokens = request.prompt_tokens - held.map_or(0, |(_, tokens)| tokens);
        let sent = &mut self.sent[replica];
        sent.queue_tokens = sent.queue_at(age_s, &self.lately[replica]) + f64::from(new_tokens);
        sent.queue_age_s = age_s;
        sent.requests += 1;
        sent.tokens += u64::from(request.prompt_tokens);
        sent.last = self.num_routed;
        let home = (self.numbers[replica], request.prompt_tokens);
        self.homes.insert(request.session, home);
    }

    pub(super) fn facts_age_s(&self, now_ps: u64) -> f64 {
        s_of_ps(now_ps - self.asked_ps.unwrap_or(now_ps))
    }

    /// Where the conversation's last request went, and how many tokens of this prompt stood in that one.
    pub(super) fn home(&self, request: &Request) -> Option<(usize, u32)> {
        let (number, tokens) = self.homes.get(&request.session)?;
        let place = self.numbers.iter().position(|other| other == number)?;
        let held = if self.keeps_prefixes { *tokens } else { 0 };
        Some((place, held.min(request.prefix_tokens)))
    }

    pub(super) fn flow(&self) -> Flow {
        let [fast, slow] = self.arrivals.map(Mean::value);
        Flow {
            fast_tokens_per_s: fast,
            slow_tokens_per_s: slow,
            prompt_share: self.prompt_share,
        }
    }
}

fn facts_of(replica: &Replica) -> Facts {
    Facts {
        waiting_requests: replica.num_waiting(),
        waiting_tokens: replica.prompt_tokens_left(),
        running_requests: replica.num_running(),
        context_tokens: replica.context_tokens(),
        computed_tokens: replica.computed_tokens(),
        ended_requests: replica.num_ended(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A steady stream is its own mean from the beginning on, whatever the constant is, and a new level is met by 63 % in its time.
    #[test]
    fn a_mean_forgets_with_its_constant_and_has_no_cold_start() {
        let mut mean = Mean::default();
        assert_eq!(mean.value(), 0.0);
        mean.add(5.0, exp(-0.1));
        assert!((mean.value() - 5.0).abs() < 1e-12);
        for _ in 0..1_000 {
            mean.add(5.0, exp(-0.1));
        }
        for _ in 0..10 {
            mean.add(6.0, exp(-0.1));
        }
        assert!((mean.value() - 5.632).abs() < 1e-3, "{}", mean.value());
        let mut counted = Mean::default();
        for _ in 0..10_000 {
            counted.count(3.0, 30.0, exp(-0.01 / 30.0));
        }
        assert!((counted.value() - 300.0).abs() < 1.0, "{}", counted.value());
    }
}
