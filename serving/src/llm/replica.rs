//! A replica: continuous batching with chunked prompts, keys and values that may run out, and prefixes that stay.
//!
//! A step gives each request of the batch one token and takes as many tokens of waiting prompts as there is room for. Between two
//! changes of the batch the times of steps are an arithmetic series, so many steps are one sum; times are whole picoseconds, so
//! that sum is what the steps would add up to, to the last digit.
//!
//! # Rules (those of vLLM's scheduler, version 1, in short)
//! Requests are taken up in the order of arrival, while the batch has a place and the prompt's keys and values fit; what an
//! answer will need is not reserved. Where the next tokens do not fit, the youngest request of the batch gives up its place,
//! and its prompt and answer so far are computed anew. A prefix that the replica still holds is not computed: by block where
//! the list tells the blocks of prompts, which requests then share, else the context of the conversation's last request. A
//! prompt that was computed elsewhere joins the batch with its first token as soon as its keys and values fit.
//!
//! # What is deliberately not here
//! Blocks of what a request uses alone (a token is the unit), blocks of answers (no list tells them), speculative decoding.

mod blocks;
mod kept;
mod prefixes;
mod series;
#[cfg(test)]
mod tests;
mod work;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use crate::llm::step_time::{Chunks, Pace};
use kept::Kept;
use series::{series, steps_until};
use work::Prefill;
pub use work::{Event, Told, Work};

/// A request of the batch, in the order in which it joined.
#[derive(Clone, Copy, Debug)]
struct Running {
    work: Work,
    /// Number of the step that gives its last token.
    last_step: u64,
    /// Step in which it joined.
    joined_step: u64,
}

/// See the front page of this file.
#[derive(Clone, Debug)]
pub struct Replica {
    pace: Pace,
    /// End of the last step, ps.
    now_ps: u64,
    /// Steps so far.
    steps: u64,
    /// Not yet in the queue: from when on they are.
    on_the_way: VecDeque<(u64, Work)>,
    waiting: VecDeque<(Work, bool)>,
    prefills: VecDeque<Prefill>,
    /// By the step of its last token; the second number is the place in `slots`.
    ends: BinaryHeap<Reverse<(u64, u32)>>,
    slots: Vec<Option<Running>>,
    free_slots: Vec<u32>,
    /// Places of the batch by when they joined, ended ones among them.
    order: VecDeque<(u64, u32)>,
    num_running: u64,
    /// Tokens in the contexts of the batch.
    context_tokens: u64,
    /// Tokens of prompts that are being computed; their keys and values are taken.
    prefill_tokens: u64,
    /// Tokens of prompts that wait, on the way among them.
    waiting_tokens: u64,
    kept: Kept,
    /// Times that a request gave up its place.
    num_recomputed: u64,
    /// Tokens of prompts that were held already.
    reused_tokens: u64,
    /// Tokens of prompts that were computed.
    computed_tokens: u64,
    /// Requests whose last token is there.
    num_ended: u64,
}

impl Replica {
    /// An empty one that keeps what has ended by conversation.
    #[must_use]
    pub fn new(pace: Pace) -> Replica {
        Replica::with_blocks(pace, &Arc::default())
    }

    /// An empty one that keeps prompts by these blocks, or by conversation where there are none.
    #[must_use]
    pub fn with_blocks(pace: Pace, ids: &Arc<[u32]>) -> Replica {
        Replica {
            pace,
            now_ps: 0,
            steps: 0,
            on_the_way: VecDeque::new(),
            waiting: VecDeque::new(),
            prefills: VecDeque::new(),
            ends: BinaryHeap::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            order: VecDeque::new(),
            num_running: 0,
            context_tokens: 0,
            prefill_tokens: 0,
            waiting_tokens: 0,
            kept: if pace.keeps_prefixes {
                Kept::of(ids)
            } else {
                Kept::Nothing
            },
            num_recomputed: 0,
            reused_tokens: 0,
            computed_tokens: 0,
            num_ended: 0,
        }
    }

    /// Its pace.
    #[must_use]
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Whether it could ever hold a request to its end.
    #[must_use]
    pub fn takes(&self, prompt_tokens: u32, output_tokens: u32) -> bool {
        u64::from(prompt_tokens) + u64::from(output_tokens) <= self.pace.kv_tokens
    }

    /// Requests that wait for their prompt to be taken up.
    #[must_use]
    pub fn num_waiting(&self) -> u64 {
        (self.waiting.len() + self.on_the_way.len()) as u64
    }

    /// Tokens of prompts that are not computed yet.
    #[must_use]
    pub fn prompt_tokens_left(&self) -> u64 {
        let begun: u64 = self
            .prefills
            .iter()
            .map(|prefill| u64::from(prefill.left_tokens))
            .sum();
        self.waiting_tokens + begun
    }

    /// Requests of the batch, those with unfinished prompts among them.
    #[must_use]
    pub fn num_running(&self) -> u64 {
        self.num_running + self.prefills.len() as u64
    }

    /// Tokens in the contexts of the batch.
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.context_tokens + self.prefill_tokens
    }

    /// Times that a request gave up its place and was computed anew.
    #[must_use]
    pub fn num_recomputed(&self) -> u64 {
        self.num_recomputed
    }

    /// Tokens of prompts that it held already.
    #[must_use]
    pub fn reused_tokens(&self) -> u64 {
        self.reused_tokens
    }

    /// Tokens of prompts that it has computed.
    #[must_use]
    pub fn computed_tokens(&self) -> u64 {
        self.computed_tokens
    }

    /// Requests whose last token is there.
    #[must_use]
    pub fn num_ended(&self) -> u64 {
        self.num_ended
    }

    /// Steps so far.
    #[must_use]
    pub fn num_steps(&self) -> u64 {
        self.steps
    }

    /// End of the last step, or up to when it has idled, ps.
    #[must_use]
    pub fn now_ps(&self) -> u64 {
        self.now_ps
    }

    /// Takes all requests out that have not ended, those of the batch first. What a request was answered so far counts as its
    /// prompt: it has to be computed anew elsewhere.
    pub fn take_back(&mut self) -> Vec<Work> {
        let mut taken = Vec::new();
        for (joined_step, slot) in std::mem::take(&mut self.order) {
            if self.slots[slot as usize].is_some_and(|running| running.joined_step == joined_step) {
                taken.push(self.rest_of(slot));
            }
        }
        taken.extend(self.prefills.drain(..).map(|prefill| prefill.work));
        taken.extend(self.waiting.drain(..).map(|(work, _)| work));
        taken.extend(self.on_the_way.drain(..).map(|(_, work)| work));
        (self.prefill_tokens, self.waiting_tokens) = (0, 0);
        self.ends.clear();
        taken
    }

    /// Takes a request out of the batch: what is left of it.
    fn rest_of(&mut self, slot: u32) -> Work {
        let running = self.remove(slot);
        let given = (self.steps - running.joined_step + 1) as u32;
        Work {
            prompt_tokens: running.work.prompt_tokens + given,
            output_tokens: running.work.output_tokens - given,
            is_computed: false,
            ..running.work
        }
    }

    /// Takes a request that arrives at `arrival_ps`.
    ///
    /// # Panics
    /// Where it never fits ([`Replica::takes`]).
    pub fn send(&mut self, arrival_ps: u64, work: Work) {
        assert!(
            self.takes(work.prompt_tokens, work.output_tokens),
            "{work:?} never fits"
        );
        self.waiting_tokens += u64::from(work.prompt_tokens);
        let ready_ps = arrival_ps + self.pace.to_queue_ps(work.prompt_tokens.into());
        // Nearly always the last.
        let later = self.on_the_way.iter().rev();
        let later = later.take_while(|(other_ps, _)| *other_ps > ready_ps).count();
        let place = self.on_the_way.len() - later;
        self.on_the_way.insert(place, (ready_ps, work));
    }

    /// Goes on to the first end of a step at or after `to_ps`; `told` gets what happened, in order of time.
    pub fn advance(&mut self, to_ps: u64, told: &mut Vec<Told>) {
        self.advance_by(to_ps, told, u64::MAX);
    }

    /// The same with at most `most` steps in one sum; 1 is step by step, which tests hold the sums to.
    fn advance_by(&mut self, to_ps: u64, told: &mut Vec<Told>, most: u64) {
        while self.now_ps < to_ps {
            while self
                .on_the_way
                .front()
                .is_some_and(|(ready_ps, _)| *ready_ps <= self.now_ps)
            {
                let (_, work) = self.on_the_way.pop_front().expect("there is a front");
                self.waiting.push_back((work, work.is_computed));
            }
            self.take_up(told);
            let until_ps = self
                .on_the_way
                .front()
                .map_or(to_ps, |(ready_ps, _)| to_ps.min(*ready_ps));
            if !self.prefills.is_empty() {
                self.step_with_prompts(told);
            } else if self.num_running > 0 {
                self.decode(until_ps, most, told);
            } else {
                // No request runs here, so nothing keeps a waiting one out: time passes.
                debug_assert!(
                    self.waiting.is_empty(),
                    "{} wait at an empty replica",
                    self.waiting.len()
                );
                self.now_ps = until_ps;
            }
        }
    }

    /// Tokens of all contexts, blocks that several have in common once.
    fn kv_used(&self) -> u64 {
        self.context_tokens + self.prefill_tokens - self.kept.shared_tokens()
    }

    /// Tokens of memory that no request needs.
    fn kv_left(&self) -> u64 {
        self.pace.kv_tokens.saturating_sub(self.kv_used())
    }

    /// Takes up waiting requests, in their order, while there is room.
    fn take_up(&mut self, told: &mut Vec<Told>) {
        while let Some((work, is_anew)) = self.waiting.front().copied() {
            if self.num_running() >= u64::from(self.pace.batch_max) {
                return;
            }
            let (held_blocks, shared_tokens) = self.kept.find(&work);
            // The next token of each must fit beside the prompt.
            let needed =
                self.kv_used() + self.num_running + u64::from(work.prompt_tokens) + 1 - shared_tokens;
            if needed > self.pace.kv_tokens && self.num_running() > 0 {
                return;
            }
            self.waiting.pop_front();
            self.waiting_tokens -= u64::from(work.prompt_tokens);
            self.prefill_tokens += u64::from(work.prompt_tokens);
            self.kept.hold(work.blocks, 0, held_blocks);
            self.kept.shrink(self.kv_left());
            let mut prefill = Prefill {
                work,
                left_tokens: 0,
                held_blocks,
                is_anew,
            };
            if work.is_computed {
                self.join(prefill, told);
                continue;
            }
            let held = self.kept.reuse(&work, held_blocks);
            self.reused_tokens += u64::from(held);
            prefill.left_tokens = work.prompt_tokens - held;
            self.prefills.push_back(prefill);
        }
    }

    /// One step that computes prompts beside the batch.
    fn step_with_prompts(&mut self, told: &mut Vec<Told>) {
        self.make_room();
        let batch = self.num_running;
        let mut room = self.pace.prompt_room(batch);
        let (mut chunks, mut num_done) = (Chunks::default(), 0);
        for prefill in &mut self.prefills {
            let taken = room.min(u64::from(prefill.left_tokens));
            let before = prefill.work.prompt_tokens - prefill.left_tokens;
            chunks.add(taken, before.into());
            prefill.left_tokens -= taken as u32;
            room -= taken;
            if prefill.left_tokens > 0 {
                break;
            }
            num_done += 1;
            if room == 0 {
                break;
            }
        }
        self.now_ps += self.pace.step(batch, self.context_tokens, chunks);
        self.computed_tokens += chunks.tokens;
        self.steps += 1;
        self.grow(batch);
        self.leave(told);
        for _ in 0..num_done {
            let prefill = self.prefills.pop_front().expect("as many were counted");
            self.join(prefill, told);
        }
    }

    /// A prompt is computed: its first token is there.
    fn join(&mut self, prefill: Prefill, told: &mut Vec<Told>) {
        let work = prefill.work;
        self.prefill_tokens -= u64::from(work.prompt_tokens);
        self.kept.hold(work.blocks, prefill.held_blocks, work.blocks.num);
        if !prefill.is_anew {
            told.push((work.id, Event::First, self.now_ps));
        }
        if work.output_tokens == 1 {
            told.push((work.id, Event::Last, self.now_ps));
            self.kept.release(work.blocks, work.blocks.num);
            self.keep(work);
            return;
        }
        let running = Running {
            work,
            last_step: self.steps + u64::from(work.output_tokens) - 1,
            joined_step: self.steps,
        };
        let slot = if let Some(slot) = self.free_slots.pop() {
            self.slots[slot as usize] = Some(running);
            slot
        } else {
            self.slots.push(Some(running));
            (self.slots.len() - 1) as u32
        };
        self.ends.push(Reverse((running.last_step, slot)));
        self.order.push_back((self.steps, slot));
        self.num_running += 1;
        self.context_tokens += u64::from(work.prompt_tokens) + 1;
    }

    /// As many steps of the batch alone as lead to `until_ps`, to the next end, or to where keys and values run out.
    fn decode(&mut self, until_ps: u64, most: u64, told: &mut Vec<Told>) {
        self.make_room();
        let Some(Reverse((next_end, _))) = self.ends.peek() else {
            return;
        };
        let batch = self.num_running;
        let room = (self.pace.kv_tokens - self.kv_used()) / batch;
        let first = self.pace.step(batch, self.context_tokens, Chunks::default());
        let more = self.pace.context_token_ps * batch;
        let steps = (next_end - self.steps)
            .min(room.max(1))
            .min(most)
            .min(steps_until(first, more, until_ps.saturating_sub(self.now_ps)));
        self.now_ps += series(first, more, steps) as u64;
        self.steps += steps;
        self.grow(steps * batch);
        self.leave(told);
    }

    /// Contexts have so many tokens more.
    fn grow(&mut self, tokens: u64) {
        self.context_tokens += tokens;
        self.kept.shrink_blocks(self.kv_left());
    }

    /// Those whose last token is there leave.
    fn leave(&mut self, told: &mut Vec<Told>) {
        while let Some(Reverse((last_step, slot))) = self.ends.peek().copied() {
            if last_step > self.steps {
                return;
            }
            self.ends.pop();
            let place = slot as usize;
            // A place whose request gave it up, and perhaps another one has now, ends at another step.
            if self.slots[place].is_none_or(|running| running.last_step != last_step) {
                continue;
            }
            let running = self.remove(slot);
            told.push((running.work.id, Event::Last, self.now_ps));
            self.keep(running.work);
        }
    }

    /// The youngest give up their places until the next token of each request of the batch fits.
    fn make_room(&mut self) {
        while self.num_running() > 1 && self.kv_used() + self.num_running > self.pace.kv_tokens {
            self.num_recomputed += 1;
            if let Some(prefill) = self.prefills.pop_back() {
                let tokens = u64::from(prefill.work.prompt_tokens);
                self.prefill_tokens -= tokens;
                self.kept.release(prefill.work.blocks, prefill.held_blocks);
                self.waiting_tokens += tokens;
                self.waiting.push_front((prefill.work, prefill.is_anew));
                continue;
            }
            let slot = self.youngest();
            let work = self.rest_of(slot);
            self.waiting_tokens += u64::from(work.prompt_tokens);
            self.waiting.push_front((work, true));
        }
    }

    fn youngest(&mut self) -> u32 {
        loop {
            let (joined_step, slot) = self.order.pop_back().expect("the batch is not empty");
            if self.slots[slot as usize].is_some_and(|running| running.joined_step == joined_step) {
                return slot;
            }
        }
    }

    fn remove(&mut self, slot: u32) -> Running {
        let running = self.slots[slot as usize].take().expect("somebody is there");
        self.free_slots.push(slot);
        self.num_running -= 1;
        let given = self.steps - running.joined_step + 1;
        self.context_tokens -= u64::from(running.work.prompt_tokens) + given;
        self.kept.release(running.work.blocks, running.work.blocks.num);
        // Ended ones at the front would be kept for ever.
        while let Some(&(joined_step, slot)) = self.order.front() {
            if self.slots[slot as usize].is_some_and(|running| running.joined_step == joined_step) {
                break;
            }
            self.order.pop_front();
        }
        running
    }

    /// The context of what has ended stays where there is room.
    fn keep(&mut self, work: Work) {
        self.num_ended += 1;
        self.kept.keep(&work);
        self.kept.shrink(self.kv_left());
    }
}
