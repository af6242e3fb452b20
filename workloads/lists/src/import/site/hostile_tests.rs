//! Tables from untrusted sources: never a panic, never a row that is not accounted for.

use proptest::prelude::*;

use super::*;

fn outcome(text: &[u8], options: &SiteOptions) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list");
    std::fs::write(&path, text).unwrap();
    if let Ok(read) = import_site(&path, options) {
        let report = &read.report;
        assert_eq!(
            report.account.rows_read,
            report.jobs + report.account.left_out(),
            "{report}"
        );
        read.workload.validate().unwrap();
    }
}

/// A field of a row: right, nearly right, or anything.
fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,12}(_[0-9]{1,3}|_\\[[0-9]-[0-9]\\]|\\+[0-9]|\\.batch)?",
        (0_u32..13, 0_u32..33, 0_u32..26)
            .prop_map(|(month, day, hour)| format!("2024-{month:02}-{day:02}T{hour:02}:30:00")),
        "(COMPLETED|FAILED|REQUEUED|NODE_FAIL|RUNNING|PENDING|CANCELLED by [0-9])",
        "(gres/gpu=[0-9]{0,12}|gres/gpu:(a100|v100|é)=[0-9]{1,3},node=[0-9]{0,9}|gpu:a:[0-9]{0,10})",
        "(g\\[[0-9]{1,3}-[0-9]{1,5}\\]|g[0-9]|None assigned|\\[|g\\[1)",
        "([0-9]{1,3}-)?[0-9]{0,3}:[0-9]{0,2}(:[0-9.]{0,9})?",
        "(Unknown|None|nan|inf|-1|1e308|1e-308|)",
        ".{0,20}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn rows_of_anything_are_read_or_counted(rows in prop::collection::vec(prop::collection::vec(field(), 12..15), 0..12)) {
        let mut text = "JobID|Submit|Eligible|Start|End|Elapsed|Timelimit|State|ReqTRES|AllocTRES|NodeList|Partition|Account\n".to_owned();
        for row in rows {
            text += &row.join("|").replace('\n', " ");
            text.push('\n');
        }
        outcome(text.as_bytes(), &SiteOptions::default());
    }

    #[test]
    fn bytes_of_anything_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), has_header: bool) {
        let mut text = if has_header { b"JobID|Submit|Start|End|State|AllocTRES\n".to_vec() } else { Vec::new() };
        text.extend(bytes);
        outcome(&text, &SiteOptions::default());
    }

    #[test]
    fn json_of_anything_is_read_or_refused(text in "[\\[\\]{}:,\"a-z0-9._ -]{0,200}", number in -1e300f64..1e300) {
        outcome(format!("{{\"meta\":1,\"plugin\":2,\"jobs\":[{text}]}}").as_bytes(), &SiteOptions::default());
        let job = format!(
            "{{\"jobs\":[{{\"job_id\":{number:e},\"time\":{{\"submission\":{number:e},\"start\":{number:e},\"elapsed\":{number:e},\
             \"limit\":{number:e}}},\"tres\":{{\"allocated\":[{{\"type\":\"gres\",\"name\":\"gpu\",\"count\":{number:e}}}]}}}}]}}"
        );
        outcome(job.as_bytes(), &SiteOptions::default());
    }

    #[test]
    fn mappings_of_anything_are_read_or_refused(text in "[a-z_= '\"|\\[\\]\n%YmdHM0-9]{0,200}") {
        let _ = Mapping::of_text("m.toml", &text);
    }
}

#[test]
fn lists_of_nodes_that_never_end_take_no_memory() {
    let mut text = "JobID|Submit|Start|End|State|AllocTRES|NodeList\n".to_owned();
    for id in 0..60 {
        text += &format!("{id}|1709287200|1709287200|1709290800|COMPLETED|gres/gpu=1|n[0-4095]\n");
    }
    for id in 60..6000 {
        text += &format!("{id}|1709287200|1709287200|1709290800|COMPLETED|gres/gpu=1|n[0-99999]\n");
    }
    outcome(text.as_bytes(), &SiteOptions::default());
}

/// Seven jobs of 2 GPUs and an hour, all submitted at once: 14 GPUs at a use of 0.7 are 20, and three nodes of 8.
#[test]
fn a_burst_on_nodes_that_nobody_names_gets_a_cluster_of_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list");
    let row = |id: u32| {
        format!("{id}|COMPLETED|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T01:00:00|gres/gpu=2\n")
    };
    let rows: String = (1..=7).map(row).collect();
    std::fs::write(&path, format!("JobID|State|Submit|Start|End|AllocTRES\n{rows}")).unwrap();
    let read = import_site(&path, &SiteOptions::default()).unwrap();
    let groups = &read.workload.cluster.node_groups;
    assert_eq!(
        (groups.len(), groups[0].count, groups[0].gpus_per_node),
        (1, 3, 8)
    );
}
