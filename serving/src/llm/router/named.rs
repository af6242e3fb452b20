//! Routers by name, with settings after colons: `least-tokens:shed=1`.

use pleach_scheduler::Problem;
use pleach_scheduler::heuristics::Info;
use pleach_workloads::Seed;
use rand::{Rng, RngExt as _};

use super::{Decision, Router, least};
use crate::settings::{Settings, rule};

/// Of all rules here.
const FAMILY: &str = "router";
/// The rules, and what each knows of replicas.
#[rustfmt::skip]
pub const POLICIES: &[Info] = &[
    rule(FAMILY, "round-robin", "nothing", "each replica in turn", "plain"),
    rule(FAMILY, "random", "nothing", "any replica", "plain"),
    rule(FAMILY, "two-choices", "requests", "of two random replicas that with fewer requests", "Mitzenmacher, 2001"),
    rule(FAMILY, "least-requests", "requests", "fewest requests that wait or run", "plain"),
    rule(FAMILY, "least-tokens", "tokens", "fewest tokens of prompts to come and of contexts", "plain"),
    rule(FAMILY, "least-ttft", "tokens, pace, prefixes",
        "least believed time to the first token, prefixes that are held counted", "plain"),
    rule(FAMILY, "headroom", "tokens, pace, prefixes, targets",
        "the larger of believed TTFT and TPOT over their targets is least", "after llm-d's predicted-latency scorer"),
    rule(FAMILY, "sessions", "conversations, tokens", "where the conversation was last; a new one by least-tokens", "plain"),
    rule(FAMILY, "weighted", "requests, tokens, prefixes",
        "sum of scores of queue, KV and prefix, weighed 2, 2, 3", "Gateway API inference extension"),
];

/// Weights of the scorers that the Gateway API inference extension configures by default: queue depth, KV cache use, prefix.
const WEIGHTS: [(&str, f64); 3] = [("queue", 2.0), ("kv", 2.0), ("prefix", 3.0)];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    RoundRobin,
    Random,
    TwoChoices,
    LeastRequests,
    LeastTokens,
    LeastTtft,
    Headroom,
    Sessions,
    Weighted([f64; 3]),
}

/// A published or plain rule.
struct Named {
    rule: Rule,
    /// Whether what this gateway sent since it looked counts.
    own: bool,
    /// Refuses where the believed TTFT, or TPOT, is above so many times its target.
    shed: [Option<f64>; 2],
    rng: Box<dyn Rng + Send>,
}

/// The router of a name with settings: `own=false` counts nothing that was sent since the gateway looked, `ttft=F` and
/// `tpot=F` refuse a request whose believed TTFT or TPOT at the chosen replica is above F times its target, `shed=F` is both; `weighted` has `queue`, `kv` and `prefix`.
///
/// # Errors
/// A name or a setting that is not there, or a value out of range.
pub fn by_name(text: &str, seed: u64) -> Result<Box<dyn Router>, Problem> {
    let mut settings = Settings::of("router", text, POLICIES)?;
    let own = settings.truth("own")?.unwrap_or(true);
    let mut shed = [settings.number("shed", 0.01..=1e6)?; 2];
    for (bound, key) in shed.iter_mut().zip(["ttft", "tpot"]) {
        *bound = settings.number(key, 0.01..=1e6)?.or(*bound);
    }
    let rule = match settings.name {
        "round-robin" => Rule::RoundRobin,
        "random" => Rule::Random,
        "two-choices" => Rule::TwoChoices,
        "least-requests" => Rule::LeastRequests,
        "least-tokens" => Rule::LeastTokens,
        "least-ttft" => Rule::LeastTtft,
        "headroom" => Rule::Headroom,
        "sessions" => Rule::Sessions,
        _ => {
            let mut weights = [0.0; 3];
            for (weight, (key, default)) in weights.iter_mut().zip(WEIGHTS) {
                *weight = settings.number(key, 0.0..=1e6)?.unwrap_or(default);
            }
            Rule::Weighted(weights)
        }
    };
    settings.end()?;
    let rng = Box::new(Seed(seed).stream("router", 0));
    Ok(Box::new(Named { rule, own, shed, rng }))
}

impl Named {
    fn requests(&self, decision: &Decision<'_>, replica: usize) -> f64 {
        let facts = decision.facts[replica];
        (facts.waiting_requests + facts.running_requests + decision.own(replica, self.own).requests) as f64
    }

    fn tokens(&self, decision: &Decision<'_>, replica: usize) -> f64 {
        let facts = decision.facts[replica];
        (facts.waiting_tokens + facts.context_tokens + decision.own(replica, self.own).tokens) as f64
    }

    fn choose(&mut self, decision: &Decision<'_>) -> usize {
        let num = decision.facts.len();
        match self.rule {
            Rule::RoundRobin => (decision.num_routed % num as u64) as usize,
            Rule::Random => self.rng.random_range(0..num),
            Rule::TwoChoices => {
                let (one, other) = (self.rng.random_range(0..num), self.rng.random_range(0..num));
                let more = self.requests(decision, one) > self.requests(decision, other);
                if more { other } else { one }
            }
            Rule::LeastRequests => least(decision, |replica| self.requests(decision, replica)),
            Rule::LeastTokens => least(decision, |replica| self.tokens(decision, replica)),
            Rule::LeastTtft => least(decision, |replica| decision.ttft_s(replica, self.own)),
            Rule::Headroom => {
                let targets = decision.fleet.targets;
                least(decision, |replica| {
                    let ttft = decision.ttft_s(replica, self.own) / targets.ttft_s;
                    ttft.max(decision.tpot_s(replica, self.own) / targets.tpot_s)
                })
            }
            Rule::Sessions => match decision.home {
                Some((home, _)) => home,
                None => least(decision, |replica| self.tokens(decision, replica)),
            },
            Rule::Weighted(weights) => self.weighted(decision, weights),
        }
    }

    /// Queue depth scaled between the shortest and the longest, free keys and values, share of the prompt that is held: each 0 to 1.
    fn weighted(&self, decision: &Decision<'_>, weights: [f64; 3]) -> usize {
        let waiting = |replica: usize| {
            (decision.facts[replica].waiting_requests + decision.own(replica, self.own).requests) as f64
        };
        let all = 0..decision.facts.len();
        let (shortest, longest) = all.fold((f64::INFINITY, 0.0_f64), |(low, high), replica| {
            (low.min(waiting(replica)), high.max(waiting(replica)))
        });
        least(decision, |replica| {
            let spread = longest - shortest;
            let queue = if spread > 0.0 {
                (longest - waiting(replica)) / spread
            } else {
                1.0
            };
            let used = decision.facts[replica].context_tokens as f64 / decision.fleet.pace.kv_tokens as f64;
            let held = f64::from(decision.held_tokens(replica)) / f64::from(decision.prompt_tokens);
            -(weights[0] * queue + weights[1] * (1.0 - used).max(0.0) + weights[2] * held)
        })
    }
}

impl Router for Named {
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, Problem> {
        let chosen = self.choose(decision);
        if decision.fleet.may_refuse {
            let targets = decision.fleet.targets;
            let is_late = |bound: Option<f64>, share: f64| bound.is_some_and(|bound| share > bound);
            if self.shed != [None; 2] {
                let believed = decision.believed(chosen, self.own);
                if is_late(self.shed[0], believed.ttft_s / targets.ttft_s)
                    || is_late(self.shed[1], believed.tpot_s / targets.tpot_s)
                {
                    return Ok(None);
                }
            }
        }
        Ok(Some(chosen))
    }
}
