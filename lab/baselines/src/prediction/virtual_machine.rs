//! A single machine that exists only on paper and runs preemptive shortest-remaining-processing-time.
//!
//! On one machine that order minimises the total completion time (Schrage 1968). A-SRPT imagines the whole cluster as one
//! such machine and takes the order in which jobs would complete there as its guide.

use std::collections::BTreeSet;

use pleach_scheduler::{JobId, Time};

/// The machine. Time is in whole microseconds, so completions are exact; of equally short jobs the lower id runs.
#[derive(Clone, Debug, Default)]
pub struct VirtualMachine {
    now: Time,
    /// What is left of every job, shortest first.
    left: BTreeSet<(Time, JobId)>,
}

impl VirtualMachine {
    /// A job comes with its processing time, at least a microsecond.
    pub fn submit(&mut self, id: JobId, processing: Time) {
        self.left.insert((processing.max(Time(1)), id));
    }

    /// Runs until `now` and appends the jobs that have completed, with when, in order of completion.
    pub(crate) fn run_until(&mut self, now: Time, completed: &mut Vec<(Time, JobId)>) {
        while let Some((left, id)) = self.left.first().copied() {
            let end = self.now + left;
            if end > now {
                if now > self.now {
                    self.left.pop_first();
                    self.left.insert((end - now, id));
                }
                break;
            }
            self.left.pop_first();
            self.now = end;
            completed.push((end, id));
        }
        self.now = self.now.max(now);
    }

    /// When the next job completes if no job comes until then.
    #[must_use]
    pub(crate) fn next_completion(&self) -> Option<Time> {
        let (left, _) = self.left.first()?;
        Some(self.now + *left)
    }

    /// Takes a job away before it has completed; false if it is not there.
    pub fn withdraw(&mut self, id: JobId) -> bool {
        let entry = self.left.iter().find(|(_, other)| *other == id).copied();
        entry.is_some_and(|entry| self.left.remove(&entry))
    }

    /// The jobs that have not completed, shortest first.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.left.iter().map(|(_, id)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Second by second: the job with least left runs for a second. (arrival s, processing s) of each job; when each completes.
    fn slowly(jobs: &[(i64, i64)]) -> Vec<i64> {
        let mut left: Vec<i64> = jobs.iter().map(|job| job.1).collect();
        let mut ends = vec![0; jobs.len()];
        for second in 0.. {
            if left.iter().all(|left| *left == 0) {
                break;
            }
            let here = (0..jobs.len()).filter(|id| jobs[*id].0 <= second && left[*id] > 0);
            if let Some(id) = here.min_by_key(|id| (left[*id], *id)) {
                left[id] -= 1;
                if left[id] == 0 {
                    ends[id] = second + 1;
                }
            }
        }
        ends
    }

    /// Ends of the same jobs on the machine, which is looked at only when a job comes.
    fn on_the_machine(jobs: &[(i64, i64)]) -> Vec<i64> {
        let (mut machine, mut completed) = (VirtualMachine::default(), Vec::new());
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by_key(|id| jobs[*id].0);
        for id in order {
            machine.run_until(Time(jobs[id].0 * 1_000_000), &mut completed);
            machine.submit(JobId(id as u32), Time(jobs[id].1 * 1_000_000));
        }
        machine.run_until(Time::MAX, &mut completed);
        assert!(completed.is_sorted_by_key(|(end, _)| *end));
        let mut ends = vec![0; jobs.len()];
        for (end, id) in completed {
            ends[id.index()] = end.0 / 1_000_000;
        }
        ends
    }

    #[test]
    fn a_shorter_newcomer_interrupts_and_what_is_left_decides() {
        // 10 s from 0; 4 s from 3 interrupts (7 left); 3 s from 6 does not interrupt 1 s left.
        let jobs = [(0, 10), (3, 4), (6, 3)];
        assert_eq!(on_the_machine(&jobs), [17, 7, 10]);
        assert_eq!(slowly(&jobs), [17, 7, 10]);
    }

    #[test]
    fn the_next_completion_is_known_and_jobs_can_be_withdrawn() {
        let (mut machine, mut completed) = (VirtualMachine::default(), Vec::new());
        machine.submit(JobId(0), Time(10));
        machine.submit(JobId(1), Time(4));
        assert_eq!(machine.next_completion(), Some(Time(4)));
        machine.run_until(Time(3), &mut completed);
        assert_eq!((machine.next_completion(), completed.len()), (Some(Time(4)), 0));
        assert!(machine.withdraw(JobId(1)) && !machine.withdraw(JobId(1)));
        assert_eq!(machine.next_completion(), Some(Time(13)));
        machine.run_until(Time(50), &mut completed);
        assert_eq!(completed, [(Time(13), JobId(0))]);
        assert_eq!(machine.next_completion(), None);
    }

    proptest! {
        #[test]
        fn it_completes_every_job_when_a_machine_does_that_decides_every_second(
            jobs in prop::collection::vec((0_i64..40, 1_i64..20), 1..12),
        ) {
            prop_assert_eq!(on_the_machine(&jobs), slowly(&jobs));
        }
    }
}
