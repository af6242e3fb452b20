//! Steps a second of the environment of learners on one core: `cargo run -p pleach-serving --example learners 15000 16`, requests and
//! replicas.

use std::time::Instant;

use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{Fleet, Lists, Pace, Reward, Routing, Targets};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let numbers: Vec<u32> = numbers.collect::<Result<_, _>>()?;
    let num_replicas = numbers.get(1).copied().unwrap_or(16) as usize;
    let generator = RequestGenerator {
        num_requests: numbers.first().copied().unwrap_or(15_000),
        rate_per_s: 11.5 * num_replicas as f64,
        ..RequestGenerator::default()
    };
    for (words, scrape_s, num_gateways, turns) in [
        ("1 gateway, facts a second old", 1.0, 1, 1.0),
        ("4 gateways, facts a second old", 1.0, 4, 1.0),
        ("4 gateways, 3 turns", 1.0, 4, 3.0),
        ("1 gateway that looks at each request", 0.0, 1, 1.0),
    ] {
        let fleet = Fleet {
            pace: Pace::of("llama-3-8b", "H100")?,
            num_replicas,
            num_gateways,
            scrape_s,
            targets: Targets::default(),
            may_refuse: true,
        };
        let lists = Lists::Drawn(RequestGenerator {
            turns,
            ..generator.clone()
        });
        let mut env = Routing::new(fleet, lists, Reward::default())?;
        let (mut best_s, mut hits) = (f64::INFINITY, 0);
        for seed in 0..5 {
            let begin = Instant::now();
            env.reset(seed)?;
            let mut turn = 0;
            while !env.step(turn % num_replicas)?.is_last {
                turn += 1;
            }
            best_s = best_s.min(begin.elapsed().as_secs_f64());
            hits = env.tally().hits;
        }
        let num = f64::from(generator.num_requests);
        println!(
            "{words:40} {:9.0} steps/s, {best_s:.3} s an episode, {:.1} % hits in turn",
            num / best_s,
            100.0 * hits as f64 / num
        );
    }
    Ok(())
}
