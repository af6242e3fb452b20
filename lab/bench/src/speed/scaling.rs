//! The scaling curve: the same kind of workload on ever larger clusters, up to a million jobs on 100,000 GPUs.
//!
//! Beside it, lists that grow while the cluster does not: what a queue costs that gets ever longer.
//!
//! Each point is one whole simulation, generating the jobs not counted. Memory is the peak of the process so far (Linux,
//! `VmHWM`), so a point's own need is what it adds to the largest before it; the jobs themselves are part of it.

use std::path::Path;

use pleach_env::workload::Workload;
use pleach_env::workload::generate::{GeneratorConfig, ProfileConfig, generate};
use pleach_env::{Seed, SimConfig, simulate};
use pleach_scheduler::ActionKind;
use pleach_scheduler::heuristics;
use pleach_scheduler::physics::links::{Fabric, StepCost};

use super::BenchArgs;
use pleach_experiments::command::Context;
use pleach_experiments::door::{DOOR, PolicySpec};
use pleach_experiments::error::Error;
use pleach_experiments::run_folder::atomic_file::read_text;

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

/// The same jobs where links decide: H100 nodes behind leaves that are over-subscribed, so that gangs share them, and steps of
/// a model of half a billion parameters.
fn with_links(workload: &Workload) -> Result<Workload, Error> {
    let mut workload = workload.clone();
    let mut fabric = Fabric::from_name("hgx-h100-ndr")?;
    fabric.between.rack_oversubscription = 4.0;
    workload.cluster.fabric = Some(fabric);
    for class in &mut workload.classes {
        class.step = Some(StepCost {
            compute_s: 0.25,
            gradient_bytes: 1e9,
            gamma: 2.0,
        });
    }
    Ok(workload)
}

/// Runs FIFO, FIFO over links and, with preemption, SRTF at every point.
///
/// # Errors
/// A workload that cannot be made, or a run that fails.
pub(super) fn curve(args: &BenchArgs, context: &mut Context<'_>) -> Result<Vec<Point>, Error> {
    let mut points = Vec::new();
    for (num_jobs, num_nodes) in POINTS {
        let generator = ProfileConfig {
            num_jobs,
            num_nodes,
            load: 0.9,
            ..ProfileConfig::default()
        };
        let generator = GeneratorConfig::Profile(generator);
        let workload = generate(&generator, Seed(args.report.seed()))?;
        let linked = with_links(&workload)?;
        for (name, policy, workload) in [
            ("fifo", "fifo", &workload),
            ("fifo+links", "fifo", &linked),
            ("srtf", "srtf", &workload),
        ] {
            let mut sim = SimConfig::default();
            sim.capabilities.grant(ActionKind::Preempt, policy == "srtf");
            let mut policy_of_point = PolicySpec::heuristic(policy)?.policy()?;
            let start_s = (context.clock)();
            simulate(workload, &sim, &mut policy_of_point)?;
            let point = Point {
                name: format!("{name}/{num_jobs}x{}", num_nodes * 8),
                seconds: (context.clock)() - start_s,
                peak_mib: peak_mib(),
            };
            if !args.report.quiet() {
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

/// Nodes of 8 GPUs on which lists grow: 1,000 GPUs.
const QUEUE_NODES: u32 = 125;
/// Work over capacity: a queue that comes and goes, and one that grows to the last arrival.
const QUEUE_LOADS: [f64; 2] = [0.9, 5.0];
/// Fewest jobs of a list; each further list has ten times as many.
const QUEUE_JOBS_MIN: usize = 10_000;
/// The network beside the heuristics, where it is at hand.
const REFERENCE_NETWORK: &str = "checkpoints/reference/PhillyGang-v1.ckpt";

/// Runs every heuristic and a reference network on lists of 10,000 jobs, ten times as many and so on, up to `num_jobs_max`;
/// `srtf` and `las` may stop jobs. One run each; the time is that of the clock, so nothing else should run.
///
/// # Errors
/// As [`curve`], or a network that cannot be read.
pub(super) fn queues(
    args: &BenchArgs,
    num_jobs_max: usize,
    context: &mut Context<'_>,
) -> Result<Vec<Point>, Error> {
    let mut policies = Vec::new();
    for name in heuristics::names() {
        policies.push(PolicySpec::heuristic(name)?);
    }
    if Path::new(REFERENCE_NETWORK).exists() {
        policies.extend(DOOR.open(REFERENCE_NETWORK)?);
    } else {
        context.say(&format!("no network: {REFERENCE_NETWORK} is not here"))?;
    }
    let mut points = Vec::new();
    let lists = std::iter::successors(Some(QUEUE_JOBS_MIN), |num_jobs| num_jobs.checked_mul(10));
    for num_jobs in lists.take_while(|num_jobs| *num_jobs <= num_jobs_max) {
        for load in QUEUE_LOADS {
            let generator = ProfileConfig {
                num_jobs,
                num_nodes: QUEUE_NODES,
                load,
                ..ProfileConfig::default()
            };
            let workload = generate(&GeneratorConfig::Profile(generator), Seed(args.report.seed()))?;
            for spec in &policies {
                let mut sim = SimConfig::default();
                sim.capabilities
                    .grant(ActionKind::Preempt, ["srtf", "las"].contains(&spec.name()));
                let mut policy = spec.policy()?;
                let start_s = (context.clock)();
                simulate(&workload, &sim, &mut policy)?;
                let point = Point {
                    name: format!("{}/{num_jobs}@{load}", spec.name()),
                    seconds: (context.clock)() - start_s,
                    peak_mib: peak_mib(),
                };
                if !args.report.quiet() {
                    context.say(&format!("{}: {:.2} s", point.name, point.seconds))?;
                }
                points.push(point);
            }
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
