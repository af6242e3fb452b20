//! Whole workloads for Python: made, read and written, simulated, and shown column by column.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pleach_env::JobOutcome;
use pleach_env::Seed;
use pleach_env::workload::import::{ImportOptions, import};
use pleach_env::workload::{JobSpec, Workload as Jobs};
use pleach_env::{SimConfig, SimResult, simulate_planner};
use pleach_experiments::evaluate::cluster_flag::cluster_of;
use pleach_experiments::schedule::run_of;
use pleach_experiments::{SchedulingConfig, WorkloadSource};
use pleach_scheduler::Planner;
use pleach_scheduler::PolicyError;
use pleach_scheduler::Resources;
use pleach_scheduler::Tasks;
use pleach_scheduler::Time;
use pleach_scheduler::cluster::Cluster;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::callable::offered;
use crate::errors::{guarded, of_env, of_experiment, of_problem, refused};
use crate::interrupt::{Wish, Work};
use crate::policy::Policy;
use crate::segments;

/// A cluster by file or short form as JSON, and what was assumed where it says nothing.
#[pyfunction]
pub(crate) fn cluster(py: Python<'_>, given: PathBuf) -> PyResult<(String, String)> {
    let found = py.detach(|| guarded(|| cluster_of(&given)))?;
    let (spec, assumed) = found.map_err(of_experiment)?;
    let text = serde_json::to_string(&spec).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((text, assumed.unwrap_or_default()))
}

/// Jobs and the cluster they run on.
#[pyclass(module = "pleach._pleach", frozen)]
pub(crate) struct Workload(pub(crate) Arc<Jobs>);

#[pymethods]
impl Workload {
    /// Draws the workload of a preset or an environment with this seed.
    #[staticmethod]
    fn generate(
        py: Python<'_>,
        name: String,
        num_jobs: Option<u32>,
        load: Option<f64>,
        seed: u64,
    ) -> PyResult<Workload> {
        let source = WorkloadSource {
            num_jobs,
            load,
            ..WorkloadSource::of(&name)
        };
        let made = Work::default().run(py, 1, move || {
            source.check()?;
            source.workload(&name, Seed(seed))
        })?;
        Ok(Workload(Arc::new(made.map_err(of_experiment)?.0)))
    }

    /// Reads a list of jobs; the second result is what the importer has to say. `options` are those of imports, in JSON.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf, options: &str) -> PyResult<(Workload, String)> {
        let options: ImportOptions = serde_json::from_str(options).map_err(|error| {
            refused(
                "options",
                error,
                "the options of imports",
                "help(pleach.read) names them.",
            )
        })?;
        let read = Work::default().run(py, 1, move || import(&path, &options))?;
        let (jobs, report) = read.map_err(|problem| of_problem(&problem))?;
        Ok((Workload(Arc::new(jobs)), report.to_string()))
    }

    /// The opposite of `to_json`.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Workload> {
        let jobs: Jobs = serde_json::from_str(text)
            .map_err(|error| refused("workload", error, "what to_json gave", "Was it cut short?"))?;
        jobs.validate().map_err(|problem| of_problem(&problem))?;
        Ok(Workload(Arc::new(jobs)))
    }

    /// All of it as text.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&*self.0).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Writes the jobs and, beside them, the cluster.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.write(&path))
            .map_err(|problem| of_problem(&problem))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn num_gpus(&self) -> u64 {
        self.0.cluster.num_gpus()
    }

    #[getter]
    fn offered_load(&self) -> f64 {
        self.0.offered_load()
    }

    fn __len__(&self) -> usize {
        self.0.jobs.len()
    }

    /// The cluster as JSON.
    fn cluster(&self) -> PyResult<String> {
        serde_json::to_string(&self.0.cluster).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The jobs column by column: arrays for numbers, lists for words.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (jobs, numbers) = (&self.0.jobs, self.0.columns());
        let words = |word: &dyn Fn(&JobSpec) -> String| jobs.iter().map(word).collect::<Vec<_>>();
        let tenants = &self.0.cluster.tenants;
        let columns = PyDict::new(py);
        columns.set_item("job_id", words(&|job| job.id.clone()))?;
        columns.set_item(
            "submit_s",
            numbers.submit_s.into_raw_vec_and_offset().0.into_pyarray(py),
        )?;
        columns.set_item(
            "num_gpus",
            numbers.num_gpus.into_raw_vec_and_offset().0.into_pyarray(py),
        )?;
        columns.set_item(
            "run_time_s",
            numbers.run_time_s.into_raw_vec_and_offset().0.into_pyarray(py),
        )?;
        columns.set_item(
            "estimate_s",
            numbers.estimate_s.into_raw_vec_and_offset().0.into_pyarray(py),
        )?;
        columns.set_item(
            "tenant",
            words(&|job| tenants[usize::from(job.tenant)].name.clone()),
        )?;
        columns.set_item(
            "class",
            words(&|job| self.0.classes[usize::from(job.class)].name.clone()),
        )?;
        columns.set_item("user", words(&|job| job.user.clone().unwrap_or_default()))?;
        columns.set_item("outcome", words(&|job| job.outcome.word().to_owned()))?;
        let is_more = |job: &JobSpec| {
            let tasks = job.resources.tasks;
            job.resources
                != Resources {
                    tasks,
                    ..Resources::WHOLE_GPU
                }
        };
        if jobs.iter().any(is_more) {
            let column = |value: fn(&Resources) -> f64| -> Bound<'py, PyArray1<f64>> {
                let values = jobs.iter().map(|job| value(&job.resources));
                PyArray1::from_vec(py, values.collect())
            };
            let milli = jobs.iter().map(|job| u32::from(job.resources.gpu_milli));
            columns.set_item("gpu_milli", PyArray1::from_vec(py, milli.collect()))?;
            columns.set_item("gpu_memory_gib", column(|asked| asked.gpu_memory_gib))?;
            columns.set_item("cpu_cores", column(|asked| asked.cpu_cores))?;
            columns.set_item("memory_gib", column(|asked| asked.memory_gib))?;
        }
        if jobs.iter().any(|job| !job.resources.tasks.is_any()) {
            let column = |value: fn(&Tasks) -> u32| -> Bound<'py, PyArray1<u32>> {
                let values = jobs.iter().map(|job| value(&job.resources.tasks));
                PyArray1::from_vec(py, values.collect())
            };
            columns.set_item("gpus_per_task", column(|tasks| u32::from(tasks.gpus_per_task)))?;
            columns.set_item(
                "tasks_per_node_max",
                column(|tasks| u32::from(tasks.tasks_per_node_max)),
            )?;
            columns.set_item("nodes_max", column(|tasks| u32::from(tasks.nodes_max)))?;
        }
        Ok(columns)
    }
}

/// A planner that stops when it is asked to.
struct Stoppable {
    inner: Box<dyn Planner>,
    wish: Wish,
}

impl Planner for Stoppable {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        if self.wish.is_made() {
            return Err(PolicyError::Stopped);
        }
        self.inner.plan(cluster)
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        self.inner.wake_at(cluster)
    }

    fn rests(&self) -> bool {
        self.inner.rests()
    }

    fn places_tasks(&self) -> bool {
        self.inner.places_tasks()
    }
}

/// What the simulated cluster can do, from JSON.
pub(crate) fn scheduling(text: &str) -> PyResult<SchedulingConfig> {
    let config: SchedulingConfig = serde_json::from_str(text).map_err(|error| {
        refused(
            "scheduling",
            error,
            "the keys of scheduling",
            "help(pleach.simulate) names them.",
        )
    })?;
    config.check().map_err(of_experiment)?;
    Ok(config)
}

/// Runs a policy on a workload to the end: columns of jobs and of segments, figures, and held GPUs over time.
#[pyfunction]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    workload: PyRef<'py, Workload>,
    policy: PyRef<'py, Policy>,
    settings: &str,
    seed: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let scheduling = scheduling(settings)?;
    let sim = SimConfig {
        seed,
        record_utilisation: true,
        record_segments: true,
        ..scheduling.sim(&[])
    };
    let own = Work::default();
    let spec = policy.among(&offered(&WorkloadSource::default(), &scheduling)?, &own.errands);
    spec.check(sim.capabilities).map_err(of_experiment)?;
    let mut planner = Stoppable {
        inner: spec.make_planner().map_err(of_experiment)?,
        wish: own.wish.clone(),
    };
    let jobs = Arc::clone(&workload.0);
    let played = Arc::clone(&jobs);
    let done = own.run(py, 1, move || {
        let mut result = simulate_planner(&played, &sim, &mut planner)?;
        let segments = std::mem::take(&mut result.segments);
        Ok((result, run_of(planner.name(), &played, seed, segments)))
    })?;
    let (result, run) = done.map_err(|error| policy.take_failure().unwrap_or_else(|| of_env(error)))?;
    let found = PyDict::new(py);
    let metrics = PyDict::new(py);
    for (key, value) in result.metrics.fields() {
        metrics.set_item(key, value)?;
    }
    found.set_item("metrics", metrics)?;
    let columns = outcomes(py, &jobs, &result)?;
    columns.set_item("nodes", segments::last_nodes(&run))?;
    found.set_item("jobs", columns)?;
    found.set_item("segments", segments::columns(py, &run)?)?;
    let (times, held): (Vec<f64>, Vec<f64>) = result.utilisation.into_iter().unzip();
    let utilisation = PyDict::new(py);
    utilisation.set_item("time_s", times.into_pyarray(py))?;
    utilisation.set_item("held_gpus", held.into_pyarray(py))?;
    found.set_item("utilisation", utilisation)?;
    Ok(found)
}

/// What became of the jobs, column by column.
fn outcomes<'py>(py: Python<'py>, jobs: &Jobs, result: &SimResult) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    let number = |value: fn(&JobOutcome) -> f64| -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, result.jobs.iter().map(value).collect())
    };
    let count = |value: fn(&JobOutcome) -> u32| -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_vec(py, result.jobs.iter().map(value).collect())
    };
    let ids: Vec<&str> = jobs.jobs.iter().map(|job| job.id.as_str()).collect();
    columns.set_item("job_id", ids)?;
    columns.set_item("submit_s", number(|job| job.submit_s))?;
    columns.set_item("first_start_s", number(|job| job.first_start_s))?;
    columns.set_item("finish_s", number(|job| job.finish_s))?;
    columns.set_item("jct_s", number(JobOutcome::jct_s))?;
    columns.set_item("wait_s", number(JobOutcome::wait_s))?;
    columns.set_item("slowdown", number(JobOutcome::slowdown))?;
    columns.set_item("isolated_s", number(|job| job.isolated_s))?;
    columns.set_item("held_s", number(|job| job.held_s))?;
    columns.set_item("attained_gpu_s", number(|job| job.attained_gpu_s))?;
    columns.set_item("num_gpus", count(|job| job.num_gpus))?;
    columns.set_item("num_preemptions", count(|job| job.num_preemptions))?;
    columns.set_item("num_failures", count(|job| job.num_failures))?;
    let tenants = &jobs.cluster.tenants;
    let names: Vec<&str> = result
        .jobs
        .iter()
        .map(|job| tenants[usize::from(job.tenant)].name.as_str())
        .collect();
    columns.set_item("tenant", names)?;
    let endings: Vec<&str> = result.jobs.iter().map(|job| job.outcome.word()).collect();
    columns.set_item("outcome", endings)?;
    Ok(columns)
}
