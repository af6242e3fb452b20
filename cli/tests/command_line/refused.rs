//! A refused command leaves nothing behind, so that the corrected one runs at once.

use std::fs;

use super::{SMALL, pleach, succeed, text};

#[test]
fn a_refused_command_leaves_nothing_that_blocks_the_corrected_one() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::write(here.join("small.toml"), SMALL).unwrap();
    succeed(
        here,
        "workload write --workload philly-like --num-jobs 200 --to mine.csv",
    );
    fs::write(here.join("torn.csv"), "job_id,submit_s\n1,x\n").unwrap();
    let file = |name: &str| format!("--set env.workload={{file={{path=\"{name}\",num_jobs=20}}}}");
    for (wrong, right) in [
        (
            "workload describe --workload torn.csv".to_string(),
            "workload describe --workload mine.csv --no-simulate".to_string(),
        ),
        (
            "evaluate --policy fifo --workload torn.csv".to_string(),
            "evaluate --policy fifo --workload mine.csv".to_string(),
        ),
        (
            format!("train --config small.toml {}", file("nowhere.csv")),
            format!("train --config small.toml {}", file("mine.csv")),
        ),
        // Refused when the teacher is asked, with the logs open.
        (
            "train --config small.toml --warm-start las-deal --num-jobs 20".to_string(),
            "train --config small.toml --warm-start sjf --num-jobs 20".to_string(),
        ),
        (
            "distill --teacher sjf --workload torn.csv".to_string(),
            "distill --teacher sjf --workload mine.csv --num-jobs 20 --leaves 4 --rounds 0 --episodes 1 --part-lists 0".to_string(),
        ),
        (
            "train --config small.toml --workload mine.csv --num-jobs 90".to_string(),
            "train --config small.toml --workload mine.csv --num-jobs 20".to_string(),
        ),
    ] {
        let refused = pleach(here, &format!("{wrong} --out out"));
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{wrong}: {said}");
        assert!(!here.join("out").exists(), "{wrong}");
        succeed(here, &format!("{right} --out out"));
        fs::remove_dir_all(here.join("out")).unwrap();
    }
}
