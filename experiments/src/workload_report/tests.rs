//! Figures worked by hand, and inputs that would make a careless average say NaN.

use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_env::{SimConfig, simulate};
use pleach_scheduler::cluster_spec::{
    ClusterSpec, GpuTypeSpec, LocalityFactors, ModelClass, NodeGroup, Resources, TenantSpec,
};
use pleach_scheduler::{Time, heuristics};

use super::simulated::Simulated;
use super::{Inspection, page, tables};
use pleach_tests::assert_well_formed;

/// (submit s, tenant, GPUs, run time s, estimate s, user, outcome).
type Row = (f64, u16, u32, f64, Option<f64>, Option<&'static str>, Outcome);

/// Two nodes of 4 GPUs in one rack, two tenants with a quota of 4 GPUs each.
fn workload(rows: &[Row]) -> Workload {
    let mut cluster = ClusterSpec::uniform(2, 4, 2);
    cluster.tenants = ["a", "<b>"]
        .map(|name| TenantSpec {
            name: name.into(),
            quota_gpus: 4,
        })
        .to_vec();
    let jobs = rows.iter().enumerate().map(|(index, row)| JobSpec {
        id: index.to_string(),
        submit: Time::from_secs_f64(row.0),
        tenant: row.1,
        num_gpus: row.2,
        run_time_s: row.3,
        estimate_s: row.4,
        class: 0,
        user: row.5.map(str::to_string),
        outcome: row.6,
        resources: Resources::WHOLE_GPU,
        observed: None,
    });
    let jobs = jobs.collect();
    let class = ModelClass {
        name: "any".into(),
        speed: vec![1.0],
        locality: LocalityFactors::NONE,
        ..ModelClass::default()
    };
    Workload {
        name: "by <hand>".into(),
        cluster,
        classes: vec![class],
        jobs,
    }
}

/// Inspected and simulated under FIFO.
fn inspect(workload: &Workload) -> Inspection {
    let mut inspection = Inspection::of(workload);
    let config = SimConfig {
        record_waits: true,
        record_occupancy: true,
        record_utilisation: true,
        ..SimConfig::default()
    };
    let result = simulate(workload, &config, &mut heuristics::by_name("fifo").unwrap()).unwrap();
    inspection.simulated = Some(Simulated::of("fifo", workload, 0, result));
    inspection
}

const DONE: Outcome = Outcome::Completed;
const FAILED: Outcome = Outcome::Failed;

/// Five jobs in three hours.
///
/// | job | hour | GPUs | run time | GPU-time | starts | on node |
/// |---|---|---|---|---|---|---|
/// | 0 | 0 | 3 | 7200 | 21600 | 0 | 0 |
/// | 1 | 0 | 3 | 3600 | 10800 | 0 | 1 |
/// | 2 | 0 | 4 | 1800 | 7200 | 3600 | 1 |
/// | 3 | 1 | 1 | 600 | 600 | 3700 | 0 |
/// | 4 | 2 | 8 | 100 | 800 | 7300 | both |
fn by_hand() -> Workload {
    workload(&[
        (0.0, 0, 3, 7200.0, Some(14400.0), Some("u"), DONE),
        (0.0, 0, 3, 3600.0, None, Some("u"), FAILED),
        (100.0, 1, 4, 1800.0, Some(900.0), Some("v"), DONE),
        (3700.0, 0, 1, 600.0, None, None, DONE),
        (7300.0, 1, 8, 100.0, None, Some("v"), DONE),
    ])
}

#[test]
fn sizes_of_five_jobs() {
    let sizes = Inspection::of(&by_hand()).sizes;
    assert_eq!(
        (sizes.num_jobs, sizes.gpu_s, sizes.gpus_mean),
        (5, 41_000.0, Some(3.8))
    );
    let gangs: Vec<(u32, usize, Option<f64>)> = sizes
        .gangs
        .iter()
        .map(|class| (class.num_gpus_max, class.num_jobs, class.gpu_time_cumulative))
        .collect();
    assert_eq!(
        gangs,
        [
            (1, 1, Some(600.0 / 41_000.0)),
            (4, 3, Some(40_200.0 / 41_000.0)),
            (8, 1, Some(1.0))
        ]
    );
    // Bucket 2-4: 1800, 3600, 7200.
    assert_eq!(
        (sizes.run_time_s[1].at(50), sizes.run_time_s[1].mean),
        (Some(3600.0), Some(4200.0))
    );
    assert_eq!(sizes.run_time_s[3].at(50), None);
    // The longest 1 % and 10 % of five jobs are one job.
    assert_eq!(
        (sizes.longest[0].num_jobs, sizes.longest[0].gpu_time),
        (1, Some(21_600.0 / 41_000.0))
    );
    assert_eq!(sizes.longest[0].run_time, Some(7200.0 / 13_300.0));
    // Estimates over run times: 2 and 0.5.
    assert_eq!(
        (sizes.estimate_ratio.at(50), sizes.estimates_too_short),
        (Some(1.25), Some(0.5))
    );
}

#[test]
fn arrivals_of_five_jobs() {
    let arrivals = Inspection::of(&by_hand()).arrivals;
    assert_eq!(arrivals.per_hour, [3, 1, 1]);
    // Mean 5/3, variance ((4/3)^2 + 2 (2/3)^2) / 3 = 8/9: ratio 8/15.
    assert!((arrivals.variance_to_mean.unwrap() - 8.0 / 15.0).abs() < 1e-12);
    // Deviations 4/3, -2/3, -2/3: (-8/9 + 4/9) / (24/9).
    assert!((arrivals.lag_1.unwrap() + 1.0 / 6.0).abs() < 1e-12);
    // Gaps 0, 100, 3600, 3600.
    assert_eq!(
        (arrivals.gap_s.at(50), arrivals.gap_zero),
        (Some(1850.0), Some(0.25))
    );
    // Neighbours with known users: u u, u v; runs u u, v, v.
    assert_eq!(
        (arrivals.same_user, arrivals.user_run.max),
        (Some(0.5), Some(2.0))
    );
    assert!(
        arrivals.hour_of_day.is_empty(),
        "less than a day says nothing of days"
    );
}

#[test]
fn a_day_has_a_profile_and_a_week_a_weekly_one() {
    // One job an hour for a week, and one more in hour 5 of each day.
    let rows: Vec<Row> = (0..7 * 24)
        .flat_map(|hour| vec![hour; if hour % 24 == 5 { 2 } else { 1 }])
        .map(|hour| (3600.0 * f64::from(hour), 0, 1, 1.0, None, None, DONE))
        .collect();
    let arrivals = Inspection::of(&workload(&rows)).arrivals;
    // Mean 25/24 an hour.
    assert!((arrivals.hour_of_day[5] - 48.0 / 25.0).abs() < 1e-12);
    assert!((arrivals.hour_of_day[6] - 24.0 / 25.0).abs() < 1e-12);
    assert!(arrivals.day_of_week.iter().all(|day| (day - 1.0).abs() < 1e-12));
    assert_eq!(
        arrivals.per_day(),
        (0..7).map(|day| (day, 25)).collect::<Vec<_>>()
    );
}

#[test]
fn load_and_outcomes_of_five_jobs() {
    let inspection = Inspection::of(&by_hand());
    let load = &inspection.load;
    assert_eq!(load.offered, Some(41_000.0 / (8.0 * 7300.0)));
    assert_eq!(load.per_day, [(0, 41_000.0 / (8.0 * 86_400.0))]);
    // Tenant a: 33,000 of 41,000 on 4 GPUs for 7300 s, one known user.
    let a = &load.tenants[0];
    assert_eq!((a.name.as_str(), a.num_jobs, a.num_users), ("a", 3, 1));
    assert_eq!(
        (a.gpu_time, a.load_on_quota),
        (Some(33_000.0 / 41_000.0), Some(33_000.0 / (4.0 * 7300.0)))
    );
    // u has 2 jobs, v 2.
    assert_eq!((load.users_jobs.count, load.users_jobs.gini), (2, Some(0.0)));
    // If none waited: 6, then 10 from 100 to 1900, 6 to 3600, 3 to 3700, 4 to 4300, 3 to 7200, 0 to 7300, then 8.
    assert_eq!(load.unconstrained.max_gpus, Some(10.0));
    let area = 600.0 + 10.0 * 1800.0 + 6.0 * 1700.0 + 300.0 + 4.0 * 600.0 + 3.0 * 2900.0;
    assert_eq!(load.unconstrained.mean_gpus, Some(area / 7300.0));
    assert_eq!(load.unconstrained.above_capacity, Some(1800.0 / 7300.0));
    let failed = &inspection.outcomes[1];
    assert_eq!(
        (failed.outcome, failed.jobs, failed.gpu_time),
        ("failed", Some(0.2), Some(10_800.0 / 41_000.0))
    );
    assert_eq!(failed.by_bucket, [Some(0.0), Some(1.0 / 3.0), Some(0.0), None]);
}

#[test]
fn the_offered_load_stands_for_each_gpu_type_where_there_are_several() {
    let rows = |table: &str| {
        let mut site = by_hand();
        if table == "two" {
            site.cluster.gpu_types.push(GpuTypeSpec {
                name: "fast".into(),
                ..site.cluster.gpu_types[0].clone()
            });
            site.cluster.node_groups.push(NodeGroup {
                gpu_type: "fast".into(),
                ..site.cluster.node_groups[0].clone()
            });
            site.classes[0].speed = vec![1.0, 0.0];
        }
        let all = tables::sections(&Inspection::of(&site));
        let rows = all.into_iter().flat_map(|section| section.table.rows);
        let loads = rows.filter(|row| row[0].starts_with("offered load"));
        loads.map(|row| row.join(": ")).collect::<Vec<_>>()
    };
    assert_eq!(rows("one"), ["offered load, first to last submission: 0.70"]);
    let of_two = [
        "offered load, first to last submission: 0.70",
        "offered load of GPU (8 GPUs): 0.70",
        "offered load of fast (8 GPUs): 0.00",
    ];
    assert_eq!(rows("two"), of_two);
}

#[test]
fn the_simulated_part_of_five_jobs() {
    let run = inspect(&by_hand()).simulated.unwrap();
    // Only job 2 waits: its tenant has its quota left and 2 GPUs are free until 3600.
    let middle = &run.delay_by_bucket[1];
    assert_eq!(
        (middle.waited, middle.wait_s.max),
        (Some(1.0 / 3.0), Some(3500.0))
    );
    assert_eq!(middle.causes.unwrap().capacity, 1.0);
    assert_eq!(middle.causes.unwrap().philly_fragmentation, 1.0);
    assert_eq!(middle.num_jobs_by_cause, [0, 1, 0, 0]);
    assert_eq!(run.delay_by_tenant[0].name, "<b>");
    assert_eq!(run.delay_by_bucket[0].causes, None);
    // 0-3600: 6 of 8. 3600-3700 and 4300-5400: 7. 3700-4300: 8. 5400-7200: 3, node 1 empty. 7200-7300: none. Then 8.
    let rows: Vec<(f64, f64, f64)> = run
        .occupancy
        .iter()
        .map(|row| (row.from, row.time.unwrap() * 7400.0, row.empty_nodes.unwrap()))
        .collect();
    let expected = [
        (0.0, 100.0, 1.0),
        (0.35, 1800.0, 0.5),
        (0.75, 3600.0, 0.0),
        (0.85, 1200.0, 0.0),
        (1.0, 700.0, 0.0),
    ];
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.iter().zip(expected) {
        assert!(
            (row.0 - expected.0).abs() < 1e-9 && (row.1 - expected.1).abs() < 1e-6,
            "{rows:?}"
        );
        assert_eq!(row.2, expected.2);
    }
    assert_eq!(
        (run.spread.last().unwrap().num_nodes_max, run.rate_loss),
        (2, Some(0.0))
    );
}

/// What no table, page or JSON may say.
fn assert_no_nan(inspection: &Inspection) {
    let html = page::report(inspection)
        .made_by("pleach workload describe", "note <1>")
        .html();
    assert_well_formed(&html);
    let text: String = tables::sections(inspection)
        .iter()
        .map(|section| section.table.to_terminal())
        .collect();
    for words in [&html, &text] {
        for bad in ["NaN", "inf ", "inf\"", "-0.0", "null"] {
            assert!(!words.contains(bad), "{bad} in {words}");
        }
    }
    let json = serde_json::to_value(inspection).unwrap();
    assert_eq!(json["schema"], 1);
}

#[test]
fn hostile_workloads_give_dashes_and_not_nan() {
    let one = (5.0, 1, 8, 1e-6, Some(1e9), Some("<u>"), DONE);
    let same: Vec<Row> = vec![(7.0, 0, 1, 10.0, None, None, Outcome::Unknown); 50];
    let far = vec![
        (0.0, 0, 1, 1.0, None, None, DONE),
        (1.9e9, 0, 1, 1e9, None, None, DONE),
    ];
    for rows in [vec![one], same, far, by_hand_rows()] {
        assert_no_nan(&inspect(&workload(&rows)));
    }
    assert_no_nan(&Inspection::of(&workload(&[])));
}

fn by_hand_rows() -> Vec<Row> {
    vec![(0.0, 0, 3, 7200.0, Some(14400.0), Some("u"), DONE); 2]
}

#[test]
fn the_page_stays_small_and_shows_every_section() {
    let rows: Vec<Row> = (0..20_000)
        .map(|index| {
            let gang = [1, 1, 1, 2, 4, 8][index as usize % 6];
            let run_s = f64::from(index % 97 + 1) * 60.0;
            (
                f64::from(index) * 700.0,
                (index % 2) as u16,
                gang,
                run_s,
                Some(3600.0),
                Some("u"),
                DONE,
            )
        })
        .collect();
    let inspection = inspect(&workload(&rows));
    let html = page::report(&inspection).html();
    assert_no_nan(&inspection);
    assert!(html.len() < 600_000, "{}", html.len());
    for heading in [
        "Cluster",
        "Gangs",
        "Run times",
        "Arrivals",
        "Load",
        "Tenants",
        "Causes of waiting",
        "Occupancy",
    ] {
        assert!(html.contains(heading), "{heading}");
    }
    assert!(html.contains("&lt;b&gt;") && !html.contains("<b>"));
}
