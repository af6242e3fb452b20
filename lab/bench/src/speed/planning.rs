//! How long a planner takes for a round on a busy cluster: 512 GPUs, 1,000 jobs that wait or run.
//!
//! The cluster is driven without the simulator: between two plans a round passes, jobs whose believed end has come leave, and
//! as many new ones come, so that every plan has something to decide.

use pleach_dealing::Entry;
use pleach_env::Seed;
use pleach_env::workload::generate::{GavelConfig, GeneratorConfig, Paper, ProfileConfig, generate};
use pleach_env::workload::{JobSpec, Workload};
use pleach_scheduler::cluster::{Capabilities, Cluster, Submission};
use pleach_scheduler::{ClassId, Estimate, Provenance, TenantId, Time};
use serde_json::Value;

use super::BenchArgs;
use pleach_experiments::command::Context;
use pleach_experiments::door::DOOR;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::stats::{mean, quantile};

/// Jobs that wait or run.
const NUM_ACTIVE: usize = 1000;
/// Nodes of 8 GPUs.
const NUM_NODES: u32 = 64;
/// Jobs that come after the first ones, more than are ever needed.
const NUM_MORE: usize = 20_000;
/// Time between two plans, s: longer than the rounds of all planners.
const ROUND_S: f64 = 400.0;
/// Plans that are measured, at most; searches stop after `--seconds`.
const NUM_PLANS: usize = 20;

/// What one planner took on one list.
pub(super) struct Point {
    /// Planner and list.
    pub name: String,
    /// Median time of a plan, ms.
    pub median_ms: f64,
    /// Mean, ms.
    pub mean_ms: f64,
    /// Longest, ms.
    pub max_ms: f64,
}

/// Measures every planner.
///
/// # Errors
/// A workload that cannot be made, or a planner that fails.
pub(super) fn measure(args: &BenchArgs, context: &mut Context<'_>) -> Result<Vec<Point>, Error> {
    let lists = [one_type(args.report.seed())?, three_types(args.report.seed())?];
    let mut points = Vec::new();
    for entry in DOOR.planners() {
        for list in &lists {
            let point = planner(entry, list, args, context)?;
            if !args.report.quiet() {
                context.say(&format!(
                    "{}: median {:.2} ms, mean {:.2} ms, longest {:.2} ms",
                    point.name, point.median_ms, point.mean_ms, point.max_ms
                ))?;
            }
            points.push(point);
        }
    }
    Ok(points)
}

/// Philly's jobs on one GPU type.
fn one_type(seed: u64) -> Result<Workload, Error> {
    let config = ProfileConfig {
        num_jobs: NUM_ACTIVE + NUM_MORE,
        num_nodes: NUM_NODES,
        gpus_per_node: 8,
        ..ProfileConfig::default()
    };
    generate(&GeneratorConfig::Profile(config), Seed(seed)).map_err(Error::from)
}

/// Gavel's jobs on three types.
fn three_types(seed: u64) -> Result<Workload, Error> {
    let config = GavelConfig {
        num_jobs: NUM_ACTIVE + NUM_MORE,
        ..GavelConfig::default()
    };
    let mut workload = generate(&GeneratorConfig::Paper(Paper::GavelMulti(config)), Seed(seed))?;
    let groups = &mut workload.cluster.node_groups;
    let num = groups.len() as u32;
    for (number, group) in (0..).zip(groups.iter_mut()) {
        (group.gpus_per_node, group.nodes_per_rack) = (8, NUM_NODES);
        group.count = NUM_NODES / num + u32::from(number < NUM_NODES % num);
    }
    workload.validate()?;
    Ok(workload)
}

fn planner(entry: &Entry, list: &Workload, args: &BenchArgs, context: &Context<'_>) -> Result<Point, Error> {
    let refused = |error| Error::Problem(error);
    let capabilities = Capabilities::DEFAULT.with_actions(entry.requirements);
    let mut cluster = Cluster::new(&list.cluster, &list.classes, capabilities).map_err(refused)?;
    let mut planner = (entry.make)(&Value::Null).map_err(refused)?;
    let mut coming = list.jobs.iter();
    let mut times_ms = Vec::new();
    let start_s = (context.clock)();
    for round in 0..=NUM_PLANS {
        cluster.advance(Time::from_secs_f64(ROUND_S * round as f64));
        let over: Vec<_> = cluster
            .running()
            .filter(|id| cluster.job(*id).expected_finish <= cluster.now())
            .collect();
        over.into_iter().for_each(|id| cluster.finish(id));
        let num_active = cluster.num_pending() + cluster.num_running();
        for job in coming.by_ref().take(NUM_ACTIVE.saturating_sub(num_active)) {
            cluster.submit(submission(job)).map_err(refused)?;
        }
        let before = (context.stopwatch)();
        planner
            .plan(&mut cluster)
            .map_err(|error| Error::Failed(format!("{}: {error}", entry.info.name)))?;
        let took = (context.stopwatch)().saturating_sub(before);
        cluster.take_decisions(&mut Vec::new());
        cluster.take_rerated(&mut Vec::new());
        // The first plan fills an empty cluster.
        if round > 0 {
            times_ms.push(took.as_secs_f64() * 1e3);
        }
        if !times_ms.is_empty() && (context.clock)() - start_s > args.seconds {
            break;
        }
    }
    times_ms.sort_unstable_by(f64::total_cmp);
    Ok(Point {
        name: format!("{}/{}", entry.info.name, list.name),
        median_ms: quantile(&times_ms, 0.5).unwrap_or(f64::NAN),
        mean_ms: mean(&times_ms),
        max_ms: times_ms.last().copied().unwrap_or(f64::NAN),
    })
}

fn submission(job: &JobSpec) -> Submission {
    Submission {
        tenant: TenantId(job.tenant),
        class: ClassId(job.class),
        num_gpus: job.num_gpus,
        estimate_s: Estimate {
            value: job.run_time_s,
            provenance: Provenance::Oracle,
        },
        resources: job.resources,
    }
}
