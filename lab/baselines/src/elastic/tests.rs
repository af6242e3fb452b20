//! Small clusters with elastic jobs.

use pleach_scheduler::cluster::{Capabilities, Cluster, Submission};
use pleach_scheduler::cluster_spec::{ClusterSpec, ElasticJob, LocalityFactors, ModelClass, Resources};
use pleach_scheduler::physics::goodput::{Elastic, IterationTime};
use pleach_scheduler::{ActionKind, ClassId, Estimate, JobId, Provenance, TenantId};

/// Steps of 1 s whatever the batch up to 8 a GPU, free synchronisation, no sample wasted: k GPUs are k times as fast, up to
/// `most`.
pub(crate) fn proportional(most: u32) -> Elastic {
    Elastic {
        time: IterationTime {
            alpha_c: 1.0,
            beta_c: 1e-12,
            alpha_n: 0.0,
            beta_n: 0.0,
            alpha_r: 0.0,
            beta_r: 0.0,
            gamma: 1.0,
        },
        initial_batch: 1,
        max_batch: 8 * most,
        min_local_batch: 1,
        max_local_batch: 8,
        noise_at_start: 1e12,
        noise_at_end: 1e12,
    }
}

/// As [`proportional`], but synchronising takes so long that nothing is gained by a second GPU.
pub(crate) fn saturating(most: u32) -> Elastic {
    let plain = proportional(most);
    let time = IterationTime {
        alpha_n: 1e6,
        alpha_r: 1e6,
        ..plain.time
    };
    Elastic { time, ..plain }
}

/// Nodes of one type with a class for each profile, and a rigid class behind them; restarts are free.
pub(crate) fn elastic_cluster(num_nodes: u32, gpus_per_node: u32, profiles: &[Elastic]) -> Cluster {
    elastic_cluster_with(num_nodes, gpus_per_node, profiles, 0.0)
}

/// As [`elastic_cluster`], with a cost of a start and of a restart, s.
pub(crate) fn elastic_cluster_with(
    num_nodes: u32,
    gpus_per_node: u32,
    profiles: &[Elastic],
    restart_cost_s: f64,
) -> Cluster {
    let spec = ClusterSpec::uniform(num_nodes, gpus_per_node, num_nodes);
    let elastic = |(number, profile): (usize, &Elastic)| ModelClass {
        name: format!("elastic{number}"),
        elastic: Some(ElasticJob {
            gpus_max: 64,
            profile: (*profile).into(),
        }),
        ..ModelClass::default()
    };
    let mut classes: Vec<ModelClass> = profiles.iter().enumerate().map(elastic).collect();
    classes.push(ModelClass {
        name: "rigid".into(),
        locality: LocalityFactors::PHILLY,
        ..ModelClass::default()
    });
    let capabilities = Capabilities {
        restart_cost_s,
        start_cost_s: restart_cost_s,
        ..Capabilities::DEFAULT.with(ActionKind::Preempt)
    };
    Cluster::new(&spec, &classes, capabilities).unwrap()
}

/// Submits a job of a class.
pub(crate) fn submit_class(cluster: &mut Cluster, class: u16, num_gpus: u32, estimate_s: f64) -> JobId {
    let request = Submission {
        tenant: TenantId(0),
        class: ClassId(class),
        num_gpus,
        estimate_s: Estimate {
            value: estimate_s,
            provenance: Provenance::Oracle,
        },
        resources: Resources::WHOLE_GPU,
    };
    cluster.submit(request).unwrap()
}

/// GPUs that each job holds, by id.
pub(crate) fn held_gpus(cluster: &Cluster) -> Vec<u32> {
    cluster.jobs().iter().map(|job| job.num_held).collect()
}
