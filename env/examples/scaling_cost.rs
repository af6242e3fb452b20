//! What a whole simulation costs as the list grows: `scaling_cost POLICY LOAD JOBS [JOBS ...]`.
//!
//! Philly-like jobs on 1,000 GPUs (125 nodes of 8) from seed 1, generating them not counted. Prints processor time, how often more the
//! list of ten times the jobs took, decisions, and a digest of all outcomes, so that two versions can be held to each other.
//! `full` is a policy that looks at all that a network looks at and scores it by a fixed rule. `srtf` and `las` may preempt.

#![allow(clippy::unwrap_used)]

use pleach_env::workload::generate::{GeneratorConfig, PhillyLikeConfig, generate};
use pleach_env::{Seed, SimConfig, SimResult, simulate};
use pleach_scheduler::PolicyError;
use pleach_scheduler::heuristics::by_name;
use pleach_scheduler::policy::{DecisionPoint, Needs, Policy};

/// A stand-in for a network: the same candidates and features, a rule in place of the weights.
struct Full;

impl Policy for Full {
    fn name(&self) -> &str {
        "full"
    }

    fn needs(&self) -> Needs {
        Needs::full()
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let width = point.observation.candidates.len() / scores.len().max(1);
        for (score, row) in scores
            .iter_mut()
            .zip(point.observation.candidates.chunks(width.max(1)))
        {
            *score = row
                .iter()
                .enumerate()
                .map(|(place, value)| value * ((place * 7 % 5) as f32 - 1.0))
                .sum();
        }
        Ok(())
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, name, load, sizes @ ..] = &args[..] else {
        return eprintln!("scaling_cost POLICY LOAD JOBS [JOBS ...]");
    };
    for num_jobs in sizes {
        let generator = PhillyLikeConfig {
            num_jobs: num_jobs.parse().unwrap(),
            num_nodes: 125,
            load: load.parse().unwrap(),
            ..PhillyLikeConfig::default()
        };
        let workload = generate(&GeneratorConfig::PhillyLike(generator), Seed(1)).unwrap();
        let mut policy: Box<dyn Policy> = match name.as_str() {
            "full" => Box::new(Full),
            name => by_name(name).unwrap(),
        };
        let mut config = SimConfig::default();
        config.capabilities.preemption = ["srtf", "las"].contains(&name.as_str());
        let before_s = user_s();
        let result = simulate(&workload, &config, &mut policy).unwrap();
        let took_s = user_s() - before_s;
        println!(
            "{name} load {load} jobs {num_jobs}: {took_s:.2} s, {} passes, digest {:016x}",
            result.num_passes,
            digest(&result)
        );
    }
}

fn digest(result: &SimResult) -> u64 {
    let numbers = result
        .jobs
        .iter()
        .flat_map(|job| [job.first_start_s, job.finish_s, job.held_s]);
    numbers.fold(1, |digest, number| {
        (digest ^ number.to_bits())
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(23)
    })
}

/// Processor time of this process in user mode, s, in hundredths (Linux; zero elsewhere).
fn user_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name
        .split_whitespace()
        .nth(11)
        .and_then(|ticks| ticks.parse::<f64>().ok());
    ticks.unwrap_or(0.0) / 100.0
}
