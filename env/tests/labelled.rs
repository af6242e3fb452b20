//! Jobs of lists that are worked by hand, with the labels that sites give them.

use pleach_env::workload::{JobSpec, Observed, Workload};
use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources, Tasks};

/// A job of so many GPUs, `on_node` of them on each node, with its partition or queue and its quality of service or class.
pub fn job(
    number: usize,
    (submit_s, num_gpus, on_node, run_s): (f64, u32, u32, f64),
    (partition, qos): (&str, &str),
) -> JobSpec {
    JobSpec {
        observed: Some(Box::new(Observed {
            start: Time::from_secs_f64(submit_s),
            partition: partition.into(),
            qos: qos.into(),
            ..Observed::default()
        })),
        resources: Resources {
            tasks: Tasks::of(on_node as u8),
            ..Resources::WHOLE_GPU
        },
        ..JobSpec::new(number.to_string(), Time::from_secs_f64(submit_s), num_gpus, run_s)
    }
}

/// Jobs on so many nodes of eight GPUs.
pub fn list(num_nodes: u32, jobs: impl Iterator<Item = JobSpec>) -> Workload {
    Workload {
        name: "made".into(),
        cluster: ClusterSpec::uniform(num_nodes, 8, num_nodes),
        classes: vec![ModelClass::default()],
        jobs: jobs.collect(),
    }
}
