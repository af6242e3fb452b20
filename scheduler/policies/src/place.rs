//! How a place is written: `[LABEL=][deal:|order:]PLACE`.

use std::path::{Component, Path};

use crate::IN_FOLDERS;

/// What stands before a policy by whose passes GPUs are dealt.
pub const DEALT: &str = "deal:";

/// What stands before a policy or a dealer of which no more than the order of the waiting jobs is carried out.
pub const ORDERED: &str = "order:";

/// What may stand before a place, with the place behind it.
#[must_use]
pub fn prefix_and_place(place: &str) -> (Option<&'static str>, &str) {
    let split = |prefix: &'static str| Some((Some(prefix), place.strip_prefix(prefix)?));
    [DEALT, ORDERED]
        .into_iter()
        .find_map(split)
        .unwrap_or((None, place))
}

/// Whether a text is written as a path and not as a name: with folders, from `.` or `~` on, or with an ending that files have.
/// Environments have names such as `Pleach/Philly-v0`.
#[must_use]
pub fn is_path(text: &str) -> bool {
    const ENDINGS: [&str; 14] = [
        "csv", "tsv", "txt", "json", "jsonl", "parquet", "gz", "swf", "trace", "toml", "onnx", "ckpt", "pt",
        "log",
    ];
    let has_folder = text.contains(['/', '\\']) && !text.starts_with("Pleach/");
    let ending = Path::new(text)
        .extension()
        .map(|ending| ending.to_string_lossy().to_lowercase());
    has_folder
        || text.starts_with(['.', '~'])
        || ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

/// The two parts of `LABEL=PLACE`; all of it is the place where there is no label. A label has no `/`, `\` and `:`, so a path may
/// have a `=` in it behind its first folder.
#[must_use]
pub fn label_and_place(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((label, place)) if !label.is_empty() && !label.contains(['/', '\\', ':']) => {
            (Some(label), place)
        }
        _ => (None, text),
    }
}

/// What distinguishes a policy of a file from others of its name: the last folders of its path, and its file where that has a
/// name of its own. `kind` comes after them, for one of several policies of a folder. Nothing for what has a label or is no file.
pub(crate) fn words_of(text: &str, kind: Option<&str>) -> Vec<String> {
    let (label, place) = label_and_place(text);
    let mut place = place;
    while let (Some(_), inner) = prefix_and_place(place) {
        place = inner;
    }
    let place = Path::new(place);
    if label.is_some() || !place.exists() {
        return Vec::new();
    }
    let parts = place.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    let mut words: Vec<String> = parts.collect();
    if place.is_file()
        && words
            .last()
            .is_some_and(|name| IN_FOLDERS.contains(&name.as_str()))
    {
        words.pop();
    } else if place.is_file() {
        let stem = place
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        words.pop();
        words.push(stem);
    }
    words.extend(kind.map(str::to_string));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_stands_before_the_first_equals_sign_and_is_no_folder() {
        for (text, parts) in [
            ("sjf", (None, "sjf")),
            ("mine=sjf", (Some("mine"), "sjf")),
            ("mine=deal:sjf", (Some("mine"), "deal:sjf")),
            ("=sjf", (None, "=sjf")),
            ("runs/load=2/tree.json", (None, "runs/load=2/tree.json")),
            ("a=runs/load=2", (Some("a"), "runs/load=2")),
            ("deal:a=b.json", (None, "deal:a=b.json")),
        ] {
            assert_eq!(label_and_place(text), parts, "{text}");
        }
    }
}
