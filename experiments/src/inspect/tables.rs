//! An inspection as tables, section by section; the terminal and the page show the same.

use super::Inspection;
use super::arrivals::Arrivals;
use super::cluster::ClusterFigures;
use super::load::{Load, TenantLoad};
use super::outcomes::OutcomeRow;
use super::simulated::{Delay, Simulated};
use super::sizes::{BUCKETS, Sizes};
use super::spread::{Concentration, PERCENTS, Summary, share};
use crate::metric::{show_plain, show_seconds};
use crate::table::Table;

/// Rows of a table of tenants, at most; the JSON has all.
const TENANTS_MAX: usize = 20;
/// The section of sparklines, of which a page has better pictures.
pub const PROFILES: &str = "profiles";
/// Weights of a sparkline, lightest first.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

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

/// `4.5 %` without the sign: the header has it.
fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "-".into(), |part| format!("{:.1}", 100.0 * part))
}

fn seconds(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), show_seconds)
}

fn plain(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), show_plain)
}

/// `1,234,567`.
fn count(value: usize) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn gpu_hours(gpu_s: f64) -> String {
    if gpu_s < 3.6e4 {
        format!("{} GPU·h", show_plain(gpu_s / 3600.0))
    } else if gpu_s < 3.6e10 {
        format!("{} GPU·h", count((gpu_s / 3600.0).round() as usize))
    } else {
        format!("{:.3e} GPU·h", gpu_s / 3600.0)
    }
}

fn header(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_string()).collect()
}

fn key_values(rows: Vec<(&str, String)>) -> Table {
    Table {
        header: header(&["figure", "value"]),
        rows: rows
            .into_iter()
            .map(|(key, value)| vec![key.to_string(), value])
            .collect(),
        notes: Vec::new(),
    }
}

/// One character for each value; the tallest stands for the largest.
fn sparkline(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let bar = |value: f64| {
        let part = if most > 0.0 { value / most } else { 0.0 };
        BARS[((part * 8.0).ceil() as usize).clamp(1, 8) - 1]
    };
    values.iter().map(|value| bar(*value)).collect()
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

fn quantile_header(first: &str, before: &[&str], after: &[&str]) -> Vec<String> {
    let mut words = header(&[first]);
    words.extend(header(before));
    words.extend(PERCENTS.iter().map(|percent| format!("p{percent}")));
    words.extend(header(after));
    words
}

fn quantile_cells(summary: &Summary) -> impl Iterator<Item = String> + '_ {
    summary.quantiles.iter().map(|value| seconds(*value))
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
    let mut rows = vec![
        ("offered load, first to last submission", plain(load.offered)),
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
    ];
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

/// A note on rows that were left out.
fn and_more(num_all: usize, what: &str) -> Vec<String> {
    let more = num_all.saturating_sub(TENANTS_MAX);
    (more > 0)
        .then(|| format!("and {} more {what}, in the JSON", count(more)))
        .into_iter()
        .collect()
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

fn waits(run: &Simulated) -> Table {
    let rows = run
        .delay_by_bucket
        .iter()
        .filter(|delay| delay.wait_s.count > 0)
        .map(|delay| {
            let mut row = vec![
                delay.name.clone(),
                count(delay.wait_s.count),
                percent(delay.waited),
            ];
            row.extend(quantile_cells(&delay.wait_s));
            row.extend([seconds(delay.wait_s.max), seconds(delay.wait_s.mean)]);
            row
        });
    let mut notes = vec![format!(
        "makespan {}, utilisation {} %, avg JCT {}, slowdown {}, {} preemptions",
        show_seconds(run.makespan_s),
        percent(Some(run.utilisation)),
        show_seconds(run.avg_jct_s),
        show_plain(run.avg_slowdown),
        run.preemptions
    )];
    if run.num_left_out > 0 {
        notes.push(format!(
            "simulated: the first {} jobs; {} were left out (--sim-jobs)",
            count(run.num_jobs),
            count(run.num_left_out)
        ));
    }
    Table {
        header: quantile_header("gang (GPUs)", &["jobs", "waited %"], &["max", "mean"]),
        rows: rows.collect(),
        notes,
    }
}

/// Parts of the waiting time by cause, as cells.
fn cause_cells(delay: &Delay) -> Vec<String> {
    let of = |part: fn(&super::simulated::Causes) -> f64| percent(delay.causes.as_ref().map(part));
    vec![
        of(|causes| causes.fair_share),
        of(|causes| causes.capacity),
        of(|causes| causes.fragmentation),
        of(|causes| causes.held_back),
    ]
}

fn causes(run: &Simulated) -> Table {
    let rows = run
        .delay_by_bucket
        .iter()
        .filter(|delay| delay.wait_s.count > 0)
        .map(|delay| {
            let mut row = vec![delay.name.clone()];
            row.extend(cause_cells(delay));
            row.push(percent(delay.causes.map(|causes| causes.philly_fragmentation)));
            row.extend(delay.num_jobs_by_cause.map(count));
            row
        });
    let mut words = header(&[
        "gang (GPUs)",
        "fair share %",
        "capacity %",
        "fragment. %",
        "held back %",
        "Philly's fragm. %",
    ]);
    words.extend(header(&[
        "jobs fair sh.",
        "jobs cap.",
        "jobs fragm.",
        "jobs held",
    ]));
    Table {
        header: words,
        rows: rows.collect(),
        notes: vec![
            "% of the waiting time while: tenant would exceed its quota; too few GPUs free; free but not tightly; free and kept by \
             the policy"
                .into(),
            "Philly's fragmentation: all but fair share (ATC'19, table 2); jobs: by the cause that kept them longest".into(),
        ],
    }
}

fn waiting_tenants(run: &Simulated) -> Table {
    let row = |delay: &Delay| {
        let mut row = vec![
            delay.name.clone(),
            count(delay.wait_s.count),
            percent(delay.waited),
            seconds(delay.wait_s.mean),
            seconds(delay.wait_s.at(50)),
            seconds(delay.wait_s.at(90)),
            seconds(delay.wait_s.at(99)),
        ];
        row.extend(cause_cells(delay));
        row
    };
    Table {
        header: header(&[
            "tenant",
            "jobs",
            "waited %",
            "mean",
            "p50",
            "p90",
            "p99",
            "fair share %",
            "capacity %",
            "fragment. %",
            "held back %",
        ]),
        rows: run.delay_by_tenant.iter().take(TENANTS_MAX).map(row).collect(),
        notes: and_more(run.delay_by_tenant.len(), "tenants"),
    }
}

/// `3-4`, or `1`: what a class up to a power of two holds.
fn class_label(most: u32) -> String {
    match most / 2 + 1 {
        least if least == most => most.to_string(),
        least => format!("{least}-{most}"),
    }
}

fn spread(run: &Simulated) -> Table {
    let rows = run.spread.iter().map(|row| {
        vec![
            class_label(row.num_gpus_max),
            class_label(row.num_nodes_max),
            count(row.num_runs as usize),
            percent(row.gpu_time),
            percent(row.relative_rate),
        ]
    });
    Table {
        header: header(&[
            "gang (GPUs)",
            "nodes",
            "runs",
            "GPU-time of the class %",
            "speed % of full",
        ]),
        rows: rows.collect(),
        notes: vec![format!(
            "{} % of the held GPU-time is lost to less than full speed: locality, neighbours, restarts",
            percent(run.rate_loss)
        )],
    }
}

/// In steps of a tenth; the figures are in steps of a twentieth.
fn occupancy(run: &Simulated) -> Table {
    let mut steps: Vec<(u32, f64, f64)> = Vec::new();
    for row in &run.occupancy {
        let tenth = (10.0 * row.from + 1e-9) as u32;
        let time = row.time.unwrap_or(0.0);
        let empty = time * row.empty_nodes.unwrap_or(0.0);
        match steps.last_mut() {
            Some(last) if last.0 == tenth => (last.1, last.2) = (last.1 + time, last.2 + empty),
            _ => steps.push((tenth, time, empty)),
        }
    }
    let rows = steps.into_iter().map(|(tenth, time, empty)| {
        vec![
            match tenth {
                10 => "all".to_string(),
                tenth => format!("{}-{}", 10 * tenth, 10 * tenth + 10),
            },
            percent(Some(time)),
            percent(share(empty, time)),
        ]
    });
    Table {
        header: header(&["GPUs held %", "of the time %", "empty nodes %"]),
        rows: rows.collect(),
        notes: vec!["empty nodes: nodes without any job, mean over that time".into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_commas_and_sparklines_one_bar_a_value() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(sparkline(&[0.0, 1.0, 8.0]), "▁▁█");
        assert_eq!(sparkline(&[0.0, 0.0]), "▁▁");
        assert_eq!(
            (gpu_hours(72.0), gpu_hours(7.2e6)),
            ("0.02 GPU·h".into(), "2,000 GPU·h".into())
        );
    }
}
