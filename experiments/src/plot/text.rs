//! Text in pages and plots: escaped, and bounded in length.

/// Longest name in a plot, characters.
const NAME_CHARS_MAX: usize = 40;

/// `text` with the characters replaced that mean something in HTML; control characters that HTML forbids become `?`.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

/// A name for a plot: escaped, and cut if it is long.
#[must_use]
pub fn escape_name(name: &str) -> String {
    if name.chars().count() <= NAME_CHARS_MAX {
        return escape(name);
    }
    let cut: String = name.chars().take(NAME_CHARS_MAX - 1).collect();
    escape(&format!("{cut}…"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Checks that every tag of `html` is closed in order and that every attribute is quoted.
    pub(crate) fn assert_well_formed(html: &str) {
        const VOID: [&str; 3] = ["meta", "br", "hr"];
        let mut open: Vec<String> = Vec::new();
        let mut rest = html;
        while let Some(start) = rest.find('<') {
            assert!(!rest[..start].contains('>'), "stray > in {:?}", &rest[..start]);
            let end = start + rest[start..].find('>').expect("an open tag");
            let tag = &rest[start + 1..end];
            rest = &rest[end + 1..];
            assert_eq!(tag.matches('"').count() % 2, 0, "quotes in <{tag}>");
            if tag.starts_with('!') || tag.ends_with('/') {
                continue;
            }
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name), "closing tag");
                continue;
            }
            let name = tag.split_whitespace().next().expect("a tag's name").to_string();
            if name == "style" {
                let close = rest.find("</style>").expect("the end of the style");
                rest = &rest[close + "</style>".len()..];
            } else if !VOID.contains(&name.as_str()) {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "left open: {open:?}");
    }

    #[test]
    fn text_is_escaped_and_names_are_cut() {
        assert_eq!(
            escape("<a href=\"x\">'&'\u{1b}"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;?"
        );
        assert_eq!(escape_name(&"x".repeat(100)).chars().count(), NAME_CHARS_MAX);
    }
}
