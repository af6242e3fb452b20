//! The library of the Python package is made of what the tests have compiled: every crate below it has the features there that it
//! has in the tests of the workspace, or it would be compiled once more, and all crates of ours above it.

use std::collections::BTreeMap;

use crate::cargo::cargo;

/// Crates of a selection with their features; a crate may be there twice, for programs and for macros.
fn features(selection: &[&str]) -> BTreeMap<String, Vec<String>> {
    let tree = ["tree", "--prefix", "none", "--format", "{p};{f}"];
    let output = cargo(&[&tree[..], selection].concat());
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in output.lines() {
        let Some((name, features)) = line.split_once(';') else {
            continue;
        };
        // A crate that was listed before is marked with a star.
        let features = features.trim_end_matches("(*)").trim_end().to_owned();
        found
            .entry(name.trim_end().to_owned())
            .or_default()
            .push(features);
    }
    found
}

#[test]
fn the_python_package_needs_no_crate_with_features_that_the_tests_have_not() {
    let of_python = features(&["--package", "pleach-python", "--edges", "normal,build"]);
    let of_tests = features(&["--workspace", "--edges", "normal,build,dev"]);
    assert!(of_python.len() > 100, "only {} crates were read", of_python.len());
    let mut others = Vec::new();
    for (name, sets) in &of_python {
        let there = &of_tests[name];
        for set in sets.iter().filter(|set| !there.contains(set)) {
            others.push(format!("{name}: {set}; in the tests: {}", there.join(" or ")));
        }
    }
    others.dedup();
    assert!(
        others.is_empty(),
        "python/Cargo.toml has to name these with the features of the tests (macros below [build-dependencies]):\n{}",
        others.join("\n")
    );
}
