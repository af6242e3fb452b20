//! A small tournament.

use std::sync::Arc;

use pleach_env::Seed;
use pleach_env::workload::generate::{GeneratorConfig, ProfileConfig, generate};

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;
use pleach_experiments::Plugins;
use pleach_experiments::evaluate::condition::Condition;
use pleach_experiments::evaluate::instances::Instance;
use pleach_experiments::evaluate::run::{Grants, Runner};

#[test]
fn everyone_meets_the_same_jobs_with_what_it_asks_for_and_the_best_stands_first() {
    let generator = GeneratorConfig::Profile(ProfileConfig {
        num_jobs: 80,
        num_nodes: 2,
        gpus_per_node: 8,
        load: 3.0,
        run_time_s_max: 86_400.0,
        ..ProfileConfig::default()
    });
    let instances: Vec<Instance> = (1..3)
        .map(|seed| Instance {
            workload: Arc::new(generate(&generator, Seed(seed)).unwrap()),
            seed,
        })
        .collect();
    let planners = pleach_baselines::entries().copied();
    planners
        .fold(Plugins::new(), Plugins::planner)
        .register()
        .unwrap();
    let names = ["fifo", "srtf", "tiresias", "sjf-share"].map(str::to_string);
    let field = field(&names).unwrap();
    let sim = Condition::Ideal.sim();
    // A clock that goes on by a millisecond at every look: each plan takes one.
    let looks = AtomicU64::new(0);
    let clock = || Duration::from_millis(looks.fetch_add(1, Ordering::Relaxed));
    let matches = Runner::new(&sim)
        .granting(Grants::AsAsked)
        .run_timed(&instances, &field, &clock)
        .unwrap();
    assert_eq!(matches.len(), 8);
    let stops = |name: &str| -> f64 {
        let own = matches.iter().filter(|played| played.run.policy == name);
        own.map(|played| played.run.metrics["preemptions"]).sum()
    };
    assert_eq!(stops("fifo"), 0.0);
    assert!(stops("srtf") > 0.0 && stops("tiresias") > 0.0, "they may preempt");
    let standings = standings(&matches).unwrap();
    let jcts: Vec<f64> = standings.iter().map(|row| row.metrics["avg_jct_s"]).collect();
    assert!(jcts.is_sorted(), "{jcts:?}");
    assert_eq!(standings[0].ratio_to_best.unwrap().mean, 1.0);
    assert!(standings.iter().all(|row| row.metrics["avg_jct_gap"] >= 0.0));
    assert!(standings.iter().all(|row| row.plan_ms >= 1.0));
    // A rival that decided the same is named under the table, and has no row.
    let twin = Standing {
        policy: "copy".into(),
        ..standings[0].clone()
    };
    let both = [&standings[..], &[twin]].concat();
    let shown = table(&both);
    assert_eq!(shown.rows.len(), 4);
    let note = format!("copy as {}", standings[0].policy);
    assert!(shown.notes[1].ends_with(&note), "{:?}", shown.notes);
}
