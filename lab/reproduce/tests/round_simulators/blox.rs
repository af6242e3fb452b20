//! Blox: jobs of one GPU that keep it until a job before them in the order wants it.

use crate::presets::blox::{Blox, CLOCK, Order};
use crate::presets::in_rounds::run;
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_scheduler::Time;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources};

use super::recorded::{Comparison, Row, folder, number, rows};

fn job(row: &Row) -> JobSpec {
    JobSpec {
        id: row["job_id"].clone(),
        submit: Time::from_secs_f64(number(row, "arrival_s")),
        num_gpus: number(row, "gpus") as u32,
        run_time_s: number(row, "duration_iters"),
        estimate_s: None,
        tenant: 0,
        class: 0,
        user: None,
        outcome: Outcome::Unknown,
        resources: Resources::WHOLE_GPU,
        observed: None,
    }
}

#[test]
fn blox_with_jobs_of_one_gpu_starts_and_ends_every_job_as_recorded() {
    let Some(blox) = folder("blox") else { return };
    let index = rows(&blox.join("index.csv"));
    assert_eq!(index.len(), 3, "recorded runs of blox");
    for row in index {
        let folder = blox.join(&row["config"]).join(&row["sched"]);
        let workload = Workload {
            name: row["config"].clone(),
            cluster: ClusterSpec::uniform(4, 4, 4),
            classes: vec![ModelClass {
                name: "any".into(),
                speed: vec![1.0],
                ..ModelClass::default()
            }],
            jobs: rows(&folder.join("input_jobs.csv.gz")).iter().map(job).collect(),
        };
        let order = match row["sched"].as_str() {
            "Fifo" => Order::Fifo,
            "Las" => Order::Las,
            _ => Order::Srtf,
        };
        let result = run(&workload, CLOCK, &mut Blox { order }, &mut |_| {}).unwrap();
        // The input holds more jobs than were followed.
        let recorded = rows(&folder.join("jobs.csv.gz"));
        let ours = &result.jobs[..recorded.len()];
        let theirs: Vec<f64> = recorded.iter().map(|row| number(row, "finish_s")).collect();
        let comparison = Comparison::of(&theirs, ours, 1e-3);
        comparison.print(&format!("blox {} {}", row["config"], row["sched"]));
        let preemptions: u32 = ours.iter().map(|job| job.num_preemptions).sum();
        println!(
            "    preemptions of these jobs: {preemptions}; of all jobs there: {}",
            row["preemptions"]
        );
        assert!(comparison.all_equal(), "{}: {:?}", row["sched"], comparison.first);
        let starts = recorded
            .iter()
            .zip(ours)
            .all(|(row, job)| job.first_start_s == number(row, "start_s"));
        assert!(starts, "{}: some job starts at another time", row["sched"]);
    }
}
