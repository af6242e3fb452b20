//! YAML as Kubernetes writes it and people write its objects: block and flow collections; scalars plain, quoted and as blocks.
//!
//! # What is deliberately not here
//! Anchors, aliases, tags and keys that are no scalars: they are refused with their line.

use std::fmt;

use serde_json::{Map, Value};

/// Most levels, *ours*.
const LEVELS_MAX: usize = 64;

/// Why a text is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// From 1.
    pub line: usize,
    reason: &'static str,
}

impl fmt::Display for YamlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.reason)
    }
}

impl std::error::Error for YamlError {}

type Read<T> = Result<T, YamlError>;

/// The documents of a text; empty ones are left out.
///
/// # Errors
/// What is no YAML, or not read.
pub fn documents(text: &str) -> Read<Vec<Value>> {
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let mut reader = Reader {
        text,
        starts: starts.collect(),
        lines: text.split('\n').collect(),
        at: 0,
        part: None,
        levels: 0,
    };
    let mut found = Vec::new();
    while reader.at < reader.lines.len() {
        if reader.lines[reader.at].starts_with("---") {
            reader.at += 1;
        }
        let value = reader.node(0)?;
        if reader.peek().is_some() {
            return Err(reader.refused("it stands less far in than what it belongs to"));
        }
        found.extend(Some(value).filter(|value| !value.is_null()));
    }
    Ok(found)
}

struct Reader<'a> {
    text: &'a str,
    /// Lines, and where they begin in the text.
    lines: Vec<&'a str>,
    starts: Vec<usize>,
    at: usize,
    /// Where the rest of a line begins whose first part was read.
    part: Option<usize>,
    levels: usize,
}

impl<'a> Reader<'a> {
    fn refused(&self, reason: &'static str) -> YamlError {
        YamlError {
            line: self.at + 1,
            reason,
        }
    }

    /// How far in the next content stands, and what it is; none at the end of a document.
    fn peek(&mut self) -> Option<(usize, &'a str)> {
        loop {
            let line = *self.lines.get(self.at)?;
            let from = self.part.unwrap_or(0);
            let rest = line[from..].trim_start_matches(' ');
            if self.part.is_none() && (line.starts_with("---") || line.trim_end() == "...") {
                self.at += usize::from(line.starts_with("..."));
                return None;
            }
            if rest.trim().is_empty() || rest.starts_with('#') {
                self.next_line();
                continue;
            }
            return Some((line.len() - rest.len(), rest.trim_end()));
        }
    }

    fn next_line(&mut self) {
        self.at += 1;
        self.part = None;
    }

    /// What stands at least so far in.
    fn node(&mut self, least: usize) -> Read<Value> {
        let Some((indent, content)) = self.peek().filter(|(indent, _)| *indent >= least) else {
            return Ok(Value::Null);
        };
        self.levels += 1;
        if self.levels > LEVELS_MAX {
            return Err(self.refused("more than 64 levels"));
        }
        let value = match () {
            () if is_item(content) => self.sequence(indent),
            () if key(content).is_some() => self.mapping(indent),
            () => self.scalar(content, least),
        };
        self.levels -= 1;
        value
    }

    fn sequence(&mut self, indent: usize) -> Read<Value> {
        let mut all = Vec::new();
        while let Some((_, content)) = self
            .peek()
            .filter(|(at, content)| *at == indent && is_item(content))
        {
            match content[1..].trim_start().is_empty() {
                true => self.next_line(),
                false => self.part = Some(indent + 1),
            }
            all.push(self.node(indent + 1)?);
        }
        Ok(Value::Array(all))
    }

    fn mapping(&mut self, indent: usize) -> Read<Value> {
        let mut all = Map::new();
        while let Some((_, content)) = self
            .peek()
            .filter(|(at, content)| *at == indent && !is_item(content))
        {
            let (key, rest) = key(content).ok_or_else(|| self.refused("no key with a colon and a blank"))?;
            let value = match rest {
                "" => {
                    self.next_line();
                    // A list may stand as far in as its key.
                    let is_list = self
                        .peek()
                        .is_some_and(|(at, content)| at == indent && is_item(content));
                    self.node(if is_list { indent } else { indent + 1 })?
                }
                rest => self.scalar(rest, indent + 1)?,
            };
            all.insert(key, value);
        }
        Ok(Value::Object(all))
    }

    /// A scalar or a flow collection that begins here and goes on in lines that stand at least so far in.
    fn scalar(&mut self, first: &'a str, least: usize) -> Read<Value> {
        let start = first.chars().next().unwrap_or(' ');
        if matches!(start, '|' | '>') {
            return Ok(self.block(first, least));
        }
        if matches!(start, '&' | '*' | '!' | '%' | '@' | '`') || first.starts_with("? ") {
            return Err(self.refused(
                "anchors, aliases, tags and keys that are no scalars are not read: write them out",
            ));
        }
        if matches!(start, '{' | '[' | '"' | '\'') {
            return self.flow(first);
        }
        let mut text = first.to_owned();
        self.next_line();
        while let Some((_, content)) = self.peek().filter(|(at, _)| *at >= least) {
            if is_item(content) || key(content).is_some() {
                break;
            }
            text.push(' ');
            text.push_str(content);
            self.next_line();
        }
        Ok(typed(without_comment(&text)))
    }

    /// A quotation or a flow collection, which may go on in further lines.
    fn flow(&mut self, first: &str) -> Read<Value> {
        let begin = self.starts[self.at] + self.lines[self.at].trim_end().len() - first.len();
        let mut rest = &self.text[begin..];
        let unclosed = self.refused("a quotation or a bracket that is not closed");
        let value = flow(&mut rest, false, LEVELS_MAX).ok_or(unclosed)?;
        let end = self.text.len() - rest.len();
        self.at = self.starts.partition_point(|start| *start <= end) - 1;
        let behind = rest.split('\n').next().unwrap_or_default().trim();
        if !behind.is_empty() && !behind.starts_with('#') {
            return Err(self.refused("something behind a quotation or a bracket"));
        }
        self.next_line();
        Ok(value)
    }

    /// Lines as they are, or folded.
    fn block(&mut self, header: &str, least: usize) -> Value {
        self.next_line();
        let of = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let (mut text, mut indent) = (String::new(), None);
        while let Some(line) = self.lines.get(self.at) {
            let is_blank = line.trim().is_empty();
            let from = *indent.get_or_insert(if is_blank { least } else { of(line).max(least) });
            if !is_blank && of(line) < from {
                break;
            }
            text.push_str(line.get(from..).unwrap_or(""));
            text.push(if header.starts_with('>') { ' ' } else { '\n' });
            self.at += 1;
        }
        let kept = text.trim_end();
        Value::String(if header.contains('-') {
            kept.to_owned()
        } else {
            format!("{kept}\n")
        })
    }
}

fn is_item(content: &str) -> bool {
    content == "-" || content.starts_with("- ")
}

/// The key at the beginning of a content, and what stands behind its colon.
fn key(content: &str) -> Option<(String, &str)> {
    if content.starts_with(['{', '[', '|', '>', '&', '*', '!', '?']) {
        return None;
    }
    if content.starts_with(['"', '\'']) {
        let mut rest = content;
        let key = quoted(&mut rest)?;
        let rest = rest.trim_start().strip_prefix(':')?;
        return (rest.is_empty() || rest.starts_with(' ')).then(|| (key, value_of(rest)));
    }
    let end = content
        .find(": ")
        .or_else(|| content.strip_suffix(':').map(str::len))?;
    let is_comment = content[..end].contains(" #");
    (!is_comment).then(|| {
        (
            content[..end].trim_end().to_owned(),
            value_of(&content[end + 1..]),
        )
    })
}

fn value_of(rest: &str) -> &str {
    let rest = rest.trim();
    if rest.starts_with('#') { "" } else { rest }
}

fn without_comment(text: &str) -> &str {
    text.split(" #").next().unwrap_or_default().trim_end()
}

/// A value in flow style; none where it is not whole. A key ends at a colon too.
fn flow(rest: &mut &str, is_key: bool, levels: usize) -> Option<Value> {
    *rest = rest.trim_start();
    let close = match rest.chars().next()? {
        '{' => '}',
        '[' => ']',
        '"' | '\'' => return quoted(rest).map(Value::String),
        _ => {
            let ends = |letter: char| matches!(letter, ',' | ']' | '}') || (is_key && letter == ':');
            let (text, behind) = rest.split_at(rest.find(ends)?);
            *rest = behind;
            return Some(typed(text.trim_end()));
        }
    };
    let levels = levels.checked_sub(1)?;
    *rest = &rest[1..];
    let (mut all, mut map) = (Vec::new(), Map::new());
    loop {
        *rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix(close) {
            *rest = behind;
            return Some(if close == '}' {
                Value::Object(map)
            } else {
                Value::Array(all)
            });
        }
        let mut value = flow(rest, close == '}', levels)?;
        if close == '}' {
            let key = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            *rest = rest.trim_start().strip_prefix(':')?;
            value = flow(rest, false, levels)?;
            map.insert(key, value);
        } else {
            all.push(value);
        }
        *rest = rest.trim_start();
        *rest = rest
            .strip_prefix(',')
            .or_else(|| rest.starts_with(close).then_some(*rest))?;
    }
}

/// A text in quotation marks; none where they are not closed.
fn quoted(rest: &mut &str) -> Option<String> {
    let mark = rest.chars().next()?;
    let (mut text, mut letters) = (String::new(), rest[1..].char_indices());
    while let Some((at, letter)) = letters.next() {
        let behind = &rest[1 + at + letter.len_utf8()..];
        match letter {
            '\'' if mark == letter && behind.starts_with('\'') => drop(letters.next()),
            letter if letter == mark => {
                *rest = behind;
                return Some(text);
            }
            // Lines are folded.
            '\n' => {
                text.truncate(text.trim_end_matches(' ').len());
                text.push(' ');
                let blanks = behind.len() - behind.trim_start().len();
                for _ in behind[..blanks].chars() {
                    letters.next();
                }
                continue;
            }
            '\\' if mark == '"' => {
                let (_, escape) = letters.next()?;
                let num_digits = match escape {
                    'x' => 2,
                    'u' => 4,
                    _ => 0,
                };
                let code = behind.get(1..=num_digits).filter(|_| num_digits > 0);
                let code = code.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                text.push(match escape {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'x' | 'u' => code
                        .and_then(char::from_u32)
                        .unwrap_or(char::REPLACEMENT_CHARACTER),
                    other => other,
                });
                for _ in 0..num_digits {
                    letters.next();
                }
                continue;
            }
            _ => {}
        }
        text.push(letter);
    }
    None
}

/// A plain scalar.
fn typed(text: &str) -> Value {
    match text {
        "" | "~" | "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => {
            let is_number =
                text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.'));
            let whole = text.parse::<i64>().ok().filter(|_| is_number).map(Value::from);
            let number = || text.parse::<f64>().ok().filter(|_| is_number).map(Value::from);
            whole.or_else(number).unwrap_or_else(|| Value::from(text))
        }
    }
}

/// A value as YAML.
#[must_use]
pub fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text
}

fn write(value: &Value, indent: usize, into: &mut String) {
    let margin = " ".repeat(indent);
    let mut put = |head: &str, value: &Value| match value {
        Value::Array(all) if !all.is_empty() => {
            into.push_str(&format!("{margin}{head}\n"));
            write(value, indent + usize::from(head == "-") * 2, into);
        }
        Value::Object(all) if !all.is_empty() && head != "-" => {
            into.push_str(&format!("{margin}{head}\n"));
            write(value, indent + 2, into);
        }
        Value::Object(all) if !all.is_empty() => {
            let mut item = String::new();
            write(value, indent + 2, &mut item);
            item.replace_range(indent..=indent, "-");
            into.push_str(&item);
        }
        Value::String(plain) if is_plain(plain) => into.push_str(&format!("{margin}{head} {plain}\n")),
        other => into.push_str(&format!("{margin}{head} {other}\n")),
    };
    match value {
        Value::Array(all) if !all.is_empty() => all.iter().for_each(|value| put("-", value)),
        Value::Object(all) if !all.is_empty() => {
            for (key, value) in all {
                match is_plain(key) {
                    true => put(&format!("{key}:"), value),
                    false => put(&format!("{}:", Value::from(key.as_str())), value),
                }
            }
        }
        other => into.push_str(&format!("{other}\n")),
    }
}

/// Whether a text is itself when it is read without quotation marks.
fn is_plain(text: &str) -> bool {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/');
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(is_safe)
        && typed(text).is_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_read_as_they_are_printed_and_as_people_write_them() {
        let text = "# A site.\napiVersion: v1\nitems:\n- kind: A   # the first\n  metadata:\n    annotations:\n      note: |\n        {\"a\": 1}\n\n        b\n    \
            name: \"x: \\\"y\\\"\"\n  spec: {}\n- kind: B\n  spec: {flavors: [{name: a, 'n': \"8\"}, b], weight: 2,\n    last: 0.5}\n  empty:\n  folded: >-\n    one\n    two\n  \
            message: couldn't assign\n    flavors\nlast: 'it''s'\n---\n- - 1\n  - -2\n-\n  k: http://x:1\n---\n";
        let found = documents(text).unwrap();
        let first = json!({
            "apiVersion": "v1",
            "items": [
                {"kind": "A", "metadata": {"annotations": {"note": "{\"a\": 1}\n\nb\n"}, "name": "x: \"y\""}, "spec": {}},
                {
                    "kind": "B", "spec": {"flavors": [{"name": "a", "n": "8"}, "b"], "weight": 2, "last": 0.5}, "empty": null,
                    "folded": "one two", "message": "couldn't assign flavors"
                }
            ],
            "last": "it's"
        });
        assert_eq!(found, [first, json!([[1, -2], {"k": "http://x:1"}])]);
        assert_eq!(
            documents("{\"a\": [1, {\"b\": null}]}").unwrap(),
            [json!({"a": [1, {"b": null}]})]
        );
    }

    #[test]
    fn what_is_no_yaml_is_refused_with_its_line() {
        for (text, line, words) in [
            ("a: 1\nb\n", 2, "no key"),
            ("a: &x 1\n", 1, "anchors"),
            ("a:\n  b: 1\n c: 2\n", 3, "less far in"),
            ("a: [1, 2\n", 1, "not closed"),
            (&"- ".repeat(100), 1, "64 levels"),
            (&format!("a: {}", "[".repeat(100_000)), 1, "not closed"),
        ] {
            let error = documents(text).unwrap_err();
            assert!(
                error.line == line && error.to_string().contains(words),
                "{text:.20}: {error:?}"
            );
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("\\PC{0,6}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(value in any_value()) {
            prop_assume!(!value.is_null());
            prop_assert_eq!(documents(&text(&value)).unwrap(), [value]);
        }

        #[test]
        fn no_text_makes_it_fail_otherwise_than_by_an_error(text in "(\\PC|[-:#{}\\[\\]\"' \n|>,]){0,80}") {
            let _ = documents(&text);
        }
    }
}
