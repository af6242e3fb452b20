//! What commands answer as JSON, figure by figure, held to `tests/goldens/json-*.txt` (tests/tests/goldens says how they are minted):
//! no digit moves by accident, and a test that fails names the figures that moved.

mod evaluate;
mod serve;
mod site;
mod sweeps;

use std::path::Path;

use pleach_tests::golden::{Digest, Row};
use serde_json::Value;

use super::command_line::succeed;

/// The longest text of JSON that is a row; what is longer is a row for each of its parts.
const ROW_MAX: usize = 120;
/// Numbers of a list, at most, that are rows each; of a longer list one row has the digest.
const NUMBERS_MAX: usize = 16;

/// The rows of commands that end in JSON: what each is called, and its line.
fn answers(folder: &Path, cases: &[(&str, &str)]) -> Vec<Row> {
    let of_case = |(name, line): &(&str, &str)| {
        let said = succeed(folder, &format!("{line} --json -"));
        rows(name, &serde_json::from_str(&said).expect("JSON alone"))
    };
    cases.iter().flat_map(of_case).collect()
}

/// A row for each figure: its path, and the figure in all its digits.
fn rows(name: &str, value: &Value) -> Vec<Row> {
    let text = value.to_string();
    let parts: Vec<(String, &Value)> = match value {
        _ if text.len() <= ROW_MAX => Vec::new(),
        Value::Object(object) => object.iter().map(|(key, part)| (key.clone(), part)).collect(),
        Value::Array(list) if list.len() <= NUMBERS_MAX || !list.iter().all(Value::is_number) => {
            let numbered = list.iter().enumerate();
            numbered.map(|(at, part)| (at.to_string(), part)).collect()
        }
        _ => Vec::new(),
    };
    if !parts.is_empty() {
        let separator = if name.contains(": ") { "." } else { ": " };
        let of_part = |(key, part): &(String, &Value)| rows(&format!("{name}{separator}{key}"), part);
        return parts.iter().flat_map(of_part).collect();
    }
    let name = name.to_owned();
    match value.as_array() {
        Some(list) if text.len() > ROW_MAX => {
            let mut digest = Digest::new();
            digest.text(&text);
            let [first, last] = [list.first(), list.last()].map(|number| number.cloned().unwrap_or_default());
            vec![Row::new(
                name,
                digest,
                format!("{} numbers, {first} to {last}", list.len()),
            )]
        }
        _ => vec![Row { name, result: text }],
    }
}

#[test]
fn a_figure_that_moves_in_its_last_digit_is_named() {
    let row = |value: &str| {
        let text = format!(
            r#"{{"policies": {{"fifo": {{"avg_jct_s": {value}, "words": "{:100}"}}}}}}"#,
            ""
        );
        rows("case", &serde_json::from_str(&text).unwrap())
    };
    let (one, other) = (row("0.1"), row("0.10000000000000002"));
    assert_eq!(one[0].name, "case: policies.fifo.avg_jct_s");
    assert_eq!([&one[0].result, &other[0].result], ["0.1", "0.10000000000000002"]);
    assert_eq!(one[1..], other[1..]);
    let list = |last: u32| Value::from((0..40).chain([last]).collect::<Vec<u32>>());
    assert_eq!(rows("case", &list(1)).len(), 1);
    assert_ne!(rows("case", &list(1)), rows("case", &list(2)));
}
