//! Forecasts of starts for Python: what `pleach when` does.

use pleach_experiments::when::{Ask, asked, list_of, recorded, when as forecast};
use pleach_experiments::{Error, SchedulingConfig};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::compare::read;
use crate::errors::of_experiment;
use crate::interrupt::Work;

/// What is asked of a list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asks {
    list: String,
    job: Ask,
    at_s: Option<f64>,
    method: String,
    policy: Option<String>,
    scheduling: SchedulingConfig,
    seed: u64,
}

/// The answer that `pleach when --json` writes.
#[pyfunction]
pub(crate) fn when(py: Python<'_>, asks: &str) -> PyResult<String> {
    let asks: Asks = read("job", asks, "help(pleach.when) names them.")?;
    asks.scheduling.check().map_err(of_experiment)?;
    let own = Work::default();
    let watcher = own.wish.watcher();
    let work = move || -> Result<String, Error> {
        let (workload, sim, policy) = list_of(&asks.list, None, asks.policy.as_deref(), &asks.scheduling)?;
        let (workload, _) = recorded(workload, &sim, &policy)?;
        let asked = asked(&workload, (&sim, &policy), asks.seed, &asks.method);
        let answer = forecast(&asked, asks.at_s, &asks.job, &watcher)?;
        serde_json::to_string(&answer).map_err(|error| Error::Failed(error.to_string()))
    };
    own.run(py, 0, work)?.map_err(of_experiment)
}
