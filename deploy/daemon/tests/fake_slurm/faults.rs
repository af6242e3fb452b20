//! Commands that hang, lie or refuse, kills, disks that are full: what each costs.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use super::fake::{Fake, QUEUE, out};

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
    fake.played("sjf", 1);
    assert_eq!(fake.order(), [4, 2, 3]);
}

#[test]
fn a_job_that_is_cancelled_while_it_is_ranked_is_dropped_and_the_others_are_ranked() {
    let fake = Fake::new(&QUEUE);
    fs::write(fake.at("cancel"), "4").unwrap();
    let said = fake.played("sjf", 1);
    assert!(!said.contains("refused"), "it has left: {said}");
    assert_eq!(fake.order()[..2], [2, 3]);
}

#[test]
fn a_log_that_cannot_be_written_costs_its_lines_and_no_job() {
    let fake = Fake::new(&QUEUE);
    fs::create_dir_all(fake.at("state")).unwrap();
    std::os::unix::fs::symlink("/dev/full", fake.at("state/decisions.jsonl")).unwrap();
    let said = fake.played("sjf", 1);
    assert!(said.contains("decisions.jsonl"), "{said}");
    assert_eq!(fake.order(), [4, 2, 3]);
    assert!(out(&fake.scheduler(&["status"])).contains("1 lines of the log lost"));
}

#[test]
fn messages_are_lines_of_text_or_of_json_and_nobody_need_read_them() {
    let fake = Fake::new(&QUEUE);
    let text = fake.rounds("sjf", "--live", "1");
    let words: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(words[1..4], ["INFO", "sjf", "orders"], "{text}");
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
            .starts_with("sjf orders the jobs of partition main"),
        "{lines}"
    );
    let last = values.last().unwrap();
    assert!(
        last["level"] == "INFO"
            && last["fields"]["message"]
                .as_str()
                .unwrap()
                .contains("4 jobs wait in the last order"),
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
    assert_eq!(fake.line(), [4, 2, 3, 1]);
}
