//! The paths that a source file writes: its `use` declarations, spread out, and the paths in its code.

/// One name that a `use` declaration brings.
#[derive(Debug)]
pub struct Import {
    /// Segments as written, `self` at the end taken off; a trailing `*` stays.
    pub path: Vec<String>,
    /// What the file calls it.
    pub name: String,
    /// Whether it is handed on.
    pub is_public: bool,
}

/// The text without comments, strings, characters and test modules.
pub fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else if let Some(length) = raw_string(rest) {
            at += length;
        } else if rest.starts_with('"') {
            at += string(rest);
            code.push_str("\"\"");
        } else if rest.starts_with("'") && is_character(rest) {
            at += if rest[1..].starts_with('\\') {
                rest[2..]
                    .char_indices()
                    .skip(1)
                    .find(|(_, c)| *c == '\'')
                    .map_or(rest.len(), |(end, _)| end + 3)
            } else {
                2 + rest[1..].chars().next().map_or(0, char::len_utf8)
            };
        } else {
            let letter = rest.chars().next().unwrap();
            code.push(letter);
            at += letter.len_utf8();
        }
    }
    without_tests(&code)
}

fn raw_string(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('r')?;
    let hashes = inner.len() - inner.trim_start_matches('#').len();
    inner[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let from = 2 + hashes;
    Some(
        rest[from..]
            .find(&close)
            .map_or(rest.len(), |end| from + end + close.len()),
    )
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character and not a lifetime.
fn is_character(rest: &str) -> bool {
    let mut letters = rest[1..].chars();
    letters.next() == Some('\\') || letters.next() == Some('\'')
}

/// Takes out what stands under `#[cfg(test)]`: an inline module or an item up to its closing brace.
fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = match (rest.find('{'), rest.find(';')) {
            (Some(open), Some(stop)) if stop < open => stop + 1,
            (Some(open), _) => open + block(&rest[open..]),
            (None, Some(stop)) => stop + 1,
            (None, None) => rest.len(),
        };
        rest = &rest[end..];
    }
    kept + rest
}

fn block(text: &str) -> usize {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Splits code into its `use` declarations and what is left.
pub fn imports_of(code: &str) -> (Vec<Import>, String) {
    let mut imports = Vec::new();
    let mut left = String::with_capacity(code.len());
    let mut rest = code;
    while let Some((start, is_public, body)) = next_use(rest) {
        left.push_str(&rest[..start]);
        let Some(end) = rest[body..].find(';') else { break };
        spread(&rest[body..body + end], &[], is_public, &mut imports);
        rest = &rest[body + end + 1..];
    }
    left.push_str(rest);
    (imports, left)
}

/// Where the next declaration starts, whether it is handed on, and where its tree starts.
fn next_use(code: &str) -> Option<(usize, bool, usize)> {
    let mut from = 0;
    loop {
        let at = from + code[from..].find("use ")?;
        let before = code[..at].trim_end();
        let is_public = before.ends_with("pub") || (before.ends_with(')') && before.contains("pub("));
        let starts = before.is_empty() || before.ends_with([';', '}', '{', ']']) || before.ends_with("pub");
        let restricted = before.ends_with(')')
            && before
                .rfind("pub(")
                .is_some_and(|open| !before[open..before.len() - 1].contains([')', ';']));
        if starts || restricted {
            let start = if is_public {
                before.rfind("pub").unwrap_or(at)
            } else {
                at
            };
            return Some((start, is_public && (starts || restricted), at + 4));
        }
        from = at + 4;
    }
}

/// Spreads a tree of a `use` declaration into paths.
fn spread(tree: &str, prefix: &[String], is_public: bool, imports: &mut Vec<Import>) {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let close = tree.rfind('}').unwrap_or(tree.len());
        let mut path = prefix.to_vec();
        path.extend(segments(&tree[..open]));
        for branch in branches(&tree[open + 1..close]) {
            spread(branch, &path, is_public, imports);
        }
        return;
    }
    let (path, alias) = tree
        .split_once(" as ")
        .map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let mut full = prefix.to_vec();
    full.extend(segments(path));
    if full.len() > 1 && full.last().is_some_and(|last| last == "self") {
        full.pop();
    }
    if let Some(last) = full.last() {
        let name = alias.unwrap_or(last).to_owned();
        imports.push(Import {
            path: full,
            name,
            is_public,
        });
    }
}

fn segments(path: &str) -> impl Iterator<Item = String> {
    path.split("::")
        .map(str::trim)
        .filter(|segment| !segment.is_empty())
        .map(str::to_owned)
}

fn branches(body: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, letter) in body.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&body[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&body[start..]);
    found
        .into_iter()
        .filter(|branch| !branch.trim().is_empty())
        .collect()
}

/// Paths of two or more segments in the code.
pub fn paths_of(code: &str) -> Vec<Vec<String>> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut found = Vec::new();
    for word in code.split(|letter: char| !is_word(letter) && letter != ':') {
        let word = word.trim_matches(':');
        if word.contains("::") {
            found.push(segments(word).collect());
        }
    }
    found
}
