//! One network out of several that went on from the same one with other objectives: their parameters' weighted mean.
//!
//! ```text
//! theta = sum_i w_i theta_i,        w_i >= 0, sum_i w_i = 1
//! ```
//!
//! So an objective need not be fixed when a network is trained: the weights of the mean are chosen where the network is used, and
//! one pair of trainings gives everything between its two ends. Why it should work at all: networks that went on from the same
//! parameters lie in one valley of the loss, through which the straight line between them runs. Networks that did not have
//! nothing of the kind to offer, and their mean is no policy; whether they did is not written in them.
//!
//! # Source
//! Weights of one start averaged: Wortsman et al., ICML'22. One network for each reward, the weights chosen afterwards: Rame et
//! al., NeurIPS'23.

use crate::error::Error;
use crate::policy_file::{Provenance, TrainedNetwork};

/// Blends networks by weights, of which only the proportions count. What is not a parameter (settings, seed, the scale of the
/// value head, what it was trained on) is the first network's.
///
/// # Errors
/// [`Error::Config`] for less than two networks, or weights that are not one number of at least 0 for each with one above 0;
/// [`Error::Contract`] where two networks see, choose among or correct different things, or differ in size.
pub fn blend(networks: &[TrainedNetwork], weights: &[f64]) -> Result<TrainedNetwork, Error> {
    let refuse = |value: String, allowed| {
        let key = "weights";
        Err(Error::config(key, value, allowed))
    };
    let total: f64 = weights.iter().sum();
    let in_range = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0);
    if networks.len() != weights.len() || networks.len() < 2 {
        let value = format!("{} for {} networks", weights.len(), networks.len());
        return refuse(value, "one for each of at least two networks");
    }
    if !in_range || !total.is_finite() || total <= 0.0 {
        return refuse(
            format!("{weights:?}"),
            "numbers of at least 0, one of them above 0",
        );
    }
    let first = &networks[0];
    for other in &networks[1..] {
        for (what, own, found) in [
            ("sizes of the network", sizes(first), sizes(other)),
            (
                "feature schema",
                first.contract.schema_hash.clone(),
                other.contract.schema_hash.clone(),
            ),
            (
                "candidates",
                format!("{:?}", first.contract.candidates),
                format!("{:?}", other.contract.candidates),
            ),
            (
                "corrected heuristic",
                format!("{:?}", first.contract.prior),
                format!("{:?}", other.contract.prior),
            ),
        ] {
            if own != found {
                return Err(Error::contract(what, own, found));
            }
        }
    }
    let mut mean = vec![0.0_f64; first.parameters.len()];
    for (network, weight) in networks.iter().zip(weights) {
        for (sum, parameter) in mean.iter_mut().zip(&network.parameters) {
            *sum += weight / total * f64::from(*parameter);
        }
    }
    let mut contract = first.contract.clone();
    // Who was never judged on several GPU types leaves them to the heuristic, and so does whoever has a part of that network.
    contract.one_type = networks.iter().any(|network| network.contract.one_type);
    // A standby was chosen for one network, by simulation; the blend is another.
    contract.standby = None;
    Ok(TrainedNetwork {
        contract,
        provenance: Provenance {
            best_score: None,
            ..first.provenance.clone()
        },
        parameters: mean.into_iter().map(|sum| sum as f32).collect(),
        ..first.clone()
    })
}

fn sizes(network: &TrainedNetwork) -> String {
    let (spaces, parameters) = (network.contract.spaces, network.parameters.len());
    format!("{:?}, {spaces:?}, {parameters} parameters", network.config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{PLAIN, parameters, trained};
    use crate::policy::LearnedPolicy;
    use pleach_scheduler::features::FeatureSchema;
    use pleach_scheduler::observation::Spaces;

    fn network(spaces: Spaces) -> TrainedNetwork {
        trained(spaces, FeatureSchema::current().hash())
    }

    fn networks() -> [TrainedNetwork; 2] {
        let first = network(PLAIN);
        let parameters = parameters(&first.layout().unwrap(), 8);
        let second = TrainedNetwork {
            parameters,
            ..first.clone()
        };
        [first, second]
    }

    #[test]
    fn a_blend_lies_between_and_its_ends_are_the_networks() {
        let [a, b] = networks();
        let of = |weights: [f64; 2]| blend(&[a.clone(), b.clone()], &weights).unwrap().parameters;
        assert_eq!(of([1.0, 0.0]), a.parameters);
        assert_eq!(of([0.0, 5.0]), b.parameters);
        let quarter = of([3.0, 1.0]);
        for ((found, a), b) in quarter.iter().zip(&a.parameters).zip(&b.parameters) {
            let by_hand = 0.75 * f64::from(*a) + 0.25 * f64::from(*b);
            assert!((f64::from(*found) - by_hand).abs() < 1e-7);
        }
        // It is a network like any other.
        let blended = blend(&[a, b], &[1.0, 1.0]).unwrap();
        LearnedPolicy::from_network(&blended).unwrap();
    }

    #[test]
    fn what_cannot_be_blended_is_refused_with_the_reason() {
        let [a, b] = networks();
        let said =
            |networks: &[TrainedNetwork], weights: &[f64]| blend(networks, weights).unwrap_err().to_string();
        for weights in [
            &[1.0][..],
            &[1.0, -1.0],
            &[0.0, 0.0],
            &[f64::NAN, 1.0],
            &[f64::INFINITY, 1.0],
        ] {
            assert!(
                said(&[a.clone(), b.clone()], weights).contains("weights"),
                "{weights:?}"
            );
        }
        assert!(said(std::slice::from_ref(&a), &[1.0]).contains("two networks"));
        let other = network(Spaces::new(2, 4, 3));
        assert!(said(&[a.clone(), other], &[1.0, 1.0]).contains("sizes"));
        let mut corrects = b;
        corrects.contract.prior = Some(crate::prior::Prior {
            policy: "sjf".into(),
            weight: 1.0,
        });
        assert!(said(&[a, corrects], &[1.0, 1.0]).contains("heuristic"));
    }
}
