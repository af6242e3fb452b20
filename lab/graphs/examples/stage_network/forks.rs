//! Exact credit: at some decisions a copy of the play takes another row, and both go on for a bounded time.

use std::collections::VecDeque;
use std::sync::Arc;

use pleach_graphs::engine::{Engine, JobId, StageId};
use pleach_graphs::graph::Stage;
use pleach_graphs::list::List;
use pleach_graphs::network::{Deciding, Look, Network, best};
use pleach_graphs::rules::Rule as _;
use pleach_scheduler::portable_math::exp;

use crate::draws::Draws;

/// The other row is drawn from the softmax of the scores over this, the row that is taken left out.
const TEMPERATURE: f32 = 2.0;
/// Largest cost that counts, over the mean absolute one.
const COST_MAX: f32 = 3.0;

/// A decision that was taken otherwise.
pub struct Fork {
    /// Its own row and the other one.
    look: Look,
    /// What the other one cost more, job s.
    cost: f32,
}

/// Work left of a job by the mean durations of its stages, of running tasks a half: the last durations, which policies see, swing.
fn work_ms(engine: &Engine, job: JobId) -> u64 {
    let of = |(stage, own): (StageId, &Stage)| {
        let halves = 2 * engine.tasks_left(stage) + engine.tasks_running(stage);
        u64::from(halves) * u64::from(own.mean_ms) / 2
    };
    engine
        .stages_of(job)
        .zip(engine.graph(job).stages())
        .map(of)
        .sum()
}

/// Time in the system that is spent and to be spent after a play of `until`: by the jobs of before, with what is left of them one
/// after the other, the least work first.
fn committed_s(engine: &Engine, until_ms: u64) -> f64 {
    let mut sum_ms = engine.job_ms() as f64;
    let mut works_ms = Vec::new();
    for &job in engine.active() {
        match engine.arrival_ms(job) {
            at_ms if at_ms > until_ms => sum_ms -= (engine.now_ms() - at_ms) as f64,
            _ => works_ms.push(work_ms(engine, job)),
        }
    }
    works_ms.sort_unstable();
    let mut end_ms = 0.0;
    for work_ms in works_ms {
        end_ms += work_ms as f64 / f64::from(engine.list().machine().executors);
        sum_ms += end_ms;
    }
    1e-3 * sum_ms
}

/// Plays a list with the best rows, and forks one decision of `every`.
pub fn forks_of(
    deciding: &mut Deciding,
    list: &Arc<List>,
    every: f64,
    horizon_ms: u64,
    draws: &mut Draws,
) -> Vec<Fork> {
    let mut engine = Engine::new(Arc::clone(list));
    let mut forks: Vec<Fork> = Vec::new();
    let mut dues: VecDeque<(u64, usize)> = VecDeque::new();
    while !engine.is_over() {
        while let Some((until_ms, fork)) = dues.pop_front_if(|due| due.0 <= engine.now_ms()) {
            forks[fork].cost -= committed_s(&engine, until_ms) as f32;
        }
        let choices = deciding.see(&engine).to_vec();
        let own = best(&deciding.pass.scores);
        if choices.len() > 1 && draws.even() * every < 1.0 {
            let other = draws.of_softmax(&deciding.pass.scores, TEMPERATURE, Some(own));
            let until_ms = engine.now_ms() + horizon_ms;
            let look = deciding.look.only(&[own, other]);
            let mut copy = engine.clone();
            copy.decide(choices[other]);
            while !copy.is_over() && copy.now_ms() < until_ms {
                let choice = deciding.choose(&copy);
                copy.decide(choice);
            }
            dues.push_back((until_ms, forks.len()));
            let cost = committed_s(&copy, until_ms) as f32;
            forks.push(Fork { look, cost });
        }
        engine.decide(choices[own]);
    }
    for (until_ms, fork) in dues {
        forks[fork].cost -= committed_s(&engine, until_ms) as f32;
    }
    forks
}

/// Mean absolute cost.
pub fn scale(forks: &[Fork]) -> f32 {
    forks.iter().map(|fork| fork.cost.abs()).sum::<f32>() / forks.len().max(1) as f32
}

/// The gradient of the mean loss of forks: `clamp(cost / scale, -3, 3) sigmoid(z_other - z_own)`.
pub fn gradient(network: &Network, forks: &[&Fork], scale: f32) -> Vec<f32> {
    let looks: Vec<&Look> = forks.iter().map(|fork| &fork.look).collect();
    let share = 1.0 / forks.len() as f32;
    network.gradient(&looks, |scores| {
        let slope = |(fork, scores): (&&Fork, &[f32])| {
            let chance = 1.0 / (1.0 + exp(f64::from(scores[0] - scores[1])) as f32);
            let slope = share * (fork.cost / scale).clamp(-COST_MAX, COST_MAX) * chance * (1.0 - chance);
            [-slope, slope]
        };
        forks.iter().zip(scores.chunks(2)).flat_map(slope).collect()
    })
}
