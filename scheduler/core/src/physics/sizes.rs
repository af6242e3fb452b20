//! Rates of an elastic job by its number of GPUs, where no formula gives them.
//!
//! A large model runs on the numbers of GPUs for which it has a plan, at the rate of its best plan there; that rate is a table. On a
//! number between two sizes it runs as on the smaller one and leaves the rest idle, on fewer than the smallest not at all. A loose
//! placement costs what links, or the class's locality, make of it.
//!
//! # Refused
//! No size, more than [`Sizes::NUM_MAX`], sizes that do not grow, rates that are not above 0.

use serde::{Deserialize, Serialize};

use crate::problem::Problem;

/// Sizes and the rates there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u32, f64)>", into = "Vec<(u32, f64)>")]
pub struct Sizes {
    /// (GPUs, rate), growing in the former. `[num]`
    rows: [(u32, f64); Sizes::NUM_MAX],
    num: usize,
}

impl Sizes {
    /// Most sizes of a job.
    pub const NUM_MAX: usize = 16;

    /// From (GPUs, rate); a rate counts over those of the other sizes.
    ///
    /// # Errors
    /// As said on the front page.
    pub fn new(rows: &[(u32, f64)]) -> Result<Sizes, Problem> {
        let bad = |value: String, allowed: &str| {
            let hint = "for example [[8, 1.0], [16, 1.9]]";
            Err(Problem::new("elastic.sizes", value, allowed, hint))
        };
        if rows.is_empty() || rows.len() > Sizes::NUM_MAX {
            return bad(format!("{} sizes", rows.len()), "1 to 16 sizes");
        }
        if let Some((num_gpus, rate)) = rows.iter().find(|(_, rate)| !(1e-6..=1e6).contains(rate)) {
            return bad(format!("{rate} on {num_gpus} GPUs"), "rates from 1e-6 to 1e6");
        }
        let mut before = 0;
        for (num_gpus, _) in rows {
            if *num_gpus <= before {
                return bad(
                    format!("{num_gpus} behind {before}"),
                    "numbers of GPUs that grow, 1 or more",
                );
            }
            before = *num_gpus;
        }
        let mut sizes = Sizes {
            rows: [(0, 0.0); Sizes::NUM_MAX],
            num: rows.len(),
        };
        sizes.rows[..rows.len()].copy_from_slice(rows);
        Ok(sizes)
    }

    /// (GPUs, rate), growing in the former.
    #[must_use]
    pub fn rows(&self) -> &[(u32, f64)] {
        &self.rows[..self.num]
    }

    /// Rate on so many GPUs: that of the largest size among them, 0 below the smallest.
    #[must_use]
    pub fn rate(&self, num_gpus: u32) -> f64 {
        let held = self.rows().iter().rev().find(|(size, _)| *size <= num_gpus);
        held.map_or(0.0, |(_, rate)| *rate)
    }

    /// Whether it is one of the sizes.
    #[must_use]
    pub fn has(&self, num_gpus: u32) -> bool {
        self.rows().iter().any(|(size, _)| *size == num_gpus)
    }

    /// The largest size.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.rows[self.num - 1].0
    }
}

impl TryFrom<Vec<(u32, f64)>> for Sizes {
    type Error = Problem;

    fn try_from(rows: Vec<(u32, f64)>) -> Result<Sizes, Problem> {
        Sizes::new(&rows)
    }
}

impl From<Sizes> for Vec<(u32, f64)> {
    fn from(sizes: Sizes) -> Vec<(u32, f64)> {
        sizes.rows().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_sizes_the_smaller_one_is_run() {
        let sizes = Sizes::new(&[(8, 1.0), (16, 1.9), (64, 6.0)]).unwrap();
        let rates = [0, 7, 8, 15, 16, 40, 64, 1000].map(|num_gpus| sizes.rate(num_gpus));
        assert_eq!(rates, [0.0, 0.0, 1.0, 1.0, 1.9, 1.9, 6.0, 6.0]);
        assert!(sizes.has(16) && !sizes.has(24) && sizes.largest() == 64);
        let text = serde_json::to_string(&sizes).unwrap();
        assert_eq!(text, "[[8,1.0],[16,1.9],[64,6.0]]");
        assert_eq!(serde_json::from_str::<Sizes>(&text).unwrap(), sizes);
    }

    #[test]
    fn tables_that_do_not_grow_are_refused() {
        for (rows, part) in [
            (vec![], "0 sizes"),
            (vec![(1, 1.0); 17], "17 sizes"),
            (vec![(0, 1.0)], "0 behind 0"),
            (vec![(8, 1.0), (8, 2.0)], "8 behind 8"),
            (vec![(8, 0.0)], "0 on 8 GPUs"),
            (vec![(8, f64::NAN)], "NaN on 8 GPUs"),
        ] {
            let text = Sizes::new(&rows).unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        }
    }
}
