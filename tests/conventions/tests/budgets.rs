//! The house only gets smaller: tokens of each crate, words of each document, flags, commands and what is not plain English have
//! budgets.
//!
//! `tests/conventions/budgets.toml` states them. A number above its budget fails; one that fell well below fails too until its budget
//! is lowered, which `PLEACH_WRITE_DOCS=1 cargo test -p pleach-conventions budgets` does. A budget is raised by hand, in a commit that says
//! which user got what for it. Tokens count, for they change neither with the formatter nor with comments or tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::plain_english;

/// How far a budget may stand above its number: what is given back is given back for good.
const SLACK: f64 = 0.02;
/// How far it may stand above on top of that: a few words of a document, a few faults of its English.
const ROOM: usize = 20;
const FAULTS_ROOM: usize = 2;

/// `tests/conventions/budgets.toml`, and the same numbers as counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Budgets {
    command_line: BTreeMap<String, usize>,
    tokens: BTreeMap<String, usize>,
    words: BTreeMap<String, usize>,
    plain_english: BTreeMap<String, usize>,
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Files with an extension below a folder, without what is built and what is hidden.
pub fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

/// A line without its strings and comment, for counting braces.
fn without_text(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line.chars();
    while let Some(letter) = rest.next() {
        if letter == '"' {
            while let Some(inner) = rest.next() {
                match inner {
                    '\\' => drop(rest.next()),
                    '"' => break,
                    _ => {}
                }
            }
        } else {
            kept.push(letter);
        }
    }
    kept.split("//").next().unwrap_or_default().to_string()
}

/// The text of a file without items under `#[cfg(test)]` and without lines that are comments.
pub fn product(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if !line.trim_start().starts_with("#[cfg(test)]") {
            if !line.trim_start().starts_with("//") {
                kept.push_str(line);
                kept.push('\n');
            }
            continue;
        }
        let (mut depth, mut is_open) = (0_i64, false);
        for line in lines.by_ref() {
            let code = without_text(line);
            let count = |brace: char| code.matches(brace).count() as i64;
            depth += count('{') - count('}');
            is_open |= code.contains('{');
            if is_open && depth <= 0 || !is_open && code.trim_end().ends_with(';') {
                break;
            }
        }
    }
    kept
}

/// Tokens of Rust: a string, a character, a word, a number or a sign each count once.
fn num_tokens(text: &str) -> usize {
    let letters: Vec<char> = text.chars().collect();
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let (mut at, mut num) = (0, 0);
    while at < letters.len() {
        let letter = letters[at];
        let mut end = at + 1;
        if letter.is_whitespace() {
            at = end;
            continue;
        }
        if letter == '"' {
            while end < letters.len() && letters[end] != '"' {
                end += 1 + usize::from(letters[end] == '\\');
            }
            end += 1;
        } else if letter == '\'' {
            let close = at + 2 + usize::from(letters.get(at + 1) == Some(&'\\'));
            if letters.get(close) == Some(&'\'') {
                end = close + 1;
            }
        } else if is_word(letter) {
            let is_number = letter.is_numeric();
            while letters
                .get(end)
                .is_some_and(|&next| is_word(next) || is_number && next == '.')
            {
                end += 1;
            }
        }
        num += 1;
        at = end;
    }
    num
}

/// The crate of a source of the product, by its path; none for tests.
pub fn product_room(name: &str) -> Option<&str> {
    let (room, file) = name.split_once("/src/")?;
    let is_test =
        |part: &str| part == "tests" || part == "test" || part.ends_with("_tests") || part.ends_with("_test");
    let is_product = !file.trim_end_matches(".rs").split('/').any(is_test);
    is_product.then_some(room)
}

fn tokens() -> BTreeMap<String, usize> {
    let mut found = Vec::new();
    files(root(), "rs", &mut found);
    let mut of_crates = BTreeMap::new();
    for path in found {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        let Some(room) = product_room(name) else {
            continue;
        };
        let text = std::fs::read_to_string(&path).unwrap();
        *of_crates.entry(room.to_string()).or_default() += num_tokens(&product(&text));
    }
    of_crates
}

fn words() -> BTreeMap<String, usize> {
    let mut found = Vec::new();
    files(root(), "md", &mut found);
    // The change log gets a line for what a user notices.
    let counted = found.into_iter().filter(|path| !path.ends_with("CHANGELOG.md"));
    let named = counted.map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        (name.to_string(), text.split_whitespace().count())
    });
    named.collect()
}

/// Commands of the product, each with a heading of its own in the reference. Flags are counted by `cli/src/flags/tests/reference.rs`, which knows them.
fn num_commands() -> usize {
    let text = std::fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let is_command = |line: &&str| line.starts_with("##") && line.contains("`pleach ");
    text.lines().filter(is_command).count()
}

/// What is above its budget, has none, or has one that is no longer needed.
fn faults(
    what: &str,
    room: usize,
    budgets: &BTreeMap<String, usize>,
    counted: &BTreeMap<String, usize>,
) -> Vec<String> {
    let mut found = Vec::new();
    for (name, &num) in counted {
        match budgets.get(name) {
            None => found.push(format!("{what} of {name}: {num}, without a budget")),
            Some(&budget) if num > budget => {
                found.push(format!("{what} of {name}: {num}, above the budget of {budget}"))
            }
            Some(&budget) if budget as f64 > num as f64 * (1.0 + SLACK) + room as f64 => {
                found.push(format!("{what} of {name}: {num}; lower the budget of {budget}"));
            }
            Some(_) => {}
        }
    }
    let gone = budgets.keys().filter(|name| !counted.contains_key(*name));
    found.extend(gone.map(|name| format!("{what} of {name}: a budget of what is not there")));
    found
}

/// Budgets that never rise: each the least of itself and what is counted; what is new gets what it has.
fn lowered(budgets: &BTreeMap<String, usize>, counted: &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    let least = |(name, &num): (&String, &usize)| {
        (
            name.clone(),
            budgets.get(name).map_or(num, |&budget| budget.min(num)),
        )
    };
    counted.iter().map(least).collect()
}

#[test]
fn no_crate_document_or_command_line_is_above_its_budget() {
    let path = root().join("tests/conventions/budgets.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut budgets: Budgets = toml::from_str(&text).unwrap();
    let mut command_line = budgets.command_line.clone();
    command_line.insert("commands".into(), num_commands());
    let english = plain_english::counted();
    let counted = Budgets {
        command_line,
        tokens: tokens(),
        words: words(),
        plain_english: english
            .iter()
            .map(|(name, found)| (name.clone(), found.len()))
            .collect(),
    };
    if std::env::var_os("PLEACH_WRITE_DOCS").is_some() {
        // What is not plain in a new document is mended, not counted.
        let mut plain_english = lowered(&budgets.plain_english, &counted.plain_english);
        plain_english.retain(|name, _| budgets.plain_english.contains_key(name));
        budgets = Budgets {
            command_line: lowered(&budgets.command_line, &counted.command_line),
            tokens: lowered(&budgets.tokens, &counted.tokens),
            words: lowered(&budgets.words, &counted.words),
            plain_english,
        };
        let header: String = text
            .lines()
            .take_while(|line| line.starts_with('#'))
            .map(|line| format!("{line}\n"))
            .collect();
        std::fs::write(&path, header + "\n" + &toml::to_string(&budgets).unwrap()).unwrap();
    }
    let is_lab = |name: &str| name == "lab" || name.starts_with("lab/");
    let (lab, product): (Vec<_>, Vec<_>) = counted.tokens.iter().partition(|(name, _)| is_lab(name));
    let sum = |crates: Vec<(&String, &usize)>| crates.iter().map(|(_, num)| **num).sum::<usize>();
    println!(
        "tokens: {} of the product, {} of the laboratory",
        sum(product),
        sum(lab)
    );
    let mut found = faults("number", ROOM, &budgets.command_line, &counted.command_line);
    found.extend(faults("tokens", ROOM, &budgets.tokens, &counted.tokens));
    found.extend(faults("words", ROOM, &budgets.words, &counted.words));
    let above = english.iter().filter(|(name, found)| {
        budgets
            .plain_english
            .get(*name)
            .is_none_or(|&budget| found.len() > budget)
    });
    found.extend(above.flat_map(|(name, found)| found.iter().map(move |fault| format!("{name}: {fault}"))));
    found.extend(faults(
        "faults of the English",
        FAULTS_ROOM,
        &budgets.plain_english,
        &counted.plain_english,
    ));
    assert!(
        found.is_empty(),
        "{}\nLess is a deliverable: take away or mend, or raise the budget in tests/conventions/budgets.toml in a commit that says which user got \
         what. PLEACH_WRITE_DOCS=1 lowers budgets.",
        found.join("\n")
    );
}

#[test]
fn tokens_change_neither_with_layout_nor_with_comments_or_tests() {
    let short = "fn a(b: &'static str) -> char { let c = \"x \\\" // {\"; 'c' }";
    let long = "// A comment.\nfn a(\n    b: &'static str,\n) -> char {\n    /// Another.\n    let c = \"x \\\" // {\";\n    'c'\n}\n\
                #[cfg(test)]\nmod tests {\n    fn hidden() {}\n}\n#[cfg(test)]\nmod more;\n";
    assert_eq!(num_tokens(short), 21);
    // The comma at the end of the list alone.
    assert_eq!(num_tokens(&product(long)), 22);
}

#[test]
fn a_number_above_its_budget_or_far_below_it_is_a_fault_and_writing_only_lowers() {
    let budgets = BTreeMap::from([
        ("a".to_string(), 1000),
        ("b".to_string(), 1000),
        ("c".to_string(), 1000),
        ("gone".to_string(), 1),
    ]);
    let counted = BTreeMap::from([
        ("a".to_string(), 1001),
        ("b".to_string(), 999),
        ("c".to_string(), 900),
        ("new".to_string(), 5),
    ]);
    let found = faults("words", ROOM, &budgets, &counted);
    assert_eq!(
        found,
        [
            "words of a: 1001, above the budget of 1000",
            "words of c: 900; lower the budget of 1000",
            "words of new: 5, without a budget",
            "words of gone: a budget of what is not there",
        ]
    );
    let written = lowered(&budgets, &counted);
    assert_eq!(
        written,
        BTreeMap::from([
            ("a".into(), 1000),
            ("b".into(), 999),
            ("c".into(), 900),
            ("new".into(), 5)
        ])
    );
}
