//! The account of which job ran where and when, segment by segment, for the record of a schedule ([`pleach_tables::schedule`]).
//!
//! Kept only on request. A run is opened when its job gets GPUs, cut wherever its rate changes, and closed when the GPUs
//! are given back. A run that is given back at the instant at which it began leaves nothing. The time that a start costs is a
//! segment at rate 0, and so is the time in which a batch system holds GPUs of a job that has ended, unseen.

use pleach_scheduler::decision::Decision;
use pleach_scheduler::{JobId, Time};
use pleach_tables::schedule::{Ended, Gpus, Segment, Slice};

/// A job that holds GPUs.
#[derive(Clone, Debug)]
struct Open {
    /// What its segments have in common; the times are those of the last one that was closed.
    of: Segment,
    /// When it began.
    start: Time,
    /// Up to when it is recorded.
    told: Time,
    /// Whether it has a segment.
    has_segment: bool,
}

/// What is kept of one job.
#[derive(Clone, Debug, Default)]
struct Kept {
    open: Option<Box<Open>>,
    /// Its last segment.
    last: Option<usize>,
    num_attempts: u32,
    /// Work that was added by the end of a run that left no segment, in seconds of the reference run.
    owed_s: f64,
}

/// Keeps the account while a world runs.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    /// `[num_jobs]`
    jobs: Vec<Kept>,
    segments: Vec<Segment>,
}

impl Segments {
    pub(crate) fn new(num_jobs: usize) -> Segments {
        Segments {
            jobs: vec![Kept::default(); num_jobs],
            segments: Vec::new(),
        }
    }

    /// A job has got GPUs.
    pub(crate) fn began(&mut self, now: Time, decision: &Decision, is_forked: bool) {
        let kept = &mut self.jobs[decision.row.index()];
        let of = Segment {
            job: decision.row.0,
            attempt: kept.num_attempts + 1,
            slices: slices(decision),
            gpu_milli: decision.gpu_milli,
            gpu_memory_gib: f64::from(decision.gpu_memory_mib_per_gpu) / 1024.0,
            cpu_cores: f64::from(decision.cpu_milli_per_gpu) / 1000.0,
            memory_gib: f64::from(decision.memory_mib_per_gpu) / 1024.0,
            copies: if is_forked { decision.num_copies } else { 0 },
            from_s: 0.0,
            to_s: 0.0,
            rate: 0.0,
            lost_s: 0.0,
            ended: Ended::Continued,
        };
        kept.open = Some(Box::new(Open {
            of,
            start: now,
            told: now,
            has_segment: false,
        }));
    }

    /// A job has held its GPUs until now, and after what was left of the costs of its start went on at this rate.
    pub(crate) fn ran(&mut self, now: Time, id: JobId, cost_left_s: f64, rate: f64) {
        let Some(open) = &self.jobs[id.index()].open else {
            return;
        };
        let paid = (open.told + Time::from_secs_f64(cost_left_s)).min(now);
        self.add(id, paid, 0.0);
        self.add(id, now, rate);
    }

    fn add(&mut self, id: JobId, to: Time, rate: f64) {
        let kept = &mut self.jobs[id.index()];
        let Some(open) = kept.open.as_mut().filter(|open| open.told < to) else {
            return;
        };
        if let Some(last) = kept.last.map(|last| &mut self.segments[last]) {
            if open.has_segment && last.rate == rate {
                last.to_s = to.as_secs_f64();
                open.told = to;
                return;
            }
            if !open.has_segment && last.ended == Ended::Preempted && last.to_s == open.start.as_secs_f64() {
                let has_as_many = last.num_gpus() == open.of.num_gpus();
                last.ended = if has_as_many { Ended::Moved } else { Ended::Resized };
            }
        }
        if !open.has_segment {
            open.has_segment = true;
            kept.num_attempts += 1;
        }
        kept.last = Some(self.segments.len());
        self.segments.push(Segment {
            from_s: open.told.as_secs_f64(),
            to_s: to.as_secs_f64(),
            rate,
            ..open.of.clone()
        });
        open.told = to;
    }

    /// A job has given its GPUs back; `lost_s` is the work that this added to what it has to do.
    pub(crate) fn ended(&mut self, id: JobId, ended: Ended, lost_s: f64) {
        let kept = &mut self.jobs[id.index()];
        let Some(open) = kept.open.take() else {
            return;
        };
        kept.owed_s += lost_s;
        if let Some(last) = kept.last.map(|last| &mut self.segments[last])
            && open.has_segment
        {
            last.ended = ended;
            last.lost_s = std::mem::take(&mut kept.owed_s);
        }
    }

    /// The segments, in the order in which they were first recorded; a job that still runs ends with the record.
    pub(crate) fn take(mut self) -> Vec<Segment> {
        for index in 0..self.jobs.len() {
            self.ended(JobId(index as u32), Ended::Horizon, 0.0);
        }
        self.segments
    }
}

/// The slices of a placement; equal nodes in a row are one.
fn slices(decision: &Decision) -> Vec<Slice> {
    let mut slices: Vec<Slice> = Vec::new();
    for slice in &decision.placement {
        let (node, gpus) = (slice.node.0, Gpus::Which(slice.gpus));
        match slices.last_mut() {
            Some(row) if row.gpus == gpus && row.node + row.num_nodes == node => row.num_nodes += 1,
            _ => slices.push(Slice {
                node,
                num_nodes: 1,
                gpus,
            }),
        }
    }
    slices
}
