//! Millions of jobs pass through a cluster whose tables stay as large as its busiest moment.

use crate::cluster::tests::cluster_of;
use crate::cluster::*;
use crate::cluster_spec::Resources;
use crate::estimate::{Estimate, Provenance};
use crate::heuristics::by_name;
use crate::ids::GpuTypeId;
use crate::ids::{ClassId, TenantId};
use crate::pass::Pass;

/// Lets `num` jobs pass through a cluster of 16 GPUs under names, and asserts that its tables stay as large as its busiest
/// moment. Every job asks for its own CPU, some are withdrawn, stopped or fail.
fn pass_through(num: u64) {
    let mut spec = ClusterSpec::uniform(4, 4, 2);
    (spec.node_groups[0].cpu_cores, spec.node_groups[0].memory_gib) = (32.0, 256.0);
    let mut cluster = cluster_of(&spec);
    let (mut live_max, mut random) = (0, 1_u64);
    let (mut decisions, mut seen) = (Vec::new(), 0_u64);
    let mut pass = Pass::new();
    let policy = &mut by_name("fifo-skip").unwrap();
    for number in 0..num {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let draw = random >> 33;
        let request = Submission {
            tenant: TenantId(0),
            class: ClassId(0),
            num_gpus: 1 + (draw % 4) as u32,
            estimate_s: Estimate {
                value: 1.0 + (draw % 97) as f64,
                provenance: Provenance::UserLimit,
            },
            resources: Resources {
                cpu_cores: if draw % 8 == 0 {
                    (number % 1_000_003) as f64 / 1e6
                } else {
                    0.0
                },
                ..Resources::WHOLE_GPU
            },
        };
        let id = cluster.submit_as(ExternalId::number(number), request).unwrap();
        if draw % 31 == 0 {
            cluster.withdraw(id);
        }
        pass.run(&mut cluster, policy.as_mut()).unwrap();
        cluster.take_decisions(&mut decisions);
        seen += decisions.len() as u64;
        decisions.drain(..).for_each(|decision| cluster.recycle(decision));
        // One end for each start, once a few jobs run.
        while cluster.num_running() > 4 || cluster.num_pending() > 40 {
            let (end, first) = *cluster.running_of(GpuTypeId(0)).first().unwrap();
            cluster.advance(end.max(cluster.now()));
            match draw % 64 {
                0 if cluster.num_pending() <= 40 => cluster.fail(first),
                _ => cluster.finish(first),
            }
            if cluster.num_pending() > 40 {
                pass.run(&mut cluster, policy.as_mut()).unwrap();
            }
        }
        live_max = live_max.max(cluster.num_pending() + cluster.num_running());
        cluster.take_decisions(&mut decisions);
        decisions.drain(..).for_each(|decision| cluster.recycle(decision));
        cluster.forget_ended();
        let sizes = [
            cluster.jobs.rows.len(),
            cluster.jobs.rows.capacity() / 2,
            cluster.jobs.names.len(),
            cluster.jobs.shape_gpus_max.len() / 2,
            cluster.jobs.pending.num_rows(),
            cluster.jobs.rerated.len(),
            cluster.places.spare.len(),
        ];
        let bound = 2 * live_max.max(64) + 8;
        assert!(
            sizes.iter().all(|size| *size <= bound),
            "{sizes:?} with {live_max} jobs at once"
        );
    }
    cluster.check();
    assert!(
        live_max < 60 && seen > num * 9 / 10,
        "{live_max} jobs at once, {seen} decisions"
    );
    assert!(cluster.find(ExternalId::number(0)).is_none());
}

#[test]
fn a_million_jobs_pass_through_in_the_memory_of_the_busiest_moment() {
    pass_through(1_000_000);
}

#[test]
#[ignore = "ten million jobs take a minute or two: cargo test --release -p pleach-scheduler -- --ignored ten_million"]
fn ten_million_jobs_pass_through_in_the_memory_of_the_busiest_moment() {
    pass_through(10_000_000);
}
