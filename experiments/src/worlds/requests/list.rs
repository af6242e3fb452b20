//! Files of requests: reading, writing, cutting into parts.

use std::path::Path;

use pleach_serving::llm::{Request, Requests, file};

use crate::error::Error;

/// Writes a list.
///
/// # Errors
/// What the system says.
pub fn write(path: &Path, requests: &Requests) -> Result<(), Error> {
    Ok(file::write(path, requests)?)
}

/// Reads a list in any of its forms.
///
/// # Errors
/// A file that cannot be read.
pub fn read(path: &Path) -> Result<file::Read, Error> {
    Ok(file::read(path)?)
}

/// What a list is, and its account.
pub(super) fn lines_of(read: &file::Read) -> Vec<String> {
    let first = format!("{} list: {}", read.format, read.account.sums("rows"));
    [first].into_iter().chain(read.account.lines("rows")).collect()
}

/// Consecutive parts, of as many requests, of the rows between two shares; each begins at 0.
pub(super) fn cut(whole: &Requests, (from, to): (f64, f64), num: usize) -> Result<Vec<Requests>, Error> {
    let at = |share: f64| (share * whole.rows().len() as f64).round() as usize;
    let rows = &whole.rows()[at(from)..at(to)];
    if num > rows.len() {
        let allowed = format!("at most the list's {} requests", rows.len());
        return Err(Error::config("lists", num, allowed, "Try fewer."));
    }
    let parts = (0..num).map(|part| {
        let rows = &rows[part * rows.len() / num..(part + 1) * rows.len() / num];
        let begins_s = rows[0].arrival_s;
        let rows = rows.iter().map(|row| Request {
            arrival_s: row.arrival_s - begins_s,
            ..*row
        });
        whole.of_rows(rows.collect())
    });
    Ok(parts.collect::<Result<_, _>>()?)
}
