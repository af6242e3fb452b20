//! When every job starts and ends under every heuristic and every planner, each with what it asks for.

use pleach_dealing::{Entry, policy_planner};
use pleach_env::failures::OutcomeModel;
use pleach_env::workload::Workload;
use pleach_env::workload::generate::{
    GavelConfig, GeneratorConfig, Paper, PolluxConfig, ProfileConfig, SynergyConfig, generate,
};
use pleach_env::{Seed, SimConfig, simulate_planner};
use pleach_scheduler::{ActionKind, ActionSet, Planner, PolicyPlanner, heuristics};
use serde_json::Value;

use pleach_tests::golden::{Digest, Row, hold};

const RUN_TIME_S_MAX: f64 = 86_400.0;
const NUM_JOBS: usize = 50;
const LOAD: f64 = 8.0;

/// Gangs, several GPU types, CPU and memory, shares of a GPU, elastic jobs: few nodes, so that few jobs make a queue.
fn generators() -> [GeneratorConfig; 5] {
    [
        GeneratorConfig::Profile(ProfileConfig {
            num_nodes: 2,
            nodes_per_rack: 1,
            load: LOAD,
            run_time_s_max: RUN_TIME_S_MAX,
            ..ProfileConfig::default()
        }),
        GeneratorConfig::Paper(Paper::GavelMulti(GavelConfig {
            nodes_per_type: 2,
            nodes_per_rack: 2,
            load: LOAD,
            run_time_s_max: RUN_TIME_S_MAX,
            ..GavelConfig::default()
        })),
        GeneratorConfig::Paper(Paper::SynergyMulti(SynergyConfig {
            num_nodes: 4,
            nodes_per_rack: 2,
            load: LOAD,
            run_time_s_max: RUN_TIME_S_MAX,
            ..SynergyConfig::default()
        })),
        GeneratorConfig::Profile(ProfileConfig {
            num_nodes: 4,
            nodes_per_rack: 2,
            load: LOAD,
            run_time_s_max: RUN_TIME_S_MAX,
            ..ProfileConfig::named("openb-like")
        }),
        GeneratorConfig::Paper(Paper::Pollux(PolluxConfig {
            jobs_per_hour: None,
            load: LOAD,
            ..PolluxConfig::default()
        })),
    ]
}

fn workload(generator: &GeneratorConfig) -> Workload {
    let config = generator.clone().resized(Some(NUM_JOBS), None);
    let mut workload = generate(&config, Seed(5)).unwrap();
    workload.name = generator.name().into();
    workload
}

fn play(workload: &Workload, config: &SimConfig, asks: ActionSet, mut planner: Box<dyn Planner>) -> Row {
    let mut config = config.clone();
    config.capabilities = config.capabilities.with_actions(asks);
    let result = simulate_planner(workload, &config, planner.as_mut()).unwrap();
    let mut digest = Digest::new();
    for (id, job) in result.jobs.iter().enumerate() {
        digest.word(id as u64);
        digest.f64s(&[job.first_start_s, job.finish_s, job.held_s, job.attained_gpu_s]);
        digest.word(u64::from(job.num_preemptions));
    }
    let num_preemptions: u32 = result.jobs.iter().map(|job| job.num_preemptions).sum();
    let figures = format!(
        "average JCT {:.1} s, wait {:.1} s, {num_preemptions} preemptions",
        result.metrics.avg_jct_s, result.metrics.avg_wait_s
    );
    Row::new(format!("{}, {}", planner.name(), workload.name), digest, figures)
}

/// Every heuristic, then every planner.
fn everyone() -> Vec<(ActionSet, Box<dyn Planner>)> {
    let mut all: Vec<(ActionSet, Box<dyn Planner>)> = Vec::new();
    for name in heuristics::names() {
        let policy = heuristics::by_name(name).unwrap();
        let asks = policy.needs().actions.intersection(ActionSet::OPTIONAL);
        all.push((asks, Box::new(PolicyPlanner::new(policy))));
    }
    // In the order of the table, which is older than the place of conservative backfilling.
    let lab: Vec<&Entry> = pleach_baselines::entries().collect();
    let (philly, others) = lab.split_at(1);
    let planners = philly.iter().copied().chain(pleach_dealing::BACKFILLING);
    let planners = planners
        .chain(others.iter().copied())
        .chain(pleach_dealing::ENTRIES);
    for entry in planners {
        all.push((entry.requirements, (entry.make)(&Value::Null).unwrap()));
    }
    all
}

/// Every heuristic, by whose passes GPUs are dealt.
fn dealt() -> Vec<(ActionSet, Box<dyn Planner>)> {
    let asks = ActionSet::of(ActionKind::Preempt).with(ActionKind::Share);
    let of = |name: &&str| -> (ActionSet, Box<dyn Planner>) {
        let policy = heuristics::by_name(name).unwrap();
        (
            asks,
            Box::new(policy_planner(&format!("deal:{name}"), policy).unwrap()),
        )
    };
    heuristics::names().iter().map(of).collect()
}

#[test]
fn every_job_starts_and_ends_when_it_did_under_every_heuristic_and_planner() {
    hold("schedulers", played(everyone));
}

#[test]
fn every_job_starts_and_ends_when_it_did_where_gpus_are_dealt_by_the_passes_of_a_heuristic() {
    hold("dealt", played(dealt));
}

/// All of them on a list of each kind, and once with failures.
fn played(all: impl Fn() -> Vec<(ActionSet, Box<dyn Planner>)>) -> Vec<Row> {
    let mut rows = Vec::new();
    for generator in generators() {
        let workload = workload(&generator);
        for (asks, planner) in all() {
            rows.push(play(&workload, &SimConfig::default(), asks, planner));
        }
    }
    let mut config = SimConfig {
        outcomes: Some(OutcomeModel::philly()),
        ..SimConfig::default()
    };
    config.capacity.node_mtbf_s = Some(86_400.0);
    config.capabilities.checkpoint_interval_s = Some(600.0);
    let mut workload = workload(&generators()[0]);
    workload.name += " with failures";
    for (asks, planner) in all() {
        rows.push(play(&workload, &config, asks, planner));
    }
    rows
}
