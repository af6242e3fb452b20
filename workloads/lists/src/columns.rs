//! The jobs of a workload column by column, for statistics and for other languages.

use ndarray::Array1;

use super::Workload;

/// Numbers of the jobs, field by field, in the order of [`Workload::jobs`]. Every array is `[num_jobs]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// Times of submission, s, 0 or later; ascending.
    pub submit_s: Array1<f64>,
    /// GPUs that each gang needs at once.
    pub num_gpus: Array1<u32>,
    /// GPUs that each job takes up, shares of a GPU counted as such.
    pub gpus: Array1<f64>,
    /// True run times, s, above 0.
    pub run_time_s: Array1<f64>,
    /// What users asked for, s; NaN where the source does not say.
    pub estimate_s: Array1<f64>,
    /// Indices into the cluster's tenants.
    pub tenant: Array1<u16>,
    /// Indices into [`Workload::classes`].
    pub class: Array1<u16>,
}

impl Workload {
    /// The jobs column by column.
    ///
    /// ```
    /// use pleach_workloads::{GeneratorConfig, Seed, generate};
    ///
    /// let workload = generate(&GeneratorConfig::default().with(100, 0.8), Seed(1))?;
    /// let columns = workload.columns();
    /// let gpu_s = (&columns.gpus * &columns.run_time_s).sum();
    /// assert_eq!(columns.submit_s.len(), 100);
    /// assert!(gpu_s >= columns.run_time_s.sum());
    /// # Ok::<(), pleach_workloads::Error>(())
    /// ```
    #[must_use]
    pub fn columns(&self) -> Columns {
        let jobs = &self.jobs;
        Columns {
            submit_s: jobs.iter().map(|job| job.submit.as_secs_f64()).collect(),
            num_gpus: jobs.iter().map(|job| job.num_gpus).collect(),
            gpus: jobs.iter().map(|job| job.gpus()).collect(),
            run_time_s: jobs.iter().map(|job| job.run_time_s).collect(),
            estimate_s: jobs
                .iter()
                .map(|job| job.estimate_s.unwrap_or(f64::NAN))
                .collect(),
            tenant: jobs.iter().map(|job| job.tenant).collect(),
            class: jobs.iter().map(|job| job.class).collect(),
        }
    }
}
