//! A small event loop over the beliefs of a cluster: with exact estimates the beliefs are the truth.

use crate::cluster::{Capabilities, Cluster, Submission};
use crate::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources, TenantSpec};
use crate::estimate::{Estimate, Provenance};
use crate::heuristics::by_name;
use crate::ids::{ClassId, GpuTypeId, JobId, TenantId, Time};
use crate::pass::Pass;

/// A job that will come: when (s), gang size, run time (s), tenant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival(pub i64, pub u32, pub i64, pub u16);

/// One node of `num_gpus`, shared evenly by two tenants that may borrow.
pub(super) fn node_of(num_gpus: u32, capabilities: Capabilities) -> Cluster {
    let mut spec = ClusterSpec::uniform(1, num_gpus, 1);
    spec.tenants = ["a", "b"]
        .map(|name| TenantSpec {
            name: name.into(),
            quota_gpus: num_gpus / 2,
        })
        .into();
    let class = ModelClass {
        name: "any".into(),
        speed: vec![1.0],
        locality: LocalityFactors::NONE,
        ..ModelClass::default()
    };
    Cluster::new(&spec, &[class], capabilities).unwrap()
}

pub(super) fn submit(cluster: &mut Cluster, job: &Arrival) -> JobId {
    let estimate_s = Estimate {
        value: job.2 as f64,
        provenance: Provenance::Oracle,
    };
    let request = Submission {
        tenant: TenantId(job.3),
        class: ClassId(0),
        num_gpus: job.1,
        estimate_s,
        resources: Resources::WHOLE_GPU,
    };
    cluster.submit(request).unwrap()
}

/// The next end, and the job that ends then.
fn next_end(cluster: &Cluster) -> Option<(Time, JobId)> {
    let kinds = (0..cluster.num_types()).map(|kind| GpuTypeId(kind as u8));
    kinds
        .filter_map(|kind| cluster.running_of(kind).first().copied())
        .min()
}

/// Runs a heuristic until all jobs have finished; returns (first start, finish) of each job, s.
pub(super) fn schedule(cluster: &mut Cluster, name: &str, jobs: &[Arrival]) -> Vec<(i64, i64)> {
    let mut policy = by_name(name).unwrap();
    let tick = policy.needs().tick;
    let mut pass = Pass::new();
    let mut finishes = vec![0; jobs.len()];
    let mut coming = jobs.iter().peekable();
    for _ in 0..10_000 {
        let arrival = coming.peek().map(|job| Time(job.0 * 1_000_000));
        let finish = next_end(cluster).map(|(end, _)| end);
        let again = tick
            .filter(|_| cluster.num_pending() > 0)
            .map(|tick| cluster.now() + tick);
        let Some(now) = [arrival, finish, again].into_iter().flatten().min() else {
            break;
        };
        cluster.advance(now);
        while let Some((_, id)) = next_end(cluster).filter(|(end, _)| *end == now) {
            cluster.finish(id);
            finishes[id.index()] = now.0 / 1_000_000;
        }
        while let Some(job) = coming.next_if(|job| job.0 * 1_000_000 == now.0) {
            submit(cluster, job);
        }
        pass.run(cluster, &mut policy).unwrap();
        cluster.check();
    }
    assert_eq!(
        (cluster.num_pending(), cluster.num_running()),
        (0, 0),
        "{name} must run every job"
    );
    let starts = cluster
        .jobs()
        .iter()
        .map(|job| job.first_start.unwrap().0 / 1_000_000);
    starts.zip(finishes).collect()
}

/// Average of finish less submission, s.
pub(super) fn average_jct_s(jobs: &[Arrival], schedule: &[(i64, i64)]) -> f64 {
    let sum: i64 = jobs
        .iter()
        .zip(schedule)
        .map(|(job, (_, finish))| finish - job.0)
        .sum();
    sum as f64 / jobs.len() as f64
}
