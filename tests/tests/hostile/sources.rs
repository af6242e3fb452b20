//! A reader that is forgotten is seen: every file of product code that opens a file or parses a document is one of a reader's, or
//! stands here with the reason why not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::READERS;

/// What opens a file or parses a document.
const CALLS: [&str; 10] = [
    "File::open(",
    "fs::read(",
    "read_to_string(",
    "read_to_end(",
    "from_reader(",
    "toml::from_str",
    "serde_json::from_str",
    "serde_json::from_slice",
    "serde_json::from_reader",
    "FromStr for ",
];

/// What is read elsewhere, and where.
const ELSEWHERE: [(&str, &str); 24] = [
    (
        "cli/src/commands/distill/teacher.rs",
        "settings of a run, as the reader `training` has them",
    ),
    ("cli/src/commands/emit.rs", "bytes that are compared, no more"),
    (
        "cli/src/commands/sweep_unit.rs",
        "values of a manifest that was read",
    ),
    ("cli/src/commands/workload.rs", "bytes that are compared, no more"),
    (
        "deploy/daemon/src/slurm/command.rs",
        "what programs print: the readers `slurm-*`",
    ),
    (
        "deploy/daemon/src/slurm/pins.rs",
        "names, else none: deploy/daemon/tests",
    ),
    ("env/src/failures/tests/by_age_data.rs", "a test's table"),
    ("experiments/src/run_folder/hash.rs", "bytes that are hashed"),
    (
        "experiments/src/worlds/environments.rs",
        "settings of one's own program in Python: python/tests",
    ),
    (
        "experiments/src/worlds/deals/environment.rs",
        "settings of one's own program in Python: python/tests",
    ),
    (
        "experiments/src/sweep/emit/call.rs",
        "TOML that this program wrote just now",
    ),
    (
        "experiments/src/train/extend.rs",
        "a line of a log: cli/tests/trust/extended.rs",
    ),
    (
        "experiments/src/train/network_card.rs",
        "a text of a network that was read",
    ),
    (
        "experiments/src/train/unit.rs",
        "the exchange of units: cli/tests/trust/units.rs",
    ),
    (
        "python/src/compare.rs",
        "JSON that the package makes: python/tests",
    ),
    (
        "python/src/policy.rs",
        "JSON that the package makes: python/tests",
    ),
    (
        "python/src/settings.rs",
        "JSON that the package makes: python/tests",
    ),
    ("python/src/train.rs", "JSON that the package makes: python/tests"),
    (
        "python/src/workload.rs",
        "JSON that the package makes: python/tests",
    ),
    ("scheduler/core/src/external_id.rs", "the reader `words-cells`"),
    ("scheduler/problem/src/files.rs", "the bound of all readers"),
    (
        "workloads/tables/src/without_parquet.rs",
        "the first bytes of a file, where Parquet is not compiled",
    ),
    ("cli/src/flags/tests/reference.rs", "a test of the documents"),
    (
        "experiments/src/worlds/requests/latencies.rs",
        "measured latencies: `files_that_are_no_measurements_are_refused_with_the_line`",
    ),
];

/// Files of Rust below a folder.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// Product code of a file: what stands before its tests.
fn reads(text: &str) -> bool {
    let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut lines = product
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.any(|line| CALLS.iter().any(|call| line.contains(call)))
}

#[test]
fn every_file_of_the_product_that_reads_is_of_a_reader() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let members = manifest
        .split("members = [")
        .nth(1)
        .and_then(|rest| rest.split(']').next())
        .unwrap();
    let mut found = Vec::new();
    for member in members.split(',').map(|member| member.trim().trim_matches('"')) {
        let is_product = !member.starts_with("tests") && !member.starts_with("lab");
        if is_product && !member.is_empty() {
            files(&root.join(member).join("src"), &mut found);
        }
    }
    let name = |path: &Path| {
        path.strip_prefix(root)
            .unwrap()
            .to_string_lossy()
            .replace('\\', "/")
    };
    let is_test = |name: &str| name.ends_with("tests.rs");
    let reading: BTreeSet<String> = found
        .iter()
        .filter(|path| reads(&std::fs::read_to_string(path).unwrap()))
        .map(|path| name(path))
        .filter(|name| !is_test(name))
        .collect();
    assert!(reading.len() > 50, "{reading:?}");
    let mut known: BTreeMap<&str, &str> = ELSEWHERE.into_iter().collect();
    for reader in READERS.into_iter().flatten() {
        known.extend(reader.sources.iter().map(|source| (*source, reader.name)));
    }
    let forgotten: Vec<&String> = reading
        .iter()
        .filter(|name| !known.contains_key(name.as_str()))
        .collect();
    assert!(
        forgotten.is_empty(),
        "no reader of tests/tests/hostile is said to go through {forgotten:?}: add one with seeds, or say in \
         ELSEWHERE where it is tried"
    );
    let stale: Vec<&&str> = known.keys().filter(|name| !reading.contains(**name)).collect();
    assert!(stale.is_empty(), "these read nothing: {stale:?}");
}
