//! Normal numbers with the same bits on every machine.
//!
//! `rand_distr` draws them as quickly, but takes exponentials and logarithms from the C library, whose last places differ from
//! processor to processor. The draws here are the same numbers.
//!
//! # Source
//! J. A. Doornik, *An improved ziggurat method to generate normal random samples* (2005): 256 boxes of one area, in the order
//! of draws of `rand_distr` 0.6, which the tests hold it to.

use std::sync::LazyLock;

use pleach_scheduler::portable_math::{exp, ln};
use rand::distr::Open01;
use rand::{Rng, RngExt as _};

const NUM_BOXES: usize = 256;
/// Where the tail begins.
const TAIL: f64 = 3.654_152_885_361_009;
/// Area of each box; that of the last one holds the tail too.
const AREA: f64 = 0.004_928_673_233_99;

/// Right ends of the boxes, the widest and lowest first; the first one is widened to hold the tail.
static ENDS: LazyLock<[f64; NUM_BOXES + 1]> = LazyLock::new(|| {
    let mut ends = [0.0; NUM_BOXES + 1];
    (ends[0], ends[1]) = (AREA / density(TAIL), TAIL);
    for index in 2..NUM_BOXES {
        let below = ends[index - 1];
        ends[index] = (-2.0 * ln(AREA / below + density(below))).sqrt();
    }
    ends
});

/// One number of the standard normal distribution.
pub fn standard_normal(rng: &mut (impl Rng + ?Sized)) -> f64 {
    let ends = &*ENDS;
    loop {
        let bits = rng.next_u64();
        let index = (bits & 0xff) as usize;
        // The upper 52 bits as a number from 2 to 4, hence from -1 to 1.
        let part = f64::from_bits((bits >> 12) | (1024 << 52)) - 3.0;
        let x = part * ends[index];
        if x.abs() < ends[index + 1] {
            return x;
        }
        if index == 0 {
            return tail(part < 0.0, rng);
        }
        let (low, high) = (density(ends[index]), density(ends[index + 1]));
        if high + (low - high) * rng.random::<f64>() < density(x) {
            return x;
        }
    }
}

/// The density of the distribution over that at its middle.
fn density(x: f64) -> f64 {
    exp(-x * x / 2.0)
}

/// A number beyond [`TAIL`], by Marsaglia's method.
fn tail(is_negative: bool, rng: &mut (impl Rng + ?Sized)) -> f64 {
    loop {
        let x = ln(rng.sample(Open01)) / TAIL;
        let y = ln(rng.sample(Open01));
        if -2.0 * y >= x * x {
            return if is_negative { x - TAIL } else { TAIL - x };
        }
    }
}

/// Share of a standard normal below `z`; absolute error below 1e-7 (Abramowitz and Stegun 7.1.26).
#[must_use]
pub fn normal_cdf(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let erf = 1.0 - poly * exp(-x * x);
    if z < 0.0 {
        (1.0 - erf) / 2.0
    } else {
        (1.0 + erf) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardNormal};

    use super::{normal_cdf, standard_normal};
    use crate::seed::Seed;

    #[test]
    fn draws_are_those_of_rand_distr_but_for_last_places_in_the_tail() {
        let mut own_rng = Seed(7).stream("normal", 0);
        let mut other_rng = Seed(7).stream("normal", 0);
        let (mut num_tail, mut num_other) = (0, 0);
        for _ in 0..200_000 {
            let own = standard_normal(&mut own_rng);
            let other: f64 = StandardNormal.sample(&mut other_rng);
            assert!((own - other).abs() <= 4.0 * f64::EPSILON, "{own} {other}");
            num_tail += u32::from(own.abs() > super::TAIL);
            num_other += u32::from(own != other);
        }
        // 52 of 200,000 lie there.
        assert!(num_tail > 20, "{num_tail} in the tail");
        assert!(num_other <= num_tail, "{num_other} draws differ");
    }

    #[test]
    fn the_normal_distribution_is_right_to_six_digits() {
        assert!((normal_cdf(0.0) - 0.5).abs() < 1e-7);
        assert!((normal_cdf(1.959_964) - 0.975).abs() < 1e-6);
        assert!((normal_cdf(-1.0) - 0.158_655).abs() < 1e-6);
    }
}
