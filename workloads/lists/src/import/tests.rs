use std::path::PathBuf;

use pleach_scheduler::cluster_spec::ClusterSpec;

use super::*;
use crate::Outcome;

/// A published list; `None`, and the test is noted as skipped, where it is missing.
pub(super) fn list(relative: &str) -> Option<PathBuf> {
    pleach_tests::data(&format!("traces/{relative}"))
}

pub(super) fn read(relative: &str, options: &ImportOptions) -> Option<(Workload, ImportReport)> {
    let path = list(relative)?;
    let (workload, report) = import(&path, options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        report.account.rows_read,
        report.jobs + report.account.left_out(),
        "{report}"
    );
    eprintln!("{report}");
    Some((workload, report))
}

#[test]
fn philly_has_the_published_jobs_and_work() {
    let Some((workload, report)) = read("philly/philly_jobs_joined.csv.gz", &ImportOptions::default()) else {
        return;
    };
    assert_eq!(report.format, Format::Mapped("philly"));
    assert_eq!((report.account.rows_read, report.jobs), (111_549, 111_549));
    assert_eq!(report.account.rows_of("run time below 1 s"), 10);
    assert!(
        (report.gpu_hours - 3_622_168.0).abs() < 1.0,
        "{}",
        report.gpu_hours
    );
    assert_eq!(workload.cluster.num_gpus(), 2490);
    let completed = workload
        .jobs
        .iter()
        .filter(|job| job.outcome == Outcome::Completed);
    assert_eq!(completed.count(), 82_596);
    assert!(workload.cluster.borrowing && workload.cluster.tenants.len() == 16);
    let quotas: u32 = workload
        .cluster
        .tenants
        .iter()
        .map(|tenant| tenant.quota_gpus)
        .sum();
    assert_eq!(quotas, 2490);
}

#[test]
fn phillys_dense_window_offers_the_published_load() {
    // 3 October to 15 December 2017 on a clock that starts on 14 August at 23:27.
    let options = ImportOptions {
        from_s: Some(4_235_580.0),
        to_s: Some(10_629_180.0),
        ..ImportOptions::default()
    };
    let Some((_, report)) = read("philly/philly_jobs_joined.csv.gz", &options) else {
        return;
    };
    assert!(report.jobs.abs_diff(99_006) < 100, "{report}");
    let load = report.offered_load.unwrap();
    assert!((load - 0.64).abs() < 0.02, "{load}");
}

#[test]
fn phillys_virtual_clusters_can_be_walls() {
    let options = ImportOptions {
        virtual_clusters: true,
        ..ImportOptions::default()
    };
    let Some((workload, report)) = read("philly/philly_jobs_joined.csv.gz", &options) else {
        return;
    };
    assert!(!workload.cluster.borrowing);
    assert_eq!(workload.cluster.num_gpus(), 2816);
    // 6,858 jobs name no virtual cluster and 18 belong to four tiny ones.
    assert_eq!(report.account.rows_of("its virtual cluster"), 6876);
}

#[test]
fn venus_has_the_published_jobs_and_says_which_run_times_are_cut() {
    let Some((workload, report)) = read(
        "helios_venus/venus_gpu_jobs_joined.csv.gz",
        &ImportOptions::default(),
    ) else {
        return;
    };
    assert_eq!(report.format, Format::Mapped("venus"));
    assert_eq!((report.account.rows_read, report.jobs), (125_303, 125_303));
    assert_eq!(report.account.rows_of("run time cut at 48 h"), 1250);
    assert_eq!(report.origin_s, -1_195_252.0);
    assert!(
        (report.gpu_hours - 2_911_538.4).abs() < 1.0,
        "{}",
        report.gpu_hours
    );
    assert_eq!(workload.cluster.num_gpus(), 1064);
    let walls = ImportOptions {
        virtual_clusters: true,
        ..ImportOptions::default()
    };
    let Some((_, walled)) = read("helios_venus/venus_gpu_jobs_joined.csv.gz", &walls) else {
        return;
    };
    assert_eq!(walled.account.rows_of("its virtual cluster"), 61_432);
    let Some((_, four)) = read(
        "helios_venus/orig_4col_venus_gpu_jobs.csv.gz",
        &ImportOptions::default(),
    ) else {
        return;
    };
    assert_eq!((four.format, four.jobs), (Format::Mapped("venus"), 125_303));
}

#[test]
fn the_nine_itp_lists_have_the_published_jobs_and_work() {
    let mut total = 0;
    for (number, jobs, gpu_hours) in [
        (1, 1595, 22_740.0),
        (2, 5778, 123_748.0),
        (3, 3011, 165_443.0),
        (4, 15_802, 705_683.0),
        (5, 3629, 14_303.0),
        (6, 2396, 123_879.0),
        (8, 13_047, 67_100.0),
        (9, 11_134, 39_001.0),
        (10, 260, 4023.0),
    ] {
        let name = format!("microsoft_itp/raw_cluster{number:02}.csv.gz");
        let Some((workload, report)) = read(&name, &ImportOptions::default()) else {
            return;
        };
        assert_eq!((report.format, report.jobs), (Format::Mapped("itp"), jobs));
        assert!((report.gpu_hours - gpu_hours).abs() < 1.0, "{}", report.gpu_hours);
        assert!(workload.offered_load() <= 0.71, "{}", workload.offered_load());
        total += report.jobs;
    }
    assert_eq!(total, 56_652);
    let Some((_, report)) = read(
        "microsoft_itp/elasticflow_cluster05.csv.gz",
        &ImportOptions::default(),
    ) else {
        return;
    };
    assert_eq!((report.format, report.jobs), (Format::Mapped("itp"), 3629));
}

#[test]
fn gavels_lists_of_both_forms_are_read() {
    for (name, jobs, num_gpus) in [
        ("msr_seed0/103959", 986, 900),
        ("msr_seed0/ee9e8c", 2000, 900),
        ("msr_seed0/795a4c", 3, 900),
        ("physical_cluster/max_min_fairness", 96, 108),
        ("physical_cluster/minimize_makespan", 100, 108),
        ("physical_cluster/debug", 14, 108),
    ] {
        let Some((workload, report)) = read(
            &format!("peer_joblists/gavel/{name}.trace.gz"),
            &ImportOptions::default(),
        ) else {
            return;
        };
        assert_eq!((report.format, report.jobs), (Format::Gavel, jobs), "{name}");
        assert_eq!(workload.cluster.num_gpus(), num_gpus);
        assert_eq!(workload.classes.len(), 83);
    }
}

#[test]
fn an_imported_list_survives_the_projects_own_file() {
    let options = ImportOptions {
        max_jobs: Some(500),
        ..ImportOptions::default()
    };
    let Some((workload, report)) = read("philly/philly_jobs_joined.csv.gz", &options) else {
        return;
    };
    assert_eq!(report.account.rows_of("after the first max_jobs"), 111_049);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("philly.csv.gz");
    workload.write(&path).unwrap();
    assert_eq!(Workload::read(&path).unwrap(), workload);
}

pub(super) fn of_text(text: &str, options: &ImportOptions) -> Result<(Workload, ImportReport), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.csv");
    std::fs::write(&path, text).unwrap();
    import(&path, options).map_err(|error| error.to_string())
}

const PHILLY: &str = "job,submit_s,num_gpus,duration_s,state,vc,user\n";

#[test]
fn repairs_are_counted_and_told() {
    let small = ImportOptions {
        cluster: Some(ClusterSpec::uniform(1, 4, 1)),
        ..ImportOptions::default()
    };
    let text = format!("{PHILLY}a,10,1,0,COMPLETED,x,\nb,5,2,7,FAILED,,u\nc,20,8,7,CANCELLED,x,\n");
    let (workload, report) = of_text(&text, &small).unwrap();
    assert_eq!(
        (report.account.rows_read, report.jobs, report.account.left_out()),
        (3, 2, 1)
    );
    assert_eq!(workload.jobs[0].id, "b");
    assert_eq!(workload.jobs[1].run_time_s, 1.0);
    let told = report.to_string();
    assert!(
        told.contains("mended: run time below 1 s: raised to 1 s: 1 rows"),
        "{told}"
    );
    assert!(
        told.contains("left out: needs more GPUs than its tenant or one GPU type"),
        "{told}"
    );
    assert!(told.contains("sorted by submission: 1 rows"), "{told}");
}

#[test]
fn windows_move_the_clock_and_nothing_left_is_an_error() {
    let text = format!("{PHILLY}a,10,1,5,,,\nb,20,1,5,,,\nc,30,1,5,,,\n");
    let window = |from_s, to_s| ImportOptions {
        from_s: Some(from_s),
        to_s: Some(to_s),
        ..ImportOptions::default()
    };
    let (workload, report) = of_text(&text, &window(15.0, 30.0)).unwrap();
    assert_eq!(workload.jobs.len(), 1);
    assert_eq!(workload.jobs[0].submit.as_secs_f64(), 5.0);
    assert_eq!(report.account.rows_of("outside the window"), 2);
    let text = of_text(&text, &window(100.0, 200.0)).unwrap_err();
    assert!(
        text.contains("no job is left") && text.contains("3 rows read"),
        "{text}"
    );
    assert!(
        of_text("", &window(2.0, 1.0))
            .unwrap_err()
            .contains("import.to_s = 1")
    );
}

#[test]
fn bad_values_in_published_lists_are_refused_where_they_stand() {
    let refusal = |text: &str| of_text(text, &ImportOptions::default()).unwrap_err();
    let text = refusal(&format!("{PHILLY}a,0,1,5,LOST,,\n"));
    assert!(
        text.contains("line 2, column state: `LOST`") && text.contains("NOT_PASSED"),
        "{text}"
    );
    let text = refusal("job_id,submission_time,duration,num_gpu\na,0,-1,1\n");
    assert!(text.contains("line 2, column duration"), "{text}");
    let text = refusal("job_id,submit_s,gpu_num,service_s\na,0,0,5\n");
    assert!(text.contains("column gpu_num: `0`"), "{text}");
    let text = refusal("LM (batch size 20)\tx\t-n\t1\t100\t0.0\t1\nGPT-9\tx\t-n\t1\t100\t0.0\t1\n");
    assert!(text.contains("line 2, column job_type: `GPT-9`"), "{text}");
    let text = refusal("LM (batch size 20)\tx\t-n\t1\tmany\t0.0\t1\n");
    assert!(text.contains("column total_steps: `many`"), "{text}");
    let text = refusal("job_id,submission_time,duration,num_gpu\na,0,9,1\na,0,9,1\n");
    assert!(text.contains("line 2 has the same id"), "{text}");
}

#[test]
fn options_that_do_not_fit_the_list_are_refused() {
    let walls = ImportOptions {
        virtual_clusters: true,
        ..ImportOptions::default()
    };
    let text = of_text("job_id,submission_time,duration,num_gpu\na,0,9,1\n", &walls).unwrap_err();
    assert!(text.contains("virtual_clusters"), "{text}");
    let other = ImportOptions {
        cluster: Some(ClusterSpec::uniform(1, 4, 1)),
        ..ImportOptions::default()
    };
    let text = of_text("LM (batch size 20)\tx\t-n\t1\t100\t0.0\t1\n", &other).unwrap_err();
    assert!(text.contains("K80, P100 or V100"), "{text}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_an_importer_panic(
        kind in 0_usize..5,
        rows in proptest::collection::vec("[0-9a-zA-Z.,\t\"-]{0,40}", 0..6),
    ) {
        let head = [
            "job,submit_s,num_gpus,duration_s,state",
            "job_id,submit_s,gpu_num,service_s",
            "job_id,arrival_s,service_sec,gpu_count",
            "job_id,submission_time,duration,num_gpu",
            "LM (batch size 20)\tx\t-n\t1\t100\t0.0\t1",
        ][kind];
        let _ = of_text(&format!("{head}\n{}\n", rows.join("\n")), &ImportOptions::default());
    }
}
