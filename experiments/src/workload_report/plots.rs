//! The pictures of an inspection, by section of its tables.

use super::Inspection;
use super::arrivals::Arrivals;
use super::load::Load;
use super::simulated::{Causes, Delay, Simulated};
use super::sizes::{BUCKETS, GangClass, Sizes};
use crate::evaluate::metric::show_seconds;
use crate::plot::{Axis, Mark, Plot, distribution_points};

/// Bars in one plot, at most; more values over time are steps.
const BARS_MAX: usize = 60;
/// Tenants whose causes are drawn.
const TENANTS_MAX: usize = 12;
/// Shortest run time or wait that has a place of its own, s.
const LOW_S: f64 = 1.0;

/// The plots of a section, in order; empty where there is nothing to see.
#[must_use]
pub fn plots(key: &str, inspection: &Inspection) -> Vec<Plot> {
    let run = inspection.simulated.as_ref();
    let plots = match key {
        "gangs" => vec![gangs(&inspection.sizes)],
        "run-times" => vec![distribution(
            (
                "Run times by gang",
                "run time (log scale)",
                "jobs that run no longer",
            ),
            &inspection.sizes.run_times_s,
        )],
        "arrivals" => arrivals(&inspection.arrivals),
        "load" => load(&inspection.load),
        "tenants" => vec![lorenz(&inspection.load)],
        "outcomes" => vec![outcomes(inspection)],
        "waits" => vec![run.and_then(|run| {
            distribution(
                (
                    "Waits by gang",
                    "time in the queue (log scale)",
                    "jobs that wait no longer",
                ),
                &run.waits_s,
            )
        })],
        "causes" => vec![run.and_then(|run| causes("gang", &run.delay_by_bucket, bucket_name))],
        "waiting-tenants" => vec![run.and_then(|run| causes("tenant", &run.delay_by_tenant, str::to_string))],
        "occupancy" => run.map(|run| occupancy(run, inspection)).unwrap_or_default(),
        _ => Vec::new(),
    };
    plots.into_iter().flatten().collect()
}

fn gangs(sizes: &Sizes) -> Option<Plot> {
    let of = |part: fn(&GangClass) -> Option<f64>| {
        let parts = sizes.gangs.iter().map(part);
        parts.map(|part| part.unwrap_or(f64::NAN)).collect()
    };
    let bars = [
        ("of the jobs", of(|class| class.jobs)),
        ("of the GPU-time", of(|class| class.gpu_time)),
    ];
    let labels = sizes.gangs.iter().map(GangClass::label).collect();
    Plot::bars(
        "Jobs and GPU-time by gang",
        "gang (GPUs)",
        Axis::of("part").percent(),
        labels,
        &bars,
    )
}

/// Name of a bucket, or of all of them.
fn bucket_name(bucket: &str) -> String {
    match bucket {
        "1" => "1 GPU".to_string(),
        "all" => "all".to_string(),
        more => format!("{more} GPUs"),
    }
}

fn distribution(words: (&str, &str, &str), values: &[Vec<f64>; 4]) -> Option<Plot> {
    let names = BUCKETS.map(bucket_name);
    let curves = values.iter().zip(&names);
    Plot::distribution(
        words,
        LOW_S,
        curves.map(|(values, name)| (name.as_str(), distribution_points(values))),
    )
}

/// Values of equal parts of time, as bars where there are few and as steps where there are many; none for one.
fn over_time((title, x, y): (&str, Axis, &str), first: f64, each: f64, values: &[f64]) -> Option<Plot> {
    let points = values.iter().enumerate();
    let end = first + values.len() as f64 * each;
    let points = points.map(|(place, value)| (first + place as f64 * each, *value));
    let y = Axis::of(y).from_zero();
    let mark = if values.len() <= BARS_MAX {
        let bars = points.flat_map(|(at, value)| [(at + 0.1 * each, 0.0), (at + 0.9 * each, value)]);
        Mark::boxes(title, bars)
    } else {
        Mark::area(title, points.chain([(end, 0.0)]))
    };
    (values.len() > 1).then(|| Plot::new(title, x.within(first, end), y).with([mark]))
}

fn arrivals(arrivals: &Arrivals) -> Vec<Option<Plot>> {
    let counts: Vec<f64> = arrivals.per_hour.iter().map(|count| f64::from(*count)).collect();
    let title = match arrivals.first_hour {
        0 => "time".to_string(),
        hour => format!("time from hour {hour}"),
    };
    let profile = |title: &str, x: &str, values: &[f64]| {
        let labels: Vec<String> = (0..values.len()).map(|phase| phase.to_string()).collect();
        Plot::bars(
            title,
            x,
            Axis::of("arrivals / mean"),
            labels,
            &[("arrivals", values.to_vec())],
        )
    };
    let words = ("Jobs per hour", Axis::of(title).seconds(), "jobs per hour");
    vec![
        over_time(words, 0.0, 3600.0, &counts),
        profile(
            "Arrivals by the hour of the day",
            "hour of the day, from time zero",
            &arrivals.hour_of_day,
        ),
        profile(
            "Arrivals by the day of the week",
            "day of the week, from time zero",
            &arrivals.day_of_week,
        ),
    ]
}

/// GPUs over time with the capacity; from the first point on.
fn held(title: &str, x: &str, points: &[(f64, f64)], capacity: f64) -> Option<Plot> {
    let first = points.first().filter(|_| points.len() > 1)?.0;
    let points = points.iter().map(|point| (point.0 - first, point.1));
    let y = Axis::of("GPUs").from_zero();
    let plot = Plot::new(title, Axis::of(x).seconds(), y);
    Some(plot.with([Mark::area("GPUs held", points), Mark::level("capacity", capacity)]))
}

fn load(load: &Load) -> Vec<Option<Plot>> {
    // Until the last change that still adds: behind it the cluster only empties.
    let series = &load.unconstrained.series;
    let last = series.windows(2).rposition(|pair| pair[1].1 > pair[0].1);
    let series = &series[..last.map_or(series.len(), |last| (last + 2).min(series.len()))];
    let days: Vec<f64> = load.per_day.iter().map(|day| day.1).collect();
    let first = load.per_day.first().map_or(0.0, |day| day.0 as f64);
    let words = (
        "Work submitted each day over the capacity of a day",
        Axis::of("day from time zero"),
        "work submitted / capacity",
    );
    vec![
        held(
            "GPUs held if every job began when it was submitted",
            "time from the first submission",
            series,
            load.capacity_gpus,
        ),
        over_time(words, first, 1.0, &days),
    ]
}

fn lorenz(load: &Load) -> Option<Plot> {
    let curves = [
        ("tenants, GPU-time", &load.tenants_gpu_time.lorenz),
        ("tenants, jobs", &load.tenants_jobs.lorenz),
        ("users, GPU-time", &load.users_gpu_time.lorenz),
        ("users, jobs", &load.users_jobs.lorenz),
    ];
    let curves = curves.into_iter().filter(|curve| curve.1.len() > 2);
    let lines = curves.map(|(name, points)| Mark::line(name, points.iter().copied()));
    let of = |title: &str| Axis::of(title).percent().within(0.0, 1.0);
    Plot::new(
        "Shares of tenants and users (Lorenz curves)",
        of("of the holders, smallest first"),
        of("of the sum"),
    )
    .with([Mark::rule("", (0.0, 0.0), (1.0, 1.0))])
    .with(lines)
    .if_any()
}

fn outcomes(inspection: &Inspection) -> Option<Plot> {
    let bar = |place: usize, name: String, of: &str| {
        let parts = inspection.outcomes.iter().map(|row| {
            let mut parts = row.by_bucket.iter().chain([&row.jobs, &row.gpu_time]);
            let part = parts.nth(place).copied().flatten();
            (row.outcome.to_string(), part.unwrap_or(0.0))
        });
        (name, of.to_string(), parts.collect())
    };
    let num = BUCKETS.len();
    let mut bars: Vec<_> = (0..num)
        .map(|place| bar(place, bucket_name(BUCKETS[place]), "of the jobs"))
        .collect();
    bars.push(bar(num, "all".into(), "of the jobs"));
    bars.push(bar(num + 1, "all".into(), "of the GPU-time"));
    Plot::divided("How jobs ended, by gang", bars)
}

/// Waiting time by cause, one bar for each of `delays`.
fn causes(what: &str, delays: &[Delay], label: fn(&str) -> String) -> Option<Plot> {
    type Part = (&'static str, fn(&Causes) -> f64);
    const PARTS: [Part; 4] = [
        ("fair share", |causes| causes.fair_share),
        ("capacity", |causes| causes.capacity),
        ("fragmentation", |causes| causes.fragmentation),
        ("held back", |causes| causes.held_back),
    ];
    let bars = delays.iter().take(TENANTS_MAX).map(|delay| {
        let mean = delay.wait_s.mean.map_or_else(|| "-".into(), show_seconds);
        let parts = PARTS.iter().map(|(name, part)| {
            let part = delay.causes.as_ref().map_or(0.0, part);
            ((*name).to_string(), part)
        });
        (label(&delay.name), format!("mean {mean}"), parts.collect())
    });
    Plot::divided(&format!("Waiting time by cause and {what}"), bars)
}

fn occupancy(run: &Simulated, inspection: &Inspection) -> Vec<Option<Plot>> {
    let over_time = held(
        "GPUs held over time",
        "time from the first start",
        &run.held,
        inspection.cluster.num_gpus as f64,
    );
    let rows = &run.occupancy;
    let labels = rows
        .iter()
        .map(|row| format!("{:.0}", 100.0 * row.from))
        .collect();
    let bars = [
        (
            "of the time",
            rows.iter().map(|row| row.time.unwrap_or(f64::NAN)).collect(),
        ),
        (
            "of the nodes empty",
            rows.iter()
                .map(|row| row.empty_nodes.unwrap_or(f64::NAN))
                .collect(),
        ),
    ];
    let empty = Plot::bars(
        "Time and empty nodes by GPUs held",
        "GPUs held, % (from, 5 % wide; 100 = all)",
        Axis::of("part").percent(),
        labels,
        &bars,
    );
    vec![over_time, empty]
}
