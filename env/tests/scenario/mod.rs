//! Random small workloads: a few nodes of one or two types in racks, tenants with and without walls, classes with
//! different speeds and localities, gangs.
//!
//! Everything is a whole multiple of a grid and every rate a power of two, so that a simulator that goes second by second
//! can be exact.

use pleach_env::SimConfig;
use pleach_env::availability::{AvailabilityChange, AvailabilityConfig};
use pleach_env::workload::estimates::EstimateModel;
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_scheduler::cluster::NodeState;
use pleach_scheduler::cluster_spec::{
    ClusterSpec, GpuTypeSpec, LocalityFactors, ModelClass, NodeGroup, Resources, TenantSpec,
};
use pleach_scheduler::{ActionKind, Time};
use proptest::prelude::*;

/// Submissions and run times are multiples of this, s: six halvings of a rest still end on a whole second.
pub const GRID_S: u32 = 64;

/// One GPU type with one or two groups of nodes, or two types.
fn cluster() -> impl Strategy<Value = ClusterSpec> {
    let group = (1_u32..7, 1_u32..5, 1_u32..4);
    (group.clone(), group, 1_usize..3, 1_u32..4, any::<bool>()).prop_map(
        |(one, two, num_types, num_tenants, borrowing)| {
            let gpu_types = (0..num_types).map(|kind| GpuTypeSpec {
                name: format!("type{kind}"),
                memory_gib: 16.0,
                mig: None,
            });
            let groups = [one, two].into_iter().enumerate();
            let node_groups = groups.map(|(number, (count, gpus_per_node, nodes_per_rack))| NodeGroup {
                count,
                gpus_per_node,
                gpu_type: format!("type{}", number % num_types),
                nodes_per_rack,
                ..NodeGroup::default()
            });
            let mut spec = ClusterSpec {
                gpu_types: gpu_types.collect(),
                node_groups: node_groups.collect(),
                tenants: Vec::new(),
                borrowing,
                ..ClusterSpec::default()
            };
            let quota_gpus = spec.num_gpus() as u32 / num_tenants;
            spec.tenants = (0..num_tenants)
                .map(|number| TenantSpec {
                    name: format!("tenant{number}"),
                    quota_gpus,
                })
                .collect();
            spec
        },
    )
}

fn class(num_types: usize) -> impl Strategy<Value = ModelClass> {
    let factor = || prop_oneof![Just(1.0), Just(0.5)];
    let speed = prop_oneof![Just(0.0), Just(0.5), Just(1.0), Just(2.0)];
    (proptest::collection::vec(speed, num_types), factor(), factor()).prop_map(
        |(mut speed, more_nodes, cross_rack)| {
            if speed.iter().all(|speed| *speed == 0.0) {
                speed[0] = 1.0;
            }
            ModelClass {
                name: "class".into(),
                speed,
                locality: LocalityFactors {
                    more_nodes,
                    cross_rack,
                },
                ..ModelClass::default()
            }
        },
    )
}

/// (submission, run time, limit) on the grid, gang, tenant, class: the last three modulo what there is; no limit where 0.
type Draw = (u32, u32, u32, u32, u16, u16);

/// A valid workload of at most `num_jobs_max` jobs. Half of the submissions fall on few instants, so that ties abound.
pub fn workload(num_jobs_max: usize) -> impl Strategy<Value = Workload> {
    let submit = prop_oneof![0_u32..3, 0_u32..30];
    let run = prop_oneof![3 => 1_u32..4, 3 => 1_u32..12, 1 => 1_u32..40];
    let draw = (submit, run, 0_u32..12, 1_u32..13, 0_u16..3, 0_u16..2);
    let draws = proptest::collection::vec(draw, 1..=num_jobs_max);
    (cluster(), draws).prop_flat_map(|(cluster, draws)| {
        let num_types = cluster.gpu_types.len();
        (class(num_types), class(num_types))
            .prop_map(move |(one, two)| build(cluster.clone(), [one, two], &draws))
    })
}

fn build(cluster: ClusterSpec, classes: [ModelClass; 2], draws: &[Draw]) -> Workload {
    let mut draws = draws.to_vec();
    draws.sort_by_key(|draw| draw.0);
    let pool = |kind: usize| -> u32 {
        let name = &cluster.gpu_types[kind].name;
        let groups = cluster.node_groups.iter().filter(|group| group.gpu_type == *name);
        groups.map(|group| group.count * group.gpus_per_node).sum()
    };
    let jobs = draws.iter().enumerate();
    let jobs = jobs.map(|(index, (submit, run, limit, gang, tenant, class))| {
        let tenant = tenant % cluster.tenants.len() as u16;
        let usable = classes[usize::from(*class)].speed.iter().enumerate();
        let usable = usable
            .filter(|(_, speed)| **speed > 0.0)
            .map(|(kind, _)| pool(kind));
        let mut most = usable.max().unwrap();
        if !cluster.borrowing {
            most = most.min(cluster.tenants[usize::from(tenant)].quota_gpus);
        }
        JobSpec {
            id: index.to_string(),
            submit: Time::from_secs_f64(f64::from(submit * GRID_S)),
            num_gpus: (gang - 1) % most.max(1) + 1,
            run_time_s: f64::from(run * GRID_S),
            estimate_s: (*limit > 0).then_some(f64::from(limit * GRID_S)),
            tenant,
            class: *class,
            user: None,
            outcome: Outcome::Completed,
            resources: Resources::WHOLE_GPU,
            observed: None,
        }
    });
    let jobs: Vec<JobSpec> = jobs.collect();
    let mut workload = Workload {
        name: "random".into(),
        classes: classes.into(),
        jobs,
        cluster,
    };
    // More tenants than GPUs leave quotas of zero, under which no job could run behind walls.
    workload.cluster.borrowing |= workload.cluster.tenants[0].quota_gpus == 0;
    workload.validate().unwrap();
    workload
}

/// With and without preemption and reservations; what the scheduler believes is true or the users' limits; restarts cost nothing, or less or more than the time between two events.
pub fn config() -> impl Strategy<Value = SimConfig> {
    let cost = prop_oneof![Just(0.0), Just(32.0), Just(300.0)];
    let default_s = f64::from(8 * GRID_S);
    let estimates = prop_oneof![
        Just(EstimateModel::Oracle),
        Just(EstimateModel::UserLimit { default_s })
    ];
    let draw = (any::<bool>(), any::<bool>(), cost, estimates);
    draw.prop_map(|(preemption, reservation, restart_cost_s, estimates)| {
        let mut config = SimConfig {
            estimates,
            ..SimConfig::default()
        };
        config.capabilities.grant(ActionKind::Preempt, preemption);
        config.capabilities.grant(ActionKind::Reserve, reservation);
        config.capabilities.restart_cost_s = restart_cost_s;
        config
    })
}

/// Nodes that are drained or go down on the grid, one after the other, and come back some steps later.
pub fn outages() -> impl Strategy<Value = AvailabilityConfig> {
    let outage = (
        0_u32..20,
        1_u32..10,
        0_u32..6,
        prop_oneof![Just(NodeState::Down), Just(NodeState::Draining)],
    );
    proptest::collection::vec(outage, 1..6).prop_map(|outages| {
        let mut changes = Vec::new();
        for (at, steps, node, state) in outages {
            let at_s = |step: u32| f64::from(step * GRID_S);
            // One outage of a node only, so that none ends another.
            if changes
                .iter()
                .all(|change: &AvailabilityChange| change.node != node)
            {
                changes.push(AvailabilityChange {
                    at_s: at_s(at),
                    node,
                    state,
                });
                changes.push(AvailabilityChange {
                    at_s: at_s(at + steps),
                    node,
                    state: NodeState::Up,
                });
            }
        }
        AvailabilityConfig {
            changes,
            ..AvailabilityConfig::default()
        }
    })
}
