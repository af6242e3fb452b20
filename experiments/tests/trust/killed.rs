//! `kill -9` at random moments, fifty times, and the same bytes at the end.
//!
//! Moments are drawn over the time that a whole run takes, from a seed; where a run is when its moment comes is the
//! machine's affair. Nothing is asserted of how far a run came, only of what it is worth when it is finished.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use pleach_env::seed::Seed;
use rand::RngExt as _;

use crate::tiny_run::{self, SETTINGS};

const SIGKILL: i32 = 9;

/// Starts the run of `settings` again and again, kills it `num_kills` times, and compares it with an uninterrupted one each
/// time that it comes to its end. Odd starts have one thread, even ones two.
fn kill_and_compare(settings: &str, num_kills: u32, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let began = Instant::now();
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "whole", settings));
    let mut whole = began.elapsed();
    let mut random = Seed(seed).stream("moments", 0);
    let (mut num_killed, mut num_starts, mut num_compared) = (0, 0, 0);
    while num_killed < num_kills || num_compared == 0 {
        num_starts += 1;
        let mut command = tiny_run::train(folder.path(), "killed", settings);
        command.args(["--threads", if num_starts % 2 == 1 { "1" } else { "2" }]);
        let began = Instant::now();
        let mut child = command.spawn().unwrap();
        if num_killed < num_kills {
            std::thread::sleep(whole.mul_f64(random.random::<f64>()));
            child.kill().unwrap();
        }
        let status = child.wait().unwrap();
        if status.signal() == Some(SIGKILL) {
            num_killed += 1;
            continue;
        }
        assert_eq!(status.code(), Some(0), "start {num_starts}");
        // Finished before its moment: where machines grow faster, moments come sooner.
        whole = whole.min(began.elapsed().max(Duration::from_millis(100)));
        compare(&place("whole"), &place("killed"));
        std::fs::remove_dir_all(place("killed")).unwrap();
        num_compared += 1;
    }
    eprintln!("{num_killed} kills in {num_starts} starts, {num_compared} whole runs compared");
}

fn compare(whole: &Path, killed: &Path) {
    tiny_run::assert_same(whole, killed);
    let timing = |folder: &Path| tiny_run::steps(&folder.join("timing.jsonl"));
    assert_eq!(timing(whole), timing(killed));
    for path in tiny_run::files(killed) {
        assert!(!path.to_string_lossy().ends_with(".tmp"), "{path:?} is left");
    }
}

#[test]
fn a_run_killed_at_random_moments_ends_in_the_same_bytes() {
    kill_and_compare(SETTINGS, 30, 1);
}

#[test]
fn also_where_several_updates_are_lost_with_each_kill() {
    let settings = SETTINGS
        .replace("checkpoint_every = 1", "checkpoint_every = 6")
        .replace("validate_every = 1", "validate_every = 4");
    kill_and_compare(&settings, 20, 2);
}
