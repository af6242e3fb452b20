//! Files and functions stay small enough to be read at a sitting: at most 500 lines a file and 100 a function, tests left out.
//!
//! Read from the text as `cargo fmt` lays it out: a function ends at the first closing brace that stands as far in as the
//! line that opens it.

use std::path::{Path, PathBuf};

use crate::cargo::crate_folders;

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 100;

pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// All files below `src` of every crate but this one, without those of tests.
pub fn product_files() -> Vec<PathBuf> {
    let crates = crate_folders().into_iter();
    let mut folders: Vec<PathBuf> = crates
        .filter(|path| !path.ends_with("tests"))
        .map(|path| path.join("src"))
        .collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
            if path.is_dir() && !is_test {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Where the item that starts at `start` ends: a line that closes it, or its only line.
fn end(lines: &[&str], start: usize) -> usize {
    let first = lines[start];
    if first.ends_with(['}', ';']) {
        return start;
    }
    let closing = |line: &&str| indent(line) == indent(first) && matches!(line.trim(), "}" | ");");
    let rest = lines[start + 1..].iter().position(closing);
    rest.map_or(lines.len() - 1, |after| start + 1 + after)
}

/// The lines of a file without its modules of tests.
pub fn product_lines(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let mut kept = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let is_tests = lines[at].trim() == "#[cfg(test)]"
            && lines
                .get(at + 1)
                .is_some_and(|line| line.contains("mod ") && line.ends_with('{'));
        if is_tests {
            at = end(&lines, at + 1);
        } else {
            kept.push(lines[at]);
        }
        at += 1;
    }
    kept
}

/// The name of the function that a line opens.
fn function(line: &str) -> Option<&str> {
    let mut words = line
        .trim_start()
        .split(' ')
        .skip_while(|word| matches!(*word, "pub" | "const" | "async" | "unsafe") || word.starts_with("pub("));
    if words.next() != Some("fn") {
        return None;
    }
    words.next()?.split(['(', '<']).next()
}

/// Functions of more than so many lines, by name.
fn long_functions<'a>(lines: &[&'a str], lines_max: usize) -> Vec<(&'a str, usize)> {
    let opened = lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, function(line)?)));
    let sized = opened.map(|(at, name)| (name, end(lines, at) - at + 1));
    sized.filter(|(_, num_lines)| *num_lines > lines_max).collect()
}

#[test]
fn files_have_at_most_500_lines_and_functions_at_most_100() {
    let files = product_files();
    assert!(files.len() > 300, "only {} files were found", files.len());
    let mut found = Vec::new();
    for path in &files {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let lines = product_lines(&text);
        if lines.len() > FILE_LINES_MAX {
            found.push(format!("{name}: {} lines", lines.len()));
        }
        for (function, num_lines) in long_functions(&lines, FUNCTION_LINES_MAX) {
            found.push(format!("{name}: {function} has {num_lines} lines"));
        }
    }
    assert!(found.is_empty(), "split these:\n{}", found.join("\n"));
}

#[test]
fn a_function_is_measured_to_its_own_closing_brace_and_tests_are_left_out() {
    let text = "pub(crate) fn long<T>(\n    of: T,\n) -> T {\n    if true {\n        {}\n    }\n    of\n}\n\n\
                fn short() {}\n#[cfg(test)]\nmod tests {\n    fn hidden() {\n        ();\n    }\n}\n";
    let lines = product_lines(text);
    assert_eq!(lines.len(), 10);
    assert_eq!(long_functions(&lines, 7), [("long", 8)]);
    assert_eq!(long_functions(&lines, 0), [("long", 8), ("short", 1)]);
}
