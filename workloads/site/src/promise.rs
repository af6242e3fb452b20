//! What is promised of a policy before it goes live: waits and completion times with intervals, and when they count as broken.
//!
//! `pleach run` writes it, `pleach report` holds the accounting of the weeks since against it, and the daemons hold against it
//! what they see. All three ask the same rule, so a report and a daemon agree on what is broken.
//!
//! # What is deliberately not here
//! Simulation, intervals and files: a promise is plain data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the key `version` of the file says. A change of the format is a new number.
pub const VERSION: u32 = 1;

/// Largest file that is read, bytes: `ROWS_MAX` rows with all their figures.
pub const BYTES_MAX: u64 = 16 << 20;

/// Fewest ended jobs of which anything is said: *assumed*, about five times what the error of a mean of waits needs for a fifth.
pub const JOBS_MIN: u64 = 100;

/// Part of the jobs that wait longer than the promised 99th percentile, if the promise is kept.
const LATE_PART: f64 = 0.01;

/// Standard errors by which the jobs beyond the 99th percentile must exceed that part. *Assumed*: by chance one time in a thousand.
const LATE_ERRORS: f64 = 3.0;

/// A difference of mean waits below this is none that users notice, s. *Assumed*, as in the verdict of a twin.
const SHORT_S: f64 = 60.0;

/// Largest number of a promise: longer than any list, s.
const VALUE_MAX: f64 = 1e12;

/// Most rows of a promise.
const ROWS_MAX: usize = 10_000;

/// A figure with the 95 % interval of drawing days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// The figure.
    pub value: f64,
    /// Lower end; the figure itself where there is no interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Some jobs: all, those of a class of size, or those of an account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// By what they are grouped: `all`, `GPUs`, `tenant`.
    pub by: String,
    /// Which.
    pub name: String,
    /// Jobs.
    pub num_jobs: u64,
    /// Figures by their keys: `wait_s`, `wait_s_p99`, `jct_s`, `jct_s_p99` (s), `slowdown` (mean of at least 1), `fairness` (Jain's
    /// index over the accounts' slowdowns, of all jobs alone).
    pub figures: BTreeMap<String, Stated>,
}

/// What is promised. `W` is what was played: only `pleach report` reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promise<W> {
    /// [`VERSION`].
    pub version: u32,
    /// The policy: a name, or a file beside this one.
    pub policy: String,
    /// The policy that the site had before.
    pub before: String,
    /// Observed over simulated mean wait under that policy, by which all waits here are multiplied.
    pub wait_factor: f64,
    /// Days on which the figures rest.
    pub num_days: f64,
    /// What was played.
    pub world: W,
    /// All jobs first.
    pub rows: Vec<Row>,
}

/// What is promised of all jobs, as far as it can break.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Mean wait, s.
    pub wait_s: Stated,
    /// 99 of 100 jobs wait no longer, s.
    pub wait_s_p99: f64,
    /// What may come on top, as a part of the promise.
    pub margin: f64,
}

/// Waits that were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Jobs.
    pub num_jobs: u64,
    /// Their waits, summed, s.
    pub wait_s: f64,
    /// Those that waited longer than [`Limits::late_s`].
    pub num_late: u64,
}

impl<W> Promise<W> {
    /// Checks what a file says.
    ///
    /// # Errors
    /// The first value that is not allowed, with what is.
    pub fn check(&self) -> Result<(), String> {
        let allowed = |key: &str, value: &dyn std::fmt::Display, allowed: &str| {
            Err(format!(
                "{key} = {value}: allowed is {allowed}; write it anew with `pleach run`"
            ))
        };
        if self.version != VERSION {
            return allowed("version", &self.version, &VERSION.to_string());
        }
        if self.rows.is_empty() || self.rows.len() > ROWS_MAX || self.rows[0].by != "all" {
            return allowed("rows", &self.rows.len(), "1 to 10000 rows, all jobs first");
        }
        let numbers = [("wait_factor", self.wait_factor), ("num_days", self.num_days)];
        let stated = self.rows.iter().flat_map(|row| &row.figures);
        let stated =
            stated.flat_map(|(key, of)| [of.value, of.low, of.high].map(|value| (key.as_str(), value)));
        let is_number = |value: f64| (0.0..=VALUE_MAX).contains(&value);
        match numbers
            .into_iter()
            .chain(stated)
            .find(|(_, value)| !is_number(*value))
        {
            Some((key, value)) => allowed(key, &value, "0 to 1e12"),
            None => self.limits(0.0).map(|_| ()),
        }
    }

    /// What can break, with a margin.
    ///
    /// # Errors
    /// A promise without the waits of all jobs.
    pub fn limits(&self, margin: f64) -> Result<Limits, String> {
        let all = self
            .rows
            .first()
            .ok_or("there are no rows; write it anew with `pleach run`")?;
        all.limits(margin)
    }
}

impl Row {
    /// What of these jobs can break, with a margin.
    ///
    /// # Errors
    /// A row without waits.
    pub fn limits(&self, margin: f64) -> Result<Limits, String> {
        let stated = |key: &str| {
            let found = self.figures.get(key).copied();
            found.ok_or_else(|| {
                format!(
                    "{} {} has no {key}; write it anew with `pleach run`",
                    self.by, self.name
                )
            })
        };
        Ok(Limits {
            wait_s: stated("wait_s")?,
            wait_s_p99: stated("wait_s_p99")?.value,
            margin,
        })
    }
}

impl Limits {
    /// Mean wait above which the promise is broken, s: the upper end of its interval and the margin, and no less than a minute
    /// beyond that end.
    #[must_use]
    pub fn mean_s(&self) -> f64 {
        self.wait_s.high + (self.wait_s.high * self.margin).max(SHORT_S)
    }

    /// Wait above which a job counts as late, s: the promised 99th percentile and the margin.
    #[must_use]
    pub fn late_s(&self) -> f64 {
        self.wait_s_p99 + (self.wait_s_p99 * self.margin).max(SHORT_S)
    }

    /// Why the promise is broken; none where it is not, or with fewer than [`JOBS_MIN`] jobs.
    #[must_use]
    pub fn broken(&self, seen: &Seen) -> Option<String> {
        let num = seen.num_jobs as f64;
        if seen.num_jobs < JOBS_MIN {
            return None;
        }
        let margin = 100.0 * self.margin;
        if seen.wait_s / num > self.mean_s() {
            let Stated { value, low, high } = self.wait_s;
            return Some(format!(
                "{} jobs waited {:.0} s in the mean, promised is {value:.0} s [{low:.0}, {high:.0}] and a margin of {margin:.0} %",
                seen.num_jobs,
                seen.wait_s / num,
            ));
        }
        let expected = num * LATE_PART;
        let most = expected + LATE_ERRORS * (expected * (1.0 - LATE_PART)).sqrt();
        (seen.num_late as f64 > most).then(|| {
            format!(
                "{} of {} jobs waited longer than {:.0} s, the promised 99th percentile of {:.0} s and a margin of {margin:.0} %",
                seen.num_late,
                seen.num_jobs,
                self.late_s(),
                self.wait_s_p99,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(wait_s: f64) -> Promise<()> {
        let stated = |value: f64| Stated {
            value,
            low: value / 2.0,
            high: value * 1.5,
        };
        let figures = [("wait_s", stated(wait_s)), ("wait_s_p99", stated(10_000.0))];
        Promise {
            version: VERSION,
            policy: "sjf".into(),
            before: "easy".into(),
            wait_factor: 1.0,
            num_days: 20.0,
            world: (),
            rows: vec![Row {
                by: "all".into(),
                name: "all".into(),
                num_jobs: 500,
                figures: figures.map(|(key, of)| (key.to_owned(), of)).into(),
            }],
        }
    }

    #[test]
    fn a_promise_is_broken_beyond_its_interval_and_the_margin_and_not_by_few_jobs() {
        let limits = promise(1000.0).limits(0.2).unwrap();
        // 1500 and a fifth of it; 10,000 and a fifth of it.
        assert_eq!((limits.mean_s(), limits.late_s()), (1800.0, 12_000.0));
        let seen = |num_jobs: u64, mean_s: f64, num_late| Seen {
            num_jobs,
            wait_s: mean_s * num_jobs as f64,
            num_late,
        };
        assert_eq!(limits.broken(&seen(100, 1799.0, 0)), None);
        assert_eq!(limits.broken(&seen(99, 9999.0, 99)), None);
        let why = limits.broken(&seen(100, 1801.0, 0)).unwrap();
        assert!(
            why.contains("1801 s") && why.contains("[500, 1500]") && why.contains("20 %"),
            "{why}"
        );
        // Of 400 jobs 4 are expected to be late, and 3 standard errors are 5.97.
        assert_eq!(limits.broken(&seen(400, 100.0, 9)), None);
        assert!(
            limits
                .broken(&seen(400, 100.0, 10))
                .unwrap()
                .contains("10 of 400")
        );
        // Seconds are no queue.
        assert_eq!(promise(1.0).limits(0.2).unwrap().mean_s(), 61.5);
    }

    #[test]
    fn a_promise_that_cannot_be_is_refused_by_its_value() {
        assert_eq!(promise(1.0).check(), Ok(()));
        let mut wrong = promise(1.0);
        wrong.version = 7;
        assert!(
            wrong
                .check()
                .unwrap_err()
                .starts_with("version = 7: allowed is 1")
        );
        for value in [-1.0, f64::NAN, f64::INFINITY] {
            let error = promise(value).check().unwrap_err();
            assert!(
                error.starts_with("wait_s = ") && error.contains("0 to 1e12"),
                "{error}"
            );
        }
        let mut wrong = promise(1.0);
        wrong.rows[0].figures.remove("wait_s_p99");
        assert!(wrong.check().unwrap_err().contains("wait_s_p99"));
        wrong.rows.clear();
        assert!(wrong.check().unwrap_err().starts_with("rows = 0"));
    }
}
