//! Gavel's policies: what our programmes are worth against what the recorded targets are worth.
//!
//! An optimum is rarely unique, so targets may differ; the objective may not. It is computed from the recorded targets
//! with the speeds and pairs that the simulator had, and ours from the same snapshot of jobs.

use std::collections::BTreeMap;
use std::path::Path;

use crate::presets::gavel::PairSpeeds;
use pleach_baselines::gavel::equal_times;
use pleach_baselines::gavel::group_by;
use pleach_baselines::gavel::las_norms;
use pleach_baselines::gavel::{Due, fill};
use pleach_baselines::gavel::{Kind, Snapshot};
use pleach_baselines::linear_program::Limits;
use pleach_baselines::rounds::Targets;
use pleach_env::workload::Workload;
use pleach_scheduler::{ClassId, GpuTypeId, JobId};

use super::gavel::{Run, pair_speeds, runs, speeds, targets, workload};
use super::recorded::{folder, number, rows};

/// The jobs that were there when targets were computed, with the kinds numbered by class.
pub(super) fn snapshot(workload: &Workload, jobs: &[JobId], pairs: &PairSpeeds) -> Snapshot {
    let num_types = workload.cluster.gpu_types.len();
    let mut gpus = vec![0.0; num_types];
    for group in &workload.cluster.node_groups {
        let kind = workload
            .cluster
            .gpu_types
            .iter()
            .position(|kind| kind.name == group.gpu_type);
        gpus[kind.unwrap()] += f64::from(group.count * group.gpus_per_node);
    }
    let gang_of = |class: usize| {
        let of_class = workload.jobs.iter().find(|job| usize::from(job.class) == class);
        of_class.map_or(1, |job| job.num_gpus)
    };
    let classes = workload.classes.iter().enumerate();
    let kinds = classes.map(|(number, class)| Kind {
        num_gpus: gang_of(number),
        speed: class.speed.clone(),
    });
    let mut snapshot = Snapshot {
        gpus,
        kinds: kinds.collect(),
        jobs: jobs
            .iter()
            .map(|job| (*job, usize::from(workload.jobs[job.index()].class)))
            .collect(),
        ..Snapshot::default()
    };
    let present: std::collections::BTreeSet<usize> = snapshot.jobs.iter().map(|job| job.1).collect();
    for a in present.iter().copied().filter(|_| !pairs.is_empty()) {
        for b in present.range(a..).copied() {
            if snapshot.kinds[a].num_gpus != snapshot.kinds[b].num_gpus {
                continue;
            }
            let of_type = |kind: usize| {
                let key = (GpuTypeId(kind as u8), ClassId(a as u16), ClassId(b as u16));
                let speeds = pairs.get(&key).copied().unwrap_or_default();
                if speeds.iter().all(|speed| *speed > 0.0) {
                    speeds
                } else {
                    [0.0; 2]
                }
            };
            let speeds: Vec<[f64; 2]> = (0..num_types).map(of_type).collect();
            snapshot.pairs.insert((a, b), speeds);
        }
    }
    snapshot
}

/// Work per second of each job under some targets. `[job of the snapshot]`
pub(super) fn speeds_under(snapshot: &Snapshot, targets: &Targets) -> Vec<f64> {
    let places: BTreeMap<JobId, usize> = snapshot
        .jobs
        .iter()
        .enumerate()
        .map(|(at, job)| (job.0, at))
        .collect();
    let mut speeds = vec![0.0; snapshot.jobs.len()];
    for (combination, times) in targets {
        let jobs: Vec<usize> = combination.jobs().map(|job| places[&job]).collect();
        for (kind, time) in times.iter().enumerate() {
            if let [a, b] = jobs[..] {
                let kinds = (snapshot.jobs[a].1, snapshot.jobs[b].1);
                let is_turned = usize::from(kinds.0 > kinds.1);
                let key = (kinds.0.min(kinds.1), kinds.0.max(kinds.1));
                if let Some(pair) = snapshot.pairs.get(&key) {
                    speeds[a] += time * pair[kind][is_turned];
                    speeds[b] += time * pair[kind][1 - is_turned];
                }
            } else {
                speeds[jobs[0]] += time * snapshot.kind(jobs[0]).speed[kind];
            }
        }
    }
    speeds
}

/// The least share under some targets.
fn least(snapshot: &Snapshot, norms: &[f64], targets: &Targets) -> f64 {
    let speeds = speeds_under(snapshot, targets);
    let shares = speeds.iter().zip(norms).map(|(speed, norm)| speed / norm);
    shares.fold(f64::INFINITY, f64::min)
}

/// Steps that each job has done by a time, from the recorded rounds. `(finish of the round's part, job, steps)`
pub(super) fn steps(folder: &Path) -> Vec<(f64, usize, f64)> {
    let mut steps = Vec::new();
    for row in rows(&folder.join("rounds.csv.gz")) {
        let jobs = row["job_or_pair"].trim_matches(['(', ')']).split(", ");
        for (job, num) in jobs.zip(row["steps"].split('|')) {
            steps.push((
                number(&row, "finish_s"),
                job.parse().unwrap(),
                num.parse().unwrap(),
            ));
        }
    }
    steps
}

/// Objective there and here, every time that targets were computed.
fn objectives(gavel: &Path, run: &Run) -> Vec<[f64; 2]> {
    let folder = gavel.join(&run.name).join(&run.policy);
    let workload = workload(gavel, &speeds(gavel), run);
    let is_packed = run.policy.ends_with("_packed");
    let pairs = if is_packed {
        pair_speeds(gavel, &workload)
    } else {
        PairSpeeds::new()
    };
    let (targets, times_s) = targets(&folder, run);
    let finishes: Vec<f64> = rows(&folder.join("jobs.csv.gz"))
        .iter()
        .map(|row| number(row, "finish_s"))
        .collect();
    let steps = steps(&folder);
    let objective = |(targets, now_s): (&Targets, &f64)| {
        let there =
            |job: &usize| workload.jobs[*job].submit.as_secs_f64() <= *now_s && finishes[*job] > now_s + 1e-6;
        let jobs: Vec<JobId> = (0..workload.jobs.len())
            .filter(there)
            .map(|job| JobId(job as u32))
            .collect();
        let snapshot = snapshot(&workload, &jobs, &pairs);
        let norms = if run.policy.starts_with("min_total_duration") {
            let done = |job: &JobId| {
                let rounds = steps
                    .iter()
                    .filter(|part| part.1 == job.index() && part.0 <= now_s + 1e-6);
                rounds.map(|part| part.2).sum::<f64>()
            };
            jobs.iter()
                .map(|job| workload.jobs[job.index()].run_time_s - done(job))
                .collect()
        } else {
            las_norms(&snapshot)
        };
        let groups = group_by(&snapshot, |job| norms[job].to_bits());
        let of_groups: Vec<f64> = groups.iter().map(|group| norms[group.jobs[0]]).collect();
        let due = Due {
            norms: &of_groups,
            levels_max: 1,
            pairs_max: usize::MAX,
            limits: Limits::default(),
        };
        let filled = fill(&snapshot, &groups, &due, |is_full| vec![1.0; is_full.len()]).unwrap();
        // What the targets are worth, not what the programme says that they are.
        let ours = least(&snapshot, &norms, &filled.shares.targets(&snapshot, &groups));
        assert!(
            (ours / filled.least - 1.0).abs() < 1e-5,
            "{ours} is not {}",
            filled.least
        );
        [least(&snapshot, &norms, targets), ours]
    };
    targets
        .iter()
        .zip(&times_s)
        .filter(|(targets, _)| !targets.is_empty())
        .map(objective)
        .collect()
}

/// Runs of a policy on some configurations, and the range of our objective over theirs.
fn ratios(configs: &[&str], policy: &str) -> Option<(f64, f64)> {
    let gavel = folder("gavel")?;
    let mut all = Vec::new();
    for config in configs {
        let runs = runs(&gavel, config);
        let run = runs.iter().find(|run| run.policy == policy).unwrap();
        let objectives = objectives(&gavel, run);
        let ratios: Vec<f64> = objectives.iter().map(|[theirs, ours]| ours / theirs).collect();
        let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ratios.iter().copied().fold(0.0, f64::max);
        println!(
            "| gavel {config} {policy} | {} programmes | ours over theirs {low:.7} to {high:.7} |",
            ratios.len()
        );
        all.extend(ratios);
    }
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    Some((low, all.iter().copied().fold(0.0, f64::max)))
}

#[test]
fn the_least_share_is_that_of_gavels_own_solver() {
    let configs = [
        "g0b_single8_1-1-1",
        "g1_s40single_4x3",
        "g2_s40multi_8x3",
        "g3_s40multi_v100x16",
    ];
    if let Some((low, high)) = ratios(&configs, "max_min_fairness_perf") {
        assert!(low > 1.0 - 1e-6 && high < 1.0 + 1e-6, "{low} to {high}");
    }
}

#[test]
fn with_space_sharing_the_least_share_is_that_of_gavels_own_solver() {
    if let Some((low, high)) = ratios(
        &["g0b_single8_1-1-1", "g1_s40single_4x3"],
        "max_min_fairness_packed",
    ) {
        assert!(low > 1.0 - 1e-6 && high < 1.0 + 1e-5, "{low} to {high}");
    }
}

#[test]
fn the_makespan_is_that_of_gavels_bisection_or_up_to_its_tolerance_shorter() {
    let configs = ["g0b_single8_1-1-1", "g1_s40single_4x3", "g2_s40multi_8x3"];
    if let Some((low, high)) = ratios(&configs, "min_total_duration_perf") {
        assert!(low > 1.0 - 1e-6 && high < 1.06, "{low} to {high}");
    }
}

/// Another generator draws the pairs of Gandiva's code there; what its pairs are due is not drawn.
#[test]
fn gandivas_combinations_are_due_the_recorded_times() {
    let Some(gavel) = folder("gavel") else { return };
    let mut num_pairs = 0;
    for config in [
        "g0a_single8_v100x2",
        "g1_s40single_4x3",
        "g2_s40multi_8x3",
        "g5_m500multi_16x3",
    ] {
        let runs = runs(&gavel, config);
        let run = runs.iter().find(|run| run.policy == "gandiva").unwrap();
        let workload = workload(&gavel, &speeds(&gavel), run);
        let gpus = snapshot(&workload, &[], &PairSpeeds::new()).gpus;
        for recorded in targets(&gavel.join(&run.name).join(&run.policy), run).0 {
            let gang = |job: JobId| workload.jobs[job.index()].num_gpus;
            let gangs = recorded
                .keys()
                .map(|combination| (*combination, gang(combination.job)));
            let ours = equal_times(&gpus, &gangs.collect());
            num_pairs += recorded
                .keys()
                .filter(|combination| combination.beside.is_some())
                .count();
            for (combination, times) in &recorded {
                let pairs = times.iter().zip(&ours[combination]);
                let off = pairs
                    .map(|(theirs, ours)| (theirs - ours).abs())
                    .fold(0.0, f64::max);
                assert!(
                    off < 1e-6,
                    "{config} {combination:?}: {times:?}, here {:?}",
                    ours[combination]
                );
            }
        }
    }
    assert!(num_pairs > 50, "{num_pairs} pairs");
}
