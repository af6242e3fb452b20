//! `pleach evaluate --schedule` and `pleach verify`.

use std::fs;

use super::{pleach, succeed, text};

const ON: &str = "--workload philly-like --num-jobs 60 --load 0.9 --preemption --seeds 2";

#[test]
fn a_schedule_is_written_verified_and_drawn_and_a_change_of_it_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for name in ["a.csv", "b.csv.gz", "c.parquet", "d.json"] {
        succeed(
            here,
            &format!("evaluate {ON} --policy fifo,srtf --schedule {name} --quiet"),
        );
    }
    succeed(
        here,
        &format!("evaluate {ON} --policy fifo,srtf --schedule again.csv --threads 1 --quiet"),
    );
    assert_eq!(
        fs::read(here.join("a.csv")).unwrap(),
        fs::read(here.join("again.csv")).unwrap()
    );
    let trace: serde_json::Value = serde_json::from_slice(&fs::read(here.join("d.json")).unwrap()).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 100);
    let said = succeed(here, &format!("verify a.csv {ON} --html page.html"));
    assert_eq!(said.matches("none").count(), 4, "{said}");
    let page = fs::read_to_string(here.join("page.html")).unwrap();
    pleach_tests::assert_well_formed(&page);
    assert!(page.contains("2 of the 4 schedules") && page.contains("<h3>srtf</h3>"));
    let words = succeed(here, &format!("watch a.csv {ON} --out watch.html"));
    assert!(words.contains("watch.html: open it in a browser"), "{words}");
    let page = fs::read_to_string(here.join("watch.html")).unwrap();
    pleach_tests::assert_well_formed(&page);
    assert!(page.contains("2 of the 4 schedules") && page.contains("\"policy\":\"srtf\""));
    for name in ["b.csv.gz", "c.parquet"] {
        assert_eq!(succeed(here, &format!("verify {name} {ON}")), said);
        succeed(here, &format!("watch {name} {ON} --out {name}.html --quiet"));
        let other = fs::read_to_string(here.join(format!("{name}.html"))).unwrap();
        assert_eq!(
            other.split("<script").nth(1),
            page.split("<script").nth(1),
            "{name}"
        );
    }
    // The first job of a record begins half a second later on the same GPUs for as long: its work is no longer done.
    let record = fs::read_to_string(here.join("a.csv")).unwrap();
    let mut lines: Vec<String> = record.lines().map(str::to_owned).collect();
    let at = lines
        .iter()
        .position(|line| line.ends_with(",completed"))
        .unwrap();
    let mut fields: Vec<String> = lines[at].split(',').map(str::to_owned).collect();
    let to_s: f64 = fields[13].parse().unwrap();
    fields[13] = (to_s - 0.5).to_string();
    lines[at] = fields.join(",");
    fs::write(here.join("short.csv"), lines.join("\n")).unwrap();
    let found = pleach(here, &format!("verify short.csv {ON} --json found.json"));
    assert_eq!(found.status.code(), Some(1));
    assert!(
        text(&found.stderr).contains("1 faults in 1 of 4 schedules"),
        "{}",
        text(&found.stderr)
    );
    assert!(text(&found.stdout).contains("work: at ") && text(&found.stdout).contains("s of work, of "));
    let runs: serde_json::Value =
        serde_json::from_slice(&fs::read(here.join("found.json")).unwrap()).unwrap();
    let num_faults: u64 = runs
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["num_faults"].as_u64().unwrap())
        .sum();
    assert_eq!(num_faults, 1);
}

#[test]
fn records_and_names_that_do_not_fit_are_refused_with_the_fix() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let refused = |line: &str, words: &str| {
        let output = pleach(here, line);
        let said = text(&output.stderr);
        assert!(
            output.status.code() == Some(2) && said.contains(words),
            "{line}: {said}"
        );
    };
    refused("evaluate --policy fifo --schedule a.xml", ".parquet");
    fs::write(
        here.join("jobs.csv"),
        "job_id,submit_s,num_gpus,run_time_s\na,0,2,100\n",
    )
    .unwrap();
    let cluster = "gpu_types = [{ name = 'A', memory_gib = 40.0 }]\ntenants = [{ name = 't', quota_gpus = 8 }]\n\
        node_groups = [{ count = 1, gpus_per_node = 8, gpu_type = 'A', nodes_per_rack = 1 }]";
    fs::write(here.join("cluster.toml"), cluster).unwrap();
    let on = "--workload jobs.csv --cluster cluster.toml";
    for (row, words) in [
        ("b,0:0-1,0,100,1,completed", "job `b` of the record is not known"),
        ("a,1:0-1,0,100,1,completed", "node `1` of the record is not known"),
        ("a,0:0-1,100,0,1,completed", "to_s"),
        ("a,0:0-1,0,NaN,1,completed", "NaN"),
    ] {
        fs::write(
            here.join("r.csv"),
            format!("job_id,nodes,from_s,to_s,rate,ended\n{row}\n"),
        )
        .unwrap();
        refused(&format!("verify r.csv {on}"), words);
    }
    fs::write(
        here.join("r.csv"),
        "job_id,nodes,from_s,to_s,rate,ended\na,0:0-1,0,100,1,completed\n",
    )
    .unwrap();
    succeed(here, &format!("verify r.csv {on}"));
    refused("verify r.csv --workload philly-like --num-jobs 20", "with seed");
    refused("verify nothing.csv", "nothing.csv");
    refused("watch r.csv --workload philly-like --num-jobs 20", "with seed");
    refused("watch nothing.csv", "nothing.csv");
}
