//! The laws of failures by age held to the lists that they were fitted to: own lengths are drawn from those that end otherwise
//! (Kaplan and Meier), failures beside them, and the earlier counts.

use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use pleach_workloads::{Outcome, Seed};
use rand::RngExt as _;

use super::{End, OutcomeModel};

/// Gang sizes of which each has lengths of its own.
const SIZES: [(u32, u32); 4] = [(1, 1), (2, 7), (8, 8), (9, u32::MAX)];

/// Quantiles of the length of jobs that end otherwise than by failing.
struct Lengths {
    /// (length, s; part that is longer)
    survival: Vec<(f64, f64)>,
}

impl Lengths {
    fn of(mut jobs: Vec<(f64, bool)>) -> Lengths {
        jobs.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (num_jobs, mut left) = (jobs.len(), 1.0);
        let mut survival = Vec::new();
        for (number, (length_s, fails)) in jobs.into_iter().enumerate() {
            if !fails {
                left *= 1.0 - 1.0 / (num_jobs - number) as f64;
            }
            survival.push((length_s, left));
        }
        Lengths { survival }
    }

    fn draw(&self, at: f64) -> f64 {
        let place = self.survival.partition_point(|(_, longer)| *longer > at);
        self.survival[place.min(self.survival.len() - 1)].0
    }
}

/// Parts of the jobs that fail, and of the GPU time that failed and cancelled jobs have.
fn parts(jobs: impl Iterator<Item = (f64, Outcome)>) -> [f64; 3] {
    let (mut num, mut num_failed, mut all, mut failed, mut killed) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (gpu_s, outcome) in jobs {
        num += 1.0;
        all += gpu_s;
        match outcome {
            Outcome::Failed => (num_failed, failed) = (num_failed + 1.0, failed + gpu_s),
            Outcome::Killed => killed += gpu_s,
            _ => {}
        }
    }
    [num_failed / num, failed / all, killed / all]
}

/// (GPUs, run time s, end) of the jobs of which the list says how they ended. Nodes that fail are no failures of a job.
fn known(path: &Path, gpus: &str) -> Vec<(u32, f64, Outcome)> {
    let mut rows = csv::Reader::from_reader(GzDecoder::new(File::open(path).unwrap()));
    let header = rows.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|known| known == name).unwrap();
    let (gpus, duration, state) = (at(gpus), at("duration_s"), at("state"));
    let jobs = rows.records().map(Result::unwrap).filter_map(|row| {
        let outcome = match &row[state] {
            "FAILED" => Outcome::Failed,
            "CANCELLED" => Outcome::Killed,
            "COMPLETED" | "NODE_FAIL" | "TIMEOUT" => Outcome::Completed,
            _ => return None,
        };
        Some((
            row[gpus].parse().unwrap(),
            row[duration].parse().unwrap(),
            outcome,
        ))
    });
    jobs.filter(|(_, run_time_s, _)| *run_time_s >= 1.0).collect()
}

/// Parts of the list, and those of as many jobs drawn by a model; means over some seeds.
fn held_to(list: &str, gpus: &str, model: &str) -> Option<([f64; 3], [f64; 3])> {
    let known = known(&pleach_tests::data(list)?, gpus);
    let size_of = |gang: u32| {
        let holds = |(from, to): &(u32, u32)| (*from..=*to).contains(&gang);
        SIZES.iter().position(holds).unwrap()
    };
    let lengths = SIZES.map(|(from, to)| {
        let own = known.iter().filter(|(gang, ..)| (from..=to).contains(gang));
        Lengths::of(
            own.map(|(_, run_time_s, end)| (*run_time_s, *end == Outcome::Failed))
                .collect(),
        )
    });
    let published = known
        .iter()
        .map(|(gang, run_time_s, end)| (run_time_s * f64::from(*gang), *end));
    let published = parts(published);
    let model = OutcomeModel::from_name(model).unwrap();
    let mut mean = [0.0; 3];
    const NUM_SEEDS: u64 = 5;
    for number in 0..NUM_SEEDS {
        let seed = Seed(11).child("list", number);
        let mut rng = seed.stream("lengths", 0);
        let jobs: Vec<(u32, f64)> = known
            .iter()
            .map(|(gang, ..)| (*gang, lengths[size_of(*gang)].draw(rng.random())))
            .collect();
        let ended = jobs
            .iter()
            .zip(model.fates(seed, &jobs))
            .map(|((gang, length_s), fate)| {
                let gpu_s = |part: f64| f64::from(*gang) * length_s * part;
                match fate.end {
                    End::Failed(part) => (gpu_s(part), Outcome::Failed),
                    End::Killed(part) => (gpu_s(part), Outcome::Killed),
                    End::Passed | End::Unsuccessful => (gpu_s(1.0), Outcome::Completed),
                }
            });
        for (sum, part) in mean.iter_mut().zip(parts(ended)) {
            *sum += part / NUM_SEEDS as f64;
        }
    }
    eprintln!(
        "{list}: failed jobs, their GPU time, cancelled GPU time: {published:.3?}, by the law {mean:.3?}"
    );
    Some((published, mean))
}

#[test]
fn laws_of_age_give_the_parts_of_the_lists_within_three_points() {
    for (list, gpus, model) in [
        (
            "traces/philly/philly_jobs_joined.csv.gz",
            "num_gpus",
            "philly-by-age",
        ),
        (
            "traces/helios_venus/venus_gpu_jobs_joined.csv.gz",
            "gpu_num",
            "venus-by-age",
        ),
    ] {
        let Some((published, law)) = held_to(list, gpus, model) else {
            continue;
        };
        for (published, law) in published.iter().zip(law) {
            assert!(
                (published - law).abs() < 0.03,
                "{list}: {published} in the list, {law} by the law"
            );
        }
    }
}
