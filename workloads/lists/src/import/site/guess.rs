//! Guesses a mapping from a table's header and its first rows.

use std::path::Path;

use pleach_tables::Delimiter;
use pleach_tables::clock::guess as guess_format;

use super::mapping::Mapping;
use super::role::Role;
use crate::Error;
use crate::table::{Table, shorten};
use pleach_site::slurm::is_nothing;

/// Rows from which formats are guessed.
const SAMPLE_ROWS: usize = 2000;

/// A mapping that was guessed, and what was assumed on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Guess {
    /// The mapping.
    pub mapping: Mapping,
    /// What the table leaves open.
    pub notes: Vec<String>,
}

/// Guesses how a table is to be read.
///
/// # Errors
/// A file that cannot be read; a table in which no column says when a job was submitted, how many GPUs it had or how long it ran,
/// with the columns that it has.
pub fn guess(path: &Path) -> Result<Guess, Error> {
    let between = Table::delimiter(path)?;
    let mut table = Table::open_loosely(path, between)?;
    let mut mapping = by_names(table.header());
    mapping.delimiter = name(between).into();
    let missing = mapping.missing();
    if !missing.is_empty() {
        let message = format!(
            "{missing}; the header has {}. Name them in a mapping: pleach workload import FILE --mapping MAPPING.toml \
             (docs/import.md){}",
            shorten(&table.header().join(",")),
            if is_padded(table.header()) {
                "; sacct prints such a table with -P"
            } else {
                ""
            }
        );
        return Err(table.error("-", message));
    }
    let mut notes = Vec::new();
    formats(&mut table, &mut mapping, &mut notes)?;
    Ok(Guess { mapping, notes })
}

/// Whether a header has all that a list needs; nothing is read then.
pub(in crate::import) fn is_readable(header: &[String]) -> bool {
    by_names(header).missing().is_empty()
}

/// Letters and digits of a column's name.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.collect::<String>().to_ascii_lowercase()
}

/// The columns of a header by their names.
fn by_names(header: &[String]) -> Mapping {
    let header: Vec<(String, &String)> = header.iter().map(|name| (plain(name), name)).collect();
    let mut mapping = Mapping::default();
    for (role, names) in Role::names() {
        let found = names
            .iter()
            .find_map(|known| header.iter().find(|(plain, _)| plain == known));
        if let Some((plain, name)) = found {
            let is_taken = mapping.columns.values().any(|taken| taken == *name);
            if is_taken {
                continue;
            }
            mapping.columns.insert(*role, (*name).clone());
            match role {
                Role::RunTime => mapping.run_time_unit = unit(plain, "s").into(),
                // `Timelimit` is a span in words, `TimelimitRaw` is minutes.
                Role::TimeLimit => {
                    mapping.time_limit_unit =
                        unit(plain, if plain == "timelimitraw" { "min" } else { "s" }).into()
                }
                _ => {}
            }
        }
    }
    let has = |name: &str| header.iter().any(|(plain, _)| plain == name);
    mapping.slurm_ids = (has("jobid") || has("jobidraw"))
        && ["alloctres", "reqtres", "nodelist", "timelimit", "elapsed"]
            .into_iter()
            .any(has);
    mapping
}

/// A unit by the end of a column's name.
fn unit(plain: &str, otherwise: &'static str) -> &'static str {
    [
        ("ms", "ms"),
        ("min", "min"),
        ("minutes", "min"),
        ("hours", "h"),
        ("h", "h"),
    ]
    .into_iter()
    .find(|(end, _)| plain.ends_with(end) && plain != "walltime")
    .map_or(otherwise, |(_, unit)| unit)
}

fn name(between: Delimiter) -> &'static str {
    match between {
        Delimiter::Bar => "|",
        Delimiter::Tab => "tab",
        Delimiter::Semicolon => ";",
        Delimiter::Comma | Delimiter::Blanks => ",",
    }
}

/// Whether a header is that of `sacct` without `-P`: words with blanks between in one field.
fn is_padded(header: &[String]) -> bool {
    header.len() == 1 && header[0].split_whitespace().count() > 1
}

/// The format of times, from the first rows.
fn formats(table: &mut Table, mapping: &mut Mapping, notes: &mut Vec<String>) -> Result<(), Error> {
    let mut sample = Vec::new();
    let columns = [Role::Submit, Role::Start, Role::End]
        .map(|role| mapping.columns.get(&role).and_then(|name| table.column(name)));
    while sample.len() < SAMPLE_ROWS * columns.len() && table.next_row()? {
        // A row that is cut has other texts where times should be.
        if !table.is_whole() {
            continue;
        }
        let texts = columns.iter().map(|column| table.text(*column));
        sample.extend(texts.filter(|text| !is_nothing(text)).map(str::to_owned));
    }
    let texts: Vec<&str> = sample.iter().map(String::as_str).collect();
    let Some((format, is_open)) = guess_format(&texts) else {
        if let Some(first) = texts.first() {
            notes.push(format!(
                "times such as `{}` are written in no format that is known or in several: give time_format in a mapping",
                shorten(first)
            ));
        }
        return Ok(());
    };
    mapping.time_format = format.name().to_owned();
    if is_open {
        notes.push(format!(
            "times are read as {}: day and month could be the other way round (assumed)",
            format.name()
        ));
    }
    Ok(())
}
