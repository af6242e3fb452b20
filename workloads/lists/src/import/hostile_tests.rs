//! Lists that are broken, cut short or no lists: refused where they stand. What chance finds is tried in tests/tests/hostile.

use std::io::Write as _;

use super::format_tests::{EVA_START, OPENB, refusal};
use super::*;

#[test]
fn openbs_bad_rows_are_refused_where_they_stand() {
    for (row, says) in [
        ("a,x,1,1,500,,LS,Running,0,9,0", "line 2, column cpu_milli: `x`"),
        ("a,1,NaN,1,500,,LS,Running,0,9,0", "column memory_mib: `NaN`"),
        ("a,1,1,1,0,,LS,Running,0,9,0", "column gpu_milli: `0`"),
        ("a,1,1,1,1.5,,LS,Running,0,9,0", "column gpu_milli: `1.5`"),
        ("a,1,1,1,1500,,LS,Running,0,9,0", "column gpu_milli: `1500`"),
        ("a,1,1,-1,500,,LS,Running,0,9,0", "column num_gpu: `-1`"),
        (
            "a,1,1,1,500,,LS,Running,0,9,10",
            "creation_time <= scheduled_time <= deletion_time",
        ),
        (
            "a,1,1,1,500,,LS,Running,5,9,3",
            "creation_time <= scheduled_time <= deletion_time",
        ),
        ("a,1,1,1,500,,LS,Lost,0,9,0", "column pod_phase: `Lost`"),
        ("a,1,1,1,500,,LS,Running,,9,0", "column creation_time: ``"),
        ("a,1,1,1,500,,LS,Running,0,inf,0", "column deletion_time: `inf`"),
        (",1,1,1,500,,LS,Running,0,9,0", "column name: ``"),
        ("a,1,1,1,500,,LS,Running,0,9", "10 fields and the header has 11"),
    ] {
        let text = refusal(&format!("{OPENB}{row}\n"));
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn evas_bad_jobs_are_refused_with_the_line_of_the_job() {
    let job = |fields: &str| {
        refusal(&format!(
            "{EVA_START},\n\n\"1\": {{\"name\": \"x\", {fields}}}\n}}\n"
        ))
    };
    let tasks = "\"tasks\": {\"1\": {\"demand\": {\"any\": [1, 4, 15]}}}";
    let text = job(&format!("\"arrival_time\": 1, \"duration\": -5, {tasks}"));
    assert!(text.contains("line 7, column duration: `-5`"), "{text}");
    let text = job(&format!("\"arrival_time\": 1e300, \"duration\": 5, {tasks}"));
    assert!(text.contains("line 7, column arrival_time"), "{text}");
    let text =
        job("\"arrival_time\": 1, \"duration\": 5, \"tasks\": {\"1\": {\"demand\": {\"p3\": [1, 4, 15]}}}");
    assert!(text.contains("column demand: `p3`"), "{text}");
    let text = job(
        "\"arrival_time\": 1, \"duration\": 5, \"tasks\": {\"1\": {\"demand\": {\"any\": [0.5, 4, 15]}}}",
    );
    assert!(text.contains("GPUs whole"), "{text}");
    let text = job(&format!("\"arrival_time\": null, \"duration\": 5, {tasks}"));
    assert!(text.contains("line 7") && text.contains("null"), "{text}");
    assert!(refusal(EVA_START).contains("EOF"));
    assert!(refusal(&format!("{EVA_START},\n{}\n", "9".repeat(1 << 17))).contains("longer than 65536 bytes"));
}

#[test]
fn files_that_are_known_to_hold_no_jobs_are_refused_with_a_sentence() {
    for (start, says) in [
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "requests to a model"),
        (
            "{\"timestamp\": 0, \"input_length\": 5, \"output_length\": 5, \"hash_ids\": [0]}\n",
            "requests to a model",
        ),
        (
            "HashFunction,HashApp,HashOwner,minute_1\n",
            "serverless functions",
        ),
        ("app,func,end_timestamp,duration\n", "serverless functions"),
        (
            "time,total_job_num,running_job_num,pending_job_num,total_gpu_num,running_gpu_num\n",
            "over time",
        ),
        ("sn,cpu_milli,memory_mib,gpu,model\n", "machines, not of jobs"),
        ("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", "carry no times"),
        (
            "submit_day,jobs,hp_jobs,spot_jobs,gpu_seconds,gpu_demand\n",
            "aggregates",
        ),
        (
            "gmt_create,predict_type,predict_status,exec_time_seconds\n",
            "requests to a model",
        ),
        ("id,job_num,avg_run_time_gpu\n", "aggregates"),
        (
            "job_id,vc,gpu_num,duration,fifo_start,fifo_end\n",
            "another simulator",
        ),
        ("duration\n", "service times without jobs"),
    ] {
        let text = refusal(start);
        assert!(text.contains(", line 1") && text.contains(says), "{text}");
    }
    // A column of that name among others says nothing.
    assert!(refusal("task,duration\n").contains("no known header"));
}

#[test]
fn gzip_that_ends_too_early_is_refused_in_every_format() {
    let row = "1 0 -1 100 8 -1 -1 16 600 -1 1 3 1 1 1 1 -1 -1";
    for first in [
        row,
        "{",
        "name,time,application,num_replicas,batch_size",
        OPENB.trim_end(),
    ] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        writeln!(gzip, "{first}").unwrap();
        for index in 0..4000_u32 {
            let number = index.wrapping_mul(2_654_435_761);
            if first == "{" {
                writeln!(gzip, "\"{index}\": {{\"arrival_time\": {number}}},").unwrap();
            } else {
                writeln!(gzip, "{}", row.replacen('1', &number.to_string(), 1)).unwrap();
            }
        }
        let whole = gzip.finish().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.gz");
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let error = import(&path, &ImportOptions::default()).unwrap_err().to_string();
        let is_other = error.contains("fields and the header has");
        assert!(
            error.contains("gzip stream ends too early") || is_other,
            "{error}"
        );
        assert_eq!(is_other, first.contains("name"), "{error}");
    }
}
