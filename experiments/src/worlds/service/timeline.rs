//! A day that was played: its figures, and how it went.

use pleach_env::mixed::{Grant, MixedResult};
use pleach_scheduler::Time;
use pleach_serving::llm::{Requests, Targets};
use serde::Serialize;

use crate::plot::{Axis, Mark, Plot};

/// Parts of the time played whose misses are counted together, s.
const PART_S: f64 = 900.0;

/// What a day came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MixedDay {
    /// Requests.
    pub num_requests: f64,
    /// Share of requests within both targets, %.
    pub hits_pct: f64,
    /// Work of jobs that was done and kept, GPU·h.
    pub training_gpu_h: f64,
    /// Held by jobs, GPU·h.
    pub held_gpu_h: f64,
    /// Held by replicas, GPU·h.
    pub serving_gpu_h: f64,
    /// Held by neither, GPU·h.
    pub idle_gpu_h: f64,
    /// Held by jobs for starts and for work that was lost again, GPU·h.
    pub lost_gpu_h: f64,
    /// GPUs that were leased, one after another.
    pub moves: f64,
    /// Jobs that were stopped for them.
    pub preemptions: f64,
    /// Requests that went back to the gateway.
    pub returned: f64,
}

/// A day's figures, and how it went.
pub type Played = (MixedDay, Timeline);

/// Numbers of GPUs over a day.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Time played, s.
    pub(super) span_s: f64,
    /// GPUs of the cluster.
    pub(super) num_gpus: f64,
    /// From when on (s) how many replicas take requests, are being loaded, and take no more; by time.
    pub(super) replicas: Vec<(f64, [f64; 3])>,
    /// From when on (s) how many GPUs train.
    pub(super) training: Vec<(f64, f64)>,
    /// Share of requests outside of a target of each quarter of an hour by arrival, %.
    pub(super) missed_pct: Vec<f64>,
}

impl Timeline {
    /// Of a day played on so many GPUs.
    pub(super) fn of(result: &MixedResult, requests: &Requests, targets: Targets, num_gpus: u32) -> Timeline {
        let service = &result.services[0];
        let num = (result.span_s / PART_S).ceil().max(1.0) as usize;
        let mut counts = vec![[0.0; 2]; num];
        for (request, served) in requests.rows().iter().zip(&service.outcome.requests) {
            let count = &mut counts[((request.arrival_s / PART_S) as usize).min(num - 1)];
            count[0] += 1.0;
            count[1] += f64::from(u8::from(!served.is_some_and(|served| served.is_hit(targets))));
        }
        let training = result.training_gpus.iter();
        Timeline {
            span_s: result.span_s,
            num_gpus: f64::from(num_gpus),
            replicas: replicas(&service.grants),
            training: training
                .map(|(time, gpus)| (time.as_secs_f64(), f64::from(*gpus)))
                .collect(),
            missed_pct: counts
                .iter()
                .map(|[all, missed]| 100.0 * missed / f64::max(*all, 1.0))
                .collect(),
        }
    }
}

impl Timeline {
    /// Replicas, training beside them and misses over the day.
    pub(super) fn plots(&self, name: &str) -> [Plot; 2] {
        let line = |words: &str, points: &[(f64, f64)]| Mark::line(words, self.stairs(points));
        let parts = self.missed_pct.iter().enumerate();
        let mut missed: Vec<(f64, f64)> = parts
            .map(|(part, missed)| (PART_S * part as f64, *missed))
            .collect();
        missed.push((self.span_s, 0.0));
        let of = |words: &str, y: Axis, marks: Vec<Mark>| {
            let x = Axis::time("time of the day", self.span_s);
            Plot::new(format!("{name}: {words}"), x, y).with(marks)
        };
        [
            of(
                "replicas and GPUs that train over the day",
                Axis::linear("GPUs", 0.0, self.num_gpus),
                vec![
                    line("replicas that take requests", &self.of_state(0)),
                    line("replicas being loaded", &self.of_state(1)),
                    line("replicas that take no more", &self.of_state(2)),
                    line("GPUs that train", &self.training),
                ],
            ),
            of(
                "share of requests outside of a target, by quarter of an hour",
                Axis::of("requests outside of a target (%)"),
                vec![Mark::steps("requests outside of a target, %", missed)],
            ),
        ]
    }

    fn of_state(&self, state: usize) -> Vec<(f64, f64)> {
        self.replicas
            .iter()
            .map(|(at_s, num)| (*at_s, num[state]))
            .collect()
    }

    /// Points of a line that holds each value until the next, to the end.
    fn stairs(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let mut found: Vec<(f64, f64)> = Vec::new();
        for &(at_s, value) in points {
            match found.last().copied() {
                Some((_, before)) if before == value => {}
                Some((_, before)) => found.extend([(at_s, before), (at_s, value)]),
                None => found.push((at_s, value)),
            }
        }
        found.extend(found.last().copied().map(|(_, value)| (self.span_s, value)));
        found
    }
}

/// Replicas open, being loaded and leaving, at each change.
fn replicas(grants: &[Grant]) -> Vec<(f64, [f64; 3])> {
    let mut changes: Vec<(Time, [f64; 3])> = Vec::new();
    for grant in grants {
        changes.push((grant.granted, [0.0, 1.0, 0.0]));
        let until = grant.reclaimed.unwrap_or(Time::MAX);
        if grant.ready <= until {
            changes.push((grant.ready, [1.0, -1.0, 0.0]));
        }
        if let Some(reclaimed) = grant.reclaimed {
            let was_open = f64::from(u8::from(grant.ready <= reclaimed));
            changes.push((reclaimed, [-was_open, was_open - 1.0, 1.0]));
            changes.extend(grant.ended.map(|ended| (ended, [0.0, 0.0, -1.0])));
        }
    }
    changes.sort_by_key(|(time, _)| *time);
    let (mut now, mut found) = ([0.0; 3], Vec::new());
    for (time, change) in changes {
        for (count, change) in now.iter_mut().zip(change) {
            *count += change;
        }
        let at_s = time.as_secs_f64();
        match found.last_mut() {
            Some((last_s, counts)) if *last_s == at_s => *counts = now,
            _ => found.push((at_s, now)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One replica is there from the beginning to the end. One is loaded from 10 to 20 s, taken back at 50 s and gone at 60 s.
    /// One is taken back while it is loaded.
    #[test]
    fn grants_are_counted_by_what_their_replicas_do() {
        let at = |s: i64| Time(s * 1_000_000);
        let grant = |granted: i64, ready: i64, reclaimed: Option<i64>, ended: Option<i64>| Grant {
            seat: 0,
            granted: at(granted),
            ready: at(ready),
            reclaimed: reclaimed.map(at),
            ended: ended.map(at),
        };
        let grants = [
            grant(0, 0, None, None),
            grant(10, 20, Some(50), Some(60)),
            grant(30, 40, Some(35), Some(35)),
        ];
        let expected = [
            (0.0, [1.0, 0.0, 0.0]),
            (10.0, [1.0, 1.0, 0.0]),
            (20.0, [2.0, 0.0, 0.0]),
            (30.0, [2.0, 1.0, 0.0]),
            (35.0, [2.0, 0.0, 0.0]),
            (50.0, [1.0, 0.0, 1.0]),
            (60.0, [1.0, 0.0, 0.0]),
        ];
        assert_eq!(replicas(&grants), expected);
    }
}
