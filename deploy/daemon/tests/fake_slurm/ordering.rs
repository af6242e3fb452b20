//! Slurm starts the jobs itself and gets an order: what is written, what is not, and every way to be cut short.

use std::fs;

use super::fake::{Fake, out};

/// Jobs whose shortest-first order is 4, 2, 3, 1, where all nodes are full.
pub(super) const WAITING: [(u32, &str); 4] = [(4, "4:00:00"), (3, "20:00"), (4, "1:00:00"), (1, "10:00")];
pub(super) const SHORTEST_FIRST: [usize; 4] = [4, 2, 3, 1];

/// Whether nothing but factors was ever written.
pub(super) fn only_factors(fake: &Fake) -> bool {
    let log = fake.read("scontrol.log");
    let mut lines = log.lines().filter(|line| !line.starts_with("pleach-end"));
    lines.all(|line| {
        line.starts_with("update jobid=") && line.contains(" sitefactor=") && line.split(' ').count() == 3
    })
}

pub(super) fn num_written(fake: &Fake) -> usize {
    let log = fake.read("scontrol.log");
    log.lines().filter(|line| line.contains("sitefactor=")).count()
}

#[test]
fn slurm_starts_jobs_in_the_order_that_it_is_told_and_nothing_is_held() {
    let fake = Fake::ordered(&WAITING);
    let said = fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.line(), SHORTEST_FIRST, "{said}");
    assert!(said.contains("sjf orders the jobs of partition main"), "{said}");
    assert!(
        said.contains("wait in the last order") && !said.contains("held"),
        "{said}"
    );
    fake.rounds("sjf", "--live", "2");
    assert_eq!(num_written(&fake), 4, "what is right is not written again");
    assert!(only_factors(&fake), "{}", fake.read("scontrol.log"));
    for filler in [91, 92] {
        fake.end(filler);
    }
    fake.look();
    // 1 and 3 GPUs fill one node, 4 the other.
    assert_eq!(fake.order(), [4, 2, 3]);
    fake.rounds("sjf", "--live", "1");
    fake.end(3);
    fake.look();
    assert_eq!(fake.order(), SHORTEST_FIRST);
}

#[test]
fn who_comes_later_is_put_in_its_place_and_nobody_else_moves() {
    let fake = Fake::ordered(&WAITING);
    fake.rounds("sjf", "--live", "1");
    let before: Vec<i64> = (1..=4).map(|job| fake.factor(job)).collect();
    fake.come(5, 2, "30:00", "");
    assert_eq!(
        fake.line(),
        [4, 2, 3, 1, 5],
        "until it is ranked it lies below all"
    );
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.line(), [4, 2, 5, 3, 1]);
    assert_eq!((1..=4).map(|job| fake.factor(job)).collect::<Vec<_>>(), before);
    assert_eq!(num_written(&fake), 5);
    // Another policy, another order: only factors of jobs in the wrong place are written.
    fake.rounds("fifo", "--live", "1");
    assert_eq!(fake.line(), [1, 2, 3, 4, 5]);
    assert!(num_written(&fake) <= 8, "{}", fake.read("scontrol.log"));
}

#[test]
fn what_asks_for_no_gpus_keeps_its_place_by_arrival_and_all_others_are_ranked() {
    let fake = Fake::ordered(&[]);
    let kinds = [
        ("4:00:00", ""),
        ("1:00", "kind=cpu"),
        ("3:00:00", ""),
        ("1:00", "kind=feature"),
        ("10:00", ""),
    ];
    for (number, (limit, kind)) in kinds.iter().enumerate() {
        fake.come(number + 1, 1, limit, kind);
    }
    fake.rounds("sjf", "--live", "1");
    // By arrival 2 is the second; the shortest of the others come first. No node has the feature of 4, which came days ago.
    assert_eq!(fake.line(), [5, 2, 3, 4, 1]);
    fake.come(6, 1, "2:00", "");
    fake.rounds("sjf", "--live", "1");
    assert_eq!(
        fake.line(),
        [6, 2, 5, 4, 3, 1],
        "nobody who comes later pushes them back"
    );
}

#[test]
fn killed_behind_any_line_it_goes_on_and_nobody_is_held() {
    for call in 1..=5 {
        let fake = Fake::ordered(&WAITING);
        fs::write(fake.at("kill_after"), call.to_string()).unwrap();
        fake.rounds("sjf", "--live", "1");
        fs::remove_file(fake.at("kill_after")).unwrap();
        // Whatever was written, all four wait and none is held.
        assert_eq!(fake.line().len(), 4, "killed behind line {call}");
        fake.rounds("sjf", "--live", "1");
        assert_eq!(fake.line(), SHORTEST_FIRST, "killed behind line {call}");
        assert!(only_factors(&fake));
    }
}

#[test]
fn lost_lines_hanging_commands_and_garbage_cost_rounds_and_no_order() {
    let fake = Fake::ordered(&WAITING);
    fs::write(fake.at("lose"), "").unwrap();
    fake.rounds("sjf", "--live", "6");
    assert_eq!(fake.line(), SHORTEST_FIRST, "every third line is lost");
    fs::remove_file(fake.at("lose")).unwrap();
    let written = num_written(&fake);
    for (fault, word) in [("hang-sprio", "no answer within 6s"), ("garbage", "Zero Bytes")] {
        fs::write(fake.at(fault), "").unwrap();
        let said = fake.rounds("gpu-time", "--live", "1");
        assert!(said.contains(word), "{fault}: {said}");
        assert_eq!(
            (fake.line(), num_written(&fake)),
            (SHORTEST_FIRST.to_vec(), written)
        );
        fs::remove_file(fake.at(fault)).unwrap();
    }
    fs::write(fake.at("deny"), "").unwrap();
    let said = fake.rounds("fifo", "--live", "1");
    let told = "changes of the order were refused; the first: Access/permission denied for job";
    assert_eq!(said.matches(told).count(), 1, "{said}");
    assert!(said.contains("set adminlevel=operator"), "{said}");
    assert!(!fake.scheduler(&["status"]).status.success());
    fs::remove_file(fake.at("deny")).unwrap();
    fake.rounds("fifo", "--live", "1");
    assert_eq!(fake.line(), [1, 2, 3, 4]);
    assert!(only_factors(&fake));
}

#[test]
fn a_round_writes_no_more_than_it_may_and_the_head_first() {
    let fake = Fake::ordered(&WAITING);
    let config = "order_updates_max = 1\n".to_owned() + &fake.read("pleach.toml");
    fs::write(fake.at("pleach.toml"), config).unwrap();
    for num in 1..=4 {
        fake.rounds("sjf", "--live", "1");
        assert_eq!(fake.line()[..num], SHORTEST_FIRST[..num]);
        assert_eq!(num_written(&fake), num);
        let told = out(&fake.scheduler(&["status"]));
        assert!(
            told.contains(&format!("1 factors written, {} to write", 4 - num)),
            "{told}"
        );
    }
}

#[test]
fn what_users_do_with_their_own_jobs_stays_slurms_affair() {
    let fake = Fake::ordered(&WAITING);
    fake.rounds("sjf", "--live", "1");
    fake.change(4, "nice=100000");
    assert_eq!(fake.line(), [2, 3, 1, 4]);
    fake.change(2, "prio=0");
    fake.rounds("sjf", "--live", "2");
    assert_eq!(
        num_written(&fake),
        5,
        "what is held loses its factor, and no other is written against a user's word"
    );
    assert_eq!(fake.line(), [3, 1, 4]);
    let told = out(&fake.scheduler(&["why-not", "2", "--policy", "sjf"]));
    assert!(told.contains("held by its user"), "{told}");
    fake.change(2, "prio=1");
    fake.change(4, "nice=0");
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.line(), SHORTEST_FIRST);
}

#[test]
fn a_user_at_his_limit_delays_nobody() {
    let fake = Fake::ordered(&[]);
    fs::write(fake.at("limit-u1"), "").unwrap();
    for number in 1..=3 {
        fake.come(number, 4, "1:00", "user=u1");
    }
    fake.come(4, 4, "9:00:00", "user=u2");
    fake.rounds("sjf", "--live", "1");
    let told = out(&fake.scheduler(&["why-not", "1", "--policy", "sjf"]));
    assert!(told.contains("AssocGrpGRES"), "{told}");
    fake.end(91);
    fake.look();
    assert_eq!(fake.order(), [4]);
    fs::remove_file(fake.at("limit-u1")).unwrap();
    fake.end(92);
    fake.look();
    assert_eq!(fake.order(), [4, 1]);
}

#[test]
fn jobs_that_were_held_before_are_given_back() {
    let fake = Fake::ordered(&[(1, "10:00")]);
    fake.leave_held(2, 4, "20:00");
    fake.leave_held(3, 4, "30:00");
    // Let go to a node, and cut short before.
    fake.change(3, "req=g1 mark='pleach:decided at=1795000002 tries=0' prio=9");
    let said = fake.rounds("sjf", "--live", "1");
    for job in [2, 3] {
        assert!(
            !fake.job(job).contains("pleach:") && fake.job(job).contains("req=''"),
            "{said} {}",
            fake.job(job)
        );
    }
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.line(), [1, 2, 3]);
    fake.come(4, 1, "1:00", "prio=0");
    fake.rounds("sjf", "--live", "1");
    assert!(
        fake.job(4).contains("prio='0'") && fake.factor(4) == 0,
        "what its user holds stays his"
    );
}

#[test]
fn the_shadow_shows_the_order_and_touches_nothing() {
    let fake = Fake::ordered(&WAITING);
    fake.rounds("sjf", "--shadow", "3");
    assert_eq!(fake.read("scontrol.log"), "");
    let told = out(&fake.scheduler(&["status"]));
    assert!(
        told.contains("(shadow, order)") && told.contains("order: 4, 2, 3, 1; 0 factors written"),
        "{told}"
    );
    let told = out(&fake.scheduler(&["explain", "2"]));
    assert!(
        told.contains("job 2 is number 2 of 4 in the order; only decided (shadow)"),
        "{told}"
    );
    assert_eq!(
        fake.read("state/decisions.jsonl").lines().count(),
        1,
        "the same order is written down once"
    );
}

#[test]
fn words_tell_where_a_job_stands_and_logs_are_decided_again_alike() {
    let fake = Fake::ordered(&WAITING);
    fake.end(91);
    // Slurm starts no job before the first round.
    fs::remove_file(fake.at("own")).unwrap();
    fake.rounds("sjf", "--live", "1");
    let told = out(&fake.scheduler(&["why-not", "3", "--policy", "sjf"]));
    assert!(
        told.contains("By sjf it is number 3 of 4 in the order, behind 4, 2."),
        "{told}"
    );
    assert!(
        told.contains("Slurm: Resources; site factor 2000, which 2 of 4 that wait exceed."),
        "{told}"
    );
    let told = out(&fake.scheduler(&["why-not", "4", "--policy", "sjf"]));
    assert!(told.contains("It fits now on g1"), "{told}");
    let told = out(&fake.scheduler(&["explain", "4"]));
    assert!(
        told.contains(
            "job 4 is number 1 of 4 in the order; factor 4000 written\nby sjf\nit would start now on g1"
        ),
        "{told}"
    );
    fake.come(5, 2, "2:00", "");
    fake.rounds("sjf", "--live", "1");
    let log = fake.at("state/decisions.jsonl");
    let replay = |policy: &str| out(&fake.scheduler(&["replay", log.to_str().unwrap(), "--policy", policy]));
    assert!(
        replay("sjf").contains("2 of 2 rounds are decided alike"),
        "{}",
        replay("sjf")
    );
    assert!(replay("fifo").contains("decided otherwise"));
    fs::write(fake.at("own"), "").unwrap();
    fake.look();
    fake.rounds("sjf", "--live", "2");
    let told = out(&fake.scheduler(&["status"]));
    assert!(told.contains("sjf on partition main (live, order)"), "{told}");
}

#[test]
fn handing_back_takes_the_order_away() {
    let fake = Fake::ordered(&WAITING);
    fake.rounds("sjf", "--live", "1");
    let told = out(&fake.scheduler(&["hand-back"]));
    assert!(told.contains("4 jobs lost the factors of the order"), "{told}");
    assert_eq!(fake.line(), [1, 2, 3, 4]);
    assert!((1..=4).all(|job| fake.factor(job) == 0));
}

#[test]
fn a_slurm_without_factors_is_refused_with_the_fix_and_so_are_keys_of_before() {
    let fake = Fake::ordered(&WAITING);
    fs::write(fake.at("priority"), "priority/basic").unwrap();
    let said = fake.rounds("sjf", "--live", "1");
    for words in ["PriorityType", "priority/multifactor"] {
        assert!(said.contains(words), "{said}");
    }
    fs::remove_file(fake.at("priority")).unwrap();
    fs::write(fake.at("plugin"), "site_factor/ours").unwrap();
    let said = fake.rounds("sjf", "--live", "1");
    assert!(said.contains("it would overwrite the order"), "{said}");
    assert_eq!(fake.read("scontrol.log"), "");
    fs::remove_file(fake.at("plugin")).unwrap();
    fs::write(fake.at("age"), "5000").unwrap();
    let said = fake.rounds("sjf", "--live", "1");
    assert!(
        said.contains("sum to 5000, and neighbours in the order are 1000 apart"),
        "{said}"
    );
    for key in [
        "drive = \"hold\"",
        "spare_nodes = \"g1\"",
        "left_partitions = [\"debug\"]",
    ] {
        fs::write(fake.at("pleach.toml"), key.to_owned() + "\n").unwrap();
        let said = String::from_utf8(fake.scheduler(&["status"]).stderr).unwrap();
        assert!(
            said.contains("line 1: ") && said.contains("; take it out: "),
            "{said}"
        );
    }
}

#[test]
fn of_a_policy_that_would_do_more_than_order_it_is_told_what_is_not_carried_out() {
    let tree = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/trees/PhillyGang-v1-tree.json"
    );
    for (policy, words) in [
        ("sjf", None),
        ("sjf-reserve", Some("not reservations")),
        ("srtf", Some("not preemption")),
        ("index", Some("not preemption, sharing")),
        ("deal:sjf", Some("not preemption, sharing")),
        ("sjf-resize", Some("resizing of running jobs")),
        (tree, Some("not reservations")),
    ] {
        let fake = Fake::ordered(&WAITING);
        let said = fake.rounds(policy, "--live", "1");
        let told = said.contains("no more than its order is carried out");
        assert_eq!(told, words.is_some(), "{policy}: {said}");
        assert!(words.is_none_or(|words| said.contains(words)), "{policy}: {said}");
        assert_eq!(num_written(&fake), 4, "{policy}: {said}");
        assert!(only_factors(&fake));
    }
    let fake = Fake::ordered(&WAITING);
    let said = fake.rounds("gavel-las", "--live", "1");
    assert!(said.contains("simulator alone"), "{said}");
}

#[test]
fn what_slurm_started_in_order_is_captured_as_a_list() {
    let fake = Fake::ordered(&WAITING);
    fake.rounds("sjf", "--live", "1");
    fake.end(91);
    fake.end(92);
    fake.look();
    fake.rounds("sjf", "--live", "1");
    std::thread::sleep(std::time::Duration::from_millis(2100));
    // A job that runs is seen in one more round, in which another one comes.
    fake.come(6, 4, "9:00", "");
    fake.rounds("sjf", "--live", "1");
    for job in [4, 2, 3] {
        fake.end(job);
    }
    fake.rounds("sjf", "--live", "2");
    let (log, to) = (fake.at("state"), fake.at("week.csv"));
    let told = fake.scheduler(&["capture", log.to_str().unwrap(), "--to", to.to_str().unwrap()]);
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let list = fake.read("week.csv");
    assert!(list.lines().count() >= 3, "{list}");
}
