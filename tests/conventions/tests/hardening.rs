//! `docs/deploy-hardening.md` names the test that holds each of its lines: they are there, and are tests.

use std::path::Path;

const PAGE: &str = "docs/deploy-hardening.md";

fn read(name: &str) -> String {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    std::fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{PAGE} names {name}: {error}"))
}

/// Whether a file has a test of that name: a function that an attribute makes a test, or that `proptest!` does; in Python a method.
fn has_test(file: &str, text: &str, test: &str) -> bool {
    if file.ends_with(".py") {
        return text.contains(&format!("    def {test}(self")) && text.contains(&format!("steps.{test}"));
    }
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let begins = |line: &str| {
        ["fn ", "async fn "]
            .iter()
            .any(|word| line.starts_with(&format!("{word}{test}(")))
    };
    let Some(at) = lines.iter().position(|line| begins(line)) else {
        return false;
    };
    let before = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
    let attributes: Vec<_> = before.collect();
    let is_test = |line: &&&str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    attributes.iter().any(is_test) && !attributes.iter().any(|line| line.starts_with("#[ignore"))
}

/// Why a word of the page is no test; none where it is one.
fn why_not(word: &str) -> Option<String> {
    let no = |why: &str| Some(format!("{word}: {why}"));
    if let Some((file, test)) = word.split_once("::") {
        return (!has_test(file, &read(file), test)).then(|| no("no test of this name").unwrap());
    }
    let (file, step) = word.split_once('#').unwrap_or((word, ""));
    if !file.ends_with(".sh") {
        return no("neither FILE::test nor a script");
    }
    let text = read(file);
    let has_step = ['\'', '"']
        .iter()
        .any(|quote| text.contains(&format!("echo {quote}{step}. ")));
    (!step.is_empty() && !has_step).then(|| no("no step of this number").unwrap())
}

#[test]
fn every_line_of_what_was_wrong_names_tests_that_there_are_or_says_that_there_are_none() {
    let page = read(PAGE);
    let mut num_named = 0;
    let mut bad = Vec::new();
    for line in page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.ends_with("| held by |"))
    {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let held = cells.last().unwrap().trim();
        let names: Vec<&str> = held.split('`').skip(1).step_by(2).collect();
        if names.is_empty() && held != "**nothing**" {
            bad.push(format!("says neither a test nor **nothing**: {line}"));
        }
        num_named += names.len();
        bad.extend(names.into_iter().filter_map(why_not));
    }
    assert!(bad.is_empty(), "{PAGE}:\n{}", bad.join("\n"));
    assert!(num_named > 80, "only {num_named} tests are named");
}

#[test]
fn a_name_that_is_no_test_is_found_out() {
    for word in [
        "deploy/daemon/tests/site.rs::no_such_test",
        "deploy/daemon/tests/site.rs::job",
        "deploy/daemon/tests/order_slurm.sh#99",
        "deploy/daemon/tests/site.rs",
        "deploy/kubernetes/tests/real/steps.py::add_job",
    ] {
        assert!(why_not(word).is_some(), "{word}");
    }
    assert_eq!(why_not("deploy/daemon/tests/order_slurm.sh#2"), None);
}
