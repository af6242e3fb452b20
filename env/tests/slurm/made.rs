//! A list of our own whose schedule is worked by hand.

use pleach_dealing::slurm::{Partition, Preempt, Priority, Qos, Slurm, SlurmConfig};
use pleach_env::workload::JobSpec;
use pleach_env::workload::estimates::EstimateModel;
use pleach_env::{JobOutcome, SimConfig, simulate_planner};
use pleach_scheduler::{ActionKind, Capabilities};

use crate::labelled;

/// (submission, GPUs on one node, run time and limit), s.
fn starts(num_nodes: u32, rows: &[(f64, u32, f64, f64)], config: SlurmConfig) -> Vec<f64> {
    let played = play(num_nodes, rows, &[], config);
    played.iter().map(|job| job.first_start_s).collect()
}

/// The same with the partition and the quality of service of the last jobs.
fn play(
    num_nodes: u32,
    rows: &[(f64, u32, f64, f64)],
    labels: &[(&str, &str)],
    config: SlurmConfig,
) -> Vec<JobOutcome> {
    let first = rows.len() - labels.len();
    let label = |number: usize| number.checked_sub(first).map_or(("", ""), |at| labels[at]);
    let job = |(number, (submit_s, num_gpus, run_s, limit_s)): (usize, &(f64, u32, f64, f64))| JobSpec {
        estimate_s: Some(*limit_s),
        ..labelled::job(number, (*submit_s, *num_gpus, *num_gpus, *run_s), label(number))
    };
    simulate(num_nodes, rows.iter().enumerate().map(job), config)
}

fn simulate(num_nodes: u32, jobs: impl Iterator<Item = JobSpec>, config: SlurmConfig) -> Vec<JobOutcome> {
    let list = labelled::list(num_nodes, jobs);
    let config_of_sim = SimConfig {
        capabilities: Capabilities::DEFAULT.with(ActionKind::Preempt),
        estimates: EstimateModel::UserLimit { default_s: 3600.0 },
        ..SimConfig::default()
    };
    let mut slurm = Slurm::new(config).unwrap();
    simulate_planner(&list, &config_of_sim, &mut slurm).unwrap().jobs
}

/// (submission, GPUs on one node, run time and limit, features and licences that it asks for), s: when each started.
fn starts_with_wishes(rows: &[(f64, u32, f64, &str, &str)], config: SlurmConfig) -> Vec<f64> {
    let job = |(number, (submit_s, num_gpus, run_s, constraint, licences)): (
        usize,
        &(f64, u32, f64, &str, &str),
    )| {
        let mut job = labelled::job(number, (*submit_s, *num_gpus, *num_gpus, *run_s), ("", ""));
        let observed = job.observed.as_mut().unwrap();
        (observed.constraint, observed.licences) = ((*constraint).into(), (*licences).into());
        JobSpec {
            estimate_s: Some(*run_s),
            ..job
        }
    };
    let played = simulate(2, rows.iter().enumerate().map(job), config);
    played.iter().map(|job| job.first_start_s).collect()
}

fn quick() -> SlurmConfig {
    SlurmConfig {
        bf_interval_s: 2.0,
        bf_resolution_s: 1,
        main_lag_s: 0.5,
        ..SlurmConfig::default()
    }
}

#[test]
fn a_plan_holds_its_node_whole_and_what_ends_before_it_starts_beside() {
    // One node. Job 0 holds 4 GPUs for 120 s; job 1 needs all 8 and is planned at 120 s. Job 2 (1 GPU for 60 s) is over before
    // and starts in the next cycle; job 3 (1 GPU for 300 s) is not, and waits for job 1, although 3 GPUs are free.
    let rows = [
        (0.0, 4, 120.0, 120.0),
        (10.0, 8, 60.0, 60.0),
        (20.0, 1, 60.0, 60.0),
        (30.0, 1, 300.0, 300.0),
    ];
    let found = starts(1, &rows, quick());
    assert!(found[0] <= 1.0 && (20.0..23.0).contains(&found[2]), "{found:?}");
    assert!(
        (120.0..122.0).contains(&found[1]) && (180.0..182.0).contains(&found[3]),
        "{found:?}"
    );
}

#[test]
fn without_backfill_the_first_that_cannot_start_closes_its_partition() {
    let rows = [
        (0.0, 4, 120.0, 120.0),
        (10.0, 8, 60.0, 60.0),
        (20.0, 1, 60.0, 60.0),
    ];
    let found = starts(
        1,
        &rows,
        SlurmConfig {
            backfill: false,
            ..quick()
        },
    );
    // Half a second after each submission and each end. Job 2 fits beside job 0 all the same.
    assert_eq!(found, [0.5, 121.0, 181.5]);
}

#[test]
fn age_is_of_the_last_recomputation_so_that_size_can_turn_the_order_round() {
    // Job 0 fills the node until 100 s. Jobs 1 and 2 wait: by size alone the larger one is first, though it came later.
    let rows = [
        (0.0, 8, 100.0, 100.0),
        (10.0, 2, 50.0, 60.0),
        (20.0, 8, 50.0, 60.0),
    ];
    let by_size = Priority {
        size: 1000,
        gpu: 1000,
        age: 0,
        ..Priority::default()
    };
    let found = starts(
        1,
        &rows,
        SlurmConfig {
            priority: Some(by_size),
            ..quick()
        },
    );
    assert!(found[2] < found[1], "{found:?}");
    let found = starts(1, &rows, quick());
    assert!(found[1] < found[2], "{found:?}");
}

/// Two full nodes: job 0 has one for itself, jobs 1 and 2 share the other. Job 3 asks for half a node at 20 s.
const FULL: [(f64, u32, f64, f64); 4] = [
    (0.0, 8, 300.0, 300.0),
    (1.0, 4, 300.0, 300.0),
    (2.0, 4, 300.0, 300.0),
    (20.0, 4, 60.0, 60.0),
];

#[test]
fn a_job_of_a_higher_partition_or_qos_requeues_as_few_as_it_needs() {
    let partition = |name: &str, tier: u32| Partition {
        name: name.into(),
        tier,
        ..Partition::default()
    };
    let by_partition = SlurmConfig {
        preempt: Preempt::Partition,
        partitions: vec![partition("low", 1), partition("high", 10)],
        ..quick()
    };
    let qos = |name: &str, preempts: &[&str]| Qos {
        name: name.into(),
        priority: 0,
        preempts: preempts.iter().map(|name| (*name).to_owned()).collect(),
    };
    let by_qos = SlurmConfig {
        preempt: Preempt::Qos,
        qos: vec![qos("normal", &[]), qos("urgent", &["normal"])],
        ..quick()
    };
    for config in [by_partition.clone(), by_qos] {
        let played = play(2, &FULL, &[("high", "urgent")], config);
        let preempted: Vec<u32> = played.iter().map(|job| job.num_preemptions).collect();
        // Of jobs on as many nodes the first goes. It is eligible again 121 s later, when job 3 has ended.
        assert_eq!(preempted, [1, 0, 0, 0]);
        assert!((20.0..=20.5).contains(&played[3].first_start_s));
        assert!(
            played[0].finish_s > 20.0 + 121.0 + 279.0,
            "{}",
            played[0].finish_s
        );
    }
    // No job is preempted by one of its own partition, nor in a partition with PreemptMode=OFF.
    let mut off = by_partition.clone();
    off.partitions[0].preemptable = false;
    for (config, partition) in [(by_partition, "low"), (off, "high")] {
        let played = play(2, &FULL, &[(partition, "")], config);
        assert!(played[3].first_start_s >= 300.0 && played.iter().all(|job| job.num_preemptions == 0));
    }
}

#[test]
fn a_licence_that_is_used_up_closes_no_partition() {
    // One licence: job 0 holds it until 100.5 s. Job 1 asks for it, job 2 for none.
    let rows = [
        (0.0, 4, 100.0, "", "matlab:1"),
        (10.0, 2, 50.0, "", "matlab"),
        (20.0, 2, 50.0, "", ""),
    ];
    let with = |num: u64, backfill: bool| SlurmConfig {
        backfill,
        licences: [("matlab".to_owned(), num)].into(),
        ..quick()
    };
    assert_eq!(starts_with_wishes(&rows, with(1, false)), [0.5, 101.0, 20.5]);
    assert_eq!(starts_with_wishes(&rows, with(2, false)), [0.5, 10.5, 20.5]);
    // A cycle of backfill may start them half a second earlier.
    let found = starts_with_wishes(&rows, with(1, true));
    assert!(
        found[1] == 101.0 && (20.0..=20.5).contains(&found[2]),
        "{found:?}"
    );
    // The list says that it ran: what the site does not have, or has too few of, bounds nothing.
    let asked = |licences| [(0.0, 2, 50.0, "", "matlab"), (10.0, 2, 50.0, "", licences)];
    for licences in ["matlab:2", "ansys", "matlab|ansys"] {
        assert_eq!(
            starts_with_wishes(&asked(licences), with(1, false)),
            [0.5, 10.5],
            "{licences}"
        );
    }
}

#[test]
fn a_job_waits_for_the_nodes_with_its_features_and_closes_its_partition_as_others_do() {
    // Job 0 fills the node with the feature until 100.5 s; the other one stays empty. Job 1 asks for the feature, job 2 for none.
    let rows = [
        (0.0, 8, 100.0, "nvlink", ""),
        (10.0, 2, 50.0, "nvlink&(a100|h100)", ""),
        (20.0, 2, 50.0, "", ""),
    ];
    let with = |features: &[&str], backfill: bool| SlurmConfig {
        backfill,
        features: vec![
            Vec::new(),
            features.iter().map(|name| (*name).to_owned()).collect(),
        ],
        ..quick()
    };
    // The main scheduler goes no further than a job whose nodes are busy; backfill starts what comes behind it elsewhere.
    assert_eq!(
        starts_with_wishes(&rows, with(&["a100", "nvlink"], false)),
        [0.5, 101.0, 101.0]
    );
    let found = starts_with_wishes(&rows, with(&["a100", "nvlink"], true));
    assert!(found[1] == 101.0 && (20.0..23.5).contains(&found[2]), "{found:?}");
    // The list says that it ran: a feature that no node has bounds nothing.
    assert_eq!(starts_with_wishes(&rows, with(&[], false)), [0.5, 10.5, 20.5]);
}
