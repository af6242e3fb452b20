//! Jobs that leave the ranked queue and come back, and texts of users that would break a look at it.

use std::fs;

use super::fake::{Fake, out};
use super::ordering::{WAITING, num_written, only_factors};

/// What a user does so that a job leaves the ranked queue, and what brings it back.
const LEAVES: [(&str, &str); 2] = [("dep=aftero", "dep="), ("prio=0", "prio=1")];

#[test]
fn a_job_that_leaves_the_queue_loses_its_place_and_comes_back_with_its_new_limit() {
    for (leave, back) in LEAVES {
        let fake = Fake::ordered(&[(4, "4:00:00"), (4, "20:00"), (4, "1:00:00"), (4, "10:00")]);
        fake.rounds("sjf", "--live", "1");
        assert!(fake.factor(4) > fake.factor(2), "{leave}: the shortest is first");
        fake.change(4, leave);
        fake.rounds("sjf", "--live", "1");
        assert_eq!(fake.factor(4), 0, "{leave}: it keeps no factor");
        // Its user asks for two days, and what it waited for ends: until it is ranked by that it lies below all.
        fake.change(4, "limit=2-00:00:00");
        fake.change(4, back);
        assert_eq!(fake.line(), [2, 3, 1, 4], "{leave}");
        fake.rounds("sjf", "--live", "1");
        assert_eq!(fake.line(), [2, 3, 1, 4], "{leave}");
        assert!(only_factors(&fake), "{}", fake.read("scontrol.log"));
    }
}

#[test]
fn what_lies_outside_the_queue_is_written_once_and_by_a_daemon_that_begins_anew_too() {
    let fake = Fake::ordered(&WAITING);
    fake.come(5, 1, "1:00", "prio=0 factor=9000");
    fake.come(6, 1, "1:00", "dep=aftero factor=9000");
    fake.rounds("sjf", "--live", "3");
    assert_eq!(
        (fake.factor(5), fake.factor(6)),
        (0, 0),
        "a daemon before had ranked them"
    );
    assert_eq!(num_written(&fake), 6, "once: {}", fake.read("scontrol.log"));
    fake.change(5, "factor=9000");
    let told = out(&fake.scheduler(&["hand-back"]));
    assert!(told.contains("lost the factors"), "{told}");
    assert_eq!((1..=6).map(|job| fake.factor(job)).collect::<Vec<_>>(), [0; 6]);
}

#[test]
fn bytes_that_are_no_text_and_records_without_end_cost_their_own_job_alone() {
    let fake = Fake::ordered(&WAITING);
    let bytes = [&b"id=5 gpus=1 limit=1:00 prio=1 submit=1795000005 account=$'a\\377b'\n"[..]].concat();
    fs::write(fake.at("jobs/5"), bytes).unwrap();
    fake.come(6, 1, "2:00", &format!("account={}", "x".repeat(70_000)));
    let said = fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.line()[..3], [5, 4, 2], "{said}");
    assert!(said.contains("1 record(s) of squeue are longer than"), "{said}");
    let status = out(&fake.scheduler(&["status"]));
    assert!(status.contains(" 0 failed"), "{status}");
}
