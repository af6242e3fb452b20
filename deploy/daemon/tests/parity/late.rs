//! Deadlines, and the time of a round.

use super::*;

#[test]
fn a_policy_that_is_too_late_is_answered_for_by_the_fallback_from_the_beginning() {
    let mut snapshot = empty(1);
    snapshot.jobs = vec![
        waiting(1, 1, 2, 900),
        waiting(2, 1, 2, 500),
        waiting(3, 1, 2, 100),
    ];
    assert_eq!(decide(&snapshot, "sjf", &mut || false).0[0].0, "3");
    let mut asked = 0;
    let (starts, fallback) = decide(&snapshot, "sjf", &mut || {
        asked += 1;
        asked > 1
    });
    assert_eq!(
        starts.iter().map(|(job, _)| job.as_str()).collect::<Vec<_>>(),
        ["1", "2"]
    );
    assert!(fallback.unwrap().starts_with("fifo answered: sjf was not done"));
}

/// A cluster of which three quarters of the GPUs are taken, and a queue of its size.
fn large(num: usize) -> Snapshot {
    let mut snapshot = empty(num);
    let mut numbers = Numbers(3);
    for number in 0..num {
        snapshot.nodes[number].num_gpus_used = 3;
        let mut job = waiting(number as u64 + 1, 1, 3, 600 + numbers.next(90_000) as i64);
        job.phase = Phase::Running;
        job.start_s = Some(EPOCH_S - 500);
        job.nodes = vec![format!("g{number}")];
        snapshot.jobs.push(job);
    }
    for number in 0..num {
        let size = 1 + numbers.next(4) as u32;
        snapshot.jobs.push(waiting(
            (num + number) as u64 + 1,
            1,
            size,
            600 + numbers.next(90_000) as i64,
        ));
    }
    snapshot
}

/// Times of our own part of a round; run in release mode: `cargo test --release -p pleach-daemon --test daemon parity -- --ignored
/// --nocapture`.
#[test]
#[ignore = "a measurement"]
fn time_from_a_snapshot_to_its_decisions() {
    for num in [1000, 10_000] {
        let snapshot = large(num);
        for (name, policy) in [
            ("network", network()),
            ("sjf", heuristics::by_name("sjf").unwrap()),
        ] {
            let mut policy = loaded(policy);
            let mut fallback = Loaded::heuristic("fifo").unwrap();
            for _ in 0..3 {
                let began = Instant::now();
                let built = fleet::build(&snapshot, &Memory::default(), &settings(), false)
                    .unwrap()
                    .unwrap();
                let build = began.elapsed();
                let mut deciders = Deciders {
                    policy: &mut policy,
                    fallback: &mut fallback,
                };
                let began = Instant::now();
                let plan = round::plan(
                    &snapshot,
                    &Memory::default(),
                    &mut deciders,
                    &settings(),
                    false,
                    &mut || false,
                )
                .unwrap();
                let (all, num_starts) = (began.elapsed(), plan.decisions.len());
                println!(
                    "{num} nodes, {} jobs wait: {name}: tables {build:?}, round {all:?}, {num_starts} decisions",
                    built.cluster.num_pending()
                );
            }
        }
    }
}
