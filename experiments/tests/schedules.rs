//! The record of every scheduler is a possible schedule, says a validator that knows nothing of the simulator: heuristics, planners,
//! dealers, trees and networks, with preemption, sharing, elastic sizes, several types, shares of GPUs, cores, gangs of tasks,
//! quotas, failures of jobs and nodes, and behind a batch system.

use std::collections::BTreeSet;

use pleach_env::availability::{AvailabilityChange, AvailabilityConfig};
use pleach_env::batch_system::BatchSystem;
use pleach_env::failures::OutcomeModel;
use pleach_env::schedule::Ended;
use pleach_env::site_failures::SiteFailures;
use pleach_env::workload::{JobSpec, Workload};
use pleach_env::{EnvConfig, Seed, SimConfig, Source};
use pleach_experiments::door::{DOOR, PolicySpec};
use pleach_experiments::evaluate::run::simulate_as_asked;
use pleach_experiments::schedule::{conditions_of, facts_of, run_of};
use pleach_scheduler::cluster::{NodeState, Sharing};
use pleach_scheduler::cluster_spec::{
    ClusterSpec, ElasticJob, GpuTypeSpec, LocalityFactors, ModelClass, NodeGroup, Resources, TenantSpec,
};
use pleach_scheduler::heuristics;
use pleach_scheduler::physics::goodput::POLLUX_MODELS;
use pleach_scheduler::{ActionKind, Tasks, Time};
use pleach_verify::verify;
use proptest::prelude::*;
use rayon::prelude::*;
use serde_json::json;

/// Jobs of a list.
const NUM_JOBS: usize = 40;

/// A workload of an environment, and its cluster with more that can happen.
fn world(id: &str, change: impl FnOnce(&mut SimConfig)) -> (Workload, SimConfig) {
    let mut env = EnvConfig::registered(id).unwrap();
    env.workload = env.workload.resized(Some(NUM_JOBS), None);
    let workload = Source::open(&env).unwrap().workload(&env, Seed(3)).unwrap();
    let mut sim = env.sim;
    sim.record_segments = true;
    change(&mut sim);
    (workload, sim)
}

/// Nodes that fail once in so many days each.
fn failing(days: f64) -> AvailabilityConfig {
    AvailabilityConfig {
        node_mtbf_s: Some(days * 86_400.0),
        ..AvailabilityConfig::default()
    }
}

fn worlds() -> Vec<(&'static str, Workload, SimConfig)> {
    let world = |id, change: fn(&mut SimConfig)| {
        let (workload, sim) = world(id, change);
        (id, workload, sim)
    };
    vec![
        world("Pleach/PhillyGang-v1", |sim| {
            sim.capabilities.grant(ActionKind::Preempt, true);
            sim.capabilities.checkpoint_interval_s = Some(600.0);
            sim.outcomes = Some(OutcomeModel::philly());
            sim.capacity = failing(2.0);
        }),
        world("Pleach/GavelMulti-v1", |sim| {
            sim.capabilities.grant(ActionKind::Preempt, true);
            sim.capabilities.grant(ActionKind::MixTypes, true);
        }),
        world("Pleach/GavelShare-v1", |sim| {
            sim.capabilities.grant(ActionKind::Preempt, true);
            sim.capabilities.sharing = Sharing::TimeSlice;
            sim.capacity = failing(5.0);
        }),
        world("Pleach/Elastic-v1", |sim| {
            sim.capabilities.grant(ActionKind::Preempt, true);
            sim.capabilities.restart_cost_is_work = true;
        }),
        world("Pleach/Synergy-v1", |_| {}),
        world("Pleach/PhillyShare-v1", |sim| {
            sim.capabilities.grant(ActionKind::Preempt, true);
            let change = |at_s, state| AvailabilityChange { at_s, node: 0, state };
            sim.capacity.changes = vec![
                change(3600.0, NodeState::Draining),
                change(20_000.0, NodeState::Down),
                change(40_000.0, NodeState::Up),
            ];
        }),
        world("Pleach/HeliosTenants-v1", |sim| {
            sim.capabilities.grant(ActionKind::Preempt, true);
        }),
        published("Pleach/PhillyGang-v1", 1.0),
        published("Pleach/HeliosTenants-v1", 0.05),
    ]
}

/// The world as it is published: links, starts and memory by class, sharing that is guarded, beliefs that err, failures of a site that
/// come within this part of the usual time.
fn published(id: &'static str, days: f64) -> (&'static str, Workload, SimConfig) {
    let (mut workload, mut sim) = world(id, |sim| {
        sim.capabilities.grant(ActionKind::Preempt, true);
        sim.capabilities.sharing = Sharing::Mps;
    });
    sim = sim.as_published();
    sim.outcomes = Some(OutcomeModel::from_name("venus-by-age").unwrap());
    sim.capacity.site = Some(SiteFailures {
        hardware: SiteFailures::RESEARCH.hardware / days,
        incidents: SiteFailures::RESEARCH.incidents / days,
        ..SiteFailures::RESEARCH
    });
    workload.fill_class_facts(true);
    assert!(workload.cluster.fabric.is_some());
    (id, workload, sim)
}

fn behind_slurm() -> (Workload, SimConfig) {
    world("Pleach/PhillyGang-v1", |sim| {
        let slurm = BatchSystem::SLURM;
        sim.capabilities.grant(ActionKind::Preempt, true);
        sim.capabilities = slurm.capabilities(sim.capabilities);
        sim.batch_system = Some(slurm);
        sim.outcomes = Some(OutcomeModel::philly());
        sim.capacity = failing(2.0);
    })
}

/// Plays one and holds its record to the rules; says how segments ended.
fn hold(id: &str, workload: &Workload, sim: &SimConfig, policy: &PolicySpec) -> BTreeSet<Ended> {
    let mut granted = sim.clone();
    granted.capabilities = granted.capabilities.with_actions(policy.asks().unwrap());
    let result = simulate_as_asked(workload, policy, &granted).unwrap();
    let run = run_of(policy.name(), workload, 3, result.segments);
    let verdict = verify(&facts_of(workload).unwrap(), &conditions_of(&granted), &run).unwrap();
    let faults: Vec<String> = verdict.faults.iter().take(5).map(ToString::to_string).collect();
    assert_eq!(faults, [""; 0], "{} on {id}", policy.name());
    assert_eq!(verdict.num_jobs, workload.jobs.len());
    // What the record says of a job is what the simulation says.
    let held_gpu_s: f64 = run
        .segments
        .iter()
        .map(|segment| {
            segment.num_gpus() as f64 * f64::from(segment.gpu_milli) / 1000.0
                * (segment.to_s - segment.from_s)
        })
        .sum();
    let attained_gpu_s: f64 = result.jobs.iter().map(|job| job.attained_gpu_s).sum();
    assert!(
        (held_gpu_s - attained_gpu_s).abs() <= 1e-6 * attained_gpu_s,
        "{} on {id}: {held_gpu_s} GPU s in the record, {attained_gpu_s} in the simulation",
        policy.name()
    );
    run.segments.iter().map(|segment| segment.ended).collect()
}

/// Policies by name; a planner that cannot drive a cluster as it is left out by its own words.
fn open(names: impl Iterator<Item = String>) -> Vec<PolicySpec> {
    names.flat_map(|name| DOOR.open(&name).unwrap()).collect()
}

fn reference(name: &str) -> String {
    format!("{}/../checkpoints/reference/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_record_of_every_heuristic_and_planner_is_a_possible_schedule() {
    let heuristics = heuristics::infos().iter().map(|info| info.name.to_owned());
    let planners = pleach_baselines::names().map(str::to_owned);
    let mut policies = open(heuristics.chain(planners));
    // A fifth of its population: what is held here does not depend on how good a plan is.
    PolicySpec::configure(&mut policies, &json!({ "pollux": { "population": 20 } })).unwrap();
    assert!(policies.len() > 40, "{}", policies.len());
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
