//! The recorded lists played by the policies themselves, beside the real repetition and beside `fifo` and `fifo-skip`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use pleach_dealing::kubernetes::{Kubernetes, KubernetesConfig};
use pleach_env::workload::{JobSpec, Observed, Workload};
use pleach_env::{SimConfig, simulate_planner};
use pleach_scheduler::cluster_spec::{
    ClusterSpec, LocalityFactors, ModelClass, NodeGroup, Resources, Seen, Tasks,
};
use pleach_scheduler::{ActionKind, Capabilities, Planner, PolicyPlanner, Time, heuristics};

use super::{Case, Job, NODE, NUM_NODES, cases};

/// From a pod that is bound to its container that runs, and from its end until the scheduler sees it, s: medians of the recordings.
const STARTS_S: f64 = 0.03;
const ENDS_S: f64 = 0.03;
/// From the last pod of a gang that runs to the beginning of its run time, s: so the recordings were made.
const MEETS_S: f64 = 0.02;

/// A recorded list as one of ours. A job that is stopped has nothing saved.
pub(crate) fn workload(case: &Case) -> Workload {
    let group = NodeGroup {
        count: NUM_NODES as u32,
        gpus_per_node: NODE.gpus,
        nodes_per_rack: NUM_NODES as u32,
        cpu_cores: NODE.cpu_milli as f64 / 1000.0,
        memory_gib: NODE.memory_mib as f64 / 1024.0,
        ..ClusterSpec::uniform(1, 8, 1).node_groups[0].clone()
    };
    let job = |job: &Job| {
        let each = f64::from(job.ask.gpus);
        let meets_s = if job.num_pods > 1 { MEETS_S } else { 0.0 };
        let submit = Time::from_secs_f64(job.submit_s);
        JobSpec {
            observed: Some(Box::new(Observed {
                start: submit,
                qos: job.priority.to_string(),
                ..Observed::default()
            })),
            resources: Resources {
                cpu_cores: job.ask.cpu_milli as f64 / 1000.0 / each,
                memory_gib: job.ask.memory_mib as f64 / 1024.0 / each,
                tasks: Tasks::of(job.ask.gpus as u8),
                ..Resources::WHOLE_GPU
            },
            ..JobSpec::new(
                job.id.clone(),
                submit,
                job.num_pods * job.ask.gpus,
                STARTS_S + meets_s + job.run_s + ENDS_S,
            )
        }
    };
    Workload {
        name: "recorded".into(),
        cluster: ClusterSpec {
            node_groups: vec![group],
            seen: Seen {
                time_0_unix_s: Some(case.t0_s),
                ..Seen::default()
            },
            ..ClusterSpec::uniform(1, 8, 1)
        },
        classes: vec![ModelClass {
            locality: LocalityFactors::NONE,
            checkpoint_interval_s: Some(1e9),
            state_gib: 1.0,
            ..ModelClass::default()
        }],
        jobs: case.jobs.iter().map(job).collect(),
    }
}

/// When each job began for the last time, s.
pub(crate) fn play(list: &Workload, planner: &mut dyn Planner) -> Vec<Option<f64>> {
    let config = SimConfig {
        capabilities: Capabilities {
            restart_cost_s: 0.0,
            class_checkpoints: true,
            stop_grace_s: Some(0.0),
            ..Capabilities::DEFAULT.with(ActionKind::Preempt)
        },
        record_segments: true,
        ..SimConfig::default()
    };
    let result = simulate_planner(list, &config, planner).unwrap();
    let mut starts: Vec<Option<(u32, f64)>> = vec![None; list.jobs.len()];
    for segment in &result.segments {
        let start = &mut starts[segment.job as usize];
        if start.is_none_or(|(attempt, _)| attempt < segment.attempt) {
            *start = Some((segment.attempt, segment.from_s));
        }
    }
    starts
        .into_iter()
        .map(|start| start.map(|(_, from_s)| from_s))
        .collect()
}

/// Two schedules of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near {
    /// Of the starts, %, within 5 s of each other.
    pub(crate) within_5_s: f64,
    /// Spearman's rank correlation of the waits.
    pub(crate) rank: f64,
    /// Mean waits, s.
    pub(crate) wait_s: [f64; 2],
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: &f64| values.iter().filter(|other| *other < value).count() as f64;
    let same = |value: &f64| values.iter().filter(|other| *other == value).count() as f64;
    values
        .iter()
        .map(|value| below(value) + (same(value) - 1.0) / 2.0)
        .collect()
}

pub(crate) fn near(jobs: &[Job], one: &[Option<f64>], two: &[Option<f64>]) -> Near {
    let both = jobs.iter().zip(one.iter().zip(two));
    let waits: Vec<[f64; 2]> = both
        .filter_map(|(job, (one, two))| Some([(*one)? - job.submit_s, (*two)? - job.submit_s]))
        .collect();
    let num = waits.len() as f64;
    let of = |which: usize| -> Vec<f64> { waits.iter().map(|pair| pair[which]).collect() };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / num;
    let about = |values: Vec<f64>| {
        let middle = mean(&values);
        values
            .into_iter()
            .map(|value| value - middle)
            .collect::<Vec<f64>>()
    };
    let (a, b) = (about(ranks(&of(0))), about(ranks(&of(1))));
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    Near {
        within_5_s: 100.0
            * waits
                .iter()
                .filter(|pair| (pair[0] - pair[1]).abs() <= 5.0)
                .count() as f64
            / num,
        rank: product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt(),
        wait_s: [0, 1].map(|which| mean(&of(which))),
    }
}

/// A list played by the site's own policy and by plain ones, each beside the recording, and the real one's second run.
pub(crate) struct Played {
    pub(crate) name: String,
    pub(crate) own: Near,
    pub(crate) again: Option<Near>,
    /// By name.
    pub(crate) others: BTreeMap<&'static str, Near>,
}

impl Played {
    pub(crate) fn of(name: &str, case: &Case, again: Option<&Case>, list: &Workload, own: Near) -> Played {
        let against = |policy: &'static str| {
            let mut planner = PolicyPlanner::new(heuristics::by_name(policy).unwrap());
            (policy, near(&case.jobs, &real(case), &play(list, &mut planner)))
        };
        let played = Played {
            name: name.to_owned(),
            own,
            again: again.map(|again| near(&case.jobs, &real(case), &real(again))),
            others: ["fifo", "fifo-skip", "easy"].map(against).into(),
        };
        println!(
            "{name}: {own:.3?}\n  again {:.3?}\n  others {:.3?}",
            played.again, played.others
        );
        played
    }
}

/// All recorded runs, played.
pub(crate) fn all() -> &'static [Played] {
    static ALL: LazyLock<Vec<Played>> = LazyLock::new(|| {
        let all: BTreeMap<String, Case> = cases().into_iter().collect();
        let play = |(name, case): (&String, &Case)| {
            let again = all.get(&format!("{name}_again"));
            Played::of(name, case, again, &workload(case), own(case))
        };
        // Of those the recording ended in a deadlock.
        all.iter()
            .filter(|(name, _)| !name.starts_with("deadlock"))
            .map(play)
            .collect()
    });
    &ALL
}

/// The policy played with several seeds, each held against the recording: means.
fn own(case: &Case) -> Near {
    let num = 20;
    let runs = (0..num).map(|seed| {
        let config = KubernetesConfig {
            seed,
            ..case.config.clone()
        };
        let mut planner = Kubernetes::new(config, case.is_native()).unwrap();
        near(&case.jobs, &real(case), &play(&workload(case), &mut planner))
    });
    let runs: Vec<Near> = runs.collect();
    let waits = runs.iter().map(|run| run.wait_s[1]);
    let (least, most) = (
        waits.clone().fold(f64::INFINITY, f64::min),
        waits.fold(0.0, f64::max),
    );
    println!("mean waits of {num} seeds: {least:.1} to {most:.1} s");
    let mean = |of: &dyn Fn(&Near) -> f64| runs.iter().map(of).sum::<f64>() / num as f64;
    Near {
        within_5_s: mean(&|run| run.within_5_s),
        rank: mean(&|run| run.rank),
        wait_s: [mean(&|run| run.wait_s[0]), mean(&|run| run.wait_s[1])],
    }
}

pub(crate) fn real(case: &Case) -> Vec<Option<f64>> {
    case.jobs.iter().map(|job| job.start_s).collect()
}

#[test]
fn played_freely_it_is_nearer_to_a_real_scheduler_than_fifo_and_about_as_near_as_that_to_itself() {
    // Within 5 s (%), rank of waits, and within what part the mean waits are alike.
    let wanted = [
        ("default", (80.0, 0.8, 0.1)),
        ("default_again", (80.0, 0.8, 0.1)),
        ("most_allocated", (80.0, 0.8, 0.1)),
        ("most_allocated_again", (80.0, 0.8, 0.1)),
        ("priorities", (62.0, 0.55, 0.1)),
        // Lots decide which gangs hold nodes in parts: the mean waits of the two real runs are a third apart.
        ("gangs_barrier", (56.0, 0.8, 0.5)),
        ("gangs_barrier_again", (56.0, 0.8, 0.5)),
        ("native_gangs", (76.0, 0.8, 0.1)),
    ];
    let wanted = BTreeMap::from(wanted);
    let is_near = |played: &&Played| {
        let (found, (within, rank, part)) = (played.own, wanted[played.name.as_str()]);
        found.within_5_s >= within
            && found.rank >= rank
            && (found.wait_s[1] / found.wait_s[0] - 1.0).abs() <= part
            && ["fifo", "fifo-skip"]
                .iter()
                .all(|other| found.within_5_s > played.others[other].within_5_s)
    };
    let wrong: Vec<&str> = all()
        .iter()
        .filter(|played| !is_near(played))
        .map(|played| played.name.as_str())
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
