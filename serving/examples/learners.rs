//! Steps a second of the environments of learners on one core, and what plain rules hit there:
//! `cargo run -p pleach-serving --example learners`.

use std::time::Instant;

use pleach_scheduler::Rows;
use pleach_serving::functions::{self, Arrivals, Dispatching, Late, Platform, surface};
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{Fleet, Lists, Pace, Routing, Targets};
use pleach_serving::{Environment, Reward};

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

/// Of a row by name, as it is shown.
fn shown(rows: &Rows<'_>, row: usize, name: &str) -> f32 {
    let place = rows.schema.of_rows().position(|feature| feature.name == name);
    rows.row(row)[place.unwrap_or(0)]
}

/// Drops each request with less than a part of its slack left; then the warm batch with the least slack that is in time; then
/// waits.
fn least_slack(rows: &Rows<'_>, least: f32) -> usize {
    let (mut best, mut last) = (None, 0);
    for row in (0..rows.mask.len()).take_while(|row| rows.mask[*row]) {
        let is = |name: &str| shown(rows, row, name) > 0.0;
        let slack = shown(rows, row, "slack_share");
        if is("is_shed") && slack < least {
            return row;
        }
        if is("is_run") && is("is_warm") && shown(rows, row, "end_share") <= 0.1 {
            let key = (slack, shown(rows, row, "slice_s"));
            if best.is_none_or(|(than, _)| key < than) {
                best = Some((key, row));
            }
        }
        last = row;
    }
    best.map_or(last, |(_, row)| row)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (words, scrape_s, num_gateways, turns) in [
        ("routing in turn: 1 gateway, facts a second old", 1.0, 1, 1.0),
        ("the same: 4 gateways", 1.0, 4, 1.0),
        ("the same: 4 gateways, 3 turns", 1.0, 4, 3.0),
        ("the same: 1 gateway that looks at each request", 0.0, 1, 1.0),
    ] {
        let fleet = Fleet {
            pace: Pace::of("llama-3-8b", "H100")?,
            num_replicas: 16,
            num_gateways,
            scrape_s,
            targets: Targets::default(),
            may_refuse: true,
        };
        let lists = Lists::Drawn(RequestGenerator {
            num_requests: 15_000,
            rate_per_s: 265.0,
            turns,
            ..RequestGenerator::default()
        });
        let mut env = Routing::new(fleet, lists, Reward::default())?;
        play(words, &mut env, |_, num| num % 16)?;
    }
    let platform = Platform {
        late: Late::Shed,
        ..Platform::default()
    };
    let arrivals = Arrivals::of_setting("relaxed-heavy", "assumed", 4_000)?;
    let slack = functions::SCHEMA
        .of_rows()
        .find(|feature| feature.name == "slack_share");
    for (words, loads, least) in [
        (
            "dispatching by slack, x1.33 to 1.9, drops below 1.2",
            (1.33, 1.9),
            1.2,
        ),
        ("the same, drops below 5", (1.33, 1.9), 5.0),
        ("the same, x1, drops below 1.2", (1.0, 1.0), 1.2),
    ] {
        let (work, platform) = (surface::work("assumed")?, platform.clone());
        let mut env = Dispatching::new(work, platform, arrivals, loads, Reward::default())?;
        let least = slack.map_or(0.0, |slack| slack.encode(least));
        play(words, &mut env, |rows, _| least_slack(rows, least))?;
    }
    Ok(())
}
