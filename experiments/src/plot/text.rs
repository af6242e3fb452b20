//! Text in pictures: without control characters, bounded in length, in lines that fit.

/// Longest name in a plot, characters.
const NAME_CHARS_MAX: usize = 48;
/// Width of a character of a plot's text on average, pixels. *Ours*: of 12 px sans-serif, measured, with some room.
const CHAR_PX: f64 = 6.4;

/// A name for a plot: without what moves a cursor, and cut if it is long.
#[must_use]
pub(crate) fn clean(name: &str) -> String {
    let plain = name.chars().map(|c| if c.is_control() { '?' } else { c });
    match name.chars().count() {
        num if num <= NAME_CHARS_MAX => plain.collect(),
        _ => plain.take(NAME_CHARS_MAX - 1).chain(['…']).collect(),
    }
}

/// About how wide a text is in a plot, pixels.
#[must_use]
pub(super) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * CHAR_PX
}

/// `text` in lines of at most so many pixels, broken between words.
#[must_use]
pub(super) fn wrapped(text: &str, width: f64) -> Vec<String> {
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
