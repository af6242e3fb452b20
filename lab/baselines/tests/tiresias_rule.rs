//! The production planner `tiresias` against its rule applied blindly every quarter of a second, and against recorded runs
//! of the released simulator.
//!
//! The released simulator notices demotions late (it divides seconds left by GPUs, not GPU·s left), and orders a queue by
//! when jobs last began to run or to wait, where the planner follows the paper: by first start. So job-by-job agreement
//! with the recorded runs is the business of the preset of its simulator (`lab/reproduce/tests/presets`); the planner is held to
//! the paper's rule exactly, and its distance from the recorded runs is stated.

use std::path::PathBuf;

use pleach_env::workload::import::{ImportOptions, import};
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_env::{Seed, SimConfig, simulate_planner};
use pleach_scheduler::cluster::Capabilities;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources};
use pleach_scheduler::{ActionKind, Time};
use rand::RngExt as _;
use serde_json::json;

/// Both thresholds are multiples of it for gangs of 1, 2, 4 and 8 GPUs, so a tick of so long misses no demotion.
const TICK_S: f64 = 0.25;
const THRESHOLDS_GPU_S: [f64; 2] = [3250.0, 7200.0];

/// Ends of all jobs under the planner with the three queues of the released simulator, s.
fn planned(num_nodes: u32, gpus_per_node: u32, jobs: &[JobSpec]) -> Vec<f64> {
    let workload = Workload {
        name: "tiresias".into(),
        cluster: ClusterSpec::uniform(num_nodes, gpus_per_node, num_nodes),
        classes: vec![ModelClass::default()],
        jobs: jobs.to_vec(),
    };
    let settings = json!({ "thresholds_gpu_s": THRESHOLDS_GPU_S, "consolidate_below": 0.0 });
    let mut planner = pleach_baselines::make("tiresias", &settings).unwrap();
    let config = SimConfig {
        capabilities: Capabilities {
            restart_cost_s: 0.0,
            ..Capabilities::DEFAULT.with(ActionKind::Preempt)
        },
        ..SimConfig::default()
    };
    let result = simulate_planner(&workload, &config, planner.as_mut()).unwrap();
    result.jobs.iter().map(|job| job.finish_s).collect()
}

/// Which job goes first within a queue.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// The job that started first, then the one that came first: the paper.
    FirstStart,
    /// Running before waiting jobs, both in the order in which they became so or came into the queue: the released code.
    LastChange,
}

/// The rule of the paper, tick by tick: GPUs go to the queues in turn; a job that does not fit is passed over.
fn tick_by_tick(num_gpus: u32, jobs: &[JobSpec], order: Order) -> Vec<f64> {
    let mut changed: Vec<(bool, usize, u64)> = vec![(false, usize::MAX, 0); jobs.len()];
    let mut left_s: Vec<f64> = jobs.iter().map(|job| job.run_time_s).collect();
    let mut attained_gpu_s = vec![0.0_f64; jobs.len()];
    let mut first_start: Vec<u64> = vec![u64::MAX; jobs.len()];
    let mut ends = vec![0.0; jobs.len()];
    for tick in 0.. {
        let now_s = tick as f64 * TICK_S;
        let mut here: Vec<usize> = (0..jobs.len())
            .filter(|id| jobs[*id].submit.as_secs_f64() <= now_s && left_s[*id] > 0.0)
            .collect();
        if here.is_empty() && left_s.iter().all(|left| *left <= 0.0) {
            break;
        }
        let queue = |id: usize| {
            THRESHOLDS_GPU_S
                .iter()
                .filter(|limit| attained_gpu_s[id] >= **limit)
                .count()
        };
        here.sort_by_key(|id| match order {
            Order::FirstStart => (queue(*id), false, first_start[*id], *id),
            Order::LastChange => {
                let (runs, in_queue, since) = changed[*id];
                let since = if in_queue == queue(*id) { since } else { tick };
                (queue(*id), !runs, since, *id)
            }
        });
        let queues: Vec<usize> = (0..jobs.len()).map(queue).collect();
        let mut free = num_gpus;
        for id in here {
            let runs = jobs[id].num_gpus <= free;
            if (changed[id].0, changed[id].1) != (runs, queues[id]) {
                changed[id] = (runs, queues[id], tick);
            }
            if runs {
                free -= jobs[id].num_gpus;
                first_start[id] = first_start[id].min(tick);
                left_s[id] -= TICK_S;
                attained_gpu_s[id] += TICK_S * f64::from(jobs[id].num_gpus);
                if left_s[id] <= 0.0 {
                    ends[id] = now_s + TICK_S;
                }
            }
        }
    }
    ends
}

fn job(number: usize, submit_s: f64, num_gpus: u32, run_time_s: f64) -> JobSpec {
    JobSpec {
        id: number.to_string(),
        submit: Time::from_secs_f64(submit_s),
        num_gpus,
        run_time_s,
        estimate_s: None,
        tenant: 0,
        class: 0,
        user: None,
        outcome: Outcome::Unknown,
        resources: Resources::WHOLE_GPU,
        observed: None,
    }
}

fn mean_jct_s(jobs: &[JobSpec], ends: &[f64]) -> f64 {
    let jcts = jobs
        .iter()
        .zip(ends)
        .map(|(job, end)| end - job.submit.as_secs_f64());
    jcts.sum::<f64>() / jobs.len() as f64
}

#[test]
fn the_planner_ends_every_job_when_the_rule_does_that_is_applied_every_quarter_of_a_second() {
    for seed in 0..12 {
        let mut rng = Seed(seed).stream("jobs", 0);
        let mut submit_s = 0.0;
        let jobs: Vec<JobSpec> = (0..60)
            .map(|number| {
                submit_s += f64::from(rng.random_range(0..400_u32));
                let num_gpus = [1, 1, 2, 4, 8][rng.random_range(0..5_usize)];
                job(
                    number,
                    submit_s,
                    num_gpus,
                    f64::from(rng.random_range(10..6000_u32)),
                )
            })
            .collect();
        let (ours, blind) = (planned(2, 8, &jobs), tick_by_tick(16, &jobs, Order::FirstStart));
        for ((job, ours), blind) in jobs.iter().zip(&ours).zip(&blind) {
            assert!(
                (ours - blind).abs() < 1e-5,
                "seed {seed}, {job:?}: {ours} {blind}"
            );
        }
    }
}

fn data(path: &str) -> Option<PathBuf> {
    pleach_tests::data(&format!("golden/tiresias/{path}"))
}

/// Jobs of an input list and the ends that the released simulator recorded under `dlas-gpu`, s.
fn recorded(list: &str, run: &str) -> Option<(Vec<JobSpec>, Vec<f64>)> {
    let input = data(&format!("inputs/{list}"))?;
    let mut jobs = import(&input, &ImportOptions::default()).unwrap().0.jobs;
    // Models all run alike here.
    jobs.iter_mut().for_each(|job| job.class = 0);
    let file = std::fs::File::open(data(&format!("{run}/dlas-gpu/jobs.csv.gz"))?).unwrap();
    let mut reader = csv::Reader::from_reader(flate2::read::MultiGzDecoder::new(file));
    let rows: Vec<std::collections::BTreeMap<String, String>> =
        reader.deserialize().map(Result::unwrap).collect();
    let end = |job: &JobSpec| -> f64 {
        let row = rows.iter().find(|row| row["job_id"] == job.id).unwrap();
        row["end_time"].parse().unwrap()
    };
    let ends = jobs.iter().map(end).collect();
    Some((jobs, ends))
}

/// Jobs that end at another time, and by how much the mean JCT is off, 0.01 = 1 %.
fn difference(jobs: &[JobSpec], ours: &[f64], theirs: &[f64]) -> (usize, f64) {
    let pairs = ours.iter().zip(theirs);
    let num_other = pairs
        .filter(|(ours, theirs)| (*ours - *theirs).abs() > 1e-6)
        .count();
    (num_other, mean_jct_s(jobs, ours) / mean_jct_s(jobs, theirs) - 1.0)
}

#[test]
fn without_a_demotion_every_job_ends_as_recorded() {
    // The longest of the 60 jobs receives 2,440 GPU·s: no job leaves the first queue.
    let Some((jobs, ends)) = recorded("60_job.csv", "tir_60_n4g4_count") else {
        return;
    };
    assert_eq!(difference(&jobs, &planned(4, 4, &jobs), &ends), (0, 0.0));
}

#[test]
fn with_demotions_the_planner_is_as_far_from_the_recorded_run_as_the_rule_itself() {
    let Some((jobs, ends)) = recorded("t300.csv", "tir_300_n4g8_count") else {
        return;
    };
    let ours = planned(4, 8, &jobs);
    let rule = tick_by_tick(32, &jobs, Order::FirstStart);
    assert_eq!(difference(&jobs, &ours, &rule).0, 0);
    // What is left of the difference with the released code's order is its late demotions.
    let other_order = tick_by_tick(32, &jobs, Order::LastChange);
    let (num_other, off) = difference(&jobs, &ours, &ends);
    println!(
        "as planned: {num_other} of 300 ends differ, mean JCT {:+.2} %",
        100.0 * off
    );
    let (num_late, late) = difference(&jobs, &other_order, &ends);
    println!(
        "the rule in the released code's order: {num_late} ends differ, mean JCT {:+.2} %",
        100.0 * late
    );
    assert!(num_other < 75 && off.abs() < 0.03, "{num_other} {off}");
}
