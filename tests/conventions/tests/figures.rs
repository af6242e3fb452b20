//! Every figure of a document says how it was found: on how many lists, with its interval; or that nothing was drawn, that it was
//! published, or that it is a setting. A figure from a single list is none.
//!
//! A *figure* is a number with a decimal point or in percent, outside code. A *mark* is a paragraph in italics, one of
//!
//! ```text
//! *100 lists, 95 % intervals: `the command that prints them`*
//! *3 runs, lowest to highest: `the command that prints them`*
//! *exact: why nothing is drawn*
//! *published: where*
//! *setting: whose*
//! ```
//!
//! A table with figures has a mark right below it; where the mark counts lists, every row has an interval, `[0.95, 0.97]` or
//! `(0.95 to 0.97)`, or says that it is the reference or that nothing is drawn;
//! tables of flags and keys need none. A paragraph with figures has an interval, or its section has a mark.

use std::path::{Path, PathBuf};

/// First columns of tables that say what may be set.
const SETTINGS: [&str; 2] = ["flag", "key"];
/// What is counted.
const COUNTED: [&str; 5] = ["lists", "seeds", "windows", "days", "runs"];
/// What a number after it is not a figure of.
const VERSIONED: [&str; 15] = [
    "pytorch",
    "python",
    "kubernetes",
    "slurm",
    "go",
    "debian",
    "vllm",
    "section",
    "version",
    "rust",
    "lua",
    "cuda",
    "gymnasium",
    "onnx",
    "than",
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// README, all of docs and of the laboratory's notes; what was measured at a version stays in CHANGELOG as it was.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md")];
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

/// A part of a document, with the number of its first line.
#[derive(Debug, PartialEq)]
enum Part {
    Heading,
    Table(usize, Vec<String>),
    Paragraph(usize, String),
    Mark(usize, Mark),
}

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mark {
    /// Lists, or what else was drawn so often.
    Lists(u32),
    /// Exact, published or a setting.
    Given,
    /// Neither.
    Unread,
}

/// A paragraph in italics that begins as a mark does; none for others.
fn mark(line: &str) -> Option<Mark> {
    let inner = line.strip_prefix('*')?.strip_suffix('*')?;
    if inner.starts_with('*') || inner.starts_with(' ') {
        return None;
    }
    let given = ["exact: ", "published: ", "setting: "];
    if let Some(kind) = given.iter().find(|kind| inner.starts_with(**kind)) {
        return Some(if inner.len() > kind.len() + 3 {
            Mark::Given
        } else {
            Mark::Unread
        });
    }
    let mut words = inner.split([' ', ',', ':']);
    let number = words.next()?.parse::<u32>().ok()?;
    let is_counted = words.next().is_some_and(|word| COUNTED.contains(&word));
    let has_interval = inner.contains("95 % interval") || inner.contains("lowest to highest");
    Some(if is_counted && has_interval {
        Mark::Lists(number)
    } else {
        Mark::Unread
    })
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let (mut is_code, mut goes_on) = (false, false);
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            (is_code, goes_on) = (!is_code, false);
            continue;
        }
        if is_code || trimmed.is_empty() {
            goes_on = false;
            continue;
        }
        if trimmed.starts_with('#') {
            parts.push(Part::Heading);
        } else if trimmed.starts_with('|') {
            match parts.last_mut() {
                Some(Part::Table(_, rows)) if goes_on => rows.push(trimmed.into()),
                _ => parts.push(Part::Table(number, vec![trimmed.into()])),
            }
            goes_on = true;
            continue;
        } else {
            let begins = trimmed.starts_with("- ") || trimmed.starts_with("* ");
            match parts.last_mut() {
                Some(Part::Paragraph(_, words)) if goes_on && !begins => *words += &format!(" {trimmed}"),
                _ => parts.push(Part::Paragraph(number, trimmed.into())),
            }
            goes_on = true;
            continue;
        }
        goes_on = false;
    }
    let marked = parts.into_iter().map(|part| match part {
        Part::Paragraph(line, words) => match mark(&words) {
            Some(mark) => Part::Mark(line, mark),
            None => Part::Paragraph(line, words),
        },
        other => other,
    });
    marked.collect()
}

/// Without what stands in back-quotes and without the targets of links.
fn told(text: &str) -> String {
    let outside: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let mut words = outside.split("](");
    let mut kept = words.next().unwrap_or_default().to_string();
    for word in words {
        kept.push_str(word.split_once(')').map_or("", |(_, rest)| rest));
    }
    kept
}

/// The numbers with a decimal point or in percent, but for versions, sections and the level of the intervals.
fn figures(text: &str) -> Vec<String> {
    let text = told(text).replace("95 %", "");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut found = Vec::new();
    for (place, word) in words.iter().enumerate() {
        let before = place
            .checked_sub(1)
            .map_or("", |before| words[before])
            .to_lowercase();
        // A number that begins in the middle of a word is of a name.
        let word = word.trim_start_matches(|sign: char| !sign.is_alphanumeric());
        let word = word.trim_end_matches(|sign: char| !sign.is_ascii_digit() && sign != '%');
        let is_decimal = word
            .split_once('.')
            .is_some_and(|(whole, part)| is_number(whole) && is_number(part));
        let next = words.get(place + 1).copied().unwrap_or_default();
        let is_percent =
            is_number(word.trim_end_matches('%')) && (next.starts_with('%') || word.ends_with('%'));
        let is_version = VERSIONED.contains(&before.trim_start_matches('('));
        if (is_decimal || is_percent) && !is_version {
            found.push(word.to_string());
        }
    }
    found
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|sign| sign.is_ascii_digit() || sign == ',')
}

/// Whether there is an interval: `[a, b]` or `(a to b)`.
fn has_interval(text: &str) -> bool {
    let is_end = |word: &str| {
        let word = word.trim().trim_end_matches('%').trim();
        let word = word.strip_prefix('-').unwrap_or(word);
        word.chars().next().is_some_and(|first| first.is_ascii_digit())
    };
    [('[', ']', ", "), ('(', ')', " to ")]
        .iter()
        .any(|(open, close, between)| {
            text.split(*open).skip(1).any(|rest| {
                let inside = rest.split(*close).next().unwrap_or_default();
                inside
                    .split_once(between)
                    .is_some_and(|(low, high)| is_end(low) && is_end(high))
            })
        })
}

/// Words of a row that has no interval to show.
const NEEDLESS: [&str; 3] = ["(reference)", "nothing is drawn", "alike in all seeds"];

/// Words of a result of one draw.
const SINGLE: [&str; 8] = [
    "one list",
    "one seed",
    "a single list",
    "a single seed",
    "single-seed",
    "one training",
    "1 list,",
    "1 seed,",
];

/// What is wrong with a document.
fn faults(text: &str) -> Vec<String> {
    let parts = parts(text);
    let mut wrong = Vec::new();
    let sections = parts.split(|part| *part == Part::Heading);
    for section in sections {
        let has_mark = section.iter().any(|part| matches!(part, Part::Mark(..)));
        for (place, part) in section.iter().enumerate() {
            match part {
                Part::Heading => {}
                Part::Mark(line, Mark::Unread) => {
                    wrong.push(format!("line {line}: a mark that says neither"))
                }
                Part::Mark(line, Mark::Lists(number)) if *number < 2 => {
                    wrong.push(format!("line {line}: a figure of {number} list"));
                }
                Part::Mark(..) => {}
                Part::Table(line, rows) => {
                    let first = rows[0].trim_start_matches("| ");
                    if SETTINGS
                        .iter()
                        .any(|word| first.starts_with(&format!("{word} |")))
                    {
                        continue;
                    }
                    let rows = rows.iter().enumerate().skip(2);
                    let with: Vec<_> = rows.filter(|(_, row)| !figures(row).is_empty()).collect();
                    match section.get(place + 1) {
                        _ if with.is_empty() => {}
                        Some(Part::Mark(_, Mark::Lists(_))) => {
                            let bare = |row: &str| {
                                !has_interval(row) && !NEEDLESS.iter().any(|words| row.contains(words))
                            };
                            let bare = with.iter().filter(|(_, row)| bare(row));
                            wrong.extend(
                                bare.map(|(row, _)| format!("line {}: a row without interval", line + row)),
                            );
                        }
                        Some(Part::Mark(..)) => {}
                        _ => wrong.push(format!("line {line}: a table without a mark below it")),
                    }
                }
                Part::Paragraph(line, words) => {
                    let found = figures(words);
                    if found.is_empty() {
                        continue;
                    }
                    if !has_mark && !has_interval(words) {
                        wrong.push(format!(
                            "line {line}: {} without interval or mark",
                            found.join(" ")
                        ));
                    }
                    if let Some(single) = SINGLE
                        .iter()
                        .find(|single| words.to_lowercase().contains(**single))
                    {
                        wrong.push(format!("line {line}: {} of {single}", found.join(" ")));
                    }
                }
            }
        }
    }
    wrong
}

#[test]
fn every_figure_carries_the_number_of_its_lists_and_its_interval() {
    let mut wrong = Vec::new();
    for document in documents() {
        let name = document.strip_prefix(root()).unwrap().display().to_string();
        let found = faults(&std::fs::read_to_string(&document).unwrap());
        wrong.extend(found.into_iter().map(|fault| format!("{name}, {fault}")));
    }
    assert!(wrong.is_empty(), "{} figures:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn an_unmarked_figure_and_that_of_a_single_list_fail() {
    let table = "| policy | JCT |\n|---|---|\n| sjf | 1.2 h |\n\n";
    let conforming = [
        "Nothing but 12 jobs on 4 GPUs, `0.5`, [there](a.md#1.5), Python 3.10.",
        "It is at 0.96 [0.95, 0.97] of sjf.",
        "| a | b |\n|---|---|\n| sjf | 2 |\n",
        &format!("{table}*exact: a list of one's own*\n\nIt waits 1.2 h.\n"),
        "| a | b |\n|---|---|\n| sjf | 1 (reference), 1.2 h |\n| easy | 1.1 [1.0, 1.2] |\n| las | 1.2 (1.1 to 1.3) |\n*20 lists, 95 % intervals:\n`sjf`*",
        "# Settings\n*setting: assumed*\n\nIt waits for 0.5 of its run time.",
    ];
    for text in conforming {
        assert_eq!(faults(text), Vec::<String>::new(), "{text}");
    }
    let failing = [
        "It is at 0.96 of sjf.",
        "It is 4 % ahead.",
        "It is 4 % ahead on one list [1, 2].",
        table,
        &format!("{table}*20 lists, 95 % intervals*"),
        &format!("{table}*1 lists, 95 % intervals*"),
        &format!("{table}*20 lists*"),
        &format!("{table}*exact: *"),
        "*setting: ours*\n\n# Elsewhere\nIt is at 0.96 of sjf.",
    ];
    for text in failing {
        assert!(!faults(text).is_empty(), "{text}");
    }
}
