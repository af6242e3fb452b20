//! Rules that give each job a share of the executors: first come, fair, and fair by the work at arrival.

use pleach_scheduler::portable_math::pow;

use super::rule::{Rule, ceil_share};
use crate::engine::{Engine, JobId, StageId};
use crate::list::List;

/// Shares of jobs.
pub struct Fair {
    /// Weight of each job; none: each may have all.
    weights: Option<Vec<f64>>,
}

impl Fair {
    /// The oldest job may have all.
    #[must_use]
    pub fn first_come() -> Fair {
        Fair { weights: None }
    }

    /// Shares by a power of the work at arrival; 0: even ones.
    #[must_use]
    pub fn weighted(list: &List, power: f64) -> Fair {
        let weight = |job: usize| pow(list.graph(job).work_ms() as f64, power);
        Fair {
            weights: Some((0..list.jobs().len()).map(weight).collect()),
        }
    }
}

/// A stage of a job whose parents have ended, else the first that is offered.
fn stage_of(engine: &Engine, job: JobId) -> Option<StageId> {
    let own = || {
        engine
            .offered()
            .iter()
            .copied()
            .filter(|stage| engine.job(*stage) == job)
    };
    own()
        .find(|stage| engine.is_runnable(*stage))
        .or_else(|| own().next())
}

impl Rule for Fair {
    fn choose(&mut self, engine: &Engine) -> Option<(StageId, u32)> {
        let source = engine.source_job();
        if let Some(stage) = source.and_then(|job| stage_of(engine, job)) {
            return Some((stage, engine.free()));
        }
        let executors = engine.list().machine().executors;
        let total: f64 = match &self.weights {
            Some(weights) => engine.active().iter().map(|job| weights[job.0 as usize]).sum(),
            None => 1.0,
        };
        let mut last = None;
        for &stage in engine.offered() {
            let job = engine.job(stage);
            if last.replace(job) == Some(job) || Some(job) == source {
                continue;
            }
            let cap = match &self.weights {
                Some(weights) => ceil_share(f64::from(executors) * weights[job.0 as usize] / total),
                None => executors,
            };
            let room = cap.saturating_sub(engine.supply(job));
            if room > 0 {
                return stage_of(engine, job).map(|stage| (stage, engine.free().min(room)));
            }
        }
        None
    }
}
