//! What the settings make possible: rates, the costs of starts, how jobs end, and what an end loses.

use pleach_tables::schedule::{Ended, Segment};

use super::jobs::{TIME_TOLERANCE_S, WORK_TOLERANCE};
use super::{Checker, us};
use crate::{Failures, Rule};

impl<'a> Checker<'a> {
    /// Whatever a real cluster showed was possible.
    pub(super) fn check_law(&mut self, segments: &[&'a Segment]) {
        if self.conditions.is_observed {
            return;
        }
        for segment in segments {
            self.check_rate(segment);
            self.check_ended(segment);
        }
        for attempt in segments.chunk_by(|one, next| one.attempt == next.attempt) {
            self.check_start(attempt);
        }
        self.check_losses(segments);
    }

    fn check_rate(&mut self, segment: &'a Segment) {
        let job = self.job(segment);
        let places: Vec<_> = self.places(segment).collect();
        let (most, rounding) = self.law.rate_max(self.facts, job, segment, &places);
        // Where it cannot run at all the rule of types says so.
        if most > 0.0 && segment.rate > most * (1.0 + rounding) {
            let what = format!(
                "does {} s of work in a second, and can do {most} there at most",
                segment.rate
            );
            self.fault(Rule::Rate, segment.from_s, None, (segment, None), what);
        }
    }

    /// Time without progress at the begin of an attempt that goes on to make some.
    fn check_start(&mut self, attempt: &[&Segment]) {
        let Some(first) = attempt.iter().find(|segment| segment.rate > 0.0) else {
            return;
        };
        let job = self.job(first);
        let conditions = self.conditions;
        let (start_s, restart_s) = conditions
            .starts
            .least_s(self.facts, job, conditions.starts_deviation);
        let least_s = match first.attempt {
            1 => start_s,
            _ if conditions.restarts_are_work => 0.0,
            _ => restart_s,
        };
        let paid_us = us(first.from_s) - us(attempt[0].from_s);
        if paid_us < us(least_s) - 2 {
            let what = format!(
                "makes progress {} s after attempt {} began, and its start takes {least_s} s at least",
                paid_us as f64 / 1e6,
                first.attempt
            );
            self.fault(Rule::Start, first.from_s, None, (first, None), what);
        }
    }

    fn check_ended(&mut self, segment: &Segment) {
        let of = self.conditions.failures;
        let why = match segment.ended {
            Ended::Killed | Ended::Failed if !of.jobs => "no job fails or is killed under these settings",
            Ended::AttemptFailed if !of.jobs && !of.incidents => "no attempt fails under these settings",
            Ended::NodeFailed if !of.nodes => "no node fails or is taken under these settings",
            Ended::Horizon => "a simulation runs until every job has left",
            _ => return,
        };
        let what = format!("ends as {}, and {why}", segment.ended.word());
        self.fault(Rule::Ending, segment.to_s, None, (segment, None), what);
    }

    /// A failure or a stop undoes what was done, never more, and only where something is lost at all.
    fn check_losses(&mut self, segments: &[&Segment]) {
        let conditions = self.conditions;
        let Failures { lose, stops_lose, .. } = conditions.failures;
        let (mut done_s, mut slack_s) = (0.0, 0.0);
        for segment in segments {
            let did_s = segment.rate * (segment.to_s - segment.from_s);
            done_s += did_s;
            slack_s += segment.rate * TIME_TOLERANCE_S + WORK_TOLERANCE * did_s;
            if segment.lost_s == 0.0 {
                continue;
            }
            let may_lose = match segment.ended {
                Ended::AttemptFailed | Ended::NodeFailed => lose || conditions.restarts_are_work,
                Ended::Preempted | Ended::Resized | Ended::Moved => {
                    stops_lose || conditions.restarts_are_work
                }
                _ => false,
            };
            let what = if !may_lose {
                format!(
                    "loses {} s of work, and an end as {} loses none under these settings",
                    segment.lost_s,
                    segment.ended.word()
                )
            } else if segment.lost_s > done_s + slack_s && !conditions.restarts_are_work {
                format!("loses {} s of work, and had done {done_s} s", segment.lost_s)
            } else {
                done_s -= segment.lost_s;
                continue;
            };
            self.fault(Rule::Loss, segment.to_s, None, (segment, None), what);
        }
    }
}
