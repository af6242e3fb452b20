//! What `sacct` prints, worked by hand.

use std::path::Path;

use pleach_scheduler::Tasks;

use super::*;
use crate::Outcome;
use crate::import::Format;

const HEADER: &str = "JobID|User|Account|Partition|QOS|Submit|Eligible|Start|End|Elapsed|Timelimit|State|ReqTRES|AllocTRES|NodeList\n";

/// A row of [`HEADER`] on one node of `type`.
fn row(id: &str, times: [&str; 4], elapsed: &str, state: &str, gpus: u32) -> String {
    let [submit, eligible, start, end] = times;
    let tres = format!("billing=4,cpu=4,gres/gpu:a100={gpus},gres/gpu={gpus},mem=32G,node=1");
    format!(
        "{id}|ann|vision|gpu|normal|{submit}|{eligible}|{start}|{end}|{elapsed}|1-00:00:00|{state}|{tres}|{tres}|g1\n"
    )
}

/// The instant `HH:MM:SS` of 1 March 2024.
fn at(clock: &str) -> String {
    format!("2024-03-01T{clock}")
}

fn of_text(text: &str, options: &SiteOptions) -> Result<SiteImport, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list");
    std::fs::write(&path, text).unwrap();
    import_site(Path::new(&path), options).map_err(|error| error.to_string())
}

fn read(text: &str) -> SiteImport {
    let read = of_text(text, &SiteOptions::default()).unwrap();
    let report = &read.report;
    assert_eq!(
        report.account.rows_read,
        report.jobs + report.account.left_out(),
        "{report}"
    );
    read
}

fn nodes(text: &str) -> Option<NodeTable> {
    Some(NodeTable::of_text(text).unwrap())
}

const TWO_TYPES: &str = "NODELIST|GRES|CPUS|MEMORY|PARTITION\ng[1-2]|gpu:a100:8|64|512000|gpu\nv1|gpu:v100:4|32|256000|gpu\n\
    v1|gpu:v100:4|32|256000|old\n";

#[test]
fn a_job_becomes_a_job_with_what_was_seen_of_it() {
    // Submitted 08:00, began 08:30, ended 10:30: it waited half an hour and ran two hours.
    let text = format!(
        "{HEADER}{}",
        row(
            "17",
            [&at("08:00:00"), &at("08:00:00"), &at("08:30:00"), &at("10:30:00")],
            "02:00:00",
            "COMPLETED",
            2
        )
    );
    let SiteImport {
        workload,
        report,
        mapping,
    } = read(&text);
    assert_eq!(report.format, Format::Sacct);
    assert!(mapping.unwrap().slurm_ids);
    let [job] = workload.jobs.as_slice() else {
        panic!("{report}")
    };
    assert_eq!((job.id.as_str(), job.num_gpus, job.run_time_s), ("17", 2, 7200.0));
    assert_eq!(
        (job.estimate_s, job.outcome),
        (Some(86_400.0), Outcome::Completed)
    );
    assert_eq!(job.resources.tasks, Tasks::of(2));
    assert_eq!(workload.cluster.tenants[0].name, "vision");
    let seen = job.observed.as_deref().unwrap();
    // Time 0 is the first submission.
    assert_eq!(
        (job.submit.as_secs_f64(), seen.start.as_secs_f64()),
        (0.0, 1800.0)
    );
    assert_eq!(seen.end.unwrap().as_secs_f64(), 9000.0);
    assert_eq!(
        (seen.nodes.as_str(), seen.partition.as_str(), seen.qos.as_str()),
        ("g1", "gpu", "normal")
    );
    // One node was seen, two of its GPUs in use.
    assert_eq!(workload.cluster.num_gpus(), 2);
    assert!(report.to_string().contains("day 0 is 2024-03-01"), "{report}");
}

#[test]
fn rows_that_are_no_job_are_left_out_by_their_reason() {
    let day = |clock: &str| at(clock);
    let times = [
        &*day("08:00:00"),
        &*day("08:00:00"),
        &*day("08:30:00"),
        &*day("09:30:00"),
    ];
    let mut text = HEADER.to_owned();
    text += &row("1", times, "01:00:00", "COMPLETED", 1);
    text += &row("1.batch", times, "01:00:00", "COMPLETED", 1);
    text += &row("1.0", times, "01:00:00", "COMPLETED", 1);
    text += &row("2_[5-9%2]", times, "00:00:00", "PENDING", 1);
    // Cancelled while it waited: begun on no node, or never.
    text += "3|bob|vision|gpu|normal|2024-03-01T08:00:00|2024-03-01T08:00:00|None|2024-03-01T08:10:00|00:00:00|UNLIMITED|\
             CANCELLED by 1000|gres/gpu=4|||\n"
        .replace("|||\n", "||None assigned\n")
        .as_str();
    text += "4|bob|vision|gpu|normal|2024-03-01T08:00:00|2024-03-01T08:00:00|2024-03-01T08:10:00|2024-03-01T08:10:00|00:00:00|\
             UNLIMITED|CANCELLED by 1000|gres/gpu=4||None assigned\n";
    text += "5|bob|vision|cpu|normal|2024-03-01T08:00:00|2024-03-01T08:00:00|2024-03-01T08:10:00|2024-03-01T09:10:00|01:00:00|\
             UNLIMITED|COMPLETED|cpu=4,node=1|cpu=4,node=1|c1\n";
    text += "6|bob|vision|gpu|normal|Unknown|Unknown|2024-03-01T08:10:00|2024-03-01T09:10:00|01:00:00|\
             UNLIMITED|COMPLETED|gres/gpu=1|gres/gpu=1,node=1|g1\n";
    text += "broken|row\n";
    text += "x7|bob|vision|gpu|normal|||||||||\n"
        .replace("|||||||||", "||||||||||")
        .as_str();
    let SiteImport { workload, report, .. } = read(&text);
    assert_eq!(
        (report.account.rows_read, workload.jobs.len()),
        (10, 1),
        "{report}"
    );
    for (reason, rows) in [
        ("a step of a job", 2),
        ("tasks of an array that had not begun", 1),
        ("never began", 2),
        ("asks for no GPU", 1),
        ("its submission cannot be read", 1),
        ("has another number of fields", 1),
        ("has no id that Slurm gives", 1),
    ] {
        assert_eq!(report.account.rows_of(reason), rows, "{reason}: {report}");
    }
}

#[test]
fn tasks_of_an_array_are_jobs_and_runs_after_a_requeue_are_one() {
    let mut text = HEADER.to_owned();
    let submit = at("08:00:00");
    text += &row(
        "5_1",
        [&submit, &submit, &at("08:10:00"), &at("08:20:00")],
        "00:10:00",
        "COMPLETED",
        1,
    );
    text += &row(
        "5_2",
        [&submit, &submit, &at("08:30:00"), &at("08:40:00")],
        "00:10:00",
        "FAILED",
        1,
    );
    // With --duplicates: 20 min until its node failed at 09:20, then again from 09:30 to 10:00. Slurm counts the second run as
    // submitted when it was put back.
    text += &row(
        "6",
        [&submit, &submit, &at("09:00:00"), &at("09:20:00")],
        "00:20:00",
        "NODE_FAIL",
        4,
    );
    let again = at("09:20:10");
    text += &row(
        "6",
        [&again, &again, &at("09:30:00"), &at("10:00:00")],
        "00:30:00",
        "COMPLETED",
        4,
    );
    // Weeks later the numbers begin anew.
    let late = "2024-04-20T00:00:00";
    text += &row(
        "6",
        [late, late, late, "2024-04-20T01:00:00"],
        "01:00:00",
        "COMPLETED",
        2,
    );
    let SiteImport { workload, report, .. } = read(&text);
    let jobs: Vec<_> = workload
        .jobs
        .iter()
        .map(|job| (job.id.as_str(), job.num_gpus, job.run_time_s, job.outcome))
        .collect();
    assert_eq!(
        jobs,
        [
            ("5_1", 1, 600.0, Outcome::Completed),
            ("5_2", 1, 600.0, Outcome::Failed),
            ("6", 4, 3000.0, Outcome::Completed),
            ("6#2", 2, 3600.0, Outcome::Completed),
        ]
    );
    let seen = workload.jobs[2].observed.as_deref().unwrap();
    assert_eq!(
        (seen.start.as_secs_f64(), seen.end.unwrap().as_secs_f64()),
        (3600.0, 7200.0)
    );
    assert_eq!(report.account.rows_of("a further run of a job"), 1, "{report}");
    assert_eq!(
        report.account.rows_of("has the id of an earlier job"),
        1,
        "{report}"
    );
}

#[test]
fn components_of_a_heterogeneous_job_are_one_gang() {
    let times = [
        &*at("08:00:00"),
        &*at("08:00:00"),
        &*at("08:10:00"),
        &*at("09:10:00"),
    ];
    let text = format!(
        "{HEADER}{}{}",
        row("9+0", times, "01:00:00", "COMPLETED", 2),
        row("9+1", times, "01:00:00", "COMPLETED", 4).replace("|g1\n", "|g2\n")
    );
    let SiteImport { workload, report, .. } = read(&text);
    let [job] = workload.jobs.as_slice() else {
        panic!("{report}")
    };
    assert_eq!((job.id.as_str(), job.num_gpus, job.run_time_s), ("9", 6, 3600.0));
    assert_eq!(job.observed.as_deref().unwrap().nodes, "g1,g2");
    assert_eq!(report.account.rows_of("a component of a heterogeneous job"), 1);
}

#[test]
fn days_turn_clocks_change_and_jobs_still_run() {
    let mut text = HEADER.to_owned();
    // Over midnight, at the end of a February with 29 days.
    let before = "2024-02-29T23:30:00";
    text += &row(
        "1",
        [before, before, "2024-02-29T23:50:00", "2024-03-01T00:20:00"],
        "00:30:00",
        "COMPLETED",
        1,
    );
    // In the night of 31 March the clock of Berlin goes from 2:00 to 3:00: 01:30 to 03:30 is one hour, and sacct says so.
    let spring = "2024-03-31T01:00:00";
    text += &row(
        "2",
        [spring, spring, "2024-03-31T01:30:00", "2024-03-31T03:30:00"],
        "01:00:00",
        "COMPLETED",
        1,
    );
    // It runs when the list is made; the latest time of the list is 12:00.
    let last = "2024-04-01T10:00:00";
    text += &row(
        "3",
        [last, last, "2024-04-01T11:00:00", "Unknown"],
        "",
        "RUNNING",
        1,
    );
    text += &row(
        "4",
        [last, last, "2024-04-01T11:00:00", "2024-04-01T12:00:00"],
        "01:00:00",
        "COMPLETED",
        1,
    );
    // Waited for another job until 11:30.
    text += &row(
        "5",
        [
            last,
            "2024-04-01T11:30:00",
            "2024-04-01T11:40:00",
            "2024-04-01T11:50:00",
        ],
        "00:10:00",
        "WEIRD",
        1,
    );
    let run_times = |read: &SiteImport| {
        read.workload
            .jobs
            .iter()
            .map(|job| job.run_time_s)
            .collect::<Vec<_>>()
    };
    let plain = read(&text);
    assert_eq!(run_times(&plain), [1800.0, 3600.0, 3600.0, 3600.0, 600.0]);
    assert_eq!(
        plain
            .report
            .account
            .rows_of("its start and its end lie on two sides"),
        1
    );
    assert_eq!(plain.report.account.rows_of("still runs"), 1);
    assert_eq!(plain.report.account.rows_of("its state is no word"), 1);
    assert_eq!(plain.report.account.rows_of("waited for another job"), 1);
    let last = &plain.workload.jobs[4];
    let wait = last.observed.as_deref().unwrap().start - last.submit;
    assert_eq!(wait.as_secs_f64(), 600.0);
    // With the zone the clock is no surprise.
    let mapping = Mapping {
        time_zone: "Europe/Berlin".into(),
        ..plain.mapping.clone().unwrap()
    };
    let options = SiteOptions {
        mapping: Some(mapping),
        ..SiteOptions::default()
    };
    let zoned = of_text(&text, &options).unwrap();
    assert_eq!(run_times(&zoned), run_times(&plain));
    assert_eq!(
        zoned
            .report
            .account
            .rows_of("its start and its end lie on two sides"),
        0
    );
}

#[test]
fn columns_may_come_in_any_order_with_a_bar_at_the_end_and_as_unix_times() {
    let text = "State|NNodes|AllocTRES|End|Start|Submit|JobID|\nCOMPLETED|2|gres/gpu=16|1709294400|1709290800|1709287200|1|\n";
    let SiteImport {
        workload, mapping, ..
    } = read(text);
    assert_eq!(mapping.unwrap().time_format, "unix_s");
    let job = &workload.jobs[0];
    assert_eq!(
        (job.num_gpus, job.run_time_s, job.resources.tasks),
        (16, 3600.0, Tasks::of(8))
    );
    assert_eq!(job.observed.as_deref().unwrap().start.as_secs_f64(), 3600.0);
}

#[test]
fn types_come_from_requests_partitions_and_nodes_and_speeds_from_the_mapping() {
    let mut text = HEADER.to_owned();
    let line = |id: &str, partition: &str, asked: &str, node: &str| {
        let submit = at("08:00:00");
        format!(
            "{id}|ann|vision|{partition}|normal|{submit}|{submit}|{submit}|{}|01:00:00|UNLIMITED|COMPLETED|{asked}|\
             cpu=4,gres/gpu=2,node=1|{node}\n",
            at("09:00:00")
        )
    };
    text += &line("1", "gpu", "gres/gpu=2", "g1");
    text += &line("2", "gpu", "gres/gpu=2", "v1");
    text += &line("3", "old", "gres/gpu=2", "v1");
    text += &line("4", "gpu", "gres/gpu:a100=2", "g2");
    text += &line("5", "gpu", "gres/gpu:h100=2", "g2");
    let guessed = read(&text).mapping.unwrap();
    let mut mapping = Mapping {
        gpu_types: [("a100", "A100"), ("v100", "V100")]
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .into(),
        speeds: [("A100".to_owned(), 1.0), ("V100".to_owned(), 0.5)].into(),
        ..guessed
    };
    // What is edited reads back.
    assert_eq!(Mapping::of_text("m.toml", &mapping.text()).unwrap(), mapping);
    let options = |mapping: &Mapping| SiteOptions {
        mapping: Some(mapping.clone()),
        nodes: nodes(TWO_TYPES),
        ..SiteOptions::default()
    };
    let SiteImport { workload, report, .. } = of_text(&text, &options(&mapping)).unwrap();
    let told: Vec<_> = workload
        .jobs
        .iter()
        .map(|job| {
            (
                workload.classes[usize::from(job.class)].name.as_str(),
                job.run_time_s,
            )
        })
        .collect();
    // An hour on a V100 is half an hour on an A100.
    assert_eq!(
        told,
        [
            ("any", 3600.0),
            ("any", 1800.0),
            ("V100", 1800.0),
            ("A100", 3600.0)
        ]
    );
    let speeds = |name: &str| {
        workload
            .classes
            .iter()
            .find(|class| class.name == name)
            .unwrap()
            .speed
            .clone()
    };
    assert_eq!(
        (speeds("any"), speeds("V100"), speeds("A100")),
        (vec![1.0, 0.5], vec![0.0, 0.5], vec![1.0, 0.0])
    );
    assert_eq!(
        report
            .account
            .rows_of("asks for GPU types that the cluster does not have"),
        1
    );
    assert_eq!(workload.cluster.node_groups[0].memory_gib, 500.0);
    mapping.speeds.insert("H100".into(), 2.0);
    let said = of_text(&text, &options(&mapping)).unwrap_err();
    assert!(
        said.contains("H100") && said.contains("one of A100, V100"),
        "{said}"
    );
}

#[test]
fn json_tells_of_the_same_job_in_old_and_new_releases() {
    let new = r#"{"meta": {"plugin": {}}, "errors": [], "jobs": [
        {"job_id": 43, "account": "vision", "user": "ann", "partition": "gpu", "qos": "normal", "nodes": "g[1-2]",
         "constraints": "nvlink&a100", "licenses": "matlab:1", "array": {"job_id": 42, "task_id": {"set": true, "infinite": false, "number": 7}, "task": ""},
         "het": {"job_id": 0, "job_offset": {"set": false, "infinite": false, "number": 0}},
         "state": {"current": ["COMPLETED"], "reason": "None"},
         "time": {"submission": 1709287200, "eligible": 1709287200, "start": 1709290800, "end": 1709294400, "elapsed": 3600,
                  "limit": {"set": true, "infinite": false, "number": 1440}},
         "tres": {"allocated": [{"type": "cpu", "name": "", "id": 1, "count": 8}, {"type": "node", "name": "", "id": 4, "count": 2},
                                {"type": "gres", "name": "gpu", "id": 1001, "count": 16}],
                  "requested": [{"type": "gres", "name": "gpu:a100", "id": 1002, "count": 16}]},
         "steps": [{"step": {"id": "42_7.batch"}, "tres": {"allocated": []}}]},
        {"job_id": 44, "state": {"current": ["PENDING"]}, "time": {"submission": 1709287200, "start": 0, "end": 0}}]}"#;
    let told = read(new);
    let job = &told.workload.jobs[0];
    assert_eq!(told.report.format, Format::SacctJson);
    assert_eq!(
        (job.id.as_str(), job.num_gpus, job.run_time_s),
        ("42_7", 16, 3600.0)
    );
    assert_eq!(
        (job.estimate_s, job.resources.tasks),
        (Some(86_400.0), Tasks::of(8))
    );
    let seen = job.observed.as_deref().unwrap();
    assert_eq!(
        [&seen.nodes, &seen.constraint, &seen.licences],
        ["g[1-2]", "nvlink&a100", "matlab:1"]
    );
    assert_eq!(told.report.account.rows_of("never began"), 1);
    let old = new
        .replace(r#"{"set": true, "infinite": false, "number": 7}"#, "7")
        .replace(r#"["COMPLETED"]"#, r#""COMPLETED""#)
        .replace(r#"{"set": true, "infinite": false, "number": 1440}"#, "1440");
    assert_eq!(read(&old).workload.jobs, told.workload.jobs);
    assert_eq!(read(&new.replace('\n', "")).workload.jobs, told.workload.jobs);
    let said = of_text(r#"{"jobs": 3}"#, &SiteOptions::default()).unwrap_err();
    assert!(said.contains("sacct --json"), "{said}");
}

#[test]
fn any_table_is_read_by_its_names_or_by_a_mapping() {
    let text = "id;submitted at;started at;finished at;gpus;project;status;constraints;licenses\n\
                a;13.03.2024 08:00;13.03.2024 08:30;13.03.2024 09:30;4;vision;Succeeded;nvlink;ansys\n";
    let told = read(text);
    assert_eq!(told.report.format, Format::Table);
    let job = &told.workload.jobs[0];
    assert_eq!(
        (job.num_gpus, job.run_time_s, job.outcome),
        (4, 3600.0, Outcome::Completed)
    );
    let seen = job.observed.as_deref().unwrap();
    assert_eq!(
        (seen.constraint.as_str(), seen.licences.as_str()),
        ("nvlink", "ansys")
    );
    assert_eq!(told.mapping.unwrap().time_format, "%d.%m.%Y %H:%M");
    let strange = "wann;wie lange;wie viele\n13.03.2024 08:00;60;4\n";
    let said = of_text(strange, &SiteOptions::default()).unwrap_err();
    assert!(
        said.contains("pleach workload import") && said.len() < 800,
        "{said}"
    );
    assert!(
        said.contains("no column says when a job was submitted (submit)"),
        "{said}"
    );
    let mapping = "delimiter = ';'\ntime_format = '%d.%m.%Y %H:%M'\nrun_time_unit = 'min'\n[columns]\nsubmit = 'wann'\n\
                   run_time = 'wie lange'\ngpus = 'wie viele'\n";
    let options = SiteOptions {
        mapping: Some(Mapping::of_text("m.toml", mapping).unwrap()),
        ..SiteOptions::default()
    };
    let job = &of_text(strange, &options).unwrap().workload.jobs[0];
    assert_eq!((job.num_gpus, job.run_time_s), (4, 3600.0));
    assert_eq!(job.observed, None);
}

#[test]
fn all_that_is_wrong_in_a_mapping_is_told_at_once() {
    let text = "delimiter = 'x'\ntime_zone = 'Moon'\ntime_format = 'soon'\nrun_time_unit = 'day'\n[speeds]\nV100 = -1.0\n[columns]\n\
                start = 'Start'\n";
    let said = Mapping::of_text("m.toml", text).unwrap_err().to_string();
    for words in [
        "m.toml",
        "delimiter = `x`",
        "time_zone = `Moon`",
        "time_format = `soon`",
        "run_time_unit = `day`",
        "speeds.V100",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(
        said.contains("when a job was submitted") && said.contains("how many GPUs"),
        "{said}"
    );
    let said = Mapping::of_text("m.toml", "[columns]\nsubmit = 'a'\nspeed = 'b'\n")
        .unwrap_err()
        .to_string();
    assert!(said.contains("line 3") && said.contains("run_time"), "{said}");
}
