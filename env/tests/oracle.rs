//! The event-driven simulator against a slow, obviously right one: one second at a time, no cleverness, GPUs counted.

#![allow(clippy::unwrap_used)]

use pleach_env::simulate::{SimConfig, simulate};
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_scheduler::heuristics;
use pleach_scheduler::ids::Time;
use pleach_scheduler::spec::{ClusterSpec, LocalityFactors, ModelClass, Resources};
use proptest::prelude::*;

/// (submit s, GPUs, run time s), all whole numbers.
type Row = (u32, u32, u32);

fn workload(num_gpus: u32, rows: &[Row]) -> Workload {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| row.0);
    let jobs = rows
        .iter()
        .enumerate()
        .map(|(index, (submit_s, num_gpus, run_s))| JobSpec {
            id: index.to_string(),
            submit: Time::from_secs_f64(f64::from(*submit_s)),
            num_gpus: *num_gpus,
            run_time_s: f64::from(*run_s),
            estimate_s: None,
            tenant: 0,
            class: 0,
            user: None,
            outcome: Outcome::Completed,
            resources: Resources::WHOLE_GPU,
        });
    Workload {
        name: "rows".into(),
        cluster: ClusterSpec::uniform(1, num_gpus, 1),
        classes: vec![ModelClass {
            name: "any".into(),
            speed: vec![1.0],
            locality: LocalityFactors::NONE,
            ..ModelClass::default()
        }],
        jobs: jobs.collect(),
    }
}

fn finishes(policy: &str, workload: &Workload, preemption: bool) -> Vec<f64> {
    let mut config = SimConfig::default();
    config.capabilities.preemption = preemption;
    config.capabilities.restart_cost_s = 0.0;
    let mut policy = heuristics::by_name(policy).unwrap();
    let result = simulate(workload, &config, &mut policy).unwrap();
    result.jobs.iter().map(|job| job.finish_s).collect()
}

/// Orders the queue of (job, submit s, GPUs, rest s) as a policy would; whether a job that does not fit blocks the rest.
fn slow_order(policy: &str, queue: &mut [(usize, u32, u32, u32)]) -> bool {
    match policy {
        "fifo" | "fifo-skip" => queue.sort_by_key(|job| job.0),
        "sjf" => queue.sort_by_key(|job| (job.3, job.0)),
        "gpu-time" => queue.sort_by_key(|job| (job.3 * job.2, job.0)),
        "packing" => queue.sort_by_key(|job| (std::cmp::Reverse(job.2), job.0)),
        other => panic!("no slow version of {other}"),
    }
    policy == "fifo"
}

/// One second at a time.
fn slow_finishes(policy: &str, num_gpus: u32, workload: &Workload) -> Vec<f64> {
    let jobs: Vec<Row> = workload
        .jobs
        .iter()
        .map(|job| {
            (
                job.submit.as_secs_f64() as u32,
                job.num_gpus,
                job.run_time_s as u32,
            )
        })
        .collect();
    let mut rest: Vec<u32> = jobs.iter().map(|job| job.2).collect();
    let mut finish = vec![f64::NAN; jobs.len()];
    let mut running: Vec<usize> = Vec::new();
    let mut queue: Vec<(usize, u32, u32, u32)> = Vec::new();
    for now in 0.. {
        running.retain(|job| {
            if rest[*job] == 0 {
                finish[*job] = f64::from(now);
            }
            rest[*job] > 0
        });
        queue.extend(
            jobs.iter()
                .enumerate()
                .filter(|(_, job)| job.0 == now)
                .map(|(index, job)| (index, job.0, job.1, job.2)),
        );
        let blocking = slow_order(policy, &mut queue);
        let mut free = num_gpus - running.iter().map(|job| jobs[*job].1).sum::<u32>();
        let mut blocked = false;
        queue.retain(|job| {
            let fits = job.2 <= free && !blocked;
            if fits {
                free -= job.2;
                running.push(job.0);
            }
            blocked |= blocking && !fits;
            !fits
        });
        for job in &running {
            rest[*job] -= 1;
        }
        if finish.iter().all(|finish| finish.is_finite()) {
            return finish;
        }
    }
    unreachable!()
}

/// Shortest remaining time first on one GPU, one second at a time: the sum of JCTs, which no tie-break changes.
fn slow_srpt_sum_s(workload: &Workload) -> f64 {
    let mut rest: Vec<(u32, u32)> = workload
        .jobs
        .iter()
        .map(|job| (job.submit.as_secs_f64() as u32, job.run_time_s as u32))
        .collect();
    let mut sum_s = 0.0;
    for now in 0.. {
        if rest.iter().all(|job| job.1 == 0) {
            return sum_s;
        }
        let present = rest.iter_mut().filter(|job| job.0 <= now && job.1 > 0);
        if let Some(job) = present.min_by_key(|job| job.1) {
            job.1 -= 1;
            if job.1 == 0 {
                sum_s += f64::from(now + 1 - job.0);
            }
        }
    }
    unreachable!()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_job_finishes_when_the_slow_simulator_says(
        rows in proptest::collection::vec((0_u32..60, 1_u32..=6, 1_u32..40), 1..25),
    ) {
        let workload = workload(6, &rows);
        for policy in ["fifo", "fifo-skip", "sjf", "gpu-time", "packing"] {
            prop_assert_eq!(finishes(policy, &workload, false), slow_finishes(policy, 6, &workload), "{}", policy);
        }
    }

    #[test]
    fn srtf_on_one_gpu_is_shortest_remaining_processing_time(
        rows in proptest::collection::vec((0_u32..60, 1_u32..=1, 1_u32..40), 1..20),
    ) {
        let workload = workload(1, &rows);
        let submits: f64 = workload.jobs.iter().map(|job| job.submit.as_secs_f64()).sum();
        let sum_s = finishes("srtf", &workload, true).iter().sum::<f64>() - submits;
        prop_assert!((sum_s - slow_srpt_sum_s(&workload)).abs() < 1e-3, "{sum_s}");
    }

    #[test]
    fn every_policy_conserves_work_loses_no_job_and_obeys_littles_law(
        rows in proptest::collection::vec((0_u32..300, 1_u32..=8, 1_u32..200), 1..40),
        preemption in any::<bool>(),
    ) {
        let mut workload = workload(8, &rows);
        workload.cluster = ClusterSpec::uniform(4, 2, 2);
        let mut config = SimConfig { record_utilisation: true, ..SimConfig::default() };
        config.capabilities.preemption = preemption;
        for name in heuristics::names() {
            let mut policy = heuristics::by_name(name).unwrap();
            let result = simulate(&workload, &config, &mut policy).unwrap();
            prop_assert_eq!(result.jobs.len(), rows.len());
            let mut held_gpu_s = 0.0;
            for (job, spec) in result.jobs.iter().zip(&workload.jobs) {
                // Speed 1 without locality: a job holds its gang for its run time plus what its restarts cost.
                let most_s = spec.run_time_s + f64::from(job.num_preemptions) * config.capabilities.restart_cost_s;
                prop_assert!(job.held_s >= spec.run_time_s - 1e-5 && job.held_s <= most_s + 1e-5, "{name}: {job:?}");
                prop_assert!(job.jct_s() >= spec.run_time_s - 1e-5);
                prop_assert!(preemption || job.num_preemptions == 0);
                held_gpu_s += job.held_s * f64::from(job.num_gpus);
            }
            // The recorded series integrates to the same service.
            let end_s = result.jobs.iter().map(|job| job.finish_s).fold(0.0, f64::max);
            let ends = result.utilisation.iter().skip(1).map(|point| point.0).chain([end_s]);
            let area: f64 = result.utilisation.iter().zip(ends).map(|((from_s, held), to_s)| held * (to_s - from_s)).sum();
            prop_assert!((area - held_gpu_s).abs() < 1e-3, "{name}: {area} against {held_gpu_s}");
        }
    }
}
