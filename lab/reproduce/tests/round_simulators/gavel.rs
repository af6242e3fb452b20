//! Gavel: the recorded targets through our round mechanism and our clock of rounds.

use std::collections::BTreeMap;
use std::path::Path;

use crate::presets::gavel::{CLOCK, Gavel, GavelRules, PairSpeeds};
use crate::presets::in_rounds::run;
use pleach_baselines::rounds::{JobCombination, Targets};
use pleach_env::workload::{JobSpec, Outcome, Workload};
use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::cluster_spec::{
    ClusterSpec, GpuTypeSpec, ModelClass, NodeGroup, Resources, TenantSpec,
};
use pleach_scheduler::physics::interference::PairEntry;
use pleach_scheduler::{ClassId, GpuTypeId, JobId, Time};

use super::recorded::{Comparison, Row, folder, number, rows};

/// In the order in which the simulator numbers its workers.
const TYPES: [&str; 3] = ["k80", "p100", "v100"];

/// Steps per second by (type, model, gang).
pub(super) type Speeds = BTreeMap<(String, String, u32), f64>;

pub(super) struct Run {
    pub(super) name: String,
    pub(super) policy: String,
    /// GPUs of each type present, and GPUs in each server of it. `(type, GPUs, GPUs per server)`
    pools: Vec<(&'static str, u32, u32)>,
    trace: String,
}

pub(super) fn speeds(gavel: &Path) -> Speeds {
    let table = rows(&gavel.join("inputs/throughput_singles.csv.gz"));
    let table = table.iter().filter(|row| row["consolidated"] == "1");
    table
        .map(|row| {
            let gang = number(row, "scale_factor") as u32;
            let key = (row["worker_type"].clone(), row["model"].clone(), gang);
            (key, number(row, "steps_per_s"))
        })
        .collect()
}

/// A job, or two that share GPUs: `3` or `(3, 7)`.
fn combination(text: &str) -> JobCombination {
    let ids: Vec<u32> = text
        .trim_matches(['(', ')'])
        .split(", ")
        .map(|id| id.parse().unwrap())
        .collect();
    match ids[..] {
        [a, b] => JobCombination::pair(JobId(a), JobId(b)),
        _ => JobCombination::alone(JobId(ids[0])),
    }
}

/// Steps per second of the classes of a workload beside each other; the names of its classes are those of
/// [`class_name`].
pub(super) fn pair_speeds(gavel: &Path, workload: &Workload) -> PairSpeeds {
    let names = workload.classes.iter().enumerate();
    let classes: BTreeMap<&str, ClassId> = names
        .map(|(id, class)| (class.name.as_str(), ClassId(id as u16)))
        .collect();
    let kinds = workload.cluster.gpu_types.iter().enumerate();
    let kinds: BTreeMap<&str, GpuTypeId> = kinds
        .map(|(id, kind)| (kind.name.as_str(), GpuTypeId(id as u8)))
        .collect();
    let table = rows(&gavel.join("inputs/throughput_pairs.csv.gz"));
    let pair = |row: &Row| {
        let class = |column: &str| {
            let name = class_name(&row[column], number(row, "scale_factor") as u32);
            classes.get(name.as_str()).copied()
        };
        let kind = *kinds.get(row["worker_type"].as_str())?;
        let speeds = [number(row, "steps_per_s_a"), number(row, "steps_per_s_b")];
        Some(((kind, class("model_a")?, class("model_b")?), speeds))
    };
    table
        .iter()
        .filter(|row| row["consolidated"] == "1")
        .filter_map(pair)
        .collect()
}

/// The same as the cluster takes it: speed beside each other over speed alone. Gains from sharing are not for the cluster.
pub(super) fn pair_entries(workload: &Workload, pairs: &PairSpeeds) -> Vec<PairEntry> {
    let entry = |(kind, victim, neighbour): (GpuTypeId, ClassId, ClassId), steps_per_s: f64| {
        let class = |id: ClassId| &workload.classes[id.index()];
        PairEntry {
            gpu_type: workload.cluster.gpu_types[kind.index()].name.clone(),
            victim: class(victim).name.clone(),
            neighbour: class(neighbour).name.clone(),
            speed: (steps_per_s / class(victim).speed[kind.index()]).min(1.0),
        }
    };
    pairs.iter().map(|(key, speeds)| entry(*key, speeds[0])).collect()
}

fn class_name(model: &str, gang: u32) -> String {
    format!("{model} x{gang}")
}

/// The runs of a configuration.
pub(super) fn runs(gavel: &Path, config: &str) -> Vec<Run> {
    let numbers = |text: &str| -> Vec<u32> { text.split(':').map(|part| part.parse().unwrap()).collect() };
    rows(&gavel.join("index.csv"))
        .iter()
        .filter(|row| row["config"] == config && row["status"] == "ok")
        .map(|row| {
            let (gpus, sizes) = (
                numbers(&row["cluster_v100_p100_k80"]),
                numbers(&row["gpus_per_server"]),
            );
            let pool = |kind: usize| (TYPES[kind], gpus[2 - kind], sizes[2 - kind]);
            Run {
                name: config.into(),
                policy: row["policy"].clone(),
                pools: (0..3).map(pool).filter(|pool| pool.1 > 0).collect(),
                trace: row["trace"].replace(".trace.gz", ".jobs.csv.gz"),
            }
        })
        .filter(|run| gavel.join(&run.name).join(&run.policy).is_dir())
        .collect()
}

pub(super) fn workload(gavel: &Path, speeds: &Speeds, run: &Run) -> Workload {
    let (mut classes, mut numbers) = (Vec::new(), BTreeMap::new());
    let jobs = rows(&gavel.join(&run.trace))
        .iter()
        .map(|row| {
            let (model, gang) = (row["model"].clone(), number(row, "scale_factor") as u32);
            let class = *numbers.entry((model.clone(), gang)).or_insert_with(|| {
                let speed = |kind: &str| speeds.get(&(kind.into(), model.clone(), gang)).copied();
                classes.push(ModelClass {
                    name: class_name(&model, gang),
                    speed: run
                        .pools
                        .iter()
                        .map(|pool| speed(pool.0).unwrap_or(0.0))
                        .collect(),
                    ..ModelClass::default()
                });
                classes.len() as u16 - 1
            });
            JobSpec {
                id: row["job_id"].clone(),
                submit: Time::from_secs_f64(number(row, "arrival_s")),
                num_gpus: gang,
                run_time_s: number(row, "total_steps"),
                estimate_s: None,
                tenant: 0,
                class,
                user: None,
                outcome: Outcome::Unknown,
                resources: Resources::WHOLE_GPU,
                observed: None,
            }
        })
        .collect();
    let group = |pool: &(&str, u32, u32)| NodeGroup {
        count: pool.1 / pool.2,
        gpus_per_node: pool.2,
        gpu_type: pool.0.into(),
        nodes_per_rack: pool.1 / pool.2,
        ..NodeGroup::default()
    };
    let gpu_type = |pool: &(&str, u32, u32)| GpuTypeSpec {
        name: pool.0.into(),
        memory_gib: 16.0,
        mig: None,
    };
    Workload {
        name: run.name.clone(),
        cluster: ClusterSpec {
            gpu_types: run.pools.iter().map(gpu_type).collect(),
            node_groups: run.pools.iter().map(group).collect(),
            tenants: vec![TenantSpec {
                name: "all".into(),
                quota_gpus: run.pools.iter().map(|pool| pool.1).sum(),
            }],
            ..ClusterSpec::default()
        },
        classes,
        jobs,
    }
}

/// The recorded tables of targets, and when each was computed, s.
pub(super) fn targets(folder: &Path, run: &Run) -> (Vec<Targets>, Vec<f64>) {
    let (mut targets, mut times) = (Vec::new(), Vec::new());
    for row in rows(&folder.join("allocations.csv.gz")) {
        let number_of = number(&row, "alloc_no") as usize;
        targets.resize_with(targets.len().max(number_of), Targets::new);
        times.resize(targets.len(), f64::NAN);
        times[number_of - 1] = number(&row, "time_s");
        let combination = combination(&row["job_or_pair"]);
        let kind = run
            .pools
            .iter()
            .position(|pool| pool.0 == row["worker_type"])
            .unwrap();
        let zeros = || vec![0.0; run.pools.len()];
        targets[number_of - 1].entry(combination).or_insert_with(zeros)[kind] = number(&row, "fraction");
    }
    (targets, times)
}

/// (round, job, GPUs). GPUs are numbered here as workers are there.
type Lease = (u64, u32, Vec<u32>);

fn recorded_leases(folder: &Path) -> Vec<Lease> {
    let leases = |row: &Row| -> Vec<Lease> {
        let mut gpus: Vec<u32> = row["worker_ids"]
            .split('|')
            .map(|id| id.parse().unwrap())
            .collect();
        gpus.sort_unstable();
        let jobs = combination(&row["job_or_pair"]).jobs();
        jobs.map(|job| (number(row, "round") as u64, job.0, gpus.clone()))
            .collect()
    };
    let mut leases: Vec<Lease> = rows(&folder.join("rounds.csv.gz"))
        .iter()
        .flat_map(leases)
        .collect();
    leases.sort();
    // Rounds in which nothing ran are numbered there and not here.
    let (mut number, mut last) = (0, 0);
    for lease in &mut leases {
        number += u64::from(lease.0 != last);
        last = std::mem::replace(&mut lease.0, number);
    }
    leases
}

fn leases(cluster: &Cluster, round: u64, into: &mut Vec<Lease>) {
    for (id, job) in cluster
        .jobs()
        .iter()
        .enumerate()
        .filter(|(_, job)| !job.placement.is_empty())
    {
        let gpus = job.placement.iter().flat_map(|slice| {
            let first = cluster.nodes()[slice.node.index()].first_gpu;
            (0..64)
                .filter(|gpu| slice.gpus >> gpu & 1 == 1)
                .map(move |gpu| first + gpu)
        });
        let mut gpus: Vec<u32> = gpus.collect();
        gpus.sort_unstable();
        into.push((round, id as u32, gpus));
    }
}

struct Replayed {
    run: Run,
    comparison: Comparison,
    /// The first round in which a lease differs, and whether some job ran there on a type without a target for it.
    first_round: Option<(u64, bool)>,
}

fn replay(gavel: &Path, speeds: &Speeds, run: Run, retarget_min_s: f64) -> Replayed {
    let folder = gavel.join(&run.name).join(&run.policy);
    let mut workload = workload(gavel, speeds, &run);
    let rules = GavelRules {
        retarget_min_s,
        ..GavelRules::of(&run.policy)
    };
    let pairs = if rules.packs {
        pair_speeds(gavel, &workload)
    } else {
        PairSpeeds::new()
    };
    workload.cluster.pairs = pair_entries(&workload, &pairs);
    let (targets, recorded_s) = targets(&folder, &run);
    // Visited in the order v100, p100, k80.
    let types = (0..run.pools.len())
        .rev()
        .map(|kind| GpuTypeId(kind as u8))
        .collect();
    let mut planner = Gavel::new(rules, workload.jobs.len(), types, targets.clone(), pairs);
    let (mut starts_s, mut ours) = (Vec::new(), Vec::new());
    let result = self::run(&workload, CLOCK, &mut planner, &mut |cluster| {
        starts_s.push(cluster.now().as_secs_f64());
        leases(cluster, starts_s.len() as u64, &mut ours);
    })
    .unwrap();
    let theirs: Vec<f64> = rows(&folder.join("jobs.csv.gz"))
        .iter()
        .map(|row| number(row, "finish_s"))
        .collect();
    // The world's clock is in whole microseconds: half of one a round, at most.
    let comparison = Comparison::of(&theirs, &result.jobs, 1e-3);
    comparison.print(&format!("gavel {} {}", run.name, run.policy));
    let recorded = recorded_leases(&folder);
    let same = recorded.iter().zip(&ours).take_while(|(a, b)| a == b).count();
    let untargeted = |(round, job, gpus): &Lease| {
        let start_s = starts_s[*round as usize - 1];
        let table = recorded_s
            .iter()
            .rposition(|time| *time <= start_s + 1e-3)
            .unwrap();
        let firsts = run.pools.iter().scan(0, |sum, pool| {
            *sum += pool.1;
            Some(*sum)
        });
        let kind = firsts.take_while(|end| *end <= gpus[0]).count();
        let named = targets[table]
            .iter()
            .filter(|(combination, _)| combination.includes(JobId(*job)));
        named.map(|(_, target)| target[kind]).sum::<f64>() == 0.0
    };
    let first_round = (recorded != ours).then(|| {
        let round = recorded.get(same).or(ours.get(same)).map_or(0, |lease| lease.0);
        (
            round,
            recorded.iter().filter(|lease| lease.0 == round).any(untargeted),
        )
    });
    if let Some((round, _)) = first_round {
        let (there, here) = (recorded.len(), ours.len());
        println!(
            "    leases: {there} there, {here} here; the first {same} on the same GPUs, until round {round}"
        );
    }
    assert!(
        planner.problem().is_none() || first_round.is_some(),
        "{:?}",
        planner.problem()
    );
    let late = |(ours, theirs): (&f64, &f64)| !theirs.is_nan() && (ours - theirs).abs() > 1e-3;
    if let Some(at) = planner.retargeted_s().iter().zip(&recorded_s).position(late) {
        println!(
            "    targets {at}: {} s there, {} s here",
            recorded_s[at],
            planner.retargeted_s()[at]
        );
    }
    Replayed {
        run,
        comparison,
        first_round,
    }
}

/// Recorded runs of each configuration: one that vanishes is not to be taken for one that agrees.
const NUM_RUNS: [(&str, usize); 8] = [
    ("g0a_single8_v100x2", 11),
    ("g0b_single8_1-1-1", 10),
    ("g0c_multi8_v100x6", 7),
    ("g1_s40single_4x3", 16),
    ("g2_s40multi_8x3", 8),
    ("g3_s40multi_v100x16", 4),
    ("g4b_reset0", 2),
    ("g5_m500multi_16x3", 8),
];

fn replay_all(config: &str, retarget_min_s: f64) -> Vec<Replayed> {
    let Some(gavel) = folder("gavel") else {
        return Vec::new();
    };
    let speeds = speeds(&gavel);
    let runs = runs(&gavel, config);
    let (_, num_runs) = NUM_RUNS.into_iter().find(|(known, _)| *known == config).unwrap();
    assert_eq!(runs.len(), num_runs, "recorded runs of {config}");
    let replay = |run| replay(&gavel, &speeds, run, retarget_min_s);
    runs.into_iter().map(replay).collect()
}

fn check(config: &str) {
    for replayed in replay_all(config, 1920.0) {
        let text = format!(
            "{config} {}: {:?}",
            replayed.run.policy, replayed.comparison.first
        );
        assert!(replayed.comparison.all_equal(), "{text}");
        assert!(
            replayed.first_round.is_none(),
            "{text}: some lease is on other GPUs"
        );
    }
}

#[test]
fn gavel_on_eight_jobs_is_replayed_job_by_job() {
    check("g0a_single8_v100x2");
    check("g0b_single8_1-1-1");
    check("g0c_multi8_v100x6");
}

#[test]
fn gavel_on_forty_jobs_is_replayed_job_by_job() {
    check("g3_s40multi_v100x16");
    check("g1_s40single_4x3");
    check("g2_s40multi_8x3");
}

/// The recorded targets of these runs leave out what is below 1e-6, although such a target beats none. A run may differ
/// only where, in the first round that does, a job ran there on a type for which it has no recorded target.
fn check_truncated(config: &str, retarget_min_s: f64, num_exact: usize) {
    let replayed = replay_all(config, retarget_min_s);
    let exact = replayed.iter().filter(|replayed| replayed.comparison.all_equal());
    assert!(replayed.is_empty() || exact.count() == num_exact);
    for replayed in &replayed {
        let text = format!(
            "{config} {}: {:?}",
            replayed.run.policy, replayed.comparison.first
        );
        assert_eq!(
            replayed.comparison.all_equal(),
            replayed.first_round.is_none(),
            "{text}"
        );
        assert!(
            replayed.first_round.is_none_or(|(_, untargeted)| untargeted),
            "{text}"
        );
    }
}

#[test]
fn gavel_on_five_hundred_jobs_is_replayed_as_far_as_targets_are_recorded() {
    check_truncated("g5_m500multi_16x3", 1920.0, 6);
}

#[test]
fn gavel_without_a_gate_on_targets_is_replayed_as_far_as_they_are_recorded() {
    check_truncated("g4b_reset0", 0.0, 1);
}
