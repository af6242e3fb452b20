//! Rounds in which nothing changes are jumped over: a run that jumps is, to the last bit, the run that walks through every
//! round, and long jobs take no more plans than short ones.

use crate::parts::{over_all_planners, settings};
use pleach_dealing::Entry;
use pleach_env::availability::AvailabilityConfig;
use pleach_env::failures::OutcomeModel;
use pleach_env::workload::generate::{GeneratorConfig, generate};
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_env::{Seed, SimConfig, SimResult, simulate_planner};
use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources};
use pleach_scheduler::{ActionKind, Planner, PolicyError, Time};

/// Planners whose rounds are jumped over where no job waits and, for some, on one GPU type.
const RESTING: [&str; 11] = [
    "themis",
    "muri",
    "synergy-fair",
    "synergy-greedy",
    "synergy-tune",
    "synergy-opt",
    "elastic-dp",
    "sia",
    "gavel-las",
    "gavel-makespan",
    "gavel-fifo",
];

/// A planner whose plans are counted, and that never rests if it is to walk.
struct Counted {
    inner: Box<dyn Planner>,
    walks: bool,
    num_plans: u64,
    has_rested: bool,
}

impl Planner for Counted {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.num_plans += 1;
        self.inner.plan(cluster)?;
        self.has_rested |= self.rests();
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        self.inner.wake_at(cluster)
    }

    fn rests(&self) -> bool {
        !self.walks && self.inner.rests()
    }
}

/// What a run gave, how many plans it took, and whether it ever rested.
fn run(entry: &Entry, workload: &Workload, config: &SimConfig, walks: bool) -> (SimResult, u64, bool) {
    let mut planner = Counted {
        inner: (entry.make)(&settings(entry)).unwrap(),
        walks,
        num_plans: 0,
        has_rested: false,
    };
    let mut config = config.clone();
    config.capabilities = config.capabilities.with_actions(entry.requirements);
    (config.record_utilisation, config.record_waits) = (true, true);
    let result = simulate_planner(workload, &config, &mut planner).unwrap();
    (result, planner.num_plans, planner.has_rested)
}

/// Both ways, with the same result; the plans of each.
fn compare(entry: &Entry, workload: &Workload, config: &SimConfig) -> (u64, u64) {
    let (jumped, num_jumped, has_rested) = run(entry, workload, config, false);
    if !has_rested {
        // Every round was walked through.
        return (num_jumped, num_jumped);
    }
    let (walked, num_walked, _) = run(entry, workload, config, true);
    let name = (entry.info.name, &workload.name);
    assert!(num_jumped <= num_walked, "{name:?}");
    // Debug output tells every bit of a float, and -0 from 0.
    assert_eq!(format!("{walked:?}"), format!("{jumped:?}"), "{name:?}");
    (num_walked, num_jumped)
}

fn job(id: usize, submit_s: f64, num_gpus: u32, run_time_s: f64) -> JobSpec {
    JobSpec {
        id: id.to_string(),
        submit: Time::from_secs_f64(submit_s),
        tenant: 0,
        class: 0,
        num_gpus,
        run_time_s,
        estimate_s: None,
        user: None,
        outcome: Outcome::Unknown,
        resources: Resources::WHOLE_GPU,
        observed: None,
    }
}

/// Jobs that mostly run side by side and sometimes wait, off the beat of every round.
fn sparse() -> Workload {
    let jobs = (0..30).map(|index| {
        let submit_s = 1234.567 * index as f64 + f64::from(index as u32 % 7) * 3.21;
        let num_gpus = [1, 2, 1, 4, 1, 8][index % 6];
        job(
            index,
            submit_s,
            num_gpus,
            700.0 + 977.7 * (index * index % 13) as f64,
        )
    });
    Workload {
        name: "sparse".into(),
        cluster: ClusterSpec::uniform(4, 4, 2),
        classes: vec![ModelClass::default()],
        jobs: jobs.collect(),
    }
}

/// A planner on sparse lists, without failures and with them, jumping and walking.
fn jumps_and_walks_alike(entry: &Entry) {
    let presets = [
        "gavel-multi",
        "synergy-multi",
        "sia-philly",
        "pai-share",
        "gavel-single",
    ];
    let mut workloads = vec![sparse()];
    workloads.extend(presets.map(|name| {
        let config = GeneratorConfig::preset(name).unwrap().with(12, 0.4);
        generate(&config, Seed(11)).unwrap()
    }));
    let mut failing = SimConfig {
        seed: 3,
        outcomes: Some(OutcomeModel::philly()),
        capacity: AvailabilityConfig {
            node_mtbf_s: Some(2e5),
            ..AvailabilityConfig::default()
        },
        ..SimConfig::default()
    };
    failing.capabilities.grant(ActionKind::Preempt, true);
    failing.capabilities.restart_cost_s = 30.0;
    let (mut num_walked, mut num_jumped) = (0, 0);
    for workload in &workloads {
        for config in [&SimConfig::default(), &failing] {
            let (walked, jumped) = compare(entry, workload, config);
            (num_walked, num_jumped) = (num_walked + walked, num_jumped + jumped);
        }
    }
    let jumps = num_jumped < num_walked;
    assert!(
        jumps || !RESTING.contains(&entry.info.name),
        "{} walks through all of its {num_walked} plans",
        entry.info.name
    );
}

over_all_planners!(
    every_planner_that_jumps_over_rounds_gives_what_it_gives_walking,
    jumps_and_walks_alike
);

#[test]
fn jobs_of_thirty_years_take_as_few_plans_as_jobs_of_a_day() {
    let plans = |entry: &Entry, run_time_s: f64, walks: bool| {
        let jobs = [(0.0, 1), (100.25, 2), (4321.0, 4)];
        let jobs = jobs.into_iter().enumerate();
        let workload = Workload {
            jobs: jobs
                .map(|(index, (submit_s, num_gpus))| job(index, submit_s, num_gpus, run_time_s))
                .collect(),
            ..sparse()
        };
        run(entry, &workload, &SimConfig::default(), walks).1
    };
    for name in RESTING {
        let entry = pleach_baselines::find(name).unwrap();
        let found = [(86_400.0, true), (86_400.0, false), (1e9, false)]
            .map(|(run_time_s, walks)| plans(entry, run_time_s, walks));
        // A plan for each of six events, and no more than three rounds after each until it rests.
        assert!(
            found[0] > 60 && found[1] <= 24 && found[2] <= 24,
            "{name}: {found:?}"
        );
    }
}

/// A planner whose search draws in every round cannot jump over one, and 17 million rounds of three jobs are hours of computing.
#[test]
fn jobs_of_thirty_years_are_refused_where_no_round_can_be_jumped_over() {
    let entry = pleach_baselines::find("pollux").unwrap();
    let workload = Workload {
        jobs: (0..3)
            .map(|index| job(index, 100.25 * index as f64, 2, 1e9))
            .collect(),
        ..sparse()
    };
    let mut config = SimConfig::default();
    config.capabilities = config.capabilities.with_actions(entry.requirements);
    let mut planner = Counted {
        inner: (entry.make)(&serde_json::Value::Null).unwrap(),
        walks: false,
        num_plans: 0,
        has_rested: false,
    };
    let refused = simulate_planner(&workload, &config, &mut planner)
        .unwrap_err()
        .to_string();
    let words = [
        "run_time_s = 99",
        "s more until a job comes or goes",
        " s where pollux plans every 60 s",
    ];
    assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
    assert!(planner.num_plans < 2000, "{} plans", planner.num_plans);
}
