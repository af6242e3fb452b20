//! The event-driven simulator against a slow, obviously right one that goes second by second: every job starts, ends and
//! is stopped exactly when the slow one says, under every heuristic.

use crate::scenario;
use crate::slow_simulator;
use pleach_env::workload::Workload;
use pleach_env::{SimConfig, simulate};
use pleach_scheduler::heuristics::{self, Patience, best_type_delay, delayed_backfill};
use pleach_scheduler::policy::Policy;
use pleach_scheduler::{ActionKind, Lens};
use proptest::prelude::*;

/// (first start s, finish s, preemptions, failures, held s) of every job.
type Row = (f64, f64, u32, u32, f64);

/// A heuristic by name; one that waits, with `:brief` behind its name, has patience from jobs of two minutes on.
fn heuristic(name: &str) -> Box<dyn Policy> {
    let Some(name) = name.strip_suffix(":brief") else {
        return heuristics::by_name(name).unwrap();
    };
    let patience = Patience {
        short_s: 128.0,
        ..Patience::TUNED
    };
    match name {
        "sjf-delay" => Box::new(delayed_backfill("sjf-delay", Lens::Shortest, patience)),
        "gpu-time-delay" => Box::new(delayed_backfill(
            "gpu-time-delay",
            Lens::SmallestGpuTime,
            patience,
        )),
        _ => Box::new(best_type_delay("best-type-delay", patience)),
    }
}

fn fast(policy: &str, workload: &Workload, config: &SimConfig) -> Vec<Row> {
    let mut policy = heuristic(policy);
    let result = simulate(workload, config, &mut policy).unwrap();
    let rows = result.jobs.iter();
    rows.map(|job| {
        let num_stops = (job.num_preemptions, job.num_failures);
        (
            job.first_start_s,
            job.finish_s,
            num_stops.0,
            num_stops.1,
            job.held_s,
        )
    })
    .collect()
}

fn slow(policy: &str, workload: &Workload, config: &SimConfig) -> Option<Vec<Row>> {
    let jobs = slow_simulator::run(policy, workload, config)?;
    let seconds = f64::from;
    let row = |job: &slow_simulator::Job| {
        let (start_s, finish_s) = (seconds(job.first_start), seconds(job.finish));
        let held_s = seconds(job.held_s);
        (start_s, finish_s, job.num_preemptions, job.num_failures, held_s)
    };
    Some(jobs.iter().map(row).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn every_job_starts_stops_and_ends_when_the_slow_simulator_says(
        workload in scenario::workload(16),
        config in scenario::config(),
        policy in proptest::sample::select(heuristics::names()),
    ) {
        let slow = slow(policy, &workload, &config);
        // A few workloads leave the grid of whole seconds; proptest gives up if they were many.
        prop_assume!(slow.is_some());
        prop_assert_eq!(fast(policy, &workload, &config), slow.unwrap());
    }

    #[test]
    fn preemptive_policies_stop_and_restart_jobs_as_the_slow_simulator_does(
        workload in scenario::workload(24),
        mut config in scenario::config(),
        policy in proptest::sample::select(vec!["srtf", "las"]),
    ) {
        config.capabilities.grant(ActionKind::Preempt, true);
        let slow = slow(policy, &workload, &config);
        prop_assume!(slow.is_some());
        prop_assert_eq!(fast(policy, &workload, &config), slow.unwrap());
    }

    #[test]
    fn reservations_hold_back_what_the_slow_simulator_holds_back(
        workload in scenario::workload(24),
        mut config in scenario::config(),
        policy in proptest::sample::select(vec!["easy", "easy-sjf", "sjf-reserve", "gpu-time-reserve"]),
    ) {
        config.capabilities.grant(ActionKind::Reserve, true);
        let slow = slow(policy, &workload, &config);
        prop_assume!(slow.is_some());
        prop_assert_eq!(fast(policy, &workload, &config), slow.unwrap());
    }

    #[test]
    fn jobs_wait_for_tighter_places_and_faster_types_as_in_the_slow_simulator(
        workload in scenario::workload(16),
        config in scenario::config(),
        policy in proptest::sample::select(vec!["sjf-delay:brief", "gpu-time-delay:brief", "best-type-delay:brief"]),
    ) {
        let slow = slow(policy, &workload, &config);
        prop_assume!(slow.is_some());
        prop_assert_eq!(fast(policy, &workload, &config), slow.unwrap());
    }

    #[test]
    fn jobs_fail_with_their_nodes_and_go_on_from_their_checkpoints_as_in_the_slow_simulator(
        workload in scenario::workload(16),
        mut config in scenario::config(),
        mut outages in scenario::outages(),
        interval in prop_oneof![Just(None), Just(Some(64.0)), Just(Some(160.0))],
        policy in proptest::sample::select(vec!["fifo", "fifo-skip", "sjf", "gpu-time", "packing", "fair-share"]),
    ) {
        let num_nodes = workload.cluster.node_groups.iter().map(|group| group.count).sum::<u32>();
        outages.changes.retain(|change| change.node < num_nodes);
        config.capacity = outages;
        config.capabilities.checkpoint_interval_s = interval;
        let slow = slow(policy, &workload, &config);
        prop_assume!(slow.is_some());
        prop_assert_eq!(fast(policy, &workload, &config), slow.unwrap());
    }
}
