//! Small workloads for the tests of presets.

use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources};

/// A job of tenant 0 and class 0.
pub(super) fn job(id: &str, submit_s: f64, num_gpus: u32, run_time_s: f64) -> JobSpec {
    JobSpec {
        id: id.into(),
        submit: Time::from_secs_f64(submit_s),
        num_gpus,
        run_time_s,
        estimate_s: None,
        tenant: 0,
        class: 0,
        user: None,
        resources: Resources::WHOLE_GPU,
        outcome: Outcome::Unknown,
        observed: None,
    }
}

/// Two nodes of four GPUs and one class that runs everywhere at speed 1.
pub(super) fn workload(jobs: Vec<JobSpec>) -> Workload {
    let class = ModelClass {
        name: "any".into(),
        speed: vec![1.0],
        locality: LocalityFactors::NONE,
        ..ModelClass::default()
    };
    Workload {
        name: "test".into(),
        cluster: ClusterSpec::uniform(2, 4, 2),
        classes: vec![class],
        jobs,
    }
}
