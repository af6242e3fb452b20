//! The mappings of this crate: published lists that are known by their header, a file each in the folder `mappings`.

use std::path::Path;
use std::sync::LazyLock;

use super::published::Published;
use super::site::Mapping;
use crate::Error;
use crate::table::Table;

/// The mappings of this crate by name; the most special header first.
pub(super) static LISTS: LazyLock<Vec<(&'static str, Mapping)>> = LazyLock::new(|| {
    let texts: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/mappings.rs"));
    let read = |(name, text): &(&'static str, &str)| match Mapping::of_text(name, text) {
        Ok(mapping) => (*name, mapping),
        Err(fault) => panic!("{fault}"),
    };
    texts.iter().map(read).collect()
});

/// The mapping of a list of this crate.
pub(super) fn mapping_of(name: &str) -> Option<&'static Mapping> {
    LISTS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, mapping)| mapping)
}

/// What is published of a list that has a reader of its own, and an open table of it.
pub(super) fn open(name: &str, path: &Path) -> Result<(Table, &'static Published), Error> {
    static NONE: LazyLock<Published> = LazyLock::new(Published::default);
    let mapping = mapping_of(name);
    let names: Vec<&str> = mapping
        .and_then(|of| of.headers.first())
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let published = mapping.and_then(|mapping| mapping.published.as_ref());
    Ok((Table::open(path, &names)?, published.unwrap_or(&NONE)))
}

/// The list with such a header, and the second line of the file where it is known. Of several headers the longest counts.
pub(super) fn of_header(names: &[String], second: Option<&str>) -> Option<&'static str> {
    let has = |wanted: &Vec<String>| {
        wanted
            .iter()
            .all(|name| names.iter().any(|found| found.trim() == name))
    };
    let known = LISTS.iter().flat_map(|(name, mapping)| {
        let start = mapping
            .published
            .as_ref()
            .map_or("", |published| published.ids_start.as_str());
        mapping.headers.iter().map(move |header| (header, start, *name))
    });
    let fits = known.filter(|(header, start, _)| {
        has(header) && (start.is_empty() || second.is_some_and(|row| row.starts_with(start)))
    });
    let best = fits.max_by_key(|(header, start, _)| (header.len(), !start.is_empty()));
    best.map(|(_, _, name)| name)
}

#[cfg(test)]
#[path = "mappings_tests.rs"]
mod tests;
