//! A network that draws its candidates, as PPO does while it learns.

use pleach_network::LearnedPolicy;
use pleach_scheduler::PolicyError;
use pleach_scheduler::policy::{ChoiceRule, DecisionPoint, Needs, Policy};
use pleach_scheduler::portable_math::ln;
use rand_chacha::ChaCha8Rng;

use crate::random::uniform;

/// Chooses a candidate with the probability that the softmax of the scores over a temperature gives it.
///
/// Each score gets a draw of the Gumbel distribution times the temperature. The largest sum is then such a choice.
///
/// # Source
/// Gumbel, 1954; Yellott, 1977.
#[derive(Clone, Debug)]
pub struct Drawn {
    inner: LearnedPolicy,
    temperature: f64,
    random: ChaCha8Rng,
}

impl Drawn {
    /// Draws of a network at a temperature above 0.
    #[must_use]
    pub fn new(inner: LearnedPolicy, temperature: f64, random: ChaCha8Rng) -> Drawn {
        Drawn {
            inner,
            temperature,
            random,
        }
    }
}

impl Policy for Drawn {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn needs(&self) -> Needs {
        self.inner.needs()
    }

    fn choice_rule(&self) -> ChoiceRule<'_> {
        self.inner.choice_rule()
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.inner.score(point, scores)?;
        for score in scores {
            let exponential = -ln(1.0 - uniform(&mut self.random));
            // A draw of 0 would have no logarithm.
            let gumbel = -ln(exponential.max(f64::MIN_POSITIVE));
            *score += (self.temperature * gumbel) as f32;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pleach_env::{EnvConfig, Episode, Reached, Seed, Source};
    use pleach_network::{Contract, Inference, NetworkConfig};
    use pleach_scheduler::Time;

    use super::*;
    use crate::networks;
    use crate::random::initial_parameters;

    #[test]
    fn candidates_are_drawn_as_often_as_the_softmax_says() {
        let mut config = EnvConfig::registered("Pleach/GavelMulti-v1").unwrap();
        config.workload = config.workload.resized(Some(20), Some(4.0));
        let workload = Source::open(&config).unwrap().workload(&config, Seed(3)).unwrap();
        let mut episode = Episode::begin(&config, &workload, Seed(3)).unwrap();
        assert_eq!(episode.run_until(Time::MAX), Reached::Decision);
        let contract = Contract::current(config.spaces(), config.candidates, "a test");
        let layout = networks::layout(NetworkConfig::default(), contract.spaces).unwrap();
        let inference = Inference::new(&layout, &initial_parameters(&layout, Seed(2))).unwrap();
        let mut network = LearnedPolicy::new(&contract, inference).unwrap();
        loop {
            let choice = episode.choice_of(&mut network).unwrap();
            if episode.seen().1.len() > 4 {
                break;
            }
            episode.act(choice).unwrap();
            assert_eq!(episode.run_until(Time::MAX), Reached::Decision);
        }
        let (rows, scores) = episode.seen();
        let admissible = || {
            scores
                .iter()
                .zip(rows.mask)
                .filter(|(_, admissible)| **admissible)
        };
        let all: Vec<f32> = admissible().map(|(score, _)| *score).collect();
        let spread =
            all.iter().copied().fold(f32::MIN, f32::max) - all.iter().copied().fold(f32::MAX, f32::min);
        // So that the likeliest is a few times as likely as the least likely.
        let temperature = f64::from(spread) / 2.0;
        let weight = |(score, admissible): (&f32, &bool)| match admissible {
            true => (f64::from(*score) / temperature).exp(),
            false => 0.0,
        };
        let weights: Vec<f64> = scores.iter().zip(rows.mask).map(weight).collect();
        let (sum, num) = (weights.iter().sum::<f64>(), 20_000);
        let mut drawn = Drawn::new(network, temperature, Seed(5).stream("drawn", 0));
        let mut counts = vec![0; weights.len()];
        for _ in 0..num {
            counts[episode.choice_of(&mut drawn).unwrap()] += 1;
        }
        assert!(weights.len() > 4);
        for (count, weight) in counts.iter().zip(&weights) {
            let (share, chance) = (f64::from(*count) / f64::from(num), weight / sum);
            // Four deviations of a count.
            assert!(
                (share - chance).abs() < 4.0 * (chance / f64::from(num)).sqrt(),
                "{counts:?} {weights:?}"
            );
        }
    }
}
