//! `pleach evaluate --schedule` and `pleach verify`.

use std::fs;

use super::{pleach, succeed, text};

const ON: &str = "--workload philly-like --num-jobs 60 --load 0.9 --preemption --seeds 2";

#[test]
fn a_schedule_is_written_verified_and_watched_and_a_change_of_it_is_found() {
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
    // The record says itself how it was made.
    let said = succeed(here, "verify a.csv");
    assert_eq!(said.matches("none").count(), 4, "{said}");
    assert!(
        said.contains("as the record says: seed = 0") && said.contains("num_jobs = 60"),
        "{said}"
    );
    let by_flags = succeed(here, &format!("verify a.csv {ON}"));
    assert_eq!(
        by_flags.lines().collect::<Vec<_>>(),
        said.lines().skip(1).collect::<Vec<_>>()
    );
    let words = succeed(here, "watch a.csv --out watch.html");
    assert!(words.contains("watch.html: open it in a browser"), "{words}");
    let page = fs::read_to_string(here.join("watch.html")).unwrap();
    pleach_tests::assert_well_formed(&page);
    assert!(page.contains("2 of the 4 schedules") && page.contains("\"policy\":\"srtf\""));
    for name in ["b.csv.gz", "c.parquet"] {
        assert_eq!(succeed(here, &format!("verify {name}")), said);
        succeed(here, &format!("watch {name} --out {name}.html --quiet"));
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
        .position(|line| line.ends_with(",completed,"))
        .unwrap();
    let mut fields: Vec<String> = lines[at].split(',').map(str::to_owned).collect();
    let to_s: f64 = fields[13].parse().unwrap();
    fields[13] = (to_s - 0.5).to_string();
    lines[at] = fields.join(",");
    fs::write(here.join("short.csv"), lines.join("\n")).unwrap();
    let found = pleach(here, "verify short.csv --json found.json");
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

/// A record of this list, row by row behind its header, with what the settings make impossible: (what, how a row is changed).
type Change = fn(&mut [String]);
const IMPOSSIBLE: [(&str, &str, Change); 8] = [
    ("rate", "a thousand times as fast", |row| {
        let (from_s, to_s): (f64, f64) = (row[12].parse().unwrap(), row[13].parse().unwrap());
        row[13] = (from_s + (to_s - from_s) / 1000.0).to_string();
        row[14] = (row[14].parse::<f64>().unwrap() * 1000.0).to_string();
    }),
    ("rate", "faster than a loose gang", |row| {
        row[14] = "1.000005".into()
    }),
    ("ending", "killed where nothing kills", |row| {
        row[16] = "killed".into()
    }),
    ("ending", "failed where nothing fails", |row| {
        row[16] = "failed".into()
    }),
    ("ending", "a node that failed where none does", |row| {
        row[16] = "node-failed".into()
    }),
    ("ending", "cut off", |row| row[16] = "horizon".into()),
    ("loss", "work lost without a failure", |row| {
        row[15] = "1000".into()
    }),
    ("work", "half of the work", |row| row[14] = "0.5".into()),
];

#[test]
fn a_record_of_what_its_settings_make_impossible_is_refused_whatever_the_settings_would_allow_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let on = "--workload philly-like --num-jobs 40 --load 5 --cluster 4x8:A100 --seeds 1 --preemption --restart-cost-s 30";
    succeed(
        here,
        &format!("evaluate {on} --policy srtf --schedule a.csv --quiet"),
    );
    let record = fs::read_to_string(here.join("a.csv")).unwrap();
    let lines: Vec<&str> = record.lines().collect();
    // Lists of GPUs with commas are quoted: of those no field is changed here.
    let is_whole = |line: &&str| line.ends_with(",1,0,completed,") && !line.contains('"');
    let at = lines.iter().position(is_whole).unwrap();
    for (rule, what, change) in IMPOSSIBLE {
        let mut row: Vec<String> = lines[at].split(',').map(str::to_owned).collect();
        change(&mut row);
        let mut changed: Vec<String> = lines.iter().map(ToString::to_string).collect();
        changed[at] = row.join(",");
        fs::write(here.join("changed.csv"), changed.join("\n")).unwrap();
        let found = pleach(here, "verify changed.csv");
        let said = text(&found.stdout);
        assert!(
            found.status.code() == Some(1) && said.contains(&format!("{rule}: at ")),
            "{what}: {said}"
        );
    }
    // A restart that costs nothing: the segment of the second attempt in which it makes no progress is left out.
    let rows: Vec<Vec<&str>> = lines.iter().map(|line| line.split(',').collect()).collect();
    let is_restart =
        |row: &Vec<&str>| row.len() == 18 && row[4] == "2" && row[14] == "0" && row[16] == "continued";
    let at = rows.iter().position(is_restart).expect("a job starts again");
    let (job, from_s, until_s) = (rows[at][3], rows[at][12], rows[at][13]);
    let next = rows.iter().position(|row| row[3] == job && row[12] == until_s);
    let next = next.expect("the attempt goes on");
    let number = |text: &str| text.parse::<f64>().unwrap();
    let mut row: Vec<String> = rows[next].iter().map(ToString::to_string).collect();
    row[12] = from_s.to_string();
    row[13] = (number(&row[13]) - (number(until_s) - number(from_s))).to_string();
    let mut changed: Vec<String> = lines.iter().map(ToString::to_string).collect();
    changed[next] = row.join(",");
    changed.remove(at);
    fs::write(here.join("changed.csv"), changed.join("\n")).unwrap();
    let said = text(&pleach(here, "verify changed.csv").stdout);
    assert!(said.contains("start: at "), "{said}");
}

#[test]
fn a_replay_plays_the_policy_that_a_record_names_and_refuses_the_record_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let on = "--workload philly-like --num-jobs 60 --load 1.2 --seeds 2";
    fs::write(here.join("own.toml"), "[las-deal.rules]\nstint = 2.5\n").unwrap();
    succeed(
        here,
        &format!(
            "evaluate {on} --policy sjf,las-deal --policy-config own.toml --preemption --schedule own.csv --quiet"
        ),
    );
    // Planners are played with the settings that the record names.
    let said = succeed(here, "verify own.csv --replay");
    assert_eq!(said.matches("none").count(), 4, "{said}");
    succeed(
        here,
        &format!("evaluate {on} --policy sjf --schedule sjf.csv --quiet"),
    );
    let record = fs::read_to_string(here.join("sjf.csv")).unwrap();
    let forged = record
        .replace("\nsjf,", "\nfifo,")
        .replace("\"\"sjf\"\"", "\"\"fifo\"\"");
    assert_ne!(forged, record);
    fs::write(here.join("fifo.csv"), &forged).unwrap();
    succeed(here, "verify fifo.csv");
    let found = pleach(here, "verify fifo.csv --replay");
    let said = text(&found.stdout);
    assert!(
        found.status.code() == Some(1) && said.contains("replay: fifo plays "),
        "{said}"
    );
    // Where the name is another one than the settings have, the name counts; and an old record has no settings.
    fs::write(here.join("named.csv"), record.replace("\nsjf,", "\nfifo,")).unwrap();
    assert_eq!(pleach(here, "verify named.csv --replay").status.code(), Some(1));
    let old = |text: &str| -> String {
        let rows = text.lines().map(|line| line.split(",\"{").next().unwrap_or(line));
        rows.map(|line| format!("{}\n", line.trim_end_matches(",settings").trim_end_matches(',')))
            .collect()
    };
    fs::write(here.join("old.csv"), old(&record)).unwrap();
    fs::write(here.join("old-forged.csv"), old(&forged)).unwrap();
    succeed(here, &format!("verify old.csv {on} --replay"));
    assert_eq!(
        pleach(here, &format!("verify old-forged.csv {on} --replay"))
            .status
            .code(),
        Some(1)
    );
    let refused = pleach(here, "verify old.csv");
    let said = text(&refused.stderr);
    assert!(
        refused.status.code() == Some(2) && said.contains("Give --workload, --seed, --seeds"),
        "{said}"
    );
    let broken = record.replacen("{\"\"pleach", "{\"\"plech", 1);
    fs::write(here.join("broken.csv"), broken).unwrap();
    let refused = pleach(here, "verify broken.csv");
    let said = text(&refused.stderr);
    assert!(
        refused.status.code() == Some(2) && said.contains("settings") && said.contains("Give --workload"),
        "{said}"
    );
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
