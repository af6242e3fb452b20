//! `--extend`: a finished run trained further is a run that had that length from the beginning, where its schedule permits.

use super::tiny_run::{self, SETTINGS};

fn of_length(settings: &str, num_updates: u64) -> String {
    settings.replace("num_updates = 20", &format!("num_updates = {num_updates}"))
}

fn extend(folder: &std::path::Path, more: &str) -> std::process::Output {
    let mut command = tiny_run::pleach(folder);
    command.stdout(std::process::Stdio::piped());
    command
        .args(["train", "--out", "run", "--extend", more])
        .output()
        .unwrap()
}

#[test]
fn a_run_that_is_extended_is_the_longer_run_byte_by_byte_where_nothing_falls() {
    let constant = "[train.ppo]\nlearning_rate = 5e-4\nlearning_rate_final = 5e-4\nentropy_coef = 0.002\nentropy_coef_final = 0.002";
    let ppo = SETTINGS
        .replace("[train.ppo]", constant)
        .replace("checkpoint_every = 1", "checkpoint_every = 4");
    let steps = "[train.evolution]\nlearning_rate = 0.1\nlearning_rate_final = 0.1";
    let evolution = tiny_run::evolution().replace("[train.evolution]", steps);
    for settings in [ppo, evolution] {
        let folder = tempfile::tempdir().unwrap();
        tiny_run::succeed(&mut tiny_run::train(
            folder.path(),
            "whole",
            &of_length(&settings, 15),
        ));
        // Its end is no checkpoint of the longer one.
        tiny_run::succeed(&mut tiny_run::train(
            folder.path(),
            "run",
            &of_length(&settings, 6),
        ));
        for (more, words) in [("5", "from 6 to 11"), ("4", "from 11 to 15")] {
            let output = extend(folder.path(), more);
            let said = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(0), "{}", tiny_run::words(&output));
            assert!(
                said.contains(words) && said.contains("the same as a run"),
                "{said}"
            );
        }
        tiny_run::assert_same(&folder.path().join("whole"), &folder.path().join("run"));
    }
}

#[test]
fn what_makes_it_another_run_is_said_and_what_is_no_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SETTINGS.replace("validate_every = 1", "validate_every = 4");
    tiny_run::succeed(&mut tiny_run::train(
        folder.path(),
        "run",
        &of_length(&settings, 6),
    ));
    let output = extend(folder.path(), "2");
    let said = String::from_utf8_lossy(&output.stdout);
    for words in [
        "other than a run of 8",
        "train.ppo.learning_rate goes from",
        "validated after update 6",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // It is a run of its new length now, and goes on as one.
    tiny_run::succeed(tiny_run::pleach(folder.path()).args("train --out run --resume --quiet".split(' ')));
    let mut command = tiny_run::pleach(folder.path());
    let output = command
        .args("train --out none --extend 2".split(' '))
        .output()
        .unwrap();
    let said = tiny_run::words(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("extend") && said.contains("a run of pleach train"),
        "{said}"
    );
    assert!(!folder.path().join("none").exists());
}
