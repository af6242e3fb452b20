//! What the settings of a sweep do to a metric: a panel for each, what each is worth, and all of them side by side.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::figures::last;
use super::scalars::show;
use crate::evaluate::stats::mean;
use crate::plot::axis::ends;
use crate::plot::{Axis, Mark, Plot, SERIES_MAX, Unit};

/// Numbers that differ by this factor or more are shown on a logarithmic axis.
const LOG_FROM: f64 = 10.0;
/// Numbers, at most, whose dots are joined by a line of means.
const JOINED_MAX: usize = 12;
/// Groups of equal size into which a setting's numbers are put to find out what it is worth.
const GROUPS: usize = 4;
/// Configurations that are drawn in a colour side by side.
const BEST_SHOWN: usize = 3;

/// What units set that are alike but for their seeds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Configuration<'a> {
    pub(super) params: &'a BTreeMap<String, Value>,
    /// Behind the policy, where another one decides in its place.
    pub(super) stand_in: String,
    /// The metric, a value a seed.
    pub(super) values: Vec<f64>,
}

impl Configuration<'_> {
    pub(super) fn mean(&self) -> f64 {
        mean(&self.values)
    }

    /// A setting's value in words.
    pub(super) fn label(&self, key: &str) -> String {
        let value = self.params.get(key).map_or_else(|| "-".to_string(), show);
        if key == "policy" {
            value + &self.stand_in
        } else {
            value
        }
    }
}

/// A setting that varies.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) key: String,
    /// Its last word, where no other setting has the same.
    pub(super) short: String,
    /// Of numbers, logarithmic where they span a factor of ten, or of words.
    axis: Axis,
    /// Numbers, or places of words on the axis, by configuration.
    values: Vec<f64>,
}

impl Setting {
    /// All that vary.
    pub(super) fn all(all: &[Configuration<'_>]) -> Vec<Setting> {
        let keys: BTreeSet<&String> = all.iter().flat_map(|own| own.params.keys()).collect();
        let of = |key: &&String| {
            let labels: Vec<String> = all.iter().map(|own| own.label(key)).collect();
            let mut names = labels.clone();
            names.sort();
            names.dedup();
            let place =
                |label: &String| names.iter().position(|name| name == label).unwrap_or(0) as f64 + 0.5;
            let numbers: Option<Vec<f64>> = all.iter().map(|own| own.params.get(*key)?.as_f64()).collect();
            let axis = Axis::of(key.as_str());
            let (axis, values) = match numbers {
                Some(values) if is_wide(&values) => (axis.log(), values),
                Some(values) => (axis, values),
                None => (axis.names(names.clone()), labels.iter().map(place).collect()),
            };
            let alike = keys.iter().filter(|other| last(other) == last(key)).count();
            let short = if alike == 1 { last(key) } else { key };
            (names.len() > 1).then(|| Setting {
                key: (*key).clone(),
                short: short.to_string(),
                axis,
                values,
            })
        };
        keys.iter().filter_map(of).collect()
    }

    fn words(&self) -> Option<&[String]> {
        match &self.axis.unit {
            Unit::Names(names) => Some(names),
            _ => None,
        }
    }
}

fn is_wide(values: &[f64]) -> bool {
    let (least, most) = ends(values.iter().copied());
    least > 0.0 && most / least >= LOG_FROM
}

fn metric_axis(metric: &str) -> Axis {
    let axis = Axis::of(metric);
    if metric.ends_with("_s") {
        axis.seconds()
    } else {
        axis
    }
}

/// The metric over a setting: of numbers a dot for each configuration, in a colour for each combination of the words that others set,
/// joined where they are few and no other number varies; of words a row for each.
pub(super) fn panel(
    setting: &Setting,
    settings: &[Setting],
    all: &[Configuration<'_>],
    metric: &str,
) -> Option<Plot> {
    let title = format!("{} by {}", last(metric), setting.short);
    let y = metric_axis(last(metric));
    if let Some(words) = setting.words() {
        let rows = words.iter().take(SERIES_MAX).map(|name| {
            let own = all.iter().filter(|own| own.label(&setting.key) == *name);
            let dots = Mark::dots(name, own.map(|own| (own.mean(), 0.5)));
            (dots.name.clone(), String::new(), vec![dots])
        });
        let plot = Plot::new(title, y, Axis::default());
        return plot.of_policies().with_rows(rows).if_any();
    }
    let others = || settings.iter().filter(|other| other.key != setting.key);
    let name = |own: &Configuration<'_>| {
        let words = others().filter(|other| other.words().is_some());
        let words = words.map(|other| format!("{} = {}", other.short, own.label(&other.key)));
        words.collect::<Vec<_>>().join(", ")
    };
    let mut series: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (own, x) in all.iter().zip(&setting.values) {
        series.entry(name(own)).or_default().push((*x, own.mean()));
    }
    let is_joined = others().all(|other| other.words().is_some());
    let marks = series.into_iter().flat_map(|(name, mut points)| {
        let name = if name.is_empty() { "all".to_string() } else { name };
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let line = Mark::line(&name, if is_joined { points.clone() } else { means(&points) });
        [line, Mark::dots(&name, points)]
    });
    Plot::new(title, setting.axis.clone(), y)
        .of_policies()
        .with(marks)
        .if_any()
}

/// The mean at each of few places; nothing where there are many.
fn means(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let groups: Vec<&[(f64, f64)]> = points.chunk_by(|a, b| a.0 == b.0).collect();
    if groups.len() > JOINED_MAX || groups.len() * 2 > points.len() {
        return Vec::new();
    }
    let mean_of = |group: &&[(f64, f64)]| {
        (
            group[0].0,
            mean(&group.iter().map(|point| point.1).collect::<Vec<_>>()),
        )
    };
    groups.iter().map(mean_of).collect()
}

/// By setting, which part of the variance of the metric's ranks it explains alone, from 0 to 1, less what chance explains (epsilon
/// squared of Kelley, 1935); numbers are put in groups of equal size. The largest first.
pub(super) fn importance<'a>(settings: &'a [Setting], all: &[Configuration<'_>]) -> Vec<(&'a str, f64)> {
    let ranks = ranks(&all.iter().map(Configuration::mean).collect::<Vec<_>>());
    let mut found: Vec<(&str, f64)> = settings
        .iter()
        .filter_map(|setting| Some((setting.short.as_str(), explained(&groups(setting), &ranks)?)))
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    found
}

/// Places from 0 on; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count();
    let same = |value: f64| values.iter().filter(|other| **other == value).count();
    let rank = |value: &f64| below(*value) as f64 + (same(*value) as f64 - 1.0) / 2.0;
    values.iter().map(rank).collect()
}

/// The group of each configuration: its word, or one of some of equal size by its number.
fn groups(setting: &Setting) -> Vec<usize> {
    if setting.words().is_some() {
        return setting.values.iter().map(|place| *place as usize).collect();
    }
    let distinct: BTreeSet<u64> = setting.values.iter().map(|value| value.to_bits()).collect();
    let (num, all) = (distinct.len().min(GROUPS) as f64, setting.values.len() as f64);
    let ranks = ranks(&setting.values);
    ranks
        .iter()
        .map(|rank| ((rank + 0.5) / all * num) as usize)
        .collect()
}

/// None where there are too few configurations to say.
fn explained(groups: &[usize], ranks: &[f64]) -> Option<f64> {
    let mut by_group: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (group, rank) in groups.iter().zip(ranks) {
        by_group.entry(*group).or_default().push(*rank);
    }
    let square = |values: &[f64], about: f64| values.iter().map(|value| (value - about).powi(2)).sum::<f64>();
    let (whole, num, k) = (
        square(ranks, mean(ranks)),
        ranks.len() as f64,
        by_group.len() as f64,
    );
    let within: f64 = by_group.values().map(|own| square(own, mean(own))).sum();
    let is_usable = num > k && k > 1.0 && whole > 0.0;
    is_usable.then(|| ((whole - within - (k - 1.0) * within / (num - k)) / whole).max(0.0))
}

/// The importances as bars.
pub(super) fn importances(worth: &[(&str, f64)]) -> Option<Plot> {
    let title = "Part of the differences between configurations that a setting explains alone";
    let rows = worth.iter().map(|(name, part)| {
        let bar = Mark::boxes(name, [(0.0, 0.0), (*part, 1.0)]);
        ((*name).to_string(), format!("{:.0} %", 100.0 * part), vec![bar])
    });
    let x = Axis::of("of the variance of ranks, less what chance explains")
        .percent()
        .within(0.0, 1.0);
    let marked = |plot: Plot| (!plot.rows.is_empty()).then_some(plot);
    marked(Plot::new(title, x, Axis::default()).with_rows(rows))
}

/// Every configuration as a line over all settings and the metric, the best ones in colour (parallel coordinates).
pub(super) fn side_by_side(
    settings: &[Setting],
    all: &[Configuration<'_>],
    (metric, sign): (&str, f64),
) -> Option<Plot> {
    let means: Vec<f64> = all.iter().map(Configuration::mean).collect();
    let own = Setting {
        key: metric.to_string(),
        short: last(metric).to_string(),
        axis: metric_axis(metric),
        values: means.clone(),
    };
    let axes: Vec<&Setting> = settings.iter().chain([&own]).collect();
    let places: Vec<Vec<f64>> = axes.iter().map(|own| own.axis.places(&own.values)).collect();
    let label = |own: &&Setting| {
        let (low, high) = ends(own.values.iter().copied());
        format!(
            "{} {} to {}",
            own.short.replace('_', " "),
            own.axis.show(low),
            own.axis.show(high)
        )
    };
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| (sign * means[*b]).total_cmp(&(sign * means[*a])));
    let num_pale = order.len().saturating_sub(BEST_SHOWN);
    let lines = order.iter().enumerate().map(|(rank, place)| {
        let name = match order.len() - rank {
            _ if rank < num_pale => String::new(),
            1 => "the best".to_string(),
            number => format!("number {number}"),
        };
        let points = places.iter().enumerate();
        Mark::line(
            &name,
            points.map(|(axis, places)| (axis as f64 + 0.5, places[*place])),
        )
    });
    let names = axes.iter().map(label).collect();
    let y = Axis::default().percent().within(0.0, 1.0);
    let plot = Plot::new(
        "All settings side by side, each from its least to its most",
        Axis::default().names(names),
        y,
    );
    (settings.len() > 1)
        .then(|| plot.with(lines))
        .and_then(Plot::if_any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn all(params: &[BTreeMap<String, Value>], metric: impl Fn(usize) -> f64) -> Vec<Configuration<'_>> {
        let own = params.iter().enumerate().map(|(place, params)| Configuration {
            params,
            stand_in: String::new(),
            values: vec![metric(place)],
        });
        own.collect()
    }

    fn params() -> Vec<BTreeMap<String, Value>> {
        let of = |number: i32| {
            let rate = 10_f64.powf(-4.0 + 3.0 * f64::from(number) / 23.0);
            BTreeMap::from([
                ("train.rate".to_string(), json!(rate)),
                ("train.width".to_string(), json!((number * 7) % 24)),
                (
                    "reward".to_string(),
                    json!(["jct", "wait"][(number % 2) as usize]),
                ),
                ("same".to_string(), json!(1)),
            ])
        };
        (0..24).map(of).collect()
    }

    #[test]
    fn what_a_setting_is_worth_is_what_was_put_in_and_chance_is_worth_nothing() {
        let params = params();
        // The metric falls and rises with the rate, and the width and the reward do nothing.
        let all = all(&params, |place| (place as f64 - 11.5).abs());
        let settings = Setting::all(&all);
        let keys: Vec<&str> = settings.iter().map(|setting| setting.short.as_str()).collect();
        assert_eq!(
            keys,
            ["reward", "rate", "width"],
            "what does not vary is no setting"
        );
        let worth = importance(&settings, &all);
        assert_eq!(worth[0].0, "rate");
        assert!(worth[0].1 > 0.6 && worth[1].1 < 0.2, "{worth:?}");
        // Three configurations say nothing of three values.
        assert!(importance(&Setting::all(&all[..2]), &all[..2]).is_empty());
    }

    #[test]
    fn a_setting_that_spans_powers_of_ten_has_a_logarithmic_axis_and_words_have_rows() {
        let params = params();
        let all = all(&params, |place| place as f64);
        let settings = Setting::all(&all);
        let panels: Vec<Plot> = settings
            .iter()
            .filter_map(|own| panel(own, &settings, &all, "m.avg_jct_s"))
            .collect();
        assert_eq!(panels.len(), 3, "a panel for each setting");
        assert_eq!(panels[0].rows.len(), 2);
        assert!(panels[1].x.log && !panels[2].x.log);
        assert_eq!(panels[1].names(), ["reward = jct", "reward = wait"]);
        let plot = side_by_side(&settings, &all, ("m.avg_jct_s", 1.0)).unwrap();
        assert_eq!(plot.marks.len(), 24);
        assert_eq!(plot.marks[23].name, "the best");
        assert_eq!(plot.marks[23].points[3], (3.5, 0.0), "least of the metric");
    }
}
