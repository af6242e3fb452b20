//! Writes rows as Parquet: typed columns, Snappy, in row groups of a million rows.

use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::{Column, Problem, Values};

/// Rows in a row group.
const ROW_GROUP: usize = 1 << 20;

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

/// Rows as the bytes of a Parquet file whose message is called `name`; `path` is for complaints. The same rows give the same bytes.
///
/// # Errors
/// What the encoder says.
pub fn to_parquet<'a, R>(
    path: &Path,
    name: &str,
    rows: &'a [R],
    columns: &[Column<'a, R>],
) -> Result<Vec<u8>, Problem> {
    encode(name, rows, columns).map_err(|error| Problem::io("write", path, std::io::Error::other(error)))
}

fn encode<'a, R>(name: &str, rows: &'a [R], columns: &[Column<'a, R>]) -> Result<Vec<u8>, ParquetError> {
    let types: Vec<String> = columns
        .iter()
        .map(|column| {
            let (kind, after) = match column.values {
                Values::Text(_) => ("required binary", " (UTF8)"),
                Values::OptionalText(_) => ("optional binary", " (UTF8)"),
                Values::Number(_) => ("required double", ""),
                Values::OptionalNumber(_) => ("optional double", ""),
                Values::Count(_) => ("required int32", ""),
            };
            format!("{kind} {}{after};", column.name)
        })
        .collect();
    let schema = parse_message_type(&format!("message {name} {{ {} }}", types.join(" ")))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    for rows in rows.chunks(ROW_GROUP) {
        let mut group = writer.next_row_group()?;
        for column in columns {
            write(&mut group, rows, &column.values)?;
        }
        group.close()?;
    }
    writer.into_inner()
}

fn write<'a, R>(group: &mut Group<'_>, rows: &'a [R], values: &Values<'a, R>) -> Result<(), ParquetError> {
    let text = |text: &str| ByteArray::from(text);
    match values {
        Values::Text(of) => column::<ByteArrayType, R>(group, rows, |row| Some(text(&of(row))), false),
        Values::OptionalText(of) => column::<ByteArrayType, R>(group, rows, |row| of(row).map(text), true),
        Values::Number(of) => column::<DoubleType, R>(group, rows, |row| Some(of(row)), false),
        Values::OptionalNumber(of) => column::<DoubleType, R>(group, rows, of, true),
        Values::Count(of) => {
            let cut = |row| Some(i32::try_from(of(row)).unwrap_or(i32::MAX));
            column::<Int32Type, R>(group, rows, cut, false)
        }
    }
}

/// The next column: its values, and for an optional one a level per row, 1 where it has a value.
fn column<'a, T: DataType, R>(
    group: &mut Group<'_>,
    rows: &'a [R],
    of: impl Fn(&'a R) -> Option<T::T>,
    is_optional: bool,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".into()));
    };
    let mut levels = Vec::new();
    let mut values = Vec::with_capacity(rows.len());
    for row in rows {
        let value = of(row);
        if is_optional {
            levels.push(i16::from(value.is_some()));
        }
        values.extend(value);
    }
    let levels = is_optional.then_some(levels.as_slice());
    column.typed::<T>().write_batch(&values, levels, None)?;
    column.close()
}
