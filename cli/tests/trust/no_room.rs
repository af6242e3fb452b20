//! A disk without room stops the run with one line; it goes on once there is room.
//!
//! A full disk is played by a limit on the size of files (`ulimit -f`, in units of 512 bytes; its signal is ignored, so that
//! a write fails as on a full disk) and, on Linux, by `/dev/full`.

use std::path::Path;
use std::process::{Command, Output};

use pleach_agents::Checkpoint;

use super::tiny_run::{self, SETTINGS, words};

/// A network whose checkpoints, of 35 KiB, are larger than the other files at first.
fn settings() -> String {
    SETTINGS
        .replace("hidden = 8", "hidden = 16")
        .replace("context = 8", "context = 16")
}

/// Trains in `folder/run` with files of at most `kib` KiB.
fn train_within(folder: &Path, kib: u64) -> Output {
    let command = tiny_run::train(folder, "run", &settings());
    let mut shell = Command::new("sh");
    shell
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f \"$0\" && exec \"$@\"",
            &(2 * kib).to_string(),
        ])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(folder);
    shell.output().unwrap()
}

/// The run stopped with one line that names `file`, and what it says is kept is there. Gives the updates kept.
fn assert_stopped(folder: &Path, output: &Output, file: &str) -> u64 {
    let said = words(output);
    assert_eq!(
        (output.status.code(), said.lines().count()),
        (Some(1), 1),
        "{said}"
    );
    assert!(output.stdout.is_empty());
    assert!(
        ["access", "write"]
            .iter()
            .any(|tried| said.starts_with(&format!("pleach: {tried} run/")))
            && said.contains(file),
        "{said}"
    );
    assert!(said.contains("--resume"), "{said}");
    let latest = Checkpoint::latest_good(&folder.join("run/checkpoints")).unwrap();
    assert!(latest.passed_over.is_empty(), "{:?}", latest.passed_over);
    let (_, good) = latest.good.unwrap();
    let kept = format!(
        "the state after {} updates is kept in run/checkpoints",
        good.update
    );
    assert!(said.contains(&kept), "{said}");
    assert!(
        tiny_run::files(folder)
            .iter()
            .all(|path| path.extension().is_none_or(|end| end != "tmp"))
    );
    good.update
}

#[test]
fn a_run_out_of_room_stops_at_its_last_good_state_and_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    // The log of events grows beyond 48 KiB in the middle of the run.
    let output = train_within(folder.path(), 48);
    let first = assert_stopped(folder.path(), &output, "tensorboard/events");
    assert!((2..18).contains(&first), "{first}");
    // A new log of events begins, but checkpoints do not fit any more.
    let output = train_within(folder.path(), 24);
    let second = assert_stopped(folder.path(), &output, ".ckpt");
    assert_eq!(first, second);
    // With room, it ends as if nothing had been.
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "run", &settings()));
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "whole", &settings()));
    tiny_run::assert_same(&folder.path().join("whole"), &folder.path().join("run"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_named_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("run/timing.jsonl");
    // A run that has begun, with a log on a full device.
    let output = train_within(folder.path(), 48);
    assert_stopped(folder.path(), &output, "tensorboard/events");
    std::fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink("/dev/full", &log).unwrap();
    let output = tiny_run::train(folder.path(), "run", &settings())
        .output()
        .unwrap();
    assert_stopped(folder.path(), &output, "timing.jsonl: No space left on device");
    std::fs::remove_file(&log).unwrap();
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "run", &settings()));
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "whole", &settings()));
    tiny_run::assert_same(&folder.path().join("whole"), &folder.path().join("run"));
}
