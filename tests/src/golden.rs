//! A golden file: rows of name, digest and figures below a header that says why they were minted.

#![allow(clippy::unwrap_used, reason = "tests alone come here")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

/// The variable that mints; its value is the reason.
pub const MINT: &str = "PLEACH_MINT_GOLDENS";

/// FNV-1a over 64-bit words, with a rotation so that high bits reach low ones.
#[derive(Clone, Copy, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest::new()
    }
}

impl Digest {
    /// Of nothing.
    #[must_use]
    pub fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a word.
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }

    /// Adds a number, bit by bit.
    pub fn f64(&mut self, number: f64) {
        self.word(number.to_bits());
    }

    /// Adds numbers.
    pub fn f64s(&mut self, numbers: &[f64]) {
        numbers.iter().for_each(|number| self.f64(*number));
    }

    /// Adds numbers.
    pub fn f32s(&mut self, numbers: &[f32]) {
        numbers
            .iter()
            .for_each(|number| self.word(u64::from(number.to_bits())));
    }

    /// Adds flags.
    pub fn bools(&mut self, flags: &[bool]) {
        flags.iter().for_each(|flag| self.word(u64::from(*flag)));
    }

    /// Adds a text and its length.
    pub fn text(&mut self, text: &str) {
        text.bytes().for_each(|byte| self.word(u64::from(byte)));
        self.word(text.len() as u64);
    }

    /// Sixteen digits.
    #[must_use]
    pub fn hex(self) -> String {
        format!("{:016x}", self.0)
    }
}

/// One result: its name, and what it is (a digest and figures, or the figures alone).
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name, of which there is one in a file.
    pub name: String,
    /// What it is.
    pub result: String,
}

impl Row {
    /// A row of a digest and figures.
    #[must_use]
    pub fn new(name: impl Into<String>, digest: Digest, figures: impl std::fmt::Display) -> Row {
        Row {
            name: name.into(),
            result: format!("{} | {figures}", digest.hex()),
        }
    }
}

/// Why rows were minted, and the digest of those rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Minting {
    /// The reason that was given when the file was minted.
    pub reason: String,
    /// [`digest_of`] the rows.
    pub rows: String,
}

/// What a file holds.
#[derive(Clone, Debug, Default)]
pub struct Golden {
    /// First to last.
    pub mintings: Vec<Minting>,
    /// The rows of the last minting.
    pub rows: Vec<Row>,
}

/// The file of that name.
#[must_use]
pub fn path_of(file: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/goldens")).join(format!("{file}.txt"))
}

/// The digest of names and results.
#[must_use]
pub fn digest_of(rows: &[Row]) -> String {
    let mut digest = Digest::new();
    for row in rows {
        digest.text(&row.name);
        digest.text(&row.result);
    }
    digest.hex()
}

impl Golden {
    /// An empty one where there is no file.
    ///
    /// # Panics
    /// Where a line of a minting has no digest.
    #[must_use]
    pub fn read(file: &str) -> Golden {
        let Ok(text) = std::fs::read_to_string(path_of(file)) else {
            return Golden::default();
        };
        let mut golden = Golden::default();
        for line in text.lines() {
            if let Some(line) = line
                .strip_prefix("# minted because ")
                .or_else(|| line.strip_prefix("# re-minted because "))
            {
                let (reason, rows) = line.rsplit_once(", rows ").unwrap();
                let (reason, rows) = (reason.into(), rows.into());
                golden.mintings.push(Minting { reason, rows });
            } else if let Some((name, result)) = line.split_once(" | ") {
                let (name, result) = (name.into(), result.into());
                golden.rows.push(Row { name, result });
            }
        }
        golden
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        for (number, Minting { reason, rows }) in self.mintings.iter().enumerate() {
            let word = if number == 0 { "minted" } else { "re-minted" };
            writeln!(text, "# {word} because {reason}, rows {rows}").unwrap();
        }
        for Row { name, result } in &self.rows {
            writeln!(text, "{name} | {result}").unwrap();
        }
        text
    }
}

/// What moved, a line each, old above new.
fn differences(old: &[Row], new: &[Row]) -> String {
    let by_name = |rows: &[Row]| -> BTreeMap<String, String> {
        rows.iter()
            .map(|row| (row.name.clone(), row.result.clone()))
            .collect()
    };
    let (old, new) = (by_name(old), by_name(new));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut text = String::new();
    for name in names {
        match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) if old != new => {
                writeln!(text, "  {name}\n    was {old}\n    is  {new}").unwrap()
            }
            (Some(old), None) => writeln!(text, "  {name}\n    was {old}\n    is gone").unwrap(),
            (None, Some(new)) => writeln!(text, "  {name}\n    is new: {new}").unwrap(),
            _ => {}
        }
    }
    text
}

/// Whether [`hold`] would mint.
#[must_use]
pub fn is_minting(file: &str, rows: &[Row]) -> bool {
    std::env::var(MINT).is_ok() && Golden::read(file).rows != rows
}

/// Holds results to those of the golden file, or mints the file where a reason is given.
///
/// # Panics
/// Where results are others than those of the file; and after minting, so that a file is never minted unnoticed.
pub fn hold(file: &str, rows: Vec<Row>) {
    let names: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names.len(), rows.len(), "{file}: two results have the same name");
    let mut golden = Golden::read(file);
    let differences = differences(&golden.rows, &rows);
    if golden.rows == rows {
        return;
    }
    let Ok(reason) = std::env::var(MINT) else {
        panic!(
            "results are others than those of tests/goldens/{file}.txt (minted on x86-64 with AVX2 and FMA):\n{differences}\n\
             Where that is meant: {MINT}='REASON' cargo test --workspace goldens"
        );
    };
    let reason = reason.trim();
    assert!(
        reason.contains(' ') && !reason.contains('\n'),
        "{MINT} is the reason, a line of several words: {reason:?}"
    );
    golden.mintings.push(Minting {
        reason: reason.into(),
        rows: digest_of(&rows),
    });
    golden.rows = rows;
    std::fs::write(path_of(file), golden.to_text()).unwrap();
    let next = if golden.mintings.len() == 1 {
        "Now read the figures and commit the file.".into()
    } else {
        format!("Now write a line with these words, \"{reason}\", under *Changes results* in CHANGELOG.md.")
    };
    panic!("minted tests/goldens/{file}.txt because {reason}:\n{differences}\n{next}");
}

/// Holds a text to that of a golden file of the crate in `folder`, byte by byte, or mints the file where a reason is given.
///
/// # Panics
/// As [`hold`].
pub fn hold_text(folder: &str, file: &str, text: &str) {
    let path = PathBuf::from(folder).join("tests/golden").join(file);
    let is_header =
        |line: &&str| line.starts_with("# minted because ") || line.starts_with("# re-minted because ");
    let old = std::fs::read_to_string(&path).unwrap_or_default();
    let header: String = old
        .lines()
        .take_while(is_header)
        .map(|line| format!("{line}\n"))
        .collect();
    let old = &old[header.len()..];
    if old == text {
        return;
    }
    let (mut olds, mut news) = (old.lines(), text.lines());
    let first = loop {
        match (olds.next(), news.next()) {
            (Some(old), Some(new)) if old == new => {}
            (old, new) => {
                break format!(
                    "was {}\nis  {}",
                    old.unwrap_or("its end"),
                    new.unwrap_or("its end")
                );
            }
        }
    };
    let path = path.display();
    let Ok(reason) = std::env::var(MINT) else {
        panic!(
            "{path} is another one; the first line of it that is:\n{first}\nWhere that is meant: {MINT}='REASON'"
        );
    };
    assert!(
        reason.contains(' ') && !reason.contains('\n'),
        "{MINT} is the reason: {reason:?}"
    );
    let word = if header.is_empty() { "minted" } else { "re-minted" };
    let whole = format!("{header}# {word} because {}\n{text}", reason.trim());
    std::fs::write(path.to_string(), whole).unwrap();
    panic!("minted {path} because {reason}; the first line that is another one:\n{first}");
}

/// Texts of a driver's folder and of its figures without what is another one in each run: times that were measured, the process,
/// the folder.
#[must_use]
pub fn masked(text: &str, folder: &str) -> String {
    let mut text = text.replace(folder, "FOLDER");
    for key in ["\"observe_s\":", "\"decide_s\":", "\"apply_s\":", "\"pid\":"] {
        let mut parts = text.split(key);
        let mut new = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find([',', '}']).unwrap_or(part.len());
            new += &format!("{key}0{}", &part[end..]);
        }
        text = new;
    }
    let is_measured = |line: &str| line.contains("_seconds_bucket{") || line.contains("_seconds_sum ");
    let lines = text.lines().filter(|line| !is_measured(line));
    lines.map(|line| format!("{line}\n")).collect()
}
