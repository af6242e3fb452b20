//! Content hashes: SHA-256 of bytes and of JSON in one canonical form.
//!
//! Canonical means keys sorted by bytes, no white space, numbers as `serde_json` prints them. The sorting is done here
//! and not left to the map type, because a feature of another crate can switch that to insertion order.

use std::fs::File;
use std::io;
use std::path::Path;

use pleach_policies::hash_reader;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::Error;

/// Hex SHA-256 of `bytes`.
#[must_use]
pub(crate) fn hash_bytes(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes).into())
}

/// Size and hex SHA-256 of a file, which is never in memory as a whole.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn hash_file(path: &Path) -> io::Result<(u64, String)> {
    hash_reader(File::open(path)?, u64::MAX)
}

/// Hex SHA-256 of a file.
///
/// # Errors
/// A file that cannot be read.
pub fn sha256_of(path: &Path) -> Result<String, Error> {
    let hashed = hash_file(path).map_err(|source| Error::io("read", path, source))?;
    Ok(hashed.1)
}

fn hex(digest: [u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hex SHA-256 of `value` in canonical form.
#[must_use]
pub(crate) fn hash_json(value: &Value) -> String {
    hash_bytes(canonical_json(value).as_bytes())
}

/// `value` with sorted keys and no white space.
#[must_use]
pub(crate) fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            text.push('{');
            for (position, key) in keys.into_iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                text.push_str(&Value::String(key.clone()).to_string());
                text.push(':');
                write_canonical(&map[key], text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_does_not_depend_on_the_order_of_keys() {
        let one: Value = serde_json::from_str(r#"{"b": [1, 2.5], "a": {"y": null, "x": "q\"" }}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"a": {"x": "q\"", "y": null}, "b": [1, 2.5]}"#).unwrap();
        assert_eq!(canonical_json(&one), r#"{"a":{"x":"q\"","y":null},"b":[1,2.5]}"#);
        assert_eq!(hash_json(&one), hash_json(&two));
    }

    #[test]
    fn the_hash_is_plain_sha_256() {
        // The empty message, FIPS 180-4 example.
        assert_eq!(
            hash_bytes(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        let long = vec![7; 100_000];
        let read = |num_bytes| hash_reader(long.as_slice(), num_bytes).unwrap();
        assert_eq!(read(u64::MAX), (long.len() as u64, hash_bytes(&long)));
        assert_eq!(read(5), (5, hash_bytes(&long[..5])));
    }
}
