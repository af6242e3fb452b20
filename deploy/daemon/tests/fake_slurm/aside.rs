//! A tree that leaves the cluster to another rule says so: before it drives, in each round, in `status` and in `explain`.

use std::fs;

use pleach_scheduler::tree::Tree;

use super::fake::{Fake, QUEUE, out};

/// The path of a tree that was judged on one GPU type, in the folder of a Slurm that has two.
pub fn narrow_tree(fake: &Fake) -> String {
    let reference = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/trees/PhillyGang-v1-tree.json"
    );
    let tree = Tree::load(reference.as_ref()).unwrap();
    let tree = tree.with_fallback(Some("sjf".into())).unwrap();
    let path = fake.at("tree.json");
    tree.with_gpu_types_max(Some(1)).unwrap().save(&path).unwrap();
    fs::write(fake.at("kind-g2"), "v100").unwrap();
    path.display().to_string()
}

#[test]
fn a_tree_that_steps_aside_says_so_everywhere_and_its_rounds_are_counted() {
    let fake = Fake::new(&QUEUE);
    let policy = narrow_tree(&fake);
    let why = "sjf decides: the cluster has 2 GPU types, and ";
    let said = fake.rounds(&policy, "--live", "1");
    let place = |words: &str| {
        said.find(words)
            .unwrap_or_else(|| panic!("{words} is not in {said}"))
    };
    assert!(
        place(&format!("it steps aside: {why}")) < place(" orders the jobs of partition main"),
        "{said}"
    );
    place(&format!(" steps aside: {why}"));
    let told = fake.scheduler(&["status"]);
    let text = out(&told);
    for words in [
        "1 rounds, 0 failed, 1 by the fallback",
        &format!("it does not decide itself: {why}"),
        &format!("warning: it steps aside: {why}"),
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    assert!(told.status.success(), "it is no error: {text}");
    let text = out(&fake.scheduler(&["explain", "4"]));
    assert!(text.contains("which steps aside: sjf decides"), "{text}");
    // It is no accident: the log is decided again alike.
    let log = fake.at("state/decisions.jsonl").display().to_string();
    let text = out(&fake.scheduler(&["replay", &log, "--policy", &policy]));
    assert!(
        text.contains("1 of 1 rounds are decided alike; 0 by the fallback"),
        "{text}"
    );
}

#[test]
fn on_one_gpu_type_the_same_tree_decides_and_nothing_is_said() {
    let fake = Fake::new(&QUEUE);
    let policy = narrow_tree(&fake);
    fs::remove_file(fake.at("kind-g2")).unwrap();
    let said = fake.rounds(&policy, "--live", "1");
    assert!(!said.contains("aside"), "{said}");
    let text = out(&fake.scheduler(&["status"]));
    assert!(
        text.contains("0 by the fallback; ") && !text.contains("decide itself"),
        "{text}"
    );
}
