//! What an autoscaler may know, and what it is.

use pleach_scheduler::Problem;
use pleach_scheduler::portable_math::pow;

use crate::llm::request::Request;
use crate::llm::service::Load;

/// A day, s.
const DAY_S: f64 = 86_400.0;

/// What an autoscaler may know.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// Now, s.
    pub now_s: f64,
    /// Requests and replicas.
    pub load: Load,
    /// Most replicas that may be.
    pub most: usize,
    /// GPUs of a replica.
    pub replica_gpus: usize,
    /// Replicas that a node has room for.
    pub node_replicas: usize,
    /// Usual rates of equal parts of a day, 1/s, from midnight on; empty: nothing is known of other days.
    pub usual_per_s: &'a [f64],
    /// Training on the other GPUs.
    pub beside: Beside<'a>,
    /// Requests that are still to come. For bounds alone.
    pub to_come: &'a [Request],
}

/// Training beside a service.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beside<'a> {
    /// GPUs that jobs hold.
    pub training_gpus: usize,
    /// Free GPUs.
    pub idle_gpus: usize,
    /// GPUs of the smallest job that waits; 0: none waits.
    pub waiting_gpus: usize,
    /// The first jobs that would yield, in their order.
    pub yields: &'a [Yield],
}

/// A job that would yield.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yield {
    /// GPUs that it holds.
    pub gpus: usize,
    /// Work that its stop loses, and its restart, GPU·s.
    pub loss_gpu_s: f64,
}

impl Demand<'_> {
    /// Replicas that take requests or will.
    #[must_use]
    pub fn up(&self) -> usize {
        self.load.open + self.load.loading
    }

    /// Replicas at the very beginning: a third, which is loaded before.
    #[must_use]
    pub fn at_first(&self) -> usize {
        self.most.div_ceil(3)
    }

    /// The usual rate of a time, 1/s, linear between the middles of the parts of the day. None where nothing is known, or where
    /// usually no request comes.
    pub(super) fn usual_per_s_at(&self, at_s: f64) -> Option<f64> {
        let num = self.usual_per_s.len();
        if num == 0 {
            return None;
        }
        let place = (at_s / DAY_S * num as f64 - 0.5).rem_euclid(num as f64);
        let (first, part) = (place as usize % num, place - place.floor());
        let (one, next) = (self.usual_per_s[first], self.usual_per_s[(first + 1) % num]);
        Some(one + part * (next - one)).filter(|rate| *rate > 0.0)
    }

    /// A rate some time on, of whose ratio to what is usual a power is left: 1: the ratio stays, 0: it is forgotten. Without
    /// anything usual the rate.
    pub(super) fn forecast_per_s(&self, rate: f64, ahead_s: f64, keep: f64) -> f64 {
        let usual = self
            .usual_per_s_at(self.now_s)
            .zip(self.usual_per_s_at(self.now_s + ahead_s));
        usual.map_or(rate, |(now, then)| then * pow(rate / now, keep))
    }

    /// Requests that come within a span, over it. For bounds alone.
    pub(super) fn coming_per_s(&self, span_s: f64) -> f64 {
        let end_s = self.now_s + span_s;
        self.to_come.partition_point(|request| request.arrival_s < end_s) as f64 / span_s
    }
}

/// Says how many replicas there should be.
pub trait Autoscaler: Send {
    /// Time between two questions, s; none: it is asked once, at the beginning.
    fn period_s(&self) -> Option<f64>;

    /// The number, which may be above the most that may be.
    ///
    /// # Errors
    /// A policy that cannot decide.
    fn want(&mut self, demand: &Demand<'_>) -> Result<usize, Problem>;
}
