//! What an evaluation found: one run for each (policy, workload, seed), their means, and the files that keep them.
//!
//! A comparison is only made over the pairs (workload, seed) that *every* policy finished, so that no mean rests on an
//! easier set than its neighbour's. Refused: numbers that are not finite, the same run twice, and policies without a
//! common pair.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pleach_env::bound::LowerBounds;
use serde::{Deserialize, Serialize};

use crate::atomic_file;
use crate::error::Error;
use crate::metric::{Better, MAIN, METRICS, Metric};
use crate::stats::{Ratio, mean};

/// Version of the JSON layout.
pub const SCHEMA: u32 = 1;

/// One policy on one workload with one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRun {
    /// Name of the policy.
    pub policy: String,
    /// Name of the workload.
    pub workload: String,
    /// Seed of the workload and of everything random in the run.
    pub seed: u64,
    /// Numbers by key; the keys are those of [`METRICS`], others are kept in the CSV only.
    pub metrics: BTreeMap<String, f64>,
    /// JCT of each finished job, seconds, in any order.
    pub jct_s: Vec<f64>,
    /// (time in seconds, part of all GPUs busy from then on, 0 to 1), by time.
    pub utilisation: Vec<(f64, f64)>,
}

/// Keys of the lower bounds in a run's metrics.
const BOUND_KEYS: [&str; 2] = ["avg_jct_bound_s", "makespan_bound_s"];

impl PolicyRun {
    /// The same run with its workload's lower bounds and its gaps to them; a bound of zero gives no gap.
    #[must_use]
    pub fn against(mut self, bounds: LowerBounds) -> PolicyRun {
        for (key, gap, bound_key, bound_s) in [
            ("avg_jct_s", "avg_jct_gap", BOUND_KEYS[0], bounds.avg_jct_s),
            ("makespan_s", "makespan_gap", BOUND_KEYS[1], bounds.makespan_s),
        ] {
            if let Some(found_s) = self.metrics.get(key).copied().filter(|_| bound_s > 0.0) {
                // The bound is exact but for rounding; below zero there is nothing to see.
                self.metrics
                    .insert(gap.into(), (found_s / bound_s - 1.0).max(0.0));
                self.metrics.insert(bound_key.into(), bound_s);
            }
        }
        self
    }
}

/// A policy's ratio to the reference, as it stands in the JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RatioVsReference {
    /// Name of the reference policy.
    pub policy: String,
    /// Key of the metric that is compared, `avg_jct_s` if nothing else was asked for.
    pub metric: &'static str,
    /// The ratio.
    #[serde(flatten)]
    pub ratio: Ratio,
}

/// One policy over all common pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Mean of each metric over the common pairs; a metric that some run lacks is left out.
    #[serde(flatten)]
    pub metrics: BTreeMap<String, f64>,
    /// Against the reference; none without one or where a value is not positive.
    pub ratio_vs_reference: Option<RatioVsReference>,
}

/// The whole of an evaluation. Serialises as the file that `--json` writes.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    schema: u32,
    command: String,
    policies: BTreeMap<String, Summary>,
    workloads: Vec<String>,
    seeds: Vec<u64>,
    num_pairs: usize,
    lower_bounds: Option<LowerBounds>,
    #[serde(skip)]
    reference: Option<String>,
    #[serde(skip)]
    metric: &'static Metric,
    #[serde(skip)]
    order: Vec<String>,
    #[serde(skip)]
    runs: Vec<PolicyRun>,
    #[serde(skip)]
    is_drawn: bool,
}

impl Results {
    /// Gathers `runs` of `command`, comparing against `reference` if it is given.
    ///
    /// # Errors
    /// [`Error::Config`] where the reference is not among the policies; [`Error::Failed`] where runs cannot be compared.
    pub fn new(command: &str, runs: Vec<PolicyRun>, reference: Option<&str>) -> Result<Results, Error> {
        Results::by(MAIN, command, runs, reference)
    }

    /// As [`Results::new`], comparing by another metric than the average JCT.
    ///
    /// # Errors
    /// As [`Results::new`].
    pub fn by(
        metric: &'static Metric,
        command: &str,
        runs: Vec<PolicyRun>,
        reference: Option<&str>,
    ) -> Result<Results, Error> {
        check_runs(&runs)?;
        let mut order: Vec<String> = Vec::new();
        let mut pairs: BTreeMap<&str, BTreeSet<(&str, u64)>> = BTreeMap::new();
        for run in &runs {
            if !pairs.contains_key(run.policy.as_str()) {
                order.push(run.policy.clone());
            }
            pairs
                .entry(&run.policy)
                .or_default()
                .insert((&run.workload, run.seed));
        }
        if let Some(name) = reference
            && !order.iter().any(|policy| policy == name)
        {
            return Err(Error::config(
                "reference",
                name,
                order.join(", "),
                "Name a policy of this comparison.",
            ));
        }
        let common = pairs
            .values()
            .skip(1)
            .fold(pairs.values().next().cloned(), |common, other| {
                common.map(|set| set.intersection(other).copied().collect())
            });
        let common = common.filter(|set| !set.is_empty()).ok_or_else(|| {
            Error::Failed("no pair of workload and seed was finished by every policy".to_string())
        })?;

        let by_pair: BTreeMap<(&str, &str, u64), &PolicyRun> = runs
            .iter()
            .map(|run| ((run.policy.as_str(), run.workload.as_str(), run.seed), run))
            .collect();
        let of = |policy: &str| -> Vec<&PolicyRun> {
            common
                .iter()
                .filter_map(|&(load, seed)| by_pair.get(&(policy, load, seed)).copied())
                .collect()
        };
        let reference_runs = reference.map(|name| (name, of(name)));
        let policies = order
            .iter()
            .map(|name| {
                (
                    name.clone(),
                    summarise(metric, &of(name), reference_runs.as_ref()),
                )
            })
            .collect();
        let lower_bounds = order.first().and_then(|name| mean_bounds(&of(name)));
        let workloads: BTreeSet<&str> = common.iter().map(|pair| pair.0).collect();
        let seeds: BTreeSet<u64> = common.iter().map(|pair| pair.1).collect();
        Ok(Results {
            schema: SCHEMA,
            command: command.to_string(),
            workloads: workloads.into_iter().map(str::to_string).collect(),
            seeds: seeds.into_iter().collect(),
            num_pairs: common.len(),
            lower_bounds,
            policies,
            reference: reference.map(str::to_string),
            metric,
            order,
            runs,
            is_drawn: true,
        })
    }

    /// The same, with whether more seeds would give other runs; they would unless this says no.
    #[must_use]
    pub fn drawn(self, is_drawn: bool) -> Results {
        Results { is_drawn, ..self }
    }

    /// Whether more seeds would give other runs.
    #[must_use]
    pub fn is_drawn(&self) -> bool {
        self.is_drawn
    }

    /// Policies in the order in which they were first given.
    pub fn policies(&self) -> impl Iterator<Item = (&str, &Summary)> {
        self.order
            .iter()
            .filter_map(|name| Some((name.as_str(), self.policies.get(name)?)))
    }

    /// The policy that the others are measured against.
    #[must_use]
    pub fn reference(&self) -> Option<&str> {
        self.reference.as_deref()
    }

    /// The metric by which they are.
    #[must_use]
    pub fn metric(&self) -> &'static Metric {
        self.metric
    }

    /// The command that made this.
    #[must_use]
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Workloads of the common pairs, sorted.
    #[must_use]
    pub fn workloads(&self) -> &[String] {
        &self.workloads
    }

    /// Seeds of the common pairs, sorted.
    #[must_use]
    pub fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    /// Pairs (workload, seed) that every policy finished.
    #[must_use]
    pub fn num_pairs(&self) -> usize {
        self.num_pairs
    }

    /// What no schedule can beat, mean over the common pairs; none where the runs were not measured against bounds.
    #[must_use]
    pub fn lower_bounds(&self) -> Option<LowerBounds> {
        self.lower_bounds
    }

    /// Every run, as given.
    #[must_use]
    pub fn runs(&self) -> &[PolicyRun] {
        &self.runs
    }

    /// Writes the JSON file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write_json(&self, path: &Path) -> Result<(), Error> {
        atomic_file::write_json(path, self)
    }

    /// The CSV: one row for each run, in the order given; every known metric first, then other keys sorted.
    ///
    /// # Errors
    /// [`Error::Failed`] where the text cannot be made.
    pub fn csv(&self) -> Result<String, Error> {
        let known: Vec<&str> = METRICS.iter().map(|metric| metric.key).collect();
        let all: BTreeSet<&str> = self
            .runs
            .iter()
            .flat_map(|run| run.metrics.keys().map(String::as_str))
            .collect();
        let keys: Vec<&str> = known
            .iter()
            .copied()
            .chain(all.into_iter().filter(|key| !known.contains(key)))
            .collect();
        let header = ["policy", "workload", "seed"]
            .into_iter()
            .chain(keys.iter().copied());
        let rows = self.runs.iter().map(|run| {
            let mut row = vec![run.policy.clone(), run.workload.clone(), run.seed.to_string()];
            row.extend(
                keys.iter()
                    .map(|&key| run.metrics.get(key).map(f64::to_string).unwrap_or_default()),
            );
            row
        });
        csv_text(header, rows)
    }

    /// Writes the CSV file.
    ///
    /// # Errors
    /// As [`Results::csv`], and [`Error::Io`].
    pub fn write_csv(&self, path: &Path) -> Result<(), Error> {
        atomic_file::write(path, self.csv()?.as_bytes())
    }
}

/// CSV text of a header and rows; fields are quoted where they need it.
pub(crate) fn csv_text<'a>(
    header: impl Iterator<Item = &'a str>,
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<String, Error> {
    let failed = |error: String| Error::Failed(format!("the CSV cannot be made: {error}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(header)
        .map_err(|error| failed(error.to_string()))?;
    for row in rows {
        writer
            .write_record(&row)
            .map_err(|error| failed(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| failed(error.to_string()))
}

fn check_runs(runs: &[PolicyRun]) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    for run in runs {
        let name = format!("{} on {} with seed {}", run.policy, run.workload, run.seed);
        if !seen.insert((&run.policy, &run.workload, run.seed)) {
            return Err(Error::Failed(format!("{name} was run twice")));
        }
        if let Some((key, value)) = run.metrics.iter().find(|(_, value)| !value.is_finite()) {
            return Err(Error::Failed(format!("{name}: {key} is {value}")));
        }
        if let Some(value) = run
            .jct_s
            .iter()
            .find(|value| !(value.is_finite() && **value >= 0.0))
        {
            return Err(Error::Failed(format!("{name}: a JCT is {value} s")));
        }
        let whole =
            |&&(time, part): &&(f64, f64)| !(time.is_finite() && (-1e-9..=1.0 + 1e-9).contains(&part));
        if let Some((time, part)) = run.utilisation.iter().find(whole) {
            return Err(Error::Failed(format!(
                "{name}: utilisation is {part} at {time} s; it is a part of all GPUs, 0 to 1"
            )));
        }
    }
    Ok(())
}

/// Mean of the lower bounds of `runs`, if all have them.
fn mean_bounds(runs: &[&PolicyRun]) -> Option<LowerBounds> {
    let column =
        |key: &str| -> Option<Vec<f64>> { runs.iter().map(|run| run.metrics.get(key).copied()).collect() };
    Some(LowerBounds {
        avg_jct_s: mean(&column(BOUND_KEYS[0])?),
        makespan_s: mean(&column(BOUND_KEYS[1])?),
    })
}

/// Means of `runs`, and their ratio to the reference's runs on the same pairs (both in the order of pairs).
fn summarise(
    metric: &'static Metric,
    runs: &[&PolicyRun],
    reference: Option<&(&str, Vec<&PolicyRun>)>,
) -> Summary {
    let column = |runs: &[&PolicyRun], key: &str| -> Option<Vec<f64>> {
        runs.iter().map(|run| run.metrics.get(key).copied()).collect()
    };
    let metrics = METRICS
        .iter()
        .filter_map(|metric| Some((metric.key.to_string(), mean(&column(runs, metric.key)?))))
        .collect();
    let ratio_vs_reference = reference.and_then(|(name, others)| {
        let (ours, theirs) = (column(runs, metric.key)?, column(others, metric.key)?);
        let pairs: Vec<(f64, f64)> = ours.into_iter().zip(theirs).collect();
        let mut ratio = Ratio::of_pairs(&pairs)?;
        if metric.better == Better::Higher {
            let of_ratio = &pairs[..ratio.num_pairs];
            ratio.num_better = of_ratio.iter().filter(|(own, other)| own > other).count();
        }
        Some(RatioVsReference {
            policy: (*name).to_string(),
            metric: metric.key,
            ratio,
        })
    });
    Summary {
        metrics,
        ratio_vs_reference,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::metric::MAIN_METRIC;

    /// A run with one number, for tests of this crate.
    pub(crate) fn run(policy: &str, workload: &str, seed: u64, avg_jct_s: f64) -> PolicyRun {
        PolicyRun {
            policy: policy.to_string(),
            workload: workload.to_string(),
            seed,
            metrics: METRICS
                .iter()
                .map(|metric| (metric.key.to_string(), 0.5))
                .collect(),
            jct_s: (1..=50).map(|job| avg_jct_s * f64::from(job) / 25.5).collect(),
            utilisation: vec![(0.0, 0.25), (100.0, 1.0), (300.0, 0.0)],
        }
        .with(MAIN_METRIC, avg_jct_s)
    }

    impl PolicyRun {
        pub(crate) fn with(mut self, key: &str, value: f64) -> PolicyRun {
            self.metrics.insert(key.to_string(), value);
            self
        }
    }

    #[test]
    fn means_and_ratios_are_taken_over_pairs_that_every_policy_finished() {
        // fifo alone met seed 2, whose jobs are ten times as long: it must not count.
        let runs = vec![
            run("fifo", "w", 0, 100.0),
            run("fifo", "w", 1, 400.0),
            run("fifo", "w", 2, 4000.0),
            run("tree", "w", 1, 100.0),
            run("tree", "w", 0, 100.0),
        ];
        let results = Results::new("evaluate", runs, Some("fifo")).unwrap();
        let json = serde_json::to_value(&results).unwrap();
        assert_eq!(json["schema"], 1);
        assert_eq!(json["policies"]["fifo"]["avg_jct_s"], 250.0);
        assert_eq!(json["policies"]["tree"]["avg_jct_s"], 100.0);
        // Ratios 1 and 1/4, geometric mean 1/2.
        let ratio = &json["policies"]["tree"]["ratio_vs_reference"];
        assert_eq!(ratio["policy"], "fifo");
        assert!((ratio["mean"].as_f64().unwrap() - 0.5).abs() < 1e-12);
        assert!((ratio["low"].as_f64().unwrap() - 0.25).abs() < 1e-12);
        assert_eq!(json["seeds"], serde_json::json!([0, 1]));
        assert_eq!(json["workloads"], serde_json::json!(["w"]));
        assert_eq!(
            results.policies().map(|(name, _)| name).collect::<Vec<_>>(),
            ["fifo", "tree"]
        );
    }

    #[test]
    fn gaps_are_measured_pair_by_pair_against_the_bound_of_each() {
        // 100 s over a bound of 80 s is 25 %, 300 s over 100 s is 200 %; the mean of the gaps is 112.5 %.
        let bounds = |avg_jct_s| LowerBounds {
            avg_jct_s,
            makespan_s: 0.0,
        };
        let runs = vec![
            run("fifo", "w", 0, 100.0).against(bounds(80.0)),
            run("fifo", "w", 1, 300.0).against(bounds(100.0)),
        ];
        let plain = Results::new("evaluate", vec![run("fifo", "w", 0, 1.0)], None).unwrap();
        assert_eq!(plain.lower_bounds(), None);
        let results = Results::new("evaluate", runs, None).unwrap();
        let json = serde_json::to_value(&results).unwrap();
        assert!((json["policies"]["fifo"]["avg_jct_gap"].as_f64().unwrap() - 1.125).abs() < 1e-12);
        // A bound of zero gives no gap (the value is what the run came with), and half a pair of bounds is none.
        assert_eq!(json["policies"]["fifo"]["makespan_gap"], 0.5);
        assert!(json["lower_bounds"].is_null());
        let both = LowerBounds {
            avg_jct_s: 80.0,
            makespan_s: 50.0,
        };
        let runs = vec![run("fifo", "w", 0, 100.0).with("makespan_s", 60.0).against(both)];
        let results = Results::new("evaluate", runs, None).unwrap();
        assert_eq!(results.lower_bounds(), Some(both));
        let text = results.csv().unwrap();
        assert!(
            text.lines()
                .next()
                .unwrap()
                .ends_with("avg_jct_bound_s,makespan_bound_s"),
            "{text}"
        );
    }

    #[test]
    fn one_pair_writes_null_for_the_interval() {
        let runs = vec![run("a", "w", 0, 1.0), run("b", "w", 0, 2.0)];
        let json = serde_json::to_value(Results::new("evaluate", runs, Some("a")).unwrap()).unwrap();
        assert!(json["policies"]["b"]["ratio_vs_reference"]["low"].is_null());
    }

    #[test]
    fn runs_that_cannot_be_compared_are_refused() {
        let refused = |runs: Vec<PolicyRun>, reference| {
            Results::new("evaluate", runs, reference).unwrap_err().to_string()
        };
        assert!(refused(vec![], None).contains("no pair"));
        assert!(refused(vec![run("a", "w", 0, 1.0), run("b", "w", 1, 1.0)], None).contains("no pair"));
        assert!(refused(vec![run("a", "w", 0, 1.0), run("a", "w", 0, 1.0)], None).contains("twice"));
        assert!(refused(vec![run("a", "w", 0, f64::NAN)], None).contains("avg_jct_s is NaN"));
        assert!(refused(vec![run("a", "w", 0, 1.0)], Some("fifo")).contains("allowed is a"));
        let mut busy = run("a", "w", 0, 1.0);
        busy.utilisation = vec![(0.0, 12.0)];
        assert!(refused(vec![busy], None).contains("0 to 1"));
    }

    #[test]
    fn the_csv_has_one_row_for_each_run_and_quotes_names() {
        let runs = vec![
            run("a, b", "w", 0, 1.5),
            run("c", "w", 0, 2.0).with("extra_s", 9.0),
        ];
        let text = Results::new("evaluate", runs, None).unwrap().csv().unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("policy,workload,seed,avg_jct_s,avg_jct_gap,p50_jct_s"));
        assert!(lines[0].ends_with("num_jobs,extra_s"));
        assert!(lines[1].starts_with("\"a, b\",w,0,1.5,") && lines[1].ends_with(','));
        assert!(lines[2].ends_with(",9"));
    }

    #[test]
    fn another_metric_is_compared_pair_by_pair_and_more_of_some_is_better() {
        let with =
            |policy: &str, seed: u64, key: &str, value: f64| run(policy, "w", seed, 1.0).with(key, value);
        let used = |half: f64| {
            vec![
                with("a", 0, "utilisation", 0.25),
                with("a", 1, "utilisation", 0.25),
                with("b", 0, "utilisation", 0.5),
                with("b", 1, "utilisation", half),
            ]
        };
        let metric = Metric::find("utilisation").unwrap();
        let results = Results::by(metric, "evaluate", used(0.125), Some("a")).unwrap();
        let versus = results.policies["b"].ratio_vs_reference.clone().unwrap();
        // Twice in one pair and half in the other.
        assert_eq!((versus.metric, versus.ratio.num_better), ("utilisation", 1));
        assert!((versus.ratio.mean - 1.0).abs() < 1e-12);
        let table = crate::table::Table::compare(&results, &["avg_jct_s"]).to_terminal();
        assert!(
            table.contains("util vs a") && table.contains("above 1 is better"),
            "{table}"
        );
        // Nothing is so many times nothing.
        let none = Results::by(metric, "evaluate", used(0.0), Some("a")).unwrap();
        assert!(none.policies["b"].ratio_vs_reference.is_none());
    }
}
