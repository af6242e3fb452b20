//! Every column by itself: what it is, and every number of it that several environments show. A column may not come to mean
//! something else under its name, for files that read it would read something else.

use std::fs;
use std::path::{Path, PathBuf};

use pleach_env::{AutoresetMode, Batch, EnvConfig, Seed, VecEnv, VectorEnv, random_action};
use pleach_network::TrainedNetwork;
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::tree::{Export, Tree};

use pleach_tests::golden::{Digest, Row, hold};

/// Environments in which every column of a candidate varies.
const IDS: [&str; 6] = [
    "Pleach/PhillyPreempt-v0",
    "Pleach/PhillyShare-v1",
    "Pleach/GavelMulti-v1",
    "Pleach/HeliosTenants-v1",
    "Pleach/Elastic-v1",
    "Pleach/Synergy-v1",
];
/// Decision points of each.
const NUM_POINTS: usize = 400;

#[test]
fn every_column_is_and_says_what_it_did() {
    let schema = FeatureSchema::current();
    let lines = schema.canonical();
    let lines: Vec<&str> = lines.lines().skip(1).collect();
    let mut digests = vec![Digest::new(); lines.len()];
    let mut extremes = vec![(f32::INFINITY, f32::NEG_INFINITY); lines.len()];
    for id in IDS {
        let config = EnvConfig::registered(id).unwrap();
        let mut envs = VecEnv::new(&config, 1, AutoresetMode::SameStep).unwrap();
        let spaces = envs.spaces();
        let mut batch = Batch::new(spaces, 1);
        envs.reset(&[5], &mut batch).unwrap();
        let mut random = Seed(5).stream("golden", 1);
        for _ in 0..NUM_POINTS {
            let mut note = |column: usize, value: f32| {
                digests[column].f32s(&[value]);
                let (low, high) = &mut extremes[column];
                (*low, *high) = (low.min(value), high.max(value));
            };
            let rows = batch
                .candidates
                .chunks_exact(spaces.num_features)
                .zip(&batch.mask);
            for (row, _) in rows.filter(|(_, is_admissible)| **is_admissible) {
                row.iter()
                    .enumerate()
                    .for_each(|(column, value)| note(column, *value));
            }
            for (column, value) in batch.global.iter().enumerate() {
                note(spaces.num_features + column, *value);
            }
            let action = random_action(&batch.mask, &mut random);
            envs.step(&[action], &mut batch).unwrap();
        }
    }
    let rows = lines.iter().zip(digests).zip(extremes);
    let rows = rows.map(|((line, digest), (low, high))| Row::new(*line, digest, format!("{low} to {high}")));
    hold("columns", rows.collect());
}

/// Reference policies, and the tree of examples and tests, by name.
pub(super) fn reference_files() -> Vec<PathBuf> {
    let folders = ["../checkpoints/reference", "trees"];
    let found =
        folders.map(|folder| fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap());
    let mut files: Vec<PathBuf> = found
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort_by_key(|path| path.file_name().map(std::ffi::OsStr::to_owned));
    files
}

#[test]
fn every_reference_file_is_read_and_a_tree_written_again_has_the_same_bytes() {
    let (mut num_trees, mut num_networks) = (0, 0);
    for path in reference_files() {
        let name = path.display();
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("ckpt") => {
                TrainedNetwork::load(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
                num_networks += 1;
            }
            _ if path.to_string_lossy().ends_with("-tree.json") => {
                let text = fs::read_to_string(&path).unwrap();
                let tree = Tree::from_json(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(tree.to_json() == text, "{name} is written otherwise");
                num_trees += 1;
            }
            _ => {}
        }
    }
    assert_eq!((num_trees, num_networks), (7, 27));
}

#[test]
fn every_reference_tree_is_exported_as_it_was() {
    let mut rows = Vec::new();
    for path in reference_files() {
        if !path.to_string_lossy().ends_with("-tree.json") {
            continue;
        }
        let tree = Tree::load(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for form in Export::ALL {
            let text = tree.export(form);
            let mut digest = Digest::new();
            digest.text(&text);
            let figures = format!("{} lines", text.lines().count());
            rows.push(Row::new(format!("{name} as {}", form.name()), digest, figures));
        }
    }
    hold("exports", rows);
}
