//! What a job's own segments must be: its whole gang on types that it can use, one attempt at a time, in order, and all its work.

use std::collections::{BTreeMap, BTreeSet};

use pleach_tables::schedule::{Ended, Segment};

use super::{Checker, us};
use crate::{Fault, Party, Rule};

/// What a time may be wrong by, s: half a microsecond at both ends of each of two segments.
pub(super) const TIME_TOLERANCE_S: f64 = 2e-6;
/// What a sum of work may be wrong by, relative to what was done: rounding of millions of terms.
pub(super) const WORK_TOLERANCE: f64 = 1e-9;

impl<'a> Checker<'a> {
    pub(super) fn check_jobs(&mut self) {
        let run = self.run;
        let mut order: Vec<&Segment> = run.segments.iter().collect();
        order.sort_by_key(|segment| (segment.job, us(segment.from_s), us(segment.to_s)));
        let ends_early = order.iter().any(|segment| segment.ended == Ended::Horizon);
        for segments in order.chunk_by(|one, next| one.job == next.job) {
            for segment in segments {
                self.check_segment(segment);
            }
            self.check_arrival(segments[0]);
            self.check_attempts(segments);
            self.check_end(segments, ends_early);
            self.check_work(segments);
            self.check_law(segments);
        }
        if !ends_early {
            self.check_all_ran();
        }
    }

    fn check_arrival(&mut self, first: &Segment) {
        let submit_s = self.job(first).submit_s;
        if us(first.from_s) < us(submit_s) {
            let what = format!("runs before it arrives at {submit_s} s");
            self.fault(Rule::Arrival, first.from_s, None, (first, None), what);
        }
    }

    fn check_segment(&mut self, segment: &'a Segment) {
        let (job, at_s) = (self.job(segment), segment.from_s);
        let num_gpus = segment.num_gpus();
        let asked = u64::from(job.num_gpus);
        let places: Vec<_> = self.places(segment).collect();
        let gang = match (segment.copies, job.gpus_max) {
            (0, None) if num_gpus != asked => Some(format!("holds {num_gpus} GPUs and asked for {asked}")),
            (0, Some(most)) if !(1..=u64::from(most)).contains(&num_gpus) => Some(format!(
                "holds {num_gpus} GPUs, and its class can use 1 to {most}"
            )),
            (0, _) => None,
            (copies, _) if places.len() as u64 != u64::from(copies) => {
                Some(format!("runs as {copies} copies on {} nodes", places.len()))
            }
            _ => {
                let most = places.iter().map(|(_, gpus)| gpus.num()).max().unwrap_or(0);
                (u64::from(most) > asked).then(|| format!("has a copy of {most} GPUs and asked for {asked}"))
            }
        };
        if let Some(what) = gang {
            self.fault(Rule::Gang, at_s, None, (segment, None), what);
        }
        self.check_tasks(segment, &places);
        let least_mib = if job.gpu_milli < 1000 {
            job.gpu_memory_mib
        } else {
            0
        };
        let memory_mib = crate::facts::demand(segment.gpu_memory_gib, 1024.0);
        if segment.gpu_milli != job.gpu_milli || memory_mib < least_mib {
            let what = format!(
                "holds {} thousandths and {memory_mib} MiB of each GPU and asked for {} and {least_mib}",
                segment.gpu_milli, job.gpu_milli
            );
            self.fault(Rule::Request, at_s, None, (segment, None), what);
        }
        self.check_set_aside(segment);
        self.check_types(segment, &places);
    }

    /// Cores and memory that were asked for. Fewer are a slower job where its class says how slow, and nothing that a real cluster's
    /// record tells.
    fn check_set_aside(&mut self, segment: &Segment) {
        let job = self.job(segment);
        let can_have_less = self.facts.classes[job.class].sensitivity.is_some();
        if can_have_less || self.conditions.is_observed {
            return;
        }
        let (cpu_milli, memory_mib) = (segment.cpu_cores * 1000.0, segment.memory_gib * 1024.0);
        let (cpu_milli, memory_mib) = (cpu_milli.round() as u64, memory_mib.round() as u64);
        if cpu_milli < job.cpu_milli || memory_mib < job.memory_mib {
            let what = format!(
                "holds {} cores and {memory_mib} MiB of host memory with each GPU and asked for {} and {}",
                cpu_milli as f64 / 1000.0,
                job.cpu_milli as f64 / 1000.0,
                job.memory_mib
            );
            self.fault(Rule::Request, segment.from_s, None, (segment, None), what);
        }
    }

    /// Counted node by node.
    fn check_tasks(&mut self, segment: &Segment, places: &[(u32, pleach_tables::schedule::Gpus)]) {
        let (job, at_s) = (self.job(segment), segment.from_s);
        let (each, most) = (job.gpus_per_task, job.tasks_per_node_max);
        let mut on_nodes: BTreeMap<u32, u32> = BTreeMap::new();
        for (node, gpus) in places {
            *on_nodes.entry(*node).or_default() += gpus.num();
        }
        for (node, num_gpus) in &on_nodes {
            let what = if num_gpus % each != 0 {
                format!("holds {num_gpus} GPUs of it, and its tasks have {each} GPUs each")
            } else if most > 0 && num_gpus / each > most {
                format!("has {} tasks on it, and may have {most}", num_gpus / each)
            } else {
                continue;
            };
            self.fault(Rule::Tasks, at_s, Some(*node), (segment, None), what);
        }
        if job.nodes_max > 0 && on_nodes.len() > job.nodes_max as usize {
            let what = format!("is on {} nodes, and may be on {}", on_nodes.len(), job.nodes_max);
            self.fault(Rule::Tasks, at_s, None, (segment, None), what);
        }
    }

    fn check_types(&mut self, segment: &Segment, places: &[(u32, pleach_tables::schedule::Gpus)]) {
        let (facts, job, at_s) = (self.facts, self.job(segment), segment.from_s);
        let type_of = |node: u32| facts.nodes[node as usize].gpu_type;
        let name = |kind: usize| facts.gpu_types[kind].0.as_str();
        if let Some((node, _)) = places.iter().find(|(node, _)| !job.types[type_of(*node)]) {
            let what = format!("cannot run on {}", name(type_of(*node)));
            self.fault(Rule::Type, at_s, Some(*node), (segment, None), what);
        }
        let first = type_of(places[0].0);
        if !self.conditions.mixed_types
            && segment.copies == 0
            && let Some((node, _)) = places.iter().find(|(node, _)| type_of(*node) != first)
        {
            let what = format!(
                "runs on {} and {}, which may not be mixed",
                name(first),
                name(type_of(*node))
            );
            self.fault(Rule::Type, at_s, Some(*node), (segment, None), what);
        }
        let too_small = |(node, _): &&(u32, _)| facts.gpu_types[type_of(*node)].1 < job.gpu_memory_mib;
        if let Some((node, _)) = places.iter().find(too_small) {
            let (kind, has_mib) = &facts.gpu_types[type_of(*node)];
            let what = format!(
                "needs {} MiB of GPU memory, and {kind} has {has_mib}",
                job.gpu_memory_mib
            );
            self.fault(Rule::GpuMemory, at_s, Some(*node), (segment, None), what);
        }
    }

    fn check_attempts(&mut self, segments: &[&'a Segment]) {
        if segments[0].attempt != 1 {
            let what = format!("begins with attempt {}", segments[0].attempt);
            self.fault(Rule::Attempt, segments[0].from_s, None, (segments[0], None), what);
        }
        for pair in segments.windows(2) {
            let (one, next) = (pair[0], pair[1]);
            let (end, begin) = (us(one.to_s), us(next.from_s));
            let goes_on = one.attempt == next.attempt;
            let is_alike = one.slices == next.slices
                && one.copies == next.copies
                && (one.gpu_milli, one.gpu_memory_gib) == (next.gpu_milli, next.gpu_memory_gib)
                && (one.cpu_cores, one.memory_gib) == (next.cpu_cores, next.memory_gib);
            let wrong = if begin < end {
                Some("runs twice at once")
            } else if goes_on && (one.ended != Ended::Continued || begin != end) {
                Some("goes on with an attempt that had ended")
            } else if goes_on && !is_alike {
                Some("changes what it holds within an attempt")
            } else if !goes_on && one.ended == Ended::Continued {
                Some("has an attempt that goes on and does not")
            } else if !goes_on && one.attempt.checked_add(1) != Some(next.attempt) {
                Some("counts its attempts out of order")
            } else if one.ended.is_final() || one.ended == Ended::Horizon {
                Some("runs again after it had left, or the record had ended")
            } else if matches!(one.ended, Ended::Resized | Ended::Moved) && begin != end {
                Some("was to go on at once and did not")
            } else {
                None
            };
            if let Some(what) = wrong {
                self.fault(Rule::Attempt, next.from_s, None, (next, Some(one)), what.into());
            }
        }
        let is_stop = |ended| matches!(ended, Ended::Preempted | Ended::Resized | Ended::Moved);
        if let Some(stopped) = segments.iter().find(|segment| is_stop(segment.ended))
            && !self.conditions.stopping
        {
            let what = "is stopped by the scheduler, which may not stop jobs".into();
            self.fault(Rule::Stopping, stopped.to_s, None, (stopped, None), what);
        }
    }

    fn check_end(&mut self, segments: &[&Segment], ends_early: bool) {
        let last = segments[segments.len() - 1];
        let what = match last.ended {
            Ended::Continued => "goes on, and nothing follows",
            Ended::Resized | Ended::Moved => "was to go on at once, and nothing follows",
            Ended::Horizon => return,
            ended if ended.is_final() || ends_early => return,
            _ => "was stopped and never ran again",
        };
        self.fault(Rule::Completion, last.to_s, None, (last, None), what.into());
    }

    fn check_work(&mut self, segments: &[&Segment]) {
        let (last, work_s) = (segments[segments.len() - 1], self.job(segments[0]).work_s);
        let (mut ran_s, mut lost_s, mut slack_s) = (0.0, 0.0, 0.0);
        for segment in segments {
            ran_s += segment.rate * (segment.to_s - segment.from_s);
            slack_s += segment.rate * TIME_TOLERANCE_S;
            lost_s += segment.lost_s;
        }
        slack_s += WORK_TOLERANCE * (ran_s + lost_s + work_s);
        let done_s = ran_s - lost_s;
        let is_completed = last.ended == Ended::Completed;
        if done_s > work_s + slack_s || (is_completed && done_s < work_s - slack_s) {
            let what = format!("did {done_s} s of work, of {work_s} s that it has");
            self.fault(Rule::Work, last.to_s, None, (last, None), what);
        }
    }

    fn check_all_ran(&mut self) {
        let ran = self.run.segments.iter();
        let ran: BTreeSet<&String> = ran.map(|segment| &self.run.jobs[segment.job as usize]).collect();
        let absent = self.facts.jobs.iter().filter(|(name, _)| !ran.contains(name));
        for (name, job) in absent {
            self.verdict.num_faults += 1;
            if self.verdict.faults.len() < super::FAULTS_MAX {
                self.verdict.faults.push(Fault {
                    rule: Rule::Completion,
                    at_s: job.submit_s,
                    node: None,
                    job: Party {
                        job: name.clone(),
                        attempt: 0,
                        from_s: job.submit_s,
                        to_s: job.submit_s,
                    },
                    other: None,
                    what: "never ran".into(),
                });
            }
        }
    }
}
