//! Plays requests of applications under dispatchers and prints hits, cost and speed:
//! `cargo run -p pleach-serving --example functions assumed relaxed-heavy 1.2 shed 20000 esg edf:margin=0.1`.

use std::time::Instant;

use pleach_serving::functions::{Arrivals, Late, POLICIES, Platform, by_name, simulate, surface};
use pleach_workloads::Seed;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let word = |place: usize, default: &str| given.get(place).map_or(default, String::as_str).to_string();
    let (surface, setting) = (word(0, "assumed"), word(1, "relaxed-heavy"));
    let work = surface::work(&surface)?;
    let mut arrivals = Arrivals::of_setting(&setting, &surface, word(4, "20000").parse()?)?;
    arrivals.load = word(2, "1").parse()?;
    let late = match word(3, "serve").as_str() {
        "shed" => Late::Shed,
        "expire" => Late::Expire,
        _ => Late::Serve,
    };
    let platform = Platform {
        late,
        ..Platform::default()
    };
    let mut names = given.get(5..).unwrap_or_default().to_vec();
    if names.is_empty() {
        names = POLICIES.iter().map(|info| info.name.to_string()).collect();
    }
    for name in names {
        let mut dispatcher = by_name(&name, &work, &platform, arrivals.slo)?;
        let begun = Instant::now();
        let outcome = simulate(&work, &platform, &arrivals, dispatcher.as_mut(), Seed(7))?;
        println!(
            "{name:28} hits {:6.2} %  dropped {:5.2} %  $ per 1,000 {:.4} (cold {:.4})  p50 {:5.0} p99 {:6.0} ms  batch {:.2}  no room {:2.0} %  \
             slices {:3.0} %  most at once {:5}  {:.2} s, {} batches",
            100.0 * outcome.hit_share(),
            100.0 * outcome.dropped_share(),
            outcome.usd_per_1000(),
            1e3 * outcome.cold_usd / outcome.num_requests as f64,
            1e-3 * outcome.latencies.quantile_us(0.5),
            1e-3 * outcome.latencies.quantile_us(0.99),
            outcome.batch_mean(),
            100.0 * outcome.refused as f64 / outcome.asked.max(1) as f64,
            100.0 * outcome.slice_us
                / (outcome.makespan_us as f64 * f64::from(platform.slices * platform.nodes)),
            outcome.in_flight_max,
            begun.elapsed().as_secs_f64(),
            outcome.batches,
        );
    }
    Ok(())
}
