//! Files beside published lists that hold no jobs, and a sentence for each that says what they are (`data/rejected.toml`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Deserialize)]
struct Rejected {
    /// Names that the header has, and what the file is: a key of the sentences, or a sentence.
    rows: Vec<(Vec<String>, String)>,
    sentences: BTreeMap<String, String>,
}

static REJECTED: LazyLock<Rejected> =
    LazyLock::new(
        || match toml::from_str(include_str!("../../data/rejected.toml")) {
            Ok(read) => read,
            Err(fault) => panic!("{fault}"),
        },
    );

fn sentence(key: &'static str) -> &'static str {
    REJECTED.sentences.get(key).map_or(key, String::as_str)
}

/// The sentence for a header, given whether it has all of some names. A single name must be the only one.
pub(super) fn of_header(num_columns: usize, has: impl Fn(&[String]) -> bool) -> Option<&'static str> {
    let is_known = |names: &[String]| has(names) && (names.len() > 1 || num_columns == 1);
    let known = REJECTED.rows.iter().find(|(names, _)| is_known(names));
    known.map(|(_, key)| sentence(key))
}

/// The sentence for the first lines of a JSON file.
pub(super) fn of_json(start: &str) -> Option<&'static str> {
    let has = |name: &str| start.contains(name);
    if !start.trim_start().starts_with(['{', '[']) {
        None
    } else if has("\"hash_ids\"") && has("\"input_length\"") {
        Some(sentence("requests"))
    } else if has("\"attempts\"") && has("\"submitted_time\"") {
        Some(sentence("raw_philly"))
    } else {
        None
    }
}
