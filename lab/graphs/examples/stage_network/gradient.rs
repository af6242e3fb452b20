//! A policy gradient whose baseline knows the list: 16 plays of one list, whose returns at equal times are averaged.

use std::sync::Arc;

use pleach_graphs::engine::Engine;
use pleach_graphs::list::List;
use pleach_graphs::network::{Deciding, Look};
use pleach_scheduler::portable_math::ln;

use crate::draws::{Draws, softmax};

/// Plays of a list.
const PLAYS: usize = 16;
/// Time after which what follows is not counted to a decision, ms. *Assumed.*
const HORIZON_MS: u64 = 200_000;

/// A decision that was drawn.
struct Drawn {
    look: Look,
    row: usize,
    at_ms: u64,
}

/// A play: sums of the time in the system up to each decision, and some of its decisions.
struct Play {
    sums: Vec<(u64, f64)>,
    drawn: Vec<Drawn>,
}

impl Play {
    /// Time in the system up to a time, job s; between two decisions as if it grew evenly.
    fn sum_s(&self, at_ms: u64) -> f64 {
        let next = self.sums.partition_point(|sum| sum.0 <= at_ms);
        match (self.sums[..next].last(), self.sums.get(next)) {
            (Some(last), Some(next)) => {
                let share = (at_ms - last.0) as f64 / (next.0 - last.0) as f64;
                last.1 + share * (next.1 - last.1)
            }
            (Some(sum), None) | (None, Some(sum)) => sum.1,
            (None, None) => 0.0,
        }
    }

    /// What is spent from a time on, job s.
    fn cost_s(&self, at_ms: u64) -> f64 {
        self.sum_s(at_ms + HORIZON_MS) - self.sum_s(at_ms)
    }
}

fn played(deciding: &mut Deciding, list: &Arc<List>, kept: f64, draws: &mut Draws) -> Play {
    let mut engine = Engine::new(Arc::clone(list));
    let mut play = Play {
        sums: Vec::new(),
        drawn: Vec::new(),
    };
    while !engine.is_over() {
        play.sums.push((engine.now_ms(), 1e-3 * engine.job_ms() as f64));
        let choices = deciding.see(&engine).to_vec();
        let row = draws.of_softmax(&deciding.pass.scores, 1.0, None);
        if choices.len() > 1 && draws.even() < kept {
            let look = deciding.look.clone();
            let at_ms = engine.now_ms();
            play.drawn.push(Drawn { look, row, at_ms });
        }
        engine.decide(choices[row]);
    }
    play.sums.push((engine.now_ms(), 1e-3 * engine.job_ms() as f64));
    play
}

/// The gradient of the mean cost of drawn decisions, of which a share is kept, with a bonus for the entropy.
pub fn of_list(
    deciding: &mut Deciding,
    list: &Arc<List>,
    kept: f64,
    entropy: f32,
    draws: &mut Draws,
) -> Vec<f32> {
    let plays: Vec<Play> = (0..PLAYS).map(|_| played(deciding, list, kept, draws)).collect();
    let mut costs = Vec::new();
    for play in &plays {
        for drawn in &play.drawn {
            let mean = plays.iter().map(|play| play.cost_s(drawn.at_ms)).sum::<f64>() / PLAYS as f64;
            costs.push((play.cost_s(drawn.at_ms) - mean) as f32);
        }
    }
    let square = costs.iter().map(|cost| cost * cost).sum::<f32>() / costs.len().max(1) as f32;
    let share = 1.0 / costs.len().max(1) as f32;
    let drawn: Vec<&Drawn> = plays.iter().flat_map(|play| &play.drawn).collect();
    let looks: Vec<&Look> = drawn.iter().map(|drawn| &drawn.look).collect();
    deciding.network.gradient(&looks, |mut scores| {
        let mut by_scores = Vec::with_capacity(scores.len());
        for (drawn, cost) in drawn.iter().zip(&costs) {
            let (own, rest) = scores.split_at(drawn.look.of_row.len());
            scores = rest;
            let chances = softmax(own, 1.0, None);
            let cost = cost / square.sqrt().max(1e-9);
            let logs = chances
                .iter()
                .map(|chance| ln(f64::from(chance.max(1e-20))) as f32);
            let spread: f32 = chances
                .iter()
                .zip(logs.clone())
                .map(|(chance, log)| -chance * log)
                .sum();
            by_scores.extend(chances.iter().zip(logs).enumerate().map(|(row, (chance, log))| {
                let is_own = if row == drawn.row { 1.0 } else { 0.0 };
                // By a score, the logarithm of the chance has the slope own - chance; the entropy has -chance (log + entropy).
                share * (cost * (is_own - chance) + entropy * chance * (log + spread))
            }));
        }
        by_scores
    })
}
