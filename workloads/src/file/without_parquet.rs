//! What stands in for Parquet in a build without the feature `parquet`: the files are recognised and refused.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::Error;
use crate::{Workload, config};

/// Rows of a Parquet file; never made here.
pub(crate) enum ParquetRows {}

impl ParquetRows {
    /// Whether a file starts as Parquet does.
    pub(crate) fn is_one(path: &Path) -> Result<bool, Error> {
        let mut start = [0; 4];
        match File::open(path).and_then(|mut file| file.read_exact(&mut start)) {
            Ok(()) => Ok(start == *b"PAR1"),
            // Shorter than four bytes, or a folder: whoever reads it as text tells.
            Err(_) => Ok(false),
        }
    }

    pub(crate) fn open(path: &Path) -> Result<ParquetRows, Error> {
        Err(refusal(path))
    }

    pub(crate) fn header(&self) -> &[String] {
        match *self {}
    }

    pub(crate) fn next_row(&mut self, _fields: &mut Vec<String>) -> Result<bool, Error> {
        match *self {}
    }

    pub(crate) fn row(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn error(&self, _column: &str, _message: String) -> Error {
        match *self {}
    }
}

impl Workload {
    pub(super) fn jobs_as_parquet(&self, path: &Path) -> Result<Vec<u8>, Error> {
        Err(refusal(path))
    }
}

fn refusal(path: &Path) -> Error {
    let hint = "build with the feature `parquet` or convert the file to CSV";
    config(
        "path",
        path.display(),
        "CSV: this build reads and writes no Parquet",
        hint,
    )
}
