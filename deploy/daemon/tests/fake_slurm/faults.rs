//! Commands that hang, lie or refuse, kills, disks that are full: what each costs.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::fake::{Fake, QUEUE, out};

#[test]
fn killed_behind_any_call_it_goes_on_and_starts_every_job_once() {
    for call in 1.. {
        let fake = Fake::new(&QUEUE);
        fs::write(fake.at("kill_after"), call.to_string()).unwrap();
        fake.rounds("sjf", "--live", "1");
        let was_killed = fake.read("calls").trim() == call.to_string();
        fs::remove_file(fake.at("kill_after")).unwrap();
        fake.rounds("sjf", "--live", "2");
        assert_eq!(fake.order(), [4, 2, 3], "killed behind call {call}");
        fake.end(3);
        fake.rounds("sjf", "--live", "1");
        assert_eq!(fake.order(), [4, 2, 3, 1], "killed behind call {call}");
        if !was_killed {
            assert!(
                call > 4,
                "four calls start three jobs, {call}: {}",
                fake.read("scontrol.log")
            );
            break;
        }
    }
}

#[test]
fn a_squeue_that_hangs_or_prints_garbage_costs_a_round_and_nothing_else() {
    let fake = Fake::new(&QUEUE);
    for (fault, word) in [("hang", "no answer within 6s"), ("garbage", "Zero Bytes")] {
        fs::write(fake.at(fault), "").unwrap();
        let began = Instant::now();
        let said = fake.rounds("sjf", "--live", "1");
        assert!(said.contains(word), "{said}");
        assert!(began.elapsed() < Duration::from_secs(20));
        assert_eq!(
            fake.read("scontrol.log"),
            "",
            "nothing is done on what was not understood"
        );
        assert!(!fake.scheduler(&["status"]).status.success());
        fs::remove_file(fake.at(fault)).unwrap();
    }
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.order(), [4, 2, 3]);
}

#[test]
fn a_job_that_is_cancelled_while_it_is_started_is_dropped_and_the_others_start() {
    let fake = Fake::new(&QUEUE);
    fs::write(fake.at("cancel"), "4").unwrap();
    let said = fake.rounds("sjf", "--live", "1");
    assert!(
        said.contains("job 4: refused") && said.contains("Invalid job id"),
        "{said}"
    );
    assert_eq!(fake.order(), [2, 3]);
}

#[test]
fn a_log_that_cannot_be_written_costs_its_lines_and_no_job() {
    let fake = Fake::new(&QUEUE);
    fs::create_dir_all(fake.at("state")).unwrap();
    std::os::unix::fs::symlink("/dev/full", fake.at("state/decisions.jsonl")).unwrap();
    let said = fake.rounds("sjf", "--live", "1");
    assert!(said.contains("decisions.jsonl"), "{said}");
    assert_eq!(fake.order(), [4, 2, 3]);
    assert!(out(&fake.scheduler(&["status"])).contains("1 lines of the log lost"));
}

#[test]
fn a_job_that_does_not_start_is_held_again_and_others_get_its_gpus() {
    let fake = Fake::new(&[(4, "10:00")]);
    // Let go long ago, and its node is full of somebody else's.
    let text = "id=1 gpus=4 limit=10:00 prio=9 req=g1 submit=1795000001 mark='pleach:decided at=1795000002 tries=0'\n";
    fs::write(fake.at("jobs/1"), text).unwrap();
    fs::write(
        fake.at("jobs/9"),
        "id='9' state='RUNNING' prio='9' gpus='2' node='g1' mark='pleach:off'\n",
    )
    .unwrap();
    fake.rounds("sjf", "--live", "1");
    assert!(
        fake.job(1).contains("prio='0'") && fake.job(1).contains("tries=1"),
        "{}",
        fake.job(1)
    );
    fake.rounds("sjf", "--live", "1");
    assert_eq!(fake.starts(), [(1, "g2".to_string())]);
}

#[test]
fn messages_are_lines_of_text_or_of_json_and_nobody_need_read_them() {
    let fake = Fake::new(&QUEUE);
    let text = fake.rounds("sjf", "--live", "1");
    let words: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(words[1..4], ["INFO", "sjf", "drives"], "{text}");
    let output = fake.scheduler(&[
        "run", "--policy", "sjf", "--live", "--rounds", "1", "--log", "json",
    ]);
    let lines = String::from_utf8(output.stderr).unwrap();
    let values: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(values[0]["level"], "INFO");
    assert!(
        values[0]["fields"]["message"]
            .as_str()
            .unwrap()
            .starts_with("sjf drives partition main"),
        "{lines}"
    );
    let last = values.last().unwrap();
    assert!(
        last["level"] == "WARN"
            && last["fields"]["message"]
                .as_str()
                .unwrap()
                .contains("1 jobs stay held"),
        "{lines}"
    );
    // A full disk behind standard error costs the messages.
    let fake = Fake::new(&QUEUE);
    let status = Command::new(env!("CARGO_BIN_EXE_pleach-scheduler"))
        .arg("--config")
        .arg(fake.at("pleach.toml"))
        .args(["run", "--policy", "sjf", "--live", "--rounds", "2"])
        .stderr(fs::File::create("/dev/full").unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fake.order(), [4, 2, 3]);
}
