//! `kill -9` at random moments, sixty times, and the same bytes at the end.
//!
//! Moments are drawn over the time that a whole run takes, from a seed; where a run is when its moment comes is the
//! machine's affair. Every other kill waits from its moment on until a file is half written. Nothing is asserted of how far
//! a run came, only of what it is worth when it is finished.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Child;
use std::time::Instant;

use pleach_agents::Checkpoint;
use pleach_env::Seed;
use rand::RngExt as _;

use super::tiny_run::{self, SETTINGS};

const SIGKILL: i32 = 9;

/// Starts the run of `settings` again and again, kills it `num_kills` times, and compares it with an uninterrupted one each
/// time that it comes to its end. Odd starts have one thread, even ones two.
fn kill_and_compare(settings: &str, num_kills: usize, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    let began = Instant::now();
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "whole", settings));
    let mut time = began.elapsed();
    let mut random = Seed(seed).stream("moments", 0);
    let (mut saved, mut num_starts, mut num_compared) = (Vec::new(), 0, 0);
    while saved.len() < num_kills || num_compared == 0 {
        num_starts += 1;
        let mut command = tiny_run::train(folder.path(), "killed", settings);
        command.args(["--threads", if num_starts % 2 == 1 { "1" } else { "2" }]);
        let (anew, began) = (!killed.exists(), Instant::now());
        let mut child = command.spawn().unwrap();
        if saved.len() < num_kills {
            std::thread::sleep(time.mul_f64(random.random::<f64>()));
            if saved.len() % 2 == 1 {
                wait_for_half_a_file(&mut child, &killed);
            }
            child.kill().unwrap();
        }
        let status = child.wait().unwrap();
        if status.signal() == Some(SIGKILL) {
            saved.push(updates_saved(&killed));
            continue;
        }
        assert_eq!(status.code(), Some(0), "start {num_starts}");
        if anew {
            // The first run was slow; moments beyond the end kill nobody.
            time = time.min(began.elapsed());
        }
        compare(&whole, &killed);
        std::fs::remove_dir_all(&killed).unwrap();
        num_compared += 1;
    }
    saved.sort_unstable();
    eprintln!("{num_kills} kills in {num_starts} starts, {num_compared} whole runs compared");
    let counts = saved.chunk_by(|a, b| a == b);
    let counts: Vec<_> = counts.map(|same| (same[0], same.len())).collect();
    eprintln!("(updates saved, kills): {counts:?}");
}

/// Returns as soon as a temporary file is there, or when the run has ended.
fn wait_for_half_a_file(child: &mut Child, run: &Path) {
    while child.try_wait().unwrap().is_none() {
        for folder in [run, &run.join("checkpoints")] {
            let mut names = std::fs::read_dir(folder).into_iter().flatten().flatten();
            if names.any(|entry| entry.path().extension().is_some_and(|end| end == "tmp")) {
                return;
            }
        }
    }
}

/// Updates that the newest checkpoint holds; None before the first.
fn updates_saved(run: &Path) -> Option<u64> {
    let latest = Checkpoint::latest_good(&run.join("checkpoints")).unwrap();
    assert!(latest.passed_over.is_empty(), "{:?}", latest.passed_over);
    latest.good.map(|(_, checkpoint)| checkpoint.update)
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
    kill_and_compare(SETTINGS, 24, 1);
}

/// And where the network corrects a heuristic instead of replacing it.
#[test]
fn also_where_several_updates_are_lost_with_each_kill_and_episodes_go_on_over_updates() {
    let settings = SETTINGS
        .replace("checkpoint_every = 1", "checkpoint_every = 6")
        .replace("[train]", "[train]\nrestart_every = 3")
        .replace("warm_start =", "prior =")
        .replace("validate_every = 1", "validate_every = 4");
    kill_and_compare(&settings, 16, 2);
}

#[test]
fn also_with_evolution_strategies() {
    kill_and_compare(&tiny_run::evolution(), 10, 3);
}

#[test]
fn checkpoints_amid_episodes_from_which_no_run_goes_on_exactly_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SETTINGS.replace("[train]", "[train]\nrestart_every = 3");
    let output = tiny_run::train(folder.path(), "run", &settings).output().unwrap();
    let said = tiny_run::words(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("checkpoint_every = 1") && said.contains("train.restart_every = 3"),
        "{said}"
    );
}

/// Moments that are too short to be met by chance.
#[test]
fn a_kill_before_the_first_checkpoint_or_amid_clearing_up_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, killed] = ["whole", "killed"].map(|name| folder.path().join(name));
    let train = |name: &str| tiny_run::succeed(&mut tiny_run::train(folder.path(), name, SETTINGS));
    train("whole");
    train("killed");
    // Validated and logged, half of a line of it, and no checkpoint yet.
    std::fs::remove_file(killed.join("artefacts.json")).unwrap();
    std::fs::remove_dir_all(killed.join("checkpoints")).unwrap();
    for name in ["metrics.jsonl", "histograms.jsonl", "timing.jsonl"] {
        let text = std::fs::read(killed.join(name)).unwrap();
        std::fs::write(killed.join(name), &text[..text.len() - 5]).unwrap();
    }
    std::fs::write(killed.join("network.ckpt.tmp"), b"PLEACHCK").unwrap();
    train("killed");
    compare(&whole, &killed);
    // The last checkpoint written, the one too many not yet removed.
    let (oldest, newest) = (
        "checkpoints/update-00000017.ckpt",
        "checkpoints/update-00000018.ckpt",
    );
    std::fs::copy(killed.join(newest), killed.join(oldest)).unwrap();
    std::fs::write(killed.join("checkpoints/update-00000020.ckpt.tmp"), b"PLEACHCK").unwrap();
    std::fs::remove_file(killed.join("artefacts.json")).unwrap();
    train("killed");
    compare(&whole, &killed);
}

#[test]
fn a_second_process_is_turned_away_with_one_line_until_the_first_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let settings = SETTINGS.replace("num_updates = 20", "num_updates = 1000000");
    let mut first = tiny_run::train(folder.path(), "run", &settings).spawn().unwrap();
    // Written by whoever has the folder.
    while !run.join("run.json").exists() {
        assert_eq!(first.try_wait().unwrap(), None, "the first one ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = tiny_run::train(folder.path(), "run", &settings).output().unwrap();
    let said = tiny_run::words(&second);
    assert_eq!(
        (second.status.code(), said.lines().count()),
        (Some(75), 1),
        "{said}"
    );
    assert!(
        said.contains("no other process") && said.contains("--out"),
        "{said}"
    );
    first.kill().unwrap();
    first.wait().unwrap();
    // Nothing has to be cleared away.
    pleach_experiments::run_folder::lock::RunLock::take(&run).unwrap();
}
