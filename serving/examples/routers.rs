//! Plays drawn requests on 16 replicas under several routers and prints hits: `cargo run -p pleach-serving --example routers 180 1`,
//! requests a second and the age of facts in seconds.

use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{Fleet, POLICIES, Pace, Targets, by_name, simulate};
use pleach_workloads::Seed;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers = std::env::args().skip(1).map(|text| text.parse::<f64>());
    let numbers: Vec<f64> = numbers.collect::<Result<_, _>>()?;
    let generator = RequestGenerator {
        rate_per_s: numbers.first().copied().unwrap_or(260.0),
        turns: numbers.get(3).copied().unwrap_or(1.0),
        ..RequestGenerator::default()
    };
    let list = generator.draw(Seed(7))?;
    let fleet = Fleet {
        pace: Pace::of("llama-3-8b", "H100")?,
        num_replicas: 16,
        num_gateways: numbers.get(2).copied().unwrap_or(1.0) as usize,
        scrape_s: numbers.get(1).copied().unwrap_or(1.0),
        targets: Targets::default(),
        may_refuse: true,
    };
    for name in POLICIES.iter().map(|info| info.name) {
        for settings in ["", ":own=false", ":shed=1", ":shed=0.9"] {
            let outcome = simulate(&list, &fleet, by_name(&format!("{name}{settings}"), 1)?.as_mut())?;
            let ttft = |part: f64| outcome.quantile(part, |served| served.ttft_s) * 1e3;
            println!(
                "{:28} hits {:6.2} %  refused {:5.2} %  TTFT p50 {:6.0} p99 {:7.0} ms  TPOT p99 {:5.1} ms  reused {:4.1} %",
                format!("{name}{settings}"),
                100.0 * outcome.hit_share(fleet.targets),
                100.0 * outcome.refused_share(),
                ttft(0.5),
                ttft(0.99),
                1e3 * outcome.quantile(0.99, |served| served.tpot_s),
                100.0 * outcome.reused_tokens as f64 / outcome.prompt_tokens as f64,
            );
        }
    }
    Ok(())
}
