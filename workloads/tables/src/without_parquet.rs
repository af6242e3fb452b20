//! What stands in for Parquet in a build without the feature `parquet`: the files are recognised and refused.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::{Column, Problem};

/// Rows of a Parquet file; never made here.
pub enum ParquetRows {}

impl ParquetRows {
    /// Whether a file starts as Parquet does.
    ///
    /// # Errors
    /// None here.
    pub fn is_one(path: &Path) -> Result<bool, Problem> {
        let mut start = [0; 4];
        match File::open(path).and_then(|mut file| file.read_exact(&mut start)) {
            Ok(()) => Ok(start == *b"PAR1"),
            // Shorter than four bytes, or a folder: the reader of text reports it.
            Err(_) => Ok(false),
        }
    }

    /// Refuses the file.
    ///
    /// # Errors
    /// Always.
    pub fn open(path: &Path) -> Result<ParquetRows, Problem> {
        Err(refusal(path))
    }

    /// Nothing can be asked.
    #[must_use]
    pub fn header(&self) -> &[String] {
        match *self {}
    }

    /// Nothing can be asked.
    ///
    /// # Errors
    /// None here.
    pub fn next_row(&mut self, _fields: &mut Vec<String>) -> Result<bool, Problem> {
        match *self {}
    }

    /// Nothing can be asked.
    #[must_use]
    pub fn row(&self) -> u64 {
        match *self {}
    }

    /// Nothing can be asked.
    #[must_use]
    pub fn error(&self, _column: &str, _message: String) -> Problem {
        match *self {}
    }
}

/// Refuses to write Parquet.
///
/// # Errors
/// Always.
pub fn to_parquet<'a, R>(
    path: &Path,
    _name: &str,
    _rows: &'a [R],
    _columns: &[Column<'a, R>],
) -> Result<Vec<u8>, Problem> {
    Err(refusal(path))
}

fn refusal(path: &Path) -> Problem {
    let text =
        "this build reads and writes no Parquet; build with the feature `parquet` or convert the file to CSV";
    Problem::data(path, text)
}
