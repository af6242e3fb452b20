//! How long ESG plans a group of functions: by fronts made beforehand, and by the published search.

use std::time::Instant;

use pleach_env::Seed;
use pleach_experiments::error::Error;
use pleach_experiments::worlds::calls::CallsSettings;
use pleach_serving::functions::{Configuration, Work};
use rand::RngExt as _;

use super::BenchArgs;

use search::{astar, group};

/// The published search is the oracle of the fronts' own tests: one file for both.
#[path = "../../../../serving/src/functions/fronts/tests/search.rs"]
mod search;

/// Ways that are asked for.
const WAYS: usize = 5;
/// Plans that are measured at most.
const NUM_PLANS: usize = 100_000;

/// Mean time of a plan over groups, batches and targets at random, µs.
///
/// # Errors
/// None: the surface is there.
pub(super) fn measure(args: &BenchArgs) -> Result<[(&'static str, f64); 2], Error> {
    let work = CallsSettings::default().setup(1.0)?.work;
    let plans = |by_search: bool| {
        let mut rng = Seed(args.report.seed()).stream("plans", 0);
        let (mut num, mut num_ways, begin) = (0, 0, Instant::now());
        while num < NUM_PLANS && begin.elapsed().as_secs_f64() < args.seconds {
            let step = rng.random_range(0..work.steps.len());
            let part: f64 = rng.random();
            let within_us = work.steps[step].fastest_us as f64 * (0.8 + 6.0 * part);
            let asked = (rng.random_range(1..=8), within_us as u64, WAYS);
            num_ways += if by_search {
                astar(&group(&work, step), asked).0.len()
            } else {
                work.ways(step, asked).len()
            };
            num += 1;
        }
        std::hint::black_box(num_ways);
        1e6 * begin.elapsed().as_secs_f64() / num as f64
    };
    Ok([("fronts", plans(false)), ("its search", plans(true))])
}
