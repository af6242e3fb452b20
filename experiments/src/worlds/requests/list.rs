//! Files of requests: reading, writing, cutting into parts.

use std::path::Path;

use pleach_serving::llm::{Requests, file};

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
    let (first, num_rows) = (at(from), at(to) - at(from));
    Error::refuse_if(
        num > num_rows,
        "lists",
        num,
        format_args!("at most the list's {num_rows} requests"),
        "Try fewer.",
    )?;
    let place = |part: usize| first + part * num_rows / num;
    let parts = (0..num).map(|part| whole.part(place(part)..place(part + 1)));
    Ok(parts.collect::<Result<_, _>>()?)
}
