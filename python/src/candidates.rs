//! What candidates are about, as columns of numbers: beside an observation, and beside a reward.

use numpy::{PyArray1, PyArrayMethods};
use pleach_env::{Batch, Env, VecEnv};
use pleach_scheduler::actions::CANDIDATES;
use pleach_scheduler::candidate::Candidate;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Names of the columns of a candidate.
const NAMES: [&str; 5] = ["kind", "job", "gpu_type", "node", "num_gpus"];
/// The number of what a candidate is not about.
const NONE: i64 = -1;

/// A candidate in numbers: its kind, then job, GPU type, first node, GPUs.
pub(crate) type Told = [i64; 5];

/// Where there is no candidate.
pub(crate) const NOTHING: Told = [NONE, NONE, NONE, NONE, 0];

/// Names of kinds of candidates, in the order of their numbers.
pub(crate) fn kinds() -> Vec<&'static str> {
    CANDIDATES.iter().map(|row| row.name).collect()
}

fn told(env: &Env, candidate: &Candidate) -> Option<Told> {
    let (set, cluster) = (env.candidates()?, env.cluster()?);
    let slices = set.placement(candidate);
    let node = slices.first().map(|slice| slice.node.index());
    let on_type = node.map(|node| cluster.nodes()[node].gpu_type);
    let number = |number: Option<usize>| number.map_or(NONE, |number| number as i64);
    Some([
        candidate.kind as i64,
        number(candidate.job.map(|job| job.index())),
        number(on_type.or(candidate.reserved_type).map(|kind| kind.index())),
        number(node),
        slices.iter().map(|slice| i64::from(slice.num_gpus())).sum(),
    ])
}

/// The candidate that an action is, in an environment.
pub(crate) fn of_action(env: &Env, action: usize) -> Told {
    let candidate = env.candidates().and_then(|set| set.get(action));
    candidate.and_then(|one| told(env, one)).unwrap_or(NOTHING)
}

/// What was decided in each environment, `[N]`, with what the step committed.
pub(crate) fn decided<'py>(py: Python<'py>, all: &[Told], batch: &Batch) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (place, name) in NAMES.into_iter().enumerate() {
        let values = all.iter().map(|one| one[place]).collect();
        columns.set_item(name, PyArray1::from_vec(py, values))?;
    }
    let committed = batch.gained.iter().map(|one| one.excess_run_s).collect();
    columns.set_item("committed_s", PyArray1::from_vec(py, committed))?;
    Ok(columns)
}

/// All present candidates of each environment, `[N, C]`.
pub(crate) fn offered<'py>(py: Python<'py>, envs: &VecEnv, width: usize) -> PyResult<Bound<'py, PyDict>> {
    let mut all = vec![NOTHING; envs.envs().len() * width];
    for (rows, env) in all.chunks_mut(width).zip(envs.envs()) {
        let candidates = env.candidates().into_iter().flat_map(|set| set.iter());
        for (row, candidate) in rows.iter_mut().zip(candidates) {
            *row = told(env, candidate).unwrap_or(NOTHING);
        }
    }
    let columns = PyDict::new(py);
    for (place, name) in NAMES.into_iter().enumerate() {
        let values = all.iter().map(|one| one[place]).collect();
        let shape = [envs.envs().len(), width];
        columns.set_item(name, PyArray1::from_vec(py, values).reshape(shape)?)?;
    }
    Ok(columns)
}
