//! Files of rows from untrusted sources, and the one format in which a schedule is written down.
//!
//! Text with delimiters, plain or gzipped, and Parquet are read row by row, bounded, with complaints that name file, line and
//! column ([`Table`]); rows are written as CSV or Parquet, whole or not at all ([`replace`]). On these stands the record of a
//! schedule ([`schedule`]): which job ran where and when. Times of day ([`clock`]) are read here too.
//!
//! # What is deliberately not here
//! What a list of jobs means, and whether a schedule is possible. Of `scheduler` it takes [`Problem`] alone.

mod account;
pub mod clock;
mod lines;
#[cfg(feature = "parquet")]
mod parquet_read;
#[cfg(feature = "parquet")]
mod parquet_write;
pub mod schedule;
mod table;
#[cfg(not(feature = "parquet"))]
mod without_parquet;
mod write;

pub use account::{Account, Repair};
pub use lines::{LINE_BYTES_MAX, LINES_MAX, Lines, open_unpacked};
#[cfg(feature = "parquet")]
pub use parquet_read::ParquetRows;
#[cfg(feature = "parquet")]
pub use parquet_write::to_parquet;
pub use pleach_problem::Problem;
pub use table::{Delimiter, Table, shorten, split};
#[cfg(not(feature = "parquet"))]
pub use without_parquet::{ParquetRows, to_parquet};
pub use write::{Column, Values, is_gzip_name, is_parquet_name, quoted, replace};

/// Most rows of a file that mean something. *Ours*: tables of that many fit into memory.
pub const ROWS_MAX: usize = 10_000_000;

/// Whether a text can be a name in a file: at most 256 characters, none of them for control, no blanks around.
#[must_use]
pub fn is_printable(text: &str) -> bool {
    text.len() <= 256 && text.trim() == text && !text.chars().any(char::is_control)
}
