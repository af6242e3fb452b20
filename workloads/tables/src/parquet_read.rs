//! Reads Parquet as a table of text, so that the same checks and the same complaints hold as for CSV.
//!
//! Numbers become the shortest text that reads back to the same bits, truth values become words (`true` is no number),
//! nulls become empty fields. A complaint names the
//! row, counted from 1, where it names the line of a CSV. Refused: nested columns, types other than numbers, truth
//! values and text, codecs other than none, Snappy and gzip, more rows than a workload may hold, damaged files.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::RowIter;

use crate::{LINE_BYTES_MAX, LINES_MAX, Problem};

/// Most columns.
const NUM_COLUMNS_MAX: usize = 1000;

/// Rows of a Parquet file.
pub struct ParquetRows {
    file: String,
    header: Vec<String>,
    rows: RowIter<'static>,
    /// Number of the last row read, from 1; 0 before the first.
    row: u64,
}

impl ParquetRows {
    /// Whether a file starts as Parquet does.
    pub fn is_one(path: &Path) -> Result<bool, Problem> {
        let mut start = [0; 4];
        match File::open(path).and_then(|mut file| file.read_exact(&mut start)) {
            Ok(()) => Ok(start == *b"PAR1"),
            // Shorter than four bytes, or a folder: the reader of text reports it.
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::IsADirectory) => {
                Ok(false)
            }
            Err(source) => Err(Problem::io("read", path, source)),
        }
    }

    /// Opens a file and reads its schema.
    pub fn open(path: &Path) -> Result<ParquetRows, Problem> {
        let file = File::open(path).map_err(Problem::unread(path))?;
        let name = path.display().to_string();
        let refuse = |column: &str, message: String| Problem::at(&name, 0, column, message);
        let opened = guarded(|| SerializedFileReader::new(file));
        let reader = opened.map_err(|text| refuse("-", damaged(&text)))?;
        let metadata = reader.metadata().file_metadata();
        if metadata.num_rows() < 0 || metadata.num_rows().unsigned_abs() > LINES_MAX {
            let text = format!(
                "{} rows; allowed is 0 to {LINES_MAX}; cut the list",
                metadata.num_rows()
            );
            return Err(refuse("-", text));
        }
        let columns = metadata.schema().get_fields();
        if columns.len() > NUM_COLUMNS_MAX {
            let text = format!(
                "{} columns; allowed is up to {NUM_COLUMNS_MAX}; is this a list of jobs?",
                columns.len()
            );
            return Err(refuse("-", text));
        }
        if let Some(nested) = columns.iter().find(|column| !column.is_primitive()) {
            let text = "the column is nested; allowed is one number, truth value or text per row; flatten it";
            return Err(refuse(nested.name(), text.into()));
        }
        let header = columns.iter().map(|column| column.name().to_owned()).collect();
        Ok(ParquetRows {
            header,
            rows: RowIter::from_file_into(Box::new(reader)),
            row: 0,
            file: name,
        })
    }

    /// Names of the columns.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Number of the last row read, from 1.
    pub fn row(&self) -> u64 {
        self.row
    }

    /// Reads the next row's fields; false at the end.
    pub fn next_row(&mut self, fields: &mut Vec<String>) -> Result<bool, Problem> {
        self.row += 1;
        if self.row > LINES_MAX {
            return Err(self.error("-", format!("more than {LINES_MAX} rows; cut the list")));
        }
        let rows = &mut self.rows;
        let next = guarded(|| rows.next().transpose());
        let row = match next {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(false),
            Err(text) => return Err(self.error("-", damaged(&text))),
        };
        fields.clear();
        let mut num_bytes = 0;
        for (name, field) in row.get_column_iter() {
            let text = match field {
                Field::Null => String::new(),
                // As words, so that no truth value passes for a time or a number of GPUs.
                Field::Bool(value) => value.to_string(),
                Field::Byte(value) => value.to_string(),
                Field::Short(value) => value.to_string(),
                Field::Int(value) => value.to_string(),
                Field::Long(value) => value.to_string(),
                Field::UByte(value) => value.to_string(),
                Field::UShort(value) => value.to_string(),
                Field::UInt(value) => value.to_string(),
                Field::ULong(value) => value.to_string(),
                Field::Float(value) => value.to_string(),
                Field::Double(value) => value.to_string(),
                Field::Str(value) => value.clone(),
                Field::Bytes(value) => match value.as_utf8() {
                    Ok(value) => value.to_owned(),
                    Err(_) => return Err(self.error(name, "the bytes are not UTF-8; store text".into())),
                },
                _ => {
                    let text = "the column's type is not allowed: allowed is whole numbers, floats, truth values \
                                and text; convert it (times to seconds)";
                    return Err(self.error(name, text.into()));
                }
            };
            num_bytes += text.len();
            fields.push(text);
        }
        if num_bytes > LINE_BYTES_MAX {
            let text = format!("the row is longer than {LINE_BYTES_MAX} bytes; is this a list of jobs?");
            return Err(self.error("-", text));
        }
        Ok(true)
    }

    /// A complaint about the present row.
    pub fn error(&self, column: &str, message: String) -> Problem {
        Problem::at(&self.file, self.row, column, message)
    }
}

/// Runs the decoder; a damaged file is an error also where the decoder panics on it.
fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the decoder stopped".into()),
    }
}

fn damaged(text: &str) -> String {
    format!(
        "the Parquet file is damaged or packed in a way that is not read here ({text}); write it anew with Snappy"
    )
}
