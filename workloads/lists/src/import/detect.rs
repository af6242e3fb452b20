//! Recognises a list by how it starts.

use std::io::Read as _;
use std::path::Path;

use pleach_tables::{Delimiter, LINE_BYTES_MAX, open_unpacked};

use super::{Format, eva, gavel, mappings, rejected, shockwave, site, swf};
use crate::Error;
use crate::file::{REQUIRED, sidecar_beside};
use crate::table::{Lines, ParquetRows, Table, shorten, split};

/// Lines looked at where the first does not tell.
const START_LINES: usize = 6;

impl Format {
    /// What a list is; a table whose columns say enough is one too.
    ///
    /// # Errors
    /// As for a list that cannot be read.
    pub fn of_file(path: &Path) -> Result<Format, Error> {
        Format::detect(path).or_else(
            |error| match start_of(path)?.trim_start().starts_with(['{', '[']) {
                // No table: what its columns lack says nothing.
                true => Err(error),
                false => site::guess(path).map(|_| Format::Table),
            },
        )
    }

    /// Recognises a list by its first lines; the name of the file does not matter.
    ///
    /// # Errors
    /// A file that cannot be read, is empty, is known to hold no jobs, or starts with no known header.
    pub(crate) fn detect(path: &Path) -> Result<Format, Error> {
        if ParquetRows::is_one(path)? {
            let table = Table::open(path, &[])?;
            let names = table.header();
            let format = of_header(names, None).map_err(|text| table.error("-", text))?;
            let format = format.or(site::is_readable(names).then_some(Format::Table));
            return format.ok_or_else(|| table.error("-", unknown(&names.join(","))));
        }
        if let Some(format) = one_line_of_json(path)? {
            return Ok(format);
        }
        let mut lines = Lines::open(path)?;
        let Some(first) = lines.next_line()?.map(str::to_owned) else {
            return Err(lines.error("-", format!("the file is empty; {}", known())));
        };
        if gavel::is_row(&first) {
            return Ok(Format::Gavel);
        }
        if shockwave::is_row(&first) {
            return Ok(Format::Shockwave);
        }
        if swf::is_first_line(&first) {
            return Ok(Format::Swf);
        }
        // A complaint is about the first line, so what follows is read by another reader.
        let start = start_of(path)?;
        if eva::is_start(&start) {
            return Ok(Format::Eva);
        }
        if let Some(sentence) = rejected::of_json(&start) {
            return Err(lines.error("-", sentence.into()));
        }
        if let Some(format) = json_of_site(&start) {
            return Ok(format);
        }
        let mut names = Vec::new();
        if split(&first, ',', &mut names).is_ok() {
            let second = start.lines().nth(1);
            match of_header(&names, second) {
                Ok(Some(format)) => return Ok(format),
                Ok(None) => {}
                Err(sentence) => return Err(lines.error("-", sentence)),
            }
        }
        if is_own(path, &first) {
            return Ok(Format::Canonical);
        }
        // Whatever it is, its columns may say enough.
        match site::guess(path) {
            Ok(guessed) if guessed.mapping.slurm_ids => Ok(Format::Sacct),
            Ok(_) => Ok(Format::Table),
            Err(_) => Err(lines.error("-", unknown(&first))),
        }
    }
}

/// Whether a header is that of our own file with another delimiter, and its cluster lies beside it.
fn is_own(path: &Path, header: &str) -> bool {
    let sign = match Delimiter::of_header(header) {
        Delimiter::Tab => '\t',
        Delimiter::Semicolon => ';',
        Delimiter::Bar => '|',
        Delimiter::Comma | Delimiter::Blanks => return false,
    };
    let has = |wanted: &&str| {
        header
            .split(sign)
            .any(|name| name.trim().trim_matches('"') == *wanted)
    };
    REQUIRED.iter().all(has) && sidecar_beside(path).is_some()
}

/// What a document of a site is, by its first lines.
fn json_of_site(start: &str) -> Option<Format> {
    match start {
        start if site::is_kubernetes(start) => Some(Format::Kubernetes),
        start if site::is_start(start) => Some(Format::SacctJson),
        _ => None,
    }
}

/// What a file is that is a document of a site in one long line, as other programs pass it on.
fn one_line_of_json(path: &Path) -> Result<Option<Format>, Error> {
    let mut start = Vec::new();
    // The reader of the list reports what cannot be unpacked.
    let _ = open_unpacked(path)?
        .take(LINE_BYTES_MAX as u64)
        .read_to_end(&mut start);
    let start = String::from_utf8_lossy(&start);
    let is_one_line = !start.trim_end().contains('\n');
    Ok(is_one_line.then(|| json_of_site(&start)).flatten())
}

/// The first lines of a file that are not blank; fewer where they cannot be read.
fn start_of(path: &Path) -> Result<String, Error> {
    let mut lines = Lines::open(path)?;
    let mut start = String::new();
    for _ in 0..START_LINES {
        // The reader of the list reports what is wrong with a later line.
        let Ok(Some(line)) = lines.next_line() else {
            break;
        };
        start.push_str(line);
        start.push('\n');
    }
    Ok(start)
}

/// The format with this header, or a sentence on what the file is instead.
fn of_header(names: &[String], second: Option<&str>) -> Result<Option<Format>, String> {
    let is_there = |name: &str| names.iter().any(|found| found.trim() == name);
    if REQUIRED.iter().all(|name| is_there(name)) {
        return Ok(Some(Format::Canonical));
    }
    if let Some(name) = mappings::of_header(names, second) {
        return Ok(Some(Format::Mapped(name)));
    }
    let has = |wanted: &[String]| wanted.iter().all(|name| is_there(name));
    match rejected::of_header(names.len(), has) {
        Some(sentence) => Err(sentence.into()),
        None => Ok(None),
    }
}

fn unknown(first: &str) -> String {
    format!(
        "`{}` is no known header, nor do its columns say enough; what sacct -P or --json prints is read as it is, and any table whose \
         columns are named in a mapping (pleach workload import, docs/import.md); {}",
        shorten(first),
        known()
    )
}

fn known() -> String {
    let words: Vec<_> = Format::all().map(Format::word).collect();
    format!(
        "formats are {}; docs/workloads.md has their headers",
        words.join(", ")
    )
}
