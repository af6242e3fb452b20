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
    for (line, words) in [
        ("evaluate --workload requests --load 0.9", ["load", "--set"]),
        (
            "evaluate --workload requests --preemption",
            ["preemption", "--set"],
        ),
        (
            "evaluate --workload requests --set replica=3",
            ["replica", "replicas"],
        ),
        ("distill --workload requests", ["--teacher", "required"]),
        ("serve evaluate", ["serve", "--workload requests"]),
    ] {
        refused(folder.path(), line, &words);
    }
}
