//! What only the simulation knows of a job: how much work is left, at what pace it goes, and how it will end.

use pleach_scheduler::Time;
use pleach_scheduler::cluster::Submission;

use crate::failures::{End, Fate};
use crate::metrics::SLOWDOWN_BOUND_S;
use pleach_tables::schedule::Ended;
use pleach_workloads::Outcome;

/// The end of a run that is not seen yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unseen {
    /// When it ended.
    pub(super) at: Time,
    /// Whether a trial failed.
    pub(super) fails: bool,
    /// Whether the job has left.
    pub(super) leaves: bool,
}

/// Hidden truth of one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truth {
    pub(super) submit: Time,
    pub(super) submission: Submission,
    /// Work that was left at `since`, in seconds of the reference run.
    pub(super) rest_s: f64,
    /// All its work, in seconds of the reference run.
    pub(super) work_s: f64,
    /// Since when the rate has been what it is.
    pub(super) since: Time,
    /// True progress per second; zero while the job does not run.
    pub(super) rate: f64,
    /// True progress over believed progress of the present run, above 0.
    pub(super) pace: f64,
    /// By how much the believed speed was too high when the run began.
    pub(super) factor_then: f64,
    /// Start-up cost of the present run that was unpaid at `since`, s.
    pub(super) cost_left_s: f64,
    /// Work that its last preemption wrote down, in seconds of the reference run.
    pub(super) saved_s: f64,
    /// What its last stop took longer because others wrote too, s; the next start pays for it.
    pub(super) save_waits_s: f64,
    /// Part of the time of its present run in which it writes checkpoints, millionths.
    pub(super) writes: u64,
    /// Work that was done and lost again, in seconds of the reference run.
    pub(super) lost_s: f64,
    /// What becomes of it whatever the schedule; none: it does all its work.
    pub(super) fate: Option<Fate>,
    /// Trials that have failed.
    pub(super) num_failed_trials: u32,
    /// Running time until the present trial fails, s; infinite where it will not.
    pub(super) to_failure_s: f64,
    /// Running time until the present run meets an incident, s; infinite where it will not.
    pub(super) to_incident_s: f64,
    /// Whether that is a hang (some), and it hangs now.
    pub(super) hangs: Option<bool>,
    /// How it ended in the source.
    pub(super) outcome: Outcome,
    /// Run time alone at the best speed of its class, s.
    pub(super) isolated_s: f64,
    /// When it first began, where that is not when it was first started.
    pub(super) first_begin: Option<Time>,
    /// The end of its present run, of which the scheduler does not know yet.
    pub(super) unseen: Option<Unseen>,
    /// Counts runs, so that the finish event of an ended run is recognised as stale.
    pub(super) run: u32,
}

impl Truth {
    /// A job that has not come yet, with so much work in seconds of the reference run, which takes `isolated_s` alone at its best.
    pub(super) fn of(submit: Time, submission: Submission, work_s: f64, isolated_s: f64) -> Truth {
        Truth {
            submit,
            submission,
            rest_s: work_s,
            work_s,
            since: Time::ZERO,
            rate: 0.0,
            pace: 1.0,
            factor_then: 1.0,
            cost_left_s: 0.0,
            saved_s: 0.0,
            save_waits_s: 0.0,
            writes: 0,
            lost_s: 0.0,
            fate: None,
            num_failed_trials: 0,
            to_failure_s: f64::INFINITY,
            to_incident_s: f64::INFINITY,
            hangs: None,
            outcome: Outcome::Completed,
            isolated_s,
            first_begin: None,
            unseen: None,
            run: 0,
        }
    }

    /// Work that is left, in seconds of the reference run.
    pub(super) fn rest_s_at(&self, now: Time) -> f64 {
        let ran_s = (now.since(self.since).as_secs_f64() - self.cost_left_s).max(0.0);
        if self.rate > 0.0 {
            (self.rest_s - ran_s * self.rate).max(0.0)
        } else {
            self.rest_s
        }
    }

    /// What a second in the system adds to the job's slowdown.
    pub(super) fn weight(&self) -> f64 {
        1.0 / self.isolated_s.max(SLOWDOWN_BOUND_S)
    }

    /// Work that is done, in seconds of the reference run.
    pub(super) fn done_s(&self) -> f64 {
        self.work_s - self.rest_s
    }

    /// A stop or a failure leaves so much of its work, in seconds of the reference run.
    pub(super) fn lose(&mut self, kept_s: f64) {
        self.lost_s += self.done_s() - kept_s;
        self.rest_s = self.work_s - kept_s;
    }

    /// Books what was paid and done at the present rate.
    pub(super) fn book(&mut self, now: Time) {
        let elapsed_s = (now - self.since).as_secs_f64();
        let ran_s = (elapsed_s - self.cost_left_s).max(0.0);
        self.rest_s = (self.rest_s - ran_s * self.rate).max(0.0);
        self.cost_left_s = (self.cost_left_s - elapsed_s).max(0.0);
        self.to_failure_s = (self.to_failure_s - elapsed_s).max(0.0);
        self.to_incident_s = (self.to_incident_s - elapsed_s).max(0.0);
        self.since = now;
    }

    /// How long the rest takes at the present rate, or until the trial fails if that comes first.
    pub(super) fn span(&self) -> Time {
        let end_s = self.rest_span_s().min(self.to_failure_s);
        Time::from_secs_f64(end_s.min(self.to_incident_s))
    }

    /// Whether the present run ends with an incident.
    pub(super) fn ends_in_incident(&self) -> bool {
        self.to_incident_s < self.rest_span_s().min(self.to_failure_s)
    }

    pub(super) fn rest_span_s(&self) -> f64 {
        self.cost_left_s + self.rest_s / self.rate
    }

    /// Whether the present run ends with a failed trial. A trial that is to fail fails even where the work is done first.
    pub(super) fn ends_in_failure(&self) -> bool {
        self.to_failure_s <= self.rest_span_s() || self.trial_is_to_fail()
    }

    pub(super) fn trial_is_to_fail(&self) -> bool {
        self.fate
            .is_some_and(|fate| self.num_failed_trials < fate.num_failed_trials)
    }

    /// Whether the job is given up after the trial that fails now.
    pub(super) fn is_given_up(&self) -> bool {
        self.fate.is_some_and(|fate| {
            fate.end == End::Unsuccessful && self.num_failed_trials >= fate.num_failed_trials
        })
    }

    /// Whether the job would be given up if the present trial failed now.
    pub(super) fn is_given_up_next(&self) -> bool {
        self.fate.is_some_and(|fate| {
            fate.end == End::Unsuccessful && self.num_failed_trials + 1 >= fate.num_failed_trials
        })
    }

    /// How the record of the schedule calls its end.
    pub(super) fn ended(&self) -> Ended {
        match self.fate.map(|fate| fate.end) {
            None | Some(End::Passed) => Ended::Completed,
            Some(End::Killed(_)) => Ended::Killed,
            Some(End::Failed(_) | End::Unsuccessful) => Ended::Failed,
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        match self.fate.map(|fate| fate.end) {
            None => self.outcome,
            Some(End::Passed) => Outcome::Completed,
            Some(End::Killed(_)) => Outcome::Killed,
            Some(End::Failed(_) | End::Unsuccessful) => Outcome::Failed,
        }
    }
}
