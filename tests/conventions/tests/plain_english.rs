//! Documents, help and messages are plain English: no word that makes a person of a program, at most 40 words a sentence.
//!
//! Read as text, without a grammar: fences are left out, what stands in back-quotes counts as one word, a cell of a table, an item
//! of a list and a heading end a sentence as a full stop does. How many faults a document still has is in `[plain_english]` of
//! `tests/conventions/budgets.toml`, which only goes down; what is not named there has none.

use std::collections::BTreeMap;
use std::path::Path;

use crate::budgets::{files, product, product_room};

const SENTENCE_WORDS_MAX: usize = 40;

/// Programs, jobs, pods, policies and files are not persons.
const FORBIDDEN: [&str; 7] = [
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "whoever",
    "whom",
    "told",
];

/// Words for persons: `who` may follow them.
const PERSONS: [&str; 22] = [
    "user",
    "users",
    "person",
    "persons",
    "people",
    "team",
    "teams",
    "operator",
    "operators",
    "researcher",
    "researchers",
    "experimenter",
    "experimenters",
    "reader",
    "readers",
    "author",
    "authors",
    "engineer",
    "engineers",
    "someone",
    "anyone",
    "everyone",
];

/// Derived traits of types whose comments are what `--help` prints.
const OF_HELP: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A paragraph as plain words: code is one word, a link is its text.
fn plain(paragraph: &str) -> String {
    let parts: Vec<&str> = paragraph.split('`').collect();
    let is_paired = parts.len() % 2 == 1;
    let mut words = String::new();
    for (place, part) in parts.iter().enumerate() {
        words.push_str(if is_paired && place % 2 == 1 { "CODE" } else { part });
    }
    let mut links = words.split("](");
    let mut kept = links.next().unwrap_or_default().to_string();
    for link in links {
        kept.push_str(link.split_once(')').map_or(link, |(_, rest)| rest));
    }
    kept
}

/// The sentences of a paragraph: a full stop, with what closes behind it, ends one.
fn split(paragraph: &str) -> Vec<String> {
    let mut found = vec![Vec::new()];
    for word in paragraph.split_whitespace() {
        found.last_mut().unwrap().push(word);
        if word
            .trim_end_matches([')', '*', '"', ']', '\''])
            .ends_with(['.', '!', '?'])
        {
            found.push(Vec::new());
        }
    }
    found.iter().map(|words| words.join(" ")).collect()
}

/// Sentences of a document outside code, with the lines on which their paragraphs begin.
fn sentences(text: &str) -> Vec<(usize, String)> {
    let mut paragraphs: Vec<(usize, String)> = Vec::new();
    let (mut is_code, mut goes_on) = (false, false);
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("```") {
            (is_code, goes_on) = (!is_code, false);
        } else if is_code || line.is_empty() {
            goes_on = false;
        } else if line.starts_with('|') {
            let cells = plain(line);
            paragraphs.extend(cells.split('|').map(|cell| (place + 1, cell.to_string())));
            goes_on = false;
        } else {
            let first = line.split(' ').next().unwrap_or_default();
            let is_numbered = first
                .strip_suffix('.')
                .is_some_and(|number| number.parse::<u32>().is_ok());
            let begins = is_numbered || line.starts_with('#') || first == "-" || first == "*";
            match paragraphs.last_mut() {
                Some((_, words)) if goes_on && !begins => *words += &format!(" {line}"),
                _ => paragraphs.push((place + 1, line.to_string())),
            }
            goes_on = !line.starts_with('#');
        }
    }
    let split = |(line, words): (usize, String)| {
        split(&plain(&words))
            .into_iter()
            .map(move |sentence| (line, sentence))
    };
    paragraphs.into_iter().flat_map(split).collect()
}

/// What is not plain in a text, each with its line.
fn faults(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (line, sentence) in sentences(text) {
        let words: Vec<String> = sentence
            .split(|letter: char| !letter.is_alphanumeric() && !"'_-.%".contains(letter))
            .map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()))
            .filter(|word| !word.is_empty())
            .map(|word| word.trim_end_matches("'s").to_lowercase())
            .collect();
        for (place, word) in words.iter().enumerate() {
            let before = place.checked_sub(1).map_or("", |before| words[before].as_str());
            if FORBIDDEN.contains(&word.as_str()) || word == "who" && !PERSONS.contains(&before) {
                found.push(format!("line {line}: {word:?} in {sentence:?}"));
            }
        }
        let num_words = sentence
            .split_whitespace()
            .filter(|word| word.contains(char::is_alphanumeric))
            .count();
        if num_words > SENTENCE_WORDS_MAX {
            found.push(format!("line {line}: {num_words} words in {sentence:?}"));
        }
    }
    found
}

/// Lines of comments that begin with `sign`, in their places; all other lines are empty.
fn comments<'a>(lines: impl Iterator<Item = &'a str>, sign: &str) -> String {
    let kept = lines.map(|line| line.trim_start().strip_prefix(sign).unwrap_or_default());
    kept.map(|line| format!("{line}\n")).collect()
}

/// Comments of the types that `clap` reads, which `--help` prints.
fn help(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut is_help = vec![false; lines.len()];
    for (place, line) in lines.iter().enumerate() {
        let derived = line.trim_start().starts_with("#[derive(");
        if !derived || !OF_HELP.iter().any(|name| line.contains(name)) {
            continue;
        }
        let before = lines[..place].iter().rev().take_while(|line| {
            let line = line.trim_start();
            line.starts_with("///") || line.starts_with("#[")
        });
        let indent = line.len() - line.trim_start().len();
        let is_end = |line: &str| line.trim() == "}" && line.len() == indent + 1;
        let num_lines = lines[place..].iter().position(|line| is_end(line)).unwrap_or(0);
        for inside in &mut is_help[place - before.count()..place + num_lines] {
            *inside = true;
        }
    }
    let kept = lines.iter().zip(is_help).map(|(line, is_help)| match is_help {
        true => *line,
        false => "",
    });
    comments(kept, "///")
}

/// All comments of a source that stand on lines of their own, in their places.
fn all_comments(text: &str) -> String {
    let words = |line: &str| {
        let comment = line.trim_start().strip_prefix("//").unwrap_or_default();
        comment.trim_start_matches(['/', '!']).to_string() + "\n"
    };
    text.lines().map(words).collect()
}

/// The first folder of a source that has a manifest, for crates and their tests alike.
fn crate_of(name: &str) -> String {
    let folders = Path::new(name).ancestors().skip(1);
    let mut crates = folders.filter(|folder| root().join(folder).join("Cargo.toml").exists());
    crates.next().unwrap_or(Path::new("")).display().to_string()
}

/// The strings of a source, one paragraph each: what reports, refusals and logs say.
fn strings(code: &str) -> String {
    let letters: Vec<char> = code.chars().collect();
    let (mut at, mut found) = (0, String::new());
    while at < letters.len() {
        match letters[at] {
            '/' if letters.get(at + 1) == Some(&'/') => {
                at += letters[at..]
                    .iter()
                    .position(|&letter| letter == '\n')
                    .unwrap_or(letters.len());
            }
            '\'' => {
                let close = at + 2 + usize::from(letters.get(at + 1) == Some(&'\\'));
                at = if letters.get(close) == Some(&'\'') {
                    close + 1
                } else {
                    at + 1
                };
            }
            '"' => {
                at += 1;
                while at < letters.len() && letters[at] != '"' {
                    let next = letters.get(at + 1);
                    match (letters[at], next) {
                        ('\\', Some('\n')) => {
                            at += 1;
                            while letters.get(at).is_some_and(|letter| letter.is_whitespace()) {
                                at += 1;
                            }
                            continue;
                        }
                        ('\\', Some('n')) => found.push_str("\n\n"),
                        ('\\', Some(next)) => found.push(*next),
                        (letter, _) => found.push(letter),
                    }
                    at += 1 + usize::from(letters[at] == '\\');
                }
                found.push_str("\n\n");
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// Every fault by document, by front page of a crate, by `help of`, `texts of` and `comments of` a crate.
pub fn counted() -> BTreeMap<String, Vec<String>> {
    let mut counted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut documents, mut sources) = (Vec::new(), Vec::new());
    files(root(), "md", &mut documents);
    files(root(), "rs", &mut sources);
    documents.sort();
    sources.sort();
    for path in documents {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        let found = faults(&std::fs::read_to_string(&path).unwrap());
        counted.entry(name.to_string()).or_default().extend(found);
    }
    for path in sources {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut add = |entry: String, read: &str| {
            let found = faults(read).into_iter().map(|fault| format!("{name}, {fault}"));
            counted.entry(entry).or_default().extend(found);
        };
        add(format!("comments of {}", crate_of(name)), &all_comments(&text));
        let Some(room) = product_room(name) else {
            continue;
        };
        if name.ends_with("/src/lib.rs") {
            add(name.to_string(), &comments(text.lines(), "//!"));
        }
        add(format!("help of {room}"), &help(&text));
        add(format!("texts of {room}"), &strings(&product(&text)));
    }
    counted.retain(|_, found| !found.is_empty());
    counted
}

#[test]
fn persons_and_long_sentences_are_found_and_plain_ones_are_not() {
    let long = "word ".repeat(41);
    let failing = [
        "A job who waits.",
        "Nobody's choice.",
        "Policies are told\nof it.",
        "| a | whoever reads |",
        "- It is so.\n- Somebody else.",
        long.as_str(),
    ];
    for text in failing {
        assert_eq!(faults(text).len(), 1, "{text}");
    }
    let short = "word ".repeat(30);
    let plain = [
        "Users who wait.",
        "Run `who` or see [it](whoever.md).",
        "```\nnobody\n```",
        &format!("{short}.\n{short}"),
        &format!("| {short} | {short} |"),
        &format!("- {short}\n- {short}"),
    ];
    for text in plain {
        assert_eq!(faults(text), Vec::<String>::new(), "{text}");
    }
    let source = "/// What nobody reads.\nstruct Other;\n\n/// Says who waits.\n#[derive(Args)]\nstruct Flags {\n    \
                  /// The job.\n    job: u32,\n}\nfn a(b: &'static str) { say(\"one \\\n    two\", '\"', \"three\\nfour\"); } // \"five\"\n";
    assert_eq!(help(source).trim(), "Says who waits.\n\n\n The job.");
    assert_eq!(
        all_comments(source).trim(),
        "What nobody reads.\n\n\n Says who waits.\n\n\n The job."
    );
    assert_eq!(strings(source), "one two\n\nthree\n\nfour\n\n");
}
