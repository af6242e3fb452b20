//! What users did wrong: the one type of such an error in all crates, so that none turns another's into its own.
//!
//! Four families: a setting out of its range, a place in a file, two sides that do not fit together, a file that the system does
//! not give. Each says what was found, what would be accepted and how to mend it.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which kind of problem it is; how it is written depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A value that cannot be used: `config: load = -1: allowed is ...`.
    Config,
    /// A file that is not what it should be: `data: jobs.csv, line 17, column num_gpus: ...`.
    Data,
    /// Two sides that must agree and do not: `contract: the schema: expected ..., found ...`.
    Contract,
    /// A file that cannot be read or written, where the key is what was tried: `read jobs.csv: ...`.
    File,
}

/// What a user did wrong, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its kind.
    pub family: Family,
    /// Where, if in a file.
    pub place: Option<Box<Place>>,
    /// Path of the setting, or what does not fit.
    pub key: String,
    /// The value found.
    pub value: String,
    /// What would be accepted.
    pub allowed: String,
    /// How to mend it; of data what is wrong as well.
    pub hint: String,
}

/// A place in a file.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The file, or what was read.
    pub file: PathBuf,
    /// Line from 1, in Parquet the row; 0 where the file as a whole is meant.
    pub line: u64,
    /// Column by its name, or by its number from 1; empty where the line as a whole is meant.
    pub column: String,
    /// What the system or the parser said.
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        (&self.file, self.line, &self.column) == (&other.file, other.line, &other.column)
    }
}

impl Eq for Place {}

impl Problem {
    /// A setting: its key, the value found, what would be accepted, and how to mend it.
    pub fn new(
        key: impl Into<String>,
        value: impl ToString,
        allowed: impl ToString,
        hint: impl ToString,
    ) -> Problem {
        Problem {
            family: Family::Config,
            place: None,
            key: key.into(),
            value: value.to_string(),
            allowed: allowed.to_string(),
            hint: hint.to_string(),
        }
    }

    /// Refuses a setting where it is wrong; key, value and the others as [`Problem::new`], and written only then.
    ///
    /// # Errors
    /// It is wrong.
    pub fn refuse_if(
        is_wrong: bool,
        key: impl ToString,
        value: impl ToString,
        allowed: impl ToString,
        hint: impl ToString,
    ) -> Result<(), Problem> {
        match is_wrong {
            true => Err(Problem::new(key.to_string(), value, allowed, hint)),
            false => Ok(()),
        }
    }

    /// A file that is not what it should be, as a whole.
    pub fn data(file: impl AsRef<Path>, message: impl ToString) -> Problem {
        Problem::at(file, 0, "", message)
    }

    /// A place in a file: its line from 1, and its column, `-` for none.
    pub fn at(file: impl AsRef<Path>, line: u64, column: &str, message: impl ToString) -> Problem {
        let column = if column == "-" { "" } else { column };
        let mut problem = Problem::new("", "", "", message);
        problem.family = Family::Data;
        problem.place = Some(Box::new(Place {
            file: file.as_ref().to_path_buf(),
            line,
            column: column.to_owned(),
            source: None,
        }));
        problem
    }

    /// A byte of a text at which it does not parse, with line and column.
    pub fn at_byte(file: impl AsRef<Path>, text: &str, byte: usize, message: impl ToString) -> Problem {
        let before = text.get(..byte.min(text.len())).unwrap_or("");
        let line = before.matches('\n').count() as u64 + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        Problem::at(file, line, &column.to_string(), message)
    }

    /// A JSON file that does not parse, with the place.
    #[must_use]
    pub fn json(file: &Path, source: serde_json::Error) -> Problem {
        let line = u64::try_from(source.line()).unwrap_or(u64::MAX);
        Problem::at(file, line, &source.column().to_string(), &source).caused_by(source)
    }

    /// Two sides that do not fit: what, our side, the other side, and how to mend it.
    pub fn contract(
        what: impl Into<String>,
        expected: impl ToString,
        found: impl ToString,
        hint: impl ToString,
    ) -> Problem {
        let mut problem = Problem::new(what, found, expected, hint);
        problem.family = Family::Contract;
        problem
    }

    /// A file that the system does not give, with what was tried: `read`, `write`.
    #[must_use]
    pub fn io(action: &str, file: &Path, source: io::Error) -> Problem {
        let mut problem = Problem::data(file, &source).caused_by(source);
        problem.family = Family::File;
        action.clone_into(&mut problem.key);
        problem
    }

    /// A file that cannot be read.
    pub fn unread(file: &Path) -> impl FnOnce(io::Error) -> Problem + '_ {
        move |source| Problem::io("read", file, source)
    }

    /// A file that cannot be written.
    pub fn unwritten(file: &Path) -> impl FnOnce(io::Error) -> Problem + '_ {
        move |source| Problem::io("write", file, source)
    }

    /// The same, with what the system or a parser said.
    #[must_use]
    pub fn caused_by(mut self, source: impl Error + Send + Sync + 'static) -> Problem {
        self.place.get_or_insert_default().source = Some(Arc::new(source));
        self
    }

    /// What the system said, where it did.
    #[must_use]
    pub fn system(&self) -> Option<&io::Error> {
        self.place.as_ref()?.source.as_ref()?.downcast_ref()
    }

    /// Whether the same input would fail again: all but a disk that is full, a device that is away and the like.
    #[must_use]
    pub fn is_of_input(&self) -> bool {
        use io::ErrorKind::{InvalidData, IsADirectory, NotADirectory, NotFound};
        match self.family {
            Family::File if self.key == "read" => self.system().is_some_and(|source| {
                matches!(
                    source.kind(),
                    NotFound | IsADirectory | NotADirectory | InvalidData
                )
            }),
            Family::File => false,
            _ => true,
        }
    }
}

impl fmt::Display for Place {
    /// As far as it is known: `trace.csv, line 17, column num_gpus`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.file.display())?;
        if self.line > 0 {
            write!(out, ", line {}", self.line)?;
        }
        match self.column.is_empty() {
            true => Ok(()),
            false => write!(out, ", column {}", self.column),
        }
    }
}

impl fmt::Display for Problem {
    /// Begins with the family, but not in the form `{:#}` that stands in another text. A guess comes first: what is allowed may be a
    /// long list.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem {
            key,
            value,
            allowed,
            hint,
            ..
        } = self;
        let family = match self.family {
            _ if out.alternate() => "",
            Family::Config => "config: ",
            Family::Data => "data: ",
            Family::Contract => "contract: ",
            Family::File => "",
        };
        out.write_str(family)?;
        let known = Place::default();
        let place = self.place.as_deref().unwrap_or(&known);
        match self.family {
            Family::Config if hint.starts_with("Did you mean ") => {
                write!(out, "{key} = {value}: {hint} Allowed is {allowed}.")
            }
            Family::Config => write!(out, "{key} = {value}: allowed is {allowed}. {hint}"),
            Family::Contract => write!(out, "{key}: expected {allowed}, found {value}. {hint}"),
            Family::Data => write!(out, "{place}: {hint}"),
            Family::File => write!(out, "{key} {place}: {hint}"),
        }
    }
}

impl Error for Problem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.place.as_ref()?.source.as_deref()?;
        Some(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_names_key_value_allowed_set_and_hint() {
        let problem = Problem::new("load", -1.0, "0 < load <= 10", "Give --load 0.8.");
        let said = "config: load = -1: allowed is 0 < load <= 10. Give --load 0.8.";
        assert_eq!(problem.to_string(), said);
        let guess = Problem::new("policy", "eazy", "easy, fifo", "Did you mean easy?");
        let said = "config: policy = eazy: Did you mean easy? Allowed is easy, fifo.";
        assert_eq!(guess.to_string(), said);
    }

    #[test]
    fn a_place_in_a_file_is_named_as_far_as_it_is_known() {
        let at = |line, column: &str| Problem::at("trace.csv", line, column, "bad").to_string();
        assert_eq!(
            at(17, "num_gpus"),
            "data: trace.csv, line 17, column num_gpus: bad"
        );
        assert_eq!(at(17, "-"), "data: trace.csv, line 17: bad");
        assert_eq!(at(0, ""), "data: trace.csv: bad");
    }

    #[test]
    fn what_the_system_said_is_kept_and_tells_a_wrong_name_from_a_full_disk() {
        let missing = Problem::io("read", Path::new("a"), io::ErrorKind::NotFound.into());
        assert!(missing.is_of_input() && missing.source().is_some());
        assert_eq!(missing.to_string(), "read a: entity not found");
        let full = Problem::io("write", Path::new("a"), io::ErrorKind::StorageFull.into());
        assert!(!full.is_of_input());
        assert_eq!(
            full.system().map(io::Error::kind),
            Some(io::ErrorKind::StorageFull)
        );
        let broken = serde_json::from_str::<u8>("{").unwrap_err();
        let broken = Problem::json(Path::new("a.json"), broken);
        assert!(
            broken.to_string().starts_with("data: a.json, line 1, column "),
            "{broken}"
        );
        assert!(broken.source().is_some() && broken.system().is_none());
    }
}
