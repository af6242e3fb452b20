//! Random admissible actions: what the speed of an environment is measured with, and the least that a policy must beat.

use rand::{Rng, RngExt as _};

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
