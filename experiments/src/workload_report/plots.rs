//! The pictures of an inspection, by section of its tables.

use super::Inspection;
use super::arrivals::Arrivals;
use super::load::Load;
use super::simulated::{Causes, Delay, Simulated};
use super::sizes::{BUCKETS, Sizes};
use crate::evaluate::metric::show_seconds;
use crate::plot::axis::Axis;
use crate::plot::bars::{Bars, divided, grouped};
use crate::plot::distribution::{self, Curve};
use crate::plot::frame::{Frame, legend};
use crate::plot::series::averaged;
use crate::plot::series::thin;

/// Points of one series over time, at most.
const POINTS_MAX: usize = 600;

/// The plots of a section, in order; empty where there is nothing to see.
#[must_use]
pub fn plots(key: &str, inspection: &Inspection) -> String {
    let run = inspection.simulated.as_ref();
    let plots = match key {
        "gangs" => vec![gangs(&inspection.sizes)],
        "run-times" => vec![run_times(&inspection.sizes)],
        "arrivals" => arrivals(&inspection.arrivals),
        "load" => load(&inspection.load),
        "tenants" => vec![lorenz(&inspection.load)],
        "outcomes" => vec![outcomes(inspection)],
        "waits" => vec![run.and_then(waits)],
        "causes" => vec![run.and_then(|run| causes("gang", &run.delay_by_bucket, bucket_name))],
        "waiting-tenants" => vec![run.and_then(|run| causes("tenant", &run.delay_by_tenant, str::to_string))],
        "occupancy" => run.map(|run| occupancy(run, inspection)).unwrap_or_default(),
        _ => Vec::new(),
    };
    plots.into_iter().flatten().collect()
}

fn gangs(sizes: &Sizes) -> Option<String> {
    let of = |part: fn(&super::sizes::GangClass) -> Option<f64>| {
        sizes
            .gangs
            .iter()
            .map(|class| part(class).unwrap_or(f64::NAN))
            .collect()
    };
    let labels: Vec<String> = sizes.gangs.iter().map(super::sizes::GangClass::label).collect();
    let bars = [
        Bars {
            name: "of the jobs",
            values: of(|class| class.jobs),
        },
        Bars {
            name: "of the GPU-time",
            values: of(|class| class.gpu_time),
        },
    ];
    grouped("gang (GPUs)", "part", &labels, &bars, true)
}

/// Name of a bucket, or of all of them.
fn bucket_name(bucket: &str) -> String {
    match bucket {
        "1" => "1 GPU".to_string(),
        "all" => "all".to_string(),
        more => format!("{more} GPUs"),
    }
}

/// Names of the buckets in legends.
fn bucket_names() -> [String; 4] {
    BUCKETS.map(bucket_name)
}

fn run_times(sizes: &Sizes) -> Option<String> {
    distribution(
        "run time (log scale)",
        "jobs that run no longer",
        &sizes.run_times_s,
    )
}

fn waits(run: &Simulated) -> Option<String> {
    distribution(
        "time in the queue (log scale)",
        "jobs that wait no longer",
        &run.waits_s,
    )
}

fn distribution(x: &str, y: &str, values: &[Vec<f64>; 4]) -> Option<String> {
    let names = bucket_names();
    let curves = values
        .iter()
        .zip(&names)
        .enumerate()
        .map(|(series, (values, name))| Curve {
            series,
            name,
            points: distribution::points(values),
        });
    distribution::plot(
        x,
        y,
        &format!("{y}, one line for each gang bucket"),
        distribution::JOBS_LOW_S,
        curves.collect(),
    )
}

fn arrivals(arrivals: &Arrivals) -> Vec<Option<String>> {
    let first_s = arrivals.first_hour as f64 * 3600.0;
    let hours = arrivals.per_hour.iter().enumerate();
    let mut series: Vec<(f64, f64)> = hours
        .map(|(hour, count)| (hour as f64 * 3600.0, f64::from(*count)))
        .collect();
    let end_s = series.len() as f64 * 3600.0;
    series.push((end_s, 0.0));
    let series = averaged(&series, POINTS_MAX);
    let most = series.iter().map(|point| point.1).fold(0.0, f64::max);
    let title = if first_s > 0.0 {
        format!("time from hour {}", arrivals.first_hour)
    } else {
        "time".to_string()
    };
    let y = if arrivals.per_hour.len() > POINTS_MAX {
        "jobs per hour (averaged)"
    } else {
        "jobs per hour"
    };
    let over_time = (arrivals.per_hour.len() > 2).then(|| {
        let mut frame = Frame::new(Axis::time(&title, end_s), Axis::linear(y, 0.0, most), 220.0);
        frame.steps(0, "jobs per hour", &series);
        frame.render("Jobs per hour over time")
    });
    let profile = |x: &str, values: &[f64]| {
        let labels: Vec<String> = (0..values.len()).map(|phase| phase.to_string()).collect();
        let bars = [Bars {
            name: "arrivals",
            values: values.to_vec(),
        }];
        (!values.is_empty())
            .then(|| grouped(x, "arrivals / mean", &labels, &bars, false))
            .flatten()
    };
    vec![
        over_time,
        profile("hour of the day, from time zero", &arrivals.hour_of_day),
        profile("day of the week, from time zero", &arrivals.day_of_week),
    ]
}

fn load(load: &Load) -> Vec<Option<String>> {
    // Until the last change that still adds: behind it the cluster only empties.
    let series = &load.unconstrained.series;
    let last = series
        .windows(2)
        .rposition(|pair| pair[1].1 > pair[0].1)
        .map_or(series.len(), |last| last + 2);
    let series = &series[..last.min(series.len())];
    let held = (series.len() > 2).then(|| {
        let origin_s = series[0].0;
        let points: Vec<(f64, f64)> = series.iter().map(|point| (point.0 - origin_s, point.1)).collect();
        let points = averaged(&points, POINTS_MAX);
        let most = points
            .iter()
            .map(|point| point.1)
            .fold(load.capacity_gpus, f64::max);
        let end_s = points.last().map_or(0.0, |point| point.0);
        let mut frame = Frame::new(
            Axis::time("time from the first submission", end_s),
            Axis::linear("GPUs held if none waited", 0.0, most),
            220.0,
        );
        frame.steps(0, "GPUs held if every job began at once", &points);
        frame.level("capacity", load.capacity_gpus);
        frame.render("GPUs that would be held if every job began when it was submitted")
    });
    let labels: Vec<String> = load.per_day.iter().map(|day| day.0.to_string()).collect();
    let values: Vec<f64> = load.per_day.iter().map(|day| day.1).collect();
    let days = (2..=crate::plot::bars::GROUPS_MAX)
        .contains(&values.len())
        .then(|| {
            let bars = [Bars {
                name: "load",
                values: values.clone(),
            }];
            grouped(
                "day from time zero",
                "work submitted / capacity",
                &labels,
                &bars,
                false,
            )
        });
    let long = (values.len() > crate::plot::bars::GROUPS_MAX).then(|| {
        let first = load.per_day[0].0 as f64;
        let mut points: Vec<(f64, f64)> = load
            .per_day
            .iter()
            .map(|day| (day.0 as f64 - first, day.1))
            .collect();
        points.push((points.len() as f64, 0.0));
        let points = averaged(&points, POINTS_MAX);
        let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
        let end = points.last().map_or(1.0, |point| point.0);
        let mut frame = Frame::new(
            Axis::linear("days from the first", 0.0, end),
            Axis::linear("work submitted / capacity", 0.0, most),
            220.0,
        );
        frame.steps(0, "load of the day", &points);
        frame.render("Work submitted each day over the capacity of a day")
    });
    vec![held, days.flatten(), long]
}

fn lorenz(load: &Load) -> Option<String> {
    let curves = [
        ("tenants, GPU-time", &load.tenants_gpu_time.lorenz),
        ("tenants, jobs", &load.tenants_jobs.lorenz),
        ("users, GPU-time", &load.users_gpu_time.lorenz),
        ("users, jobs", &load.users_jobs.lorenz),
    ];
    let shown: Vec<(usize, &str)> = (0..curves.len())
        .filter(|series| curves[*series].1.len() > 2)
        .map(|series| (series, curves[series].0))
        .collect();
    if shown.is_empty() {
        return None;
    }
    let parts = || {
        (0..=4)
            .map(|i| (0.25 * f64::from(i), format!("{} %", 25 * i)))
            .collect()
    };
    let mut frame = Frame::new(
        Axis::fixed("of the holders, smallest first", 0.0, 1.0, parts()),
        Axis::fixed("of the sum", 0.0, 1.0, parts()),
        300.0,
    );
    let equal = format!(
        "<path class=\"baseline\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"><title>all the same</title></path>\n",
        frame.px(0.0),
        frame.py(0.0),
        frame.px(1.0),
        frame.py(1.0)
    );
    frame.add(&equal);
    for (series, name) in &shown {
        frame.line(*series, name, &thin(curves[*series].1, POINTS_MAX));
    }
    Some(frame.render("Lorenz curves of tenants and users") + &legend(&shown))
}

fn outcomes(inspection: &Inspection) -> Option<String> {
    let rows = &inspection.outcomes;
    let names = bucket_names();
    let mut bars: Vec<(String, String)> = names
        .iter()
        .map(|name| (name.clone(), "of the jobs".into()))
        .collect();
    bars.push(("all".into(), "of the jobs".into()));
    bars.push(("all".into(), "of the GPU-time".into()));
    let parts: Vec<Bars<'_>> = rows
        .iter()
        .map(|row| {
            let parts = row.by_bucket.iter().chain([&row.jobs, &row.gpu_time]);
            Bars {
                name: row.outcome,
                values: parts.map(|part| part.unwrap_or(0.0)).collect(),
            }
        })
        .collect();
    divided("How jobs ended, by gang bucket", &bars, &parts)
}

/// Waiting time by cause, one bar for each of `delays`.
fn causes(what: &str, delays: &[Delay], label: fn(&str) -> String) -> Option<String> {
    let rows: Vec<(String, String)> = delays
        .iter()
        .take(12)
        .map(|delay| {
            let mean = delay.wait_s.mean.map_or_else(|| "-".into(), show_seconds);
            (label(&delay.name), format!("mean {mean}"))
        })
        .collect();
    let of = |name, part: fn(&Causes) -> f64| Bars {
        name,
        values: delays
            .iter()
            .map(|delay| delay.causes.as_ref().map_or(0.0, part))
            .collect(),
    };
    let parts = [
        of("fair share", |causes| causes.fair_share),
        of("capacity", |causes| causes.capacity),
        of("fragmentation", |causes| causes.fragmentation),
        of("held back", |causes| causes.held_back),
    ];
    divided(&format!("Waiting time by cause and {what}"), &rows, &parts)
}

fn occupancy(run: &Simulated, inspection: &Inspection) -> Vec<Option<String>> {
    let num_gpus = inspection.cluster.num_gpus as f64;
    let held = run.held.first().filter(|_| run.held.len() > 1).map(|first| {
        let points: Vec<(f64, f64)> = run
            .held
            .iter()
            .map(|point| (point.0 - first.0, point.1))
            .collect();
        let points = averaged(&points, POINTS_MAX);
        let end_s = points.last().map_or(0.0, |point| point.0);
        let mut frame = Frame::new(
            Axis::time("time from the first start", end_s),
            Axis::linear("GPUs held", 0.0, num_gpus),
            220.0,
        );
        frame.steps(0, "GPUs held", &points);
        frame.level("capacity", num_gpus);
        frame.render("GPUs held over time")
    });
    let labels: Vec<String> = run
        .occupancy
        .iter()
        .map(|row| format!("{:.0}", 100.0 * row.from))
        .collect();
    let of = |part: fn(&super::simulated::OccupancyRow) -> Option<f64>| {
        run.occupancy
            .iter()
            .map(|row| part(row).unwrap_or(f64::NAN))
            .collect()
    };
    let bars = [
        Bars {
            name: "of the time",
            values: of(|row| row.time),
        },
        Bars {
            name: "of the nodes empty",
            values: of(|row| row.empty_nodes),
        },
    ];
    let empty = grouped(
        "GPUs held, % (from, 5 % wide; 100 = all)",
        "part",
        &labels,
        &bars,
        true,
    );
    vec![held, empty]
}
