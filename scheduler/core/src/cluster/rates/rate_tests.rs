//! What links, inputs and elasticity do to the rate of a job in the cluster, by hand.

use crate::cluster::*;
use crate::cluster_spec::{ElasticJob, LocalityFactors, Resources};
use crate::estimate::{Estimate, Provenance};
use crate::ids::NodeId;
use crate::ids::{ClassId, TenantId};
use crate::physics::goodput::Elastic;
use crate::physics::sensitivity::Sensitivity;
use crate::physics::sizes::Sizes;

fn cluster(spec: &ClusterSpec, class: ModelClass) -> Cluster {
    Cluster::new(spec, &[class], Capabilities::DEFAULT).unwrap()
}

fn start(cluster: &mut Cluster, num_gpus: u32, resources: Resources, slices: &[(u32, u64)]) -> JobId {
    let request = Submission {
        tenant: TenantId(0),
        class: ClassId(0),
        num_gpus,
        estimate_s: Estimate {
            value: 100.0,
            provenance: Provenance::Oracle,
        },
        resources,
    };
    let id = cluster.submit(request).unwrap();
    let slices = slices.iter().map(|(node, gpus)| Slice {
        node: NodeId(*node),
        gpus: *gpus,
    });
    cluster.start(id, slices.collect());
    cluster.check();
    id
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
}

#[test]
fn cores_beyond_the_fair_share_speed_a_hungry_job_up_and_planners_may_grant_them() {
    // 4 GPUs, 12 cores, 64 GiB: a fair share is 3 cores and 16 GiB.
    let mut spec = ClusterSpec::uniform(1, 4, 1);
    (spec.node_groups[0].cpu_cores, spec.node_groups[0].memory_gib) = (12.0, 64.0);
    let class = ModelClass {
        sensitivity: Some(Sensitivity {
            cores: vec![1.0, 3.0, 9.0],
            memory_gib: vec![16.0],
            speed: vec![0.4, 1.0, 2.2],
            storage: None,
        }),
        ..ModelClass::default()
    };
    let mut cluster = cluster(&spec, class);
    let fair = start(&mut cluster, 1, Resources::WHOLE_GPU, &[(0, 0b1)]);
    close(cluster.job(fair).rate, 1.0);
    let asked = Resources {
        cpu_cores: 6.0,
        ..Resources::WHOLE_GPU
    };
    let hungry = start(&mut cluster, 1, asked, &[(0, 0b10)]);
    close(cluster.job(hungry).rate, 1.6);
    assert_eq!(cluster.nodes()[0].cpu_milli_free, 6000);
    // A planner gives another job of no request two cores: bilinear, 0.7.
    let request = cluster.job(fair).request;
    let id = cluster.submit(request).unwrap();
    let granted = cluster.number_shape(Shape {
        cpu_milli: 2000,
        ..Shape::PLAIN
    });
    let slice = Slice {
        node: NodeId(0),
        gpus: 0b100,
    };
    cluster.start_with(id, [slice].into_iter().collect(), granted.unwrap());
    cluster.check();
    close(cluster.job(id).rate, 0.7);
    assert_eq!(cluster.nodes()[0].cpu_milli_free, 4000);
    cluster.preempt(id);
    cluster.finish(hungry);
    cluster.check();
    assert_eq!(cluster.nodes()[0].cpu_milli_free, 12_000);
}

#[test]
fn a_job_with_a_table_of_sizes_runs_at_the_rate_of_its_size_and_pays_for_its_nodes_as_others_do() {
    // Two GPUs are 1.8 times as fast as one, four 3 times; three are two and an idle one. On more nodes than needed half is left.
    let sizes = Sizes::new(&[(1, 1.0), (2, 1.8), (4, 3.0)]).unwrap();
    let class = ModelClass {
        elastic: Some(ElasticJob {
            gpus_max: 4,
            profile: sizes.into(),
        }),
        locality: LocalityFactors {
            more_nodes: 0.5,
            cross_rack: 0.25,
        },
        ..ModelClass::default()
    };
    let mut cluster = cluster(&ClusterSpec::uniform(2, 4, 2), class);
    for (asked, slices, rate) in [
        (1, vec![(0, 0b1)], 1.0),
        (1, vec![(0, 0b11)], 1.8),
        (1, vec![(0, 0b111)], 1.8),
        (1, vec![(0, 0b1111)], 3.0),
        (1, vec![(0, 0b1), (1, 0b1)], 0.9),
        (2, vec![(0, 0b1)], 1.0 / 1.8),
        (2, vec![(0, 0b11)], 1.0),
        (2, vec![(0, 0b11), (1, 0b11)], 0.5 * 3.0 / 1.8),
    ] {
        let id = start(&mut cluster, asked, Resources::WHOLE_GPU, &slices);
        close(cluster.job(id).rate, rate);
        cluster.finish(id);
    }
    // What has no size may not be asked for; where nothing fits it cannot run.
    let request = Submission {
        num_gpus: 3,
        ..cluster.job(JobId(0)).request
    };
    assert!(cluster.submit(request).is_err());
}

#[test]
fn an_elastic_job_runs_at_its_goodput_on_whatever_it_gets() {
    // Steps of 1 s whatever the batch up to 8 a GPU, synchronisation free, noise so large that no sample is wasted: the
    // goodput is proportional to the largest batch, 8 K.
    let profile = Elastic::proportional(2);
    let class = ModelClass {
        elastic: Some(ElasticJob {
            gpus_max: 4,
            profile: profile.into(),
        }),
        ..ModelClass::default()
    };
    let mut cluster = cluster(&ClusterSpec::uniform(1, 8, 1), class);
    let one = start(&mut cluster, 1, Resources::WHOLE_GPU, &[(0, 0b1)]);
    let two = start(&mut cluster, 1, Resources::WHOLE_GPU, &[(0, 0b110)]);
    close(cluster.job(one).rate, 1.0);
    assert!(
        (cluster.job(two).rate - 2.0).abs() < 1e-6,
        "{}",
        cluster.job(two).rate
    );
    cluster.advance(Time::from_secs_f64(10.0));
    assert_eq!(cluster.job(two).attained_gpu_s_at(cluster.now()), 20.0);
    assert_eq!(cluster.tenant(TenantId(0)).used_gpus(), 3.0);
    // A resize is a preemption and a start, at the cost of a restart.
    cluster.preempt(two);
    let slice = Slice {
        node: NodeId(0),
        gpus: 0b10,
    };
    cluster.start(two, [slice].into_iter().collect());
    cluster.check();
    let finish_s = cluster.job(two).expected_finish.as_secs_f64();
    assert!((finish_s - (10.0 + 30.0 + 80.0)).abs() < 1e-4, "{finish_s}");
}

#[test]
fn a_gang_over_which_the_batch_cannot_be_shared_out_is_refused_when_it_is_submitted() {
    let profile = Elastic::from_name("imagenet").unwrap();
    let elastic = ElasticJob {
        gpus_max: 4,
        profile: profile.into(),
    };
    let class = ModelClass {
        elastic: Some(elastic),
        ..ModelClass::default()
    };
    assert!(elastic.can_hold(4) && !elastic.can_hold(5));
    let mut cluster = cluster(&ClusterSpec::uniform(1, 8, 1), class);
    let request = Submission {
        tenant: TenantId(0),
        class: ClassId(0),
        num_gpus: 5,
        estimate_s: Estimate {
            value: 100.0,
            provenance: Provenance::Oracle,
        },
        resources: Resources::WHOLE_GPU,
    };
    let text = cluster.submit(request).unwrap_err().to_string();
    assert!(
        text.contains("job.num_gpus = 5") && text.contains("gpus_max"),
        "{text}"
    );
}

#[test]
fn nobody_is_packed_beside_a_job_that_holds_more_gpus_than_it_asked_for() {
    let copies = crate::physics::mixed::Copies {
        round_s: 100.0,
        weight_bytes: 0.0,
        gb_per_s: 1.0,
    };
    let capabilities = Capabilities {
        sharing: Sharing::Mps,
        ..Capabilities::DEFAULT
    };
    let spec = ClusterSpec::uniform(2, 2, 2);
    let mut cluster = Cluster::new(&spec, &[ModelClass::default()], capabilities).unwrap();
    let (forked, other) = (
        crate::cluster::tests::submit(&mut cluster, 2, 100.0),
        crate::cluster::tests::submit(&mut cluster, 2, 100.0),
    );
    let slices = [0, 1].map(|node| Slice {
        node: NodeId(node),
        gpus: 0b11,
    });
    cluster.start_copies(forked, slices.into_iter().collect(), &copies);
    assert!(!cluster.can_pack(other, forked));
    cluster.preempt(forked);
    cluster.start(forked, slices[..1].iter().copied().collect());
    assert!(cluster.can_pack(other, forked));
}
