//! `pleach explain`: sentences about decisions of the reference tree on a list that everyone can draw.

use pleach_scheduler::Guards;
use pleach_scheduler::tree::Tree;

use super::{pleach, succeed, text};

const REFERENCE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/trees/PhillyGang-v1-tree.json"
);

fn line(more: &str) -> String {
    format!("explain {REFERENCE} --workload Pleach/PhillyGang-v1 {more}")
}

#[test]
fn a_decision_is_explained_by_the_split_that_parts_it_from_who_waited_longer() {
    let folder = tempfile::tempdir().unwrap();
    let said = succeed(folder.path(), &line(""));
    for part in [
        "Decision 48, at 4,263 s (71.1 min): job 46 starts on 1 GPU of 1 node as soon as it came.",
        "It is in tier 1 of 4: speed_ratio > 0.927 (it is 1). Of 3 candidates",
        "Against job 45, the best of the others, which waits longest",
        "tier 1 against tier 4, parted by speed_ratio > 0.927 (speed_ratio is 1 against 0). Instead: GPUs are held back for job 45",
    ] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    // The same decision by its number, by its time and by its job.
    assert_eq!(succeed(folder.path(), &line("--decision 48")), said);
    assert_eq!(succeed(folder.path(), &line("--at 4263")), said);
    assert_eq!(succeed(folder.path(), &line("--job 46")), said);
}

/// Job 40 came for 600 s and its wait ratio was 1. Where it is above 2.58 the tree reserves for it: after 1.58 x 600 s.
#[test]
fn a_job_passed_over_is_told_what_would_have_brought_it_first() {
    let folder = tempfile::tempdir().unwrap();
    let said = succeed(folder.path(), &line("--why-not 40 --json why.json"));
    for part in [
        "Job 40 was passed over at decision 41",
        "speed_ratio <= 0.927 (it is 0), wait_ratio <= 2.58 (it is 1).",
        "tier 3 against tier 4, parted by is_hold = 1",
        "It would have come first with wait_s 948",
        "in 15.8 min of waiting; not a choice: it comes with time",
        "hence wait_ratio 2.58: tier 2.",
    ] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    let json = std::fs::read(folder.path().join("why.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let change = &json["alternatives"][0]["counterfactual"]["changes"][0];
    assert_eq!(
        (&json["answer"], &change["feature"], &change["control"]),
        (&"why-not".into(), &"wait_s".into(), &"time".into())
    );
    let never = succeed(folder.path(), &line("--why-not 17"));
    assert!(never.contains("Job 17 was never passed over"), "{never}");
    // A question about the wrong job names the right ones.
    assert!(
        never.contains(" jobs that waited, these did longest: "),
        "{never}"
    );
    let named = never
        .split("longest: ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let of_named = succeed(folder.path(), &line(&format!("--why-not {named}")));
    assert!(
        of_named.contains(&format!("Job {named} was passed over at decision")),
        "{of_named}"
    );
    let unknown = pleach(folder.path(), &line("--why-not nobody"));
    let said = text(&unknown.stderr);
    assert!(
        unknown.status.code() == Some(2) && said.contains("these did longest: "),
        "{said}"
    );
    let there = succeed(folder.path(), &line("--why-not 40 --decision 1"));
    assert!(there.contains("job 40 has not come yet"), "{there}");
}

#[test]
fn a_tree_is_set_against_a_heuristic_and_the_kinds_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let said = succeed(folder.path(), &line("--against sjf --json diff.json"));
    assert!(
        said.contains("the tree does something else than sjf would in "),
        "{said}"
    );
    let json = std::fs::read(folder.path().join("diff.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let kinds = json["kinds"].as_array().unwrap();
    let other: u64 = kinds.iter().map(|kind| number(&kind["num"])).sum();
    assert!(other > 0);
    assert_eq!(number(&json["num_same"]) + other, number(&json["num_decisions"]));
    // A tree agrees with itself but for what it holds back, which a fresh pass does not know.
    let own = succeed(folder.path(), &line(&format!("--against {REFERENCE}")));
    assert!(!own.contains("starts another job"), "{own}");
}

#[test]
fn what_cannot_be_explained_is_refused_with_what_can() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |line: &str, words: &str| {
        let output = pleach(folder.path(), line);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{words} in\n{said}");
    };
    refused(
        &line("--job 9999"),
        "job = 9999: allowed is the id of one of the list's 300 jobs, 0 to 299",
    );
    refused(&line("--why-not x"), "why-not = x: allowed is");
    refused(&line("--decision 99999"), "decision = 99999: allowed is 1 to");
    refused(&line("--at 1e12"), "when the last decision of this list is made");
    refused(&line("--at NaN"), "allowed is a number of at least 0");
    refused(&line("--job 1 --against sjf"), "cannot be used with");
    refused(&line("--against conservative"), "plans whole rounds");
    refused("explain sjf", "tree = sjf: allowed is a policy file with a tree");
    refused(
        &format!("explain {REFERENCE} --workload philly-like,Pleach/PhillyGang-v1"),
        "allowed is one list of jobs",
    );
}

#[test]
fn a_guarded_tree_is_replayed_under_its_guard_which_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let sealed = Tree::load(REFERENCE.as_ref()).unwrap();
    let plain = Tree::new(sealed.meta().clone(), sealed.nodes()).unwrap();
    let guards = Guards {
        overdue_after_s: Some(1800.0),
        ..Guards::NONE
    };
    let guarded = plain.clone().with_guards(guards).unwrap();
    std::fs::write(folder.path().join("guarded.json"), guarded.to_json()).unwrap();
    std::fs::write(folder.path().join("plain.json"), plain.to_json()).unwrap();
    let flags = "--workload Pleach/PhillyGang-v1 --num-jobs 120 --load 1.5 --estimates oracle --job 100";
    let said = succeed(folder.path(), &format!("explain guarded.json {flags}"));
    // Without the guard it waits for a tight placement, and starts later.
    assert!(
        said.contains("It is first by the guard: it has waited 4,286 s (71.4 min), more than 1,800 s"),
        "{said}"
    );
    let plain = succeed(folder.path(), &format!("explain plain.json {flags}"));
    assert!(!plain.contains("guard"), "{plain}");
}
