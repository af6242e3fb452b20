//! What an evaluation found: one run for each (policy, workload, seed), their means, and the files that keep them.
//!
//! A comparison is only made over the pairs (workload, seed) that *every* policy finished, so that no mean rests on an
//! easier set than its neighbour's. Refused: numbers that are not finite, the same run twice, and policies without a
//! common pair.

mod csv_file;
mod run;
mod summary;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pleach_env::bound::LowerBounds;
use serde::Serialize;

use self::csv_file::csv_of_runs;
pub(crate) use self::csv_file::csv_text;
pub(crate) use self::run::GAP_KEYS;
pub use self::run::PolicyRun;
use self::run::check_runs;
pub use self::summary::{GainVsReference, RatioVsReference, Summary};
use self::summary::{mean_bounds, summarise};
use crate::error::Error;
use crate::evaluate::metric::{MAIN, METRICS, Metric};
use crate::run_folder::atomic_file;

/// Version of the JSON layout.
pub(crate) const SCHEMA: u32 = 1;

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
    /// By policy: whose decisions its own are, and why; see [`crate::evaluate::stand_in`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    stand_ins: BTreeMap<String, String>,
    /// By policy: the one that it decided alike with in every run.
    #[serde(skip)]
    alike: BTreeMap<String, String>,
    /// What was played, in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    world: Option<String>,
    #[serde(skip)]
    reference: Option<String>,
    #[serde(skip)]
    known: &'static [Metric],
    #[serde(skip)]
    metric: &'static Metric,
    #[serde(skip)]
    order: Vec<String>,
    #[serde(skip)]
    runs: Vec<PolicyRun>,
    #[serde(skip)]
    is_drawn: bool,
}

/// The line under a table whose rows of policies that decided alike are folded, `sjf-share as sjf` and so on; none without any.
#[must_use]
pub fn folded(rows: impl Iterator<Item = String>) -> Option<String> {
    let rows: Vec<String> = rows.collect();
    (!rows.is_empty()).then(|| format!("not shown, for they decided alike: {}", rows.join(", ")))
}

/// By policy: the first one, the reference before all, whose runs are the same in every job.
fn alike<'a>(
    order: &[String],
    reference: Option<&str>,
    of: impl Fn(&str) -> Vec<&'a PolicyRun>,
) -> BTreeMap<String, String> {
    let mut firsts: Vec<(&str, Vec<&PolicyRun>)> =
        reference.map(|name| (name, of(name))).into_iter().collect();
    let mut found = BTreeMap::new();
    for name in order.iter().filter(|name| reference != Some(name.as_str())) {
        let own = of(name);
        let is_same = |(_, runs): &&(&str, Vec<&PolicyRun>)| {
            let mut pairs = runs.iter().zip(&own);
            pairs.all(|(one, other)| one.metrics == other.metrics && one.jct_s == other.jct_s)
        };
        match firsts.iter().find(is_same) {
            Some((first, _)) => drop(found.insert(name.clone(), (*first).to_owned())),
            None => firsts.push((name, own)),
        }
    }
    found
}

impl Results {
    /// Gathers `runs` of `command`, comparing against `reference` if it is given.
    ///
    /// # Errors
    /// [`Error::Problem`] where the reference is not among the policies; [`Error::Failed`] where runs cannot be compared.
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
        Results::of_world((METRICS, metric), command, runs, reference)
    }

    /// As [`Results::by`], with the metrics of a world and the one that is compared by.
    ///
    /// # Errors
    /// As [`Results::new`].
    pub fn of_world(
        (known, metric): (&'static [Metric], &'static Metric),
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
                    summarise(known, metric, &of(name), reference_runs.as_ref()),
                )
            })
            .collect();
        let alike = alike(&order, reference, of);
        let lower_bounds = order.iter().find_map(|name| mean_bounds(&of(name)));
        let workloads: BTreeSet<&str> = common.iter().map(|pair| pair.0).collect();
        let seeds: BTreeSet<u64> = common.iter().map(|pair| pair.1).collect();
        Ok(Results {
            stand_ins: BTreeMap::new(),
            alike,
            schema: SCHEMA,
            command: command.to_string(),
            workloads: workloads.into_iter().map(str::to_string).collect(),
            seeds: seeds.into_iter().collect(),
            num_pairs: common.len(),
            lower_bounds,
            policies,
            reference: reference.map(str::to_string),
            known,
            metric,
            order,
            runs,
            is_drawn: true,
            world: None,
        })
    }

    /// The same, with whether more seeds would give other runs; they would unless this says no.
    #[must_use]
    pub fn drawn(self, is_drawn: bool) -> Results {
        Results { is_drawn, ..self }
    }

    /// The same, with what was played.
    #[must_use]
    pub fn in_world(self, words: String) -> Results {
        Results {
            world: Some(words),
            ..self
        }
    }

    /// What was played, in a line, where it is known.
    #[must_use]
    pub fn world(&self) -> Option<&str> {
        self.world.as_deref()
    }

    /// The same, with the policies that decide as another one does.
    #[must_use]
    pub fn with_stand_ins(self, stand_ins: BTreeMap<String, String>) -> Results {
        Results { stand_ins, ..self }
    }

    /// Whose decisions those of a policy are, and why, where they are another's: `as sjf: no preemption`.
    #[must_use]
    pub fn stand_in(&self, policy: &str) -> Option<&str> {
        self.stand_ins.get(policy).map(String::as_str)
    }

    /// A policy as tables and plots call it: its name, with whose decisions its own are where they are another's.
    #[must_use]
    pub fn label(&self, policy: &str) -> String {
        let other = self.stand_in(policy);
        other.map_or_else(|| policy.to_string(), |other| format!("{policy} ({other})"))
    }

    /// Policies of which tables and plots have a row: of those that decided alike in every run the reference, or else the
    /// first.
    pub fn shown(&self) -> impl Iterator<Item = (&str, &Summary)> {
        self.policies()
            .filter(|(name, _)| !self.alike.contains_key(*name))
    }

    /// The policy whose row stands for one that decided alike in every run.
    #[must_use]
    pub fn decides_as(&self, policy: &str) -> Option<&str> {
        self.alike.get(policy).map(String::as_str)
    }

    /// Which rows are left out for that, in a line; none where none is.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let all = self.order.iter().filter_map(|name| {
            let other = self.alike.get(name)?;
            Some(match self.stand_in(name).and_then(|said| said.split_once(": ")) {
                Some((other, missing)) => format!("{name} {other} ({missing})"),
                None => format!("{name} as {other}"),
            })
        });
        folded(all)
    }

    /// Whether more seeds would give other runs.
    #[must_use]
    pub(crate) fn is_drawn(&self) -> bool {
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

    /// All metrics of the world, in the order of tables.
    #[must_use]
    pub fn known(&self) -> &'static [Metric] {
        self.known
    }

    /// The values of a metric, list by list over the common pairs; empty where a run lacks it.
    #[must_use]
    pub fn values(&self, policy: &str, key: &str) -> Vec<f64> {
        let is_common = |run: &&PolicyRun| {
            run.policy == policy && self.workloads.contains(&run.workload) && self.seeds.contains(&run.seed)
        };
        let runs = self.runs.iter().filter(is_common);
        let values: Option<Vec<f64>> = runs.map(|run| run.metrics.get(key).copied()).collect();
        values.unwrap_or_default()
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

    /// What no schedule can beat, mean over the common pairs; none where no runs were measured against bounds.
    #[must_use]
    pub(crate) fn lower_bounds(&self) -> Option<LowerBounds> {
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
    /// [`Error::Problem`].
    pub fn write_json(&self, path: &Path) -> Result<(), Error> {
        atomic_file::write_json(path, self)
    }

    /// The CSV: one row for each run, in the order given; every known metric first, then other keys sorted.
    ///
    /// # Errors
    /// [`Error::Failed`] where the text cannot be made.
    pub fn csv(&self) -> Result<String, Error> {
        csv_of_runs(self.known, &self.runs)
    }

    /// Writes the CSV file.
    ///
    /// # Errors
    /// As [`Results::csv`], and [`Error::Problem`].
    pub fn write_csv(&self, path: &Path) -> Result<(), Error> {
        atomic_file::write(path, self.csv()?.as_bytes())
    }
}
