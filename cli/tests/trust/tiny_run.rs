//! A whole training run of twenty updates in less than a second, through the program itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Settings of the run: validation and a checkpoint with every update, unless the text of them is replaced.
pub const SETTINGS: &str = "\
num_envs = 4
warm_start = 'sjf'
warm_start_steps = 50
num_validation = 2
validate_every = 1
checkpoint_every = 1
[train]
num_updates = 20
num_steps = 64
group_size = 2
[train.ppo]
minibatch_size = 128
[train.network]
hidden = 8
context = 8
[train.imitation]
num_epochs = 1
";

/// The same with evolution strategies.
pub fn evolution() -> String {
    let evolution = "learner = 'evolution'\n[train.evolution]\nnum_pairs = 6\nnum_workloads = 2\n[train.ppo]";
    SETTINGS.replace("[train.ppo]", evolution)
}

/// What holds the time of day, and is not compared.
const CLOCKED: [&str; 2] = ["timing.jsonl", "tensorboard"];

/// The program, in `folder`.
pub fn pleach(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
    command.current_dir(folder).stdout(Stdio::null());
    command
}

/// The command that trains in `folder/name`, going on where it can. `settings` are written beside the run.
pub fn train(folder: &Path, name: &str, settings: &str) -> Command {
    fs::write(folder.join("settings.toml"), settings).unwrap();
    let mut command = pleach(folder);
    command
        .args("train --config settings.toml --num-jobs 20 --quiet --resume --out".split(' '))
        .arg(name);
    command
}

/// Runs a command that must succeed, and says nothing on standard error.
pub fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    let said = words(&output);
    assert_eq!(
        (output.status.code(), said.as_str()),
        (Some(0), ""),
        "{command:?}"
    );
}

/// What a command said on standard error.
pub fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every file below `folder`, sorted.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Two runs hold the same files with the same bytes, but for those with the time of day.
pub fn assert_same(one: &Path, other: &Path) {
    let list = |folder: &Path| -> Vec<(PathBuf, Vec<u8>)> {
        files(folder)
            .iter()
            .map(|path| (path.strip_prefix(folder).unwrap().to_path_buf(), path))
            .filter(|(name, _)| !CLOCKED.iter().any(|clocked| name.starts_with(clocked)))
            .map(|(name, path)| (name, fs::read(path).unwrap()))
            .collect()
    };
    let names = |files: &[(PathBuf, Vec<u8>)]| -> Vec<PathBuf> {
        files.iter().map(|(name, _)| name.clone()).collect()
    };
    let (one, other) = (list(one), list(other));
    assert!(one.len() >= 4, "{:?}", names(&one));
    assert_eq!(names(&one), names(&other));
    for ((name, one), (_, other)) in one.iter().zip(&other) {
        assert!(one == other, "{} differs", name.display());
    }
}

/// The `step` of each line of a JSONL file; every line must be whole.
pub fn steps(path: &Path) -> Vec<u64> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    text.lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["step"]
                .as_u64()
                .unwrap()
        })
        .collect()
}
