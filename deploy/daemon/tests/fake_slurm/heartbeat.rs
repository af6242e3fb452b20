//! The heartbeat while a round takes long: the generated script must not let new jobs by.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::fake::{Fake, QUEUE};

fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    since.as_secs() as i64
}

/// Age of the heartbeat, s; none: there is none.
fn age_s(fake: &Fake) -> Option<i64> {
    let text = fake.read("state/heartbeat");
    (!text.is_empty()).then(|| now_s() - text.parse::<i64>().unwrap())
}

#[test]
fn a_round_of_slow_commands_has_a_recent_heartbeat_from_its_beginning_and_none_once_the_daemon_is_gone() {
    let fake = Fake::new(&QUEUE);
    // Below the limit of a command, 6 s; a round has seven commands at least.
    fs::write(fake.at("slow"), "1.5").unwrap();
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_pleach-scheduler"))
        .arg("--config")
        .arg(fake.at("pleach.toml"))
        .args(["run", "--policy", "sjf", "--live", "--rounds", "1"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let mut ages = Vec::new();
    while daemon.try_wait().unwrap().is_none() {
        assert!(began.elapsed().as_secs() < 60);
        // The round is over once its status is there.
        if !fake.at("state/status.json").exists() {
            ages.push((began.elapsed(), age_s(&fake)));
        }
        thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(fake.order(), [4, 2, 3]);
    let last = ages.last().unwrap().0;
    assert!(last.as_secs() >= 6, "it took {last:?}");
    // It begins with the first round, long before that is over, and is never older than the least patience of the script, 5 s.
    let first = ages.iter().position(|(_, age_s)| age_s.is_some()).unwrap();
    assert!(ages[first].0 + Duration::from_secs(2) < last, "{ages:?}");
    let is_recent = |(_, age_s): &(Duration, Option<i64>)| age_s.is_some_and(|age_s| age_s < 5);
    assert!(ages[first..].iter().all(is_recent), "{ages:?}");
    let text = fake.read("state/heartbeat");
    thread::sleep(Duration::from_secs(3));
    assert_eq!(fake.read("state/heartbeat"), text);
}

#[test]
fn a_daemon_that_is_stopped_in_the_middle_of_a_round_lets_the_heartbeat_grow_old() {
    let fake = Fake::new(&QUEUE);
    fs::write(fake.at("slow"), "1").unwrap();
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_pleach-scheduler"))
        .arg("--config")
        .arg(fake.at("pleach.toml"))
        .args(["run", "--policy", "sjf", "--live"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while age_s(&fake).is_none() {
        assert!(began.elapsed().as_secs() < 30);
        thread::sleep(Duration::from_millis(50));
    }
    let id = daemon.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-STOP", &id])
            .status()
            .unwrap()
            .success()
    );
    thread::sleep(Duration::from_secs(1));
    let text = fake.read("state/heartbeat");
    thread::sleep(Duration::from_secs(4));
    assert_eq!(fake.read("state/heartbeat"), text);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}
