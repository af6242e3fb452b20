//! The pace of a replica: what a step takes, in whole picoseconds.

use serde::{Deserialize, Serialize};

/// Parts of a picosecond in which a pair of tokens is counted: it takes a few of them.
pub const PAIR_PARTS: u64 = 1 << 10;
/// One, in numbers of 32 bits behind the point.
const ONE: u64 = 1 << 32;

/// A replica's size and pace. Times are whole picoseconds, so that sums of steps are exact in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// Of every step, ps.
    pub step_ps: u64,
    /// More for each request in the batch, ps.
    pub request_ps: u64,
    /// More for each token of their contexts, ps.
    pub context_token_ps: u64,
    /// To read the weights that each token goes through, ps.
    pub weights_ps: u64,
    /// To read all experts, ps.
    pub experts_ps: u64,
    /// Share of the experts that a token does not go to, in parts of 2^32.
    pub experts_left: u32,
    /// Of the operations of a request's token, ps: they hide behind the weights.
    pub token_ps: u64,
    /// The same of a token of a prompt, ps.
    pub prompt_token_ps: u64,
    /// More for each token of a prompt, on the links, ps.
    pub prompt_link_ps: u64,
    /// More for each pair of tokens in a prompt, in parts of 1/1,024 ps.
    pub prompt_pair_parts: u64,
    /// From arrival to the replica's queue, ps.
    pub before_queue_ps: u64,
    /// More for each token of the prompt, whether its keys and values are held or not, ps.
    pub before_queue_token_ps: u64,
    /// From the end of a request's first step to its user's first token, ps.
    pub after_first_ps: u64,
    /// Tokens whose keys and values fit.
    pub kv_tokens: u64,
    /// Most requests of a batch.
    pub batch_max: u32,
    /// Most tokens of a step, prompts and decodes together.
    pub tokens_max: u32,
    /// Whether contexts of what has ended stay in free memory.
    pub keeps_prefixes: bool,
}

/// What a step computes of prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    /// Tokens.
    pub tokens: u64,
    /// Pairs of them and the tokens of the same prompts that they look at, themselves among them.
    pub pairs: u64,
}

impl Chunks {
    /// So many tokens, of prompts that are not looked at.
    #[must_use]
    pub fn of(tokens: u64) -> Chunks {
        Chunks { tokens, pairs: 0 }
    }

    /// Adds a chunk that has so many tokens of its prompt before it.
    #[inline]
    pub fn add(&mut self, tokens: u64, before: u64) {
        self.tokens += tokens;
        self.pairs += tokens * before + tokens * (tokens + 1) / 2;
    }
}

impl Pace {
    /// The same where a step gives each request so many tokens of its answer: what is counted as a step is that part of one. Each
    /// guessed token is computed; the guessing takes no time (*assumed*).
    pub(super) fn speculating(self, tokens: f64) -> Pace {
        if tokens <= 1.0 {
            return self;
        }
        let part = |ps: u64| (ps as f64 / tokens + 0.5) as u64;
        Pace {
            step_ps: part(self.step_ps),
            request_ps: part(self.request_ps),
            context_token_ps: part(self.context_token_ps),
            weights_ps: part(self.weights_ps),
            experts_ps: part(self.experts_ps),
            token_ps: (self.token_ps as f64 * tokens.ceil() / tokens) as u64,
            tokens_max: (f64::from(self.tokens_max) / tokens).max(1.0) as u32,
            ..self
        }
    }

    /// A step with so many requests in the batch, tokens in their contexts, and of prompts, ps.
    #[must_use]
    #[inline]
    pub fn step(&self, batch: u64, context_tokens: u64, prompts: Chunks) -> u64 {
        let mut read = self.weights_ps;
        if self.experts_ps > 0 {
            read += self.touched_ps(batch + prompts.tokens);
        }
        let operations = self.token_ps * batch + self.prompt_token_ps * prompts.tokens;
        self.step_ps
            + read.max(operations)
            + self.request_ps * batch
            + self.context_token_ps * context_tokens
            + self.prompt_link_ps * prompts.tokens
            + self.pairs_ps(prompts.pairs)
    }

    /// To read the experts to which some of so many tokens go, each as likely as the others, ps.
    pub(super) fn touched_ps(&self, tokens: u64) -> u64 {
        let (mut left, mut power, mut rest) = (ONE, u64::from(self.experts_left), tokens);
        while rest > 0 && left > 0 {
            if rest & 1 == 1 {
                left = (left * power) >> 32;
            }
            power = (power * power) >> 32;
            rest >>= 1;
        }
        ((u128::from(self.experts_ps) * u128::from(ONE - left)) >> 32) as u64
    }

    fn pairs_ps(&self, pairs: u64) -> u64 {
        (u128::from(pairs) * u128::from(self.prompt_pair_parts) / u128::from(PAIR_PARTS)) as u64
    }

    /// Time of tokens of prompts by themselves, without their attention, s.
    #[must_use]
    pub fn prompt_s(&self, tokens: f64) -> f64 {
        s_of_ps(self.prompt_token_ps + self.prompt_link_ps) * tokens
    }

    /// Tokens of prompts for which a step has room beside a batch, at least 1.
    #[must_use]
    #[inline]
    pub fn prompt_room(&self, batch: u64) -> u64 {
        u64::from(self.tokens_max).saturating_sub(batch).max(1)
    }

    /// From the arrival of a prompt to the replica's queue, ps.
    #[must_use]
    pub fn to_queue_ps(&self, prompt_tokens: u64) -> u64 {
        self.before_queue_ps + self.before_queue_token_ps * prompt_tokens
    }

    /// When a prompt would have its first token, s from now, where `held_tokens` of it are there already, with prompts of
    /// `ahead_tokens` before it and that much running. The attention of those before it is left out.
    #[must_use]
    pub fn first_token_s(
        &self,
        prompt_tokens: u64,
        held_tokens: u64,
        ahead_tokens: u64,
        running: u64,
        context_tokens: u64,
    ) -> f64 {
        let new_tokens = prompt_tokens - held_tokens;
        let (prompts, room) = (new_tokens + ahead_tokens, self.prompt_room(running));
        let steps = prompts.div_ceil(room).max(1) - 1;
        let full = self.step(running, context_tokens, Chunks::of(room));
        let last = self.step(running, context_tokens, Chunks::of(prompts - steps * room));
        let own = self.pairs_ps(new_tokens * (new_tokens + 1) / 2);
        s_of_ps(self.to_queue_ps(prompt_tokens) + steps * full + last + own + self.after_first_ps)
    }

    /// Time of a step without prompts, s.
    #[must_use]
    pub fn token_s(&self, running: u64, context_tokens: u64) -> f64 {
        s_of_ps(self.step(running, context_tokens, Chunks::default()))
    }
}

/// Seconds as whole picoseconds; negative ones are 0.
#[must_use]
pub fn ps_of_s(seconds: f64) -> u64 {
    (seconds * 1e12 + 0.5) as u64
}

/// Picoseconds as seconds.
#[must_use]
pub fn s_of_ps(ps: u64) -> f64 {
    ps as f64 / 1e12
}
