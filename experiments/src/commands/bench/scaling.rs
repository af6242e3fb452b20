//! The scaling curve: the same kind of workload on ever larger clusters, up to a million jobs on 100,000 GPUs.
//!
//! Each point is one whole simulation, generating the jobs not counted. Memory is the peak of the process so far (Linux,
//! `VmHWM`), so a point's own need is what it adds to the largest before it; the jobs themselves are part of it.

use std::path::Path;

use pleach_env::seed::Seed;
use pleach_env::simulate::{SimConfig, simulate};
use pleach_env::workload::generate::{GeneratorConfig, PhillyLikeConfig, generate};

use crate::atomic_file::read_text;
use crate::cli::BenchArgs;
use crate::commands::Context;
use crate::contestant::Contestant;
use crate::error::Error;
use crate::scenario::env_error;

/// Jobs and nodes of 8 GPUs of each point: ten jobs for a GPU.
const POINTS: [(usize, u32); 5] = [
    (10_000, 125),
    (30_000, 375),
    (100_000, 1_250),
    (300_000, 3_750),
    (1_000_000, 12_500),
];

/// Largest text that the system says of a process, bytes.
const STATUS_BYTES_MAX: u64 = 1 << 16;

/// What one point took.
pub(super) struct Point {
    /// Policy, jobs and GPUs.
    pub name: String,
    /// Time of the simulation, s.
    pub seconds: f64,
    /// Peak resident memory of the process until then, MiB; zero where the system does not say.
    pub peak_mib: f64,
}

/// Runs FIFO and, with preemption, SRTF at every point.
///
/// # Errors
/// A workload that cannot be made, or a run that fails.
pub(super) fn curve(args: &BenchArgs, context: &mut Context<'_>) -> Result<Vec<Point>, Error> {
    let mut points = Vec::new();
    for (num_jobs, num_nodes) in POINTS {
        let generator = PhillyLikeConfig {
            num_jobs,
            num_nodes,
            load: 0.9,
            ..PhillyLikeConfig::default()
        };
        let generator = GeneratorConfig::PhillyLike(generator);
        let workload = generate(&generator, Seed(args.seed)).map_err(env_error)?;
        for policy in ["fifo", "srtf"] {
            let mut sim = SimConfig::default();
            sim.capabilities.preemption = policy == "srtf";
            let mut policy_of_point = Contestant::heuristic(policy)?.policy()?;
            let start_s = (context.clock)();
            simulate(&workload, &sim, &mut policy_of_point).map_err(env_error)?;
            let point = Point {
                name: format!("{policy}/{num_jobs}x{}", num_nodes * 8),
                seconds: (context.clock)() - start_s,
                peak_mib: peak_mib(),
            };
            if !args.quiet {
                context.say(&format!(
                    "{}: {:.1} s, {:.0} MiB",
                    point.name, point.seconds, point.peak_mib
                ))?;
            }
            points.push(point);
        }
    }
    Ok(points)
}

/// Peak resident memory of this process, MiB.
fn peak_mib() -> f64 {
    let status = read_text(Path::new("/proc/self/status"), STATUS_BYTES_MAX).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
