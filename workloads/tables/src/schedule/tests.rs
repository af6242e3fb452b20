//! Records written and read back, and records that cannot be.

use std::path::Path;

use proptest::prelude::*;

use super::*;

fn any_slice() -> impl Strategy<Value = Slice> {
    let gpus = prop_oneof![(1_u64..).prop_map(Gpus::Which), (1_u32..=64).prop_map(Gpus::Num)];
    (0_u32..40, gpus).prop_map(|(node, gpus)| Slice {
        node,
        num_nodes: 1,
        gpus,
    })
}

fn any_segment() -> impl Strategy<Value = Segment> {
    let times = (0_i64..1_000_000_000_000, 1_i64..1_000_000_000_000);
    let amounts = (0.0_f64..100.0, 0.0_f64..100.0, 0.0_f64..1e3, 0.0_f64..1e6);
    (
        0_u32..5,
        1_u32..9,
        any_slice(),
        1_u16..=1000,
        amounts,
        times,
        0_usize..Ended::ALL.len(),
    )
        .prop_map(
            |(job, attempt, slice, gpu_milli, amounts, (from, span), ended)| Segment {
                job,
                attempt,
                slices: vec![slice],
                gpu_milli,
                gpu_memory_gib: amounts.0,
                cpu_cores: amounts.1,
                memory_gib: amounts.1,
                copies: attempt % 2,
                from_s: from as f64 / 1e6,
                to_s: (from + span) as f64 / 1e6,
                rate: amounts.2,
                lost_s: amounts.3,
                ended: Ended::ALL[ended],
            },
        )
}

/// A record as text of CSV: what two records have in common that differ only in the numbers of their names.
fn text(record: &Record) -> String {
    let mut text = Vec::new();
    record.write_csv(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn record(segments: Vec<Segment>) -> Record {
    let (first, rest) = segments.split_at(segments.len() / 2);
    let run = |policy: &str, segments: &[Segment]| Run {
        policy: policy.into(),
        workload: "a, \"b\"".into(),
        seed: u64::MAX,
        jobs: (0..5).map(|job| format!("job {job}")).collect(),
        nodes: (0..40).map(|node| node.to_string()).collect(),
        segments: segments.to_vec(),
    };
    let runs = [("fifo", first), ("srtf", rest)];
    let runs = runs.into_iter().filter(|(_, segments)| !segments.is_empty());
    Record {
        runs: runs.map(|(policy, segments)| run(policy, segments)).collect(),
        settings: "{\"seed\": 3, \"of\": \"a, \\n\"}".into(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_reads_back_to_the_last_bit(segments in proptest::collection::vec(any_segment(), 1..20)) {
        let folder = tempfile::tempdir().unwrap();
        let record = record(segments);
        let mut endings = vec!["a.csv", "a.csv.gz"];
        if cfg!(feature = "parquet") {
            endings.push("a.parquet");
        }
        for ending in endings {
            let path = folder.path().join(ending);
            record.write(&path).unwrap();
            prop_assert_eq!(text(&Record::read(&path).unwrap()), text(&record));
            let first = std::fs::read(&path).unwrap();
            record.write(&path).unwrap();
            prop_assert_eq!(std::fs::read(&path).unwrap(), first);
        }
    }

    #[test]
    fn a_trace_is_json_with_an_event_for_every_gpu_of_every_segment(
        segments in proptest::collection::vec(any_segment(), 1..20),
    ) {
        let record = record(segments);
        let mut bytes = Vec::new();
        record.write_chrome(&mut bytes).unwrap();
        let trace: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let num_drawn = events.iter().filter(|event| event["ph"] == "X").count();
        let lanes = record.runs.iter().flat_map(|run| &run.segments).map(|segment| match segment.slices[0].gpus {
            Gpus::Which(mask) => mask.count_ones() as usize,
            Gpus::Num(_) => 1,
        });
        prop_assert_eq!(num_drawn, lanes.sum::<usize>());
        prop_assert!(events.iter().filter(|event| event["ph"] == "X").all(|event| event["dur"].as_f64() > Some(0.0)));
    }
}

fn read(text: &str) -> Result<Record, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.csv");
    std::fs::write(&path, text).unwrap();
    Record::read(&path).map_err(|error| error.to_string())
}

#[test]
fn a_record_by_hand_needs_six_columns() {
    let record = read("job_id,nodes,from_s,to_s,rate,ended\na,3-4:0-1,0,10,1,completed\n").unwrap();
    let run = &record.runs[0];
    assert_eq!(
        (run.jobs.as_slice(), run.nodes.as_slice()),
        (&["a".to_owned()][..], &["3".to_owned(), "4".into()][..])
    );
    let segment = &run.segments[0];
    assert_eq!(
        (segment.attempt, segment.gpu_milli, segment.num_gpus()),
        (1, 1000, 4)
    );
    assert_eq!(segment.slices.len(), 1, "nodes in a row are one slice");
}

#[test]
fn rows_that_cannot_be_are_refused_by_line_and_column() {
    let header = "job_id,attempt,nodes,num_gpus,from_s,to_s,rate,ended,seed";
    for (row, said) in [
        (
            "a,1,0:0,1,10,5,1,completed,0",
            "to_s: `5` is not allowed here: allowed is later than from_s, 10",
        ),
        ("a,1,0:0,1,NaN,5,1,completed,0", "column from_s: `NaN`"),
        ("a,1,0:0,1,0,5,inf,completed,0", "column rate: `inf`"),
        ("a,1,0:0,1,0,5,-1,completed,0", "column rate: `-1`"),
        ("a,1,0:0,1,0,5,1,done,0", "continued, completed"),
        ("a,1,0:0,2,0,5,1,completed,0", "allowed is 1, as nodes says"),
        ("a,0,0:0,1,0,5,1,completed,0", "a whole number from 1"),
        ("a,1,0,1,0,5,1,completed,0", "names no GPUs"),
        (",1,0:0,1,0,5,1,completed,0", "column job_id"),
        ("a,1,0:0,1,0,5,1,completed,-4", "column seed"),
    ] {
        let error = read(&format!("{header}\n{row}\n")).unwrap_err();
        assert!(error.contains(said) && error.contains("line 2"), "{error}");
    }
    assert!(read("job_id,nodes\n").unwrap_err().contains("from_s"));
    // A line that would be read for an hour.
    let wide = "0-3999999:0 ".repeat(5000);
    let error = read(&format!("{header}\na,1,{wide},1,0,5,1,completed,0\n")).unwrap_err();
    assert!(
        error.contains("line 2") && error.contains("split the file"),
        "{error}"
    );
}

#[test]
fn a_name_that_does_not_say_how_to_write_is_refused_with_the_endings() {
    let error = Record::default().write(Path::new("schedule.xml")).unwrap_err();
    assert!(error.to_string().contains(".parquet"), "{error}");
}
