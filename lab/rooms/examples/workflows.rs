//! Plays drawn queries on five workers under several rules: `cargo run -p pleach-rooms --example workflows 2 0.2`, queries a second
//! and the time between two looks at the state of a worker in seconds.

use pleach_rooms::workflows::{Outcome, QueryGenerator, System, by_name, simulate};
use pleach_workloads::Seed;

const PLACERS: [&str; 11] = [
    "compass",
    "compass:replan=false",
    "compass:lookahead=false",
    "compass:prefetch=false",
    "jit",
    "jit:loads=false",
    "jit:lookahead=false:prefetch=false",
    "heft",
    "heft:loads=true",
    "heft:lookahead=false:prefetch=false",
    "hash",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers = std::env::args().skip(1).map(|text| text.parse::<f64>());
    let numbers: Vec<f64> = numbers.collect::<Result<_, _>>()?;
    let refresh_s = numbers.get(1).copied().unwrap_or(0.2);
    let system = System::compass((refresh_s * 1e6) as u64)?;
    let generator = QueryGenerator {
        num_queries: 1_000,
        rate_per_s: numbers.first().copied().unwrap_or(2.0),
        spread: 0.1,
    };
    let lists = (0..5).map(|seed| generator.draw(&system, Seed(seed)));
    let lists = lists.collect::<Result<Vec<_>, _>>()?;
    for name in PLACERS {
        let outcomes = lists
            .iter()
            .map(|list| simulate(&system, list, false, by_name(name)?.as_mut()));
        let outcomes = outcomes.collect::<Result<Vec<_>, _>>()?;
        let mean = |figure: &dyn Fn(&Outcome) -> f64| {
            outcomes.iter().map(figure).sum::<f64>() / outcomes.len() as f64
        };
        println!(
            "{name:36} slowdown {:6.2}  median {:6.2}  p95 {:7.2}  hits {:5.1} %  moved {:5.0}",
            mean(&Outcome::slowdown_mean),
            mean(&|outcome| outcome.slowdown_quantile(0.5)),
            mean(&|outcome| outcome.slowdown_quantile(0.95)),
            100.0 * mean(&Outcome::hit_share),
            mean(&|outcome| outcome.num_moved as f64),
        );
    }
    Ok(())
}
