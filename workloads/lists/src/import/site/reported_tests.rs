//! What users of batch systems report of their exports, each in small: names with delimiters, words for times, sites that track no
//! GPUs. Names and figures are ours.

use super::*;
use crate::import::Format;
use crate::import::ImportOptions;
use crate::{JobSpec, Outcome};

const HEADER: &str =
    "JobID|JobName|Account|Partition|Submit|Start|End|Elapsed|Timelimit|State|AllocTRES|NodeList\n";

fn of_text(name: &str, text: &str, nodes: Option<&str>) -> Result<SiteImport, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let options = SiteOptions {
        nodes: nodes.map(|text| NodeTable::of_text(text).unwrap()),
        ..SiteOptions::default()
    };
    let read = import_site(&path, &options).map_err(|error| error.to_string())?;
    let account = &read.report.account;
    assert_eq!(
        account.rows_read,
        read.report.jobs + account.left_out(),
        "{}",
        read.report
    );
    Ok(read)
}

fn read(text: &str) -> SiteImport {
    of_text("list.txt", text, None).unwrap()
}

/// A row of [`HEADER`] on 14 June 2026 that ran for an hour.
fn row(id: &str, name: &str, tres: &str, nodes: &str) -> String {
    let [submit, start, end] =
        ["08:00:00", "08:20:00", "09:20:00"].map(|clock| format!("2026-06-14T{clock}"));
    format!("{id}|{name}|bio|batch|{submit}|{start}|{end}|01:00:00|04:00:00|COMPLETED|{tres}|{nodes}\n")
}

fn gpus(num: u32) -> String {
    format!("cpu=12,gres/gpu={num},mem=96G,node=1")
}

fn job<'a>(read: &'a SiteImport, id: &str) -> &'a JobSpec {
    read.workload.jobs.iter().find(|job| job.id == id).unwrap()
}

fn ids(read: &SiteImport) -> Vec<&str> {
    read.workload.jobs.iter().map(|job| job.id.as_str()).collect()
}

#[test]
fn a_bar_or_a_line_break_in_one_name_costs_that_job_at_most_and_no_format() {
    for (name, num, rule) in [
        ("fold|rank=8", 8, "has another number of fields than the header"),
        ("two\nlines", 9, "a line break in its name"),
    ] {
        for end in ["\n", "|\n"] {
            let mut rows = vec![HEADER.trim_end().to_owned()];
            let of = |id: u32| if id == 5 { name } else { "plain" };
            rows.extend((1..=9).map(|id| {
                row(&id.to_string(), of(id), &gpus(2), &format!("n{id}"))
                    .trim_end()
                    .to_owned()
            }));
            let read = read(&(rows.join(end) + end));
            let words = read.report.to_string();
            assert_eq!(read.workload.jobs.len(), num, "{name:?}: {words}");
            assert_eq!(read.report.account.rows_of(rule), 1, "{words}");
            assert_eq!(read.report.account.rows_read, 9, "{words}");
            assert!(!words.contains("no format"), "{words}");
        }
    }
}

#[test]
fn with_the_sites_own_times_a_bar_loses_its_own_row_alone() {
    let mut text = "JobID|JobName|Submit|Start|End|Elapsed|State|AllocTRES\n".to_owned();
    for id in 1..=20 {
        let name = if id == 7 { "p|q" } else { "run" };
        text += &format!(
            "{id}|{name}|{id:02}.06.2026 08:00:00|{id:02}.06.2026 08:20:00|{id:02}.06.2026 09:20:00|01:00:00|COMPLETED|gres/gpu=1\n"
        );
    }
    let read = read(&text);
    assert_eq!(read.workload.jobs.len(), 19, "{}", read.report);
    assert_eq!(
        read.report.account.sums("rows"),
        "20 rows read, 19 kept, 1 left out"
    );
    assert_eq!(read.mapping.unwrap().time_format, "%d.%m.%Y %H:%M:%S");
}

#[test]
fn rests_of_arrays_words_for_times_and_bytes_of_old_encodings_cost_no_job() {
    let text = [
        HEADER,
        &row("31_4", "a", &gpus(1), "n1"),
        "31_[5,8-11%3]|a|bio|batch|2026-06-14T08:00:00|Unknown|Unknown|00:00:00|UNLIMITED|PENDING||None assigned\n",
        "32_[1-4%2]|a|bio|batch|2026-06-14T08:00:00|None|2026-06-14T08:30:00|00:00:00|01:00:00|CANCELLED by 1007||\n",
        &row("33", "a", &gpus(1), "n1").replace("04:00:00", "UNLIMITED"),
        &row("34", "a", &gpus(1), "n1").replace("04:00:00", "Partition_Limit"),
    ]
    .concat();
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(b"35|m\xfcller");
    bytes.extend_from_slice(&row("35", "m", &gpus(1), "n1").as_bytes()["35|m".len()..]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list");
    std::fs::write(&path, bytes).unwrap();
    let read = import_site(&path, &SiteOptions::default()).unwrap();
    assert_eq!(ids(&read), ["31_4", "33", "34", "35"], "{}", read.report);
    let limits: Vec<Option<f64>> = read.workload.jobs.iter().map(|job| job.estimate_s).collect();
    assert_eq!(limits, [Some(14_400.0), None, None, Some(14_400.0)]);
    assert_eq!(
        read.report
            .account
            .rows_of("tasks of an array that had not begun"),
        2
    );
    assert_eq!(
        read.report.account.rows_of("its time limit"),
        0,
        "{}",
        read.report
    );
}

#[test]
fn a_requeued_job_is_one_job_with_the_time_that_it_held_its_gpus() {
    let run = |start: &str, end: &str, elapsed: &str, state: &str| {
        let (submit, tres) = ("2026-06-14T08:00:00", gpus(4));
        format!(
            "51|a|bio|batch|{submit}|2026-06-14T{start}|2026-06-14T{end}|{elapsed}|1-00:00:00|{state}|{tres}|n1\n"
        )
    };
    let runs = [
        run("08:30:00", "09:30:00", "01:00:00", "PREEMPTED"),
        run("11:00:00", "13:30:00", "02:30:00", "COMPLETED"),
    ];
    let read = read(&[HEADER, &runs.concat(), &row("52", "b", &gpus(1), "n2")].concat());
    let again = job(&read, "51");
    assert_eq!(
        (again.num_gpus, again.run_time_s, again.outcome),
        (4, 12_600.0, Outcome::Completed)
    );
    assert_eq!(
        again.observed.as_deref().unwrap().end.unwrap().as_secs_f64(),
        5.5 * 3600.0
    );
}

#[test]
fn a_site_that_tracks_no_gpus_is_told_what_it_has_to_turn_on() {
    let rows: String = (1..=3)
        .map(|id| row(&id.to_string(), "a", "billing=12,cpu=12,mem=96G,node=1", "n1"))
        .collect();
    let nodes = "NodeName=n[1-4] CPUTot=48 Gres=gpu:h200:8 RealMemory=900000 Partitions=batch\n";
    let said = of_text("list", &format!("{HEADER}{rows}"), Some(nodes)).unwrap_err();
    for words in [
        "none of 3 rows",
        "gres/gpu",
        "AccountingStorageTRES",
        "partition `batch` have 32 GPUs",
        "AllocGRES",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("widen the window"), "{said}");
}

#[test]
fn whole_nodes_and_devices_of_nodes_are_read_as_slurm_prints_them() {
    // Given whole nodes, it has 8 GPUs on each although it asked for none.
    let exclusive = row("61", "a", "cpu=96,gres/gpu=16,mem=1800G,node=2", "n[1,5]");
    let nodes = "NodeName=n1 CPUTot=48 Gres=gpu:h200:8(S:0-1) Partitions=batch\nNodeName=n2 CPUTot=48 Gres=gpu:8 Partitions=batch\n\
        NodeName=n3 CPUTot=48 Gres=gpu:h200:4(S:0),gpu:l4:2(S:1) Partitions=batch\nNodeName=n4 CPUTot=48 Gres=gpu:h200:4,shard:32\n\
        NodeName=n5 CPUTot=48 Gres=gpu:h200:8 Partitions=batch\nNodeName=c1 CPUTot=48 Gres=(null)\n";
    let read = of_text("list", &format!("{HEADER}{exclusive}"), Some(nodes)).unwrap();
    let first = job(&read, "61");
    assert_eq!((first.num_gpus, first.resources.tasks.gpus_per_task), (16, 8));
    let sizes: u32 = read
        .workload
        .cluster
        .node_groups
        .iter()
        .map(|group| group.count * group.gpus_per_node)
        .sum();
    assert_eq!(sizes, 8 + 8 + 4 + 4 + 8);
    let words = read.report.to_string();
    assert!(words.contains("6 nodes read, 5 kept, 1 left out"), "{words}");
    assert!(
        words.contains("GPUs of several types: those of the most are taken: 1 nodes"),
        "{words}"
    );
}

#[test]
fn components_of_unequal_sizes_are_one_gang_that_is_cut_as_it_may_be() {
    let cpu = row("71+1", "a", "cpu=96,node=4", "c[1-4]");
    let (first, last) = (row("71+0", "a", &gpus(6), "n1"), row("71+2", "a", &gpus(2), "n2"));
    let equal = [row("72+0", "a", &gpus(4), "n1"), row("72+1", "a", &gpus(4), "n2")].concat();
    let read = read(&[HEADER, &first, &cpu, &last, &equal].concat());
    let uneven = job(&read, "71");
    assert!(
        uneven.num_gpus == 8 && uneven.resources.tasks.is_any(),
        "{:?}",
        uneven.resources
    );
    let even = job(&read, "72");
    assert_eq!((even.num_gpus, even.resources.tasks.gpus_per_task), (8, 4));
}

#[test]
fn raw_ids_with_a_delimiter_at_the_end_and_limits_in_minutes_are_read() {
    let text = "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|State|AllocTRES|\n\
        81_5|2026-06-14T08:00:00|2026-06-14T08:00:00|2026-06-14T08:30:00|1800|90|COMPLETED|gres/gpu=1|\n\
        81_6|2026-06-14T08:00:00|2026-06-14T08:00:00|2026-06-14T08:30:00|1800|90|COMPLETED|gres/gpu=1|\n";
    let read = read(text);
    let limits: Vec<Option<f64>> = read.workload.jobs.iter().map(|job| job.estimate_s).collect();
    assert_eq!(
        (ids(&read), limits),
        (vec!["81_5", "81_6"], vec![Some(5400.0); 2])
    );
}

#[test]
fn time_limits_are_read_in_every_form() {
    for (limit, seconds) in [
        ("45:00", 2700.0),
        ("30:00:00", 108_000.0),
        ("1-06:30:00", 109_800.0),
        ("2-00", 172_800.0),
        ("90-00:00:00", 7_776_000.0),
        ("2d", 172_800.0),
        ("36h", 129_600.0),
    ] {
        let read = read(&[HEADER, &row("1", "a", &gpus(1), "n1").replace("04:00:00", limit)].concat());
        assert_eq!(job(&read, "1").estimate_s, Some(seconds), "{limit}");
    }
    let read = read(&[HEADER, &row("1", "a", &gpus(1), "n1").replace("04:00:00", "soon")].concat());
    assert_eq!(job(&read, "1").estimate_s, None);
    assert_eq!(
        read.report.account.rows_of("its time limit is not understood"),
        1,
        "{}",
        read.report
    );
}

#[test]
fn cells_that_cannot_be_read_are_told_with_the_first_of_them() {
    let text = "job_id;submit;start;end;duration;gpus\n\
        a;2026-06-14 08:00;2026-06-14 08:10;;2d;1\nb;2026-06-14 08:00;2026-06-14 08:10;;3600;1,5\n\
        c;2026-06-14 08:00;2026-06-14 08:10;;soon;1\nd;yesterday;2026-06-14 08:10;;60;1\n\
        e;2026-06-14 08:00;at noon;;60;1\nf;2026-06-14 08:00;2026-06-14 08:10;tonight;;1\n\
        g;2026-06-14 08:00;2026-06-14 08:10;;60;-2\nh;2026-06-14 08:00;2026-06-14 08:10;;60;many\n";
    let read = read(text);
    assert_eq!((ids(&read), job(&read, "a").run_time_s), (vec!["a"], 172_800.0));
    let words = read.report.to_string();
    for line in [
        "8 rows read, 1 kept, 7 left out",
        "left out: its GPUs are not understood, such as `1,5`: 3 rows",
        "left out: its run time is not understood, such as `soon`: 1 rows",
        "left out: its submission cannot be read as a time, such as `yesterday`: 1 rows",
        "left out: its start cannot be read as a time, such as `at noon`: 1 rows",
        "left out: its end cannot be read as a time, such as `tonight`: 1 rows",
    ] {
        assert!(words.contains(line), "{line}: {words}");
    }
    let none = of_text("list", "submit,duration,gpus\n0,60,none at all\n", None).unwrap_err();
    assert!(
        none.contains("`none at all`") && none.contains("mend these cells"),
        "{none}"
    );
}

#[test]
fn jobs_without_gpus_that_held_cores_of_nodes_with_gpus_are_counted_with_their_core_hours() {
    let nodes = "NodeName=n[1-2] CPUTot=40 Gres=gpu:l40s:4 RealMemory=300000 Partitions=batch\nNodeName=c1 CPUTot=40 Gres=(null)\n";
    let on_gpu_nodes = [
        row("91", "a", "cpu=36,mem=64G,node=1", "n1"),
        row("92", "a", "cpu=20,mem=64G,node=2", "n[1-2]"),
        row("93", "a", "cpu=16,mem=64G,node=2", "n2,c1"),
    ];
    let elsewhere = row("94", "a", "cpu=40,mem=64G,node=1", "c1");
    let text = [
        HEADER,
        &on_gpu_nodes.concat(),
        &elsewhere,
        &row("95", "a", &gpus(4), "n1"),
    ]
    .concat();
    let read = of_text("list", &text, Some(nodes)).unwrap();
    // An hour each: 36, 20 and half of 16 cores.
    assert_eq!(read.workload.cluster.seen.core_hours_without_gpus, 64.0);
    let words = read.report.to_string();
    // 80 cores from 8:00 to 9:20.
    let line =
        "3 rows without GPUs held 64 core hours on nodes with GPUs, 60 % of their cores while the list lasts";
    assert!(words.contains(line), "{words}");
    assert!(words.contains("left out: asks for no GPU: 4 rows"), "{words}");
    // Beside the list it is kept.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.csv");
    read.workload.write(&path).unwrap();
    assert_eq!(
        crate::Workload::read(&path).unwrap().cluster.seen,
        read.workload.cluster.seen
    );
}

#[test]
fn claims_of_devices_are_named_and_not_called_no_gpu() {
    let pod = |name: &str, spec: &str| {
        format!(
            r#"{{"kind": "Pod", "metadata": {{"name": "{name}", "namespace": "lab", "creationTimestamp": "2026-06-14T08:00:00Z"}},
                "spec": {{"nodeName": "k1", {spec}}}, "status": {{"phase": "Succeeded", "startTime": "2026-06-14T08:01:00Z",
                "containerStatuses": [{{"state": {{"terminated": {{"finishedAt": "2026-06-14T09:01:00Z"}}}}}}]}}}}"#
        )
    };
    let plain = pod(
        "whole",
        r#""containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]"#,
    );
    let claim = r#""resourceClaims": [{"name": "dev"}], "containers": [{"resources": {"claims": [{"name": "dev"}]}}]"#;
    let text = format!(
        r#"{{"apiVersion": "v1", "items": [{plain}, {}]}}"#,
        pod("claim", claim)
    );
    let read = of_text("pods.json", &text, None).unwrap();
    assert_eq!(read.workload.jobs.len(), 1);
    let account = &read.report.account;
    assert_eq!(
        (
            account.rows_of("asks for GPUs or other devices by resource claims"),
            account.left_out()
        ),
        (1, 1)
    );
}

#[test]
fn a_list_of_another_delimiter_is_read_with_the_cluster_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = "job_id,submit_s,num_gpus,run_time_s\na,0,2,600\nb,60,4,900\n";
    let cluster = "[cluster]\n[[cluster.node_groups]]\ncount = 3\ngpus_per_node = 4\ngpu_type = \"L40S\"\n";
    for (name, sign) in [
        ("one.csv", ','),
        ("two.csv", ';'),
        ("three.tsv", '\t'),
        ("four.txt", ';'),
        ("five.csv", '|'),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text.replace(',', &sign.to_string())).unwrap();
        std::fs::write(path.with_extension("cluster.toml"), cluster).unwrap();
        let (workload, report) = crate::import::import(&path, &ImportOptions::default()).unwrap();
        assert_eq!(report.format, Format::Canonical, "{name}");
        assert_eq!(
            (workload.cluster.num_gpus(), workload.jobs.len()),
            (12, 2),
            "{name}"
        );
    }
    // A table of other columns has it too, at both doors.
    let path = folder.path().join("own.csv");
    std::fs::write(&path, "id;submitted;gpus;duration\na;0;2;600\n").unwrap();
    std::fs::write(path.with_extension("cluster.toml"), cluster).unwrap();
    let (workload, report) = crate::import::import(&path, &ImportOptions::default()).unwrap();
    assert_eq!(workload.cluster.num_gpus(), 12, "{report}");
    let read = import_site(&path, &SiteOptions::default()).unwrap();
    assert!(
        read.report
            .to_string()
            .contains("own.cluster.toml, beside the list"),
        "{}",
        read.report
    );
}

#[test]
fn a_window_by_dates_is_the_window_by_days_of_lists_that_have_dates() {
    let day =
        |id: &str, day: u32| row(id, "a", &gpus(1), "n1").replace("2026-06-14", &format!("2026-06-{day:02}"));
    let text = [HEADER, &day("1", 14), &day("2", 16), &day("3", 17)].concat();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.txt");
    std::fs::write(&path, text).unwrap();
    // 16 June 2026, midnight UTC.
    let (from, to) = (1_781_568_000.0, 1_781_568_000.0 + 86_400.0);
    let window = ImportOptions {
        from_s: Some(from),
        to_s: Some(to),
        dated: true,
        ..ImportOptions::default()
    };
    let site = import_site(
        &path,
        &SiteOptions {
            import: window.clone(),
            ..SiteOptions::default()
        },
    )
    .unwrap();
    assert_eq!(ids(&site), ["2"]);
    let whole = import_site(&path, &SiteOptions::default()).unwrap();
    let written = folder.path().join("list.csv");
    whole.workload.write(&written).unwrap();
    let (cut, _) = crate::import::import(&written, &window).unwrap();
    assert_eq!((cut.jobs.len(), cut.jobs[0].id.as_str()), (1, "2"));
    // Its time 0 is the window's first instant now.
    assert_eq!(cut.cluster.seen.time_0_unix_s, Some(from));
    std::fs::write(&path, "submit,duration,gpus\n0,60,1\n").unwrap();
    let said = crate::import::import(&path, &window).unwrap_err().to_string();
    assert!(
        said.contains("from_day = 2026-06-16") && said.contains("which date its day 0 is"),
        "{said}"
    );
}
