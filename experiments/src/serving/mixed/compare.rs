//! Autoscalers on the same days, with paired intervals.

use pleach_env::Seed;
use rayon::prelude::*;
use serde::Serialize;

use super::timeline::{MixedDay, Played, Timeline};
use super::{Day, MixedBench, MixedConfig};
use crate::error::Error;
use crate::evaluate::stats::{bootstrap_mean, mean};
use crate::evaluate::table::Table;
use crate::progress::Watcher;
use crate::serving::gain::cell;

/// An autoscaler on all days.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixedRow {
    /// Its name.
    pub autoscaler: String,
    /// Of each day.
    pub days: Vec<MixedDay>,
    /// Training over the first row's, less 1, %, mean of days; none for the first.
    pub more_training_pct: Option<f64>,
    /// Its 95 % interval; none with one day.
    pub more_training_interval: Option<(f64, f64)>,
    /// Its first day.
    #[serde(skip)]
    pub timeline: Timeline,
}

impl MixedRow {
    fn over(&self, figure: impl Fn(&MixedDay) -> f64) -> f64 {
        mean(&self.days.iter().map(figure).collect::<Vec<_>>())
    }

    /// Mean share of hits, %.
    #[must_use]
    pub fn hits_pct(&self) -> f64 {
        self.over(|day| day.hits_pct)
    }

    /// Mean training, GPU·h.
    #[must_use]
    pub fn training_gpu_h(&self) -> f64 {
        self.over(|day| day.training_gpu_h)
    }
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixedComparison {
    /// Requests a second that a replica serves within the targets.
    pub capacity_per_s: f64,
    /// GPUs x hours of a day.
    pub gpu_h: f64,
    /// In the order given.
    pub rows: Vec<MixedRow>,
}

/// Plays all autoscalers on all days.
///
/// # Errors
/// An autoscaler or a setting that cannot be used.
pub fn compare_mixed(
    config: &MixedConfig,
    names: &[String],
    seed: u64,
    watcher: &Watcher,
) -> Result<MixedComparison, Error> {
    let bench = MixedBench::new(config)?;
    for name in names {
        bench.autoscaler(name)?;
    }
    let seeds = (0..u64::from(config.lists)).map(|list| Seed(seed).child("mixed", list));
    let days = seeds.map(|seed| bench.day(seed)).collect::<Result<Vec<_>, _>>()?;
    compare_mixed_on(&bench, &days, names, watcher)
}

/// The same on given days.
///
/// # Errors
/// An autoscaler that cannot be used.
pub fn compare_mixed_on(
    bench: &MixedBench,
    days: &[Day],
    names: &[String],
    watcher: &Watcher,
) -> Result<MixedComparison, Error> {
    let runs: Vec<(&String, &Day)> = names
        .iter()
        .flat_map(|name| days.iter().map(move |day| (name, day)))
        .collect();
    let num_steps = runs.iter().map(|(_, day)| day.num_steps()).sum();
    let play = |(name, day): &(&String, &Day)| {
        let mut autoscaler = bench.autoscaler(name)?;
        bench.play_watched(day, autoscaler.as_mut(), watcher)
    };
    let played: Result<Vec<Played>, Error> =
        watcher.part("mixed", num_steps, || runs.par_iter().map(play).collect());
    let played = played?;
    let of_each = played.chunks(days.len()).map(<[_]>::to_vec);
    Ok(MixedComparison::of(bench, names, of_each.collect()))
}

/// Training over another's, less 1, %, day by day.
pub(super) fn more_training_pct(own: &[MixedDay], other: &[MixedDay]) -> Vec<f64> {
    let days = own.iter().zip(other);
    days.map(|(own, other)| 100.0 * (own.training_gpu_h / other.training_gpu_h - 1.0))
        .collect()
}

impl MixedComparison {
    /// Of the days of each, the first of which the others are held against.
    pub(super) fn of(bench: &MixedBench, names: &[String], days: Vec<Vec<Played>>) -> MixedComparison {
        let of_first: Vec<MixedDay> = days[0].iter().map(|(day, _)| *day).collect();
        let rows = names.iter().zip(days).enumerate();
        let rows = rows.map(|(place, (name, mut played))| {
            let days: Vec<MixedDay> = played.iter().map(|(day, _)| *day).collect();
            let more = more_training_pct(&days, &of_first);
            MixedRow {
                autoscaler: name.clone(),
                days,
                more_training_pct: (place > 0).then(|| mean(&more)),
                more_training_interval: bootstrap_mean(&more, 0.95).filter(|_| place > 0),
                timeline: played.swap_remove(0).1,
            }
        });
        MixedComparison {
            capacity_per_s: bench.capacity_per_s,
            gpu_h: bench.gpu_h(),
            rows: rows.collect(),
        }
    }

    /// Hits and training first.
    #[must_use]
    pub fn table(&self) -> Table {
        let first = &self.rows[0].autoscaler;
        let header = [
            "autoscaler",
            "hits %",
            "training GPU h",
            "% over the first",
            "serving GPU h",
            "moves",
            "preempted",
            "lost GPU h",
            "returned",
        ];
        let rows = self.rows.iter().map(|row| {
            let more = cell(row.more_training_pct, row.more_training_interval, 1);
            vec![
                row.autoscaler.clone(),
                format!("{:.2}", row.hits_pct()),
                format!("{:.1}", row.training_gpu_h()),
                more,
                format!("{:.1}", row.over(|day| day.serving_gpu_h)),
                format!("{:.0}", row.over(|day| day.moves)),
                format!("{:.0}", row.over(|day| day.preemptions)),
                format!("{:.1}", row.over(|day| day.lost_gpu_h)),
                format!("{:.0}", row.over(|day| day.returned)),
            ]
        });
        let num_requests = self.rows[0].over(|day| day.num_requests);
        Table {
            header: header.map(str::to_string).to_vec(),
            rows: rows.collect(),
            notes: vec![
                format!(
                    "mean over {} days of {:.0} requests and {:.0} GPU h; the first is {first}",
                    self.rows[0].days.len(),
                    num_requests,
                    self.gpu_h
                ),
                format!(
                    "a replica serves {:.2} requests a second within the targets; training: work done and kept; lost: starts \
                     and lost work",
                    self.capacity_per_s
                ),
            ],
        }
    }
}
