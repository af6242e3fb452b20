//! Documents stay true: what they name exists, and what is generated is up to date.

use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The folders in which paths of this repository begin.
const ROOMS: [&str; 20] = [
    "scheduler/",
    "tables/",
    "verify/",
    "workloads/",
    "policies/",
    "dealing/",
    "network/",
    "env/",
    "agents/",
    "distill/",
    "experiments/",
    "lab/",
    "cli/",
    "python/",
    "daemon/",
    "kubernetes/",
    "tests/",
    "conventions/",
    "docs/",
    "checkpoints/",
];

/// Words in back-quotes that look like paths of this repository.
fn paths_in(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted
        .filter(|word| ROOMS.iter().any(|room| word.starts_with(room)) && !word.contains(['*', ' ', '{']))
        .collect()
}

/// Paths of sources and documents that a source names, in comments or in strings, also over the end of a line.
fn files_named_in(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .map(|line| match line.trim_start().strip_suffix('\\') {
            Some(continued) => continued.to_string(),
            None => line.trim_start().to_string() + "\n",
        });
    let joined: String = lines.collect();
    let is_part = |letter: char| letter.is_alphanumeric() || "/._-".contains(letter);
    let words = joined.split(|letter: char| !is_part(letter));
    words
        .filter(|word| ROOMS.iter().any(|room| word.starts_with(room)))
        .map(|word| word.trim_end_matches('.').to_string())
        .filter(|word| [".rs", ".md", ".sh"].iter().any(|end| word.ends_with(end)))
        .collect()
}

#[test]
fn every_file_that_a_source_names_exists() {
    let mut folders = vec![root().to_path_buf()];
    let mut num_named = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(path);
                continue;
            }
            if !path.extension().is_some_and(|end| end == "rs" || end == "sh") {
                continue;
            }
            for named in files_named_in(&std::fs::read_to_string(&path).unwrap()) {
                num_named += 1;
                assert!(
                    root().join(&named).exists(),
                    "{} names {named}, which does not exist",
                    path.display()
                );
            }
        }
    }
    assert!(num_named > 60, "only {num_named} files were found named");
}

#[test]
fn every_path_that_the_documents_name_exists() {
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/walks.md"] {
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

/// All documents of the repository.
fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .map(|name| root().join(name))
        .into();
    found.push(root().join("checkpoints/README.md"));
    let mut folders = vec![root().join("docs"), root().join("lab/notes")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Lines outside fences of code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchors that the headings of a document make: lower case, blanks as hyphens, no other signs.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).filter_map(|(_, line)| line.strip_prefix('#'));
    headings
        .map(|heading| {
            let title = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// Pages of the site that are made from the programs: the tests that make them hold the links into them.
const GENERATED: [&str; 3] = ["features.md", "flags.md", "python-api.md"];

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let found = match file {
                "" => document.clone(),
                _ => document.parent().unwrap().join(file),
            };
            let from = document.display();
            if GENERATED.iter().any(|page| found.ends_with(page)) && !found.exists() {
                continue;
            }
            assert!(found.exists(), "{from} links to {target}, which does not exist");
            if !anchor.is_empty() {
                let there = anchors(&std::fs::read_to_string(&found).unwrap());
                assert!(
                    there.iter().any(|known| known == anchor),
                    "{from} links to {target}; the headings there are {there:?}"
                );
            }
        }
    }
}

/// Whether a path from the root of the repository is one of the site's, which `tests/conventions/site.sh` makes.
fn is_of_site(path: &Path) -> bool {
    path.starts_with("docs") || path.starts_with("lab/notes")
}

#[test]
fn documents_of_the_site_link_to_nothing_outside_it() {
    for document in documents() {
        let name = document.strip_prefix(root()).unwrap();
        if !is_of_site(name) {
            continue;
        }
        let text = std::fs::read_to_string(&document).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let mut found = name.parent().unwrap().to_path_buf();
            for part in target.split('/') {
                match part {
                    ".." => assert!(found.pop(), "{} links to {target}", name.display()),
                    _ => found.push(part),
                }
            }
            assert!(
                target.contains("://") || is_of_site(&found),
                "{} links to {target}, which the site does not hold: name its path in back-quotes",
                document.display()
            );
        }
    }
}

#[test]
fn the_site_has_a_page_for_every_document_of_docs() {
    let summary = read("docs/SUMMARY.md");
    for document in documents() {
        let name = document.strip_prefix(root()).unwrap();
        if !is_of_site(name) || name == Path::new("docs/SUMMARY.md") {
            continue;
        }
        let link = match name.strip_prefix("docs") {
            Ok(name) => format!("]({})", name.display()),
            Err(_) => format!("](../{})", name.display()),
        };
        assert!(
            summary.contains(&link),
            "docs/SUMMARY.md does not list {}",
            name.display()
        );
    }
}

#[test]
fn lines_of_prose_have_at_most_130_characters() {
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for (number, line) in prose(&text) {
            let is_bound = line.starts_with('|') || line.contains("://") || line.contains("](");
            assert!(
                is_bound || line.chars().count() <= 130,
                "{}, line {}: {line}",
                document.display(),
                number + 1
            );
        }
    }
}

/// Words of a document, those of tables and blocks included.
fn num_words(document: &str) -> usize {
    read(document).split_whitespace().count()
}

#[test]
fn documents_that_everybody_reads_stay_short() {
    assert!(
        num_words("ARCHITECTURE.md") < 2_000,
        "{}",
        num_words("ARCHITECTURE.md")
    );
    let lines = read("README.md").lines().count();
    assert!((60..=90).contains(&lines), "README.md has {lines} lines");
}
