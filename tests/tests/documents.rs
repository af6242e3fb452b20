//! Documents stay true: what they name exists, and what is generated is up to date.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use pleach_scheduler::features::FeatureSchema;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Words in back-quotes that look like paths of this repository.
fn paths_in(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let rooms = [
        "scheduler/",
        "baselines/",
        "env/",
        "agents/",
        "distill/",
        "experiments/",
        "reproduce/",
        "cli/",
        "tests/",
        "docs/",
        "checkpoints/",
    ];
    quoted
        .filter(|word| rooms.iter().any(|room| word.starts_with(room)) && !word.contains(['*', ' ', '{']))
        .collect()
}

#[test]
fn every_path_that_the_documents_name_exists() {
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = read(document);
        let paths = paths_in(&text);
        for path in &paths {
            assert!(
                root().join(path).exists(),
                "{document} names {path}, which does not exist"
            );
        }
        assert!(
            document != "ARCHITECTURE.md" || paths.len() > 20,
            "the code map names its files"
        );
    }
}

#[test]
fn every_link_to_a_file_leads_somewhere() {
    let documents = std::fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let tops =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name));
    for document in documents
        .chain(tops)
        .filter(|path| path.extension().is_some_and(|ext| ext == "md"))
    {
        let text = std::fs::read_to_string(&document).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or("");
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let found = document.parent().unwrap().join(file);
            assert!(
                found.exists(),
                "{} links to {target}, which does not exist",
                document.display()
            );
        }
    }
}

#[test]
fn the_feature_page_is_the_schema() {
    let expected = FeatureSchema::current().markdown();
    assert_eq!(
        read("docs/features.md"),
        expected,
        "write it anew with: pleach features > docs/features.md"
    );
}
