//! Reading tables from untrusted sources: delimited text, plain or gzipped, bounded line by line, or Parquet. Every complaint has
//! file, line (in Parquet: row), column, value, what is allowed and how to mend it.
//!
//! Refused: lines above 65,536 bytes, text that is not UTF-8, damaged gzip, rows with another number of fields
//! than the header, columns that appear twice. A quoted field may hold delimiters but no line break, so a missing
//! quote cannot swallow the file.

use std::path::Path;

use crate::{Lines, ParquetRows, Problem, is_printable};

/// What stands between the fields of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// A comma; fields may be quoted.
    Comma,
    /// A tabulator; fields may be quoted.
    Tab,
    /// A semicolon; fields may be quoted.
    Semicolon,
    /// A bar, as Slurm's commands separate fields; quotes mean nothing.
    Bar,
    /// Blanks, as many as it pleases; lines that start with a semicolon are comments.
    Blanks,
}

impl Delimiter {
    /// What stands between the names of a header most often; a comma where nothing does.
    #[must_use]
    pub fn of_header(line: &str) -> Delimiter {
        let signs = [
            (',', Delimiter::Comma),
            ('|', Delimiter::Bar),
            ('\t', Delimiter::Tab),
            (';', Delimiter::Semicolon),
        ];
        let num = |sign: char| line.matches(sign).count();
        // The first of equals.
        let most = signs.into_iter().rev().max_by_key(|(sign, _)| num(*sign));
        most.map_or(Delimiter::Comma, |(_, between)| between)
    }

    fn split(self, line: &str, out: &mut Vec<String>) -> Result<(), &'static str> {
        match self {
            Delimiter::Comma => split(line, ',', out),
            Delimiter::Tab => split(line, '\t', out),
            Delimiter::Semicolon => split(line, ';', out),
            Delimiter::Bar => {
                out.clear();
                out.extend(line.split('|').map(str::to_owned));
                Ok(())
            }
            Delimiter::Blanks => {
                out.clear();
                out.extend(line.split_ascii_whitespace().map(str::to_owned));
                Ok(())
            }
        }
    }
}

enum Source {
    Text(Lines, Delimiter),
    Parquet(Box<ParquetRows>),
}

/// A table with named columns.
pub struct Table {
    source: Source,
    header: Vec<String>,
    fields: Vec<String>,
    /// Whether `fields` holds a row that was read to learn the number of columns.
    is_ahead: bool,
    /// Whether rows that are no rows of the header are given out, to be counted.
    is_loose: bool,
    /// A row that was read to learn whether the one before goes on in it.
    next: Option<Vec<String>>,
    is_mended: bool,
    /// Whether a delimiter ends the header, and so each row.
    is_ended: bool,
}

/// Lines over which the breaks in one name may spread.
const BREAKS_MAX: usize = 8;

impl Table {
    /// Opens comma-separated text with a header, or Parquet (recognised by its first bytes), and checks that all of
    /// `required` are there.
    pub fn open(path: &Path, required: &[&str]) -> Result<Table, Problem> {
        Table::open_with(path, Delimiter::Comma, required)
    }

    /// The same with another delimiter.
    ///
    /// # Errors
    /// As [`Table::open`].
    pub fn open_with(path: &Path, between: Delimiter, required: &[&str]) -> Result<Table, Problem> {
        let mut header = Vec::new();
        let source = if ParquetRows::is_one(path)? {
            let rows = ParquetRows::open(path)?;
            header.extend_from_slice(rows.header());
            Source::Parquet(Box::new(rows))
        } else {
            let mut lines = Lines::open(path)?;
            read_header(&mut lines, between, required, &mut header)?;
            Source::Text(lines, between)
        };
        Table::of(source, header, required)
    }

    /// What stands between the fields of a file with a header; a comma for Parquet, where nothing does.
    ///
    /// # Errors
    /// A file that cannot be read or is empty.
    pub fn delimiter(path: &Path) -> Result<Delimiter, Problem> {
        if ParquetRows::is_one(path)? {
            return Ok(Delimiter::Comma);
        }
        let mut lines = Lines::open(path)?.lossy();
        match lines.next_line()? {
            Some(first) => Ok(Delimiter::of_header(first)),
            None => Err(lines.error("-", "the file is empty; it must start with a header".into())),
        }
    }

    /// The table of a text with commas and a header; `name` is for messages.
    ///
    /// # Errors
    /// As [`Table::open`].
    pub fn of_text(name: &str, text: Vec<u8>, required: &[&str]) -> Result<Table, Problem> {
        let (mut lines, mut header) = (Lines::of_text(name, text), Vec::new());
        read_header(&mut lines, Delimiter::Comma, required, &mut header)?;
        Table::of(Source::Text(lines, Delimiter::Comma), header, required)
    }

    /// Opens a table that another program exported, Parquet or text with a header and `between` its fields. Bytes that are no
    /// UTF-8 are replaced, columns may come twice (the first counts), and a delimiter may end each line. A row with another
    /// number of fields is not refused; [`Table::is_whole`] reports it.
    ///
    /// # Errors
    /// As [`Table::open`].
    pub fn open_loosely(path: &Path, between: Delimiter) -> Result<Table, Problem> {
        if ParquetRows::is_one(path)? {
            return Table::open(path, &[]);
        }
        let mut lines = Lines::open(path)?.lossy();
        let Some(first) = lines.next_line()? else {
            let text = "the file is empty; it must start with a header";
            return Err(lines.error("-", text.into()));
        };
        let mut header = Vec::new();
        let parsed = between.split(first, &mut header);
        parsed.map_err(|text| lines.error("-", text.into()))?;
        for name in &mut header {
            *name = name.trim().to_owned();
        }
        let is_ended = header.len() > 1 && header.last().is_some_and(String::is_empty);
        if is_ended {
            header.pop();
        }
        Ok(Table {
            source: Source::Text(lines, between),
            header,
            fields: Vec::new(),
            is_ahead: false,
            is_loose: true,
            next: None,
            is_mended: false,
            is_ended,
        })
    }

    /// Whether the present row was put together from several lines, because there are line breaks in a name.
    pub fn is_mended(&self) -> bool {
        self.is_mended
    }

    /// Whether the present row has as many fields as the header; only a table that was opened loosely has others.
    pub fn is_whole(&self) -> bool {
        self.fields.len() == self.header.len()
    }

    fn of(source: Source, mut header: Vec<String>, required: &[&str]) -> Result<Table, Problem> {
        for name in &mut header {
            *name = name.trim().to_owned();
        }
        let table = Table {
            source,
            header,
            fields: Vec::new(),
            is_ahead: false,
            is_loose: false,
            next: None,
            is_mended: false,
            is_ended: false,
        };
        table.check_header(required)?;
        Ok(table)
    }

    /// Opens text whose rows stand without a header; `names` gives the columns for a number of fields, or none where
    /// no row has so many, and `allowed` says which numbers there are.
    pub fn open_without_header(
        path: &Path,
        between: Delimiter,
        allowed: &str,
        names: impl Fn(usize) -> Option<&'static [&'static str]>,
    ) -> Result<Table, Problem> {
        let mut table = Table {
            source: Source::Text(Lines::open(path)?, between),
            header: Vec::new(),
            fields: Vec::new(),
            is_ahead: false,
            is_loose: false,
            next: None,
            is_mended: false,
            is_ended: false,
        };
        if table.read_fields()? {
            let num_fields = table.fields.len();
            let Some(names) = names(num_fields) else {
                let text = format!("the row has {num_fields} fields; allowed is {allowed}");
                return Err(table.error("-", text));
            };
            table.header = names.iter().map(|name| (*name).to_owned()).collect();
            table.is_ahead = true;
        }
        Ok(table)
    }

    fn check_header(&self, required: &[&str]) -> Result<(), Problem> {
        for (index, name) in self.header.iter().enumerate() {
            if self.header[..index].contains(name) {
                let text = format!("the column appears twice; keep one of the two `{name}`");
                return Err(self.error(name, text));
            }
        }
        let missing = |name: &&&str| !self.header.iter().any(|found| found == **name);
        if let Some(missing) = required.iter().find(missing) {
            let text = format!(
                "the column is missing; the header has {} and must have {}",
                shorten(&self.header.join(",")),
                required.join(", ")
            );
            return Err(self.error(missing, text));
        }
        Ok(())
    }

    /// Names of the columns.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Position of a column, if the file has it.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|found| found == name)
    }

    /// Moves to the next row; false at the end.
    pub fn next_row(&mut self) -> Result<bool, Problem> {
        if std::mem::take(&mut self.is_ahead) {
            return Ok(true);
        }
        if self.is_loose {
            self.is_mended = false;
            let is_row = self.read_loosely()?;
            if is_row && matches!(self.source, Source::Text(_, Delimiter::Bar)) {
                self.mend_break()?;
            }
            return Ok(is_row);
        }
        if !self.read_fields()? {
            return Ok(false);
        }
        if self.fields.len() != self.header.len() {
            let text = format!(
                "the row has {} fields and the header has {}; quote fields that hold commas",
                self.fields.len(),
                self.header.len()
            );
            return Err(self.error("-", text));
        }
        Ok(true)
    }

    /// The fields of a row of a loose table, without the empty one behind a delimiter at its end.
    fn read_loosely(&mut self) -> Result<bool, Problem> {
        if let Some(fields) = self.next.take() {
            self.fields = fields;
            return Ok(true);
        }
        if !self.read_fields()? {
            return Ok(false);
        }
        let is_one_more = self.fields.len() == self.header.len() + 1;
        if (self.is_ended || is_one_more) && self.fields.last().is_some_and(String::is_empty) {
            self.fields.pop();
        }
        Ok(true)
    }

    /// Puts a row together that goes on in the lines below it: fields between bars have no quotes, and names may have line breaks.
    fn mend_break(&mut self) -> Result<(), Problem> {
        let whole = self.header.len();
        for _ in 0..BREAKS_MAX {
            if self.fields.is_empty() || self.fields.len() >= whole {
                return Ok(());
            }
            let mut start = std::mem::take(&mut self.fields);
            let is_row = self.read_loosely()?;
            let joined = start.len() + self.fields.len() - usize::from(!self.fields.is_empty());
            if !is_row || self.fields.is_empty() || self.fields.len() >= whole || joined > whole {
                self.next = is_row.then(|| std::mem::take(&mut self.fields));
                self.fields = start;
                return Ok(());
            }
            let mut rest = std::mem::take(&mut self.fields).into_iter();
            if let (Some(last), Some(more)) = (start.last_mut(), rest.next()) {
                last.push(' ');
                last.push_str(&more);
            }
            start.extend(rest);
            self.fields = start;
            self.is_mended = true;
        }
        Ok(())
    }

    fn read_fields(&mut self) -> Result<bool, Problem> {
        let (lines, between) = match &mut self.source {
            Source::Parquet(rows) => return rows.next_row(&mut self.fields),
            Source::Text(lines, between) => (lines, *between),
        };
        while let Some(line) = lines.next_line()? {
            if between == Delimiter::Blanks && line.trim_start().starts_with(';') {
                continue;
            }
            let parsed = between.split(line, &mut self.fields);
            return match parsed {
                Ok(()) => Ok(true),
                Err(_) if self.is_loose => {
                    self.fields.clear();
                    Ok(true)
                }
                Err(text) => Err(lines.error("-", text.into())),
            };
        }
        Ok(false)
    }

    /// A complaint about the present row.
    pub fn error(&self, column: &str, message: String) -> Problem {
        match &self.source {
            Source::Text(lines, _) => lines.error(column, message),
            Source::Parquet(rows) => rows.error(column, message),
        }
    }

    /// Number of the present line, in Parquet of the row; from 1.
    pub fn line(&self) -> u64 {
        match &self.source {
            Source::Text(lines, _) => lines.line,
            Source::Parquet(rows) => rows.row(),
        }
    }

    /// Text of a field of the present row, without surrounding blanks; empty where the file lacks the column.
    pub fn text(&self, column: Option<usize>) -> &str {
        column
            .and_then(|index| self.fields.get(index))
            .map_or("", |text| text.trim())
    }

    /// A number of the present row that must be there.
    pub fn number(&self, column: Option<usize>, min: f64, max: f64, fix: &str) -> Result<f64, Problem> {
        let text = self.text(column);
        match text.parse::<f64>() {
            Ok(value) if value >= min && value <= max => Ok(value),
            _ => Err(self.refuse(column, &format!("a number from {min} to {max}"), fix)),
        }
    }

    /// A number that may be left empty.
    pub fn optional(
        &self,
        column: Option<usize>,
        min: f64,
        max: f64,
        fix: &str,
    ) -> Result<Option<f64>, Problem> {
        if self.text(column).is_empty() {
            return Ok(None);
        }
        self.number(column, min, max, fix).map(Some)
    }

    /// A whole number from 0 to `u32::MAX`.
    pub fn count(&self, column: Option<usize>, fix: &str) -> Result<u32, Problem> {
        let most = f64::from(u32::MAX);
        match self.text(column).parse::<f64>() {
            Ok(value) if (0.0..=most).contains(&value) && value.fract() == 0.0 => Ok(value as u32),
            _ => Err(self.refuse(column, "a whole number of GPUs", fix)),
        }
    }

    /// A name that must be there: an id.
    pub fn name(&self, column: Option<usize>) -> Result<String, Problem> {
        let text = self.text(column);
        if text.is_empty() || !is_printable(text) {
            return Err(self.refuse(column, "1 to 256 printable characters", "give every job a name"));
        }
        Ok(text.to_owned())
    }

    /// A name that may be left empty: a tenant, a user.
    pub fn optional_name(&self, column: Option<usize>) -> Result<Option<String>, Problem> {
        if self.text(column).is_empty() {
            return Ok(None);
        }
        self.name(column).map(Some)
    }

    /// A complaint about a value of the present row.
    pub fn refuse(&self, column: Option<usize>, allowed: &str, fix: &str) -> Problem {
        let name = column
            .and_then(|index| self.header.get(index))
            .map_or("-", String::as_str);
        let text = format!(
            "`{}` is not allowed here: allowed is {allowed}; {fix}",
            shorten(self.text(column))
        );
        self.error(name, text)
    }
}

/// Reads the names of the columns.
fn read_header(
    lines: &mut Lines,
    between: Delimiter,
    required: &[&str],
    header: &mut Vec<String>,
) -> Result<(), Problem> {
    let Some(first) = lines.next_line()? else {
        let text = format!(
            "the file is empty; it must start with a header that names {}",
            required.join(", ")
        );
        return Err(lines.error("-", text));
    };
    let parsed = between.split(first, header);
    parsed.map_err(|text| lines.error("-", text.into()))
}

/// Splits a line at `delimiter`; a field in double quotes may hold it, and a doubled quote stands for one.
pub fn split(line: &str, delimiter: char, out: &mut Vec<String>) -> Result<(), &'static str> {
    out.clear();
    let mut rest = line;
    loop {
        let Some(quoted) = rest.strip_prefix('"') else {
            let end = rest.find(delimiter).unwrap_or(rest.len());
            out.push(rest[..end].to_owned());
            match rest.get(end + delimiter.len_utf8()..) {
                Some(tail) => rest = tail,
                None => return Ok(()),
            }
            continue;
        };
        let mut field = String::new();
        let mut chars = quoted.char_indices();
        let tail = loop {
            match chars.next() {
                None => return Err("a quoted field is not closed; add the missing double quote"),
                Some((_, '"')) => match chars.next() {
                    Some((_, '"')) => field.push('"'),
                    Some((at, next)) if next == delimiter => break Some(&quoted[at + next.len_utf8()..]),
                    Some(_) => return Err("text follows a closing double quote; double the quotes inside"),
                    None => break None,
                },
                Some((_, other)) => field.push(other),
            }
        };
        out.push(field);
        match tail {
            Some(tail) => rest = tail,
            None => return Ok(()),
        }
    }
}

/// A value for a message: escaped, at most 60 characters.
pub fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().nth(60).is_some() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of each row of a table with bars, and whether the row is mended.
    fn loose(text: &str) -> Vec<(Vec<String>, bool)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, text).unwrap();
        let mut table = Table::open_loosely(&path, Delimiter::Bar).unwrap();
        let mut rows = Vec::new();
        while table.next_row().unwrap() {
            rows.push((table.fields.clone(), table.is_mended()));
        }
        rows
    }

    #[test]
    fn a_name_with_line_breaks_is_put_together_and_spoils_no_other_row() {
        let of = |fields: [&str; 4], is_mended| (fields.map(str::to_owned).to_vec(), is_mended);
        for (head, end) in [("id|name|start|end\n", "\n"), ("id|name|start|end|\n", "|\n")] {
            let rows = [
                "1|a|2|3",
                "2|x|y|2|3",
                "3|two\nlines|2|3",
                "4|th\n\nr\nee|2|3",
                "5|b|2|3",
            ];
            let found = loose(&format!("{head}{}{end}", rows.join(end)));
            assert_eq!(found[0], of(["1", "a", "2", "3"], false));
            assert_eq!((found[1].0.len(), found[1].1), (5, false), "{found:?}");
            assert_eq!(found[2], of(["3", "two lines", "2", "3"], true));
            assert_eq!(found[3], of(["4", "th r ee", "2", "3"], true));
            assert_eq!(found[4..], [of(["5", "b", "2", "3"], false)], "{found:?}");
        }
        // Rows that are cut take no whole one with them.
        let rows = loose("id|name|start|end\n1|a|2\n2|b|2|3\nx\n3|c|2|3\n4|d");
        let lens: Vec<usize> = rows.iter().map(|(fields, _)| fields.len()).collect();
        assert_eq!(lens, [3, 4, 1, 4, 2], "{rows:?}");
        assert!(rows.iter().all(|(_, is_mended)| !is_mended));
    }

    #[test]
    fn the_delimiter_of_a_header_is_what_stands_there_most_often() {
        for (header, between) in [
            ("a,b;c,d", Delimiter::Comma),
            ("a;b;c", Delimiter::Semicolon),
            ("a\tb", Delimiter::Tab),
            ("a|b|", Delimiter::Bar),
            ("a", Delimiter::Comma),
        ] {
            assert_eq!(Delimiter::of_header(header), between, "{header}");
        }
    }

    #[test]
    fn quoted_fields_may_hold_delimiters_and_quotes() {
        let mut out = Vec::new();
        split("a,\"b,\"\"c\"\"\",,d", ',', &mut out).unwrap();
        assert_eq!(out, ["a", "b,\"c\"", "", "d"]);
        split("", ',', &mut out).unwrap();
        assert_eq!(out, [""]);
        split("a,", ',', &mut out).unwrap();
        assert_eq!(out, ["a", ""]);
        split("\"x\",", ',', &mut out).unwrap();
        assert_eq!(out, ["x", ""]);
        assert!(split("\"open", ',', &mut out).is_err());
        assert!(split("\"a\"b", ',', &mut out).is_err());
    }

    proptest::proptest! {
        #[test]
        fn splitting_never_panics(line in ".*") {
            let mut out = Vec::new();
            let _ = split(&line, ',', &mut out);
        }
    }
}
