//! The commands of README.md, one after the other in one folder, as a reader types them; with smaller numbers.

use std::fs;

use super::experimenter::{blocks, run};
use super::site::synthetic_site;

const PAGE: &str = include_str!("../../../README.md");

/// What a reader waits for, and what stands for it here: enough to go the same way in seconds.
const SHORTER: [(&str, &str); 8] = [
    (
        "train --learner evolution --workload jobs.csv --num-jobs 300",
        "train --learner evolution --workload jobs.csv --num-jobs 30 --set train.num_updates=1 --set num_validation=2 --set \
         train.evolution.num_pairs=2",
    ),
    (
        "distill --teacher runs/site --workload jobs.csv --num-jobs 300",
        "distill --teacher runs/site --workload jobs.csv --num-jobs 30 --leaves 4 --rounds 0 --episodes 2 --test-seeds 2 --part-lists 2",
    ),
    (
        "train --learner evolution --env Pleach/PhillyGang-v1",
        "train --learner evolution --env Pleach/PhillyGang-v1 --num-jobs 20 --set train.num_updates=1 --set num_validation=2 --set \
         train.evolution.num_pairs=2",
    ),
    (
        "evaluate --workload Pleach/PhillyGang-v1",
        "evaluate --workload Pleach/PhillyGang-v1 --num-jobs 20 --seeds 2",
    ),
    (
        "evaluate --workload service",
        "evaluate --workload service --set hours=0.2 --set lists=2",
    ),
    (
        "distill --search --workload requests",
        "distill --search --workload requests --set num_requests=200 --set rate_per_s=36 --set search.loads=1 --simulations 20 \
         --set search.judge_lists=2",
    ),
    (
        "learner = \"evolution\"\\n[grid]",
        "learner = \"evolution\"\\nnum_jobs = 15\\nnum_validation = 2\\ntrain.num_updates = 1\\ntrain.evolution.num_pairs = 2\\n\
         judge.seeds = 2\\n[grid]",
    ),
    (
        "tournament --load 2",
        "tournament --load 2 --policy fifo,sjf --num-jobs 20 --seeds 1",
    ),
];

/// The lines that a shell runs with `pleach` alone.
fn commands() -> Vec<String> {
    let lines = blocks(PAGE, "bash").into_iter().flat_map(str::lines);
    let is_ours = |line: &&str| line.starts_with("pleach ") || line.starts_with("printf ");
    lines.filter(is_ours).map(str::to_owned).collect()
}

#[cfg(unix)]
#[test]
fn the_blocks_of_the_readme_run_one_after_the_other_in_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    synthetic_site::write(folder, 34.0).unwrap();
    let commands = commands();
    assert!(commands.len() >= 18, "{commands:#?}");
    for (long, _) in SHORTER {
        assert!(
            commands.iter().any(|line| line.contains(long)),
            "{long} is not in README.md"
        );
    }
    for line in &commands {
        let short = SHORTER
            .iter()
            .fold(line.clone(), |line, (long, short)| line.replace(long, short));
        run(folder, &short);
    }
    for made in [
        "jobs.csv",
        "site.toml",
        "runs/tree/tree.json",
        "ran.parquet",
        "watch.html",
        "tournament.html",
    ] {
        assert!(fs::exists(folder.join(made)).unwrap(), "{made}");
    }
}
