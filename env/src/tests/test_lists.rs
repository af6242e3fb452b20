//! Small lists of jobs for tests.

use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass};
use pleach_workloads::{JobSpec, Workload};

pub(crate) fn class_of(num_types: usize) -> ModelClass {
    ModelClass {
        name: "any".into(),
        speed: vec![1.0; num_types],
        locality: LocalityFactors::NONE,
        ..ModelClass::default()
    }
}

pub(crate) fn job(id: &str, submit_s: f64, num_gpus: u32, run_time_s: f64) -> JobSpec {
    JobSpec::new(id, Time::from_secs_f64(submit_s), num_gpus, run_time_s)
}

/// The jobs on two nodes of four GPUs.
pub(crate) fn workload(jobs: Vec<JobSpec>) -> Workload {
    Workload {
        name: "test".into(),
        cluster: ClusterSpec::uniform(2, 4, 2),
        classes: vec![class_of(1)],
        jobs,
    }
}
