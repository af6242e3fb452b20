//! Forecasts of starts as a file: what `pleach when --answers` writes, the daemons serve, and `pleach when http://...` reads.
//!
//! # What is deliberately not here
//! How forecasts are made, clocks and files. Users and names of jobs: a job is found by its id alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the key `version` of the file says. A change of the format is a new number.
pub const VERSION: u32 = 1;
/// Largest file that is read, bytes: [`ROWS_MAX`] jobs with long ids.
pub const BYTES_MAX: u64 = 32 << 20;
/// Age from which forecasts are not fresh, s: nothing is written to jobs any more. *Ours*.
pub const FRESH_S: i64 = 600;
/// Most jobs, and most requests.
pub const ROWS_MAX: usize = 100_000;
/// What may answer.
const METHODS: [&str; 3] = ["history", "trees", "replay"];
/// Longest wait that a forecast may state, s: over thirty years.
const WAIT_S_MAX: f64 = 1e9;

/// A forecast of a wait, s from the instant at which it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forecast {
    /// The chance to start at once, 0 to 1.
    pub at_once: f64,
    /// Median.
    pub median_s: f64,
    /// Ends of the 80 % interval.
    pub within_s: [f64; 2],
}

/// A job that could be submitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Its GPUs.
    pub gpus: u32,
    /// Its time limit, s; none: without.
    pub time_s: Option<f64>,
    /// When it would start.
    pub forecast: Forecast,
}

/// All forecasts of one instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Starts {
    /// [`VERSION`].
    pub version: u32,
    /// The instant: what ran and waited then is known, Unix time, s.
    pub made_s: i64,
    /// What answers: `history`, `trees` or `replay`.
    pub method: String,
    /// The policy that is replayed.
    pub policy: String,
    /// Part of the last `num_held` forecasts here whose 80 % interval held.
    pub held: f64,
    /// How many those are.
    pub num_held: u64,
    /// Jobs that wait, by their ids.
    pub jobs: BTreeMap<String, Forecast>,
    /// Jobs that could be submitted.
    pub requests: Vec<Request>,
}

/// Median waits that are shown as one, 0 to 6: what is written to a job changes with its bucket alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket(pub usize);

/// Ends of buckets, s, and what they are called; the last one is open. *Ours*.
const BUCKETS: [(f64, &str); 7] = [
    (600.0, "under-10min"),
    (3600.0, "10min-to-1h"),
    (14_400.0, "1h-to-4h"),
    (43_200.0, "4h-to-12h"),
    (86_400.0, "12h-to-1d"),
    (259_200.0, "1d-to-3d"),
    (f64::INFINITY, "over-3d"),
];

impl Bucket {
    /// What it is called, in letters, digits and `-`.
    #[must_use]
    pub fn name(self) -> &'static str {
        BUCKETS[self.0].1
    }
}

impl Forecast {
    /// The bucket of its median.
    #[must_use]
    pub fn bucket(&self) -> Bucket {
        let ends = &BUCKETS[..BUCKETS.len() - 1];
        Bucket(ends.partition_point(|(end_s, _)| *end_s <= self.median_s))
    }

    fn is_well(&self) -> bool {
        let [from_s, to_s] = self.within_s;
        let waits = [0.0, from_s, self.median_s, to_s, WAIT_S_MAX];
        (0.0..=1.0).contains(&self.at_once) && waits.is_sorted()
    }
}

impl Request {
    fn has_a_limit(&self) -> bool {
        self.time_s
            .is_none_or(|time_s| (0.0..=WAIT_S_MAX).contains(&time_s))
    }
}

impl Starts {
    /// Checks what a file says.
    ///
    /// # Errors
    /// The first key that is not as it is written.
    pub fn check(&self) -> Result<(), String> {
        let of_requests = self.requests.iter().map(|of| &of.forecast);
        let all = self.jobs.values().chain(of_requests);
        let keys = [
            ("version", self.version == VERSION),
            ("made_s", self.made_s >= 0),
            ("method", METHODS.contains(&self.method.as_str())),
            ("held", (0.0..=1.0).contains(&self.held)),
            ("jobs", self.jobs.len().max(self.requests.len()) <= ROWS_MAX),
            ("forecast", all.into_iter().all(Forecast::is_well)),
            ("time_s", self.requests.iter().all(Request::has_a_limit)),
        ];
        match keys.iter().find(|(_, is_well)| !is_well) {
            Some((key, _)) => Err(format!(
                "{key} is not as `pleach when --answers` writes it: write it anew"
            )),
            None => Ok(()),
        }
    }

    /// How old it is at Unix time `now_s`, s; 0 where it was made later.
    #[must_use]
    pub fn age_s(&self, now_s: i64) -> i64 {
        now_s.saturating_sub(self.made_s).max(0)
    }

    /// Whether it says something of now.
    #[must_use]
    pub fn is_fresh(&self, now_s: i64) -> bool {
        self.age_s(now_s) < FRESH_S && self.made_s < now_s.saturating_add(FRESH_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(median_s: f64) -> Starts {
        let forecast = Forecast {
            at_once: 0.25,
            median_s,
            within_s: [0.0, 2.0 * median_s],
        };
        Starts {
            version: VERSION,
            made_s: 1000,
            method: "replay".into(),
            policy: "easy".into(),
            held: 0.8,
            num_held: 50,
            jobs: BTreeMap::from([("7".to_owned(), forecast)]),
            requests: Vec::new(),
        }
    }

    #[test]
    fn a_bucket_ends_where_the_next_one_begins() {
        let name = |median_s: f64| starts(median_s).jobs["7"].bucket().name();
        assert_eq!(
            [0.0, 599.9, 600.0].map(name),
            ["under-10min", "under-10min", "10min-to-1h"]
        );
        assert_eq!(
            [14_399.0, 14_400.0, 1e8].map(name),
            ["1h-to-4h", "4h-to-12h", "over-3d"]
        );
    }

    #[test]
    fn what_cannot_be_is_refused_and_what_is_old_or_of_later_is_not_fresh() {
        let good = starts(60.0);
        assert_eq!(good.check(), Ok(()));
        assert!(good.is_fresh(1599) && !good.is_fresh(1600) && !good.is_fresh(400));
        assert_eq!((good.age_s(1600), good.age_s(0)), (600, 0));
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e10] {
            assert!(starts(wrong).check().unwrap_err().starts_with("forecast is not"));
        }
        let wrong = Starts {
            version: 2,
            ..starts(1.0)
        };
        assert!(wrong.check().unwrap_err().starts_with("version is not"));
        let wrong = Starts {
            held: 1.5,
            ..starts(1.0)
        };
        assert!(wrong.check().unwrap_err().starts_with("held is not"));
    }
}
