//! Policies that are refused, explain themselves, drift or choose among others.

use std::fs;

use crate::fake::{Fake, QUEUE, out};

#[test]
fn a_policy_that_does_not_fit_is_refused_and_a_reload_keeps_the_present_one() {
    let fake = Fake::new(&QUEUE);
    let said = fake.rounds("srtf", "--live", "1");
    assert!(said.contains("Preempt"), "{said}");
    fs::write(fake.at("tree.json"), "{}").unwrap();
    let path = fake.at("tree.json");
    let said = fake.rounds(path.to_str().unwrap(), "--live", "1");
    assert!(said.contains("tree.json"), "{said}");
    assert_eq!(fake.read("scontrol.log"), "");
    let neither = fake.scheduler(&["run", "--policy", "sjf"]);
    assert!(!neither.status.success(), "shadow or live must be said");
}

#[test]
fn why_not_tells_what_was_preferred() {
    let fake = Fake::new(&QUEUE);
    let told = out(&fake.scheduler(&["why-not", "1", "--policy", "sjf"]));
    assert!(
        told.contains("Decision 1: job 4 starts") && told.contains("job 3 starts"),
        "{told}"
    );
    let told = out(&fake.scheduler(&["why-not", "4", "--policy", "sjf"]));
    assert!(told.contains("starts in the present round"), "{told}");
    let told = out(&fake.scheduler(&["why-not", "77", "--policy", "sjf"]));
    assert!(told.contains("not in the queue"), "{told}");
}

#[test]
fn drift_is_remembered_across_restarts_and_hands_over_to_the_fallback_where_that_is_asked_for() {
    use pleach_scheduler::tree::{Tree, Visits};
    let fake = Fake::new(&[(1, "1:00:00"); 8]);
    let reference = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../checkpoints/reference/PhillyGang-v1-tree.json"
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

#[test]
fn a_selector_decides_in_the_shadow_and_live_and_says_which_rule_and_why() {
    use pleach_scheduler::FeatureSchema;
    use pleach_scheduler::selector::{Selector, SelectorMeta, SelectorNode};
    let fake = Fake::new(&QUEUE);
    let schema = FeatureSchema::current();
    let index = schema.joined_index("num_pending").unwrap();
    let leaf = |id, rule: &str| SelectorNode::Leaf {
        id,
        rule: rule.into(),
    };
    let split = SelectorNode::Split {
        feature: index as u16,
        threshold: schema.joined(index).unwrap().encode(3.0),
        left: 1,
        right: 2,
    };
    let meta = SelectorMeta {
        name: "few or many".into(),
        estimates: Vec::new(),
        trained_by: std::collections::BTreeMap::new(),
    };
    // The first decision is by the shortest job, and once three wait the oldest decides.
    let selector = Selector::new(meta, &[split, leaf(4, "fifo"), leaf(7, "sjf")]).unwrap();
    let path = fake.at("selector.json");
    selector.save(&path).unwrap();
    let policy = path.display().to_string();
    let said = fake.rounds(&policy, "--shadow", "2");
    assert_eq!(
        (fake.order(), fake.read("scontrol.log").as_str()),
        (vec![], ""),
        "{said}"
    );
    let told = out(&fake.scheduler(&["explain", "4"]));
    assert!(
        told.contains("only decided (shadow)") && told.contains("sjf decides (leaf 7)"),
        "{told}"
    );
    assert!(told.contains("num_pending > 3 (num_pending is 4)"), "{told}");
    let told = out(&fake.scheduler(&["explain", "1"]));
    assert!(
        told.contains("fifo decides (leaf 4)") && told.contains("num_pending <= 3 (num_pending is 3)"),
        "{told}"
    );
    let told = out(&fake.scheduler(&["why-not", "3", "--policy", &policy]));
    assert!(
        told.contains("Decision 1: job 4 starts") && told.contains("the choice: sjf decides (leaf 7)"),
        "{told}"
    );
    let told = out(&fake.scheduler(&["why-not", "1", "--policy", &policy]));
    assert!(
        told.contains("  the job: sjf decides (leaf 7)\n")
            && told.contains("not chosen: sjf puts 1 before it"),
        "{told}"
    );
    fake.rounds(&policy, "--live", "1");
    assert_eq!(fake.order()[..2], [4, 1]);
}
