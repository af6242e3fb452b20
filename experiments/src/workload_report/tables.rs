//! An inspection as tables, section by section; the terminal and the page show the same.

mod cells;
mod run;

use super::Inspection;
use super::arrivals::Arrivals;
use super::cluster::ClusterFigures;
use super::load::{Load, TenantLoad, TypeLoad};
use super::outcomes::OutcomeRow;
use super::sizes::{BUCKETS, Sizes};
use super::spread::{Concentration, Summary};
use crate::evaluate::metric::show_plain;
use crate::evaluate::table::Table;
use cells::{
    TENANTS_MAX, and_more, count, gpu_hours, header, key_values, percent, plain, quantile_cells,
    quantile_header, seconds, sparkline,
};
use run::{causes, occupancy, spread, waiting_tenants, waits};

/// The section of sparklines, of which a page has better pictures.
pub(crate) const PROFILES: &str = "profiles";

/// Tables under one heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Which: `cluster`, `gangs`, `run-times`, `arrivals`, `profiles`, `load`, `tenants`, `outcomes`, `waits`, `causes`,
    /// `waiting-tenants`, `spread`, `occupancy`.
    pub key: &'static str,
    /// What people read.
    pub heading: String,
    /// The figures.
    pub table: Table,
}

/// All sections of an inspection that have something to say.
#[must_use]
pub fn sections(inspection: &Inspection) -> Vec<Section> {
    let section = |key, heading: &str, table| Section {
        key,
        heading: heading.to_string(),
        table,
    };
    let mut all = vec![
        section("cluster", "Cluster", cluster(&inspection.cluster)),
        section("gangs", "Gangs", gangs(&inspection.sizes)),
        section("run-times", "Run times", run_times(&inspection.sizes)),
        section("arrivals", "Arrivals", arrivals(&inspection.arrivals)),
        section(PROFILES, "Days and weeks", profiles(&inspection.arrivals)),
        section("load", "Load and concentration", load(&inspection.load)),
        section("tenants", "Tenants", tenants(&inspection.load)),
        section(
            "outcomes",
            "How jobs ended in the source",
            outcomes(&inspection.outcomes),
        ),
    ];
    if let Some(run) = &inspection.simulated {
        let of = |what: &str| format!("{what} under {}", run.policy);
        all.push(section("waits", &of("Waiting"), waits(run)));
        all.push(section("causes", &of("Causes of waiting"), causes(run)));
        all.push(section(
            "waiting-tenants",
            &of("Waiting by tenant"),
            waiting_tenants(run),
        ));
        all.push(section("spread", &of("Spread of gangs"), spread(run)));
        all.push(section(
            "occupancy",
            &of("Occupancy and empty nodes"),
            occupancy(run),
        ));
    }
    all.retain(|section| !section.table.rows.is_empty());
    all
}

fn cluster(figures: &ClusterFigures) -> Table {
    let rows = figures.nodes.iter().map(|row| {
        let mig = row.mig.as_ref().map(|mig| format!(" (MIG {mig})"));
        vec![
            format!("{}{}", row.gpu_type, mig.unwrap_or_default()),
            show_plain(row.gpu_memory_gib),
            count(row.num_nodes as usize),
            row.gpus_per_node.to_string(),
            count(row.num_gpus as usize),
            count(row.num_racks as usize),
            plain(row.cpu_cores),
            plain(row.memory_gib),
            plain(row.storage_mb_s),
        ]
    });
    let borrowing = if figures.borrowing {
        "may borrow what others leave idle"
    } else {
        "keep to their quotas"
    };
    Table {
        header: header(&[
            "GPU type",
            "GPU GiB",
            "nodes",
            "GPUs/node",
            "GPUs",
            "racks",
            "cores/node",
            "GiB/node",
            "storage MB/s",
        ]),
        rows: rows.collect(),
        notes: vec![format!(
            "{} nodes, {} GPUs, {} racks; {} tenants with quotas of {} GPUs {borrowing}; - is not modelled",
            count(figures.num_nodes as usize),
            count(figures.num_gpus as usize),
            count(figures.num_racks as usize),
            count(figures.num_tenants),
            count(figures.quota_gpus as usize),
        )],
    }
}

fn gangs(sizes: &Sizes) -> Table {
    let rows = sizes.gangs.iter().map(|class| {
        vec![
            class.label(),
            count(class.num_jobs),
            percent(class.jobs),
            percent(class.jobs_cumulative),
            percent(class.gpu_time),
            percent(class.gpu_time_cumulative),
        ]
    });
    let mut notes = vec![format!(
        "{} jobs, {}, {} GPUs a job on average",
        count(sizes.num_jobs),
        gpu_hours(sizes.gpu_s),
        plain(sizes.gpus_mean)
    )];
    if sizes.num_fractional > 0 {
        notes.push(format!(
            "{} jobs ask for a part of a GPU",
            count(sizes.num_fractional)
        ));
    }
    let asked = [
        ("CPU cores", "", &sizes.cores_per_gpu),
        ("host memory", " GiB", &sizes.memory_gib_per_gpu),
    ];
    for (what, unit, summary) in asked.iter().filter(|asked| asked.2.count > 0) {
        notes.push(format!(
            "{} jobs ask for {what}, for each GPU {}{unit} on average, {}{unit} at the 90 % quantile",
            count(summary.count),
            plain(summary.mean),
            plain(summary.at(90))
        ));
    }
    Table {
        header: header(&[
            "gang (GPUs)",
            "jobs",
            "jobs %",
            "so far %",
            "GPU-time %",
            "so far %",
        ]),
        rows: rows.collect(),
        notes,
    }
}

fn run_times(sizes: &Sizes) -> Table {
    let names = BUCKETS.iter().copied().chain(["all"]);
    let rows = names
        .zip(&sizes.run_time_s)
        .filter(|(_, summary)| summary.count > 0);
    let rows = rows.map(|(name, summary)| {
        let mut row = vec![name.to_string(), count(summary.count)];
        row.extend(quantile_cells(summary));
        row.extend([seconds(summary.max), seconds(summary.mean)]);
        row
    });
    let mut notes: Vec<String> = sizes
        .longest
        .iter()
        .filter(|longest| longest.num_jobs > 0)
        .map(|longest| {
            format!(
                "the longest {:.0} % of the jobs ({}) hold {} % of the GPU-time and {} % of the run time",
                100.0 * longest.of_jobs,
                count(longest.num_jobs),
                percent(longest.gpu_time),
                percent(longest.run_time)
            )
        })
        .collect();
    let ratio = &sizes.estimate_ratio;
    if ratio.count > 0 {
        notes.push(format!(
            "estimate / run time over {} jobs: p10 {}, p50 {}, p90 {}; {} % are too short",
            count(ratio.count),
            plain(ratio.at(10)),
            plain(ratio.at(50)),
            plain(ratio.at(90)),
            percent(sizes.estimates_too_short)
        ));
    } else if sizes.num_jobs > 0 {
        notes.push("the source has no estimates".into());
    }
    Table {
        header: quantile_header("gang (GPUs)", &["jobs"], &["max", "mean"]),
        rows: rows.collect(),
        notes,
    }
}

fn arrivals(arrivals: &Arrivals) -> Table {
    if arrivals.per_hour.is_empty() {
        return Table::default();
    }
    let (hourly, gap_s) = (&arrivals.hourly, &arrivals.gap_s);
    let rows = vec![
        ("from the first to the last", seconds(Some(arrivals.span_s))),
        (
            "jobs per hour: mean, p50, p95, max",
            [hourly.mean, hourly.at(50), hourly.at(95), hourly.max]
                .map(plain)
                .join(", "),
        ),
        (
            "variance / mean of hourly counts",
            plain(arrivals.variance_to_mean),
        ),
        ("correlation with the next hour", plain(arrivals.lag_1)),
        (
            "time between: p10, p50, p90, p99",
            [10, 50, 90, 99].map(|at| seconds(gap_s.at(at))).join(", "),
        ),
        ("time between: coefficient of variation", plain(gap_s.variation)),
        ("time between: zero, %", percent(arrivals.gap_zero)),
        ("after a job of the same user, %", percent(arrivals.same_user)),
        (
            "jobs in a row of one user: mean, p95, max",
            [
                arrivals.user_run.mean,
                arrivals.user_run.at(95),
                arrivals.user_run.max,
            ]
            .map(plain)
            .join(", "),
        ),
    ];
    key_values(rows)
}

/// Shapes as sparklines.
fn profiles(arrivals: &Arrivals) -> Table {
    let days: Vec<f64> = arrivals.per_day().iter().map(|day| f64::from(day.1)).collect();
    let mut rows = Vec::new();
    if !arrivals.hour_of_day.is_empty() {
        rows.push(("hours of the day", sparkline(&arrivals.hour_of_day)));
    }
    if !arrivals.day_of_week.is_empty() {
        rows.push(("days of the week", sparkline(&arrivals.day_of_week)));
    }
    if (3..=45).contains(&days.len()) {
        rows.push(("days", sparkline(&days)));
    }
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(what, line)| vec![line, what.to_string()])
        .collect();
    Table {
        header: header(&["arrivals from time zero", "by"]),
        rows,
        notes: Vec::new(),
    }
}

fn load(load: &Load) -> Table {
    let all_s: Vec<f64> = load.per_day.iter().map(|day| day.1).collect();
    let days = Summary::of(&super::spread::sorted(all_s.iter().copied()));
    let unconstrained = &load.unconstrained;
    let holds = |of: &Concentration| {
        format!(
            "{}, {}, {}, {}",
            plain(of.gini),
            percent(of.top_1),
            percent(of.top_5),
            percent(of.top_tenth)
        )
    };
    if load.tenants.iter().all(|tenant| tenant.num_jobs == 0) {
        return Table::default();
    }
    let types: Vec<(String, String)> = load.by_type.iter().map(of_type).collect();
    let mut rows = vec![("offered load, first to last submission", plain(load.offered))];
    rows.extend(types.iter().map(|(name, of)| (name.as_str(), of.clone())));
    rows.extend([
        (
            "submitted by day: min, p50, p90, max",
            [days.min, days.at(50), days.at(90), days.max]
                .map(plain)
                .join(", "),
        ),
        (
            "GPUs held if none waited: mean, max",
            [unconstrained.mean_gpus, unconstrained.max_gpus]
                .map(plain)
                .join(", "),
        ),
        (
            "GPUs held if none waited: too many, % of the time",
            percent(unconstrained.above_capacity),
        ),
    ]);
    let mut notes =
        vec!["load 1 = all GPUs busy all the time; Gini 0 = all the same, 1 = one has all".to_string()];
    rows.push((
        "tenants, GPU-time: Gini, top 1, 5, tenth %",
        holds(&load.tenants_gpu_time),
    ));
    rows.push(("tenants, jobs", holds(&load.tenants_jobs)));
    if load.users_jobs.count > 0 {
        rows.push(("users, GPU-time", holds(&load.users_gpu_time)));
        rows.push(("users, jobs", holds(&load.users_jobs)));
        notes.push(format!(
            "{} users of {} jobs",
            count(load.users_jobs.count),
            count(load.num_jobs_with_user)
        ));
    }
    Table {
        notes,
        ..key_values(rows)
    }
}

fn of_type(kind: &TypeLoad) -> (String, String) {
    let name = format!("offered load of {} ({} GPUs)", kind.name, kind.num_gpus);
    (name, plain(kind.offered))
}

fn tenants(load: &Load) -> Table {
    let row = |tenant: &TenantLoad| {
        let users = Some(tenant.num_users).filter(|users| *users > 0);
        vec![
            tenant.name.clone(),
            count(tenant.quota_gpus as usize),
            users.map_or_else(|| "-".into(), count),
            count(tenant.num_jobs),
            percent(tenant.jobs),
            percent(tenant.gpu_time),
            plain(tenant.load_on_quota),
        ]
    };
    Table {
        header: header(&[
            "tenant",
            "quota GPUs",
            "users",
            "jobs",
            "jobs %",
            "GPU-time %",
            "load on quota",
        ]),
        rows: load.tenants.iter().take(TENANTS_MAX).map(row).collect(),
        notes: and_more(load.tenants.len(), "tenants"),
    }
}

fn outcomes(rows: &[OutcomeRow]) -> Table {
    let row = |row: &OutcomeRow| {
        let mut cells = vec![
            row.outcome.to_string(),
            count(row.num_jobs),
            percent(row.jobs),
            percent(row.gpu_time),
            seconds(row.run_time_s_p50),
        ];
        cells.extend(row.by_bucket.iter().map(|part| percent(*part)));
        cells
    };
    let mut words = header(&["outcome", "jobs", "jobs %", "GPU-time %", "run p50"]);
    words.extend(BUCKETS.iter().map(|bucket| format!("{bucket} GPU %")));
    Table {
        header: words,
        rows: rows.iter().map(row).collect(),
        notes: Vec::new(),
    }
}
