//! The record of every scheduler is a possible schedule, says a validator that knows nothing of the simulator: heuristics, planners,
//! dealers, trees and networks, with preemption, sharing, elastic sizes, several types, shares of GPUs, cores, gangs of tasks,
//! quotas, failures of jobs and nodes, and behind a batch system.

use std::collections::BTreeSet;

use pleach_env::SimConfig;
use pleach_env::failures::OutcomeModel;
use pleach_env::schedule::Ended;
use pleach_env::workload::{JobSpec, Workload};
use pleach_experiments::door::{DOOR, PolicySpec};
use pleach_scheduler::cluster::Sharing;
use pleach_scheduler::cluster_spec::{
    ClusterSpec, ElasticJob, GpuTypeSpec, LocalityFactors, ModelClass, NodeGroup, Resources, TenantSpec,
};
use pleach_scheduler::heuristics;
use pleach_scheduler::physics::goodput::POLLUX_MODELS;
use pleach_scheduler::{ActionKind, Tasks, Time};
use proptest::prelude::*;
use rayon::prelude::*;

use crate::recorded_worlds::{behind_slurm, failing, hold, worlds};

/// Policies by name; a planner that cannot drive a cluster as it is left out by its own words.
fn open(names: impl Iterator<Item = String>) -> Vec<PolicySpec> {
    names.flat_map(|name| DOOR.open(&name).unwrap()).collect()
}

fn reference(name: &str) -> String {
    let folder = if name.ends_with("-tree.json") && !name.starts_with("Synergy") {
        "tests/trees"
    } else {
        "checkpoints/reference"
    };
    format!("{}/../{folder}/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_record_of_every_heuristic_and_planner_is_a_possible_schedule() {
    let heuristics = heuristics::infos().iter().map(|info| info.name.to_owned());
    let planners = DOOR.planners().map(|entry| entry.info.name.to_owned());
    let policies = open(heuristics.chain(planners));
    let worlds = worlds();
    let pairs: Vec<_> = worlds
        .iter()
        .flat_map(|world| policies.iter().map(move |policy| (world, policy)))
        .collect();
    let ended: BTreeSet<Ended> = pairs
        .par_iter()
        .flat_map_iter(|((id, workload, sim), policy)| hold(id, workload, sim, policy))
        .collect();
    let told: Vec<Ended> = Ended::ALL
        .into_iter()
        .filter(|ended| *ended != Ended::Horizon)
        .collect();
    assert_eq!(
        ended.into_iter().collect::<Vec<_>>(),
        told,
        "every way to end is met"
    );
}

#[test]
fn the_records_of_trees_networks_and_dealers_are_possible_schedules() {
    let names = [
        "PhillyGang-v1",
        "GavelMulti-v1",
        "GavelShare-v1",
        "Elastic-v1",
        "Synergy-v1",
        "PhillyShare-v1",
        "HeliosTenants-v1",
    ];
    for ((id, workload, sim), name) in worlds().iter().zip(names) {
        let files = [
            format!("{name}.ckpt"),
            format!("{name}-tree.json"),
            "index.json".into(),
        ];
        let dealers = [
            "deal:sjf".to_owned(),
            format!("deal:{}", reference(&format!("{name}-tree.json"))),
        ];
        let policies = open(files.iter().map(|file| reference(file)).chain(dealers));
        policies
            .par_iter()
            .for_each(|policy| drop(hold(id, workload, sim, policy)));
    }
}

/// A job as drawn: submission (min), size, run time (min), tenant, class, share (1 of 4 whole), cores.
type Draw = (u16, u8, u16, bool, u8, u8, u8);

/// A cluster of two types, with cores and walls or without, and as many of the drawn jobs as it can run.
fn random_workload(nodes: (u32, u32), has_cores: bool, has_walls: bool, draws: &[Draw]) -> Workload {
    let group = |count, gpus_per_node, gpu_type: &str| NodeGroup {
        count,
        gpus_per_node,
        gpu_type: gpu_type.into(),
        nodes_per_rack: 2,
        cpu_cores: if has_cores { 16.0 } else { 0.0 },
        memory_gib: if has_cores { 64.0 } else { 0.0 },
        ..NodeGroup::default()
    };
    let gpu = |name: &str, memory_gib| GpuTypeSpec {
        name: name.into(),
        memory_gib,
        mig: None,
    };
    let num_gpus = nodes.0 * 4 + nodes.1 * 8;
    let tenant = |name: &str, quota_gpus| TenantSpec {
        name: name.into(),
        quota_gpus,
    };
    let class = |name: &str, speed: [f64; 2], elastic| ModelClass {
        name: name.into(),
        speed: speed.into(),
        locality: LocalityFactors::PHILLY,
        elastic,
        ..ModelClass::default()
    };
    let elastic = ElasticJob {
        gpus_max: 8,
        profile: POLLUX_MODELS[1].1.into(),
    };
    let mut workload = Workload {
        name: "random".into(),
        cluster: ClusterSpec {
            gpu_types: vec![gpu("A", 40.0), gpu("B", 16.0)],
            node_groups: vec![group(nodes.0, 4, "A"), group(nodes.1, 8, "B")],
            tenants: vec![
                tenant("red", num_gpus / 2),
                tenant("blue", num_gpus - num_gpus / 2),
            ],
            borrowing: !has_walls,
            ..ClusterSpec::default()
        },
        classes: vec![
            class("plain", [1.0, 0.5], None),
            class("large", [0.8, 0.0], None),
            class("elastic", [1.0, 0.7], Some(elastic)),
        ],
        jobs: Vec::new(),
    };
    let mut draws = draws.to_vec();
    draws.sort_by_key(|draw| draw.0);
    for (index, (submit, size, run, is_blue, class, share, cores)) in draws.into_iter().enumerate() {
        let share = if class % 3 == 2 { 0 } else { share };
        let gpus_per_task = [1, 1, 2, 3, 4][usize::from(size / 9) % 5];
        let is_cut = share % 4 != 3 && class % 3 != 2;
        let tasks = Tasks {
            gpus_per_task,
            tasks_per_node_max: size / 45 % 3,
            nodes_max: run / 300 % 4,
        };
        let tasks = if is_cut { tasks } else { Tasks::ANY };
        workload.jobs.push(JobSpec {
            tenant: u16::from(is_blue),
            class: u16::from(class % 3),
            resources: Resources {
                gpu_milli: if share % 4 == 3 {
                    250 + u16::from(share)
                } else {
                    1000
                },
                gpu_memory_gib: if share % 4 == 3 { 5.0 } else { 0.0 },
                cpu_cores: if has_cores { f64::from(cores % 5) } else { 0.0 },
                memory_gib: if has_cores { f64::from(cores % 7) } else { 0.0 },
                tasks,
                ..Resources::WHOLE_GPU
            },
            ..JobSpec::new(
                format!("job {index}"),
                Time::from_secs_f64(f64::from(submit % 400) * 60.0),
                if share % 4 == 3 {
                    1
                } else {
                    (u32::from(size % 9) + 1).next_multiple_of(u32::from(tasks.gpus_per_task))
                },
                f64::from(run % 300) * 60.0 + 30.5,
            )
        });
        if workload.validate().is_err() {
            workload.jobs.pop();
        }
    }
    workload
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_record_of_any_scheduler_in_a_random_world_is_a_possible_schedule(
        nodes in (1_u32..4, 1_u32..3),
        flags in any::<[bool; 6]>(),
        draws in proptest::collection::vec(any::<Draw>(), 1..40),
        which in any::<prop::sample::Index>(),
        seed in 0_u64..100,
    ) {
        let [has_cores, has_walls, preempts, shares, fails, is_work] = flags;
        let workload = random_workload(nodes, has_cores, has_walls, &draws);
        prop_assume!(!workload.jobs.is_empty());
        let mut sim = SimConfig { seed, record_segments: true, ..SimConfig::default() };
        sim.capabilities.grant(ActionKind::Preempt, preempts);
        sim.capabilities.restart_cost_is_work = is_work;
        if shares {
            sim.capabilities.sharing = Sharing::Mps;
        }
        if fails {
            sim.capabilities.checkpoint_interval_s = Some(900.0);
            sim.outcomes = Some(OutcomeModel::philly());
            sim.capacity = failing(0.5);
        }
        let names: Vec<&str> = heuristics::infos().iter().map(|info| info.name).collect();
        let policy = &DOOR.open(names[which.index(names.len())]).unwrap()[0];
        hold("random", &workload, &sim, policy);
    }
}

#[test]
fn the_records_behind_a_batch_system_are_possible_schedules() {
    let (workload, sim) = behind_slurm();
    for policy in open(["fifo", "srtf", "easy"].map(str::to_owned).into_iter()) {
        hold("slurm", &workload, &sim, &policy);
    }
}
