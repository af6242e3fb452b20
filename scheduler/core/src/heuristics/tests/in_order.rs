//! Head-of-line blocking: behind the first job of an order, and within a tenant that has used up its quota.

use proptest::prelude::*;

use super::sim::{Arrival, node_of, submit};
use super::world::{cluster, events, happen, pending, watched_pass};
use crate::cluster::{Capabilities, Cluster, JobState};
use crate::cluster_spec::{ClusterSpec, ModelClass, TenantSpec};
use crate::heuristics::head_of_line;
use crate::lens::{Lens, lens_key};
use crate::pass::Pass;

fn running(cluster: &Cluster) -> Vec<bool> {
    let states = cluster.jobs().iter().map(|job| job.state == JobState::Running);
    states.collect()
}

#[test]
fn strict_sjf_waits_for_the_shortest_job_where_sjf_passes_over_it() {
    // 3 of 4 GPUs are busy; the shortest job needs 2, a longer one 1.
    let mut cluster = node_of(4, Capabilities::default());
    submit(&mut cluster, &Arrival(0, 3, 100, 0));
    let mut strict = head_of_line("sjf-strict", Lens::Shortest);
    Pass::new().run(&mut cluster, &mut strict).unwrap();
    submit(&mut cluster, &Arrival(0, 1, 20, 0));
    submit(&mut cluster, &Arrival(0, 2, 10, 0));
    Pass::new().run(&mut cluster, &mut strict).unwrap();
    assert_eq!(running(&cluster), [true, false, false]);
}

#[test]
fn a_tenant_without_quota_for_its_oldest_job_waits_and_the_others_do_not() {
    // Each tenant owns 4 of 8 GPUs. a holds 3; its job of 2 has no room, and its job of 1 must not overtake it.
    let mut spec = ClusterSpec::uniform(1, 8, 1);
    spec.tenants = ["a", "b"]
        .map(|name| TenantSpec {
            name: name.into(),
            quota_gpus: 4,
        })
        .into();
    spec.borrowing = false;
    let mut cluster = Cluster::new(&spec, &[ModelClass::default()], Capabilities::default()).unwrap();
    for job in [
        Arrival(0, 3, 9, 0),
        Arrival(0, 2, 9, 0),
        Arrival(0, 1, 9, 0),
        Arrival(0, 4, 9, 1),
    ] {
        submit(&mut cluster, &job);
    }
    Pass::new()
        .run(&mut cluster, &mut head_of_line("fifo", Lens::Arrival))
        .unwrap();
    assert_eq!(running(&cluster), [true, false, false, true]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn nobody_overtakes_within_a_tenant_and_nobody_waits_without_reason(
        mut cluster in cluster(1, any::<bool>().boxed()),
        events in events(40),
        by_length in any::<bool>(),
    ) {
        let (mut policy, lens) = match by_length {
            true => (head_of_line("sjf-strict", Lens::Shortest), Lens::Shortest),
            false => (head_of_line("fifo", Lens::Arrival), Lens::Arrival),
        };
        for event in events {
            happen(&mut cluster, event);
            let before = pending(&cluster);
            watched_pass(&mut cluster, &mut policy, |_, _| ());
            let key = |job: &crate::ids::JobId| (lens_key(&cluster, lens, *job), *job);
            let still = pending(&cluster);
            for job in before.iter().filter(|job| !still.contains(job)) {
                let own = |other: &&crate::ids::JobId| {
                    cluster.job(**other).request.tenant == cluster.job(*job).request.tenant
                };
                prop_assert!(still.iter().filter(own).all(|other| key(other) > key(job)), "{:?} overtook", job);
            }
            // The first of the tenants' first jobs that have room does not fit, else it would have started.
            let firsts = cluster.tenants().iter().enumerate().filter_map(|(tenant, _)| {
                let own = still.iter().filter(|job| cluster.job(**job).request.tenant.index() == tenant);
                own.min_by_key(|job| key(job)).filter(|job| cluster.has_room(cluster.demand(**job)))
            });
            if let Some(first) = firsts.min_by_key(|job| key(job)).filter(|_| !cluster.borrowing()) {
                prop_assert_eq!(cluster.fitting_types(cluster.demand(*first)), 0);
            }
        }
    }
}
