//! Waiting time by cause: by hand, and against an obvious version that asks of each job at each event why it waits.

use pleach_env::attribution::{WaitCause, Waits};
use pleach_env::availability::AvailabilityConfig;
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_env::world::{Advance, World};
use pleach_env::{Seed, SimConfig, SimResult, simulate};
use pleach_scheduler::cluster::{Capabilities, Cluster, JobState};
use pleach_scheduler::cluster_spec::{ClusterSpec, LocalityFactors, ModelClass, Resources, TenantSpec};
use pleach_scheduler::pass::Pass;
use pleach_scheduler::{ActionKind, Estimate, JobId, Provenance, Time, heuristics};
use proptest::prelude::*;

/// (submit s, tenant, GPUs, run time s).
type Row = (u32, u16, u32, f64);

/// Nodes of 4 GPUs in racks of two, tenants with a quota of 4 GPUs each.
fn workload(num_nodes: u32, num_tenants: u16, locality: LocalityFactors, rows: &[Row]) -> Workload {
    let mut cluster = ClusterSpec::uniform(num_nodes, 4, 2);
    cluster.tenants = (0..num_tenants)
        .map(|tenant| TenantSpec {
            name: format!("t{tenant}"),
            quota_gpus: 4,
        })
        .collect();
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| row.0);
    let jobs = rows.iter().enumerate().map(|(index, row)| JobSpec {
        id: index.to_string(),
        submit: Time::from_secs_f64(f64::from(row.0)),
        num_gpus: row.2,
        run_time_s: row.3,
        estimate_s: None,
        tenant: row.1,
        class: 0,
        user: None,
        outcome: Outcome::Completed,
        resources: Resources::WHOLE_GPU,
        observed: None,
    });
    Workload {
        name: "rows".into(),
        cluster,
        classes: vec![ModelClass {
            name: "any".into(),
            speed: vec![1.0],
            locality,
            ..ModelClass::default()
        }],
        jobs: jobs.collect(),
    }
}

fn run(policy: &str, workload: &Workload) -> SimResult {
    let config = SimConfig {
        record_waits: true,
        record_occupancy: true,
        ..SimConfig::default()
    };
    simulate(workload, &config, &mut heuristics::by_name(policy).unwrap()).unwrap()
}

fn seconds(waits: &Waits) -> [f64; 4] {
    WaitCause::ALL.map(|cause| waits.of(cause).as_secs_f64())
}

/// Two nodes of 4 GPUs, two tenants with a quota of 4, a queue that blocks:
///
/// | job | tenant, GPUs | submitted | runs |
/// |---|---|---|---|
/// | 0 | a, 3 | 0 | 0-100 on node 0 |
/// | 1 | a, 3 | 0 | 0-60 on node 1 (a borrows) |
/// | 2 | b, 4 | 10 | 60-70 on node 1 |
/// | 3 | a, 1 | 20 | 60-65 on node 0 |
/// | 4 | b, 1 | 20 | 65-70 on node 0 |
/// | 5 | b, 2 | 30 | 70-75 on node 1 |
const BY_HAND: [Row; 6] = [
    (0, 0, 3, 100.0),
    (0, 0, 3, 60.0),
    (10, 1, 4, 10.0),
    (20, 0, 1, 5.0),
    (20, 1, 1, 5.0),
    (30, 1, 2, 5.0),
];

#[test]
fn six_jobs_wait_for_the_reasons_that_a_person_would_give() {
    let result = run("fifo", &workload(2, 2, LocalityFactors::NONE, &BY_HAND));
    let waits: Vec<[f64; 4]> = result.waits.iter().map(seconds).collect();
    // Fair share, capacity, fragmentation, held back.
    assert_eq!(waits[0], [0.0; 4]);
    assert_eq!(waits[1], [0.0; 4]);
    // 4 GPUs within the quota; 2 are free until 60.
    assert_eq!(waits[2], [0.0, 50.0, 0.0, 0.0]);
    // Its tenant holds 6 of 4 GPUs until 60.
    assert_eq!(waits[3], [40.0, 0.0, 0.0, 0.0]);
    // One GPU is free, but job 2 blocks the queue until 60; then job 2 holds the whole quota until job 3 has gone at 65.
    assert_eq!(waits[4], [5.0, 0.0, 0.0, 40.0]);
    // Two GPUs are free, one on each node, until 60; then job 2 holds the whole quota until 70.
    assert_eq!(waits[5], [10.0, 0.0, 30.0, 0.0]);
    assert_eq!(
        result.waits[5].philly(),
        (Time::from_secs_f64(10.0), Time::from_secs_f64(30.0))
    );
    assert_eq!(result.waits[4].main(), Some(WaitCause::HeldBack));
}

#[test]
fn occupancy_is_weighted_by_time_and_counts_nodes_without_a_job() {
    let result = run("fifo", &workload(2, 2, LocalityFactors::NONE, &BY_HAND));
    let occupancy = result.occupancy.unwrap();
    // 6 of 8 GPUs for 60 s, 8 for 10 s, 5 for 5 s, 3 for 25 s; in the last, node 1 is empty.
    let seen: Vec<(usize, f64, f64)> = occupancy
        .classes()
        .iter()
        .enumerate()
        .filter(|(_, class)| class.time_s > 0.0)
        .map(|(class, row)| (class, row.time_s, row.empty_node_s))
        .collect();
    assert_eq!(
        seen,
        [(7, 25.0, 25.0), (12, 5.0, 0.0), (15, 60.0, 0.0), (20, 10.0, 0.0)]
    );
    let threes = occupancy.spread()[&(3, 1)];
    assert_eq!((threes.num_runs, threes.held_gpu_s), (2, 480.0));
    assert_eq!(threes.useful_gpu_s, 480.0);
}

#[test]
fn a_gang_on_two_nodes_makes_less_of_its_gpus() {
    // One GPU is free on each node: the gang of 2 runs at 0.854 of its speed, so 85.4 s of work take 100 s.
    let rows = [(0, 0, 3, 500.0), (0, 1, 3, 500.0), (10, 0, 2, 85.4)];
    let result = run("fifo-skip", &workload(2, 2, LocalityFactors::PHILLY, &rows));
    let spread = result.occupancy.unwrap().spread()[&(2, 2)];
    assert!((spread.held_gpu_s - 200.0).abs() < 1e-6);
    assert!((spread.useful_gpu_s - 170.8).abs() < 1e-6);
    assert_eq!(result.waits[2].total(), Time::ZERO);
}

/// Why a pending job waits, from the tables and nothing else: every set of nodes that a tight placement could use.
fn slow_cause(cluster: &Cluster, id: JobId) -> WaitCause {
    let request = cluster.job(id).request;
    let tenant = &cluster.tenants()[request.tenant.index()];
    if tenant.used_milli / 1000 + u64::from(request.num_gpus) > u64::from(tenant.quota_gpus) {
        return WaitCause::FairShare;
    }
    let free: u32 = cluster.nodes().iter().map(|node| node.num_free()).sum();
    if free < request.num_gpus {
        return WaitCause::Availability;
    }
    // Nodes hold 4; a gang of up to 8 fits into one rack of two nodes where there is one.
    let num_nodes_min = request.num_gpus.div_ceil(4) as usize;
    let nodes = cluster.nodes().len();
    let one_rack = cluster
        .racks()
        .iter()
        .any(|rack| rack.num_gpus >= request.num_gpus);
    for set in 0_u32..1 << nodes {
        let chosen: Vec<usize> = (0..nodes).filter(|node| set >> node & 1 == 1).collect();
        let sum: u32 = chosen.iter().map(|node| cluster.nodes()[*node].num_free()).sum();
        let mut racks: Vec<u32> = chosen.iter().map(|node| cluster.nodes()[*node].rack.0).collect();
        racks.dedup();
        if chosen.len() <= num_nodes_min && sum >= request.num_gpus && (racks.len() <= 1 || !one_rack) {
            return WaitCause::HeldBack;
        }
    }
    WaitCause::Fragmentation
}

/// Waiting time by cause, µs, asked of every pending job at every event.
fn slow_waits(world: &mut World, policy: &str) -> Vec<[i64; 4]> {
    let mut policy = heuristics::by_name(policy).unwrap();
    let mut pass = Pass::new();
    let mut waits = Vec::new();
    loop {
        let before = world.cluster().now();
        let causes: Vec<Option<WaitCause>> = (0..world.cluster().jobs().len())
            .map(|id| JobId(id as u32))
            .map(|id| {
                let pending = world.cluster().job(id).state == JobState::Pending;
                pending.then(|| slow_cause(world.cluster(), id))
            })
            .collect();
        if world.is_over() || world.advance() == Advance::End {
            return waits;
        }
        let span = world.cluster().now() - before;
        waits.resize(world.cluster().jobs().len(), [0; 4]);
        for (wait, cause) in waits.iter_mut().zip(causes) {
            if let Some(cause) = cause {
                wait[cause as usize] += span.0;
            }
        }
        pass.run(world.cluster_mut(), &mut policy).unwrap();
        world.carry_out();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn causes_are_those_of_the_slow_version_and_sum_to_the_waiting_time(
        rows in proptest::collection::vec((0_u32..200, 0_u16..2, 1_u32..=8, 1.0_f64..80.0), 1..40),
        num_nodes in 4_u32..6,
        preemption in any::<bool>(),
        failures in any::<bool>(),
        policy in 0_usize..heuristics::names().len(),
    ) {
        let policy = heuristics::names()[policy];
        let mut workload = workload(num_nodes, 2, LocalityFactors::PHILLY, &rows);
        // Large enough that a gang of two nodes waits for other reasons than its quota.
        workload.cluster.tenants[0].quota_gpus = 12;
        let estimates: Vec<Estimate> = workload.jobs.iter()
            .map(|job| Estimate { value: job.run_time_s, provenance: Provenance::Oracle })
            .collect();
        let mut capabilities = Capabilities::default();
        capabilities.grant(ActionKind::Preempt, preemption);
        let mut world = World::new(&workload, capabilities, &estimates).unwrap();
        // Nodes that fail send their jobs back to the queue.
        let capacity = AvailabilityConfig {
            node_mtbf_s: failures.then_some(100.0),
            node_repair_s: 20.0,
            ..AvailabilityConfig::default()
        };
        world.set_capacity(&capacity, Seed(7)).unwrap();
        world.record_waits();
        world.record_occupancy();
        world.set_tick(heuristics::by_name(policy).unwrap().needs().tick);
        let slow = slow_waits(&mut world, policy);
        let fast = world.attribution().unwrap().waits();
        let parts: Vec<[i64; 4]> = fast.iter().map(|waits| WaitCause::ALL.map(|cause| waits.of(cause).0)).collect();
        prop_assert_eq!(parts, slow, "{}", policy);
        let mut held_gpu_s = 0.0;
        for (waits, outcome) in fast.iter().zip(world.outcomes()) {
            // The outcome's waiting time is a float; the causes sum to it within its rounding.
            prop_assert!((waits.total().as_secs_f64() - outcome.wait_s()).abs() < 1e-6, "{waits:?} {outcome:?}");
            held_gpu_s += outcome.held_s * f64::from(outcome.num_gpus);
        }
        let occupancy = world.take_occupancy().unwrap();
        let spread_gpu_s: f64 = occupancy.spread().values().map(|row| row.held_gpu_s).sum();
        prop_assert!((spread_gpu_s - held_gpu_s).abs() < 1e-3);
        let time_s: f64 = occupancy.classes().iter().map(|class| class.time_s).sum();
        prop_assert!((time_s - world.cluster().now().as_secs_f64()).abs() < 1e-6);
    }
}
