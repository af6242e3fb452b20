//! SIGTERM and SIGINT: a run keeps its state and says so in one line, and goes on to the same bytes.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pleach_agents::Checkpoint;

use super::tiny_run::{self, SETTINGS};

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill")
        .args([format!("-{signal}"), child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Waits until the program has begun and hears signals; it makes its first update a while later.
fn wait_for(path: &Path, child: &mut Child) {
    while !path.exists() {
        assert_eq!(
            child.try_wait().unwrap(),
            None,
            "it ended before {}",
            path.display()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn updates_saved(run: &Path) -> u64 {
    let latest = Checkpoint::latest_good(&run.join("checkpoints")).unwrap();
    latest.good.unwrap().1.update
}

#[test]
fn a_run_that_is_asked_to_end_keeps_its_last_update_and_goes_on_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    // Checkpoints in turn come seldom, so that what is kept was kept for the signal.
    let settings = SETTINGS
        .replace("checkpoint_every = 1", "checkpoint_every = 500\nkeep_last = 1")
        .replace("num_updates = 20", "num_updates = 300")
        .replace("validate_every = 1", "validate_every = 50");
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "whole", &settings));
    let run = folder.path().join("run");
    let mut before = 0;
    for (signal, code, name) in [("TERM", 143, "SIGTERM"), ("INT", 130, "SIGINT")] {
        let mut command = tiny_run::train(folder.path(), "run", &settings);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&run.join("metrics.jsonl"), &mut child);
        // A line of the log with every update.
        let lines =
            || std::fs::read_to_string(run.join("timing.jsonl")).map_or(0, |text| text.lines().count());
        let first = before as usize + 20;
        while lines() < first {
            assert_eq!(child.try_wait().unwrap(), None);
            std::thread::sleep(Duration::from_millis(2));
        }
        send(signal, &child);
        let output = child.wait_with_output().unwrap();
        let said = tiny_run::words(&output);
        assert_eq!(
            (output.status.code(), said.lines().count()),
            (Some(code), 1),
            "{said}"
        );
        let saved = updates_saved(&run);
        assert!(saved > before && saved < 300, "{saved}");
        for words in [
            format!("stopped by {name} after {saved} of 300"),
            "--resume".into(),
        ] {
            assert!(said.contains(&words), "{words}: {said}");
        }
        before = saved;
    }
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "run", &settings));
    tiny_run::assert_same(&folder.path().join("whole"), &run);
}

#[test]
fn what_keeps_no_state_ends_at_once_and_a_unit_asks_for_another_try() {
    let folder = tempfile::tempdir().unwrap();
    let grid = "name = 's'\n[base]\nnum_jobs = 300000\nload = 0.9\n";
    std::fs::write(folder.path().join("grid.toml"), grid).unwrap();
    let plan = "sweep plan --config grid.toml --out s/sweep.json --quiet";
    tiny_run::succeed(tiny_run::pleach(folder.path()).args(plan.split(' ')));
    for (line, code) in [
        ("evaluate --policy sjf --num-jobs 300000 --seeds 20 --quiet", 143),
        ("sweep unit --manifest s/sweep.json --index 0", 75),
        ("sweep run --manifest s/sweep.json --quiet", 143),
    ] {
        let mut command = tiny_run::pleach(folder.path());
        let child = command
            .args(line.split(' '))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The thread that hears signals has a name, and is there before the work.
        let tasks = format!("/proc/{}/task", child.id());
        let hears = || {
            let tasks = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
            let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
            names.into_iter().any(|name| name.trim() == "signals")
        };
        while !hears() {
            std::thread::sleep(Duration::from_millis(2));
        }
        send("TERM", &child);
        let output = child.wait_with_output().unwrap();
        let said = tiny_run::words(&output);
        assert_eq!(
            (output.status.code(), said.lines().count()),
            (Some(code), 1),
            "{line}: {said}"
        );
        assert!(said.contains("stopped by SIGTERM"), "{said}");
        assert_eq!(said.contains("another try"), code == 75, "{said}");
    }
    // The lock that it held is all that is there.
    let unit = std::fs::read_dir(folder.path().join("s/units/0")).unwrap();
    let names: Vec<_> = unit.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["lock"], "neither a result nor a failure");
}
