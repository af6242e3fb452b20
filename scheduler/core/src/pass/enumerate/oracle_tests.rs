//! Which jobs may go ahead of a reserved job, checked against the slow obvious answer: every job of every demand is looked at.

use proptest::prelude::*;

use super::*;
use crate::ActionKind;
use crate::cluster::{Capabilities, HeldNodes, JobState, Submission};
use crate::cluster_spec::Resources;
use crate::estimate::{Estimate, Provenance};
use crate::heuristics::by_name;
use crate::heuristics::tests::world::{cluster_with, events, happen, pending, watched_pass};
use crate::ids::{ClassId, NodeId, TenantId, Time};
use crate::lens::first_jobs;
use crate::policy::CandidateConfig;

/// Gang size, run time (s), tenant, class and share of each GPU in thousandths of a job.
type Asked = (u32, u32, u16, u16, u16);

/// So many jobs of few demands that some have more than are looked at, and fill many pieces of their orders.
fn long_queue() -> impl Strategy<Value = Vec<Asked>> {
    let gang = prop_oneof![6 => Just(1_u32), 1 => 2_u32..9];
    let run_s = prop_oneof![1 => 1_u32..200, 4 => 200_u32..4000];
    let share = prop_oneof![8 => Just(1000_u16), 1 => Just(500_u16)];
    proptest::collection::vec((gang, run_s, 0_u16..3, 0_u16..2, share), 0..1400)
}

fn submit(cluster: &mut Cluster, (num_gpus, run_s, tenant, class, gpu_milli): Asked) {
    // An error is a refused request: nothing has changed.
    drop(cluster.submit(Submission {
        tenant: TenantId(tenant % cluster.tenants().len() as u16),
        class: ClassId(class),
        num_gpus,
        estimate_s: Estimate {
            value: f64::from(run_s),
            provenance: Provenance::Oracle,
        },
        resources: Resources {
            gpu_milli,
            ..Resources::WHOLE_GPU
        },
    }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn behind_a_reservation_the_first_jobs_are_those_that_a_walk_over_the_whole_queue_finds(
        mut cluster in cluster_with(2, any::<bool>().boxed(), Capabilities::DEFAULT),
        queue in long_queue(),
        events in events(12),
        fitting in 1_usize..4,
        wait_s in 0.0_f64..300.0,
    ) {
        let needs = Needs { fitting, ..CandidateConfig::default().needs() };
        let (mut scratch, mut found, mut slices) = (Scratch::default(), Vec::new(), Vec::new());
        let mut fifo = by_name("fifo").unwrap();
        let mut queue = queue.into_iter();
        for event in events {
            happen(&mut cluster, event);
            watched_pass(&mut cluster, fifo.as_mut(), |_, _| ());
            queue.by_ref().take(200).for_each(|asked| submit(&mut cluster, asked));
            // Some jobs stop and come back with less to do and a restart to pay.
            let running = cluster.jobs().iter().position(|job| job.state == JobState::Running && job.run_start < cluster.now());
            if let Some(job) = running.filter(|_| cluster.capabilities().can(ActionKind::Preempt)) {
                cluster.preempt(JobId(job as u32));
            }
            cluster.check();
            let jobs = pending(&cluster);
            let Some(held) = jobs.iter().find_map(|job| Reservation::earliest(&cluster, *job)) else {
                continue;
            };
            let all = (0..cluster.nodes().len()).map(|node| NodeId(node as u32));
            let shadow = cluster.now() + Time::from_secs_f64(wait_s);
            let tight = Reservation { extra: 0, room: 0, shadow, nodes: HeldNodes::whole(all), ..held.clone() };
            for held in [held, tight] {
                scratch.forget();
                pick_jobs(&cluster, &needs, Some(&held), &mut scratch);
                let beside = Beside::of(&cluster, &held);
                let fits = |demand: &Demand| cluster.fitting_types(*demand) != 0;
                let mut allowed = |job: JobId| {
                    let types = cluster.fitting_types(cluster.demand(job));
                    may_backfill(&cluster, &needs, beside, (job, types), &mut slices)
                };
                for job in jobs.iter().filter(|job| fits(&cluster.demand(**job))) {
                    let demand = cluster.demand(*job);
                    let most = rest_us_max(&cluster, beside, &demand, cluster.fitting_types(demand));
                    let rest = Time::from_secs_f64(cluster.job(*job).remaining_s_at(cluster.now()));
                    prop_assert!(rest.0 <= most || !allowed(*job), "{:?} is passed over", job);
                }
                for lens in Lens::ALL {
                    first_jobs(&cluster, lens, fitting, fits, &mut allowed, &mut found);
                    prop_assert_eq!(scratch.scan.fitting(lens), &found, "{:?} behind {:?}", lens, held);
                }
            }
        }
    }
}
