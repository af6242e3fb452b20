//! A function of Python as a policy: it is asked at every decision point, with an observation like those of environments, or with
//! those of N decisions.
//!
//! Long work plays in threads of its own; functions are asked on the thread of the caller, where what he set for his thread holds:
//! PyTorch's number of threads and `no_grad`, NumPy's `errstate`.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use numpy::{PyArray1, PyArrayMethods};
use pleach_experiments::{SchedulingConfig, WorkloadSource};
use pleach_scheduler::Guards;
use pleach_scheduler::PolicyError;
use pleach_scheduler::candidate::MAX_CANDIDATES;
use pleach_scheduler::features::View;
use pleach_scheduler::key_weight::KeyWeight;
use pleach_scheduler::observation::ObservationRef;
use pleach_scheduler::policy::{CandidateConfig, ChoiceRule, DecisionPoint, Needs, Policy, TieKey};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{of_experiment, refused};
use crate::interrupt::Errands;

/// What the function raised, kept for its caller: errors of policies are small and say no more than that.
pub(crate) type Failure = Arc<Mutex<Option<PyErr>>>;

/// Gets the scores of a decision from beside other lists.
pub(crate) type Seat = Arc<dyn Fn(Seen) -> Result<Vec<f32>, PolicyError> + Send + Sync>;

/// What functions choose among on these workloads; on lists of jobs where there are none.
pub(crate) fn offered(
    workloads: &WorkloadSource,
    scheduling: &SchedulingConfig,
) -> PyResult<CandidateConfig> {
    workloads.candidates(scheduling).map_err(of_experiment)
}

/// A function `observation -> scores [C] or index`.
#[derive(Clone)]
pub(crate) struct Callable {
    pub(crate) name: String,
    pub(crate) function: Arc<Py<PyAny>>,
    /// Whether it takes observations of N decisions.
    pub(crate) takes_many: bool,
    /// Gets its scores through this, where its list plays beside others.
    pub(crate) seat: Option<Seat>,
    /// Where its calls are sent to run on the caller's thread; none where that is this thread.
    pub(crate) errands: Option<Errands>,
    /// What its observations show.
    pub(crate) view: &'static View,
    /// The candidates that it was given; none for what is offered where it plays.
    pub(crate) own: Option<Needs>,
    /// The candidates that it chooses among.
    pub(crate) needs: Needs,
    pub(crate) tie_key: TieKey,
    pub(crate) key_weights: Vec<KeyWeight>,
    pub(crate) guards: Guards,
    pub(crate) unopposed_starts: bool,
    pub(crate) failure: Failure,
}

impl Callable {
    /// The same where these are offered, asked on the thread that runs the errands.
    pub(crate) fn among(mut self, offered: &CandidateConfig, errands: &Errands) -> Callable {
        self.needs = self.own.unwrap_or_else(|| offered.needs());
        self.errands = Some(errands.clone());
        self
    }

    /// Scores of the candidates of each decision.
    pub(crate) fn ask_all(&self, py: Python<'_>, seen: Vec<Seen>) -> PyResult<Vec<Vec<f32>>> {
        if !self.takes_many {
            return seen.into_iter().map(|seen| self.ask(py, seen)).collect();
        }
        let masks: Vec<Vec<bool>> = seen.iter().map(|seen| seen.mask.clone()).collect();
        let num = masks.len();
        let answer = self
            .function
            .call1(py, (Seen::observations(seen, py)?,))?
            .into_bound(py);
        let array = py.import("numpy")?.call_method1("asarray", (&answer,))?;
        let shape: Vec<usize> = array.getattr("shape")?.extract()?;
        let allowed =
            || format!("shape {shape:?} for {num} decisions, of which a row or an index each is needed");
        if shape.first() != Some(&num) || shape.len() > 2 {
            return Err(self.refused(&allowed()));
        }
        let rows = masks.iter().enumerate().map(|(row, mask)| {
            let own = array.get_item(row)?;
            // An index is a whole number: a row of one candidate has an axis.
            let own = if shape.len() == 1 {
                own.call_method0("item")?
            } else {
                own
            };
            self.scores_of(py, &own, mask)
        });
        rows.collect()
    }

    /// Scores of the candidates of one decision.
    fn ask(&self, py: Python<'_>, seen: Seen) -> PyResult<Vec<f32>> {
        let mask = seen.mask.clone();
        let answer = self.function.call1(py, (seen.observation(py)?,))?.into_bound(py);
        self.scores_of(py, &answer, &mask)
    }

    /// Scores of the candidates that there are, from an index or from as many numbers.
    fn scores_of(&self, py: Python<'_>, answer: &Bound<'_, PyAny>, mask: &[bool]) -> PyResult<Vec<f32>> {
        let mut scores = vec![0.0; mask.len()];
        if let Ok(index) = answer.extract::<i64>() {
            let chosen = usize::try_from(index).ok();
            let Some(chosen) = chosen.filter(|index| mask.get(*index) == Some(&true)) else {
                return Err(self.refused(&format!("{index}, which is not admissible")));
            };
            scores[chosen] = 1.0;
            return Ok(scores);
        }
        let array = py.import("numpy")?.call_method1("asarray", (answer, "float32"))?;
        let Ok(array) = array.cast::<PyArray1<f32>>() else {
            return Err(self.refused(&format!("shape {}", array.getattr("shape")?)));
        };
        let array = array.to_vec()?;
        if array.len() != MAX_CANDIDATES && array.len() != scores.len() {
            return Err(self.refused(&format!("{} numbers", array.len())));
        }
        for ((score, found), admissible) in scores.iter_mut().zip(array).zip(mask) {
            // Minus infinity is how many libraries say that something is masked.
            *score = match admissible {
                true if found.is_nan() => {
                    return Err(self.refused("NaN for an admissible candidate"));
                }
                true => found.clamp(f32::MIN, f32::MAX),
                false => f32::MIN,
            };
        }
        Ok(scores)
    }

    /// What `ask` gets in Python on the thread of the caller, or here where no other thread is set. A failure there goes to the
    /// caller.
    pub(crate) fn on_the_callers_thread<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Callable, Python<'_>) -> PyResult<T> + Send + 'static,
    ) -> Result<PyResult<T>, PolicyError> {
        let Some(errands) = &self.errands else {
            return Ok(Python::attach(|py| ask(self, py)));
        };
        let (send, answer) = channel();
        let asked = self.clone();
        let errand = move |py: Python<'_>| {
            // Of a function that raises the caller hears at once, and the work by itself.
            let _ = send.send(ask(&asked, py)?);
            Ok(())
        };
        let sent = errands.send(Box::new(errand));
        // Where the caller has left, the result of the work is not wanted either.
        sent.map_err(|_| PolicyError::Stopped)?;
        answer.recv().map(Ok).map_err(|_| PolicyError::Stopped)
    }

    /// The scores of a decision, from beside other lists where this is one of several.
    fn answer(&self, seen: Seen) -> Result<PyResult<Vec<f32>>, PolicyError> {
        if let Some(seat) = &self.seat {
            return seat(seen).map(Ok);
        }
        let one = move |own: &Callable, py: Python<'_>| Ok(own.ask_all(py, vec![seen])?.remove(0));
        self.on_the_callers_thread(one)
    }

    fn refused(&self, found: &str) -> PyErr {
        PyValueError::new_err(format!(
            "policy {} returned {found}: allowed is the index of a candidate whose mask is 1, or {MAX_CANDIDATES} scores of \
             which the largest among those wins",
            self.name
        ))
    }
}

impl Policy for Callable {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn choice_rule(&self) -> ChoiceRule<'_> {
        ChoiceRule {
            key_weights: &self.key_weights,
            tie_key: self.tie_key,
            guards: self.guards,
            unopposed_starts: self.unopposed_starts,
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        let seen = Seen::of(point.observation, self.view);
        match seen.map_or_else(|error| Ok(Err(error)), |seen| self.answer(seen))? {
            Ok(found) => {
                scores.copy_from_slice(&found);
                Ok(())
            }
            Err(error) => {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
                Err(PolicyError::Foreign)
            }
        }
    }
}

/// An observation as environments of a view show it: rows beyond the present candidates are zero and masked.
pub(crate) struct Seen {
    global: Vec<f32>,
    candidates: Vec<f32>,
    /// Of the candidates that there are.
    mask: Vec<bool>,
    num_features: usize,
}

impl Seen {
    fn of(seen: ObservationRef<'_>, view: &View) -> PyResult<Seen> {
        // Outside of environments more columns are written than any view has.
        let (num_global, num_features) = (view.num_context, view.num_row);
        if seen.width < num_features || seen.global.len() < num_global {
            let shown = format!("{} numbers of a candidate", seen.width);
            let hint = format!("The function reads the columns {}.", view.name);
            return Err(refused("observation", shown, num_features, &hint));
        }
        let mut candidates = vec![0.0; MAX_CANDIDATES * num_features];
        let rows = seen.candidates.chunks_exact(seen.width.max(1));
        for (to, from) in candidates.chunks_exact_mut(num_features).zip(rows) {
            to.copy_from_slice(&from[..num_features]);
        }
        Ok(Seen {
            global: seen.global[..num_global].to_vec(),
            candidates,
            mask: seen.mask.to_vec(),
            num_features,
        })
    }

    /// As a dict of arrays with a first axis of N.
    fn observations(all: Vec<Seen>, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let (num, num_features) = (all.len(), all.first().map_or(0, |seen| seen.num_features));
        let num_global = all.first().map_or(0, |seen| seen.global.len());
        let (mut global, mut candidates, mut mask) =
            (Vec::new(), Vec::new(), vec![0_i8; num * MAX_CANDIDATES]);
        for (seen, mask) in all.into_iter().zip(mask.chunks_exact_mut(MAX_CANDIDATES)) {
            global.extend(seen.global);
            candidates.extend(seen.candidates);
            for (to, from) in mask.iter_mut().zip(seen.mask) {
                *to = i8::from(from);
            }
        }
        let dict = PyDict::new(py);
        dict.set_item(
            "global",
            PyArray1::from_vec(py, global).reshape([num, num_global])?,
        )?;
        let candidates = PyArray1::from_vec(py, candidates);
        dict.set_item(
            "candidates",
            candidates.reshape([num, MAX_CANDIDATES, num_features])?,
        )?;
        dict.set_item(
            "mask",
            PyArray1::from_vec(py, mask).reshape([num, MAX_CANDIDATES])?,
        )?;
        Ok(dict)
    }

    /// As a dict of arrays.
    fn observation(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let mut mask = vec![0_i8; MAX_CANDIDATES];
        for (to, from) in mask.iter_mut().zip(self.mask) {
            *to = i8::from(from);
        }
        let dict = PyDict::new(py);
        dict.set_item("global", PyArray1::from_vec(py, self.global))?;
        let candidates = PyArray1::from_vec(py, self.candidates);
        dict.set_item(
            "candidates",
            candidates.reshape([MAX_CANDIDATES, self.num_features])?,
        )?;
        dict.set_item("mask", PyArray1::from_vec(py, mask))?;
        Ok(dict)
    }
}
