//! Requests and lists of them.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use pleach_scheduler::Problem;

use crate::settings::within;

/// Most requests of a list.
pub const REQUESTS_MAX: usize = 10_000_000;
/// Latest arrival, s: a hundred days, within the range of a clock of picoseconds.
pub const ARRIVAL_S_MAX: f64 = 8_640_000.0;
/// Most tokens of a prompt or an answer.
pub const TOKENS_MAX: u32 = 2_000_000;

/// Tokens of a block of a prompt (Mooncake's).
pub const BLOCK_TOKENS: u32 = 512;

/// The whole blocks of a prompt: a part of [`Requests::block_ids`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Place of the first.
    pub first: u32,
    /// 0 where a list tells none.
    pub num: u32,
}

impl Blocks {
    /// Their ids among those of a list.
    #[must_use]
    pub fn of(self, ids: &[u32]) -> &[u32] {
        &ids[self.first as usize..(self.first + self.num) as usize]
    }
}

/// What a user asks of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// From the beginning of the list, s.
    pub arrival_s: f64,
    /// Tokens of the prompt, at least 1.
    pub prompt_tokens: u32,
    /// Tokens of the answer, at least 1. No router sees it.
    pub output_tokens: u32,
    /// Requests of one conversation have one number.
    pub session: u32,
    /// The first so many tokens of the prompt stood in the conversation's last request and its answer.
    pub prefix_tokens: u32,
    /// Whole blocks of the prompt, where the list tells them.
    pub blocks: Blocks,
}

/// That a request comes after the answer to another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct After {
    /// Place of that other one, before its own.
    pub place: u32,
    /// From the end of its answer to the arrival, s, [`WAIT_S_MIN`] or more.
    pub wait_s: f64,
}

/// Least time from the end of an answer to the next request of its conversation, s: a way over a network and back. *Assumed.*
pub const WAIT_S_MIN: f64 = 0.05;

/// Requests by arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    rows: Vec<Request>,
    block_ids: Arc<[u32]>,
    /// Where the loop is closed: what a request comes after, none of a conversation's first. `[num_requests]`, else empty.
    after: Arc<[Option<After>]>,
}

impl Requests {
    /// Checks and sorts.
    ///
    /// # Errors
    /// Numbers out of range, named by their place.
    pub fn new(rows: Vec<Request>) -> Result<Requests, Problem> {
        Requests::with_blocks(rows, Arc::default())
    }

    /// The same with the ids of the blocks of their prompts. An id stands for all text up to the end of its block, so prompts
    /// with an id in common begin alike.
    ///
    /// # Errors
    /// Numbers out of range, named by their place.
    pub fn with_blocks(mut rows: Vec<Request>, block_ids: Arc<[u32]>) -> Result<Requests, Problem> {
        within("requests", rows.len(), 1, REQUESTS_MAX)?;
        for (place, row) in rows.iter().enumerate() {
            check(place, row, block_ids.len())?;
        }
        rows.sort_by(|one, other| one.arrival_s.total_cmp(&other.arrival_s));
        Ok(Requests {
            rows,
            block_ids,
            after: Arc::default(),
        })
    }

    /// Requests of which some come after the answer to another one, whenever that is; their own arrivals say in which order they are
    /// listed, no more.
    ///
    /// # Errors
    /// Numbers out of range, rows that are not by arrival, another one that does not stand before.
    pub fn in_a_loop(rows: Vec<Request>, after: Vec<Option<After>>) -> Result<Requests, Problem> {
        within("after", after.len(), rows.len(), rows.len())?;
        let is_sorted = rows.is_sorted_by(|one, other| one.arrival_s <= other.arrival_s);
        for (place, after) in after.iter().enumerate() {
            let is_right = |after: &After| {
                (after.place as usize) < place && (WAIT_S_MIN..=ARRIVAL_S_MAX).contains(&after.wait_s)
            };
            Problem::refuse_if(
                !is_sorted || !after.as_ref().is_none_or(is_right),
                format_args!("requests[{place}].after"),
                format_args!("{after:?}"),
                format_args!("a request before it, and {WAIT_S_MIN} to {ARRIVAL_S_MAX} s"),
                "Sort the rows by arrival.",
            )?;
        }
        Ok(Requests {
            after: Arc::from(after),
            ..Requests::new(rows)?
        })
    }

    /// Refuses a list of which requests come after answers, for what takes none.
    pub(super) fn no_loop(&self, what: &str) -> Result<(), Problem> {
        Problem::refuse_if(
            !self.after.is_empty(),
            "sessions",
            "a closed loop",
            "open",
            format_args!("{what} take lists whose requests come at times of their own."),
        )
    }

    /// What each request comes after; empty where all come at times of their own.
    #[must_use]
    pub fn after(&self) -> &[Option<After>] {
        &self.after
    }

    /// Other requests with these blocks.
    ///
    /// # Errors
    /// Numbers out of range, named by their place.
    pub fn of_rows(&self, rows: Vec<Request>) -> Result<Requests, Problem> {
        Requests::with_blocks(rows, Arc::clone(&self.block_ids))
    }

    /// By arrival.
    #[must_use]
    pub fn rows(&self) -> &[Request] {
        &self.rows
    }

    /// Ids of all prompts' blocks; none where the list tells none.
    #[must_use]
    pub fn block_ids(&self) -> &Arc<[u32]> {
        &self.block_ids
    }

    /// Share of the tokens of prompts that stand in blocks of requests that came before: what one cache without bound would hold,
    /// 0 to 1; none where the list tells no blocks.
    #[must_use]
    pub fn block_share(&self) -> Option<f64> {
        let mut seen: HashSet<u32> = HashSet::new();
        let (mut all, mut held) = (0, 0);
        for row in &self.rows {
            let ids = row.blocks.of(&self.block_ids);
            let num = ids.iter().take_while(|id| seen.contains(id)).count() as u32;
            held += u64::from((num * BLOCK_TOKENS).min(row.prompt_tokens - 1));
            all += u64::from(row.prompt_tokens);
            seen.extend(ids);
        }
        (!self.block_ids.is_empty()).then(|| held as f64 / all as f64)
    }

    /// The requests between two places, the first at 0; what comes after an answer that is not among them comes at a time of its own.
    ///
    /// # Errors
    /// No request.
    pub fn part(&self, places: Range<usize>) -> Result<Requests, Problem> {
        let begins_s = self.rows.get(places.start).map_or(0.0, |row| row.arrival_s);
        let rows = self.rows[places.clone()].iter().map(|row| Request {
            arrival_s: row.arrival_s - begins_s,
            ..*row
        });
        let part = self.of_rows(rows.collect())?;
        let after = self.after.get(places.clone()).unwrap_or_default().iter();
        let after = after.map(|after| {
            let after = (*after)?;
            let place = after.place.checked_sub(places.start as u32)?;
            Some(After { place, ..after })
        });
        Ok(Requests {
            after: after.collect(),
            ..part
        })
    }

    /// Requests a second, from the first to the last.
    #[must_use]
    pub fn rate_per_s(&self) -> f64 {
        let (first, last) = (self.rows[0].arrival_s, self.rows[self.rows.len() - 1].arrival_s);
        self.rows.len() as f64 / (last - first).max(1e-9)
    }

    /// The same requests `factor` times as fast; people and tools stay as slow as they are.
    ///
    /// # Errors
    /// A factor that is not above zero, or one so small that the list ends too late.
    pub fn faster(&self, factor: f64) -> Result<Requests, Problem> {
        Problem::refuse_if(
            !(factor.is_finite() && factor > 0.0),
            "factor",
            factor,
            "above 0",
            "Try 1.",
        )?;
        let rows = self.rows.iter().map(|row| Request {
            arrival_s: row.arrival_s / factor,
            ..*row
        });
        Ok(Requests {
            after: Arc::clone(&self.after),
            ..self.of_rows(rows.collect())?
        })
    }
}

fn check(place: usize, row: &Request, num_ids: usize) -> Result<(), Problem> {
    let refuse = |key: &str, value: String, allowed: String| {
        let key = format!("requests[{place}].{key}");
        Err(Problem::new(key, value, allowed, "Mend the row or leave it out."))
    };
    if !(0.0..=ARRIVAL_S_MAX).contains(&row.arrival_s) {
        return refuse(
            "arrival_s",
            row.arrival_s.to_string(),
            format!("0 to {ARRIVAL_S_MAX}"),
        );
    }
    for (key, tokens) in [
        ("prompt_tokens", row.prompt_tokens),
        ("output_tokens", row.output_tokens),
    ] {
        if !(1..=TOKENS_MAX).contains(&tokens) {
            return refuse(key, tokens.to_string(), format!("1 to {TOKENS_MAX}"));
        }
    }
    if row.prefix_tokens >= row.prompt_tokens {
        let allowed = format!("less than the prompt's {}", row.prompt_tokens);
        return refuse("prefix_tokens", row.prefix_tokens.to_string(), allowed);
    }
    let Blocks { first, num } = row.blocks;
    let is_there = first as usize + num as usize <= num_ids;
    if !is_there || num > row.prompt_tokens / BLOCK_TOKENS {
        let allowed = format!("whole blocks of the prompt, among {num_ids} ids");
        return refuse("blocks", format!("{num} from {first}"), allowed);
    }
    Ok(())
}
