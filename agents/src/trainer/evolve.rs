//! One generation of evolution strategies.

use pleach_env::Seed;
use pleach_network::Inference;

use super::state::Trainer;
use crate::error::Error;
use crate::evolution::{self, GenerationStats};

impl Trainer {
    /// The networks of the next generation and the seed of the workloads that all of them play. Both follow from the checkpoint.
    ///
    /// # Errors
    /// As [`Inference::new`].
    pub fn population(&self) -> Result<(Vec<Inference>, Seed), Error> {
        let seed = self.seed.child("update", self.update);
        let scales = evolution::scales(&self.layout);
        let members = evolution::population(&self.parameters, &scales, &self.config.evolution, seed);
        let networks = members
            .iter()
            .map(|parameters| Ok(Inference::new(&self.layout, parameters)?));
        Ok((networks.collect::<Result<_, Error>>()?, seed.child("arrivals", 0)))
    }

    /// One generation of evolution strategies: `fitness` gets the networks of the population, makes of them what plays, and the
    /// seed of the workloads that all of them play; it returns one fitness each, larger being better, with what counts as frames.
    ///
    /// # Errors
    /// What `fitness` returns, [`Error::Problem`] for another number of figures than networks, [`Error::NotFinite`] for a
    /// fitness that is not finite. The parameters and Adam are then those before.
    pub fn evolve<E: From<Error>>(
        &mut self,
        fitness: impl FnOnce(&[Inference], Seed) -> Result<(Vec<f64>, u64), E>,
    ) -> Result<GenerationStats, E> {
        let seed = self.seed.child("update", self.update);
        let config = self.config.evolution;
        let scales = evolution::scales(&self.layout);
        let (members, arrivals) = self.population()?;
        let (fitness, num_frames) = fitness(&members, arrivals)?;
        if fitness.len() != members.len() {
            return Err(Error::contract("figures of fitness", members.len(), fitness.len()).into());
        }
        if !fitness.iter().all(|value| value.is_finite()) {
            return Err(Error::NotFinite { update: self.update }.into());
        }
        let descent = evolution::descent(&fitness, self.parameters.len(), &config, seed);
        let learning_rate = self.between(config.learning_rate, config.learning_rate_final);
        // Adam works in units of the scales, where all parameters are of a size.
        let (mut moved, mut adam) = (vec![0.0; self.parameters.len()], self.adam.clone());
        adam.step(&mut moved, &descent, learning_rate);
        let kept = (1.0 - learning_rate * config.weight_decay).max(0.0) as f32;
        for (step, (x, scale)) in moved.iter_mut().zip(self.parameters.iter().zip(&scales)) {
            *step = kept * x + scale * *step;
        }
        if !moved.iter().all(|parameter| parameter.is_finite()) {
            return Err(Error::NotFinite { update: self.update }.into());
        }
        (self.parameters, self.adam) = (moved, adam);
        self.num_frames += num_frames;
        let mean = fitness.iter().sum::<f64>() / fitness.len() as f64;
        let square = fitness.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let stats = GenerationStats {
            update: self.update,
            num_frames: self.num_frames,
            learning_rate,
            fitness_mean: mean,
            fitness_deviation: (square / fitness.len() as f64).sqrt(),
            fitness_best: fitness.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            grad_norm: crate::adam::norm(&descent),
        };
        self.update += 1;
        Ok(stats)
    }
}

#[cfg(test)]
mod tests {
    use pleach_env::Spaces;
    use pleach_scheduler::policy::CandidateConfig;

    use super::*;
    use crate::evolution::EvolutionConfig;
    use crate::learner_name::Learner;
    use crate::train_config::TrainConfig;
    use pleach_network::Contract;

    #[test]
    fn where_nobody_is_better_only_the_decay_moves_parameters() {
        let spaces = Spaces::new(2, 4, 3);
        let config = TrainConfig {
            learner: Learner::EVOLUTION,
            evolution: EvolutionConfig {
                num_pairs: 2,
                learning_rate: 0.5,
                learning_rate_final: 0.5,
                weight_decay: 0.25,
                ..EvolutionConfig::default()
            },
            ..TrainConfig::default()
        };
        let contract = Contract::current(spaces, CandidateConfig::default(), "test");
        let mut trainer = Trainer::new(config, contract, Seed(3)).unwrap();
        let before = trainer.parameters().to_vec();
        let equal = |members: &[Inference], _: Seed| Ok::<_, Error>((vec![1.0; members.len()], 7));
        assert_eq!(trainer.evolve(equal).unwrap().num_frames, 7);
        for (index, (before, after)) in before.iter().zip(trainer.parameters()).enumerate() {
            assert!(
                (after - (1.0 - 0.5 * 0.25) * before).abs() < 1e-7,
                "{index}: {before} {after}"
            );
        }
    }
}
