//! `network.ckpt` missing, damaged or another one: found before the run goes on, made again or refused.

use std::fs;
use std::path::Path;
use std::process::Output;

use super::tiny_run::{self, SETTINGS};

fn go_on(folder: &Path, settings: &str) -> Output {
    tiny_run::train(folder, "run", settings).output().unwrap()
}

/// The run stopped short of its last updates, as a kill leaves it.
fn break_off(run: &Path, last: u64) {
    fs::remove_file(run.join("artefacts.json")).unwrap();
    for entry in fs::read_dir(run.join("checkpoints")).unwrap() {
        let path = entry.unwrap().path();
        if path > run.join(format!("checkpoints/update-{last:08}.ckpt")) {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn a_kept_network_that_is_missing_or_damaged_is_made_again_with_one_line_and_the_run_ends_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SETTINGS.replace("checkpoint_every = 1", "checkpoint_every = 1\nkeep_last = 100");
    for name in ["whole", "run"] {
        tiny_run::succeed(&mut tiny_run::train(folder.path(), name, &settings));
    }
    let (whole, run) = (folder.path().join("whole"), folder.path().join("run"));
    let kept = run.join("network.ckpt");
    let good = fs::read(&kept).unwrap();
    let damages: [(&str, &dyn Fn(), &str); 3] = [
        ("finished", &|| fs::remove_file(&kept).unwrap(), "missing"),
        (
            "finished",
            &|| fs::write(&kept, &good[..good.len() / 2]).unwrap(),
            "damaged",
        ),
        (
            "broken off",
            &|| fs::write(&kept, b"PLEACHCK").unwrap(),
            "cut short",
        ),
    ];
    for (state, damage, words) in damages {
        if state == "broken off" {
            break_off(&run, 17);
        }
        damage();
        let output = go_on(folder.path(), &settings);
        let said = tiny_run::words(&output);
        assert_eq!(
            (output.status.code(), said.lines().count()),
            (Some(0), 1),
            "{said}"
        );
        assert!(
            said.contains("network.ckpt") && said.contains(words) && said.contains("made again"),
            "{said}"
        );
        tiny_run::assert_same(&whole, &run);
    }
}

#[test]
fn where_the_best_is_in_no_checkpoint_any_more_the_best_of_the_others_is_kept_and_the_loss_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SETTINGS.replace("checkpoint_every = 1", "checkpoint_every = 1\nkeep_last = 1");
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "run", &settings));
    let run = folder.path().join("run");
    let curve = || -> Vec<serde_json::Value> {
        serde_json::from_slice(&fs::read(run.join("validation.json")).unwrap()).unwrap()
    };
    // The history says that the network after 7 updates was by far the best.
    break_off(&run, 20);
    let mut points = curve();
    points[7]["ratio"] = 0.1.into();
    points[7]["ratios"] = vec![0.1; 2].into();
    fs::write(run.join("validation.json"), serde_json::to_vec(&points).unwrap()).unwrap();
    fs::remove_file(run.join("network.ckpt")).unwrap();
    let output = go_on(folder.path(), &settings);
    let said = tiny_run::words(&output);
    assert_eq!(
        (output.status.code(), said.lines().count()),
        (Some(0), 1),
        "{said}"
    );
    assert!(
        said.contains("the best one, 0.100 after 7 updates, is in no checkpoint"),
        "{said}"
    );
    assert_eq!(curve()[7]["lost"], true);
    assert!(curve()[20].get("lost").is_none());
    // Nothing more to say of it.
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "run", &settings));
}

#[test]
fn a_good_checkpoint_in_the_place_of_the_kept_network_is_refused_wherever_the_run_is_used() {
    let folder = tempfile::tempdir().unwrap();
    tiny_run::succeed(&mut tiny_run::train(folder.path(), "run", SETTINGS));
    let run = folder.path().join("run");
    let other = fs::read(run.join("checkpoints/update-00000020.ckpt")).unwrap();
    fs::write(run.join("network.ckpt"), other).unwrap();
    for line in [
        "evaluate --policy sjf,run --num-jobs 20 --seeds 1",
        "distill --teacher run --num-jobs 20 --episodes 1",
        "train --fine-tune run --num-jobs 20 --out other",
        "train --out run --resume",
    ] {
        let output = tiny_run::pleach(folder.path())
            .args(line.split(' '))
            .output()
            .unwrap();
        let said = tiny_run::words(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        for words in [
            "run/network.ckpt",
            "SHA-256",
            "artefacts.json",
            "Put the run's own file back",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
    // The file itself may be meant.
    let line = "evaluate --policy sjf,run/network.ckpt --num-jobs 20 --seeds 1 --quiet";
    tiny_run::succeed(tiny_run::pleach(folder.path()).args(line.split(' ')));
    // Removed, it is made again.
    fs::remove_file(run.join("network.ckpt")).unwrap();
    let output = tiny_run::pleach(folder.path())
        .args("train --out run --resume --quiet".split(' '))
        .output();
    assert_eq!(output.unwrap().status.code(), Some(0));
}
