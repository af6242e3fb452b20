//! What holds for every registered planner, on clusters and jobs far from the setting of its paper: several GPU types,
//! walls between tenants, fractions, CPU and memory, elastic jobs, failures, nodes that come and go. Every instant is
//! checked, every job ends, work is conserved, and a second run is the same.

use crate::parts::{over_all_planners, settings};
use crate::scenario;
use pleach_dealing::Entry;
use pleach_env::failures::OutcomeModel;
use pleach_env::site_failures::SiteFailures;
use pleach_env::workload::Workload;
use pleach_env::workload::generate::{GeneratorConfig, generate};
use pleach_env::{Seed, SimConfig, SimResult, simulate_planner, simulate_planner_within};
use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::physics::overheads::Overheads;
use pleach_scheduler::{ActionKind, Planner, PolicyError, Tasks, Time};
use proptest::prelude::*;

/// A planner that is watched: the cluster is whole after every plan, and it does not plan for ever.
struct Watched {
    inner: Box<dyn Planner>,
    num_plans: u64,
    num_plans_max: u64,
}

impl Planner for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        self.num_plans += 1;
        assert!(
            self.num_plans <= self.num_plans_max,
            "{} plans for ever: {} wait and {} run at {:?}",
            self.name(),
            cluster.num_pending(),
            cluster.num_running(),
            cluster.now()
        );
        self.inner.plan(cluster)?;
        cluster.check();
        Ok(())
    }

    fn wake_at(&self, cluster: &Cluster) -> Option<Time> {
        self.inner.wake_at(cluster)
    }

    fn places_tasks(&self) -> bool {
        self.inner.places_tasks()
    }
}

/// Plans in rounds of a second, with room to spare.
fn num_plans_max(workload: &Workload) -> u64 {
    let work_s = workload.columns().run_time_s.sum();
    let last_s = workload.jobs.last().map_or(0.0, |job| job.submit.as_secs_f64());
    1000 + 100 * workload.jobs.len() as u64 + (10.0 * (work_s + last_s)).min(2e6) as u64
}

/// Broken off where the average JCT is sure to be above a bound.
fn run(entry: &Entry, workload: &Workload, config: &SimConfig, avg_jct_s_max: f64) -> Option<SimResult> {
    let mut planner = Watched {
        inner: (entry.make)(&settings(entry)).unwrap(),
        num_plans: 0,
        num_plans_max: num_plans_max(workload),
    };
    let mut config = config.clone();
    config.capabilities = config.capabilities.with_actions(entry.requirements);
    simulate_planner_within(workload, &config, &mut planner, avg_jct_s_max).unwrap()
}

fn check(entry: &Entry, workload: &Workload, config: &SimConfig) {
    let name = entry.info.name;
    let result = run(entry, workload, config, f64::INFINITY).unwrap();
    assert_eq!(result.jobs.len(), workload.jobs.len(), "{name} lost a job");
    let known = config.outcomes.is_none() && config.capacity.node_mtbf_s.is_none();
    for (outcome, job) in result.jobs.iter().zip(&workload.jobs) {
        assert!(
            outcome.first_start_s >= job.submit.as_secs_f64() - 1e-6,
            "{name}: {outcome:?}"
        );
        assert!(outcome.finish_s >= outcome.first_start_s, "{name}: {outcome:?}");
        let preempts =
            entry.requirements.contains(ActionKind::Preempt) || config.capabilities.can(ActionKind::Preempt);
        assert!(preempts || !known || outcome.num_preemptions == 0, "{name}");
    }
    // A run that comes out at its bound is not broken off. Copies of a job do its work more than once.
    let most = if entry.copies_jobs() {
        f64::INFINITY
    } else {
        result.metrics.avg_jct_s
    };
    let again = run(entry, workload, config, most).map(|again| again.jobs);
    assert_eq!(
        Some(result.jobs),
        again,
        "{name} decides otherwise the second time"
    );
}

/// Small workloads of every kind that the generators know.
fn presets() -> Vec<Workload> {
    let presets = [
        "philly-like",
        "gavel-multi",
        "openb-like",
        "synergy-multi",
        "sia-philly",
        "helios-like",
        "pai-share",
    ];

    let workloads = presets.iter().map(|name| {
        let config = GeneratorConfig::preset(name).unwrap().with(40, 1.5);
        generate(&config, Seed(7)).unwrap()
    });
    workloads.collect()
}

over_all_planners!(every_planner_brings_every_kind_of_workload_to_its_end, |entry| {
    for workload in presets() {
        check(entry, &workload, &SimConfig::default());
    }
});

over_all_planners!(
    every_planner_lives_with_jobs_that_fail_and_nodes_that_come_and_go,
    |entry| {
        let mut config = SimConfig {
            outcomes: Some(OutcomeModel::philly()),
            ..SimConfig::default()
        };
        config.capacity.node_mtbf_s = Some(86_400.0);
        config.capabilities.checkpoint_interval_s = Some(600.0);
        let preset = GeneratorConfig::preset("philly-like").unwrap().with(60, 1.5);
        let workload = generate(&preset, Seed(3)).unwrap();
        check(entry, &workload, &config);
        // Half of the failures take their jobs out of the queue for hours.
        config.capacity.node_mtbf_s = None;
        config.capacity.site = Some(SiteFailures {
            hardware: 500.0,
            incidents: 1000.0,
            human_part: 0.5,
            ..SiteFailures::RESEARCH
        });
        check(entry, &workload, &config);
    }
);

/// Gangs that are cut into tasks of all kinds, as far as the cluster has room for them.
fn cut() -> Workload {
    let preset = GeneratorConfig::preset("philly-like").unwrap().with(60, 1.5);
    let mut workload = generate(&preset, Seed(11)).unwrap();
    for number in 0..workload.jobs.len() {
        let tasks = Tasks {
            gpus_per_task: [1, 2, 3, 5, 8][number % 5],
            tasks_per_node_max: [0, 1, 2][number % 3],
            nodes_max: [0, 2, 4, 1][number % 4],
        };
        let before = workload.jobs[number].clone();
        let job = &mut workload.jobs[number];
        job.num_gpus = job.num_gpus.next_multiple_of(u32::from(tasks.gpus_per_task));
        job.resources.tasks = tasks;
        if workload.validate().is_err() {
            workload.jobs[number] = before;
        }
    }
    let num_cut = workload
        .jobs
        .iter()
        .filter(|job| !job.resources.tasks.is_any())
        .count();
    assert!(num_cut > 30, "{num_cut} gangs of tasks say little");
    workload
}

over_all_planners!(every_planner_places_gangs_of_tasks_or_refuses_them, |entry| {
    places_tasks_or_refuses(entry);
});

fn places_tasks_or_refuses(entry: &Entry) {
    let mut config = SimConfig::default();
    config.capacity.node_mtbf_s = Some(86_400.0);
    config.capacity.keep_places_s = 1800.0;
    let workload = cut();
    if (entry.make)(&settings(entry)).unwrap().places_tasks() {
        check(entry, &workload, &config);
        return;
    }
    let mut planner = (entry.make)(&settings(entry)).unwrap();
    config.capabilities = config.capabilities.with_actions(entry.requirements);
    let refused = simulate_planner(&workload, &config, planner.as_mut())
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains(entry.info.name) && refused.contains("shares out single GPUs"),
        "{refused}"
    );
}

#[test]
fn rounds_of_a_minute_outlast_restarts_that_models_make_dear() {
    let mut config = SimConfig::default();
    config.capabilities.overheads = Some(Overheads::from_name("sia-model").unwrap());
    let preset = GeneratorConfig::preset("sia-philly").unwrap().with(40, 3.0);
    let workload = generate(&preset, Seed(5)).unwrap();
    for name in ["gavel-las-fast", "gavel-las-fast-packed"] {
        check(pleach_baselines::find(name).unwrap(), &workload, &config);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_planner_keeps_every_invariant_on_random_clusters_and_jobs(
        workload in scenario::workload(16),
        config in scenario::config(),
    ) {
        for entry in crate::parts::every() {
            check(entry, &workload, &config);
        }
    }
}
