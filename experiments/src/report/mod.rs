//! One self-contained HTML page about an evaluation: table, plots, tree, and what made it.
//!
//! No network, no script, no font to load: the page opens from a mail attachment in ten years. It follows the reader's
//! light or dark setting, tells series apart by colour *and* dash and order, and its size is bounded: plots are thinned to
//! a fixed number of points. Every text that comes from outside is escaped.

pub mod axis;
pub mod bars;
pub mod cdf;
pub mod frame;
pub mod learning;
pub mod page;
pub mod ratio;
pub mod utilisation;

pub use learning::LearningCurve;
pub use page::Report;

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

/// At most `limit` (at least 2) of `points`, evenly spread, with the first and the last.
#[must_use]
pub fn thin<T: Copy>(points: &[T], limit: usize) -> Vec<T> {
    let limit = limit.max(2);
    if points.len() <= limit {
        return points.to_vec();
    }
    (0..limit)
        .map(|i| points[i * (points.len() - 1) / (limit - 1)])
        .collect()
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

    #[test]
    fn thinning_keeps_the_ends() {
        let points: Vec<usize> = (0..1000).collect();
        let thinned = thin(&points, 5);
        assert_eq!(thinned, [0, 249, 499, 749, 999]);
        assert_eq!(thin(&points[..3], 5), [0, 1, 2]);
    }
}
