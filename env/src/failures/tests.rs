use super::reasons::*;
use super::*;
use pleach_workloads::Workload;
use pleach_workloads::generate::{GeneratorConfig, ProfileConfig, generate};

const SEED: Seed = Seed(20_170_807);

/// The fate of a job of this size in a list whose jobs are all equally long.
fn of_size(model: &OutcomeModel, job: u64, num_gpus: u32) -> Fate {
    model.fate(SEED, job, num_gpus, model.shares(num_gpus).into())
}

#[test]
fn ends_of_a_philly_mix_have_the_published_shares() {
    let model = OutcomeModel::philly();
    model.validate().unwrap();
    // By size, hand-worked from tables 6 and 7 (see the preset): 12.6, 38.9 and 39.1 % unsuccessful.
    for (row, expected) in model.ends.iter().zip([0.1257, 0.3887, 0.3907]) {
        assert!((row.unsuccessful - expected).abs() < 5e-4, "{row:?}");
    }
    // 40,000 jobs: 82.4 % on 1 GPU, 9.6 % on 4, 8.0 % on 8.
    let mut counts = [0_u32; 3];
    let num_jobs = 40_000_u64;
    for job in 0..num_jobs {
        let num_gpus = match job % 1000 {
            0..824 => 1,
            824..920 => 4,
            _ => 8,
        };
        let end = match of_size(&model, job, num_gpus).end {
            End::Passed => 0,
            End::Killed(at) => {
                assert!(at > 0.0 && at < 1.0);
                1
            }
            End::Failed(_) => panic!("nothing fails by age here"),
            End::Unsuccessful => 2,
        };
        counts[end] += 1;
    }
    // Three standard errors of 40,000 draws are 0.7 %.
    for (count, published) in counts.iter().zip([0.693, 0.135, 0.172]) {
        let share = f64::from(*count) / num_jobs as f64;
        assert!((share - published).abs() < 0.007, "{share} against {published}");
    }
}

/// Parts of the jobs and of the GPU time that passed, were killed and were given up, of jobs that run at their own pace with
/// nothing to pay.
fn parts(model: &OutcomeModel, lists: &[Workload]) -> [[f64; 3]; 2] {
    let mut sums = [[0.0; 3]; 2];
    for (number, workload) in lists.iter().enumerate() {
        let jobs: Vec<(u32, f64)> = workload
            .jobs
            .iter()
            .map(|job| (job.num_gpus, job.run_time_s))
            .collect();
        let seed = SEED.child("list", number as u64);
        for ((job, (gang, run_time_s)), chances) in (0..).zip(&jobs).zip(model.chances(&jobs)) {
            let fate = model.fate(seed, job, *gang, chances);
            let trial = |trial| {
                let reason = fate.reason.unwrap_or_default();
                runtime_to_failure(seed, job, trial, reason).as_secs_f64()
            };
            let (end, held_s) = match fate.end {
                End::Passed => (0, *run_time_s),
                End::Killed(part) => (1, part * run_time_s),
                End::Failed(_) => panic!("nothing fails by age here"),
                End::Unsuccessful => {
                    let failing_s: f64 = (0..fate.num_failed_trials).map(trial).sum();
                    (2, failing_s.min(*run_time_s))
                }
            };
            sums[0][end] += 1.0;
            sums[1][end] += held_s * f64::from(*gang);
        }
    }
    sums.map(|sums| sums.map(|sum| sum / sums.iter().sum::<f64>()))
}

fn philly_like(run_time_s_max: f64, num_lists: u64) -> Vec<Workload> {
    let config = ProfileConfig {
        num_jobs: 2000,
        run_time_s_max,
        ..ProfileConfig::default()
    };
    let generator = GeneratorConfig::Profile(config);
    let seeds = (0..num_lists).map(|list| SEED.child("workload", list));
    seeds.map(|seed| generate(&generator, seed).unwrap()).collect()
}

#[test]
fn killed_and_given_up_jobs_have_the_published_parts_of_the_gpu_time() {
    let lists = philly_like(ProfileConfig::default().run_time_s_max, 40);
    let [jobs, gpu_time] = parts(&OutcomeModel::philly(), &lists);
    // Philly (ATC'19), table 6.
    for (found, published, slack) in [
        (jobs, [0.693, 0.135, 0.172], 0.02),
        (gpu_time, [0.4453, 0.3769, 0.1776], 0.03),
    ] {
        for (found, published) in found.iter().zip(published) {
            assert!((found - published).abs() < slack, "{jobs:?} {gpu_time:?}");
        }
    }
}

#[test]
fn a_lean_moves_ends_to_longer_jobs_and_leaves_their_shares() {
    let model = OutcomeModel::philly();
    let jobs: Vec<(u32, f64)> = (0..900)
        .map(|job| ([1, 4, 8][job % 3], 10.0 * 1.01_f64.powi(job as i32)))
        .collect();
    let chances = model.chances(&jobs);
    for row in &model.ends {
        let own = || {
            let all = jobs.iter().zip(&chances);
            all.filter(|((gang, _), _)| model.shares(*gang) == *row)
                .map(|(_, chances)| chances)
        };
        let mean = |of: fn(&Chances) -> f64| own().map(of).sum::<f64>() / 300.0;
        assert!((mean(|chances| chances.killed) - row.killed).abs() < 1e-8);
        assert!((mean(|chances| chances.unsuccessful) - row.unsuccessful).abs() < 1e-8);
        assert!(own().all(|chances| chances.killed + chances.unsuccessful <= 1.0));
        let killed: Vec<f64> = own().map(|chances| chances.killed).collect();
        assert!(
            killed[299] > 1.5 * row.killed && killed[0] < 0.7 * row.killed,
            "{killed:?}"
        );
    }
    // Jobs of one length, and models without a lean, have the shares of their size.
    for (model, jobs) in [
        (model.clone(), vec![(4, 60.0); 50]),
        (OutcomeModel::helios(), jobs),
    ] {
        for (chances, (gang, _)) in model.chances(&jobs).iter().zip(&jobs) {
            let shares = Chances::from(model.shares(*gang));
            assert!(
                (chances.killed - shares.killed).abs() < 1e-9,
                "{chances:?} {shares:?}"
            );
        }
    }
}

#[test]
fn trials_have_the_published_reasons_and_repeats() {
    let model = OutcomeModel::philly();
    let mut trials = vec![0_u32; REASONS.len()];
    let mut jobs = vec![0_u32; REASONS.len()];
    let num_jobs = 100_000_u64;
    for job in 0..num_jobs {
        let num_gpus = match job % 1000 {
            0..824 => 1,
            824..920 => 2,
            _ => 16,
        };
        let fate = of_size(&model, job, num_gpus);
        assert_eq!(fate.reason.is_some(), fate.num_failed_trials > 0);
        assert!(fate.end != End::Unsuccessful || fate.num_failed_trials > 0);
        if let Some(reason) = fate.reason {
            trials[usize::from(reason)] += fate.num_failed_trials;
            jobs[usize::from(reason)] += 1;
        }
    }
    // 39,772 trials of 17,577 jobs out of 96,260, scaled to 100,000 jobs.
    let scale = num_jobs as f64 / 96_260.0;
    for (index, reason) in REASONS.iter().enumerate() {
        let expected = f64::from(reason.jobs) * scale;
        let (found, found_trials) = (f64::from(jobs[index]), f64::from(trials[index]));
        assert!(
            (found - expected).abs() < 4.0 * expected.sqrt() + 1.0,
            "{}: {found} jobs",
            reason.name
        );
        // The variance of a geometric number with mean m is m (m - 1).
        let mean = reason.trials_per_job();
        let error = (expected * (mean * (mean - 1.0) + mean * mean)).sqrt();
        assert!(
            (found_trials - expected * mean).abs() < 4.0 * error + 1.0,
            "{}: {found_trials} trials",
            reason.name
        );
    }
    let all = f64::from(trials.iter().sum::<u32>()) / scale;
    assert!((all / 39_772.0 - 1.0).abs() < 0.05, "{all} trials");
}

#[test]
fn the_reasons_of_large_gangs_are_not_those_of_single_gpus() {
    // Table 7, by hand: of the jobs that fail on 1 GPU 2,661 of 10,574 run out of CPU memory (25.2 %), above 4 GPUs
    // 87 of 3,192 (2.7 %).
    let share = |size: usize| {
        let draws = 20_000;
        let hits = (0..draws)
            .filter(|draw| pick_reason(size, f64::from(*draw) / 20_000.0) == 0)
            .count();
        hits as f64 / f64::from(draws)
    };
    assert!((share(0) - 0.252).abs() < 0.002, "{}", share(0));
    assert!((share(2) - 0.027).abs() < 0.002, "{}", share(2));
}

#[test]
fn runtimes_to_failure_have_the_published_quantiles() {
    for (index, reason) in REASONS.iter().enumerate() {
        // Exactly, at the deviates of the three quantiles.
        for (deviate, minutes) in [0.0, Z_90, Z_95].into_iter().zip(reason.runtime_min) {
            let seconds = reason.runtime_s(deviate);
            assert!(
                (seconds / (minutes * 60.0) - 1.0).abs() < 1e-9,
                "{} {seconds}",
                reason.name
            );
        }
        // And as drawn: the part of 20,000 trials below each quantile, within four standard errors.
        let mut below = [0_u32; 3];
        for job in 0..20_000 {
            let minutes = runtime_to_failure(SEED, job, 0, index as u8).as_secs_f64() / 60.0;
            for (count, quantile) in below.iter_mut().zip(reason.runtime_min) {
                *count += u32::from(minutes <= quantile);
            }
        }
        for (count, part) in below.iter().zip([0.5, 0.9, 0.95_f64]) {
            let error = 4.0 * (part * (1.0 - part) / 20_000.0).sqrt();
            let found = f64::from(*count) / 20_000.0;
            assert!(
                (found - part).abs() < error,
                "{}: {found} below p{part}",
                reason.name
            );
        }
    }
}

#[test]
fn the_time_lost_is_split_among_reasons_roughly_as_published() {
    // Percent of the total runtime to failure: published, and how far off the model is (a fit to three quantiles
    // cannot know the mean). Inputs and core dumps are overstated, MPI understated.
    let mean_s = |reason: &Reason| {
        let count = 4_000;
        let deviate = |index: u32| normal_quantile((f64::from(index) + 0.5) / f64::from(count));
        (0..count)
            .map(|index| reason.runtime_s(deviate(index)))
            .sum::<f64>()
            / f64::from(count)
    };
    let lost: Vec<f64> = REASONS
        .iter()
        .map(|reason| mean_s(reason) * f64::from(reason.trials))
        .collect();
    let sum: f64 = lost.iter().sum();
    // The mean of this one lies far above its p95; the model has 1.3 % where the study has 6.6.
    assert!(lost[0] / sum < 0.033);
    for (index, published) in [
        (1, 30.43),
        (2, 9.22),
        (3, 3.35),
        (4, 3.82),
        (5, 21.73),
        (9, 3.70),
        (11, 14.63),
    ] {
        let model = 100.0 * lost[index] / sum;
        let ratio = model / published;
        assert!(
            (0.5..2.0).contains(&ratio),
            "{}: {model} against {published}",
            REASONS[index].name
        );
    }
}

/// Quantile of the standard normal by bisection of its distribution function (Zelen and Severo's approximation).
fn normal_quantile(part: f64) -> f64 {
    let below = |z: f64| {
        let t = 1.0 / (1.0 + 0.231_641_9 * f64::abs(z));
        let series = t
            * (0.319_381_53
                + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
        let tail = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * series;
        if z < 0.0 { tail } else { 1.0 - tail }
    };
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if below(middle) < part {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[test]
fn a_fate_repeats_and_does_not_depend_on_other_jobs() {
    let model = OutcomeModel::helios();
    model.validate().unwrap();
    for job in 0..200 {
        assert_eq!(of_size(&model, job, 8), of_size(&model, job, 8));
    }
    assert_ne!(
        runtime_to_failure(SEED, 1, 0, 1),
        runtime_to_failure(SEED, 1, 1, 1)
    );
    assert_eq!(
        runtime_to_failure(SEED, 1, 1, 1),
        runtime_to_failure(SEED, 1, 1, 1)
    );
    let none = OutcomeModel::from_name("none").unwrap();
    none.validate().unwrap();
    assert!((0..1000).all(|job| of_size(&none, job, 4).end == End::Passed));
}

#[test]
fn large_helios_gangs_are_mostly_killed() {
    let model = OutcomeModel::helios();
    let killed = (0..10_000)
        .filter(|job| matches!(of_size(&model, *job, 64).end, End::Killed(_)))
        .count();
    assert!((killed as f64 / 10_000.0 - 0.685).abs() < 0.015, "{killed}");
}

#[test]
fn trials_stop_at_the_limit() {
    let model = OutcomeModel {
        max_failed_trials: 2,
        ..OutcomeModel::philly()
    };
    assert!((0..5_000).all(|job| of_size(&model, job, 1).num_failed_trials <= 2));
}

#[test]
fn broken_models_are_refused_by_name() {
    let mut model = OutcomeModel::philly();
    model.ends[1].killed = 0.9;
    let text = model.validate().unwrap_err().to_string();
    assert!(text.contains("outcomes.ends[1]"), "{text}");
    let steep = OutcomeModel {
        lean: Lean {
            killed: 5.0,
            ..Lean::default()
        },
        ..OutcomeModel::philly()
    };
    let text = steep.validate().unwrap_err().to_string();
    assert!(text.contains("outcomes.lean.killed = 5"), "{text}");
    model.ends[1].up_to_gpus = 1;
    assert!(model.validate().unwrap_err().to_string().contains("up_to_gpus"));
    let text = OutcomeModel::from_name("acme").unwrap_err().to_string();
    assert!(text.contains("acme") && text.contains("helios"), "{text}");
}
