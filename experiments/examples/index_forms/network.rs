//! A formula with hidden units.

use std::sync::Arc;

use pleach_baselines::dealing::Formula;
use pleach_env::Seed;
use pleach_experiments::index_search::{Encoding, Searched};
use pleach_scheduler::portable_math::exp;
use pleach_scheduler::{ConfigError, Planner};
use rand::RngExt as _;

use crate::judge::Held;
use crate::shaped::{Form, NUM_FEATURES, Row, recorded};

/// Mean and spread of each feature over rows.
#[derive(Clone)]
struct Scale {
    mean: Row,
    spread: Row,
}

impl Scale {
    fn of(rows: &[Row]) -> Scale {
        let num = rows.len().max(1) as f64;
        let mean: Row = std::array::from_fn(|at| rows.iter().map(|row| row[at]).sum::<f64>() / num);
        let spread = std::array::from_fn(|at| {
            let squares = rows.iter().map(|row| (row[at] - mean[at]).powi(2)).sum::<f64>();
            (squares / num).sqrt().max(0.05)
        });
        Scale { mean, spread }
    }
}

/// A formula with hidden units, as numbers: the formula's, then of each unit its weights, offset and height.
pub struct Network {
    formula: Formula,
    encoding: Encoding,
    scale: Scale,
    units: usize,
    seed: Seed,
}

/// Numbers of a unit.
const OF_UNIT: usize = NUM_FEATURES + 2;

impl Network {
    /// Units that count for nothing yet, on features scaled as the formula's own deals have them.
    pub fn of(formula: &Formula, units: usize, seed: u64) -> Result<Network, String> {
        let rows = recorded(&Form::of(formula), &Held::draw("network/scale", 1))?;
        Ok(Network {
            formula: formula.clone(),
            encoding: Encoding::new(formula.rules, &[]),
            scale: Scale::of(&rows),
            units,
            seed: Seed(seed),
        })
    }

    /// The form of some numbers.
    pub fn form(&self, numbers: &[f64]) -> Form {
        let (linear, units) = numbers.split_at(numbers.len() - self.units * OF_UNIT);
        let (units, scale) = (units.to_vec(), self.scale.clone());
        Form {
            formula: self.encoding.formula(linear),
            extra: Arc::new(move |row| units.chunks(OF_UNIT).map(|unit| bent(unit, &scale, row)).sum()),
        }
    }
}

/// height x tanh(offset + weights x features)
fn bent(unit: &[f64], scale: &Scale, row: &Row) -> f64 {
    let (weights, ends) = unit.split_at(NUM_FEATURES);
    let scaled = row.iter().zip(&scale.mean).zip(&scale.spread);
    let sum = weights
        .iter()
        .zip(scaled)
        .map(|(weight, ((value, mean), spread))| weight * (value - mean) / spread);
    let inner = ends[0] + sum.sum::<f64>();
    let power = exp(-2.0 * inner.abs());
    ends[1] * inner.signum() * (1.0 - power) / (1.0 + power)
}

impl Searched for Network {
    fn first(&self) -> Vec<f64> {
        let mut rng = self.seed.stream("units", 0);
        let mut numbers = self.encoding.numbers(&self.formula);
        for _ in 0..self.units {
            // Each looks in a direction of its own, and counts for nothing yet.
            numbers.extend((0..=NUM_FEATURES).map(|_| rng.random_range(-0.4..0.4)));
            numbers.push(0.0);
        }
        numbers
    }

    fn steps(&self) -> Vec<f64> {
        let mut steps = self.encoding.steps();
        for _ in 0..self.units {
            steps.extend([0.15; NUM_FEATURES]);
            steps.extend([0.2, 0.4]);
        }
        steps
    }

    fn planner(&self, numbers: &[f64]) -> Result<Box<dyn Planner>, ConfigError> {
        self.form(numbers).planner(None)
    }
}
