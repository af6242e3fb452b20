//! Text in pages and plots: escaped, and bounded in length.

/// Longest name in a plot, characters.
const NAME_CHARS_MAX: usize = 40;
/// Longest name in a column of a plot, characters: as many as its room has.
const SHORT_CHARS_MAX: usize = 28;

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
pub(crate) fn escape_name(name: &str) -> String {
    if name.chars().count() <= NAME_CHARS_MAX {
        return escape(name);
    }
    let cut: String = name.chars().take(NAME_CHARS_MAX - 1).collect();
    escape(&format!("{cut}…"))
}

/// The same for a column of names, which is narrower.
#[must_use]
pub(crate) fn escape_short(name: &str) -> String {
    if name.chars().count() <= SHORT_CHARS_MAX {
        return escape(name);
    }
    let cut: String = name.chars().take(SHORT_CHARS_MAX - 1).collect();
    escape(&format!("{cut}…"))
}

/// Width of a character of a plot's text on average, pixels. *Ours*: of 12 px sans-serif, measured, with some room.
const CHAR_PX: f64 = 6.4;

/// About how wide a text is in a plot, pixels.
#[must_use]
pub(crate) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * CHAR_PX
}

/// `text` in lines of at most so many pixels, broken between words.
#[must_use]
pub(crate) fn wrapped(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width_of(line) + width_of(word) + CHAR_PX <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_names_are_cut() {
        assert_eq!(
            escape("<a href=\"x\">'&'\u{1b}"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;?"
        );
        assert_eq!(escape_name(&"x".repeat(100)).chars().count(), NAME_CHARS_MAX);
    }
}
