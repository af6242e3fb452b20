//! Parquet against CSV, and Parquet of other writers.

#![cfg(feature = "parquet")]

use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use pleach_scheduler::cluster_spec::ClusterSpec;
use proptest::prelude::*;

use super::tests::{any_job, of_jobs};
use crate::Workload;
use crate::import::{Format, ImportOptions, import};
use crate::tests::{job, workload};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn parquet_and_csv_hold_the_same_workload(jobs in proptest::collection::vec(any_job(), 1..20)) {
        let folder = tempfile::tempdir().unwrap();
        let (parquet, csv) = (folder.path().join("a.parquet"), folder.path().join("b.csv"));
        let workload = of_jobs(jobs);
        workload.write(&parquet).unwrap();
        workload.write(&csv).unwrap();
        prop_assert_eq!(Workload::read(&parquet).unwrap(), workload.clone());
        prop_assert_eq!(Workload::read(&csv).unwrap(), workload.clone());
        let first = std::fs::read(&parquet).unwrap();
        workload.write(&parquet).unwrap();
        prop_assert_eq!(std::fs::read(&parquet).unwrap(), first);
    }

    #[test]
    fn no_damage_to_a_parquet_file_makes_the_reader_panic(
        damage in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..6),
        keep in 0.0_f64..1.5,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        let jobs = (0..40).map(|index| job(&format!("job {index}"), f64::from(index), 1, 5.0)).collect();
        workload(jobs).write(&path).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, value) in damage {
            // Half of the file is its footer, whose lengths are what a damaged file lies about.
            let at = usize::from(at) % bytes.len();
            bytes[at] = value;
        }
        let len = (bytes.len() as f64 * keep.min(1.0)) as usize;
        bytes.truncate(len.max(4));
        std::fs::write(&path, &bytes).unwrap();
        let _ = Workload::read(&path);
    }
}

/// Writes `submit_s, num_gpus, run_time_s` with types that another program might choose.
fn foreign(path: &Path, submit_s: &[f64], num_gpus: &[i64], run_time_s: &[&str]) {
    let schema =
        "message m { required double submit_s; required int64 num_gpus; required binary run_time_s (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<DoubleType>()
        .write_batch(submit_s, None, None)
        .unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<Int64Type>()
        .write_batch(num_gpus, None, None)
        .unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let texts: Vec<_> = run_time_s.iter().map(|text| ByteArray::from(*text)).collect();
    column
        .typed::<ByteArrayType>()
        .write_batch(&texts, None, None)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    std::fs::write(path, writer.into_inner().unwrap()).unwrap();
}

fn of_foreign(submit_s: &[f64], num_gpus: &[i64], run_time_s: &[&str]) -> Result<Workload, String> {
    let folder = tempfile::tempdir().unwrap();
    // The content says that it is Parquet, not the name.
    let path = folder.path().join("list.data");
    foreign(&path, submit_s, num_gpus, run_time_s);
    let options = ImportOptions {
        cluster: Some(ClusterSpec::uniform(2, 4, 2)),
        ..ImportOptions::default()
    };
    let read = import(&path, &options).map_err(|error| error.to_string());
    read.map(|(workload, report)| {
        assert_eq!(report.format, Format::Canonical);
        workload
    })
}

#[test]
fn whole_numbers_floats_and_text_of_other_writers_are_read() {
    let workload = of_foreign(&[0.0, 1.5], &[1, 8], &["3600", "0.25"]).unwrap();
    assert_eq!(workload.jobs[0].run_time_s, 3600.0);
    assert_eq!(
        (workload.jobs[1].num_gpus, workload.jobs[1].run_time_s),
        (8, 0.25)
    );
}

#[test]
fn bad_values_in_parquet_are_refused_as_in_csv_with_the_row_for_the_line() {
    let head = "submit_s,num_gpus,run_time_s\n0,1,1\n";
    for (submit_s, num_gpus, run_time_s) in [
        (f64::NAN, 1, "5"),
        (-1.0, 1, "5"),
        (f64::INFINITY, 1, "5"),
        (0.0, 0, "5"),
        (0.0, -3, "5"),
        (0.0, 9, "5"),
        (0.0, 1, "soon"),
        (0.0, 1, ""),
        (0.0, 1, "1e300"),
    ] {
        let parquet = of_foreign(&[0.0, submit_s], &[1, num_gpus], &["1", run_time_s]).unwrap_err();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        std::fs::write(&path, format!("{head}{submit_s},{num_gpus},{run_time_s}\n")).unwrap();
        let options = ImportOptions {
            cluster: Some(ClusterSpec::uniform(2, 4, 2)),
            ..ImportOptions::default()
        };
        let csv = import(&path, &options).unwrap_err().to_string();
        let (_, csv) = csv.split_once(", line 3, ").unwrap();
        assert!(
            parquet.ends_with(&format!(", line 2, {csv}")),
            "{parquet} against {csv}"
        );
    }
}

#[test]
fn a_truth_value_is_no_time_and_no_number_of_gpus() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.parquet");
    let columns = ["submit_s", "num_gpus", "run_time_s"];
    for truth in columns {
        let kinds = columns.map(|name| if name == truth { "boolean" } else { "int64" });
        let [a, b, c] = kinds;
        let schema =
            format!("message m {{ required {a} submit_s; required {b} num_gpus; required {c} run_time_s; }}");
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        for kind in kinds {
            let mut column = group.next_column().unwrap().unwrap();
            if kind == "boolean" {
                let column = column.typed::<BoolType>();
                column.write_batch(&[true], None, None).unwrap();
            } else {
                let column = column.typed::<Int64Type>();
                column.write_batch(&[1], None, None).unwrap();
            }
            column.close().unwrap();
        }
        group.close().unwrap();
        std::fs::write(&path, writer.into_inner().unwrap()).unwrap();
        let options = ImportOptions {
            cluster: Some(ClusterSpec::uniform(2, 4, 2)),
            ..ImportOptions::default()
        };
        let text = import(&path, &options).unwrap_err().to_string();
        let words = format!("line 1, column {truth}: `true` is not allowed here");
        assert!(text.contains(&words), "{text}");
    }
}

#[test]
fn damaged_nested_and_foreign_files_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.parquet");
    let refusal = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        import(&path, &ImportOptions::default()).unwrap_err().to_string()
    };
    assert!(refusal(b"PAR1").contains("damaged"));
    assert!(refusal(b"PAR1 and then some text that is not Parquet PAR1").contains("damaged"));
    let schema = "message m { required group submit_s { required double x; } required double num_gpus; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let text = refusal(&writer.into_inner().unwrap());
    assert!(text.contains("column submit_s: the column is nested"), "{text}");
    let schema = Arc::new(parse_message_type("message m { required double what; }").unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let text = refusal(&writer.into_inner().unwrap());
    assert!(text.contains("`what` is no known header"), "{text}");
}
