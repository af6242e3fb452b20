//! How elastic and rigid jobs are believed to scale, held to the cluster.

use crate::elastic::tests::{elastic_cluster, proportional, submit_class};
use pleach_dealing::scaling::Paces;
use pleach_scheduler::GpuTypeId;
use pleach_scheduler::physics::goodput::Elastic;

#[test]
fn an_elastic_job_is_believed_to_run_at_the_rate_at_which_the_cluster_runs_it() {
    let mut cluster = elastic_cluster(2, 4, &[Elastic::from_name("cifar10").unwrap()]);
    let id = submit_class(&mut cluster, 0, 2, 1000.0);
    let scaling = Paces::default().scaling(&cluster, id);
    let kind = GpuTypeId(0);
    assert!(
        (scaling.rate(kind, 2, 1) - 1.0).abs() < 1e-12,
        "what it asked for"
    );
    for (nodes, num_gpus) in [(1, 1), (1, 3), (2, 2), (2, 8)] {
        let mut slices = pleach_scheduler::cluster::Placement::new();
        for node in 0..nodes {
            let gpus = (1_u64 << (num_gpus / nodes)) - 1;
            let node = pleach_scheduler::NodeId(node);
            slices.push(pleach_scheduler::cluster::Slice { node, gpus });
        }
        let found = scaling.rate(kind, num_gpus, nodes);
        let rate = cluster.job_facts(id, &slices).rate;
        assert!(
            (found - rate).abs() < 1e-12,
            "{num_gpus} on {nodes}: {found} {rate}"
        );
    }
}

#[test]
fn a_rigid_job_runs_on_its_gang_or_not_at_all() {
    // Classes: 0 is elastic, 1 rigid.
    let mut cluster = elastic_cluster(2, 4, &[proportional(16)]);
    let id = submit_class(&mut cluster, 1, 3, 1000.0);
    let scaling = Paces::default().scaling(&cluster, id);
    let rates = [2, 3, 4].map(|num_gpus| scaling.rate_tight(GpuTypeId(0), num_gpus));
    assert_eq!(rates, [0.0, 1.0, 0.0]);
    assert!(scaling.is_rigid() && scaling.rate(GpuTypeId(0), 3, 2) < 1.0);
}
