//! Every minting says why, in the file and in CHANGELOG.md.

use pleach_tests::golden::{Golden, digest_of};

/// Golden files, and nothing else lies in their folder.
const FILES: [&str; 17] = [
    "columns",
    "dealt",
    "environments",
    "evaluation",
    "exports",
    "generators",
    "json-evaluate",
    "json-mixed",
    "json-serve",
    "json-site",
    "json-suite",
    "json-sweep",
    "learning",
    "networks",
    "schedulers",
    "simulators",
    "trees",
];

#[test]
fn every_golden_file_is_that_of_its_last_minting_and_says_why() {
    for file in FILES {
        let golden = Golden::read(file);
        let last = golden.mintings.last().map(|minting| minting.rows.clone());
        assert_eq!(
            last,
            Some(digest_of(&golden.rows)),
            "tests/goldens/{file}.txt was edited by hand or merged: mint it"
        );
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/goldens");
    let found = std::fs::read_dir(folder).unwrap();
    let mut found: Vec<String> = found
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, FILES.map(|file| format!("{file}.txt")));
}

#[test]
fn every_reason_to_mint_anew_stands_under_changes_results_in_the_changelog() {
    let changelog = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../CHANGELOG.md")).unwrap();
    let mut under = "";
    let mut changes = String::new();
    for line in changelog.lines() {
        if line.starts_with('#') {
            under = line;
        } else if under.contains("Changes results") {
            changes.push_str(line);
            changes.push(' ');
        }
    }
    let changes = words(&changes);
    for file in FILES {
        for minting in Golden::read(file).mintings.iter().skip(1) {
            assert!(
                changes.contains(&words(&minting.reason)),
                "CHANGELOG.md has no line under *Changes results* with the words {:?}, for which {file} was minted anew",
                minting.reason
            );
        }
    }
}

/// In one line, in lower case.
fn words(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase()
}
