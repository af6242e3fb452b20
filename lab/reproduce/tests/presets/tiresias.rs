//! The simulator of Tiresias, with its placement scheme `count`: only the number of free GPUs matters.
//!
//! It is event-driven in whole seconds; preemption costs nothing. `fifo` and `fjf` are ours (`fifo`, `fifo-skip`). The
//! preemptive policies give out the GPUs anew at every event, along one list that stays sorted from event to event, so
//! equals keep the order that they had.
//!
//! # Source
//! Gu et al., NSDI'19; semantics read from the released simulator (`simulator/run_sim.py`, `jobs.py`), nothing copied.
//! Its `gittins` crashes with the shipped settings, and with placement `yarn` the preemptive policies lose memory until
//! the run stops: both are left out.

use pleach_scheduler::Lens;
use pleach_scheduler::cluster::{Capabilities, Cluster, JobState};
use pleach_scheduler::heuristics::{greedy, head_of_line};
use pleach_scheduler::{
    ActionKind, ActionSet, ConfigError, JobId, Planner, PolicyError, PolicyPlanner, Time,
};

use super::preset::{Preset, start, unknown};

/// The policies that [`preset`] knows.
pub const POLICIES: [&str; 7] = [
    "fifo",
    "fjf",
    "sjf",
    "shortest",
    "shortest-gpu",
    "dlas",
    "dlas-gpu",
];

/// Service at which a job leaves the first and the second queue: s for `dlas`, GPU·s for `dlas-gpu`.
///
/// # Source
/// `queue_limit` in `simulator/jobs.py`; a third limit, 18,000, is never reached with three queues.
const LIMITS: [i64; 2] = [3250, 7200];

/// What its cluster can do.
const CAPABILITIES: Capabilities = Capabilities {
    granted: ActionSet::of(ActionKind::Preempt),
    restart_cost_s: 0.0,
    ..Capabilities::DEFAULT
};

/// A policy of the Tiresias simulator.
///
/// # Errors
/// An unknown name.
pub fn preset(policy: &str) -> Result<Preset, ConfigError> {
    Ok(match policy {
        "fifo" => Preset::new(
            CAPABILITIES,
            PolicyPlanner::new(head_of_line("fifo", Lens::Arrival)),
        ),
        "fjf" => Preset::new(
            CAPABILITIES,
            PolicyPlanner::new(greedy("fifo-skip", Lens::Arrival)),
        ),
        "sjf" => Preset::new(CAPABILITIES, Sorted::new(Key::NumGpus)),
        "shortest" => Preset::new(CAPABILITIES, Sorted::new(Key::Remaining)),
        "shortest-gpu" => Preset::new(CAPABILITIES, Sorted::new(Key::RemainingGpuTime)),
        "dlas" => Preset::new(CAPABILITIES, Dlas::new(false)),
        "dlas-gpu" => Preset::new(CAPABILITIES, Dlas::new(true)),
        _ => return Err(unknown(policy, &POLICIES)),
    })
}

/// Gives out all GPUs along an order, passing over jobs that do not fit, and stops and starts what that changes.
fn reallocate(cluster: &mut Cluster, order: impl Iterator<Item = JobId>) {
    let mut left = cluster.num_gpus();
    let (mut stopped, mut started) = (Vec::new(), Vec::new());
    for id in order {
        let job = cluster.job(id);
        let running = job.state == JobState::Running;
        if job.request.num_gpus <= left {
            left -= job.request.num_gpus;
            if !running {
                started.push(id);
            }
        } else if running {
            stopped.push(id);
        }
    }
    for job in stopped {
        cluster.preempt(job);
    }
    for job in started {
        let placed = start(cluster, job);
        debug_assert!(placed, "its GPUs were counted");
    }
}

/// What a list is sorted by.
#[derive(Clone, Copy, Debug)]
enum Key {
    NumGpus,
    Remaining,
    RemainingGpuTime,
}

/// Jobs in the system, sorted anew at every event.
#[derive(Clone, Debug)]
struct Sorted {
    key: Key,
    jobs: Vec<JobId>,
    num_seen: usize,
}

impl Sorted {
    fn new(key: Key) -> Sorted {
        Sorted {
            key,
            jobs: Vec::new(),
            num_seen: 0,
        }
    }
}

impl Planner for Sorted {
    fn name(&self) -> &str {
        match self.key {
            Key::NumGpus => "tiresias-sjf",
            Key::Remaining => "tiresias-shortest",
            Key::RemainingGpuTime => "tiresias-shortest-gpu",
        }
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        update(cluster, &mut self.jobs, &mut self.num_seen);
        let now = cluster.now();
        let key = self.key;
        self.jobs.sort_by_cached_key(|job| {
            let job = cluster.job(*job);
            let (rest, gang) = (whole(job.remaining_s_at(now)), i64::from(job.request.num_gpus));
            match key {
                Key::NumGpus => gang,
                Key::Remaining => rest,
                Key::RemainingGpuTime => rest * gang,
            }
        });
        reallocate(cluster, self.jobs.iter().copied());
        Ok(())
    }
}

/// Three queues by what a job has received. Demotion is noticed at events, and the simulator makes one for the next
/// demotion; for `dlas-gpu` it computes that time as (limit - executed time) / gang, which mixes s with GPU·s, so the
/// demotion is noticed late.
#[derive(Clone, Debug)]
struct Dlas {
    by_gpu_time: bool,
    /// Jobs as they came.
    jobs: Vec<JobId>,
    num_seen: usize,
    /// The queue of each job. `[job]`
    queue_of: Vec<usize>,
    /// Jobs that run before jobs that wait, both in the order in which they became so.
    queues: [Vec<JobId>; LIMITS.len() + 1],
    wake: Option<Time>,
}

impl Dlas {
    fn new(by_gpu_time: bool) -> Dlas {
        Dlas {
            by_gpu_time,
            jobs: Vec::new(),
            num_seen: 0,
            queue_of: Vec::new(),
            queues: Default::default(),
            wake: None,
        }
    }

    fn demote(&mut self, cluster: &Cluster) {
        for id in &self.jobs {
            let (job, queue) = (cluster.job(*id), self.queue_of[id.index()]);
            let received = if self.by_gpu_time {
                job.attained_gpu_s_at(cluster.now())
            } else {
                job.executed_s_at(cluster.now())
            };
            let over = LIMITS.get(queue).is_some_and(|limit| whole(received) >= *limit);
            if job.state == JobState::Running && over {
                self.queues[queue].retain(|other| other != id);
                self.queues[queue + 1].push(*id);
                self.queue_of[id.index()] = queue + 1;
            }
        }
    }

    fn next_demotion(&self, cluster: &Cluster) -> Option<Time> {
        let running = self.jobs.iter().map(|id| (id, cluster.job(*id)));
        let running = running.filter(|(_, job)| job.state == JobState::Running);
        let wait_s = running.filter_map(|(id, job)| {
            let rest_s = LIMITS.get(self.queue_of[id.index()])? - whole(job.executed_s_at(cluster.now()));
            let gang = i64::from(job.request.num_gpus);
            Some(if self.by_gpu_time {
                rest_s.div_euclid(gang)
            } else {
                rest_s
            })
        });
        wait_s
            .min()
            .map(|wait_s| cluster.now() + Time(wait_s * 1_000_000))
    }
}

impl Planner for Dlas {
    fn name(&self) -> &str {
        if self.by_gpu_time {
            "tiresias-dlas-gpu"
        } else {
            "tiresias-dlas"
        }
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        for queue in &mut self.queues {
            queue.retain(|job| cluster.job(*job).state != JobState::Finished);
        }
        let first_new = update(cluster, &mut self.jobs, &mut self.num_seen);
        self.queue_of.resize(self.num_seen, 0);
        self.queues[0].extend((first_new..self.num_seen).map(|job| JobId(job as u32)));
        self.demote(cluster);
        reallocate(cluster, self.queues.iter().flatten().copied());
        for queue in &mut self.queues {
            queue.sort_by_key(|job| cluster.job(*job).state == JobState::Pending);
        }
        self.wake = self.next_demotion(cluster);
        Ok(())
    }

    fn wake_at(&self, _cluster: &Cluster) -> Option<Time> {
        self.wake
    }
}

/// Takes jobs that have left out of the list and puts new ones to its end; returns the first new job.
fn update(cluster: &Cluster, jobs: &mut Vec<JobId>, num_seen: &mut usize) -> usize {
    let first_new = *num_seen;
    jobs.retain(|job| cluster.job(*job).state != JobState::Finished);
    jobs.extend((first_new..cluster.jobs().len()).map(|job| JobId(job as u32)));
    *num_seen = cluster.jobs().len();
    first_new
}

/// Whole seconds; all times of that simulator are.
fn whole(seconds: f64) -> i64 {
    seconds.round() as i64
}
