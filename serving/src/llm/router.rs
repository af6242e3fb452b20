//! Which replica gets a request: what a router may know, published rules by name, and anything that scores columns.

mod named;
mod scored;

use pleach_scheduler::Problem;

use crate::llm::fleet::Fleet;
use crate::llm::step_time::{Chunks, s_of_ps};

pub use named::{POLICIES, by_name};
pub use scored::ScorerRouter;

/// What a replica reported when a gateway looked last.
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
    /// Tokens of prompts that it has ever computed.
    pub computed_tokens: u64,
    /// Requests that it has ever ended.
    pub ended_requests: u64,
}

/// What a gateway has sent to a replica itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sent {
    /// Requests since it looked.
    pub requests: u64,
    /// Tokens of their prompts.
    pub tokens: u64,
    /// Number of the last request ever sent there, counted from 1; 0: none.
    pub last: u64,
    /// Tokens of prompts believed to wait there when a request was sent last, or when it looked.
    pub queue_tokens: f64,
    /// How old the facts were then, s.
    pub queue_age_s: f64,
}

impl Sent {
    /// Tokens of prompts believed to wait, with facts of an age.
    #[must_use]
    pub fn queue_at(&self, age_s: f64, lately: &Lately) -> f64 {
        (self.queue_tokens - lately.drains_per_s * (age_s - self.queue_age_s)).max(0.0)
    }
}

/// What a replica has done in the last seconds, by the differences between a gateway's looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lately {
    /// Share of its time that prompts took, 0 to 1.
    pub prompt_share: f64,
    /// Requests that ended a second.
    pub ended_per_s: f64,
    /// Tokens of prompts by which a queue there shrinks a second while this gateway sends nothing.
    pub drains_per_s: f64,
}

impl Lately {
    /// From the facts that a replica reported, and its tokens of prompts and its ends a second. Other gateways are believed to
    /// send as much as this one.
    pub(crate) fn of(facts: &Facts, [prompts, ends]: [f64; 2], fleet: &Fleet) -> Lately {
        let pace = &fleet.pace;
        let room = pace.prompt_room(facts.running_requests);
        let step_s = s_of_ps(pace.step(facts.running_requests, facts.context_tokens, Chunks::of(room)));
        let others = 1.0 - 1.0 / fleet.num_gateways as f64;
        Lately {
            prompt_share: pace.prompt_s(prompts).min(1.0),
            ended_per_s: ends,
            drains_per_s: (room as f64 / step_s - others * prompts).max(0.0),
        }
    }
}

/// What a gateway has met in the last seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow {
    /// Tokens of prompts that came to it a second, mean of the last seconds.
    pub fast_tokens_per_s: f64,
    /// The same of the last half minute.
    pub slow_tokens_per_s: f64,
    /// Mean of all replicas' [`Lately::prompt_share`].
    pub prompt_share: f64,
}

/// What a request is believed to get at a replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Believed {
    /// Time to the first token, s.
    pub ttft_s: f64,
    /// Time between two later tokens, s.
    pub tpot_s: f64,
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
    /// Of each replica.
    pub lately: &'a [Lately],
    /// Of this gateway.
    pub flow: Flow,
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

    /// Requests of this gateway's share that have ended there since it looked, as many a second as lately.
    #[must_use]
    pub fn ended_requests(&self, replica: usize) -> f64 {
        self.lately[replica].ended_per_s * self.facts_age_s / self.fleet.num_gateways as f64
    }

    /// What the request would get there by all that is known; without `own` by what the replica reported alone.
    ///
    /// What has been computed and has ended since the gateway looked is taken off what was reported and sent since. What other
    /// gateways send is believed to replace what ends of theirs. Steps take prompts beside the batch. Where these take a share u
    /// of the time, a step takes 1 / (1 - u) of what it takes alone, and no more than with its room full of prompts. That share
    /// is the mean of all replicas lately: a replica's own shows what it has had, not what it will have.
    #[must_use]
    pub fn believed(&self, replica: usize, own: bool) -> Believed {
        let (facts, sent, pace) = (&self.facts[replica], self.own(replica, own), &self.fleet.pace);
        let all = (facts.running_requests + facts.waiting_requests + sent.requests) as f64;
        let tokens = (facts.context_tokens + facts.waiting_tokens + sent.tokens) as f64;
        let (mut left, mut queue_tokens) = (all, facts.waiting_tokens as f64);
        if own {
            left = (all - self.ended_requests(replica)).max(0.0);
            queue_tokens = sent.queue_at(self.facts_age_s, &self.lately[replica]);
        }
        let context_tokens = if all > 0.0 { tokens * left / all } else { tokens } as u64;
        let [prompt, held] = [self.prompt_tokens, self.held_tokens(replica)].map(u64::from);
        let batch_max = u64::from(pace.batch_max);
        let before = (left as u64).min(batch_max);
        let ttft_s = pace.first_token_s(prompt, held, queue_tokens as u64, before, context_tokens);

        let (batch, context_tokens) = (
            (left as u64 + 1).min(batch_max),
            context_tokens + u64::from(self.prompt_tokens),
        );
        let alone_s = pace.token_s(batch, context_tokens);
        let full_s = s_of_ps(pace.step(batch, context_tokens, Chunks::of(pace.prompt_room(batch))));
        let rest = 1.0 - self.flow.prompt_share;
        let tpot_s = if rest * full_s > alone_s {
            alone_s / rest
        } else {
            full_s
        };
        Believed { ttft_s, tpot_s }
    }

    /// Time to the first token there, s, were nothing computed since the gateway looked. It is more than what is believed. But a
    /// router that sends where this is least spreads its requests between two looks.
    #[must_use]
    pub fn ttft_s(&self, replica: usize, own: bool) -> f64 {
        let (facts, sent) = (&self.facts[replica], self.own(replica, own));
        let [prompt, held] = [self.prompt_tokens, self.held_tokens(replica)].map(u64::from);
        let running = facts.running_requests + sent.requests;
        let pace = self.fleet.pace;
        pace.first_token_s(
            prompt,
            held,
            facts.waiting_tokens + sent.tokens,
            running,
            facts.context_tokens + sent.tokens,
        )
    }

    /// Time between two tokens there, s, with this request in the batch and no prompts beside it, had nothing ended since the
    /// gateway looked.
    #[must_use]
    pub fn tpot_s(&self, replica: usize, own: bool) -> f64 {
        let (facts, sent) = (&self.facts[replica], self.own(replica, own));
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
    fn route(&mut self, decision: &Decision<'_>) -> Result<Option<usize>, Problem>;
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
