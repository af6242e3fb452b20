//! A learned order: a sum of weighted logarithms, so its exponential is a product of powers that a person can read.
//!
//! A formula is a file: versioned JSON with the weights by name and the rules of the deal. What is not named weighs nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use pleach_scheduler::cluster::{Cluster, Job, JobState};
use pleach_scheduler::portable_math::ln;
use pleach_scheduler::{ClassId, ConfigError, GpuTypeId, JobId, PolicyError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::belief::Belief;
use super::once::Once;
use super::order::{Order, service_s};
use super::rules::DealingRules;
use super::sizes::Step;
use super::trust::{Trust, Watch};
use crate::settings::check;

/// Version of the file.
pub const FORMULA_VERSION: u32 = 1;

/// Times below this hardly differ, s. *Assumed.*
const FLOOR_S: f64 = 60.0;
/// As [`FLOOR_S`], for the feature that tells only long jobs apart, s. *Assumed.*
const LONG_S: f64 = 3600.0;

/// What a weight stands before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexFeature {
    /// Name in the file.
    pub name: &'static str,
    /// In words and symbols.
    pub means: &'static str,
}

const fn feature(name: &'static str, means: &'static str) -> IndexFeature {
    IndexFeature { name, means }
}

/// Features of a job, the same on all GPU types.
const OF_JOB: usize = 14;
/// Features of a job on a type.
const OF_TYPE: usize = 11;
/// Features of an elastic job's step on a type.
const OF_STEP: usize = 6;

/// All features: first those of the job, then those of the job on a type, then those of an elastic job's step there.
pub const INDEX_FEATURES: [IndexFeature; OF_JOB + OF_TYPE + OF_STEP] = [
    feature("service", "ln(service for each GPU + 60 s)"),
    feature("long_service", "ln(service for each GPU + 1 h)"),
    feature("gang", "ln(GPUs of the gang)"),
    feature("age", "ln(time since it came + 60 s)"),
    feature("wait", "ln(time without GPUs + 60 s)"),
    feature("gang_load", "ln(GPUs asked for / GPUs) x ln(GPUs of the gang)"),
    feature(
        "service_load",
        "ln(GPUs asked for / GPUs) x ln(service for each GPU + 60 s)",
    ),
    feature("restart", "ln(1 + cost of a restart / 1 s)"),
    feature("rest", "ln(believed rest + 60 s)"),
    feature("rest_trust", "trust x ln(believed rest + 60 s)"),
    feature("service_trust", "trust x ln(service for each GPU + 60 s)"),
    feature("gang_trust", "trust x ln(GPUs of the gang)"),
    feature("belief", "ln(believed cost + 60 s)"),
    feature(
        "belief_load",
        "ln(GPUs asked for / GPUs) x ln(believed cost + 60 s)",
    ),
    feature("speed", "ln(speed on the type / best speed)"),
    feature("advantage", "ln(advantage of the class on the type)"),
    feature("scarce", "ln(GPUs / GPUs of the type)"),
    feature("stays", "1 if it runs on the type"),
    feature(
        "stays_run",
        "ln(time since its start + 60 s) if it runs on the type",
    ),
    feature(
        "stays_restart",
        "ln(1 + cost of a restart / 1 s) if it runs on the type",
    ),
    feature("moves", "1 if it runs on another type"),
    feature(
        "speed_service",
        "ln(speed on the type / best speed) x ln(service for each GPU + 60 s)",
    ),
    feature(
        "speed_load",
        "ln(speed on the type / best speed) x ln(GPUs asked for / GPUs)",
    ),
    feature(
        "speed_gang",
        "ln(speed on the type / best speed) x ln(GPUs of the gang)",
    ),
    feature("beside", "1 if it shares its GPUs on the type"),
    feature("size", "ln(GPUs of the step / GPUs that it asked for)"),
    feature(
        "marginal",
        "ln(what the step adds for a GPU / what a GPU of the gang asked for does)",
    ),
    feature("grows", "1 if the step is beyond what it holds"),
    feature(
        "size_load",
        "ln(GPUs asked for / GPUs) x ln(GPUs of the step / GPUs that it asked for)",
    ),
    feature(
        "size_service",
        "ln(GPUs of the step / GPUs that it asked for) x ln(service for each GPU + 60 s)",
    ),
    feature(
        "marginal_load",
        "ln(GPUs asked for / GPUs) x ln(what the step adds for a GPU / what a GPU of the gang asked for does)",
    ),
];

/// A learned order and the rules of its deals, as the file has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Formula {
    /// Version of the file, [`FORMULA_VERSION`].
    pub version: u32,
    /// How GPUs are dealt.
    pub rules: DealingRules,
    /// Weights by name of the feature, -100 to 100; what is left out weighs nothing.
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
    pub fn is_in(path: &Path) -> Result<bool, ConfigError> {
        let value: serde_json::Value = read(path)?;
        Ok(value.get("weights").is_some())
    }

    /// What a file holds, as it stands there.
    ///
    /// # Errors
    /// As [`Formula::is_in`]; a key that stands twice.
    pub fn value_in(path: &Path) -> Result<serde_json::Value, ConfigError> {
        read::<Once>(path).map(|once| once.0)
    }

    /// Reads a whole formula.
    ///
    /// # Errors
    /// As [`Formula::value_in`]; what is no formula of this version.
    pub fn load(path: &Path) -> Result<Formula, ConfigError> {
        let formula = serde_json::from_value(Formula::value_in(path)?);
        let formula: Formula = formula.map_err(|error| refuse(path, error.to_string()))?;
        formula.validate(&path.display().to_string())?;
        Ok(formula)
    }

    /// Checks version, names and ranges.
    ///
    /// # Errors
    /// The first that is not as it must be.
    pub fn validate(&self, name: &str) -> Result<(), ConfigError> {
        let ok = self.version == FORMULA_VERSION;
        check(
            name,
            "version",
            self.version,
            ok,
            "1, the version of this program",
        )?;
        for (key, weight) in &self.weights {
            let known = INDEX_FEATURES.iter().any(|feature| feature.name == key);
            let names = INDEX_FEATURES.map(|feature| feature.name).join(", ");
            check(name, "weights", key, known, &format!("one of {names}"))?;
            let ok = (-100.0..=100.0).contains(weight);
            check(name, &format!("weights.{key}"), weight, ok, "-100 to 100")?;
        }
        let weighs = self.weights.values().any(|weight| *weight != 0.0);
        let allowed = "one weight other than 0 or more: without any all jobs are alike";
        check(name, "weights", "none", weighs, allowed)?;
        self.rules.validate(name)
    }

    /// The formula as a person reads it, the heaviest term first.
    #[must_use]
    pub fn text(&self) -> String {
        let mut terms: Vec<(&IndexFeature, f64)> = INDEX_FEATURES
            .iter()
            .filter_map(|feature| Some((feature, *self.weights.get(feature.name)?)))
            .filter(|(_, weight)| *weight != 0.0)
            .collect();
        terms.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        let mut text = String::from("score =\n");
        for (feature, weight) in terms {
            let sign = if weight < 0.0 { '-' } else { '+' };
            let _ = writeln!(text, "  {sign} {:<8.3} {}", weight.abs(), feature.means);
        }
        let rules = &self.rules;
        let _ = write!(
            text,
            "dealt at events at least {:.0} s apart and every {:.0} s; two share a GPU where their speeds add up to more than \
             {:.2};\na gang leaves a loose seat that has cost it {:.2} restarts; nobody is stopped before it ran for {:.0} restarts",
            rules.deal_min_s, rules.deal_max_s, rules.pack_above, rules.reseat_loss, rules.stint
        );
        text
    }
}

/// Largest file that is read, bytes: thirty weights, each on a line.
const FILE_MAX: u64 = 1 << 20;

fn refuse(path: &Path, reason: String) -> ConfigError {
    ConfigError {
        key: "formula".into(),
        value: path.display().to_string(),
        allowed: "a file that `pleach index` wrote".into(),
        hint: format!("{reason}."),
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
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
    weights: [f64; INDEX_FEATURES.len()],
    /// `ln` of the GPUs that all jobs ask for over the cluster's.
    load: f64,
    /// `ln` of speed over best speed and of the advantage. `[class][type]`
    of_classes: Vec<[f64; 2]>,
    /// `ln` of the cluster's GPUs over the type's. `[type]`
    scarce: Vec<f64>,
    watch: Watch,
    belief: Belief,
    /// Whether a feature with trust weighs anything.
    reads_trust: bool,
    /// Whether a feature with the belief weighs anything.
    reads_belief: bool,
}

impl FormulaOrder {
    /// The order of a formula.
    #[must_use]
    pub fn new(formula: &Formula) -> FormulaOrder {
        let weight = |feature: IndexFeature| formula.weights.get(feature.name).copied().unwrap_or(0.0);
        let weighs = |feature: &&IndexFeature| weight(**feature) != 0.0;
        let mut weighing = INDEX_FEATURES.iter().filter(weighs);
        let reads_belief = weighing.clone().any(|feature| feature.name.starts_with("belief"));
        FormulaOrder {
            weights: INDEX_FEATURES.map(weight),
            reads_trust: reads_belief || weighing.any(|feature| feature.name.ends_with("_trust")),
            reads_belief,
            belief: Belief::default(),
            load: 0.0,
            of_classes: Vec::new(),
            scarce: Vec::new(),
            watch: Watch::default(),
        }
    }

    /// The same with what is known of estimates: for one deal on tables in which no job has ended.
    #[must_use]
    pub fn trusting(mut self, trust: Trust) -> FormulaOrder {
        self.watch.trust = trust;
        self.belief.look(trust);
        self
    }

    fn sum(&self, first: usize, features: &[f64]) -> f64 {
        let weights = &self.weights[first..first + features.len()];
        // One order of the sum, so that it is the same everywhere.
        let products = weights.iter().zip(features).map(|(weight, value)| weight * value);
        products.fold(0.0, |sum, product| sum + product)
    }

    /// Looks up once what many jobs share.
    fn look_at_classes(&mut self, cluster: &Cluster, num_gpus: f64) {
        let kinds = || (0..cluster.num_types()).map(|kind| GpuTypeId(kind as u8));
        self.of_classes.clear();
        for number in 0..cluster.classes().len() {
            let class = ClassId(number as u16);
            let best = cluster.best_speed_of(class);
            let of_types = kinds().map(|kind| {
                [
                    ln(cluster.class(class).speed[kind.index()] / best),
                    ln(cluster.type_advantage(class, kind).max(1e-9)),
                ]
            });
            self.of_classes.extend(of_types);
        }
        self.scarce = kinds()
            .map(|kind| ln(num_gpus / f64::from(cluster.num_gpus_of(kind).max(1))))
            .collect();
    }

    fn job_features(&self, cluster: &Cluster, id: JobId) -> [f64; OF_JOB] {
        let job = cluster.job(id);
        let service_s = service_s(cluster, id);
        let age_s = (cluster.now() - job.submit).as_secs_f64();
        let wait_s = (age_s - held_s(cluster, job)).max(0.0);
        let (service, gang) = (ln(service_s + FLOOR_S), ln(f64::from(job.request.num_gpus)));
        let rest = ln(job.remaining_s_at(cluster.now()) + FLOOR_S);
        let trust = self.watch.trust.value();
        let belief = match self.reads_belief {
            true => ln(self.belief.cost_s(job.work_s(), job.executed_s_at(cluster.now())) + FLOOR_S),
            false => 0.0,
        };
        [
            service,
            ln(service_s + LONG_S),
            gang,
            ln(age_s + FLOOR_S),
            ln(wait_s + FLOOR_S),
            self.load * gang,
            self.load * service,
            ln(1.0 + cluster.restart_cost_s(id)),
            rest,
            trust * rest,
            trust * service,
            trust * gang,
            belief,
            self.load * belief,
        ]
    }

    fn type_features(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> [f64; OF_TYPE] {
        let job = cluster.job(id);
        let [speed, advantage] =
            self.of_classes[job.request.class.index() * cluster.num_types() + kind.index()];
        let runs = job.state == JobState::Running;
        let stays = runs && job.gpu_type == kind;
        // Logarithms are what a deal of many jobs spends its time on, and most of them do not run here.
        let if_stays = |value: &dyn Fn() -> f64| if stays { value() } else { 0.0 };
        let by_speed = |value: &dyn Fn() -> f64| if speed == 0.0 { 0.0 } else { speed * value() };
        [
            speed,
            advantage,
            self.scarce[kind.index()],
            if_stays(&|| 1.0),
            if_stays(&|| ln((cluster.now() - job.run_start).as_secs_f64() + FLOOR_S)),
            if_stays(&|| ln(1.0 + cluster.restart_cost_s(id))),
            f64::from(u8::from(runs && !stays)),
            by_speed(&|| ln(service_s(cluster, id) + FLOOR_S)),
            by_speed(&|| self.load),
            by_speed(&|| ln(f64::from(job.request.num_gpus))),
            if_stays(&|| f64::from(u8::from(job.is_sharing))),
        ]
    }

    fn step_features(&self, cluster: &Cluster, id: JobId, step: &Step) -> [f64; OF_STEP] {
        let asked = cluster.job(id).request.num_gpus;
        let size = ln(f64::from(step.num_gpus) / f64::from(asked));
        let marginal = ln(step.marginal);
        [
            size,
            marginal,
            f64::from(u8::from(step.grows)),
            self.load * size,
            size * ln(service_s(cluster, id) + FLOOR_S),
            self.load * marginal,
        ]
    }

    /// The features of a job on a type, in the order of [`INDEX_FEATURES`]; those of a step are 0 where none is given.
    #[must_use]
    pub fn features(
        &self,
        cluster: &Cluster,
        id: JobId,
        kind: GpuTypeId,
        step: Option<&Step>,
    ) -> [f64; INDEX_FEATURES.len()] {
        let mut features = [0.0; INDEX_FEATURES.len()];
        features[..OF_JOB].copy_from_slice(&self.job_features(cluster, id));
        features[OF_JOB..OF_JOB + OF_TYPE].copy_from_slice(&self.type_features(cluster, id, kind));
        if let Some(step) = step {
            features[OF_JOB + OF_TYPE..].copy_from_slice(&self.step_features(cluster, id, step));
        }
        features
    }
}

/// Time for which a job has held GPUs until now, s.
fn held_s(cluster: &Cluster, job: &Job) -> f64 {
    let present_s = match job.state {
        JobState::Running => (cluster.now() - job.run_start).as_secs_f64(),
        _ => 0.0,
    };
    job.held_s + present_s
}

impl Order for FormulaOrder {
    fn look(&mut self, cluster: &Cluster, _movable: &[JobId]) -> Result<(), PolicyError> {
        let held = cluster.running().map(|id| u64::from(cluster.job(id).num_held));
        let asked = cluster.num_pending_gpus() + held.sum::<u64>();
        let num_gpus = f64::from(cluster.num_gpus());
        self.load = ln((asked.max(1) as f64) / num_gpus);
        self.look_at_classes(cluster, num_gpus);
        if self.reads_trust {
            self.watch.look(cluster);
        }
        if self.reads_belief {
            self.belief.look(self.watch.trust);
        }
        Ok(())
    }

    fn of_job(&self, cluster: &Cluster, id: JobId) -> f64 {
        self.sum(0, &self.job_features(cluster, id))
    }

    fn of_type(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> f64 {
        self.sum(OF_JOB, &self.type_features(cluster, id, kind))
    }

    fn of_step(&self, cluster: &Cluster, id: JobId, _kind: GpuTypeId, step: &Step) -> f64 {
        self.sum(OF_JOB + OF_TYPE, &self.step_features(cluster, id, step))
    }

    fn terms(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> Vec<(&'static str, f64)> {
        let features = self.job_features(cluster, id).into_iter();
        let features = features.chain(self.type_features(cluster, id, kind));
        let weighed = INDEX_FEATURES.iter().zip(self.weights).zip(features);
        weighed
            .map(|((feature, weight), value)| (feature.means, weight * value))
            .collect()
    }
}
