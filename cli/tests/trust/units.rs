//! Several processes play a training's generations together. The bytes are those of one process, whichever of them is killed.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::tiny_run;

/// More generations than a unit has time for before it is killed, with bounds, so that a baseline is played too.
fn settings() -> String {
    let longer = tiny_run::evolution().replace("num_updates = 20", "num_updates = 60");
    format!("{longer}[constraint]\nbaseline = 'best'\nmetrics = {{ p99_jct_s = 1.05 }}\n")
}

fn unit(folder: &Path, name: &str, number: usize) -> Child {
    let mut command = tiny_run::pleach(folder);
    command.args(["train", "--out", name, "--unit", &number.to_string()]);
    command.stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until something is so, at most half a minute.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_training_with_units_that_come_die_and_return_has_the_bytes_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    tiny_run::succeed(&mut tiny_run::train(folder, "whole", &settings()));
    let run = folder.join("shared");
    let exchange = run.join("units");
    let lead = || {
        let mut command = tiny_run::train(folder, "shared", &settings());
        command.args(["--units", "4"]).spawn().unwrap()
    };
    let mut leader = lead();
    // Unit 3 never comes. Unit 2 comes, is killed and returns.
    let mut first = unit(folder, "shared", 1);
    let mut second = unit(folder, "shared", 2);
    for number in [1, 2] {
        let part = exchange.join(format!("part-{number}.json"));
        until("a unit plays its part", || part.is_file());
    }
    second.kill().unwrap();
    second.wait().unwrap();
    let mut again = unit(folder, "shared", 2);
    // The leader is killed too, and goes on.
    leader.kill().unwrap();
    leader.wait().unwrap();
    let mut leader = lead();
    assert_eq!(leader.wait().unwrap().code(), Some(0));
    for unit in [&mut first, &mut again] {
        assert_eq!(unit.wait().unwrap().code(), Some(0), "the training has ended");
    }
    assert!(!exchange.exists());
    tiny_run::assert_same(&folder.join("whole"), &run);
}

#[test]
fn a_unit_that_is_not_of_the_training_is_refused_and_ppo_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut leader = tiny_run::train(folder, "run", &settings());
    let mut leader = leader.args(["--units", "2"]).spawn().unwrap();
    let mut stranger = tiny_run::pleach(folder);
    let said = stranger
        .args(["train", "--out", "run", "--unit", "5"])
        .output()
        .unwrap();
    assert_eq!(leader.wait().unwrap().code(), Some(0));
    // It may come when the training has ended already.
    let words = tiny_run::words(&said);
    assert!(
        said.status.code() == Some(0) || words.contains("unit = 5: allowed is 1 to 1"),
        "{words}"
    );
    let mut ppo = tiny_run::train(folder, "ppo", tiny_run::SETTINGS);
    let said = ppo.args(["--units", "2"]).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    assert!(
        tiny_run::words(&said).contains("units = 2"),
        "{}",
        tiny_run::words(&said)
    );
}
