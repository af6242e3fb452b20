//! A learner of one's own: a bandit with two arms. An arm is a distance at which a network is drawn beside the present one; both play
//! the same workloads, and the better one is kept. The arm that won most of its draws is pulled, each arm once before.

use pleach_cli::agents::learner::{Learning, Play, Plays, Stats};
use pleach_cli::agents::{Error, Trainer};
use pleach_cli::network::Inference;

/// A row in `train --learner`.
#[derive(Debug)]
pub struct Bandit;

/// How far a draw lies from the present network.
const DISTANCES: [f32; 2] = [0.01, 0.1];

impl Learning for Bandit {
    fn name(&self) -> &'static str {
        "bandit"
    }

    fn title(&self) -> &'static str {
        "a bandit"
    }

    fn doc(&self) -> &'static str {
        "keeps the better of two networks; an example"
    }

    fn plays(&self) -> Plays {
        Plays::Episodes
    }

    fn update(&self, trainer: &mut Trainer, play: Play<'_>) -> Result<Stats, Error> {
        let Play::Episodes(judge) = play else {
            unreachable!("it asked for episodes");
        };
        // Draws and wins of each arm: what a checkpoint keeps beside the parameters.
        let mut arms = match trainer.own() {
            [] => vec![0.0; 4],
            own => own.to_vec(),
        };
        let share = |arm: usize| match arms[2 * arm] {
            0.0 => f64::INFINITY,
            draws => arms[2 * arm + 1] / draws,
        };
        let arm = usize::from(share(1) > share(0));
        let seed = trainer.update_seed();
        // A number from -1 to 1 for each parameter.
        let draw = |index: usize| (seed.child("draw", index as u64).0 >> 40) as f32 / (1 << 23) as f32 - 1.0;
        let beside = trainer.parameters().iter().enumerate();
        let drawn: Vec<f32> = beside
            .map(|(index, own)| own + DISTANCES[arm] * draw(index))
            .collect();
        let networks = [trainer.inference()?, Inference::new(trainer.layout(), &drawn)?];
        let (fitness, num_frames) = judge(&networks, seed.child("arrivals", 0))?;
        let is_better = fitness[1] > fitness[0];
        arms[2 * arm] += 1.0;
        arms[2 * arm + 1] += f64::from(u8::from(is_better));
        let kept = if is_better {
            drawn
        } else {
            trainer.parameters().to_vec()
        };
        trainer.replace(kept, arms, num_frames)?;
        let best = fitness[0].max(fitness[1]);
        Ok(Stats::Own(
            trainer.num_frames(),
            vec![("losses/fitness_best".into(), best)],
        ))
    }
}
