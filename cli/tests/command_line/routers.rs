//! Trees and networks that route: certified, explained, trained, and refused where a flag does not fit.

use std::fs;

use super::{pleach, succeed, text};

/// Few requests on three replicas.
const SMALL: &str =
    "--workload requests --set num_requests=300 --set replicas=3 --set rate_per_s=36 --set refuse=true";

fn refused(folder: &std::path::Path, line: &str, words: &[&str]) {
    let found = pleach(folder, line);
    let said = text(&found.stderr);
    assert_eq!(found.status.code(), Some(2), "{line}: {said}");
    assert!(words.iter().all(|word| said.contains(word)), "{line}: {said}");
}

#[test]
fn a_tree_that_routes_is_certified_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("router.json"), include_str!("router.json")).unwrap();
    let said = succeed(folder.path(), "distill check router.json");
    assert!(said.contains("every score lies between"), "{said}");
    assert!(
        said.contains("what has less to do, all else equal, never comes later"),
        "{said}"
    );
    refused(
        folder.path(),
        "distill check router.json --ablate",
        &["ablate", "router.json"],
    );
    let said = succeed(
        folder.path(),
        &format!("explain router.json {SMALL} --decision 11"),
    );
    assert!(said.contains("decision 11") && said.contains("first: "), "{said}");
    assert_eq!(
        said.matches("\nreplica ").count() + said.matches("\nrefusing").count(),
        3,
        "{said}"
    );
    assert!(said.contains("first with "), "{said}");
    let one = succeed(
        folder.path(),
        &format!("explain router.json {SMALL} --decision 11 --why-not refusing"),
    );
    assert_eq!(one.lines().count(), 3, "{one}");
    for (flags, words) in [
        ("--decision 301", ["decision = 301", "1 to 300"]),
        ("--job 4", ["job", "none of this world"]),
        ("--why-not nothing", ["why-not", "replica 0"]),
    ] {
        refused(
            folder.path(),
            &format!("explain router.json {SMALL} {flags}"),
            &words,
        );
    }
}

#[test]
fn a_network_that_routes_is_trained_judged_and_plays_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let small = "--set search.loads=1 --set search.judge_lists=2 --set train.num_updates=1 --set train.evolution.num_pairs=1 \
                 --set train.network.hidden=8 --set train.network.context=8 --set train.num_steps=300";
    for learner in ["evolution", "ppo"] {
        let line = format!("train --learner {learner} {small} {SMALL} --out {learner}");
        let said = succeed(folder.path(), &line);
        assert!(said.contains("Over the strongest rule of each load"), "{said}");
        let line = format!(
            "evaluate {SMALL} --set lists=1 --policy round-robin,{learner}/network.ckpt,{learner}/tree.json"
        );
        let said = succeed(folder.path(), &line);
        assert!(
            said.contains("network.ckpt") && said.contains("tree.json"),
            "{said}"
        );
    }
    let line = format!("train --learner evolution {small} {SMALL} --seed 2 --out evolution");
    refused(folder.path(), &line, &["evolution"]);
    let line = format!("train --learner evolution --set train.network.hidden=12 {SMALL} --out odd");
    refused(folder.path(), &line, &["hidden", "multiple of 8"]);
    assert!(
        !folder.path().join("odd").exists(),
        "a refused command leaves nothing"
    );
    refused(
        folder.path(),
        "distill --workload requests",
        &["--teacher", "required"],
    );
    refused(folder.path(), "serve evaluate", &["serve", "--workload requests"]);
}

#[test]
fn what_a_verb_does_not_look_at_in_a_world_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("router.json"), include_str!("router.json")).unwrap();
    let none = "none of this world: requests";
    for (line, words) in [
        ("evaluate --workload requests --load 0.9", ["load", none]),
        ("evaluate --workload requests --preemption", ["preemption", none]),
        ("evaluate --workload requests --seeds 3", ["seeds", none]),
        (
            "evaluate --workload calls --set num_requests=50 --ablate",
            ["ablate = calls", "something can be taken away"],
        ),
        (
            "evaluate --workload requests --schedule a.csv",
            ["schedule", none],
        ),
        (
            "evaluate --workload requests --policy-config a.toml",
            ["policy-config", none],
        ),
        (
            "evaluate --workload requests --set search.leaves=4",
            ["search.leaves", none],
        ),
        (
            "evaluate --workload requests --set replica=3",
            ["replica", "replicas"],
        ),
        ("evaluate --set replicas=3", ["set", "world of jobs"]),
        (
            "distill --search --workload requests --teacher fifo",
            ["teacher", none],
        ),
        ("distill --search --workload requests --depth 3", ["depth", none]),
        (
            "distill --search --workload requests --set train.num_updates=3",
            ["train.num_updates", none],
        ),
        ("distill --search --set replicas=3", ["set", "world of jobs"]),
        ("train --workload requests --units 2", ["units", none]),
        ("train --workload requests --config a.toml", ["config", none]),
        ("train --workload requests --num-envs 2", ["num-envs", none]),
        (
            "train --workload requests --set search.simulations=2",
            ["search.simulations", none],
        ),
        (
            "workload describe --workload requests --policy srtf",
            ["policy", none],
        ),
        (
            "workload describe --workload requests --no-simulate",
            ["no-simulate", none],
        ),
        (
            "workload write --workload requests --num-jobs 3 --to a.csv",
            ["num-jobs", none],
        ),
        (
            "explain router.json --workload requests --against fifo",
            ["against", none],
        ),
        (
            "explain router.json --workload requests --preemption",
            ["preemption", none],
        ),
        ("explain router.json --set replicas=3", ["set", "world of jobs"]),
    ] {
        refused(folder.path(), line, &words);
    }
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "a refused command leaves nothing");
}
