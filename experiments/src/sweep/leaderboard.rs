//! The leaderboard of a sweep: configurations ranked on the workloads and seeds that they share.
//!
//! Units of evaluations are paired where they have the same workload settings and the same seed. Units that learn something are
//! paired by training seed and by the list that both were judged on, identified by the hash of its jobs. A row's ratio to the
//! reference is the geometric mean over its pairs with a 95 % bootstrap interval; with several training seeds it is the
//! interquartile mean, and the interval draws seeds and lists as wholes ([`Interval`]), for one lucky training is lucky on every
//! list.
//!
//! The best of many is flattered by having been chosen: play it again on a seed of its own before it is reported.

use std::collections::{BTreeMap, BTreeSet};

use pleach_scheduler::portable_math::ln;
use serde_json::{Value, json};

use super::collect::GatheredUnit;
use super::figures::{OF_WORKLOADS, judged_key, last, own_figures, sign};
use super::judge::{JUDGED, OWN};
use super::manifest::Manifest;
use super::policy_unit::STAND_IN;
use super::scalars::show;
use crate::error::Error;
use crate::evaluate::interval::Interval;
use crate::evaluate::metric::{MAIN_METRIC, Metric, show_plain};
use crate::evaluate::results::csv_text;
use crate::evaluate::stats::{Ratio, mean};
use crate::evaluate::table::Table;

/// Rows of the table, at most; the CSV has the rest.
const ROWS_MAX: usize = 50;

/// A configuration, or a policy that was judged beside all of them.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    name: String,
    /// Figures by training seed and list; of an evaluation, whose seed is that of its list, by list alone.
    figures: BTreeMap<(u64, String), f64>,
    /// The rung it came to, from 0; that of the last where the sweep has none.
    rung: usize,
    /// Its units.
    units: Vec<usize>,
}

/// A row against the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Paired {
    mean: f64,
    interval: Option<(f64, f64)>,
    num_pairs: usize,
}

/// Ranked rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaderboard {
    metric: String,
    reference: String,
    rows: Vec<(Row, Option<Paired>)>,
    num_rungs: usize,
}

impl Leaderboard {
    /// Ranks what was gathered by a metric, its last word without one of [`MAIN_METRIC`]; none where no unit has it.
    ///
    /// # Errors
    /// [`Error::Problem`] where there is no such reference; a unit that is not of this manifest.
    pub fn of(
        manifest: &Manifest,
        units: &[GatheredUnit<'_>],
        metric: Option<&str>,
        reference: Option<&str>,
    ) -> Result<Option<Leaderboard>, Error> {
        let metric = metric.unwrap_or(MAIN_METRIC).to_string();
        let rows = rows(manifest, units, &metric)?;
        let num_rungs = manifest.halving().map_or(1, |halving| halving.values.len());
        let sign = sign(&metric);
        let mut ranked = by_rank(rows, sign);
        let Some(best) = ranked.first() else {
            return match reference {
                Some(name) => Err(unknown_reference(name, &ranked)),
                None => Ok(None),
            };
        };
        let chosen = match reference {
            None => best,
            Some(name) => {
                let found = ranked.iter().find(|row| row.name == name);
                found.ok_or_else(|| unknown_reference(name, &ranked))?
            }
        };
        let reference = chosen.clone();
        let paired = |row: Row| {
            let paired = paired(&row, &reference);
            (row, paired)
        };
        Ok(Some(Leaderboard {
            metric,
            rows: ranked.drain(..).map(paired).collect(),
            reference: reference.name,
            num_rungs,
        }))
    }

    /// For a terminal and a page: what decides first.
    #[must_use]
    pub fn table(&self) -> Table {
        let metric = Metric::find(last(&self.metric));
        let label = metric.map_or(last(&self.metric), |metric| metric.label);
        let show = |value: f64| metric.map_or_else(|| show_plain(value), |metric| metric.show(value));
        let mut header = vec![
            "configuration".to_string(),
            format!("{label} vs {}", shortened(&self.reference, 24)),
            label.to_string(),
            "pairs".to_string(),
        ];
        if self.num_rungs > 1 {
            header.push("rung".into());
        }
        let rows = self.rows.iter().take(ROWS_MAX).map(|(row, paired)| {
            let figures: Vec<f64> = row.figures.values().copied().collect();
            let against = match paired {
                _ if row.name == self.reference => "1".to_string(),
                None => "-".to_string(),
                Some(Paired { mean, interval, .. }) => match interval {
                    Some((low, high)) => format!("{mean:.3} [{low:.3}, {high:.3}]"),
                    None => format!("{mean:.3}"),
                },
            };
            let num = paired.map_or(0, |paired| paired.num_pairs);
            let mut cells = vec![row.name.clone(), against, show(mean(&figures)), num.to_string()];
            if self.num_rungs > 1 {
                cells.push(format!("{} of {}", row.rung + 1, self.num_rungs));
            }
            cells
        });
        let mut notes = vec![match sign(&self.metric) < 0.0 {
            true => "ratios over the same workloads and seeds, 95 % interval; above 1 is better".to_string(),
            false => "ratios over the same workloads and seeds, 95 % interval; below 1 is better".to_string(),
        }];
        if self.rows.len() > ROWS_MAX {
            notes.push(format!(
                "{} more are in leaderboard.csv",
                self.rows.len() - ROWS_MAX
            ));
        }
        Table {
            header,
            rows: rows.collect(),
            notes,
        }
    }

    /// One row for each configuration.
    ///
    /// # Errors
    /// As the writer of tables.
    pub fn to_csv(&self) -> Result<String, Error> {
        let name = last(&self.metric);
        let header = [
            "rank",
            "configuration",
            "ratio",
            "low",
            "high",
            "pairs",
            "rung",
            "units",
            name,
        ];
        let text = |value: Option<f64>| value.map(|value| json!(value).to_string()).unwrap_or_default();
        let rows = self.rows.iter().enumerate().map(|(rank, (row, paired))| {
            let figures: Vec<f64> = row.figures.values().copied().collect();
            let interval = paired.and_then(|paired| paired.interval);
            let units: Vec<String> = row.units.iter().map(ToString::to_string).collect();
            vec![
                (rank + 1).to_string(),
                row.name.clone(),
                text(paired.map(|paired| paired.mean)),
                text(interval.map(|(low, _)| low)),
                text(interval.map(|(_, high)| high)),
                paired.map_or(0, |paired| paired.num_pairs).to_string(),
                (row.rung + 1).to_string(),
                units.join(" "),
                text(Some(mean(&figures))),
            ]
        });
        csv_text(header.into_iter(), rows)
    }
}

fn shortened(name: &str, num: usize) -> String {
    match name.chars().count() > num {
        true => name.chars().take(num - 1).chain(['…']).collect(),
        false => name.to_string(),
    }
}

fn unknown_reference(name: &str, rows: &[Row]) -> Error {
    let known: Vec<&str> = rows.iter().take(30).map(|row| row.name.as_str()).collect();
    let hint = "Name a configuration as the table does, or leave it out for the best.";
    Error::config("reference", name, known.join("; "), hint)
}

/// A row for each configuration at the highest rung it came to, and one for each policy that was judged beside them there.
fn rows(manifest: &Manifest, units: &[GatheredUnit<'_>], metric: &str) -> Result<Vec<Row>, Error> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let names = Names::of(manifest);
    for unit in units {
        let rung = unit.unit.index / manifest.units_per_rung();
        let config = manifest.unit(unit.unit.index)?.config;
        let mut name = names.name(&unit.unit.params, &config);
        if let Some(other) = unit.value.get(STAND_IN) {
            name = format!("{name} ({})", show(other));
        }
        let mut put = |name: String, figures: Vec<((u64, String), f64)>, is_own: bool| {
            if figures.is_empty() {
                return;
            }
            let new = Row {
                name: name.clone(),
                figures: BTreeMap::new(),
                rung,
                units: Vec::new(),
            };
            let row = rows.entry(name).or_insert_with(|| new.clone());
            if row.rung < rung {
                *row = new;
            }
            if row.rung == rung {
                row.figures.extend(figures);
                row.units.extend(is_own.then_some(unit.unit.index));
            }
        };
        put(name, own_figures((unit.unit, &unit.value), &config, metric), true);
        let Some(runs) = unit.value[JUDGED].as_array() else {
            continue;
        };
        for run in runs.iter().filter(|run| run["policy"] != OWN) {
            let figure = run["metrics"][last(metric)].as_f64();
            let figures = figure.map(|figure| (judged_key(unit.unit, run), figure));
            let mut name = show(&run["policy"]);
            if let Some(other) = run.get(STAND_IN) {
                name = format!("{name} ({})", show(other));
            }
            put(name, figures.into_iter().collect(), false);
        }
    }
    Ok(rows.into_values().collect())
}

/// How configurations are called: by the settings that tell them apart, each by its last word where that is enough.
struct Names {
    short: BTreeMap<String, String>,
    rung_setting: Option<String>,
}

impl Names {
    fn of(manifest: &Manifest) -> Names {
        let units = manifest.units().iter();
        let keys: BTreeSet<&String> = units.flat_map(|unit| unit.params.keys()).collect();
        let short = |key: &String| {
            let alike = keys.iter().filter(|other| last(other) == last(key)).count();
            if alike == 1 {
                last(key).to_string()
            } else {
                key.clone()
            }
        };
        Names {
            short: keys.iter().map(|key| ((*key).clone(), short(key))).collect(),
            rung_setting: manifest.halving().map(|halving| halving.setting.clone()),
        }
    }

    fn name(&self, params: &BTreeMap<String, Value>, config: &Value) -> String {
        let is_evaluation = matches!(
            config.get("command").and_then(Value::as_str),
            None | Some("evaluate")
        );
        let is_of_workload =
            |key: &str| is_evaluation && OF_WORKLOADS.contains(&key.split('.').next().unwrap_or_default());
        let own: Vec<(&String, &Value)> = params
            .iter()
            .filter(|(key, _)| !is_of_workload(key) && Some(*key) != self.rung_setting.as_ref())
            .collect();
        match own.as_slice() {
            [] => config.get("policy").map_or_else(|| "all".to_string(), show),
            [(key, value)] if *key == "policy" => show(value),
            several => {
                let words = several
                    .iter()
                    .map(|(key, value)| format!("{} = {}", self.short[*key], show(value)));
                words.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// The best first: by rung, then by the mean over what each was played on, every workload counted against its own mean, so that a
/// row that lacks some is not ahead for having had the easy ones. Ties by name.
fn by_rank(mut rows: Vec<Row>, sign: f64) -> Vec<Row> {
    let all: Vec<f64> = rows
        .iter()
        .flat_map(|row| row.figures.values().copied())
        .collect();
    let is_positive = all.iter().all(|figure| figure.is_finite() && *figure > 0.0);
    let scaled = |figure: f64| if is_positive { ln(figure) } else { figure };
    let mut means: BTreeMap<(usize, &(u64, String)), Vec<f64>> = BTreeMap::new();
    for row in &rows {
        for (key, figure) in &row.figures {
            means.entry((row.rung, key)).or_default().push(scaled(*figure));
        }
    }
    let score = |row: &Row| {
        let own = row.figures.iter();
        let centred: Vec<f64> = own
            .map(|(key, figure)| scaled(*figure) - mean(&means[&(row.rung, key)]))
            .collect();
        sign * mean(&centred)
    };
    let scores: BTreeMap<String, f64> = rows.iter().map(|row| (row.name.clone(), score(row))).collect();
    rows.sort_by(|a, b| {
        let by_score = scores[&a.name].total_cmp(&scores[&b.name]);
        b.rung.cmp(&a.rung).then(by_score).then(a.name.cmp(&b.name))
    });
    rows
}

/// A row over the reference on what both were played on.
fn paired(row: &Row, reference: &Row) -> Option<Paired> {
    let mut by_seed: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for ((seed, list), figure) in &row.figures {
        if let Some(other) = reference.figures.get(&(*seed, list.clone())) {
            by_seed.entry(*seed).or_default().push((*figure, *other));
        }
    }
    let all: Vec<(f64, f64)> = by_seed.values().flatten().copied().collect();
    let ratio = Ratio::of_pairs(&all)?;
    if by_seed.len() > 1 {
        let ratios = by_seed
            .values()
            .map(|pairs| pairs.iter().map(|(own, other)| own / other).collect());
        let interval = Interval::of(&ratios.collect::<Vec<Vec<f64>>>())?;
        return Some(Paired {
            mean: interval.iqm,
            interval: Some((interval.low, interval.high)),
            num_pairs: all.len(),
        });
    }
    Some(Paired {
        mean: ratio.mean,
        interval: ratio.low.zip(ratio.high),
        num_pairs: ratio.num_pairs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::grid::Grid;
    use crate::sweep::scalars::scalars_of;
    use serde_json::Map;

    fn planned(text: &str) -> Manifest {
        toml::from_str::<Grid>(text).unwrap().plan().unwrap()
    }

    fn gathered(
        manifest: &Manifest,
        value: impl Fn(&Map<String, Value>, u64) -> Value,
    ) -> Vec<GatheredUnit<'_>> {
        let of = |unit| {
            let unit: &crate::sweep::manifest::ManifestUnit = unit;
            let config = manifest.unit(unit.index).unwrap().config;
            let value = value(config.as_object().unwrap(), unit.replicate);
            let scalars = scalars_of(&value);
            GatheredUnit { unit, value, scalars }
        };
        manifest.units().iter().map(of).collect()
    }

    #[test]
    fn policies_are_paired_on_workload_and_seed_and_the_difference_of_loads_does_not_blur_them() {
        let manifest = planned("name = 'x'\nseeds = 4\n[grid]\nload = [0.5, 1]\npolicy = ['fifo', 'sjf']");
        let units = gathered(&manifest, |config, replicate| {
            // A load of 1 is ten times as slow, a seed up to four times; sjf takes 0.9 of fifo in all pairs.
            let load = if config["load"] == 1 { 10.0 } else { 1.0 };
            let policy = if config["policy"] == "sjf" { 0.9 } else { 1.0 };
            json!({"metrics": {"avg_jct_s": 100.0 * load * policy * (replicate + 1) as f64}})
        });
        let board = Leaderboard::of(&manifest, &units, None, Some("fifo"))
            .unwrap()
            .unwrap();
        let names: Vec<&str> = board.rows.iter().map(|(row, _)| row.name.as_str()).collect();
        assert_eq!(names, ["sjf", "fifo"]);
        let sjf = board.rows[0].1.unwrap();
        let (low, high) = sjf.interval.unwrap();
        assert!(
            (sjf.mean - 0.9).abs() < 1e-9 && (high - low).abs() < 1e-9,
            "{sjf:?}"
        );
        assert_eq!(sjf.num_pairs, 8);
        let text = board.table().to_terminal();
        assert!(
            text.contains("avg JCT vs fifo") && text.contains("0.900 [0.900, 0.900]"),
            "{text}"
        );
        assert!(
            board
                .to_csv()
                .unwrap()
                .starts_with("rank,configuration,ratio,low,high,pairs,rung,units,avg_jct_s\n1,sjf,")
        );
        let refused = Leaderboard::of(&manifest, &units, None, Some("srtf"))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("sjf; fifo"), "{refused}");
    }

    #[test]
    fn what_was_learned_is_paired_by_training_seed_and_list_and_stands_beside_who_was_judged_too() {
        let manifest =
            planned("name = 'x'\nseeds = 2\n[base]\ncommand = 'train'\n[grid]\ntrain.ppo.clip = [0.1, 0.2]");
        let units = gathered(&manifest, |config, replicate| {
            let good = if config["train"]["ppo"]["clip"] == 0.2 {
                0.8
            } else {
                1.2
            };
            let list = |policy: &str, jct_s: f64| {
                let list = |list: u64| {
                    let metrics = json!({"avg_jct_s": jct_s * (list + 1) as f64});
                    json!({"policy": policy, "list": list.to_string(), "seed": list, "metrics": metrics})
                };
                (0..5).map(list).collect::<Vec<Value>>()
            };
            let own = list(OWN, 100.0 * good + replicate as f64);
            let all = [own, list("sjf", 100.0)].concat();
            json!({ JUDGED: all })
        });
        let board = Leaderboard::of(&manifest, &units, None, Some("sjf"))
            .unwrap()
            .unwrap();
        let names: Vec<&str> = board.rows.iter().map(|(row, _)| row.name.as_str()).collect();
        assert_eq!(names, ["clip = 0.2", "sjf", "clip = 0.1"]);
        let best = board.rows[0].1.unwrap();
        // Two trainings of 0.80 and 0.81 on each of five lists.
        assert!(
            (0.80..=0.81).contains(&best.mean) && best.num_pairs == 10,
            "{best:?}"
        );
        let (low, high) = best.interval.unwrap();
        assert!(
            (low - 0.80).abs() < 1e-9 && (high - 0.81).abs() < 1e-9,
            "{best:?}"
        );
        assert_eq!(board.rows[0].0.units, [2, 3]);
    }

    #[test]
    fn a_row_that_lacks_the_hard_workloads_is_not_ahead_for_it() {
        let manifest = planned("name = 'x'\nseeds = 2\n[grid]\npolicy = ['a', 'b']");
        let mut units = gathered(&manifest, |config, replicate| {
            let policy = if config["policy"] == "a" { 2.0 } else { 1.0 };
            json!({"avg_jct_s": policy * if replicate == 1 { 1000.0 } else { 10.0 }})
        });
        // a has only the easy one.
        units.remove(1);
        let board = Leaderboard::of(&manifest, &units, None, None).unwrap().unwrap();
        assert_eq!(board.reference, "b");
        assert_eq!(board.rows[1].1.unwrap().num_pairs, 1);
    }
}
