//! Each crate has one program of integration tests, so that little is linked, and no file of tests is left out of it: Cargo finds
//! none by itself (`autotests = false`), and a file that no `mod` line names would never run.

use std::path::{Path, PathBuf};

use crate::cargo::crate_folders;

/// Crates that have a second program, and why.
const SECOND: [(&str, &str); 1] = [("env", "allocations")]; // It counts what the allocator of the whole program is asked for.

/// The file of a crate's program, from the folder of the crate.
const PROGRAM: [&str; 2] = ["tests", "main.rs"];

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    found
}

/// Crates with a folder of integration tests in Rust.
fn crates() -> Vec<PathBuf> {
    let has_tests = |path: &PathBuf| {
        let tests = path.join("tests");
        tests.is_dir()
            && entries(&tests)
                .iter()
                .any(|file| file.extension().is_some_and(|end| end == "rs"))
    };
    crate_folders().into_iter().filter(has_tests).collect()
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

/// Files and folders beside `door` that it does not name as a module; and so on in the folders that it names.
fn left_out(door: &Path, is_program: &dyn Fn(&str) -> bool, found: &mut Vec<String>) {
    let text = read(door);
    let named: Vec<&str> = text
        .lines()
        .filter_map(|line| {
            line.trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ")
                .strip_prefix("mod ")?
                .strip_suffix(';')
        })
        .collect();
    for path in entries(door.parent().unwrap()) {
        let inner = path.join("mod.rs");
        let is_module = inner.is_file() || path.extension().is_some_and(|end| end == "rs");
        let module = name(&path);
        if !is_module || path == door || is_program(&module) {
            continue;
        }
        if !named.contains(&module.as_str()) {
            found.push(path.display().to_string());
        } else if inner.is_file() {
            left_out(&inner, &|_| false, found);
        }
    }
}

#[test]
fn every_file_of_tests_is_part_of_the_one_program_of_its_crate() {
    let crates = crates();
    assert!(crates.len() >= 8, "{crates:?}");
    let mut found = Vec::new();
    for folder in &crates {
        let crate_name = name(folder);
        let manifest: toml::Table = read(&folder.join("Cargo.toml")).parse().unwrap();
        let automatic = manifest["package"].get("autotests");
        assert_eq!(automatic, Some(&false.into()), "{crate_name}");
        let programs: Vec<(&str, &str)> = manifest["test"]
            .as_array()
            .unwrap()
            .iter()
            .map(|test| (test["name"].as_str().unwrap(), test["path"].as_str().unwrap()))
            .collect();
        assert_eq!(programs[0], (crate_name.as_str(), &*PROGRAM.join("/")));
        let is_second = |module: &str| SECOND.contains(&(crate_name.as_str(), module));
        for (program, path) in &programs[1..] {
            assert!(is_second(program), "{crate_name} has a second program, {program}");
            assert_eq!(*path, format!("tests/{program}.rs"));
        }
        left_out(&folder.join(PROGRAM.join("/")), &is_second, &mut found);
    }
    assert!(
        found.is_empty(),
        "no `mod` line names these:\n{}",
        found.join("\n")
    );
}
