//! A sweep over a function of your own, here a queue with one server:
//! `cargo run --example sweep -p pleach-experiments -- grid.toml runs/queue`. Stop it and start it again: what is done is kept.
//! A grid to begin with:
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

use std::path::Path;

use pleach_env::Seed;
use pleach_experiments::error::Error;
use pleach_experiments::progress::Watcher;
use pleach_experiments::sweep::engine::{self, EngineConfig};
use pleach_experiments::sweep::gather::{GatherConfig, gather};
use pleach_experiments::sweep::grid::Grid;
use pleach_experiments::sweep::{UnitError, UnitSpec};
use rand::Rng as _;
use serde::Deserialize;
use serde_json::{Value, json};

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

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [grid, out] = words.as_slice() else {
        return Err(Error::Failed("give a grid and a folder".into()));
    };
    let (manifest, out) = (Grid::read(Path::new(grid))?.plan()?, Path::new(out));
    for index in 0..manifest.num_units() {
        check(&manifest.unit(index)?).map_err(|error| Error::Failed(error.to_string()))?;
    }
    let config = EngineConfig {
        num_threads: 2,
        num_retries: 0,
    };
    let report = engine::run(&manifest, out, config, None, &work, &Watcher::nobody())?;
    println!("{} units done, {} failed", report.num_done, report.failed.len());
    for path in gather(&manifest, out, &GatherConfig::default())? {
        println!("{}", path.display());
    }
    Ok(())
}
