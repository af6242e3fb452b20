//! What a policy makes of the workload: which jobs wait how long and why, how spread out gangs run, how the cluster fills.

use std::collections::BTreeMap;

use pleach_env::SimResult;
use pleach_env::attribution::{WaitCause, Waits};
use pleach_env::occupancy::{NUM_OCCUPANCY_CLASSES, Spread};
use pleach_env::workload::Workload;
use pleach_scheduler::Time;
use serde::Serialize;

use super::sizes::{BUCKETS, bucket};
use super::spread::{Summary, share, sorted};

/// Waiting times of some jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Delay {
    /// Whose: a gang bucket, a tenant, `all`.
    pub name: String,
    /// Part of the jobs that waited at all.
    pub waited: Option<f64>,
    /// Time in the queue, s, over all these jobs.
    pub wait_s: Summary,
    /// Parts of the whole waiting time by cause; none where no job waited.
    pub causes: Option<Causes>,
    /// Jobs by the cause that kept them longest, over those that waited; in the order of [`WaitCause::ALL`].
    pub num_jobs_by_cause: [usize; 4],
}

/// A waiting time by cause, parts of the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Causes {
    /// The tenant would have exceeded its quota.
    pub fair_share: f64,
    /// Too few GPUs were free.
    pub capacity: f64,
    /// Enough GPUs were free, but not tightly.
    pub fragmentation: f64,
    /// They were free tightly, and the policy kept them.
    pub held_back: f64,
    /// Philly's fragmentation: all but fair share.
    pub philly_fragmentation: f64,
}

/// Gangs of one class on so many nodes, both in powers of two.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpreadRow {
    /// Gang sizes up to this power of two, above half of it.
    pub num_gpus_max: u32,
    /// Numbers of nodes up to this power of two, above half of it.
    pub num_nodes_max: u32,
    /// Runs.
    pub num_runs: u64,
    /// Part of the held GPU-time of the class.
    pub gpu_time: Option<f64>,
    /// Progress over what the held GPU-time makes at full speed: locality, neighbours, restarts and failures in it.
    pub relative_rate: Option<f64>,
}

/// Time spent at one occupancy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OccupancyRow {
    /// Occupied part of the GPUs, from (up to 0.05 above; 1 = full).
    pub from: f64,
    /// Part of the time.
    pub time: Option<f64>,
    /// Mean part of the nodes without any job.
    pub empty_nodes: Option<f64>,
}

/// A simulated run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Simulated {
    /// Policy.
    pub policy: String,
    /// Jobs simulated: the first so many.
    pub num_jobs: usize,
    /// Jobs of the workload that were left out.
    pub num_left_out: usize,
    /// Last finish less first submission, s.
    pub makespan_s: f64,
    /// Held over available GPU-time from the first submission to the last finish.
    pub utilisation: f64,
    /// Mean job completion time, s.
    pub avg_jct_s: f64,
    /// Mean bounded slowdown.
    pub avg_slowdown: f64,
    /// Preemptions.
    pub preemptions: f64,
    /// By gang bucket; `all` at the end.
    pub delay_by_bucket: Vec<Delay>,
    /// By tenant, most waiting first.
    pub delay_by_tenant: Vec<Delay>,
    /// By gang class and nodes.
    pub spread: Vec<SpreadRow>,
    /// GPU-time lost to less than full speed, part of the held GPU-time.
    pub rate_loss: Option<f64>,
    /// By occupancy, classes without time left out.
    pub occupancy: Vec<OccupancyRow>,
    /// Waiting times of each bucket, ascending, for plots.
    #[serde(skip)]
    pub waits_s: [Vec<f64>; 4],
    /// (time s, held GPUs) at every change.
    #[serde(skip)]
    pub held: Vec<(f64, f64)>,
}

impl Simulated {
    /// The figures of a run of `workload` that recorded waits, occupancy and utilisation.
    #[must_use]
    pub fn of(policy: &str, workload: &Workload, num_left_out: usize, result: SimResult) -> Simulated {
        let jobs = || workload.jobs.iter().zip(&result.waits);
        let of_bucket = |number: usize| {
            jobs()
                .filter(move |(job, _)| bucket(job.num_gpus) == number)
                .map(|(_, waits)| waits)
        };
        let mut delay_by_bucket: Vec<Delay> = BUCKETS
            .iter()
            .enumerate()
            .map(|(number, name)| Delay::of(name, of_bucket(number)))
            .collect();
        delay_by_bucket.push(Delay::of("all", result.waits.iter()));
        let mut by_tenant: BTreeMap<u16, Vec<&Waits>> = BTreeMap::new();
        for (job, waits) in jobs() {
            by_tenant.entry(job.tenant).or_default().push(waits);
        }
        let name = |tenant: u16| workload.cluster.tenants[usize::from(tenant)].name.as_str();
        let mut delay_by_tenant: Vec<Delay> = by_tenant
            .into_iter()
            .map(|(tenant, waits)| Delay::of(name(tenant), waits.into_iter()))
            .collect();
        let sum_s = |delay: &Delay| delay.wait_s.mean.unwrap_or(0.0) * delay.wait_s.count as f64;
        delay_by_tenant.sort_by(|a, b| sum_s(b).total_cmp(&sum_s(a)));
        let waits_s =
            std::array::from_fn(|number| sorted(of_bucket(number).map(|waits| waits.total().as_secs_f64())));
        let occupancy = result.occupancy.as_ref();
        let spread = occupancy
            .map(|occupancy| occupancy.spread().clone())
            .unwrap_or_default();
        let held_gpu_s: f64 = spread.values().map(|row| row.held_gpu_s).sum();
        let useful_gpu_s: f64 = spread.values().map(|row| row.useful_gpu_s).sum();
        Simulated {
            policy: policy.to_string(),
            num_jobs: workload.jobs.len(),
            num_left_out,
            makespan_s: result.metrics.makespan_s,
            utilisation: result.metrics.utilisation,
            avg_jct_s: result.metrics.avg_jct_s,
            avg_slowdown: result.metrics.avg_slowdown,
            preemptions: result.metrics.preemptions,
            rate_loss: share(held_gpu_s - useful_gpu_s, held_gpu_s).map(|loss| loss.max(0.0)),
            occupancy: occupancy
                .map(|occupancy| occupancy_rows(occupancy, workload))
                .unwrap_or_default(),
            spread: spread_rows(&spread),
            delay_by_bucket,
            delay_by_tenant,
            waits_s,
            held: result.utilisation,
        }
    }
}

impl Delay {
    fn of<'a>(name: &str, waits: impl Iterator<Item = &'a Waits>) -> Delay {
        let (mut sums, mut num_jobs_by_cause) = ([Time::ZERO; 4], [0; 4]);
        let mut wait_s = Vec::new();
        for waits in waits {
            wait_s.push(waits.total().as_secs_f64());
            for (sum, cause) in sums.iter_mut().zip(WaitCause::ALL) {
                *sum = *sum + waits.of(cause);
            }
            if let Some(cause) = waits.main() {
                num_jobs_by_cause[cause as usize] += 1;
            }
        }
        let wait_s = sorted(wait_s.into_iter());
        let total_s: f64 = sums.iter().map(|sum| sum.as_secs_f64()).sum();
        let [fair_share, capacity, fragmentation, held_back] = sums.map(|sum| sum.as_secs_f64() / total_s);
        let waited = wait_s.iter().filter(|wait| **wait > 0.0).count();
        Delay {
            name: name.to_string(),
            waited: share(waited as f64, wait_s.len() as f64),
            wait_s: Summary::of(&wait_s),
            causes: (total_s > 0.0).then_some(Causes {
                fair_share,
                capacity,
                fragmentation,
                held_back,
                philly_fragmentation: 1.0 - fair_share,
            }),
            num_jobs_by_cause,
        }
    }
}

/// Rows by class of gangs and class of nodes.
fn spread_rows(spread: &BTreeMap<(u32, u32), Spread>) -> Vec<SpreadRow> {
    let mut rows: BTreeMap<(u32, u32), Spread> = BTreeMap::new();
    let mut classes: BTreeMap<u32, f64> = BTreeMap::new();
    for ((num_gpus, num_nodes), row) in spread {
        let up = |number: u32| number.checked_next_power_of_two().unwrap_or(u32::MAX);
        let class = up(*num_gpus);
        let sum = rows.entry((class, up(*num_nodes))).or_default();
        sum.num_runs += row.num_runs;
        sum.held_gpu_s += row.held_gpu_s;
        sum.useful_gpu_s += row.useful_gpu_s;
        *classes.entry(class).or_default() += row.held_gpu_s;
    }
    rows.into_iter()
        .map(|((num_gpus_max, num_nodes_max), row)| SpreadRow {
            num_gpus_max,
            num_nodes_max,
            num_runs: row.num_runs,
            gpu_time: share(row.held_gpu_s, classes[&num_gpus_max]),
            relative_rate: share(row.useful_gpu_s, row.held_gpu_s),
        })
        .collect()
}

fn occupancy_rows(occupancy: &pleach_env::occupancy::Occupancy, workload: &Workload) -> Vec<OccupancyRow> {
    let groups = workload.cluster.node_groups.iter();
    let num_nodes: f64 = groups.map(|group| f64::from(group.count)).sum();
    // The time before the first submission is none of the policy's.
    let idle_s = workload.jobs.first().map_or(0.0, |job| job.submit.as_secs_f64());
    let time_s = |class: usize| {
        let row = &occupancy.classes()[class];
        (row.time_s - if class == 0 { idle_s } else { 0.0 }).max(0.0)
    };
    let total_s: f64 = (0..NUM_OCCUPANCY_CLASSES).map(time_s).sum();
    (0..NUM_OCCUPANCY_CLASSES)
        .filter(|class| time_s(*class) > 0.0)
        .map(|class| {
            let row = &occupancy.classes()[class];
            OccupancyRow {
                from: class as f64 / (NUM_OCCUPANCY_CLASSES - 1) as f64,
                time: share(time_s(class), total_s),
                empty_nodes: share(row.empty_node_s, row.time_s * num_nodes),
            }
        })
        .collect()
}
