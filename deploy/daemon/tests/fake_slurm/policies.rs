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

/// Rules of a formula; those that it leaves out are the reference's.
const RULES: &str = r#""rules": {"deal_min_s": 1.0, "deal_max_s": 3600.0, "pack_above": 1.1, "reseat_loss": 1.0, "preempt": true,
 "reseat": true, "share": true, "cores": true, "resize": true, "stint": 0.0}"#;

#[test]
fn an_index_deals_anew_and_explains_its_score_and_its_log_is_decided_alike() {
    let fake = Fake::new(&[(4, "4:00:00"), (4, "4:00:00")]);
    let config = fake.read("pleach.toml") + "preemption = true\nrestart_cost_s = 1.0\n";
    fs::write(fake.at("pleach.toml"), config).unwrap();
    // Small gangs first, whoever runs: both nodes are full when two small jobs come.
    let formula = format!(r#"{{"version": 1, {RULES}, "weights": {{"gang": -1.0, "stays": 0.1}}}}"#);
    let path = fake.at("mine.json");
    fs::write(&path, formula).unwrap();
    let policy = path.display().to_string();
    fake.rounds(&policy, "--live", "2");
    assert_eq!(fake.order().len(), 2);
    fake.submit(3, 1, "10:00");
    fake.submit(4, 2, "10:00");
    let told = out(&fake.scheduler(&["why-not", "3", "--policy", &policy]));
    assert!(
        told.contains("By mine 0 jobs come before it on a100") && told.contains("score "),
        "{told}"
    );
    let begun = std::time::Instant::now();
    while fake.order().len() < 4 && begun.elapsed().as_secs() < 30 {
        fake.rounds(&policy, "--live", "4");
    }
    let stopped: Vec<usize> = [1, 2]
        .into_iter()
        .filter(|job| fake.job(*job).contains("prio='0'"))
        .collect();
    assert_eq!(
        (fake.order()[2..].to_vec(), stopped.len()),
        (vec![3, 4], 1),
        "one gang gives way to both: {}",
        fake.read("scontrol.log")
    );
    let told = out(&fake.scheduler(&["explain", "4"]));
    assert!(
        told.contains("dealt its GPUs by mine, score ") && told.contains("ln(GPUs of the gang)"),
        "{told}"
    );
    let told = out(&fake.scheduler(&["explain", &stopped[0].to_string()]));
    assert!(
        told.contains("stopped: its GPUs go to jobs with better scores"),
        "{told}"
    );
    let log = fake.at("state/decisions.jsonl").display().to_string();
    let told = out(&fake.scheduler(&["replay", &log, "--policy", &policy]));
    assert!(
        told.contains(" rounds are decided alike") && !told.contains("otherwise"),
        "{told}"
    );
    // Deals are remembered by the next daemon; a file that says nothing costs no more than one that comes early.
    assert!(fake.read("state/deals.json").contains("dealt_s"));
    fs::write(fake.at("state/deals.json"), "{\"dealt_s\": ").unwrap();
    let said = fake.rounds(&policy, "--live", "1");
    assert!(
        said.contains("deals.json") && said.contains("begins anew"),
        "{said}"
    );
}

#[test]
fn passes_of_a_heuristic_stop_and_give_back_and_their_log_is_decided_alike() {
    let fake = Fake::new(&[(4, "4:00:00"), (4, "5:00:00")]);
    let config = fake.read("pleach.toml") + "preemption = true\nrestart_cost_s = 0.0\n";
    fs::write(fake.at("pleach.toml"), config).unwrap();
    // Whoever deals first after another policy need not wait for a minute.
    fake.rounds("sjf", "--live", "2");
    assert_eq!(fake.order().len(), 2);
    // Both nodes are full: the longer gang gives way to a shorter one.
    fake.submit(3, 4, "10:00");
    let told = out(&fake.scheduler(&["why-not", "3", "--policy", "deal:sjf"]));
    assert!(
        told.contains("By deal:sjf 0 jobs come before it on a100"),
        "{told}"
    );
    let begun = std::time::Instant::now();
    while fake.order().len() < 3 && begun.elapsed().as_secs() < 30 {
        fake.rounds("deal:sjf", "--live", "4");
    }
    assert_eq!(fake.order().get(2), Some(&3), "{}", fake.read("scontrol.log"));
    assert!(fake.job(2).contains("prio='0'"), "{}", fake.job(2));
    let told = out(&fake.scheduler(&["explain", "2"]));
    assert!(
        told.contains("stopped") && told.contains("by deal:sjf, no score: not chosen"),
        "{told}"
    );
    let log = fake.at("state/decisions.jsonl").display().to_string();
    let told = out(&fake.scheduler(&["replay", &log, "--policy", "deal:sjf"]));
    assert!(
        told.contains(" rounds are decided alike") && !told.contains("otherwise"),
        "{told}"
    );
    let said = fake.rounds("deal:las-deal", "--live", "1");
    assert!(said.contains("leave `deal:` out"), "{said}");
}

#[test]
fn a_dealer_that_may_not_stop_jobs_fills_free_gpus_and_says_so_and_a_broken_index_is_refused() {
    let fake = Fake::new(&QUEUE);
    let said = fake.rounds("srtf-deal", "--live", "3");
    assert!(said.contains("`preemption = true`"), "{said}");
    // The shortest first, and who does not fit is passed over; what a round decides is carried out by number.
    assert_eq!(fake.order(), [2, 3, 4]);
    let path = fake.at("mine.json");
    fs::write(
        &path,
        format!(r#"{{"version": 1, {RULES}, "weights": {{"gnag": -1.0}}}}"#),
    )
    .unwrap();
    let said = fake.rounds(path.to_str().unwrap(), "--live", "1");
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
        "/../../checkpoints/reference/PhillyGang-v1-tree.json"
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
