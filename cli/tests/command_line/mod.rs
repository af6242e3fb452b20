//! The program as a batch system sees it: exit codes, what goes to which stream, and files.

#[cfg(unix)]
mod emits;
mod experimenter;
mod explain;
mod imports;
mod learning;
mod networks;
mod odd_inputs;
mod own_lists;
mod pages;
mod processors;
#[cfg(all(unix, feature = "lab"))]
mod readme;
mod refusals;
mod refused;
mod routers;
mod schedules;
mod serve_and_train;
pub mod site;
#[cfg(feature = "lab")]
mod speed;
mod sweeps;
mod trees;
mod when;
mod workloads;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn pleach(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pleach"));
    command
        .current_dir(folder)
        .args(line.split_whitespace())
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Every file below `folder` with its bytes, but for those that depend on the clock.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "tensorboard" {
                open.push(path);
            } else if path.is_file() && name != "timing.jsonl" {
                found.push((name, fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn assert_same_files(one: &Path, other: &Path) {
    let (one, other) = (files(one), files(other));
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|file| file.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&one), names(&other));
    for ((name, one), (_, other)) in one.iter().zip(&other) {
        assert!(one == other, "{name} differs");
    }
}

pub(crate) fn succeed(folder: &Path, line: &str) -> String {
    let output = pleach(folder, line);
    assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
    text(&output.stdout)
}

const SMALL: &str = "\
num_envs = 4
warm_start_steps = 100
num_validation = 4
validate_every = 1
checkpoint_every = 1
[train]
num_updates = 4
num_steps = 64
group_size = 2
[train.network]
hidden = 8
context = 8
[train.imitation]
num_epochs = 2
";
