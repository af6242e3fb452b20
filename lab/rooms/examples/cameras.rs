//! Steps a second of the environment of cameras on one core, and what plain rules hit there:
//! `cargo run -p pleach-rooms --example cameras`.

use std::time::Instant;

use pleach_rooms::contexts::{self, Placing, Run, released};
use pleach_scheduler::Rows;
use pleach_serving::{Environment, Reward};
use pleach_workloads::Seed;

const EPISODES: u64 = 5;

/// Plays episodes and prints steps a second of the fastest, and mean hits.
fn play(
    words: &str,
    env: &mut dyn Environment,
    rule: impl Fn(&Rows<'_>, usize) -> usize,
) -> Result<(), Box<dyn std::error::Error>> {
    let (mut best_per_s, mut hits_pct, mut num) = (0.0_f64, 0.0, 0);
    for seed in 0..EPISODES {
        let begin = Instant::now();
        env.reset(seed)?;
        num = 1;
        while !env.step(rule(&env.rows(), num))?.is_last {
            num += 1;
        }
        best_per_s = best_per_s.max(num as f64 / begin.elapsed().as_secs_f64());
        let figures = env.take_figures().unwrap_or_default();
        let hits = figures.iter().find(|(name, _)| *name == "hits_pct");
        hits_pct += hits.map_or(0.0, |(_, hits)| hits / EPISODES as f64);
    }
    println!("{words:56} {best_per_s:9.0} steps/s, {num:6} steps an episode, {hits_pct:6.2} % hits");
    Ok(())
}

fn around(rows: &Rows<'_>, name: &str) -> f32 {
    let place = rows.schema.of_context().position(|feature| feature.name == name);
    rows.context[place.unwrap_or(0)]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (gpu, policy) = released::set_up("sgprs", 3, 1.5, None)?;
    let task = contexts::SCHEMA
        .of_context()
        .find(|feature| feature.name == "task_share");
    for (words, served) in [
        ("24 cameras, contexts in turn", 24.0),
        ("the same, 23 of 24 cameras", 23.0),
    ] {
        let run = Run::new(10.0, 0.0, Seed(0))?;
        let mut env = Placing::new(gpu.clone(), policy.discipline(), 24, run, Reward::default())?;
        let most = task.map_or(1.0, |task| task.encode((served - 0.5) / 24.0));
        play(words, &mut env, |rows, num| {
            let give_up = rows.mask.len() - 1;
            let is_served = around(rows, "task_share") < most;
            if is_served { num % (give_up - 1) } else { give_up }
        })?;
    }
    Ok(())
}
