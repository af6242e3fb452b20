//! An index over the offered stages: the largest weighted sum of nine numbers goes first, up to a share by the work left.

use pleach_scheduler::portable_math::{exp, ln, pow};

use super::rule::{Rule, ceil_share};
use crate::engine::{Engine, JobId, StageId};

/// Thirteen numbers: weights of nine columns, and of shares the power of the work left, the logarithm of a factor, whether a share may
/// be passed where no job has room (above 0), and the power of the active jobs.
pub type Weights = [f64; 13];

/// # Source
/// Found for this project by separable CMA in 90 CPU s on lists of TPC-H-like graphs, eight in batch and eight streams a generation.
pub const WEIGHTS: Weights = [
    3.266, -1.587, -0.053, -0.546, 1.171, 2.226, -2.483, -1.225, -0.597, 0.584, 0.749, 1.0, 0.545,
];

/// The index.
pub struct Index {
    weights: Weights,
    /// Work left of each job in the system, ms, and its weight among them; of the others what it was.
    jobs: Vec<(f64, f64)>,
}

impl Index {
    /// Of weights.
    #[must_use]
    pub fn new(weights: Weights) -> Index {
        Index {
            weights,
            jobs: Vec::new(),
        }
    }

    /// One line by hand: the own job, then the least work left, runnable stages first, at most `cap` even shares, and past them where
    /// no other job has room.
    #[must_use]
    pub fn srpt_cap(cap: f64) -> Index {
        let mut weights = [0.0; 13];
        (weights[0], weights[1], weights[5]) = (20.0, -3.0, 1.0);
        (weights[10], weights[11]) = (ln(cap), 1.0);
        Index::new(weights)
    }

    /// Looks at the jobs in the system; executors of a job whose weight is 1.
    fn shares(&mut self, engine: &Engine) -> f64 {
        let weights = &self.weights;
        self.jobs.resize(engine.list().jobs().len(), (1.0, 0.0));
        let mut total = 0.0;
        for job in engine.active() {
            let work_ms = engine.left(*job).work_ms.max(1) as f64;
            let weight = match weights[9] {
                0.0 => 1.0,
                power => pow(work_ms / 1e5, power),
            };
            self.jobs[job.0 as usize] = (work_ms, weight);
            total += weight;
        }
        let crowd = ln(engine.active().len().max(1) as f64 / 8.0);
        f64::from(engine.list().machine().executors) * exp(weights[10] + weights[12] * crowd) / total
    }

    /// The weighted sum of a stage.
    fn score(&self, engine: &Engine, stage: StageId, source: Option<JobId>) -> f64 {
        let job = engine.job(stage);
        let supply = f64::from(engine.supply(job));
        let executors = f64::from(engine.list().machine().executors);
        let work_ms = self.jobs[job.0 as usize].0;
        let age_ms = (engine.now_ms() - engine.arrival_ms(job)) as f64;
        let is = |truth: bool| f64::from(u8::from(truth));
        let log = |place: usize, value: f64| match self.weights[place] {
            0.0 => 0.0,
            _ => ln(value),
        };
        let columns = [
            is(Some(job) == source),
            log(1, work_ms / 1e5),
            log(2, f64::from(engine.tasks_left(stage)) / 50.0),
            log(3, engine.recent_ms(stage) as f64 / 500.0),
            log(4, engine.path_ms(stage) as f64 / 3e3),
            is(engine.is_runnable(stage)),
            supply / executors * 5.0,
            log(7, work_ms / 1e5 / (supply + 1.0) * 10.0),
            log(8, age_ms / 3e4 + 0.1),
        ];
        let terms = columns.iter().zip(&self.weights);
        terms.map(|(column, weight)| column * weight).sum()
    }
}

impl Rule for Index {
    fn choose(&mut self, engine: &Engine) -> Option<(StageId, u32)> {
        let (free, source) = (engine.free(), engine.source_job());
        let share = self.shares(engine);
        let (mut best, mut beyond) = ((f64::NEG_INFINITY, None), (f64::NEG_INFINITY, None));
        for &stage in engine.offered() {
            let job = engine.job(stage);
            let cap = ceil_share(self.jobs[job.0 as usize].1 * share);
            let room = match Some(job) == source {
                true => free,
                false => cap.saturating_sub(engine.supply(job)).min(free),
            };
            let score = self.score(engine, stage, source);
            let of = if room > 0 { &mut best } else { &mut beyond };
            if score > of.0 {
                *of = (score, Some((stage, if room > 0 { room } else { free })));
            }
        }
        let may_pass = self.weights[11] > 0.0 || engine.must_choose();
        best.1.or(beyond.1.filter(|_| may_pass))
    }
}
