//! Queries, and lists of them that are drawn.

use pleach_scheduler::Problem;
use pleach_scheduler::portable_math::{exp, ln};
use pleach_workloads::Seed;
use pleach_workloads::normal::standard_normal;
use rand::RngExt as _;

use crate::workflows::system::{System, TIME_US_MAX};
use pleach_serving::settings::within;

/// Most queries of a list.
pub const QUERIES_MAX: usize = 1_000_000;

/// One query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// From the beginning of the list, µs.
    pub arrival_us: u64,
    /// Number of its workflow.
    pub workflow: usize,
    /// The worker that it comes to, which plans it and holds its input.
    pub entry: usize,
    /// What each task takes in truth, µs, at least 1.
    pub run_us: Vec<u64>,
}

/// Queries by arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queries {
    rows: Vec<Query>,
}

impl Queries {
    /// Checks and sorts.
    ///
    /// # Errors
    /// What the system does not have, named by its place.
    pub fn new(mut rows: Vec<Query>, system: &System) -> Result<Queries, Problem> {
        within("queries", rows.len(), 1, QUERIES_MAX)?;
        for (place, row) in rows.iter().enumerate() {
            let refused = |what: &str, value: String, allowed: String| {
                let hint = "Give what the system has.";
                Err(Problem::new(
                    format!("queries[{place}].{what}"),
                    value,
                    allowed,
                    hint,
                ))
            };
            let Some(workflow) = system.workflows().get(row.workflow) else {
                return refused(
                    "workflow",
                    row.workflow.to_string(),
                    format!("below {}", system.workflows().len()),
                );
            };
            if row.entry >= system.workers().num {
                return refused(
                    "entry",
                    row.entry.to_string(),
                    format!("below {}", system.workers().num),
                );
            }
            let num_tasks = workflow.tasks().len();
            let is_time = |run_us: &u64| (1..=TIME_US_MAX).contains(run_us);
            if row.run_us.len() != num_tasks
                || !row.run_us.iter().all(is_time)
                || row.arrival_us > 1_000 * TIME_US_MAX
            {
                return refused(
                    "run_us",
                    format!("{:?}", row.run_us),
                    format!("{num_tasks} times of at least 1 us"),
                );
            }
        }
        rows.sort_by_key(|row| row.arrival_us);
        Ok(Queries { rows })
    }

    /// By arrival.
    #[must_use]
    pub fn rows(&self) -> &[Query] {
        &self.rows
    }
}

/// Poisson arrivals, workflows and entries evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryGenerator {
    /// Queries.
    pub num_queries: usize,
    /// Queries a second.
    pub rate_per_s: f64,
    /// Deviation of the logarithm of true over believed times.
    pub spread: f64,
}

impl QueryGenerator {
    /// Draws a list.
    ///
    /// # Errors
    /// Settings out of range.
    pub fn draw(&self, system: &System, seed: Seed) -> Result<Queries, Problem> {
        within("num_queries", self.num_queries as f64, 1.0, QUERIES_MAX as f64)?;
        within("rate_per_s", self.rate_per_s, 1e-3, 1e6)?;
        within("spread", self.spread, 0.0, 2.0)?;
        let (mut arrivals, mut kinds, mut times) = (
            seed.stream("query-arrivals", 0),
            seed.stream("query-kinds", 0),
            seed.stream("query-times", 0),
        );
        let mut now_us = 0.0;
        let mut rows = Vec::with_capacity(self.num_queries);
        for _ in 0..self.num_queries {
            now_us -= ln(1.0 - arrivals.random::<f64>()) * 1e6 / self.rate_per_s;
            let workflow = kinds.random_range(0..system.workflows().len());
            let entry = kinds.random_range(0..system.workers().num);
            let run_us = system.workflows()[workflow].tasks().iter().map(|task| {
                let deviation = self.spread * standard_normal(&mut times);
                // The mean of the ratio is 1.
                let ratio = exp(deviation - self.spread * self.spread / 2.0);
                ((task.run_us as f64 * ratio).round() as u64).clamp(1, TIME_US_MAX)
            });
            rows.push(Query {
                arrival_us: now_us.round() as u64,
                workflow,
                entry,
                run_us: run_us.collect(),
            });
        }
        Queries::new(rows, system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_at_its_rate_and_what_is_not_there_is_named() {
        let system = System::compass(200_000).unwrap();
        let generator = QueryGenerator {
            num_queries: 20_000,
            rate_per_s: 2.0,
            spread: 0.1,
        };
        let list = generator.draw(&system, Seed(1)).unwrap();
        assert_eq!(list, generator.draw(&system, Seed(1)).unwrap());
        let rows = list.rows();
        let rate = 20_000.0 / (rows[19_999].arrival_us as f64 / 1e6);
        assert!((rate - 2.0).abs() < 0.05, "{rate}");
        let of_first = rows
            .iter()
            .filter(|row| row.workflow == 0)
            .map(|row| row.run_us[0] as f64);
        let (sum, num) = of_first.fold((0.0, 0.0), |(sum, num), us| (sum + us, num + 1.0));
        assert!((sum / num / 600_000.0 - 1.0).abs() < 0.01, "{}", sum / num);
        let mut wrong = rows[0].clone();
        wrong.entry = 5;
        let error = Queries::new(vec![wrong], &system).unwrap_err().to_string();
        assert!(
            error.contains("queries[0].entry = 5: allowed is below 5"),
            "{error}"
        );
        let generator = QueryGenerator {
            rate_per_s: -1.0,
            ..generator
        };
        assert!(
            generator
                .draw(&system, Seed(1))
                .unwrap_err()
                .to_string()
                .contains("rate_per_s")
        );
    }
}
