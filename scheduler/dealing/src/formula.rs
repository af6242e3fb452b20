//! A learned order: a sum of weighted logarithms, so its exponential is a product of powers that a person can read.
//!
//! A formula is a file: versioned JSON with the weights by name of the column ([`deal_schema`]), the definitions of the columns that
//! weigh something, and the rules of the deal. What is not named weighs nothing. Version 1 has no definitions and is read too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::features::Feature;
use pleach_scheduler::settings::Settings as _;
use pleach_scheduler::{GpuTypeId, JobId, PolicyError, Problem};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::columns::{self, ESTIMATES, Stage, deal_schema, numbers_of};
use super::facts::Facts;
use super::order::Order;
use super::rules::DealingRules;
use super::sizes::Step;
use super::trust::Trust;
use super::unique_keys::UniqueKeys;
use crate::settings::{DEFAULT_HINT, check};

/// Version of the file that is written.
const FORMULA_VERSION: u32 = 2;
/// The version before files listed what they read.
const WITHOUT_READS: u32 = 1;

/// A learned order and the rules of its deals, as the file has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Formula {
    /// Version of the file, 1 or 2.
    pub version: u32,
    /// The definitions of the columns that weigh something, from version 2 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    /// How GPUs are dealt.
    pub rules: DealingRules,
    /// Weights by name of the column, -100 to 100; what is left out weighs nothing.
    pub weights: BTreeMap<String, f64>,
    /// How it came about, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
}

impl Formula {
    /// Whether a file looks like a formula: an object with `weights`, which no tree has.
    ///
    /// # Errors
    /// A file that cannot be read, that is larger than any formula, or that is no JSON.
    pub fn is_in(path: &Path) -> Result<bool, Problem> {
        let value: serde_json::Value = read(path)?;
        Ok(value.get("weights").is_some())
    }

    /// What a file holds, as it stands there.
    ///
    /// # Errors
    /// As [`Formula::is_in`]; a key that stands twice.
    pub fn value_in(path: &Path) -> Result<serde_json::Value, Problem> {
        read::<UniqueKeys>(path).map(|once| once.0)
    }

    /// A formula of these weights, for this program's columns.
    #[must_use]
    pub fn of(rules: DealingRules, weights: BTreeMap<String, f64>, origin: &str) -> Formula {
        let mut formula = Formula {
            version: FORMULA_VERSION,
            reads: Vec::new(),
            rules,
            weights,
            origin: origin.into(),
        };
        let read = formula.weighing().filter_map(|name| deal_schema().named(name));
        formula.reads = read.map(Feature::line).collect();
        formula
    }

    /// Names of the columns that weigh something.
    fn weighing(&self) -> impl Iterator<Item = &str> {
        let weights = self.weights.iter().filter(|(_, weight)| **weight != 0.0);
        weights.map(|(name, _)| name.as_str())
    }

    /// Checks version, names, definitions and ranges.
    ///
    /// # Errors
    /// The first that is not as it must be.
    pub fn validate(&self, name: &str) -> Result<(), Problem> {
        let ok = (WITHOUT_READS..=FORMULA_VERSION).contains(&self.version);
        check(
            name,
            "version",
            self.version,
            ok,
            "1 or 2, the versions that this program reads",
        )?;
        for (key, weight) in &self.weights {
            deal_schema()
                .check_name(key)
                .map_err(|allowed| Problem::new(format!("{name}.weights"), key, allowed, NAMES_HINT))?;
            let ok = (-100.0..=100.0).contains(weight);
            check(name, &format!("weights.{key}"), weight, ok, "-100 to 100")?;
        }
        self.check_reads(name)?;
        let weighs = self.weights.values().any(|weight| *weight != 0.0);
        let allowed = "one weight other than 0 or more: without any all jobs are alike";
        check(name, "weights", "none", weighs, allowed)?;
        self.rules.check_at(&format!("{name}.rules"), DEFAULT_HINT)
    }

    /// Columns of another definition are other columns.
    fn check_reads(&self, name: &str) -> Result<(), Problem> {
        let listed = format!("{} definitions", self.reads.len());
        if self.version == WITHOUT_READS {
            let allowed = "none in version 1; from version 2 on those of the columns that weigh something";
            return check(name, "reads", listed, self.reads.is_empty(), allowed);
        }
        let differences = deal_schema().differences(&self.reads, self.weighing());
        let allowed = format!(
            "those of the columns that weigh something, as this program has them:\n{}",
            differences.join("\n")
        );
        check(name, "reads", listed, differences.is_empty(), &allowed)
    }

    /// The formula as a person reads it, the heaviest term first.
    #[must_use]
    pub fn text(&self) -> String {
        let mut terms: Vec<(&Feature, f64)> = deal_schema()
            .of_rows()
            .filter_map(|feature| Some((feature, *self.weights.get(feature.name)?)))
            .filter(|(_, weight)| *weight != 0.0)
            .collect();
        terms.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        let mut text = String::from("score =\n");
        for (feature, weight) in terms {
            let sign = if weight < 0.0 { '-' } else { '+' };
            let _ = writeln!(text, "  {sign} {:<8.3} {}", weight.abs(), feature.doc);
        }
        let rules = &self.rules;
        let _ = write!(
            text,
            "dealt at events at least {:.0} s apart and every {:.0} s; two share a GPU where their speeds add up to more than \
             {:.2};\na gang leaves a loose seat that has cost it {:.2} restarts; no job is stopped before it ran for {:.0} restarts",
            rules.deal_min_s, rules.deal_max_s, rules.pack_above, rules.reseat_loss, rules.stint
        );
        text
    }
}

const NAMES_HINT: &str = "`pleach policies --features` lists the columns of a deal";

/// Largest file that is read, bytes: thirty weights and definitions, each on a line.
const FILE_MAX: u64 = 1 << 20;

fn refuse(path: &Path, reason: String) -> Problem {
    Problem::new(
        "formula",
        path.display(),
        "a file that `pleach index` wrote",
        format!("{reason}."),
    )
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Problem> {
    let refuse = |reason: String| refuse(path, reason);
    let file = File::open(path).map_err(|error| refuse(error.to_string()))?;
    let mut text = String::new();
    let size = file.take(FILE_MAX + 1).read_to_string(&mut text);
    match size {
        Ok(size) if size as u64 > FILE_MAX => Err(refuse(format!("it is larger than {FILE_MAX} bytes"))),
        Ok(_) => serde_json::from_str(&text).map_err(|error| refuse(error.to_string())),
        Err(error) => Err(refuse(error.to_string())),
    }
}

/// A formula ready to score.
#[derive(Clone, Debug)]
pub struct FormulaOrder {
    /// Weights of each stage's columns, in their order.
    of_job: Vec<f64>,
    of_type: Vec<f64>,
    of_step: Vec<f64>,
    pub(crate) facts: Facts,
}

impl FormulaOrder {
    /// The order of a formula.
    #[must_use]
    pub fn new(formula: &Formula) -> FormulaOrder {
        let name = |number| deal_schema().joined_name(number);
        let weight = |number| formula.weights.get(name(number)).copied().unwrap_or(0.0);
        let weights = |stage| numbers_of(stage).map(weight).collect();
        FormulaOrder {
            of_job: weights(Stage::Job),
            of_type: weights(Stage::OnType),
            of_step: weights(Stage::Step),
            facts: Facts::reading(|what| {
                let mut columns = ESTIMATES.iter().enumerate();
                columns.any(|(number, read)| what.contains(read) && weight(number) != 0.0)
            }),
        }
    }

    /// The same with what is known of estimates: for one deal on tables in which no job has ended.
    #[must_use]
    pub fn trusting(mut self, trust: Trust) -> FormulaOrder {
        self.facts = self.facts.trusting(trust);
        self
    }
}

/// One order of the sum, so that it is the same everywhere.
fn sum(weights: &[f64], columns: &[f64]) -> f64 {
    let products = weights.iter().zip(columns).map(|(weight, value)| weight * value);
    products.fold(0.0, |sum, product| sum + product)
}

impl Order for FormulaOrder {
    fn look(&mut self, cluster: &Cluster, _movable: &[JobId]) -> Result<(), PolicyError> {
        self.facts.look(cluster);
        Ok(())
    }

    fn of_job(&self, cluster: &Cluster, id: JobId) -> f64 {
        sum(&self.of_job, &columns::read_job(&self.facts.of_job(cluster, id)))
    }

    fn of_type(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> f64 {
        sum(
            &self.of_type,
            &columns::read_type(&self.facts.of_type(cluster, id, kind)),
        )
    }

    fn of_step(&self, cluster: &Cluster, id: JobId, _kind: GpuTypeId, step: &Step) -> f64 {
        let facts = self.facts.of_step(cluster, id, step);
        sum(&self.of_step, &columns::read_step(&facts))
    }

    fn terms(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> Vec<(&'static str, f64)> {
        let of_job = columns::read_job(&self.facts.of_job(cluster, id));
        let of_type = columns::read_type(&self.facts.of_type(cluster, id, kind));
        let parts = [
            (Stage::Job, &self.of_job, of_job.as_slice()),
            (Stage::OnType, &self.of_type, &of_type),
        ];
        let terms = parts.into_iter().flat_map(|(stage, weights, values)| {
            let weighed = numbers_of(stage).zip(weights).zip(values);
            weighed.map(|((number, weight), value)| (deal_schema().features[number].doc, weight * value))
        });
        terms.collect()
    }
}
