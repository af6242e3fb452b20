//! Policies for Python: heuristics and planners by name, networks and trees by file, functions of Python.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pleach_env::Seed;
use pleach_env::workload::generate::{GeneratorConfig, generate};
use pleach_experiments::{DOOR, PolicySpec};
use pleach_scheduler::Guards;
use pleach_scheduler::candidate::{CandidateSet, MAX_CANDIDATES};
use pleach_scheduler::cluster::{Capabilities, Cluster};
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::observation::ObservationRef;
use pleach_scheduler::policy::{CandidateConfig, DecisionPoint, TieKey};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::callable::{Callable, Failure};
use crate::errors::{guarded, of_experiment, refused};
use crate::figures::{self, FeatureRow};
use crate::interrupt::Errands;

/// A policy of any kind.
#[pyclass(module = "pleach._pleach", frozen)]
pub(crate) struct Policy {
    pub(crate) spec: PolicySpec,
    /// The function, where it is one of Python.
    function: Option<Callable>,
    /// One that is ready to be asked.
    ready: Mutex<Option<Box<dyn pleach_scheduler::policy::Policy>>>,
}

impl Policy {
    fn of(spec: PolicySpec, function: Option<Callable>) -> Policy {
        Policy {
            spec,
            function,
            ready: Mutex::new(None),
        }
    }

    /// The exception of a function of Python, if it raised one since this was last asked.
    pub(crate) fn take_failure(&self) -> Option<PyErr> {
        let failure = &self.function.as_ref()?.failure;
        failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The policy as it plays where these are offered: a function chooses among them unless it was given others.
    pub(crate) fn among(&self, offered: &CandidateConfig, errands: &Errands) -> PolicySpec {
        match &self.function {
            None => self.spec.clone(),
            Some(function) => {
                let function = function.clone().among(offered, errands);
                PolicySpec::made(self.spec.name(), move || Box::new(function.clone()))
            }
        }
    }

    /// The function as it plays where these are offered, where it is one that takes N decisions.
    pub(crate) fn of_many(&self, offered: &CandidateConfig, errands: &Errands) -> Option<Callable> {
        let function = self.function.as_ref().filter(|function| function.takes_many)?;
        Some(function.clone().among(offered, errands))
    }

    /// Calls `ask` with a policy that is ready; one that panics is not asked again.
    pub(crate) fn with_ready<T>(
        &self,
        ask: impl FnOnce(&mut dyn pleach_scheduler::policy::Policy) -> Result<T, pleach_scheduler::PolicyError>,
    ) -> PyResult<T> {
        let taken = self.ready.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut policy = match taken {
            Some(policy) => policy,
            None => self.spec.policy().map_err(of_experiment)?,
        };
        let answer = guarded(|| ask(policy.as_mut()))?;
        *self.ready.lock().unwrap_or_else(PoisonError::into_inner) = Some(policy);
        answer.map_err(|error| {
            let raised = self.take_failure();
            raised.unwrap_or_else(|| PyValueError::new_err(error.to_string()))
        })
    }
}

#[pymethods]
impl Policy {
    /// Opens a heuristic or a planner by name, or a network or a tree by path.
    #[staticmethod]
    fn load(place: &str) -> PyResult<Policy> {
        let spec = DOOR.open_one(place).map_err(of_experiment)?;
        Ok(Policy::of(spec, None))
    }

    /// A function of Python as a policy, of one decision or of N of them, that chooses among what is offered where it plays, among the candidates of these
    /// settings (JSON), or among those of a policy that is there, whose order of equal scores it has too where none is named.
    #[staticmethod]
    fn of_callable(
        name: &str,
        function: Py<PyAny>,
        takes_many: bool,
        candidates: Option<&str>,
        tie_key: Option<&str>,
        like: Option<PyRef<'_, Policy>>,
        columns: &str,
    ) -> PyResult<Policy> {
        let view = FeatureSchema::current().view_named(columns).map_err(|known| {
            let hint = "pleach.PleachEnv(columns=...) shows the same.";
            refused("columns", columns, known, hint)
        })?;
        let like = like
            .map(|like| like.spec.policy().map_err(of_experiment))
            .transpose()?;
        let known = "index, arrival, shortest-estimate, smallest-gpu-time";
        let (tie_key, key_weights): (TieKey, _) = match (tie_key, &like) {
            (None, Some(like)) => {
                let rule = like.choice_rule();
                (rule.tie_key, rule.key_weights.to_vec())
            }
            (key, _) => {
                let key = key.unwrap_or("index");
                let tie_key = serde_json::from_value(key.into())
                    .map_err(|_| refused("tie_key", key, known, "index is usual."))?;
                (tie_key, Vec::new())
            }
        };
        let rule = like.as_ref().map(|like| like.choice_rule());
        let guards = rule.map_or(Guards::NONE, |rule| rule.guards);
        let unopposed_starts = rule.is_some_and(|rule| rule.unopposed_starts);
        let own = match (like, candidates) {
            (Some(like), _) => Some(like.needs()),
            (None, Some(text)) => Some(candidates_of(text)?.needs()),
            (None, None) => None,
        };
        let function = Callable {
            name: name.to_owned(),
            function: Arc::new(function),
            takes_many,
            seat: None,
            errands: None,
            view,
            own,
            needs: own.unwrap_or_else(|| CandidateConfig::default().needs()),
            tie_key,
            key_weights,
            guards,
            unopposed_starts,
            failure: Failure::default(),
        };
        let copy = function.clone();
        let spec = PolicySpec::made(name, move || Box::new(copy.clone()));
        Ok(Policy::of(spec, Some(function)))
    }

    /// The same policy under another name.
    fn named(&self, name: &str) -> Policy {
        Policy::of(self.spec.clone().named(Some(name)), self.function.clone())
    }

    #[getter]
    fn name(&self) -> &str {
        self.spec.name()
    }

    /// heuristic, planner, network, tree, formula or callable.
    #[getter]
    fn kind(&self) -> &'static str {
        let kinds = [
            ("heuristic", self.spec.heuristic_name().is_some()),
            ("planner", self.spec.is_planner()),
            ("network", self.spec.is_network()),
            ("tree", self.spec.tree_policy().is_some()),
            ("formula", self.spec.formula_policy().is_some()),
        ];
        let known = kinds.into_iter().find(|(_, is)| *is);
        known.map_or("callable", |(kind, _)| kind)
    }

    /// Whether it asks for more than the numbers of an observation.
    #[getter]
    fn reads_cluster(&self) -> bool {
        self.spec.reads_cluster()
    }

    /// The tree or the formula in words; none for what is neither.
    #[getter]
    fn text(&self) -> Option<String> {
        self.spec.text()
    }

    /// The tree or the formula as its file; none for what is neither.
    #[getter]
    fn json(&self) -> Option<String> {
        let formula = || {
            self.spec
                .formula_policy()
                .map(|policy| policy.formula().to_json())
        };
        let tree = self.spec.tree_policy().map(|policy| policy.tree().to_json());
        tree.or_else(formula)
    }

    /// Scores of one observation `[C]`; masked ones are minus infinity.
    fn scores<'py>(
        &self,
        py: Python<'py>,
        global: PyReadonlyArray1<'py, f32>,
        candidates: PyReadonlyArray2<'py, f32>,
        mask: PyReadonlyArray1<'py, bool>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        if self.spec.reads_cluster() {
            return Err(refused(
                "policy",
                self.spec.name(),
                "a tree, or a network that corrects no heuristic",
                "It looks at the cluster, which an observation does not hold: give the environment instead.",
            ));
        }
        let view = check_widths(global.len(), candidates.shape(), mask.len())?;
        let (global, candidates, mask) = (global.as_slice()?, candidates.as_slice()?, mask.as_slice()?);
        let rows = mask
            .iter()
            .rposition(|admissible| *admissible)
            .map_or(1, |last| last + 1);
        let point = DecisionPoint {
            cluster: nowhere()?,
            candidates: &CandidateSet::default(),
            observation: ObservationRef {
                global,
                candidates: &candidates[..rows * view.num_row],
                width: view.num_row,
                mask: &mask[..rows],
            },
        };
        let mut scores = vec![0.0; rows];
        self.with_ready(|policy| policy.score(point, &mut scores))?;
        scores.resize(mask.len(), 0.0);
        Ok(PyArray1::from_vec(py, masked(scores, mask)))
    }
}

/// Candidates of settings in JSON.
fn candidates_of(text: &str) -> PyResult<CandidateConfig> {
    let candidates: CandidateConfig = serde_json::from_str(text).map_err(|error| {
        let hint = "help(pleach.Policy.of) says what candidates are.";
        refused("candidates", error, "the keys of candidates", hint)
    })?;
    candidates
        .validate()
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(candidates)
}

/// The view that is as wide as these arrays.
fn check_widths(num_global: usize, candidates: &[usize], num_mask: usize) -> PyResult<&'static View> {
    let hint = "An observation is as observation_space says.";
    let views = FeatureSchema::current().views;
    let widths = |of: fn(&View) -> usize| -> String {
        let mut widths: Vec<usize> = views.iter().map(of).collect();
        widths.dedup();
        let widths: Vec<String> = widths.iter().map(ToString::to_string).collect();
        widths.join(" or ")
    };
    let allowed = widths(|view| view.num_context);
    if views.iter().all(|view| view.num_context != num_global) {
        return Err(refused("length of global", num_global, allowed, hint));
    }
    let &[num_candidates, num_features] = candidates else {
        return Err(refused("dimensions of candidates", candidates.len(), 2, hint));
    };
    let is_so_wide = |view: &&View| (view.num_context, view.num_row) == (num_global, num_features);
    let Some(view) = views.iter().find(is_so_wide) else {
        let allowed = widths(|view| view.num_row);
        return Err(refused("width of candidates", num_features, allowed, hint));
    };
    if !(1..=MAX_CANDIDATES).contains(&num_candidates) {
        let allowed = format!("1 to {MAX_CANDIDATES}");
        return Err(refused("number of candidates", num_candidates, allowed, hint));
    }
    if num_mask != num_candidates {
        return Err(refused("length of mask", num_mask, num_candidates, hint));
    }
    Ok(view)
}

/// Minus infinity where a candidate is masked.
pub(crate) fn masked(mut scores: Vec<f32>, mask: &[bool]) -> Vec<f32> {
    for (score, admissible) in scores.iter_mut().zip(mask) {
        if !admissible {
            *score = f32::NEG_INFINITY;
        }
    }
    scores
}

/// What the columns of arrays of these widths are: of the cluster, then of a candidate.
#[pyfunction]
pub(crate) fn columns_of(num_global: usize, num_features: usize) -> PyResult<[Vec<FeatureRow>; 2]> {
    let view = check_widths(num_global, &[1, num_features], 1)?;
    Ok(figures::features(FeatureSchema::current(), view))
}

/// A cluster for policies that do not look at it.
fn nowhere() -> PyResult<&'static Cluster> {
    static NOWHERE: OnceLock<Option<Cluster>> = OnceLock::new();
    let made = NOWHERE.get_or_init(|| {
        let workload = generate(&GeneratorConfig::default().with(1, 0.8), Seed(0)).ok()?;
        Cluster::new(&workload.cluster, &workload.classes, Capabilities::DEFAULT).ok()
    });
    made.as_ref()
        .ok_or_else(|| PyRuntimeError::new_err("the default cluster cannot be made"))
}

/// Names of heuristics and of planners.
#[pyfunction]
pub(crate) fn policy_names() -> (Vec<&'static str>, Vec<&'static str>) {
    let heuristics = pleach_scheduler::heuristics::names().to_vec();
    (heuristics, DOOR.planners().map(|entry| entry.info.name).collect())
}
