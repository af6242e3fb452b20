//! Writes the jobs as Parquet: the columns of the CSV, typed, Snappy, in row groups of a million jobs.

use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::RESOURCE_COLUMNS;
use crate::error::Error;
use crate::{JobSpec, Workload};

/// Columns in the order of the CSV's.
const COLUMN_TYPES: &str = "
    required binary job_id (UTF8);
    required double submit_s;
    required int32 num_gpus;
    required double run_time_s;
    optional double estimate_s;
    required binary tenant (UTF8);
    required binary class (UTF8);
    optional binary user (UTF8);
    required binary outcome (UTF8);";
/// Jobs in a row group.
const ROW_GROUP_JOBS: usize = 1 << 20;

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

impl Workload {
    /// The jobs as the bytes of a Parquet file. The same workload gives the same bytes.
    pub(super) fn jobs_as_parquet(&self, path: &Path) -> Result<Vec<u8>, Error> {
        let io = |error: ParquetError| Error::Io {
            path: path.to_path_buf(),
            source: std::io::Error::other(error),
        };
        self.encode().map_err(io)
    }

    fn encode(&self) -> Result<Vec<u8>, ParquetError> {
        let has_resources = self.has_resources();
        let mut columns = COLUMN_TYPES.to_owned();
        if has_resources {
            for name in RESOURCE_COLUMNS {
                let kind = if name == "gpu_milli" { "int32" } else { "double" };
                columns += &format!("\n    required {kind} {name};");
            }
        }
        let schema = parse_message_type(&format!("message jobs {{{columns}\n}}"))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build();
        let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
        for jobs in self.jobs.chunks(ROW_GROUP_JOBS) {
            let mut group = writer.next_row_group()?;
            self.encode_group(jobs, has_resources, &mut group)?;
            group.close()?;
        }
        writer.into_inner()
    }

    fn encode_group(
        &self,
        jobs: &[JobSpec],
        has_resources: bool,
        group: &mut Group<'_>,
    ) -> Result<(), ParquetError> {
        let tenant = |job: &JobSpec| self.cluster.tenants[usize::from(job.tenant)].name.as_str();
        let class = |job: &JobSpec| self.classes[usize::from(job.class)].name.as_str();
        texts(group, jobs, |job| Some(job.id.as_str()), false)?;
        numbers(group, jobs, |job| Some(job.submit.as_secs_f64()), false)?;
        counts(group, jobs, |job| job.num_gpus)?;
        numbers(group, jobs, |job| Some(job.run_time_s), false)?;
        numbers(group, jobs, |job| job.estimate_s, true)?;
        texts(group, jobs, |job| Some(tenant(job)), false)?;
        texts(group, jobs, |job| Some(class(job)), false)?;
        texts(group, jobs, |job| job.user.as_deref(), true)?;
        texts(group, jobs, |job| Some(job.outcome.word()), false)?;
        if has_resources {
            counts(group, jobs, |job| u32::from(job.resources.gpu_milli))?;
            numbers(group, jobs, |job| Some(job.resources.gpu_memory_gib), false)?;
            numbers(group, jobs, |job| Some(job.resources.cpu_cores), false)?;
            numbers(group, jobs, |job| Some(job.resources.memory_gib), false)?;
        }
        Ok(())
    }
}

fn texts<'a>(
    group: &mut Group<'_>,
    jobs: &'a [JobSpec],
    of: impl Fn(&'a JobSpec) -> Option<&'a str>,
    is_optional: bool,
) -> Result<(), ParquetError> {
    column::<ByteArrayType>(group, jobs, |job| of(job).map(ByteArray::from), is_optional)
}

fn numbers(
    group: &mut Group<'_>,
    jobs: &[JobSpec],
    of: impl Fn(&JobSpec) -> Option<f64>,
    is_optional: bool,
) -> Result<(), ParquetError> {
    column::<DoubleType>(group, jobs, of, is_optional)
}

fn counts(group: &mut Group<'_>, jobs: &[JobSpec], of: impl Fn(&JobSpec) -> u32) -> Result<(), ParquetError> {
    // A cluster has at most four million GPUs and a gang fits it, so no count is cut.
    column::<Int32Type>(
        group,
        jobs,
        |job| Some(i32::try_from(of(job)).unwrap_or(i32::MAX)),
        false,
    )
}

/// The next column: its values, and for an optional one a level per job, 1 where it has a value.
fn column<'a, T: DataType>(
    group: &mut Group<'_>,
    jobs: &'a [JobSpec],
    of: impl Fn(&'a JobSpec) -> Option<T::T>,
    is_optional: bool,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".into()));
    };
    let mut levels = Vec::new();
    let mut values = Vec::with_capacity(jobs.len());
    for job in jobs {
        let value = of(job);
        if is_optional {
            levels.push(i16::from(value.is_some()));
        }
        values.extend(value);
    }
    let levels = is_optional.then_some(levels.as_slice());
    column.typed::<T>().write_batch(&values, levels, None)?;
    column.close()
}
