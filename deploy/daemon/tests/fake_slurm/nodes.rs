//! Nodes where the policy chose them: on a cluster of several GPU types.

use std::fs;

use pleach_daemon::RoundSettings;
use pleach_daemon::capture::Capture;
use pleach_env::workload::Workload;

use super::fake::{Fake, out};
use super::ordering::{SHORTEST_FIRST, WAITING};

/// A cluster of two GPU types, where a policy chooses the type, and nothing of Slurm's own scheduler until it is asked.
fn placing(jobs: &[(u32, &str)]) -> Fake {
    let fake = Fake::new(jobs);
    fs::write(fake.at("kind-g2"), "v100").unwrap();
    fake
}

fn pin(fake: &Fake, job: usize) -> String {
    let text = fake.job(job);
    let found = text
        .split("req='")
        .nth(1)
        .and_then(|rest| rest.split('\'').next());
    found.unwrap_or_default().to_owned()
}

#[test]
fn where_there_are_several_gpu_types_the_chosen_nodes_are_named_and_lifted_where_jobs_do_not_start() {
    let fake = placing(&WAITING);
    fake.rounds("sjf", "--live", "1");
    // 1 and 3 GPUs on one node, 4 on the other, and the last waits for any.
    let pins = [1, 2, 3, 4].map(|job| pin(&fake, job));
    assert!(
        pins[0].is_empty() && pins[3] == pins[1] && pins[2] != pins[1] && !pins[2].is_empty(),
        "{pins:?}"
    );
    // No job started: the next round lifts the pins, so that any job may start anywhere. After a kill, the next daemon knows its
    // pins.
    fake.rounds("sjf", "--live", "1");
    assert_eq!(
        [1, 2, 3, 4].map(|job| pin(&fake, job)),
        ["", "", "", ""].map(String::from)
    );
    assert_eq!(fake.line(), SHORTEST_FIRST, "and they are ranked all the while");
    fake.rounds("sjf", "--live", "1");
    assert!(!pin(&fake, 4).is_empty(), "then they are named again");
    fake.look();
    for (job, node) in fake.starts() {
        assert_eq!(node, pins[job - 1], "job {job}");
    }
    assert_eq!(fake.order(), [4, 2, 3]);
}

#[test]
fn a_job_that_starts_on_no_named_node_goes_without_for_longer_each_time() {
    // Named every other round it would meet a Slurm that looks every two rounds with its nodes each time, and never start.
    let fake = placing(&WAITING);
    fake.rounds("sjf", "--live", "16");
    let log = fake.read("scontrol.log");
    let named = log
        .lines()
        .filter(|line| line.starts_with("update jobid=4 reqnodelist=g"));
    assert_eq!(named.count(), 3, "{log}");
}

#[test]
fn nodes_that_a_user_has_named_stay_his_and_no_kill_leaves_any_of_ours() {
    for call in 1..=8 {
        let fake = placing(&WAITING);
        fake.come(5, 1, "1:00", "req='g2'");
        fs::write(fake.at("kill_after"), call.to_string()).unwrap();
        fake.rounds("sjf", "--live", "1");
        fs::remove_file(fake.at("kill_after")).unwrap();
        let told = out(&fake.scheduler(&["hand-back"]));
        assert!(told.contains("lost the factors"), "{told}");
        assert_eq!(
            [1, 2, 3, 4].map(|job| pin(&fake, job)),
            ["", "", "", ""].map(String::from),
            "killed behind line {call}"
        );
        assert_eq!(pin(&fake, 5), "g2");
        assert_eq!(fake.line(), [1, 2, 3, 4, 5]);
    }
}

/// The nodes that a job must not have.
fn shunned(fake: &Fake, job: usize) -> String {
    let text = fake.job(job);
    let found = text
        .split("shuns='")
        .nth(1)
        .and_then(|rest| rest.split('\'').next());
    found.unwrap_or_default().to_owned()
}

#[test]
fn where_the_policy_waits_for_a_type_the_others_are_closed_beside_those_that_a_user_shuns_and_opened_again() {
    let fake = Fake::new(&[]);
    fs::write(fake.at("kind-g2"), "v100").unwrap();
    let speeds = "[gpu_types.a100]\nspeed = 10.0\n[gpu_types.v100]\nspeed = 1.0\n";
    fs::write(fake.at("pleach.toml"), fake.read("pleach.toml") + speeds).unwrap();
    // The fast node is free in a moment.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let start = now.unwrap().as_secs() - 540;
    let runs = format!(
        "id='91' state='RUNNING' prio='9' gpus='4' node='g1' submit='1794999999' start='{start}' limit='10:00'\n"
    );
    fs::write(fake.at("jobs/91"), &runs).unwrap();
    fake.come(1, 4, "40:00:00", "shuns=h7");
    let said = fake.rounds("best-gavel-multi", "--live", "1");
    assert_eq!(
        (shunned(&fake, 1), pin(&fake, 1)),
        ("g2,h7".into(), String::new()),
        "{said}"
    );
    // As long as it waits on purpose, and the policy sees the nodes as its user does.
    fake.rounds("best-gavel-multi", "--live", "2");
    assert_eq!(shunned(&fake, 1), "g2,h7", "{}", fake.read("scontrol.log"));
    let log = fake.read("scontrol.log");
    assert_eq!(
        log.lines().filter(|line| line.contains("excnodelist=")).count(),
        1,
        "{log}"
    );
    fake.look();
    assert!(fake.starts().is_empty(), "{:?}", fake.starts());
    // What it waited for is there.
    fake.end(91);
    fake.played("best-gavel-multi", 1);
    assert_eq!(fake.starts(), [(1, "g1".to_owned())]);
    // What a daemon leaves behind is lifted by hand.
    fs::write(fake.at("jobs/91"), &runs).unwrap();
    fake.end(1);
    fake.come(2, 4, "40:00:00", "shuns=h7");
    fake.rounds("best-gavel-multi", "--live", "1");
    assert!(out(&fake.scheduler(&["hand-back"])).contains("lost the factors"));
    assert_eq!((shunned(&fake, 2), pin(&fake, 2)), ("h7".into(), String::new()));
}

#[test]
fn a_captured_queue_says_the_gpu_types_that_jobs_ask_for() {
    let fake = placing(&[]);
    fake.fill();
    fake.come(1, 4, "1:00:00", "asks=gpu:v100:4");
    fake.come(2, 4, "1:00:00", "");
    let said = fake.rounds("sjf", "--shadow", "1");
    let mut capture = Capture::new(RoundSettings::default());
    capture.read_on(&[fake.at("state")]).unwrap();
    assert_eq!(
        capture.write_present(&fake.at("queue.csv"), 0).unwrap(),
        2,
        "{said}"
    );
    let list = Workload::read(&fake.at("queue.csv")).unwrap();
    let speeds = list.jobs.iter().map(|job| {
        let speed = &list.classes[usize::from(job.class)].speed;
        (job.id.as_str(), speed.as_slice())
    });
    let both: &[f64] = &[1.0, 1.0];
    let waiting: Vec<_> = speeds.filter(|(id, _)| id.len() == 1).collect();
    assert_eq!(waiting, [("1", &[0.0, 1.0][..]), ("2", both)]);
}
