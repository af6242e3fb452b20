//! Worlds in which much can happen, and what holds a scheduler's record of them to the rules of a possible schedule.

use std::collections::BTreeSet;

use pleach_env::availability::{AvailabilityChange, AvailabilityConfig};
use pleach_env::batch_system::BatchSystem;
use pleach_env::failures::OutcomeModel;
use pleach_env::schedule::Ended;
use pleach_env::site_failures::SiteFailures;
use pleach_env::workload::Workload;
use pleach_env::{EnvConfig, Seed, SimConfig, Source, simulate_planner};
use pleach_experiments::door::PolicySpec;
use pleach_experiments::schedule::{conditions_of, facts_of, run_of};
use pleach_scheduler::ActionKind;
use pleach_scheduler::cluster::{NodeState, Sharing};
use pleach_verify::verify;

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
pub fn failing(days: f64) -> AvailabilityConfig {
    AvailabilityConfig {
        node_mtbf_s: Some(days * 86_400.0),
        ..AvailabilityConfig::default()
    }
}

pub fn worlds() -> Vec<(&'static str, Workload, SimConfig)> {
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
    sim = sim.realistic(false);
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

pub fn behind_slurm() -> (Workload, SimConfig) {
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
pub fn hold(id: &str, workload: &Workload, sim: &SimConfig, policy: &PolicySpec) -> BTreeSet<Ended> {
    let mut granted = sim.clone();
    granted.capabilities = granted.capabilities.with_actions(policy.asks().unwrap());
    let mut planner = policy.make_planner().unwrap();
    let result = simulate_planner(workload, &granted, planner.as_mut()).unwrap();
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
