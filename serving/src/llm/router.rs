//! Who sends a request to which replica: what a router may know, published rules by name, and anything that scores columns.

mod named;
mod scored;

use pleach_scheduler::ConfigError;

use crate::llm::fleet::Fleet;

pub use named::{POLICIES, by_name};
pub use scored::ScorerRouter;

/// What a replica told when a gateway looked last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Requests whose prompt has not been taken up.
    pub waiting_requests: u64,
    /// Tokens of prompts that are not computed.
    pub waiting_tokens: u64,
    /// Requests of the batch.
    pub running_requests: u64,
    /// Tokens in their contexts.
    pub context_tokens: u64,
}

/// What a gateway has sent to a replica itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Requests since it looked.
    pub requests: u64,
    /// Tokens of their prompts.
    pub tokens: u64,
    /// Number of the last request ever sent there, counted from 1; 0: none.
    pub last: u64,
}

/// All that a router may know of one request and of the replicas. The length of the answer is not in it.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Where this gateway sent the conversation's last request, and how many tokens of this prompt stood in that one.
    pub home: Option<(usize, u32)>,
    /// Of each replica, as old as [`Decision::facts_age_s`].
    pub facts: &'a [Facts],
    /// Of each replica.
    pub sent: &'a [Sent],
    /// Requests that this gateway has routed, without this one.
    pub num_routed: u64,
    /// Since the gateway looked, s.
    pub facts_age_s: f64,
    /// Replicas, their pace, what users expect.
    pub fleet: &'a Fleet,
}

impl Decision<'_> {
    /// Tokens of the prompt that a replica is believed to hold.
    #[must_use]
    pub fn held_tokens(&self, replica: usize) -> u32 {
        self.home
            .filter(|(home, _)| *home == replica)
            .map_or(0, |(_, tokens)| tokens)
    }

    /// Believed time to the first token there, s: from the facts, with what was sent since where `own` is set.
    #[must_use]
    pub fn ttft_s(&self, replica: usize, own: bool) -> f64 {
        let (facts, sent) = (self.facts[replica], self.own(replica, own));
        let prompt = u64::from(self.prompt_tokens - self.held_tokens(replica));
        let running = facts.running_requests + sent.requests;
        let pace = self.fleet.pace;
        pace.first_token_s(
            prompt,
            facts.waiting_tokens + sent.tokens,
            running,
            facts.context_tokens + sent.tokens,
        )
    }

    /// Believed time between two tokens there with this request in the batch, s.
    #[must_use]
    pub fn tpot_s(&self, replica: usize, own: bool) -> f64 {
        let (facts, sent) = (self.facts[replica], self.own(replica, own));
        let running = facts.running_requests + facts.waiting_requests + sent.requests + 1;
        let tokens =
            facts.context_tokens + facts.waiting_tokens + sent.tokens + u64::from(self.prompt_tokens);
        self.fleet
            .pace
            .token_s(running.min(u64::from(self.fleet.pace.batch_max)), tokens)
    }

    /// What was sent since the gateway looked, or nothing where it is not to count.
    #[must_use]
    pub fn own(&self, replica: usize, counts: bool) -> Sent {
        if counts {
            self.sent[replica]
        } else {
            Sent::default()
        }
    }
}

/// Chooses a replica for each request.
pub trait Router: Send {
    /// The replica, or none to refuse the request, which only a fleet that allows it may see.
    ///
    /// # Errors
    /// A policy that cannot decide.
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, ConfigError>;
}

/// The replica with the least of a figure. Among equal ones that which was sent to longest ago, so that ties do not herd.
pub(crate) fn least(decision: &Decision<'_>, figure: impl Fn(usize) -> f64) -> usize {
    let mut best = (f64::INFINITY, u64::MAX, 0);
    for (replica, sent) in decision.sent.iter().enumerate() {
        let value = (figure(replica), sent.last, replica);
        if value.0.total_cmp(&best.0).then(value.1.cmp(&best.1)).is_lt() {
            best = value;
        }
    }
    best.2
}
