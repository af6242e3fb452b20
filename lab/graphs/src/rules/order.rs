//! Rules that put all stages in one order and give the first one all that is free; and a random one.

use std::cmp::Reverse;

use super::rule::Rule;
use crate::engine::{Engine, StageId};

/// An order of stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The job with the least work left, then the longest path.
    LeastWork,
    /// The stage with the most work left, then the longest path.
    MostWork,
    /// The longest path.
    LongestPath,
}

impl Rule for Order {
    fn choose(&mut self, engine: &Engine) -> Option<(StageId, u32)> {
        let mut known = None;
        let mut work_ms = |stage: StageId| {
            let job = engine.job(stage);
            match known {
                Some((last, work_ms)) if last == job => work_ms,
                _ => {
                    let work_ms = engine.left(job).work_ms;
                    known = Some((job, work_ms));
                    work_ms
                }
            }
        };
        let key = |stage: &StageId| {
            let path = Reverse(engine.path_ms(*stage));
            match self {
                Order::LeastWork => (work_ms(*stage), engine.job(*stage).0, path),
                Order::MostWork => {
                    let work_ms = engine.recent_ms(*stage) * u64::from(engine.tasks_left(*stage));
                    (u64::MAX - work_ms, 0, path)
                }
                Order::LongestPath => (0, 0, path),
            }
        };
        let first = engine.offered().iter().copied().min_by_key(key)?;
        Some((first, engine.free()))
    }
}

/// Any stage with any number of executors.
pub struct Random(u64);

impl Random {
    /// Of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }
}

impl Rule for Random {
    fn choose(&mut self, engine: &Engine) -> Option<(StageId, u32)> {
        self.0 = crate::engine::mix(self.0);
        let offered = engine.offered();
        let stage = offered[(self.0 >> 32) as usize % offered.len()];
        Some((stage, 1 + (self.0 & 0xffff_ffff) as u32 % engine.free().max(1)))
    }
}
