//! Lower bounds: what no schedule of a workload can beat, so that a table can say how much there is left to win.
//!
//! Each bound drops constraints until the rest can be solved exactly in O(n log n). They hold whatever the cluster may do
//! (preempt at no cost, know everything, place as it likes) and so for every policy; how close a policy *could* come is
//! another question: a bound need not be reachable.
//!
//! # What is used of the model
//! For job i with release r, run time p and gang g, on types k with its speeds s(k):
//! 1. Its rate is never above max s(k) over the types whose pool holds the gang: locality and interference only slow it
//!    down, a restart or a lost run only adds. So it holds its gang for at least its *span* e = p / max s(k). What can
//!    make a job faster than its speed (other numbers of GPUs, more CPU) is in `gain` and divides e, and likewise a. What
//!    fused jobs get out of a GPU together divides a.
//! 2. GPUs are not used twice, or where jobs may share them, as often as that. Give a GPU of type k the value v(k) > 0. A job that runs on type k makes progress
//!    s(k) <= v(k) x max s/v, so it uses up capacity, the sum of v over all GPUs, at least as fast as its *area*
//!    a = g p / max(s/v) is worked off. Any values are right; we take several and keep the best bound.
//!
//! By 2 every schedule is also one of a *fluid machine* of that capacity on which job i has the work a; there it is done no
//! later than in truth, and by 1 it is never worked on faster than a/e.
//!
//! # The bounds on the sum of completion times
//! - **Isolated**: C >= r + e, job by job.
//! - **Shortest remaining area first** on the fluid machine: optimal for the sum of completion times on one machine with
//!   preemption, also among schedules that share the machine (Schrage, Operations Research 1968).
//! - **Mean busy times**: let M be the mean of the instants at which the job is worked on. As it is worked on at most at
//!   the rate 1/e of itself, the latest that a busy time can have its mean M and end at C is in one piece at the end:
//!   C >= M + e/2. And the sum of M on a fluid machine is least when, at every instant, the smallest job by *whole* area
//!   is worked on (the LP relaxation of Goemans, Queyranne, Schulz, Skutella and Wang, SIAM J. Discrete Math. 2002). With
//!   all releases equal this is the bound of Eastman, Even and Isaacs (Management Science 1964), for gangs.
//!
//! Leaving jobs out of the machine only makes it less busy, so each of the last two holds for any set of jobs, and the
//! sum over the parts of a partition holds for the whole. We cut at the idle times of the fluid machine, take the best
//! bound of each part, and let the jobs for which their isolated bound is better fall back to it. Where tenants may not
//! borrow, each is also taken as a machine of its quota.
//!
//! # The bounds on the makespan
//! The latest r + e, and the instant at which the fluid machine has worked off everything.
//!
//! # What is deliberately not here
//! Fractional weights in the mean busy times, and that two gangs of more than half the cluster exclude each other: both
//! would tighten the bounds for small clusters only.

mod fluid;
mod gain;

use pleach_scheduler::ActionKind;
use pleach_scheduler::cluster::{Capabilities, PACKED_MAX, Sharing};
use serde::{Deserialize, Serialize};

use self::fluid::{Piece, drained_s, least_flow_s};
use self::gain::Gains;
use pleach_workloads::{JobSpec, Workload, num_gpus_by_type};

/// What no schedule can beat. Exact but for rounding: 1e-9 of the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LowerBounds {
    /// Least mean job completion time, s.
    pub avg_jct_s: f64,
    /// Least time from the first submission to the last finish, s.
    pub makespan_s: f64,
}

impl LowerBounds {
    /// The bounds of a valid workload whose jobs do all their work; zeros without jobs. Of the capabilities, only sharing
    /// and gangs on mixed types count. Of a run in which jobs are killed or given up early they are no bounds.
    #[must_use]
    pub fn of(workload: &Workload, capabilities: &Capabilities) -> LowerBounds {
        let machine = Machine::of(workload, capabilities);
        let (mut sum_jct_s, mut makespan_s) = (0.0_f64, 0.0_f64);
        for values in machine.valuations() {
            let jobs = workload.jobs.iter();
            let pieces: Vec<Piece> = jobs.map(|job| machine.piece(job, &values)).collect();
            let ends = pieces.iter().map(|piece| piece.release_s + piece.span_s);
            makespan_s = ends.fold(makespan_s, f64::max);
            let capacity = machine.capacity(u64::MAX, &values);
            sum_jct_s = sum_jct_s.max(least_flow_s(&pieces, capacity));
            makespan_s = makespan_s.max(drained_s(&pieces, capacity));
            if !workload.cluster.borrowing {
                let mut sum_s = 0.0;
                for (tenant, spec) in workload.cluster.tenants.iter().enumerate() {
                    let jobs = workload.jobs.iter().zip(&pieces);
                    let own = jobs.filter(|(job, _)| usize::from(job.tenant) == tenant);
                    let own: Vec<Piece> = own.map(|(_, piece)| *piece).collect();
                    let capacity = machine.capacity(spec.quota_gpus.into(), &values);
                    sum_s += least_flow_s(&own, capacity);
                    makespan_s = makespan_s.max(drained_s(&own, capacity));
                }
                sum_jct_s = sum_jct_s.max(sum_s);
            }
        }
        LowerBounds {
            avg_jct_s: sum_jct_s / workload.jobs.len().max(1) as f64,
            makespan_s,
        }
    }
}

impl LowerBounds {
    /// The least time that a second of each job's work in the reference run can take on the cluster, s: one over the best rate that
    /// the bounds allow it. `[num_jobs]`
    #[must_use]
    pub fn least_times(workload: &Workload, capabilities: &Capabilities) -> Vec<f64> {
        let machine = Machine::of(workload, capabilities);
        let ones = vec![1.0; machine.pools.len()];
        let rate = |job: &JobSpec| machine.gains.get(job).rate * machine.best_speed(job, &ones);
        let least = |rate: f64| if rate > 0.0 { 1.0 / rate } else { 0.0 };
        workload.jobs.iter().map(|job| least(rate(job))).collect()
    }
}

/// What of the cluster and the jobs counts for the bounds.
struct Machine<'a> {
    workload: &'a Workload,
    /// GPUs of each type.
    pools: Vec<u32>,
    gains: Gains,
    /// Jobs that a GPU may serve at once, each as fast as alone at best.
    jobs_per_gpu: f64,
    mixed_types: bool,
    first_s: f64,
}

impl Machine<'_> {
    fn of<'a>(workload: &'a Workload, capabilities: &Capabilities) -> Machine<'a> {
        let jobs_per_gpu = match capabilities.sharing {
            Sharing::Off => 1.0,
            Sharing::TimeSlice | Sharing::Mps => PACKED_MAX as f64,
        };
        let first = workload.jobs.first();
        Machine {
            workload,
            pools: num_gpus_by_type(&workload.cluster),
            gains: Gains::of(workload),
            jobs_per_gpu,
            mixed_types: capabilities.can(ActionKind::MixTypes),
            first_s: first.map_or(0.0, |job| job.submit.as_secs_f64()),
        }
    }

    fn piece(&self, job: &JobSpec, values: &[f64]) -> Piece {
        let gain = self.gains.get(job);
        let ones = vec![1.0; self.pools.len()];
        let span_us = job.run_time_s / (gain.rate * self.best_speed(job, &ones)) * 1e6;
        let work_s = (job.run_time_s - 0.5e-6).max(0.0);
        Piece {
            release_s: job.submit.as_secs_f64() - self.first_s,
            // The clock counts whole microseconds and rounds a finish to the nearest: it may give half a one away.
            span_s: (span_us - 0.5).ceil().max(1.0) / 1e6,
            area: gpus_of(job) * work_s / (gain.per_gpu * self.fused(job) * self.best_speed(job, values)),
        }
    }

    /// By how much fusing can beat sharing: jobs of one program get more out of a GPU than as many as may share it, each as
    /// fast as alone.
    fn fused(&self, job: &JobSpec) -> f64 {
        let fusion = &self.workload.classes[usize::from(job.class)].fusion;
        match fusion {
            Some(fusion) if self.jobs_per_gpu > 1.0 => (fusion.best_sum / self.jobs_per_gpu).max(1.0),
            _ => 1.0,
        }
    }

    /// Largest `speed / value` over the types that can hold the gang, or a part of it where a part can be enough. A gang on
    /// several types goes at the pace of the slowest, so it is no faster on any of them than this says.
    fn best_speed(&self, job: &JobSpec, values: &[f64]) -> f64 {
        let class = &self.workload.classes[usize::from(job.class)];
        let in_parts = self.mixed_types || class.elastic.is_some();
        let least = if in_parts { 1 } else { job.num_gpus };
        let types = class.speed.iter().zip(&self.pools).zip(values);
        let usable = types.filter(|((speed, pool), _)| **speed > 0.0 && **pool >= least);
        usable
            .map(|((speed, _), value)| speed / value)
            .fold(0.0, f64::max)
    }

    /// Values of a GPU of each type; a single set where all GPUs are alike. `[num_sets][num_gpu_types]`
    fn valuations(&self) -> Vec<Vec<f64>> {
        let ones = vec![1.0; self.pools.len()];
        if self.pools.len() == 1 || self.workload.jobs.is_empty() {
            return vec![ones];
        }
        // What a GPU of the type is worth to the average GPU second of work.
        let mut mean = vec![0.0; self.pools.len()];
        let mut sum = 0.0;
        for job in &self.workload.jobs {
            let weight = gpus_of(job) * job.run_time_s;
            sum += weight;
            let speed = &self.workload.classes[usize::from(job.class)].speed;
            for (mean, speed) in mean.iter_mut().zip(speed) {
                *mean += weight * speed;
            }
        }
        // A type that no job can use is worth nothing; the least value keeps the division defined.
        let mean = mean.into_iter().map(|value| (value / sum).max(1e-9));
        vec![ones, mean.collect()]
    }

    /// Value of the `most` most valuable GPUs, as often as each may be used at once.
    fn capacity(&self, most: u64, values: &[f64]) -> f64 {
        let types = values.iter().copied().zip(self.pools.iter().copied());
        let mut types: Vec<(f64, u32)> = types.collect();
        types.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
        let (mut rest, mut capacity) = (most, 0.0);
        for (value, pool) in types {
            let num = rest.min(pool.into());
            capacity += value * num as f64;
            rest -= num;
        }
        self.jobs_per_gpu * capacity
    }
}

/// GPUs that the gang takes from the others. A job that reserves a share of each GPU takes no more than that share,
/// however well it gets on with its neighbours.
fn gpus_of(job: &JobSpec) -> f64 {
    f64::from(job.num_gpus) * f64::from(job.resources.gpu_milli) / 1000.0
}

#[cfg(test)]
mod tests;
