//! A sweep over a function of your own, here a queue with one server:
//! `cargo run --example sweep -p pleach-experiments -- plan --config grid.toml --out runs/q/sweep.json`, then
//! `run`, `status` and `gather` with `--manifest runs/q/sweep.json`. A grid to begin with:
//!
//! ```toml
//! name = "queue"
//! seeds = 3
//! [grid]
//! load = [0.5, 0.7, 0.9]
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "an example; its last places are nobody's promise"
)]

use std::io;
use std::process::ExitCode;

use clap::Parser;
use pleach_env::seed::Seed;
use pleach_experiments::cli::sweep::SweepCommand;
use pleach_experiments::sweep::{UnitError, UnitSpec, command};
use rand::Rng as _;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Parser)]
enum Command {
    #[command(flatten)]
    Sweep(SweepCommand),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Queue {
    load: f64,
}

/// Refuses a configuration before anything runs.
fn check(spec: &UnitSpec) -> Result<(), UnitError> {
    let queue: Queue = spec.config_as()?;
    if queue.load > 0.0 && queue.load < 1.0 {
        Ok(())
    } else {
        Err(UnitError::Config("load: 0 < load < 1".into()))
    }
}

/// Mean wait over a million customers (Lindley's recursion); a function of the unit and nothing else.
fn work(spec: &UnitSpec) -> Result<Value, UnitError> {
    let queue: Queue = spec.config_as()?;
    let mut random = Seed(spec.seed).stream("queue", 0);
    let mut exponential = || -(((random.next_u64() >> 11) + 1) as f64 / 2f64.powi(53)).ln();
    let (mut wait_s, mut sum_s) = (0.0_f64, 0.0);
    for _ in 0..1_000_000 {
        wait_s = (wait_s + exponential() - exponential() / queue.load).max(0.0);
        sum_s += wait_s;
    }
    Ok(json!({"metrics": {"avg_wait_s": sum_s / 1e6}}))
}

fn main() -> ExitCode {
    let Command::Sweep(step) = Command::parse();
    let code = command::dispatch(
        &step,
        &check,
        &work,
        |name| std::env::var(name).ok(),
        &mut io::stdout(),
    );
    ExitCode::from(code.unwrap_or_else(|error| {
        eprintln!("{error}");
        error.exit_code()
    }))
}
