//! Policies that are refused, explain themselves, drift or choose among others.

use std::fs;

use super::fake::{Fake, QUEUE, out};

#[test]
fn a_policy_that_does_not_fit_is_refused_and_a_reload_keeps_the_present_one() {
    let fake = Fake::new(&QUEUE);
    for (policy, words) in [
        ("tiresias", "It plans in the simulator alone"),
        ("sfj", "Did you mean sjf?"),
    ] {
        let said = fake.rounds(policy, "--live", "1");
        assert!(said.contains(words), "{said}");
    }
    fs::write(fake.at("tree.json"), "{}").unwrap();
    let path = fake.at("tree.json");
    let said = fake.rounds(path.to_str().unwrap(), "--live", "1");
    assert!(said.contains("tree.json"), "{said}");
    assert_eq!(fake.read("scontrol.log"), "");
    let neither = fake.scheduler(&["run", "--policy", "sjf"]);
    assert!(!neither.status.success(), "shadow or live must be said");
}

#[test]
fn why_not_tells_what_comes_before() {
    let fake = Fake::new(&QUEUE);
    let why_not = |job: &str, policy: &str| out(&fake.scheduler(&["why-not", job, "--policy", policy]));
    let told = why_not("1", "sjf");
    assert!(
        told.contains("number 4 of 4 in the order, behind 4, 2, 3"),
        "{told}"
    );
    let told = why_not("4", "sjf");
    assert!(
        told.contains("number 1 of 4") && told.contains("It fits now on"),
        "{told}"
    );
    let told = why_not("77", "sjf");
    assert!(told.contains("not in the queue"), "{told}");
}

/// Rules of a formula; those that it leaves out are the reference's.
const RULES: &str = r#""rules": {"deal_min_s": 1.0, "deal_max_s": 3600.0, "pack_above": 1.1, "reseat_loss": 1.0, "preempt": true,
 "reseat": true, "share": true, "cores": true, "resize": true, "stint": 0.0}"#;

#[test]
fn an_index_ranks_by_its_scores_and_its_log_is_decided_alike_and_a_broken_one_is_refused() {
    let fake = Fake::new(&[(4, "1:00"), (3, "2:00"), (1, "4:00:00")]);
    let path = fake.at("mine.json");
    let policy = path.display().to_string();
    let formula = |weights: &str| format!(r#"{{"version": 1, {RULES}, "weights": {{{weights}}}}}"#);
    // Small gangs first.
    fs::write(&path, formula(r#""gang": -1.0, "stays": 0.1"#)).unwrap();
    fake.rounds(&policy, "--live", "1");
    assert_eq!(fake.line(), [3, 2, 1]);
    let log = fake.at("state/decisions.jsonl").display().to_string();
    let told = out(&fake.scheduler(&["replay", &log, "--policy", &policy]));
    assert!(told.contains("1 of 1 rounds are decided alike"), "{told}");
    fs::write(&path, formula(r#""gnag": -1.0"#)).unwrap();
    let said = fake.rounds(&policy, "--live", "1");
    assert!(
        said.contains("gnag") && said.contains("gang has the nearest name"),
        "{said}"
    );
}

#[test]
fn drift_is_remembered_across_restarts_and_hands_over_to_the_fallback_where_that_is_asked_for() {
    use pleach_scheduler::tree::{Tree, Visits};
    let fake = Fake::new(&[(1, "1:00:00"); 8]);
    let reference = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/trees/PhillyGang-v1-tree.json"
    );
    let tree = Tree::load(reference.as_ref()).unwrap();
    // Judged where candidates end in the last leaf alone, where none ends here.
    let mut visits = Visits::none(tree.num_leaves());
    let last = tree.num_leaves() as u32 - 1;
    (0..1000).for_each(|_| visits.add(&[last; 9]));
    let tree = tree.with_golden().with_visits(visits).unwrap();
    let tree = tree.with_fallback(Some("sjf".into())).unwrap();
    let path = fake.at("tree.json");
    tree.save(&path).unwrap();
    let policy = path.display().to_string();
    let config = fake.read("pleach.toml") + "on_drift = \"fallback\"\ndrift_window = 100\n";
    fs::write(fake.at("pleach.toml"), config).unwrap();
    // Each start of the daemon counts the queue as it finds it once, whatever it decides in further rounds.
    let mut told = Vec::new();
    for _ in 0..40 {
        let text = fake.rounds(&policy, "--shadow", "2");
        let is_told = text.contains("drift: what the tree is offered is not what it was judged on");
        told.push(is_told);
        if is_told {
            break;
        }
    }
    assert!(told.len() > 5 && *told.last().unwrap(), "{}", told.len());
    let status = |fake: &Fake| String::from_utf8_lossy(&fake.scheduler(&["status"]).stdout).into_owned();
    assert!(status(&fake).contains("warning: drift: "), "{}", status(&fake));
    // The next daemon lets the file's fallback decide from its first round on.
    let text = fake.rounds(&policy, "--shadow", "1");
    assert!(text.contains("sjf answered: drift: "), "{text}");
    assert!(
        fake.read("state/decisions.jsonl")
            .contains("sjf answered: drift: ")
    );
    // With `warn` the tree decides, and the warning stays.
    let config = fake.read("pleach.toml").replace("\"fallback\"", "\"warn\"");
    fs::write(fake.at("pleach.toml"), config).unwrap();
    let text = fake.rounds(&policy, "--shadow", "1");
    assert!(
        !text.contains("answered") && status(&fake).contains("warning: drift: "),
        "{text}"
    );
}
