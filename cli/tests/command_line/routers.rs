//! Trees and networks that route: certified, explained, trained, and refused where a flag does not fit.

use std::fs;

use super::{pleach, succeed, text};

/// Few requests on three replicas.
const SMALL: &str = "--num-requests 300 --replicas 3 --rate-per-s 36 --refuse";

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
    let line = format!("serve evaluate {SMALL} --lists 1 --router round-robin,router.json --explain 10");
    let said = succeed(folder.path(), &line);
    assert!(said.contains("router.json, request 10: a prompt of"), "{said}");
    assert_eq!(
        said.matches("\nreplica ").count() + said.matches("\nrefusing").count(),
        3,
        "{said}"
    );
    let line = format!("serve evaluate {SMALL} --router round-robin --explain 10");
    refused(folder.path(), &line, &["explain = 10", "a tree"]);
    let line = format!("serve evaluate {SMALL} --router router.json --explain 300");
    refused(folder.path(), &line, &["explain = 300", "0 to 299"]);
}

#[test]
fn a_network_that_routes_is_trained_judged_and_plays_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let small = "--rates 1 --judge-lists 2 --updates 1 --pairs 1 --hidden 8";
    for learner in ["evolution", "ppo"] {
        let line = format!("serve search --learner {learner} {small} {SMALL} --to {learner}");
        let said = succeed(folder.path(), &line);
        assert!(said.contains("Over the strongest rule of each rate"), "{said}");
        let line = format!(
            "serve evaluate {SMALL} --lists 1 --router round-robin,{learner}/network.ckpt,{learner}/tree.json"
        );
        let said = succeed(folder.path(), &line);
        assert!(
            said.contains("network.ckpt") && said.contains("tree.json"),
            "{said}"
        );
    }
    let line = format!("serve search --learner evolution {small} {SMALL} --seed 2 --to evolution");
    refused(folder.path(), &line, &["settings.json"]);
    refused(
        folder.path(),
        "serve search --updates 3 --to router.json",
        &["--learner"],
    );
    let line = format!("serve search --learner evolution --hidden 12 {SMALL} --to odd");
    refused(folder.path(), &line, &["hidden", "multiple of 8"]);
    assert!(
        !folder.path().join("odd").exists(),
        "a refused command leaves nothing"
    );
}
