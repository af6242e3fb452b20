//! What is drawn: first parameters, orders, uniform numbers. The same on every machine.

use std::cmp::Ordering;

use pleach_env::Seed;
use pleach_network::{
    Layout,
    parameters::{Entry, at},
};
use rand::Rng;

/// First parameters, from the stream `network` of `seed`: uniform with the variance `gain^2 / inputs`, gain sqrt 2
/// before a rectifier, 0.01 at the end of the pointer; zero biases, scales of 1.
///
/// # Source
/// He et al., ICCV'15, for the variance; the small policy head as in Andrychowicz et al., ICLR'21 (section 3.2).
#[must_use]
pub fn initial_parameters(layout: &Layout, seed: Seed) -> Vec<f32> {
    let mut parameters = vec![0.0; layout.num_parameters()];
    for (index, entry) in layout.entries.iter().enumerate() {
        if entry.name.ends_with("scale") {
            parameters[entry.range.clone()].fill(1.0);
            continue;
        }
        // Queries of the built-in network have a stream of their own, so that heads change no other first weight.
        let mut random = match index.cmp(&at::QUERY) {
            _ if layout.graph.is_some() => seed.stream("network", index as u64),
            Ordering::Less => seed.stream("network", index as u64),
            Ordering::Equal => seed.stream("network/attention", 0),
            Ordering::Greater => seed.stream("network", index as u64 - 1),
        };
        let bound = gain(entry) * (3.0 / entry.shape[0] as f32).sqrt();
        for weight in &mut parameters[entry.range.clone()] {
            *weight = if bound == 0.0 {
                0.0
            } else {
                (2.0 * uniform(&mut random) as f32 - 1.0) * bound
            };
        }
    }
    parameters
}

/// Deviation of an array's first weights over that of a plain layer.
fn gain(entry: &Entry) -> f32 {
    match entry.name.as_ref() {
        _ if entry.is_bias() => 0.0,
        "pointer.out.weight" | "score.weight" => 0.01,
        "attention.query.weight" => 1.0,
        "pointer.candidate.weight" | "pointer.context.weight" | "value.out.weight" => 1.0,
        _ => std::f32::consts::SQRT_2,
    }
}

/// A random order of `0..n`, Fisher and Yates's.
pub(crate) fn shuffled(n: usize, random: &mut impl Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        let other = (uniform(random) * (last + 1) as f64) as usize;
        order.swap(last, other.min(last));
    }
    order
}

/// A number in [0, 1) from the upper 53 bits of one draw: the same on every machine.
pub(crate) fn uniform(random: &mut impl Rng) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_env::Spaces;
    use pleach_network::NetworkConfig;

    #[test]
    fn first_parameters_depend_on_the_seed_alone_and_the_policy_head_is_small() {
        let layout = Layout::new(NetworkConfig::default(), Spaces::new(3, 4, 5)).unwrap();
        let first = initial_parameters(&layout, Seed(1));
        assert_eq!(first, initial_parameters(&layout, Seed(1)));
        assert_ne!(first, initial_parameters(&layout, Seed(2)));
        let of = |index: usize| &first[layout.entries[index].range.clone()];
        assert!(of(at::POINTER_OUT).iter().all(|w| w.abs() < 0.01));
        assert!(of(at::VALUE_0_BIAS).iter().all(|w| *w == 0.0));
    }
}
