//! Plays drawn requests layer by layer under several schedulers: `cargo run -p pleach-rooms --example layers attention-1 30 10`,
//! profiles, requests a second, deadline in isolated means; then the number of a hot model and its share.

use pleach_rooms::layers::{Outcome, Profiles, RequestGenerator, by_name, simulate};
use pleach_workloads::Seed;

const SCHEDULERS: [&str; 10] = [
    "fcfs",
    "sjf",
    "prema",
    "sdrm3",
    "planaria",
    "dysta",
    "dysta:beta=0",
    "dysta:gamma=false",
    "dysta:sample=true",
    "oracle",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |place: usize, default: f64| given.get(place).map_or(Ok(default), |text| text.parse::<f64>());
    let profiles = Profiles::by_name(given.first().map_or("attention-1", String::as_str))?;
    let share = number(4, 0.0)?;
    let generator = RequestGenerator {
        num_requests: 1_000,
        rate_per_s: number(1, 30.0)?,
        multiplier: number(2, 10.0)?,
        hot: (share > 0.0).then_some((number(3, 0.0)? as usize, share)),
    };
    let lists = (0..5).map(|seed| generator.draw(&profiles, Seed(seed)));
    let lists = lists.collect::<Result<Vec<_>, _>>()?;
    for name in SCHEDULERS {
        let outcomes = lists
            .iter()
            .map(|list| simulate(list, 1, by_name(name)?.as_mut()));
        let outcomes = outcomes.collect::<Result<Vec<_>, _>>()?;
        let mean = |figure: &dyn Fn(&Outcome) -> f64| {
            outcomes.iter().map(figure).sum::<f64>() / outcomes.len() as f64
        };
        println!(
            "{name:18} violations {:5.1} %  ANTT {:6.2}  p99 {:7.1}  STP {:5.2} /s  preemptions {:6.0}",
            100.0 * mean(&Outcome::violation_share),
            mean(&Outcome::antt),
            mean(&|outcome| outcome.turnaround_quantile(0.99)),
            mean(&Outcome::stp_per_s),
            mean(&|outcome| outcome.num_preemptions as f64),
        );
    }
    Ok(())
}
