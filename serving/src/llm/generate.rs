//! Lists of requests drawn from a seed: conversations whose rate comes in bursts, and lengths of prompts and answers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use pleach_scheduler::Problem;
use pleach_scheduler::portable_math::{exp, ln};
use pleach_scheduler::settings;
use pleach_scheduler::settings::Settings as _;
use pleach_workloads::Seed;
use pleach_workloads::normal::standard_normal;
use rand::{Rng, RngExt as _};
use serde::{Deserialize, Serialize};

use crate::llm::request::{ARRIVAL_S_MAX, After, Blocks, Request, Requests, WAIT_S_MIN};
use crate::settings::within;

/// Longest prompt and answer that are drawn, tokens. *Assumed*: contexts of 16,384 tokens.
const PROMPT_TOKENS_MAX: f64 = 14_000.0;
const OUTPUT_TOKENS_MAX: f64 = 2_000.0;
/// The rate is drawn anew each minute and stands four parts in five on the one before. *Assumed.*
const BURST_S: f64 = 60.0;
const BURST_MEMORY: f64 = 0.8;
/// Rate of each hour of a day over the day's mean, linear between: hourly counts of the Azure LLM inference list of 2024, in quarters.
const DAY: [f64; 24] = [
    0.25, 0.25, 0.25, 0.25, 0.5, 0.5, 0.75, 1.0, 1.25, 1.5, 1.5, 1.75, 1.75, 1.75, 1.75, 1.75, 1.5, 1.5,
    1.25, 1.0, 0.75, 0.5, 0.5, 0.25,
];
/// A user reads an answer at this pace before thinking. *Assumed.*
const READ_TOKENS_PER_S: f64 = 50.0;
/// Conversations are drawn from so many mean lengths before the list on. *Assumed.*
const CONVERSATIONS_BEFORE: f64 = 5.0;

/// When the next request of a conversation comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sessions {
    /// At a time that is drawn, however late the answer is.
    #[default]
    Open,
    /// When a user has had the answer, read it and thought.
    Closed,
    /// When a program has had the answer and run a tool that the model called for: nothing is read.
    Agents,
}

impl Sessions {
    /// Names, as settings have them.
    pub const NAMES: &[&str] = &["open", "closed", "agents"];

    #[expect(clippy::trivially_copy_pass_by_ref)]
    fn is_open(&self) -> bool {
        *self == Sessions::Open
    }

    /// By name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Sessions> {
        let all = [Sessions::Open, Sessions::Closed, Sessions::Agents];
        Some(all[Sessions::NAMES.iter().position(|known| *known == name)?])
    }
}

settings! {
    /// How a list is drawn.
    ///
    /// Lengths of the conversations of the Azure LLM inference list of 2023 (Patel et al., *Splitwise*, ISCA'24): mean and deviation of
    /// the logarithms of its 19,366 prompts and answers. The rest is *assumed*.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RequestGenerator {
        /// Requests, 1 to 10,000,000.
        pub num_requests: u32 = 20_000, in 1..=crate::llm::request::REQUESTS_MAX as u32;
        /// Mean requests a second, 0.001 to 100,000.
        pub rate_per_s: f64 = 100.0, in 0.001..=1e5;
        /// Spread of the logarithm of the rate from minute to minute, 0 to 3; 0: a Poisson process.
        pub burst: f64 = 0.3, in 0.0..=3.0;
        /// Mean of the logarithm of a prompt's new tokens, and its spread.
        pub prompt_log: [f64; 2] = [6.633, 0.985];
        /// The same of an answer.
        pub output_log: [f64; 2] = [5.019, 0.859];
        /// Mean requests of a conversation, 1 to 100. Each later prompt begins with what was said before.
        pub turns: f64 = 1.0, in 1.0..=100.0;
        /// Mean time from an answer to the next request of its conversation, s.
        pub think_s: f64 = 30.0, in 0.0..=1e5;
        /// When that next request comes.
        #[serde(skip_serializing_if = "Sessions::is_open")]
        pub sessions: Sessions = Sessions::Open;
        /// Whether the rate follows the hours of a day that begins at midnight; `rate_per_s` is then the day's mean.
        pub is_daily: bool;
        /// The list ends here, s, above 0, though it has fewer requests then.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub span_s: Option<f64>, in 1e-6..=ARRIVAL_S_MAX;
    }
}

impl RequestGenerator {
    fn check(&self) -> Result<(), Problem> {
        for (key, [mean, spread], most) in [
            ("prompt_log", self.prompt_log, 10.0),
            ("output_log", self.output_log, 8.0),
        ] {
            within(key, mean, 0.0, most)?;
            within(key, spread, 0.0, 3.0)?;
        }
        self.check_at("", "")
    }

    /// Draws a list. Conversations begin at a rate of `rate_per_s / turns`, some of them before the list does, so that the rate is
    /// that asked for from the first request to the last.
    ///
    /// # Errors
    /// A setting out of range.
    pub fn draw(&self, seed: Seed) -> Result<Requests, Problem> {
        self.check()?;
        let (mut arrivals, mut lengths) = (seed.stream("arrivals", 0), seed.stream("lengths", 0));
        let num = self.num_requests as usize;
        let mut rows: Vec<(Request, f64)> = Vec::new();
        // Of what was said so far, arrivals later than the present conversation's beginning, us.
        let mut to_come = BinaryHeap::new();
        let mut now_s = -CONVERSATIONS_BEFORE
            * (self.turns - 1.0)
            * (self.think_s + self.read_s(exp(self.output_log[0])));
        let (mut minute, mut wave, mut session) = (i64::MIN, 0.0, 0);
        let span_s = self.span_s.unwrap_or(f64::INFINITY);
        while rows.len() - to_come.len() < num && now_s < span_s {
            let next_minute = (now_s / BURST_S).floor() as i64;
            if next_minute != minute {
                minute = next_minute;
                let fresh = (1.0_f64 - BURST_MEMORY * BURST_MEMORY).sqrt() * standard_normal(&mut arrivals);
                wave = BURST_MEMORY * wave + fresh;
            }
            // A log-normal factor of mean 1.
            let factor = exp(self.burst * wave - self.burst * self.burst / 2.0) * self.of_hour(now_s);
            now_s += exponential(&mut arrivals) * self.turns / (self.rate_per_s * factor);
            let first = rows.len();
            self.converse(&mut lengths, now_s, session, &mut rows);
            to_come.extend(
                rows[first..]
                    .iter()
                    .map(|(row, _)| Reverse((row.arrival_s * 1e6) as i64)),
            );
            while to_come
                .peek()
                .is_some_and(|Reverse(at_us)| *at_us <= (now_s * 1e6) as i64)
            {
                to_come.pop();
            }
            session += 1;
        }
        rows.sort_by(|(one, _), (other, _)| one.arrival_s.total_cmp(&other.arrival_s));
        rows.truncate(rows.partition_point(|(row, _)| row.arrival_s < span_s).min(num));
        if self.sessions == Sessions::Open {
            return Requests::new(rows.into_iter().map(|(row, _)| row).collect());
        }
        // What began before the list goes on with its first request in it.
        let mut last: HashMap<u32, u32> = HashMap::new();
        let after = rows.iter().enumerate().map(|(place, (row, wait_s))| {
            let before = last.insert(row.session, place as u32);
            let wait_s = wait_s.max(WAIT_S_MIN);
            before.map(|place| After { place, wait_s })
        });
        let after = after.collect();
        Requests::in_a_loop(rows.into_iter().map(|(row, _)| row).collect(), after)
    }

    /// From an answer to the next request without the thinking, s.
    fn read_s(&self, output_tokens: f64) -> f64 {
        match self.sessions {
            Sessions::Agents => 0.0,
            Sessions::Open | Sessions::Closed => output_tokens / READ_TOKENS_PER_S,
        }
    }

    /// The rate of a time of the day over the day's mean.
    fn of_hour(&self, now_s: f64) -> f64 {
        if !self.is_daily {
            return 1.0;
        }
        let hour = now_s.rem_euclid(86_400.0) / 3_600.0;
        let (first, part) = (hour as usize % 24, hour - hour.floor());
        DAY[first] + (DAY[(first + 1) % 24] - DAY[first]) * part
    }

    /// One conversation that begins now, each request with its wait after the one before; what of it lies before 0 is left out.
    fn converse(&self, rng: &mut impl Rng, begin_s: f64, session: u32, rows: &mut Vec<(Request, f64)>) {
        let (mut at_s, mut said_tokens, mut wait_s) = (begin_s, 0, 0.0);
        loop {
            let new_tokens = tokens(rng, self.prompt_log, PROMPT_TOKENS_MAX);
            let output_tokens = tokens(rng, self.output_log, OUTPUT_TOKENS_MAX);
            if at_s >= 0.0 {
                let row = Request {
                    arrival_s: at_s,
                    prompt_tokens: said_tokens + new_tokens,
                    output_tokens,
                    session,
                    prefix_tokens: said_tokens,
                    blocks: Blocks::default(),
                };
                rows.push((row, wait_s));
            }
            said_tokens += new_tokens + output_tokens;
            wait_s = self.read_s(f64::from(output_tokens)) + self.think_s * exponential(rng);
            at_s += wait_s;
            let goes_on = rng.random::<f64>() < 1.0 - 1.0 / self.turns;
            if !goes_on || f64::from(said_tokens) > PROMPT_TOKENS_MAX {
                return;
            }
        }
    }
}

fn exponential(rng: &mut impl Rng) -> f64 {
    -ln(1.0 - rng.random::<f64>())
}

fn tokens(rng: &mut impl Rng, log: [f64; 2], max: f64) -> u32 {
    exp(log[0] + log[1] * standard_normal(rng)).clamp(1.0, max) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_lengths_are_those_asked_for_and_a_seed_repeats_itself() {
        let generator = RequestGenerator {
            num_requests: 50_000,
            burst: 0.0,
            ..RequestGenerator::default()
        };
        let list = generator.draw(Seed(1)).unwrap();
        assert_eq!(list, generator.draw(Seed(1)).unwrap());
        assert_ne!(list, generator.draw(Seed(2)).unwrap());
        assert!((list.rate_per_s() - 100.0).abs() < 2.0, "{}", list.rate_per_s());
        let logs: Vec<f64> = list
            .rows()
            .iter()
            .map(|row| f64::from(row.prompt_tokens).ln())
            .collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        assert!((mean - 6.633).abs() < 0.02, "{mean}");
    }

    #[test]
    fn later_prompts_of_a_conversation_begin_with_what_was_said() {
        let generator = RequestGenerator {
            turns: 4.0,
            burst: 0.0,
            ..RequestGenerator::default()
        };
        let list = generator.draw(Seed(3)).unwrap();
        let mut said = std::collections::HashMap::new();
        let mut num_later = 0_u32;
        for row in list.rows() {
            if let Some(before) = said.insert(row.session, row.prompt_tokens + row.output_tokens) {
                assert_eq!(row.prefix_tokens, before);
                num_later += 1;
            }
        }
        assert!(num_later > 5_000, "{num_later}");
        assert!((list.rate_per_s() - 100.0).abs() < 25.0, "{}", list.rate_per_s());
    }

    #[test]
    fn in_a_loop_each_later_request_waits_for_the_answer_before_it() {
        let open = RequestGenerator {
            num_requests: 2_000,
            rate_per_s: 4.0,
            turns: 4.0,
            think_s: 5.0,
            ..RequestGenerator::default()
        };
        for sessions in [Sessions::Closed, Sessions::Agents] {
            let list = RequestGenerator {
                sessions,
                ..open.clone()
            };
            let list = list.draw(Seed(3)).unwrap();
            let (rows, after) = (list.rows(), list.after());
            let mut waits_s = Vec::new();
            for (row, after) in rows.iter().zip(after) {
                let Some(After { place, wait_s }) = *after else {
                    continue;
                };
                let before = &rows[place as usize];
                assert_eq!(row.session, before.session);
                assert_eq!(row.prefix_tokens, before.prompt_tokens + before.output_tokens);
                let read_s = f64::from(before.output_tokens) / READ_TOKENS_PER_S;
                waits_s.push(wait_s - if sessions == Sessions::Closed { read_s } else { 0.0 });
            }
            assert!(waits_s.len() > 800, "{}", waits_s.len());
            let mean_s = waits_s.iter().sum::<f64>() / waits_s.len() as f64;
            assert!((4.0..6.0).contains(&mean_s), "{mean_s}");
        }
        assert!(open.draw(Seed(3)).unwrap().after().is_empty());
    }

    #[test]
    fn a_setting_out_of_range_is_named() {
        let generator = RequestGenerator {
            turns: 0.5,
            ..RequestGenerator::default()
        };
        let error = generator.draw(Seed(0)).unwrap_err().to_string();
        assert!(error.contains("turns = 0.5: allowed is 1 to 100"), "{error}");
    }
}
