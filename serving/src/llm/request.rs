//! Requests and lists of them.

use pleach_scheduler::ConfigError;

/// Most requests of a list.
pub const REQUESTS_MAX: usize = 10_000_000;
/// Latest arrival, s: a hundred days, within the range of a clock of picoseconds.
pub const ARRIVAL_S_MAX: f64 = 8_640_000.0;
/// Most tokens of a prompt or an answer.
pub const TOKENS_MAX: u32 = 2_000_000;

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
}

/// Requests by arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    rows: Vec<Request>,
}

impl Requests {
    /// Checks and sorts.
    ///
    /// # Errors
    /// Numbers out of range, named by their place.
    pub fn new(mut rows: Vec<Request>) -> Result<Requests, ConfigError> {
        if rows.is_empty() || rows.len() > REQUESTS_MAX {
            let allowed = format!("1 to {REQUESTS_MAX} requests");
            return Err(ConfigError::new(
                "requests",
                rows.len(),
                allowed,
                "Give another list.",
            ));
        }
        for (place, row) in rows.iter().enumerate() {
            check(place, row)?;
        }
        rows.sort_by(|one, other| one.arrival_s.total_cmp(&other.arrival_s));
        Ok(Requests { rows })
    }

    /// By arrival.
    #[must_use]
    pub fn rows(&self) -> &[Request] {
        &self.rows
    }

    /// By arrival, without the list.
    #[must_use]
    pub fn into_rows(self) -> Vec<Request> {
        self.rows
    }

    /// Requests a second, from the first to the last.
    #[must_use]
    pub fn rate_per_s(&self) -> f64 {
        let (first, last) = (self.rows[0].arrival_s, self.rows[self.rows.len() - 1].arrival_s);
        self.rows.len() as f64 / (last - first).max(1e-9)
    }

    /// The same requests `factor` times as fast.
    ///
    /// # Errors
    /// A factor that is not above zero, or one so small that the list ends too late.
    pub fn faster(&self, factor: f64) -> Result<Requests, ConfigError> {
        if !(factor.is_finite() && factor > 0.0) {
            return Err(ConfigError::new("factor", factor, "above 0", "Try 1."));
        }
        let rows = self.rows.iter().map(|row| Request {
            arrival_s: row.arrival_s / factor,
            ..*row
        });
        Requests::new(rows.collect())
    }
}

fn check(place: usize, row: &Request) -> Result<(), ConfigError> {
    let refuse = |key: &str, value: String, allowed: String| {
        let key = format!("requests[{place}].{key}");
        Err(ConfigError::new(
            key,
            value,
            allowed,
            "Mend the row or leave it out.",
        ))
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
    Ok(())
}
