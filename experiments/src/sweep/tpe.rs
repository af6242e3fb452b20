//! Draws that are learned from those that ended: a study that takes more draws.
//!
//! # Source
//! The tree-structured Parzen estimator (Bergstra et al., NeurIPS'11), each setting for itself, with the defaults of the crate `tpe`:
//! the best tenth against the rest, the best of 24 candidates.

use std::collections::BTreeMap;

use pleach_env::Seed;
use pleach_scheduler::portable_math::{exp, ln};
use serde_json::{Value, json};
use tpe::TpeOptimizer;

use super::draw::{Draw, four_digits};

/// What a study knows of its settings: of each draw that ended its values and what they came to, less being better.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Known {
    /// Values of all draws that were made, ended or not, in their order.
    pub(super) draws: Vec<BTreeMap<String, Value>>,
    /// What each came to: infinite where it failed for good, none where it has not ended.
    pub(super) scores: Vec<Option<f64>>,
}

/// The value of draw `number` of the setting `key`, by what is known.
pub(super) fn value(draw: &Draw, (root, key, number): (u64, &str, usize), known: &Known) -> Option<Value> {
    let mut optimizer = optimizer(draw)?;
    for (values, score) in known.draws.iter().zip(&known.scores) {
        let place = values.get(key).and_then(|value| place(draw, value));
        if let (Some(place), Some(score)) = (place, score) {
            // What is out of the range, after a change of the grid file, teaches nothing.
            let _ = optimizer.tell(place, *score);
        }
    }
    let mut rng = Seed(root).stream(&format!("sweep/tpe/{key}"), number as u64);
    let place = optimizer.ask(&mut rng).ok()?;
    Some(match draw {
        Draw::LogUniform(low, high) => json!(four_digits(exp(place)).clamp(*low, *high)),
        Draw::Uniform(low, high) => json!(four_digits(place).clamp(*low, *high)),
        Draw::Integer(low, high) => json!((place.floor() as i64).clamp(*low, *high)),
        Draw::Choice(values) => values[(place as usize).min(values.len() - 1)].clone(),
    })
}

fn optimizer(draw: &Draw) -> Option<TpeOptimizer> {
    let parzen = |low: f64, high: f64| {
        // The end of a range is none of it there.
        let range = tpe::range(low, high + (high - low) * 1e-9).ok()?;
        Some(TpeOptimizer::new(tpe::parzen_estimator(), range))
    };
    match draw {
        Draw::LogUniform(low, high) => parzen(ln(*low), ln(*high)),
        Draw::Uniform(low, high) => parzen(*low, *high),
        Draw::Integer(low, high) => parzen(*low as f64, *high as f64 + 1.0),
        Draw::Choice(values) => {
            let range = tpe::categorical_range(values.len()).ok()?;
            Some(TpeOptimizer::new(tpe::histogram_estimator(), range))
        }
    }
}

/// Where a value stands for the optimiser.
fn place(draw: &Draw, value: &Value) -> Option<f64> {
    match draw {
        Draw::LogUniform(..) => value.as_f64().filter(|value| *value > 0.0).map(ln),
        Draw::Uniform(..) => value.as_f64(),
        // The middle of the part of the range that is this number.
        Draw::Integer(..) => value.as_i64().map(|value| value as f64 + 0.5),
        Draw::Choice(values) => values.iter().position(|other| other == value).map(|at| at as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::grid::Grid;

    const STUDY: &str = "name = 'x'\nseeds = 2\nsampler = 'tpe'\n[grid]\nload = [1, 2]\n[draw]\n\
        rate = { log_uniform = [1e-4, 1] }\nwidth = { integer = [1, 64] }\nkind = { choice = ['a', 'b', 'c'] }\n";

    fn grid(draws: usize) -> Grid {
        toml::from_str(&format!("draws = {draws}\n{STUDY}")).unwrap()
    }

    /// Least at a rate of 0.01, a width of 40 and kind b.
    fn loss(values: &BTreeMap<String, Value>) -> f64 {
        let rate = ln(values["rate"].as_f64().unwrap() / 0.01);
        let width = (values["width"].as_f64().unwrap() - 40.0) / 16.0;
        rate * rate + width * width + if values["kind"] == "b" { 0.0 } else { 2.0 }
    }

    #[test]
    fn draws_that_are_learned_are_better_than_random_ones_and_those_before_stay() {
        let mut known = Known::default();
        let mut manifest = grid(10).plan().unwrap();
        for batch in 2..=5 {
            let score = |units: std::ops::Range<usize>| Some(loss(&manifest.units()[units.start].params));
            known = grid(10).known(&manifest, score).unwrap();
            let more = grid(10 * batch).plan_after(&known).unwrap();
            assert_eq!(more.units()[..manifest.num_units()], *manifest.units());
            manifest = more;
        }
        assert_eq!((known.draws.len(), manifest.num_units()), (40, 50 * 2 * 2));
        let mean = |draws: std::ops::Range<usize>| {
            let losses = draws.clone().map(|draw| loss(&manifest.units()[draw * 4].params));
            losses.sum::<f64>() / draws.len() as f64
        };
        assert!(
            mean(30..50) < 0.5 * mean(0..10),
            "{} {}",
            mean(30..50),
            mean(0..10)
        );
        for unit in manifest.units() {
            let rate = unit.params["rate"].as_f64().unwrap();
            let width = unit.params["width"].as_i64().unwrap();
            assert!((1e-4..=1.0).contains(&rate) && (1..=64).contains(&width));
        }
        // The same knowledge, the same draws.
        assert_eq!(grid(50).plan_after(&known).unwrap(), manifest);
    }

    #[test]
    fn what_failed_for_good_is_avoided_and_what_runs_still_says_nothing() {
        let draw = Draw::Choice(vec![json!("a"), json!("b")]);
        let of = |value: &str| BTreeMap::from([("k".to_string(), json!(value))]);
        let known = Known {
            draws: (0..20)
                .map(|number| of(if number % 2 == 0 { "a" } else { "b" }))
                .collect(),
            scores: (0..20)
                .map(|number| Some(if number % 2 == 0 { f64::INFINITY } else { 1.0 }))
                .collect(),
        };
        let drawn = |known: &Known| {
            (20..60)
                .map(|number| value(&draw, (0, "k", number), known).unwrap())
                .collect::<Vec<_>>()
        };
        assert!(drawn(&known).iter().filter(|value| **value == json!("b")).count() > 30);
        let running = Known {
            scores: vec![None; 20],
            ..known
        };
        assert_eq!(drawn(&running), drawn(&Known::default()));
    }
}
