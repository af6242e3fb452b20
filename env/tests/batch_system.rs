//! Promises of a batch system between scheduler and cluster, on random workloads and clusters.

use crate::scenario;
use pleach_env::batch_system::BatchSystem;
use pleach_env::{SimConfig, simulate};
use pleach_scheduler::ActionKind;
use pleach_scheduler::heuristics;
use proptest::prelude::*;

fn with(config: &SimConfig, batch_system: BatchSystem) -> SimConfig {
    SimConfig {
        batch_system: Some(batch_system),
        ..config.clone()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn one_without_delays_changes_nothing(
        workload in scenario::workload(24),
        config in scenario::config(),
        name in proptest::sample::select(heuristics::names()),
    ) {
        let run = |config: &SimConfig| {
            let mut policy = heuristics::by_name(name).unwrap();
            simulate(&workload, config, &mut policy).unwrap()
        };
        let (plain, behind) = (run(&config), run(&with(&config, BatchSystem::default())));
        prop_assert_eq!(format!("{plain:?}"), format!("{behind:?}"));
    }

    #[test]
    fn jobs_begin_a_delay_after_a_tick_and_need_their_time(
        workload in scenario::workload(24),
        config in scenario::config(),
        name in proptest::sample::select(heuristics::names()),
        tick_s in 1_u32..100,
        start_delay_s in 0_u32..50,
        end_delay_s in 0_u32..50,
        requeue_delay_s in 0_u32..200,
    ) {
        let (tick_s, start_delay_s) = (f64::from(tick_s), f64::from(start_delay_s));
        let batch_system = BatchSystem {
            tick_s,
            start_delay_s,
            end_delay_s: f64::from(end_delay_s),
            requeue_delay_s: f64::from(requeue_delay_s),
            failure_delay_s: 0.0,
            whole_nodes: false,
        };
        let mut policy = heuristics::by_name(name).unwrap();
        let result = simulate(&workload, &with(&config, batch_system), &mut policy).unwrap();
        for (job, outcome) in workload.jobs.iter().zip(&result.jobs) {
            let begins_late = outcome.first_start_s >= outcome.submit_s + start_delay_s - 1e-6;
            prop_assert!(begins_late && outcome.jct_s() >= outcome.isolated_s + start_delay_s - 1e-3, "{name} {outcome:?}");
            let ticks = (outcome.first_start_s - start_delay_s) / tick_s;
            let is_on_tick = (ticks - ticks.round()).abs() < 1e-6;
            // A job that takes the place of a preempted one, or was itself stopped before it began, may begin later.
            prop_assert!(is_on_tick || config.capabilities.can(ActionKind::Preempt), "{name} {outcome:?}");
            prop_assert!((outcome.work_s - job.run_time_s).abs() < 1e-3, "{name} {outcome:?}");
        }
    }
}
