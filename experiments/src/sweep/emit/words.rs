//! Words that go into other languages: a shell, and the header of a script of Slurm.

use crate::error::Error;

/// Refuses what no form can hold: nothing at all, and characters that end a line or cannot be seen.
pub(super) fn check(flag: &str, word: &str) -> Result<(), Error> {
    Error::refuse_if(
        word.is_empty() || word.chars().any(char::is_control),
        flag,
        format_args!("{word:?}"),
        "text in one line",
        "Give it a name without line breaks, tabs and other control characters.",
    )?;
    Ok(())
}

/// `word` as one word of a POSIX shell: as it is where it is plain, else in single quotes.
pub(super) fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// `word` as one word of a line `#SBATCH`: as it is where it is plain, else in double quotes, in which a backslash keeps what
/// follows. Outside of them it does not keep a space.
pub(super) fn directive(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if word.chars().all(is_plain) {
        return word.to_string();
    }
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_they_have_to_be() {
        assert_eq!(shell("runs/load/sweep.json"), "runs/load/sweep.json");
        assert_eq!(shell("a b"), "'a b'");
        assert_eq!(shell("it's $x"), "'it'\\''s $x'");
        assert_eq!(shell(""), "''");
        assert_eq!(
            directive("--output=a \"b\"#'/%A.log"),
            "\"--output=a \\\"b\\\"#'/%A.log\""
        );
    }
}
