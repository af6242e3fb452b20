//! What is written down of a job that waits or runs, with nothing in it that refers to a table of jobs.

use crate::cluster::tables::{Placement, Submission};
use crate::ids::{ExternalId, NodeId, Time};
use crate::problem::Problem;

/// Most that a record may say of a time in seconds or a service in GPU·s: what the clock can hold, and room for sums.
const AMOUNT_MAX: f64 = 1e15;

/// Most that a counter may say, so that it can go on counting.
pub(in crate::cluster) const COUNT_MAX: u64 = u64::MAX / 2;

/// A job that waits or runs.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRecord {
    /// Its name outside.
    pub job: ExternalId,
    /// When it came.
    pub submit: Time,
    /// The request.
    pub request: Submission,
    /// GPU·s received before the present run.
    pub attained_gpu_s: f64,
    /// Time for which it held GPUs before the present run, s.
    pub held_s: f64,
    /// Believed progress, in seconds of the reference run; of a job that runs up to [`RunRecord::rate_since`].
    pub executed_s: f64,
    /// Work that its restarts have added, in seconds of the reference run.
    pub added_s: f64,
    /// Progress that its last preemption wrote down, in seconds of the reference run.
    pub saved_s: f64,
    /// When it first began to run.
    pub first_start: Option<Time>,
    /// How often it was preempted.
    pub num_preemptions: u32,
    /// How often it was stopped by a failure.
    pub num_failures: u32,
    /// Its present run; none: it waits.
    pub run: Option<RunRecord>,
}

/// The present run of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// Its GPUs, one slice for each node.
    pub placement: Placement,
    /// When it began.
    pub start: Time,
    /// Which start of the cluster it was: jobs that share GPUs came to them in this order.
    pub start_number: u64,
    /// CPU that comes with each GPU, thousandths of a core.
    pub cpu_milli_per_gpu: u32,
    /// Host memory that comes with each GPU, MiB.
    pub memory_mib_per_gpu: u32,
    /// Whether it runs as copies of itself, one on each slice.
    pub is_forked: bool,
    /// Believed progress per second with its GPUs to itself; none: what the cluster believes of the placement.
    pub rate_alone: Option<f64>,
    /// Since when its rate has been what it is.
    pub rate_since: Time,
    /// Start-up cost that was believed to be unpaid then, s.
    pub cost_left_s: f64,
    /// Its MIG instances; one that is not named is found as at a start.
    pub instances: Vec<Instance>,
}

/// Where a MIG instance lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The node.
    pub node: NodeId,
    /// Index of the GPU in the node.
    pub gpu: u32,
    /// Its first memory slice.
    pub start: u8,
}

impl JobRecord {
    /// A job that came at `submit` and has received nothing yet.
    #[must_use]
    pub fn new(job: ExternalId, submit: Time, request: Submission) -> JobRecord {
        JobRecord {
            job,
            submit,
            request,
            attained_gpu_s: 0.0,
            held_s: 0.0,
            executed_s: 0.0,
            added_s: 0.0,
            saved_s: 0.0,
            first_start: None,
            num_preemptions: 0,
            num_failures: 0,
            run: None,
        }
    }

    /// An error about one of its values.
    pub(in crate::cluster) fn refuse(
        &self,
        key: &str,
        value: impl std::fmt::Display,
        allowed: impl ToString,
    ) -> Problem {
        Problem::new(
            format!("job {}: {key}", self.job),
            value,
            allowed,
            "what is written of a job must fit the cluster and its other jobs",
        )
    }

    /// Checks all that can be checked without a cluster, apart from its clock.
    pub(in crate::cluster) fn validate(&self, now: Time) -> Result<(), Problem> {
        let run = self.run.as_ref();
        let amounts = [
            ("attained_gpu_s", self.attained_gpu_s),
            ("held_s", self.held_s),
            ("executed_s", self.executed_s),
            ("added_s", self.added_s),
            ("saved_s", self.saved_s),
            ("run.cost_left_s", run.map_or(0.0, |run| run.cost_left_s)),
        ];
        for (key, value) in amounts {
            if !(0.0..=AMOUNT_MAX).contains(&value) {
                return Err(self.refuse(key, value, format!("0 to {AMOUNT_MAX:e}")));
            }
        }
        let (start, since) = run.map_or((now, now), |run| (run.start, run.rate_since));
        let first_start = self.first_start.unwrap_or(start);
        let times = [
            ("submit", self.submit, Time::ZERO, now),
            ("first_start", first_start, Time::ZERO, start),
            ("run.start", start, Time::ZERO, since),
            ("run.rate_since", since, Time::ZERO, now),
        ];
        for (key, value, least, most) in times {
            if !(least..=most).contains(&value) {
                return Err(self.refuse(key, value.0, format!("{} to {} µs", least.0, most.0)));
            }
        }
        let counts = [
            (
                "num_preemptions",
                u64::from(self.num_preemptions),
                u64::from(u32::MAX / 2),
            ),
            (
                "num_failures",
                u64::from(self.num_failures),
                u64::from(u32::MAX / 2),
            ),
            (
                "run.start_number",
                run.map_or(0, |run| run.start_number),
                COUNT_MAX,
            ),
        ];
        for (key, value, most) in counts {
            if value > most {
                return Err(self.refuse(key, value, format!("0 to {most}")));
            }
        }
        let rate = run.and_then(|run| run.rate_alone).unwrap_or(1.0);
        if !(1e-12..=1e12).contains(&rate) {
            return Err(self.refuse("run.rate_alone", rate, "1e-12 to 1e12"));
        }
        Ok(())
    }
}
