//! Evolution strategies: the second learner, for small networks and for objectives that are figures of whole episodes.
//!
//! A generation asks for a population around the present parameters, gets one fitness for each member, and moves the
//! parameters towards the better ones. Nothing is differentiated, nothing is drawn in an episode, and what is optimised is
//! what is deployed: the likeliest candidate at every decision, judged by the average JCT (or whatever the caller measures).
//!
//! With parameters `x = x_0 + s z`, where `s` is the scale of each array's first weights, members are `z + sigma e_i` and
//! `z - sigma e_i` for `num_pairs` draws `e_i` of a standard normal (antithetic). Fitness becomes its centred rank in
//! `[-1/2, 1/2]`, and the direction `sum rank_i e_i / (n sigma)` goes through Adam. The value head is not learnt.
//!
//! All members of a generation play the same workloads. So the luck of the arrivals is the same for all, and ranks compare
//! policies.
//!
//! # Source
//! Salimans et al., 2017 (antithetic draws, ranks, Adam); common random numbers are textbook. Scaling noise by array is ours.

use pleach_env::Seed;
use pleach_network::Layout;
use pleach_scheduler::portable_math::{cos, ln, sin};
use pleach_scheduler::settings;
use pleach_scheduler::settings::Above;
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::error::SETTING_MAX;
use crate::random::uniform;

settings! {
    /// Settings of evolution strategies.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct EvolutionConfig {
        /// Antithetic pairs of a generation; the population is twice that.
        pub num_pairs: usize = 24, in 1..=4096;
        /// Workloads that every member plays in a generation.
        pub num_workloads: usize = 8, in 1..=4096;
        /// Deviation of a member's parameters over that of first weights.
        pub sigma: f64 = 0.1, in Above(0.0, SETTING_MAX);
        /// Step of Adam in the first generation, in the same unit.
        pub learning_rate: f64 = 0.03, in Above(0.0, SETTING_MAX);
        /// Step of Adam in the last generation; linear between.
        pub learning_rate_final: f64 = 0.005, in 0.0..=SETTING_MAX;
        /// Part of each parameter that a generation takes off, over the step of Adam.
        pub weight_decay: f64 = 0.0, in 0.0..=SETTING_MAX;
    }
}

/// Figures of one generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GenerationStats {
    /// Number of the generation, from 0.
    pub update: u64,
    /// What the caller counts of the run so far, this generation's included: passes with something to decide.
    pub num_frames: u64,
    /// Step of Adam.
    pub learning_rate: f64,
    /// Mean fitness of the population.
    pub fitness_mean: f64,
    /// Deviation of the fitness.
    pub fitness_deviation: f64,
    /// Best member's fitness.
    pub fitness_best: f64,
    /// Length of the direction before Adam.
    pub grad_norm: f64,
}

/// Deviation of each parameter's noise at `sigma = 1`: that of first weights of ordinary gain, a tenth of it for biases;
/// zero for the value head, which decides nothing.
#[must_use]
pub fn scales(layout: &Layout) -> Vec<f32> {
    let mut scales = vec![0.0; layout.num_parameters()];
    let value_head = layout.value_head();
    for entry in &layout.entries {
        if value_head.contains(&entry.range.start) {
            continue;
        }
        let scale = if entry.is_bias() {
            0.1
        } else {
            (1.0 / entry.shape[0] as f32).sqrt()
        };
        scales[entry.range.clone()].fill(scale);
    }
    scales
}

/// The draw of one pair: the same for the member that adds it and for the one that takes it off.
fn draw(seed: Seed, pair: usize, len: usize) -> Vec<f32> {
    let mut random = seed.stream("noise", pair as u64);
    let mut noise = Vec::with_capacity(len + 1);
    while noise.len() < len {
        let (a, b) = normal_pair(&mut random);
        noise.extend([a, b]);
    }
    noise.truncate(len);
    noise
}

/// Two standard normal numbers.
///
/// # Source
/// Box and Muller, 1958.
fn normal_pair(random: &mut impl Rng) -> (f32, f32) {
    let radius = (-2.0 * ln(1.0 - uniform(random))).sqrt();
    let angle = std::f64::consts::TAU * uniform(random);
    ((radius * cos(angle)) as f32, (radius * sin(angle)) as f32)
}

/// Parameters of the members of a generation, in pairs: plus, minus, plus, minus...
#[must_use]
pub fn population(parameters: &[f32], scales: &[f32], config: &EvolutionConfig, seed: Seed) -> Vec<Vec<f32>> {
    let mut members = Vec::with_capacity(2 * config.num_pairs);
    for pair in 0..config.num_pairs {
        let noise = draw(seed, pair, parameters.len());
        for sign in [config.sigma as f32, -config.sigma as f32] {
            let moved = |((x, scale), noise): ((&f32, &f32), &f32)| x + sign * scale * noise;
            members.push(parameters.iter().zip(scales).zip(&noise).map(moved).collect());
        }
    }
    members
}

/// Centred ranks of fitness, larger being better: the worst is -1/2, the best 1/2; equals share the mean of their ranks.
#[must_use]
pub(crate) fn centred_ranks(fitness: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..fitness.len()).collect();
    order.sort_by(|a, b| fitness[*a].total_cmp(&fitness[*b]));
    let mut ranks = vec![0.0; fitness.len()];
    let last = (fitness.len().max(2) - 1) as f64;
    let mut start = 0;
    while start < order.len() {
        let same = order[start..]
            .iter()
            .take_while(|index| fitness[**index] == fitness[order[start]])
            .count();
        let mean = start as f64 + (same - 1) as f64 / 2.0;
        for index in &order[start..start + same] {
            ranks[*index] = mean / last - 0.5;
        }
        start += same;
    }
    ranks
}

/// The direction in which fitness grows, in units of the scales, with the sign of a gradient to descend.
#[must_use]
pub fn descent(fitness: &[f64], num_parameters: usize, config: &EvolutionConfig, seed: Seed) -> Vec<f32> {
    let ranks = centred_ranks(fitness);
    let mut direction = vec![0.0_f32; num_parameters];
    let share = 1.0 / (fitness.len().max(1) as f64 * config.sigma);
    for (pair, ranks) in ranks.chunks_exact(2).enumerate() {
        let weight = (-(ranks[0] - ranks[1]) * share) as f32;
        if weight == 0.0 {
            continue;
        }
        for (sum, noise) in direction.iter_mut().zip(draw(seed, pair, num_parameters)) {
            *sum += weight * noise;
        }
    }
    direction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adam::Adam;

    #[test]
    fn ranks_are_centred_and_equals_share_theirs() {
        assert_eq!(centred_ranks(&[3.0, -1.0, 7.0]), [0.0, -0.5, 0.5]);
        // Two share the places 1 and 2 of 0 to 3.
        assert_eq!(centred_ranks(&[5.0, 5.0, 9.0, 1.0]), [0.0, 0.0, 0.5, -0.5]);
        assert_eq!(centred_ranks(&[2.0, 2.0]), [0.0, 0.0]);
    }

    #[test]
    fn noise_is_standard_normal_and_depends_on_pair_and_seed_alone() {
        let noise = draw(Seed(1), 3, 20_001);
        assert_eq!(noise, draw(Seed(1), 3, 20_001));
        assert_ne!(noise[..10], draw(Seed(1), 4, 10)[..]);
        let n = noise.len() as f64;
        let mean = noise.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
        let square = noise.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / n;
        let within = noise.iter().filter(|x| x.abs() < 1.0).count() as f64 / n;
        // Deviations of these estimates at 20,001 draws: 0.007, 0.010, 0.0033.
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.04 && (within - 0.6827).abs() < 0.014);
    }

    #[test]
    fn members_come_in_pairs_around_the_present_parameters() {
        let config = EvolutionConfig {
            num_pairs: 2,
            sigma: 0.5,
            ..EvolutionConfig::default()
        };
        let (parameters, scales) = ([1.0, 2.0, 3.0], [1.0, 0.5, 0.0]);
        let members = population(&parameters, &scales, &config, Seed(4));
        assert_eq!(members.len(), 4);
        for pair in members.chunks(2) {
            for i in 0..3 {
                assert!((pair[0][i] + pair[1][i] - 2.0 * parameters[i]).abs() < 1e-6);
            }
            assert!(pair[0][0] != parameters[0] && pair[0][2] == parameters[2]);
        }
    }

    #[test]
    fn the_direction_agrees_with_the_slope_of_a_linear_fitness() {
        // Fitness w.x: the expected direction is along -w. With 4,000 pairs in 3 dimensions it is close.
        let config = EvolutionConfig {
            num_pairs: 4000,
            ..EvolutionConfig::default()
        };
        let w = [2.0, -1.0, 0.0];
        let members = population(&[0.0; 3], &[1.0; 3], &config, Seed(2));
        let fitness: Vec<f64> = members
            .iter()
            .map(|x| x.iter().zip(w).map(|(x, w)| f64::from(*x) * w).sum())
            .collect();
        let direction = descent(&fitness, 3, &config, Seed(2));
        let length = direction
            .iter()
            .map(|x| f64::from(*x).powi(2))
            .sum::<f64>()
            .sqrt();
        let along = direction
            .iter()
            .zip(w)
            .map(|(x, w)| -f64::from(*x) * w)
            .sum::<f64>();
        assert!(along / (length * 5.0_f64.sqrt()) > 0.998);
    }

    #[test]
    fn it_finds_the_top_of_a_hill_that_has_no_gradient() {
        // Fitness is a staircase around (3, -2): flat almost everywhere.
        let fitness = |x: &[f32]| -f64::from(((x[0] - 3.0).abs() + (x[1] + 2.0).abs()) * 4.0).round();
        let config = EvolutionConfig {
            num_pairs: 20,
            sigma: 0.5,
            ..EvolutionConfig::default()
        };
        let (mut parameters, mut adam) = (vec![0.0_f32; 2], Adam::new(2));
        for generation in 0..200 {
            let seed = Seed(9).child("update", generation);
            let members = population(&parameters, &[1.0; 2], &config, seed);
            let scores: Vec<f64> = members.iter().map(|x| fitness(x)).collect();
            adam.step(&mut parameters, &descent(&scores, 2, &config, seed), 0.05);
        }
        assert!(
            (parameters[0] - 3.0).abs() < 0.4 && (parameters[1] + 2.0).abs() < 0.4,
            "{parameters:?}"
        );
    }
}
