//! How large and how long jobs are: gangs, run times by gang, what users ask for, and how much the longest weigh.

use std::collections::BTreeMap;

use pleach_env::workload::{JobSpec, Workload};
use serde::Serialize;

use super::spread::{Summary, share, sorted};

/// Gang buckets of the Philly study (Jeon et al., ATC'19, figure 2): 1, 2-4, 5-8, more than 8 GPUs.
pub(crate) const BUCKETS: [&str; 4] = ["1", "2-4", "5-8", ">8"];

/// The bucket of a gang: an index into [`BUCKETS`].
#[must_use]
pub fn bucket(num_gpus: u32) -> usize {
    match num_gpus {
        0..=1 => 0,
        2..=4 => 1,
        5..=8 => 2,
        _ => 3,
    }
}

/// Reference GPU-time of a job, GPU·s.
#[must_use]
pub fn gpu_s(job: &JobSpec) -> f64 {
    f64::from(job.num_gpus) * job.run_time_s
}

/// Gangs from more than the last power of two up to this one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GangClass {
    /// Smallest size, GPUs.
    pub num_gpus_min: u32,
    /// Largest size, a power of two.
    pub num_gpus_max: u32,
    /// Jobs.
    pub num_jobs: usize,
    /// Part of all jobs.
    pub jobs: Option<f64>,
    /// Part of all jobs of this size or smaller.
    pub jobs_cumulative: Option<f64>,
    /// Part of all GPU-time.
    pub gpu_time: Option<f64>,
    /// Part of all GPU-time of this size or smaller.
    pub gpu_time_cumulative: Option<f64>,
}

impl GangClass {
    /// `3-4`, or `1`.
    #[must_use]
    pub fn label(&self) -> String {
        if self.num_gpus_min == self.num_gpus_max {
            self.num_gpus_max.to_string()
        } else {
            format!("{}-{}", self.num_gpus_min, self.num_gpus_max)
        }
    }
}

/// What the longest jobs hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Longest {
    /// Part of the jobs, by run time; at least one job.
    pub of_jobs: f64,
    /// Jobs in it.
    pub num_jobs: usize,
    /// Their part of all GPU-time.
    pub gpu_time: Option<f64>,
    /// Their part of all run time, gangs counted once.
    pub run_time: Option<f64>,
}

/// Sizes of the jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sizes {
    /// Jobs.
    pub num_jobs: usize,
    /// GPU-time of all jobs, GPU·s.
    pub gpu_s: f64,
    /// Mean gang, GPUs.
    pub gpus_mean: Option<f64>,
    /// By gang, classes without jobs left out.
    pub gangs: Vec<GangClass>,
    /// Run time by bucket, s; `all` at the end. `[BUCKETS.len() + 1]`
    pub run_time_s: Vec<Summary>,
    /// The longest 1 % and 10 % of the jobs.
    pub longest: Vec<Longest>,
    /// Estimate over run time, where the source has an estimate.
    pub estimate_ratio: Summary,
    /// Part of those estimates that are shorter than the run.
    pub estimates_too_short: Option<f64>,
    /// Jobs that ask for a part of a GPU.
    pub num_fractional: usize,
    /// CPU cores for each GPU, over the jobs that ask for any.
    pub cores_per_gpu: Summary,
    /// Host memory for each GPU, GiB, over the jobs that ask for any.
    pub memory_gib_per_gpu: Summary,
    /// Run times of each bucket, ascending, for plots.
    #[serde(skip)]
    pub run_times_s: [Vec<f64>; 4],
}

impl Sizes {
    /// Sizes of the jobs of a workload.
    #[must_use]
    pub fn of(workload: &Workload) -> Sizes {
        let jobs = &workload.jobs;
        // An empty sum of floats is -0.
        let total_gpu_s = jobs.iter().map(gpu_s).sum::<f64>() + 0.0;
        let run_times_s: [Vec<f64>; 4] = std::array::from_fn(|number| {
            let of = jobs.iter().filter(|job| bucket(job.num_gpus) == number);
            sorted(of.map(|job| job.run_time_s))
        });
        let all_s = sorted(jobs.iter().map(|job| job.run_time_s));
        let summaries = run_times_s.iter().chain([&all_s]);
        let ratio = |job: &JobSpec| Some(job.estimate_s? / job.run_time_s);
        let ratios = sorted(jobs.iter().filter_map(ratio));
        let short = ratios.iter().filter(|ratio| **ratio < 1.0).count();
        let asked =
            |of: fn(&JobSpec) -> f64| Summary::of(&sorted(jobs.iter().map(of).filter(|asked| *asked > 0.0)));
        let gpus: f64 = jobs.iter().map(|job| f64::from(job.num_gpus)).sum();
        Sizes {
            num_jobs: jobs.len(),
            gpu_s: total_gpu_s,
            gpus_mean: share(gpus, jobs.len() as f64),
            gangs: gangs(jobs, total_gpu_s),
            run_time_s: summaries.map(|values| Summary::of(values)).collect(),
            longest: longest(jobs, total_gpu_s),
            estimates_too_short: share(short as f64, ratios.len() as f64),
            estimate_ratio: Summary::of(&ratios),
            num_fractional: jobs.iter().filter(|job| job.resources.is_fractional()).count(),
            cores_per_gpu: asked(|job| job.resources.cpu_cores),
            memory_gib_per_gpu: asked(|job| job.resources.memory_gib),
            run_times_s,
        }
    }
}

fn gangs(jobs: &[JobSpec], total_gpu_s: f64) -> Vec<GangClass> {
    let mut sums: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
    for job in jobs {
        let class = job.num_gpus.checked_next_power_of_two().unwrap_or(u32::MAX);
        let sum = sums.entry(class).or_default();
        sum.0 += 1;
        sum.1 += gpu_s(job);
    }
    let (mut below, mut below_gpu_s) = (0, 0.0);
    let of = |part: f64| share(part, jobs.len() as f64);
    sums.into_iter()
        .map(|(num_gpus_max, (num_jobs, gpu_s))| {
            below += num_jobs;
            below_gpu_s += gpu_s;
            GangClass {
                num_gpus_min: num_gpus_max / 2 + 1,
                num_gpus_max,
                num_jobs,
                jobs: of(num_jobs as f64),
                jobs_cumulative: of(below as f64),
                gpu_time: share(gpu_s, total_gpu_s),
                gpu_time_cumulative: share(below_gpu_s, total_gpu_s),
            }
        })
        .collect()
}

fn longest(jobs: &[JobSpec], total_gpu_s: f64) -> Vec<Longest> {
    let mut order: Vec<&JobSpec> = jobs.iter().collect();
    order.sort_by(|a, b| b.run_time_s.total_cmp(&a.run_time_s));
    let total_s: f64 = jobs.iter().map(|job| job.run_time_s).sum();
    let part = |of_jobs: f64| {
        let num_jobs = (of_jobs * jobs.len() as f64).ceil() as usize;
        let top = &order[..num_jobs.min(order.len())];
        Longest {
            of_jobs,
            num_jobs: top.len(),
            gpu_time: share(top.iter().map(|job| gpu_s(job)).sum(), total_gpu_s),
            run_time: share(top.iter().map(|job| job.run_time_s).sum(), total_s),
        }
    };
    vec![part(0.01), part(0.1)]
}
