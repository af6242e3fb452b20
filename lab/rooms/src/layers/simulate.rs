//! A list of requests played on accelerators that change between requests at the ends of layers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pleach_scheduler::Problem;

use crate::layers::outcome::{Outcome, Served};
use crate::layers::policy::{Queue, Scheduler, Waiting};
use crate::layers::request::Requests;
use pleach_serving::settings::within;

/// Most accelerators.
const ACCELERATORS_MAX: usize = 10_000;

/// A run under way. Memory beyond the list and what became of it is what waits or runs.
struct Run<'a> {
    requests: &'a Requests,
    waiting: Vec<Waiting>,
    /// What each accelerator runs.
    running: Vec<Option<Waiting>>,
    /// Request that each ran last.
    last: Vec<Option<usize>>,
    /// Ends of layers: (time, number of the start, accelerator).
    ends: BinaryHeap<Reverse<(u64, u64, usize)>>,
    num_starts: u64,
    finish_us: Vec<Option<u64>>,
    busy_us: u64,
    num_preemptions: u64,
}

/// Plays a list on equal accelerators, each with one request at a time. All that happens at one instant happens before the
/// scheduler decides. Deterministic in the list and the scheduler.
///
/// # Errors
/// A number of accelerators out of range; a scheduler that fails or chooses no waiting request.
pub fn simulate(
    requests: &Requests,
    num_accelerators: usize,
    scheduler: &mut dyn Scheduler,
) -> Result<Outcome, Problem> {
    within("num_accelerators", num_accelerators, 1, ACCELERATORS_MAX)?;
    let rows = requests.rows();
    let mut run = Run {
        requests,
        waiting: Vec::new(),
        running: vec![None; num_accelerators],
        last: vec![None; num_accelerators],
        ends: BinaryHeap::new(),
        num_starts: 0,
        finish_us: vec![None; rows.len()],
        busy_us: 0,
        num_preemptions: 0,
    };
    let mut next = 0;
    loop {
        let end_us = run.ends.peek().map(|Reverse((at_us, ..))| *at_us);
        let arrival_us = rows.get(next).map(|row| row.arrival_us);
        let Some(now_us) = end_us.into_iter().chain(arrival_us).min() else {
            break;
        };
        while let Some(Reverse((at_us, _, accelerator))) = run.ends.peek().copied()
            && at_us == now_us
        {
            run.ends.pop();
            run.end(now_us, accelerator);
        }
        while rows.get(next).is_some_and(|row| row.arrival_us == now_us) {
            run.arrive(next);
            next += 1;
        }
        run.decide(now_us, scheduler)?;
    }
    Ok(run.outcome())
}

impl Run<'_> {
    fn arrive(&mut self, id: usize) {
        let row = &self.requests.rows()[id];
        let model = &self.requests.profiles().models[row.model];
        let isolated_us = row.isolated_us();
        self.waiting.push(Waiting {
            id,
            model: row.model,
            priority: row.priority,
            arrival_us: row.arrival_us,
            deadline_us: row.deadline_us,
            last_ran_us: row.arrival_us,
            ratios: Vec::new(),
            gamma: 1.0,
            model_rest_us: model.mean_rest_us(0),
            pattern_rest_us: model.rest_us(row.pattern, 0),
            model_isolated_us: model.mean_rest_us(0),
            pattern_isolated_us: model.rest_us(row.pattern, 0),
            next_us: model.layer_us(row.pattern, 0),
            memory: f64::NAN,
            true_rest_us: isolated_us,
            true_isolated_us: isolated_us,
        });
    }

    /// A layer ends: what it took is known, and the request waits for its next one or leaves.
    fn end(&mut self, now_us: u64, accelerator: usize) {
        let Some(mut waiting) = self.running[accelerator].take() else {
            unreachable!("an end without a start");
        };
        let row = &self.requests.rows()[waiting.id];
        let model = &self.requests.profiles().models[row.model];
        let layer = waiting.ratios.len();
        let latency_us = row.latencies_us[layer];
        let num_ran = layer + 1;
        let ratio = f64::from(latency_us) / model.layer_us(row.pattern, layer);
        let sum = if layer == 0 {
            ratio
        } else {
            waiting.gamma * layer as f64 + ratio
        };
        waiting.gamma = sum / num_ran as f64;
        waiting.ratios.push(ratio as f32);
        waiting.last_ran_us = now_us;
        waiting.true_rest_us -= u64::from(latency_us);
        if num_ran == model.num_layers() {
            let old = self.finish_us[waiting.id].replace(now_us);
            assert!(old.is_none(), "request {} was served twice", waiting.id);
            return;
        }
        waiting.model_rest_us = model.mean_rest_us(num_ran);
        waiting.pattern_rest_us = model.rest_us(row.pattern, num_ran);
        waiting.next_us = model.layer_us(row.pattern, num_ran);
        let place = self.waiting.partition_point(|other| other.id < waiting.id);
        self.waiting.insert(place, waiting);
    }

    /// Free accelerators take requests, the lowest number first.
    fn decide(&mut self, now_us: u64, scheduler: &mut dyn Scheduler) -> Result<(), Problem> {
        for accelerator in 0..self.running.len() {
            if self.waiting.is_empty() {
                return Ok(());
            }
            if self.running[accelerator].is_some() {
                continue;
            }
            let num_running = self.running.iter().flatten().count();
            let num_requests = self.waiting.len() + num_running;
            let mut queue = Queue {
                now_us,
                waiting: &mut self.waiting,
                num_requests,
            };
            let chosen = scheduler.choose(&mut queue)?;
            if chosen >= self.waiting.len() {
                let allowed = format!("a place below {}", self.waiting.len());
                return Err(Problem::new(
                    "scheduler",
                    chosen,
                    allowed,
                    "Choose a request that waits.",
                ));
            }
            let waiting = self.waiting.remove(chosen);
            if let Some(left) = self.last[accelerator]
                && left != waiting.id
                && self.finish_us[left].is_none()
            {
                self.num_preemptions += 1;
            }
            self.last[accelerator] = Some(waiting.id);
            let row = &self.requests.rows()[waiting.id];
            let latency_us = u64::from(row.latencies_us[waiting.ratios.len()]);
            self.busy_us += latency_us;
            self.ends
                .push(Reverse((now_us + latency_us, self.num_starts, accelerator)));
            self.num_starts += 1;
            self.running[accelerator] = Some(waiting);
        }
        Ok(())
    }

    fn outcome(self) -> Outcome {
        let served = self
            .requests
            .rows()
            .iter()
            .zip(&self.finish_us)
            .map(|(row, finish_us)| Served {
                arrival_us: row.arrival_us,
                deadline_us: row.deadline_us,
                isolated_us: row.isolated_us(),
                finish_us: finish_us.unwrap_or_else(|| unreachable!("a request was lost")),
            });
        Outcome {
            requests: served.collect(),
            busy_us: self.busy_us,
            num_preemptions: self.num_preemptions,
        }
    }
}
