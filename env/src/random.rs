//! Random admissible actions: what the speed of an environment is measured with, and the least that a policy must beat.

use rand::{Rng, RngExt as _};
use rand_chacha::ChaCha8Rng;

use pleach_workloads::Seed;

/// Draws random admissible actions for N environments; the same seed draws the same ones.
#[derive(Clone, Debug)]
pub struct RandomActions(ChaCha8Rng);

impl RandomActions {
    /// Draws from the stream of this seed.
    #[must_use]
    pub fn new(seed: Seed) -> RandomActions {
        RandomActions(seed.stream("random-actions", 0))
    }

    /// One action for each mask; `masks` is `[N, C]`.
    pub fn draw(&mut self, masks: &[bool], num_candidates: usize) -> Vec<usize> {
        let masks = masks.chunks_exact(num_candidates.max(1));
        masks.map(|mask| random_action(mask, &mut self.0)).collect()
    }
}

/// One of the admissible actions, each as likely; 0 where there is none.
pub fn random_action(mask: &[bool], rng: &mut impl Rng) -> usize {
    let num = mask.iter().filter(|admissible| **admissible).count();
    if num == 0 {
        return 0;
    }
    let pick = rng.random_range(0..num);
    mask.iter()
        .enumerate()
        .filter(|(_, admissible)| **admissible)
        .nth(pick)
        .map_or(0, |(index, _)| index)
}
