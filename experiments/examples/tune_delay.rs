//! The knobs of the heuristics that wait, on validation lists of the suite's tasks:
//! `cargo run --release -p pleach-experiments --example tune_delay -- 12` for 12 lists of each length.
//!
//! Each row is the geometric mean of average JCT over that of the heuristic without patience, on lists as long as the task's, four
//! times as long, and at offered loads 0.6 and 0.3.

#![allow(
    clippy::disallowed_methods,
    reason = "an example; its last places are nobody's promise"
)]

use std::process::ExitCode;

use pleach_env::{EnvConfig, simulate};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::instances::{episodes, seeds};
use pleach_experiments::suite::Task;
use pleach_scheduler::heuristics::{BestTypeDelay, DelayedBackfill, Patience, by_name};
use pleach_scheduler::policy::Policy;

/// Makes a policy anew for each list.
type Make = Box<dyn Fn() -> Box<dyn Policy>>;

/// Average JCT on each list, s.
fn jct_s(env: &EnvConfig, num: usize, make: &dyn Fn() -> Box<dyn Policy>) -> Result<Vec<f64>, Error> {
    let lists = episodes(env, &seeds(0, "validation", num))?;
    let run = |list: &pleach_experiments::evaluate::instances::Instance| {
        let config = pleach_env::SimConfig {
            seed: list.seed,
            ..env.sim.clone()
        };
        let result = simulate(&list.workload, &config, make().as_mut()).map_err(Error::from)?;
        Ok(result.metrics.avg_jct_s)
    };
    lists.iter().map(run).collect()
}

fn compare(id: &str, num: usize, base: &str, rows: &[(String, Make)]) -> Result<(), Error> {
    let task = Task::find(id)?;
    let at = |load: f64| -> Result<EnvConfig, Error> {
        let env = task.env()?;
        let workload = env.workload.resized(Some(task.num_jobs), Some(load));
        Ok(EnvConfig {
            workload: workload?,
            ..env
        })
    };
    let envs = [task.env()?, task.env_times(4)?, at(0.6)?, at(0.3)?];
    let named = || by_name(base);
    let make_base = || named().unwrap_or_else(|error| unreachable!("{error}"));
    println!("{id}, over {base}");
    let bases: Vec<Vec<f64>> = envs
        .iter()
        .map(|env| jct_s(env, num, &make_base))
        .collect::<Result<_, _>>()?;
    for (label, make) in rows {
        let mut line = format!("{label:<44}");
        for (env, base_s) in envs.iter().zip(&bases) {
            let own_s = jct_s(env, num, make.as_ref())?;
            let logs = own_s.iter().zip(base_s).map(|(own, base)| (own / base).ln());
            line += &format!(" {:.3}", (logs.sum::<f64>() / num as f64).exp());
        }
        println!("{line}");
    }
    Ok(())
}

type Made = Box<dyn Fn() -> Box<dyn Policy>>;

fn tune(num: usize) -> Result<(), Error> {
    let mut waiting: Vec<(String, Made)> = Vec::new();
    for wait_ratio in [0.0, 0.25, 0.5, 1.0, 2.0] {
        for short_s in [600.0, 3600.0, 4.0 * 3600.0] {
            let patience = Patience {
                short_s,
                wait_ratio,
                ..Patience::TUNED
            };
            let label = format!("gpu-time-delay, {wait_ratio} x, short {short_s} s");
            waiting.push((
                label,
                Box::new(move || Box::new(DelayedBackfill::gpu_time(patience))),
            ));
        }
    }
    for id in ["Pleach/PhillyGang-v1", "Pleach/HeliosTenants-v1"] {
        compare(id, num, "gpu-time-reserve", &waiting)?;
    }
    let mut margins: Vec<(String, Made)> = Vec::new();
    for margin in [0.0, 0.05, 0.1, 0.2, 0.4] {
        for wait_ratio in [0.0, 0.5, 1.0] {
            let patience = Patience {
                wait_ratio,
                ..Patience::TUNED
            };
            let policy = BestTypeDelay { margin, patience };
            let label = format!("best-type-delay, margin {margin}, {wait_ratio} x");
            margins.push((label, Box::new(move || Box::new(policy))));
        }
    }
    compare("Pleach/GavelMulti-v1", num, "sjf-best-type", &margins)
}

fn main() -> ExitCode {
    let num = std::env::args()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or(8);
    match tune(num) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
