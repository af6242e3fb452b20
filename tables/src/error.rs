//! What can go wrong with a file of rows.

use std::path::PathBuf;

use thiserror::Error as ThisError;

/// An error of a file.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// A file whose content cannot be used.
    #[error("{file}: line {line}, column {column}: {message}")]
    Data {
        /// The file.
        file: String,
        /// 1-based line, in Parquet row; 0 where the file as a whole is meant.
        line: u64,
        /// Column name, or `-`.
        column: String,
        /// What is wrong, what would be accepted and how to mend it.
        message: String,
    },
    /// A file that cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Parquet in a build without it.
    #[error("{path}: this build reads and writes no Parquet; {NO_PARQUET_HINT}")]
    NoParquet {
        /// The file.
        path: PathBuf,
    },
}

/// What to do in a build without Parquet.
pub(crate) const NO_PARQUET_HINT: &str = "build with the feature `parquet` or convert the file to CSV";
