//! A table of another program in Parquet, read by a mapping.

#![cfg(feature = "parquet")]

use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use pleach_scheduler::Time;

use super::{Mapping, SiteOptions, import_site};
use crate::Outcome;
use crate::import::{Format, ImportOptions, import};

/// Three jobs in a warehouse's words: times in ms, run times in hours, one job that has not ended.
fn write(path: &Path) {
    let message = "message warehouse { required int64 queued_ms; optional int64 began_ms; required double hours; \
                   required int64 cards; required binary squad (UTF8); required binary verdict (UTF8); }";
    let (schema, properties) = (
        parse_message_type(message).unwrap(),
        WriterProperties::builder().build(),
    );
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    // 1 March 2024, 10:00, 10:30 and 11:00, UTC.
    let queued = [1_709_287_200_000_i64, 1_709_289_000_000, 1_709_290_800_000];
    let mut numbers = |values: &[i64], levels: Option<&[i16]>| {
        let mut column = group.next_column().unwrap().unwrap();
        column
            .typed::<Int64Type>()
            .write_batch(values, levels, None)
            .unwrap();
        column.close().unwrap();
    };
    numbers(&queued, None);
    numbers(&[1_709_287_260_000, 1_709_292_600_000], Some(&[1, 1, 0]));
    let mut column = group.next_column().unwrap().unwrap();
    let hours = [0.5, 2.0, 0.0];
    column
        .typed::<DoubleType>()
        .write_batch(&hours, None, None)
        .unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<Int64Type>()
        .write_batch(&[8, 1, 4], None, None)
        .unwrap();
    column.close().unwrap();
    for words in [["vision", "speech", "vision"], ["fine", "burnt", "asleep"]] {
        let mut column = group.next_column().unwrap().unwrap();
        let words = words.map(ByteArray::from);
        column
            .typed::<ByteArrayType>()
            .write_batch(&words, None, None)
            .unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

const MAPPING: &str = "time_format = 'unix_ms'\nrun_time_unit = 'h'\n[columns]\nsubmit = 'queued_ms'\nstart = 'began_ms'\n\
    run_time = 'hours'\ngpus = 'cards'\ntenant = 'squad'\nstate = 'verdict'\n[states]\nfine = 'completed'\nburnt = 'failed'\n\
    asleep = 'waiting'\n";

#[test]
fn a_parquet_table_is_read_by_a_mapping_with_its_units_times_and_states() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.parquet");
    write(&path);
    // Its names say nothing to a guess, and the refusal names what is missing.
    let said = import(&path, &ImportOptions::default()).unwrap_err().to_string();
    assert!(said.contains("pleach workload import"), "{said}");
    let options = SiteOptions {
        mapping: Some(Mapping::of_text("m.toml", MAPPING).unwrap()),
        ..SiteOptions::default()
    };
    let found = import_site(&path, &options).unwrap();
    assert_eq!(found.report.format, Format::Table);
    assert_eq!(
        (found.report.jobs, found.report.account.rows_of("never began")),
        (2, 1)
    );
    let of = |place: usize| {
        let job = &found.workload.jobs[place];
        let start = job.observed.as_deref().unwrap().start;
        (job.submit, start, job.num_gpus, job.run_time_s, job.outcome)
    };
    // Time 0 is the first submission.
    let at = |minute: f64| Time::from_secs_f64(minute * 60.0);
    assert_eq!(of(0), (at(0.0), at(1.0), 8, 1800.0, Outcome::Completed));
    assert_eq!(of(1), (at(30.0), at(90.0), 1, 7200.0, Outcome::Failed));
    let names: Vec<&str> = found
        .workload
        .cluster
        .tenants
        .iter()
        .map(|tenant| tenant.name.as_str())
        .collect();
    assert_eq!(names, ["speech", "vision"]);
}
