//! What becomes of folders: opened again, replaced, broken off, and not ours.

use std::collections::BTreeMap;

use std::fs;
use std::path::Path;

use super::folder::default_path;
use super::hash::{hash_bytes, hash_json};
use super::names::RUN_FILE;
use super::*;
use crate::error::Error;
use pleach_policies::ARTEFACTS_FILE;

fn config(load: f64) -> BTreeMap<&'static str, f64> {
    BTreeMap::from([("load", load)])
}

fn open(out: &Path, load: f64, existing: Existing) -> Result<RunFolder, Error> {
    RunFolder::open("evaluate", &config(load), 7, Some(out), existing)
}

#[test]
fn a_replaced_run_leaves_nothing_to_go_on_from_and_a_renewed_one_does_if_it_was_broken_off() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("r");
    let open = |load, existing| RunFolder::open("train", &config(load), 0, Some(&out), existing).unwrap();
    let state = out.join("checkpoints/3.ckpt");
    let put = || {
        fs::create_dir_all(out.join("checkpoints")).unwrap();
        fs::write(&state, b"x").unwrap();
    };
    // A run is broken off where it ends with a state: one that ends with nothing leaves nothing.
    let broken_off = |load, existing, was_there, words: &str| {
        let _run = open(load, existing);
        assert_eq!(state.exists(), was_there, "{words}");
        put();
    };
    broken_off(0.5, Existing::Renew, false, "new");
    broken_off(0.5, Existing::Renew, true, "broken off, same configuration");
    broken_off(0.6, Existing::Renew, false, "broken off, another configuration");
    broken_off(0.6, Existing::Replace, false, "replaced");
    open(0.6, Existing::Renew).finish().unwrap();
    open(0.6, Existing::Renew);
    assert!(!state.exists(), "finished");
}

#[test]
fn the_default_folder_is_named_by_command_config_and_seed() {
    let description = RunDescription {
        schema: 1,
        command: "train".into(),
        version: "0.1.0".into(),
        seed: 3,
        config_hash: hash_json(&serde_json::json!({})),
    };
    // SHA-256 of "{}" begins with 44136fa3.
    assert_eq!(default_path(&description), Path::new("runs/train-44136fa3-3"));
}

#[test]
fn a_finished_run_is_refused_resumed_or_replaced() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let run = open(&out, 0.8, Existing::Refuse).unwrap();
    run.write("old.csv", b"1").unwrap();
    let artefacts = run.finish().unwrap();
    let names: Vec<_> = artefacts.iter().map(|artefact| artefact.file.as_str()).collect();
    assert_eq!(names, ["config.toml", "old.csv", "run.json"]);

    let refused = open(&out, 0.8, Existing::Refuse).unwrap_err().to_string();
    assert!(refused.contains("--force"), "{refused}");
    open(&out, 0.8, Existing::Resume).unwrap().finish().unwrap();
    assert!(out.join("old.csv").exists());
    open(&out, 0.9, Existing::Replace).unwrap();
    assert!(!out.join("old.csv").exists());
    assert!(!out.join(ARTEFACTS_FILE).exists());
}

#[test]
fn a_run_of_another_configuration_is_not_resumed() {
    let root = tempfile::tempdir().unwrap();
    let run = open(root.path(), 0.8, Existing::Refuse).unwrap();
    run.write("first.csv", b"1").unwrap();
    drop(run);
    assert!(matches!(
        open(root.path(), 0.9, Existing::Resume),
        Err(error) if error.to_string().starts_with("contract: ")
    ));
    assert!(matches!(
        open(root.path(), 0.9, Existing::Refuse),
        Err(error) if error.to_string().starts_with("contract: ")
    ));
    // Broken off, and of the same configuration: goes on.
    open(root.path(), 0.8, Existing::Refuse).unwrap();
}

#[test]
fn a_run_that_was_refused_before_it_made_anything_does_not_block_the_corrected_one() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("look");
    let refused = open(&out, 0.8, Existing::Refuse).unwrap();
    refused.write(SETTINGS_FILE, b"of a training").unwrap();
    refused.write("metrics.jsonl", b"").unwrap();
    let left = [CONFIG_FILE, RUN_FILE, SETTINGS_FILE].map(|name| (name, fs::read(out.join(name)).unwrap()));
    drop(refused);
    assert!(!out.exists(), "all of it was the run's");
    // What was there before the run stays, and so does what it has made.
    fs::create_dir(&out).unwrap();
    drop(open(&out, 0.8, Existing::Refuse).unwrap());
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "the lock");
    let broken_off = open(&out, 0.8, Existing::Refuse).unwrap();
    broken_off.write("checkpoints/update-1.ckpt", b"").unwrap();
    drop(broken_off);
    assert!(out.join(RUN_FILE).is_file());
    fs::remove_dir_all(&out).unwrap();
    // A kill leaves what the run had written.
    fs::create_dir(&out).unwrap();
    for (name, bytes) in left {
        fs::write(out.join(name), bytes).unwrap();
    }
    // To go on in it is something else.
    assert!(open(&out, 0.9, Existing::Resume).is_err());
    let run = open(&out, 0.9, Existing::Refuse).unwrap();
    let files: Vec<String> = run
        .finish()
        .unwrap()
        .into_iter()
        .map(|found| found.file)
        .collect();
    assert_eq!(files, [CONFIG_FILE, RUN_FILE]);
    assert_eq!(fs::read_to_string(out.join(CONFIG_FILE)).unwrap(), "load = 0.9\n");
}

#[test]
fn what_killed_writers_left_is_cleared_away_and_is_not_a_run() {
    let root = tempfile::tempdir().unwrap();
    let left = |name: &str| {
        let path = root.path().join(name);
        fs::write(&path, "{").unwrap();
        path
    };
    // Killed before the first file had its name.
    let first = left(".run.json.4711.0.tmp");
    let run = open(root.path(), 0.8, Existing::Refuse).unwrap();
    run.write("state", b"x").unwrap();
    drop(run);
    let later = left(".validation.json.4711.12.tmp");
    let own = left("notes.tmp");
    open(root.path(), 0.8, Existing::Resume).unwrap();
    assert!(!first.exists() && !later.exists() && own.exists());
}

#[test]
fn a_folder_with_the_users_own_files_stays_untouched_even_with_force() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("thesis.tex"), "mine").unwrap();
    for existing in [Existing::Refuse, Existing::Resume, Existing::Replace] {
        assert!(matches!(open(root.path(), 0.8, existing), Err(Error::Problem(_))));
    }
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn artefacts_cannot_be_written_or_removed_outside_the_folder() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    fs::write(root.path().join("precious"), "x").unwrap();
    let run = open(&out, 0.8, Existing::Refuse).unwrap();
    assert!(run.write("../precious", b"y").is_err());
    assert!(run.write("/etc/precious", b"y").is_err());
    let hostile = vec![Artefact {
        file: "../precious".into(),
        size_bytes: 1,
        sha256: String::new(),
    }];
    atomic_file::write_json(&out.join(ARTEFACTS_FILE), &hostile).unwrap();
    drop(run);
    open(&out, 0.8, Existing::Replace).unwrap();
    assert_eq!(fs::read(root.path().join("precious")).unwrap(), b"x");
}

#[test]
fn two_runs_of_one_configuration_are_equal_byte_by_byte() {
    let root = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        open(&root.path().join(name), 0.8, Existing::Refuse)
            .unwrap()
            .finish()
            .unwrap();
    }
    for file in [RUN_FILE, CONFIG_FILE, ARTEFACTS_FILE] {
        let read = |name: &str| fs::read(root.path().join(name).join(file)).unwrap();
        assert_eq!(read("a"), read("b"));
    }
}

#[test]
fn a_finished_run_with_another_file_than_it_listed_is_refused_until_the_file_is_back_or_gone() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let run = open(&out, 0.8, Existing::Refuse).unwrap();
    let file = run.write("results.csv", b"policy,jct\nfifo,30\n").unwrap();
    run.finish().unwrap();
    for (text, words) in [
        (b"policy,jct\nfifo,20\n".as_slice(), "found SHA-256 "),
        (b"policy,jct\n", "found 11 bytes"),
    ] {
        fs::write(&file, text).unwrap();
        let said = open(&out, 0.8, Existing::Resume).unwrap_err().to_string();
        for words in [words, "results.csv", "artefacts.json", "--resume", "--force"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        let listed = hash_bytes(b"policy,jct\nfifo,30\n");
        assert!(said.contains(&listed), "{said}");
        assert!(
            verify(&out, &["run.json"], "").is_ok(),
            "another file was asked for"
        );
        assert!(verify(&out, &["results.csv"], "").is_err());
    }
    fs::remove_file(&file).unwrap();
    open(&out, 0.8, Existing::Resume).unwrap().finish().unwrap();
    // A resumed run passes over a checkpoint that says of itself that it is damaged.
    fs::write(out.join("network.ckpt"), b"PLEACHCK and more").unwrap();
    open(&out, 0.8, Existing::Resume).unwrap().finish().unwrap();
    fs::write(out.join("network.ckpt"), b"PLEACHCK").unwrap();
    open(&out, 0.8, Existing::Resume).unwrap();
}
