//! Gavel's finish-time fairness, FIFO and sum of throughputs: what our targets are worth against the recorded ones.
//!
//! Finish-time fairness is the same programme there and here. FIFO is not: the recorded targets were handed out job by job,
//! ours are the optimum of the paper's programme, so that ours may be worth more there and never less. The policy with
//! prices is not among the recorded runs; the one without, the sum of steps per second, is.

use std::collections::BTreeMap;
use std::path::Path;

use crate::presets::gavel::PairSpeeds;
use pleach_baselines::gavel::Common;
use pleach_baselines::gavel::Snapshot;
use pleach_baselines::gavel::{Claim, fairest};
use pleach_baselines::gavel::{TimeProgram, group_by};
use pleach_baselines::gavel::{fifo, most_progress};
use pleach_baselines::linear_program::Limits;
use pleach_baselines::rounds::Targets;
use pleach_scheduler::JobId;

use super::gavel::{Run, pair_speeds, runs, speeds, targets, workload};
use super::gavel_targets::{snapshot, speeds_under, steps};
use super::recorded::{folder, number, rows};

/// One time at which targets were computed.
struct Instant {
    snapshot: Snapshot,
    targets: Targets,
    /// Steps that each job has left, and the time since it came, s. `[job of the snapshot]`
    remaining: Vec<f64>,
    age_s: Vec<f64>,
}

/// Every programme whole and exact.
fn exact() -> Common {
    Common {
        pairs_max: usize::MAX,
        exact_jobs_max: usize::MAX,
        terms_max: usize::MAX,
        ..Common::default()
    }
}

/// All times at which targets were computed, those without jobs too.
fn instants(gavel: &Path, run: &Run) -> Vec<Instant> {
    let folder = gavel.join(&run.name).join(&run.policy);
    let workload = workload(gavel, &speeds(gavel), run);
    let pairs = if run.policy.ends_with("_packed") {
        pair_speeds(gavel, &workload)
    } else {
        PairSpeeds::new()
    };
    let (targets, times_s) = targets(&folder, run);
    let finishes_s: Vec<f64> = rows(&folder.join("jobs.csv.gz"))
        .iter()
        .map(|row| number(row, "finish_s"))
        .collect();
    let steps = steps(&folder);
    let instant = |(targets, now_s): (Targets, f64)| {
        let submit_s = |job: usize| workload.jobs[job].submit.as_secs_f64();
        let is_there = |job: &usize| submit_s(*job) <= now_s && finishes_s[*job] > now_s + 1e-6;
        let jobs: Vec<usize> = (0..workload.jobs.len()).filter(is_there).collect();
        let done = |job: usize| -> f64 {
            let before = steps
                .iter()
                .filter(|part| part.1 == job && part.0 <= now_s + 1e-6);
            before.map(|part| part.2).sum()
        };
        let ids: Vec<JobId> = jobs.iter().map(|job| JobId(*job as u32)).collect();
        Instant {
            snapshot: snapshot(&workload, &ids, &pairs),
            targets,
            remaining: jobs
                .iter()
                .map(|job| workload.jobs[*job].run_time_s - done(*job))
                .collect(),
            age_s: jobs.iter().map(|job| now_s - submit_s(*job)).collect(),
        }
    };
    targets.into_iter().zip(times_s).map(instant).collect()
}

/// Least and greatest of ours over theirs for a policy on some configurations; none without the recorded runs.
fn ratios(configs: &[&str], policy: &str, of_run: impl Fn(&[Instant]) -> Vec<f64>) -> Option<(f64, f64)> {
    let gavel = folder("gavel")?;
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for config in configs {
        let runs = runs(&gavel, config);
        let run = runs.iter().find(|run| run.policy == policy).unwrap();
        let ratios = of_run(&instants(&gavel, run));
        assert!(!ratios.is_empty(), "no targets in {config} {policy}");
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let num = ratios.len();
        println!("| gavel {config} {policy} | {num} programmes | ours over theirs {least:.7} to {most:.7} |");
        (low, high) = (low.min(least), high.max(most));
    }
    Some((low, high))
}

/// The largest finish-time ratio under ours over that under theirs, every time. Time alone is counted as the simulator
/// counts it: at the speed alone of the last time that targets were computed.
fn finish_time_ratios(instants: &[Instant]) -> Vec<f64> {
    let mut ratios = Vec::new();
    // Time alone so far, s, and what remained and the speed alone at the last time.
    let mut before: BTreeMap<JobId, (f64, f64, f64)> = BTreeMap::new();
    for instant in instants {
        let Instant { snapshot, .. } = instant;
        let mut now = BTreeMap::new();
        let claim = |(job, (id, _)): (usize, &(JobId, usize))| {
            let (remaining, speed) = (instant.remaining[job], snapshot.equal_share(job, true));
            let so_far_s = match before.get(id) {
                Some((so_far_s, left, speed)) => so_far_s + (left - remaining) / speed,
                None => 0.0,
            };
            now.insert(*id, (so_far_s, remaining, speed));
            Claim {
                remaining_s: remaining,
                age_s: instant.age_s[job],
                alone_s: so_far_s + remaining / speed,
            }
        };
        let claims: Vec<Claim> = snapshot.jobs.iter().enumerate().map(claim).collect();
        before = now;
        if claims.is_empty() || instant.targets.is_empty() {
            continue;
        }
        let largest = |targets: &Targets| {
            let speeds = speeds_under(snapshot, targets);
            let ratios = claims
                .iter()
                .zip(speeds)
                .map(|(claim, speed)| (claim.age_s + claim.remaining_s / speed) / claim.alone_s);
            ratios.fold(0.0, f64::max)
        };
        let found = fairest(snapshot, &claims, &exact()).unwrap();
        let ours = largest(&found.shares.targets(snapshot, &found.groups));
        // What the targets are worth, not what the bisection says that they are.
        assert!(
            ours <= found.ratio * (1.0 + 1e-5),
            "{ours} is not {}",
            found.ratio
        );
        ratios.push(ours / largest(&instant.targets));
    }
    ratios
}

#[test]
fn the_largest_finish_time_ratio_is_that_of_gavels_own_solver() {
    let configs = [
        "g0a_single8_v100x2",
        "g0b_single8_1-1-1",
        "g0c_multi8_v100x6",
        "g1_s40single_4x3",
        "g2_s40multi_8x3",
    ];
    // A bisection to 0.1 %.
    if let Some((low, high)) = ratios(&configs, "finish_time_fairness_perf", finish_time_ratios) {
        assert!(low > 1.0 - 1e-5 && high < 1.0 + 1.1e-3, "{low} to {high}");
    }
}

#[test]
fn with_space_sharing_the_largest_finish_time_ratio_is_that_of_gavels_own_solver() {
    if let Some((low, high)) = ratios(
        &["g1_s40single_4x3"],
        "finish_time_fairness_packed",
        finish_time_ratios,
    ) {
        assert!(low > 1.0 - 1e-5 && high < 1.0 + 1.1e-3, "{low} to {high}");
    }
}

/// Worth of targets to the programme of FIFO: speeds as parts of the best, weighed by the place from the end.
fn fifo_ratios(instants: &[Instant]) -> Vec<f64> {
    let with_jobs = instants
        .iter()
        .filter(|instant| !instant.snapshot.jobs.is_empty() && !instant.targets.is_empty());
    let ratio = |instant: &Instant| {
        let snapshot = &instant.snapshot;
        let num = snapshot.jobs.len();
        let objective = |targets: &Targets| -> f64 {
            let speeds = speeds_under(snapshot, targets).into_iter().enumerate();
            speeds
                .map(|(rank, speed)| (num - rank) as f64 * speed / snapshot.kind(rank).speed_max())
                .sum()
        };
        let (groups, shares) = fifo(snapshot, &exact()).unwrap();
        let front = Snapshot {
            jobs: snapshot.jobs[..groups.len()].to_vec(),
            ..snapshot.clone()
        };
        objective(&shares.targets(&front, &groups)) / objective(&instant.targets)
    };
    with_jobs.map(ratio).collect()
}

#[test]
fn on_one_type_fifo_is_worth_what_gavels_own_is() {
    if let Some((low, high)) = ratios(&["g0a_single8_v100x2"], "fifo_perf", fifo_ratios) {
        assert!(low > 1.0 - 1e-6 && high < 1.0 + 1e-6, "{low} to {high}");
    }
}

#[test]
fn on_several_types_the_programme_of_fifo_is_worth_no_less_than_handing_out_job_by_job() {
    let configs = [
        "g0b_single8_1-1-1",
        "g0c_multi8_v100x6",
        "g1_s40single_4x3",
        "g2_s40multi_8x3",
        "g3_s40multi_v100x16",
    ];
    if let Some((low, high)) = ratios(&configs, "fifo_perf", fifo_ratios) {
        assert!(low > 1.0 - 1e-6 && high < 2.0, "{low} to {high}");
    }
}

/// Sum of steps per second under the optimum of our programme with that objective, over the same under theirs; and progress by
/// our cost policy's measure, prices 1.
fn throughput_ratios(instants: &[Instant], as_there: bool) -> Vec<f64> {
    let with_jobs = instants
        .iter()
        .filter(|instant| !instant.snapshot.jobs.is_empty() && !instant.targets.is_empty());
    let ratio = |instant: &Instant| {
        let snapshot = &instant.snapshot;
        let objective = |targets: &Targets| -> f64 {
            let speeds = speeds_under(snapshot, targets).into_iter().enumerate();
            let parts = speeds.map(|(job, speed)| match as_there {
                true => speed,
                false => speed / snapshot.kind(job).speed_max() / f64::from(snapshot.kind(job).num_gpus),
            });
            parts.sum()
        };
        let (groups, shares) = if as_there {
            let groups = group_by(snapshot, |_| ());
            let mut time = TimeProgram::new(snapshot, &groups, usize::MAX);
            for (number, group) in groups.iter().enumerate() {
                time.add_objective(number, group.jobs.len() as f64);
            }
            let (_, shares) = time.solve(Limits::default()).unwrap();
            (groups, shares)
        } else {
            most_progress(snapshot, &vec![0.0; snapshot.jobs.len()], &[], &exact()).unwrap()
        };
        objective(&shares.targets(snapshot, &groups)) / objective(&instant.targets)
    };
    with_jobs.map(ratio).collect()
}

#[test]
fn the_sum_of_throughputs_is_that_of_gavels_own_solver() {
    let sums = |instants: &[Instant]| throughput_ratios(instants, true);
    if let Some((low, high)) = ratios(&["g1_s40single_4x3"], "max_sum_throughput_perf", sums) {
        assert!(low > 1.0 - 1e-6 && high < 1.0 + 1e-6, "{low} to {high}");
    }
}

#[test]
fn progress_for_the_price_is_by_our_measure_no_less_than_under_gavels_targets() {
    let progress = |instants: &[Instant]| throughput_ratios(instants, false);
    if let Some((low, high)) = ratios(&["g1_s40single_4x3"], "max_sum_throughput_perf", progress) {
        assert!(low > 1.0 - 1e-6 && high < 2.0, "{low} to {high}");
    }
}
