//! Dynamic split computing: each request runs on the device up to the layer after which sending is cheapest now.

use super::system::{Benchmark, Effort, Error, Reproduction, drawn, exact, figures, log_uniform, smallest};

pub(super) const SYSTEM: Benchmark = Benchmark {
    id: "split",
    title: "Dynamic split computing",
    source: "Bakhtiarnia et al., arXiv 2205.11269: faster when rate and load vary, without a number",
    setup: "Closed form. Example: three layers of 10, 20, 30 ms on the device and 2, 4, 6 on the server, whose inputs have 600, 800 and \
            50 kB. Drawn: 1,000 requests, rates uniform in the logarithm from 1 to 125 kB/ms, loads of the server from 1 to 8, assumed",
    run,
};

/// Of each layer: ms on the device and on the server, and its input in kB.
const LAYERS: [[f64; 3]; 3] = [[10.0, 2.0, 600.0], [20.0, 4.0, 800.0], [30.0, 6.0, 50.0]];

/// Latency with the first layers on the device, ms, at a rate in kB/ms and a load of the server.
fn latency_ms(first: usize, rate: f64, load: f64) -> f64 {
    let (device, server) = LAYERS.split_at(first);
    let device: f64 = device.iter().map(|layer| layer[0]).sum();
    let sent = server.first().map_or(0.0, |layer| layer[2] / rate);
    device + sent + server.iter().map(|layer| layer[1] * load).sum::<f64>()
}

fn best_ms(rate: f64, load: f64) -> f64 {
    smallest((0..=LAYERS.len()).map(|first| latency_ms(first, rate, load)))
}

fn run(effort: &Effort) -> Result<Reproduction, Error> {
    let mut found: Vec<_> = [1.0, 10.0, 125.0]
        .map(|rate| exact(format!("latency at {rate} kB/ms, ms"), best_ms(rate, 1.0)))
        .into();
    found.push(drawn(
        "drawn requests: dynamic over best static",
        effort,
        |seed| {
            let mut rng = seed.stream("requests", 0);
            let requests: Vec<(f64, f64)> = (0..1000)
                .map(|_| (log_uniform(1.0, 125.0, &mut rng), log_uniform(1.0, 8.0, &mut rng)))
                .collect();
            let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
                requests.iter().map(|(rate, load)| of(*rate, *load)).sum()
            };
            let fixed = (0..=LAYERS.len()).map(|first| sum(&|rate, load| latency_ms(first, rate, load)));
            sum(&best_ms) / smallest(fixed)
        },
    ));
    figures(
        found,
        "No figure was published to hold. The rate and load are known here without error or delay, so this is a bound.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_those_worked_by_hand() {
        for (rate, first, expected_ms) in [(1.0, 3, 60.0), (10.0, 2, 41.0), (125.0, 0, 16.8)] {
            assert!((latency_ms(first, rate, 1.0) - expected_ms).abs() < 1e-9);
            assert!((best_ms(rate, 1.0) - expected_ms).abs() < 1e-9, "{rate} kB/ms");
        }
    }
}
