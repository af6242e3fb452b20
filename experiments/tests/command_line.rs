//! The program as a batch system sees it: exit codes, what goes to which stream, and files.

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

#[test]
fn a_plan_is_written_once_and_its_status_is_an_array_list() {
    let folder = tempfile::tempdir().unwrap();
    let grid = "name = 'load'\nseeds = 3\n[grid]\nworkload.load = [0.6, 0.8]\n";
    fs::write(folder.path().join("grid.toml"), grid).unwrap();
    let plan = pleach(folder.path(), "sweep plan --config grid.toml --out s/sweep.json");
    assert_eq!(plan.status.code(), Some(0), "{}", text(&plan.stderr));
    assert_eq!(text(&plan.stdout), "6 units in s/sweep.json\nto run: 0-5\n");
    let first = fs::read(folder.path().join("s/sweep.json")).unwrap();
    assert_eq!(
        pleach(folder.path(), "sweep plan --config grid.toml --out s/sweep.json")
            .status
            .code(),
        Some(0)
    );
    assert_eq!(fs::read(folder.path().join("s/sweep.json")).unwrap(), first);
    let status = pleach(folder.path(), "sweep status --manifest s/sweep.json --missing");
    assert_eq!(
        (status.status.code(), text(&status.stdout)),
        (Some(0), "0-5\n".to_string())
    );
}

#[test]
fn an_input_that_cannot_be_used_exits_with_2_and_says_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("grid.toml"), "name = 'load'\nsedes = 3\n").unwrap();
    let plan = pleach(folder.path(), "sweep plan --config grid.toml");
    assert_eq!(plan.status.code(), Some(2));
    assert!(plan.stdout.is_empty());
    let words = text(&plan.stderr);
    assert!(
        words.contains("grid.toml, line 2, column 1") && words.contains("`seeds`"),
        "{words}"
    );
    assert_eq!(pleach(folder.path(), "sweep status").status.code(), Some(2));
    assert_eq!(pleach(folder.path(), "prune").status.code(), Some(2));
    fs::write(folder.path().join("sweep.json"), "{}").unwrap();
    assert_eq!(
        pleach(folder.path(), "sweep status --manifest sweep.json")
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn a_sweep_without_results_cannot_be_gathered() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("grid.toml"), "name = 'load'\n").unwrap();
    pleach(folder.path(), "sweep plan --config grid.toml --out sweep.json");
    let gather = pleach(folder.path(), "sweep gather --manifest sweep.json --partial");
    assert_eq!(gather.status.code(), Some(1));
    assert!(!folder.path().join("results.csv").exists());
}
