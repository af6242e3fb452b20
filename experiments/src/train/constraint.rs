//! What a network must keep to while it gets better at something else: a p99 no more than 5 % above a heuristic's, say.
//!
//! For a bound b on a metric m, over the same workloads, with the signs turned where more of m is better:
//!
//! ```text
//! excess = mean over workloads of ln(m / m of the baseline) - ln(b)        kept where it is at most 0
//! ```
//!
//! Evolution strategies minimise the Lagrangian; its multipliers follow the *present* policy, not the population around it,
//! from generation to generation:
//!
//! ```text
//! loss   + sum of lambda excess          over the constraints, for every member of a generation
//! lambda = max(0, lambda + step excess)  after it, from 0
//! ```
//!
//! A multiplier is a price: how many percent of the objective one percent of the metric is worth where the two balance. It
//! needs not be known beforehand, as a fixed penalty's weight must be, and it makes no cliff of a bound that is only measured
//! with noise, as an order that puts every member that keeps it before all that do not would.
//!
//! # Source
//! Dual ascent: Boyd and Vandenberghe, 2004, chapter 5. In learning: Tessler et al., ICLR'19 (multipliers that move slower
//! than the policy). The default of `step` is *assumed*.

use pleach_scheduler::portable_math::ln;
use pleach_scheduler::settings;
use pleach_scheduler::settings::{Above, Settings as _};
use std::collections::BTreeMap;

use crate::error::Error;
use crate::evaluate::metric::{Better, METRICS};
use crate::train::objective::{FLOOR, LN_MAX, known_metrics};
use crate::train::teachers::check_heuristic;

settings! {
    /// Bounds on metrics over a baseline's.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Constraint {
        /// Bounds by metric, above 0, on its ratio to the baseline's: the most of what should be little, the least of what should
        /// be much.
        pub metrics: BTreeMap<String, f64>;
        /// Whose metrics they are held against: `prior` for the heuristic that the network corrects (where there is none, the best
        /// on the validation workloads), `best` for the latter, or a heuristic's name.
        pub baseline: String = "prior".into();
        /// How fast the multipliers follow, above 0.
        pub step: f64 = 1.0, in Above(0.0, 1e12);
    }
}

impl Constraint {
    /// Default settings are left out: settings without a constraint are written as ever.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Constraint::default()
    }

    /// Nothing is bounded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.metrics.is_empty()
    }

    /// Checks names and ranges.
    ///
    /// # Errors
    /// The first key that is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        let hint = "For example: constraint = { metrics = { p99_jct_s = 1.05 }, baseline = \"prior\" }.";
        let known = known_metrics();
        for (key, bound) in &self.metrics {
            Error::refuse_if(
                !known.contains(&key.as_str()),
                "constraint.metrics",
                key,
                known.join(", "),
                hint,
            )?;
            Error::refuse_if(
                !(bound.is_finite() && *bound > 0.0),
                format_args!("constraint.metrics.{key}"),
                bound,
                "above 0, over the baseline's",
                hint,
            )?;
        }
        self.check_at("constraint", hint)?;
        check_heuristic("constraint.baseline", &self.baseline, &["prior", "best"])
    }

    /// How far one run is beyond each bound, in the order of the keys; at most 0 where it is kept. Both functions give a
    /// metric by its key.
    pub fn excess(&self, own: impl Fn(&str) -> f64, baseline: impl Fn(&str) -> f64) -> Vec<f64> {
        let of = |(key, bound): (&String, &f64)| {
            let ratio = ln((own(key) + FLOOR) / (baseline(key) + FLOOR)) - ln(*bound);
            let metric = METRICS.iter().find(|metric| metric.key == key);
            let more_is_better = metric.is_some_and(|metric| metric.better == Better::Higher);
            if more_is_better { -ratio } else { ratio }
        };
        self.metrics.iter().map(of).collect()
    }

    /// Largest absolute excess that a run can have over any of the bounds.
    #[must_use]
    pub fn excess_max(&self) -> f64 {
        let widest = self.metrics.values().map(|bound| ln(*bound).abs());
        2.0 * LN_MAX + widest.fold(0.0, f64::max)
    }

    /// The multipliers after a generation whose present policy had this excess; none before the first generation.
    #[must_use]
    pub fn stepped(&self, multipliers: &[f64], excess: &[f64]) -> Vec<f64> {
        let old = |index: usize| multipliers.get(index).copied().unwrap_or(0.0);
        let new = |(index, excess): (usize, &f64)| (old(index) + self.step * excess).max(0.0);
        excess.iter().enumerate().map(new).collect()
    }
}

/// Means of lists of equal length, place by place; empty without lists.
#[must_use]
pub fn means(lists: &[Vec<f64>]) -> Vec<f64> {
    let len = lists.first().map_or(0, Vec::len);
    let mean = |place: usize| lists.iter().map(|list| list[place]).sum::<f64>() / lists.len() as f64;
    (0..len).map(mean).collect()
}

/// What multipliers charge for an excess.
#[must_use]
pub fn charge(multipliers: &[f64], excess: &[f64]) -> f64 {
    multipliers
        .iter()
        .zip(excess)
        .map(|(lambda, excess)| lambda * excess)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_agents::Adam;
    use pleach_agents::evolution::{EvolutionConfig, descent, population};
    use pleach_env::Seed;

    fn bounds(metrics: &[(&str, f64)]) -> Constraint {
        Constraint {
            metrics: metrics
                .iter()
                .map(|(key, bound)| ((*key).to_string(), *bound))
                .collect(),
            ..Constraint::default()
        }
    }

    #[test]
    fn excess_is_the_logarithm_of_what_is_too_much_or_too_little() {
        let constraint = bounds(&[("p99_jct_s", 1.05), ("fairness", 0.9)]);
        let own = |key: &str| if key == "fairness" { 0.8 } else { 2200.0 };
        let baseline = |key: &str| if key == "fairness" { 1.0 } else { 2000.0 };
        let excess = constraint.excess(own, baseline);
        // Keys in their order: 0.8 is too little of what should be 0.9, 1.1 too much of what should be 1.05; but for the floor.
        assert!((excess[0] - (0.9_f64 / 0.8).ln()).abs() < 1e-3, "{excess:?}");
        assert!((excess[1] - (1.1_f64 / 1.05).ln()).abs() < 1e-6, "{excess:?}");
        // As good as the baseline is within any bound of 1.
        assert_eq!(bounds(&[("p99_jct_s", 1.0)]).excess(baseline, baseline), [0.0]);
    }

    #[test]
    fn multipliers_follow_the_excess_and_are_never_below_zero() {
        let constraint = Constraint {
            step: 0.5,
            ..bounds(&[("avg_jct_s", 1.0), ("p99_jct_s", 1.0)])
        };
        let first = constraint.stepped(&[], &[0.2, -0.3]);
        assert_eq!(first, [0.1, 0.0]);
        assert_eq!(constraint.stepped(&first, &[-0.1, 0.4]), [0.05, 0.2]);
        assert!((charge(&[2.0, 1.0], &[0.1, -0.3]) + 0.1).abs() < 1e-12);
        assert_eq!(means(&[vec![1.0, 2.0], vec![3.0, 6.0]]), [2.0, 4.0]);
    }

    #[test]
    fn evolution_strategies_find_the_constrained_optimum_and_its_price() {
        // Minimise (x - 3)^2 + y^2 subject to x - 1 <= 0: the optimum is (1, 0), and its multiplier, by the slope
        // 2 (1 - 3) + lambda = 0, is 4.
        let constraint = Constraint {
            step: 0.1,
            ..bounds(&[("avg_jct_s", 1.0)])
        };
        let config = EvolutionConfig {
            num_pairs: 20,
            sigma: 0.2,
            ..EvolutionConfig::default()
        };
        let (mut at, mut adam, mut multipliers) = (vec![0.0_f32, 2.0], Adam::new(2), vec![0.0]);
        for generation in 0..600_u64 {
            let seed = Seed(3).child("update", generation);
            let of = |member: &Vec<f32>| {
                let (x, y) = (f64::from(member[0]), f64::from(member[1]));
                -((x - 3.0).powi(2) + y.powi(2) + charge(&multipliers, &[x - 1.0]))
            };
            let fitness: Vec<f64> = population(&at, &[1.0; 2], &config, seed).iter().map(of).collect();
            let excess = [f64::from(at[0]) - 1.0];
            let rate = 0.05 - 0.04 * generation as f64 / 599.0;
            adam.step(&mut at, &descent(&fitness, 2, &config, seed), rate);
            multipliers = constraint.stepped(&multipliers, &excess);
        }
        let close = (at[0] - 1.0).abs() < 0.02 && at[1].abs() < 0.02;
        assert!(
            close && (multipliers[0] - 4.0).abs() < 0.1,
            "{at:?} {multipliers:?}"
        );
    }

    #[test]
    fn unknown_metrics_baselines_and_useless_bounds_are_refused_with_their_key() {
        for (constraint, word) in [
            (bounds(&[("jct", 1.0)]), "avg_slowdown"),
            (bounds(&[("p99_jct_s", 0.0)]), "constraint.metrics.p99_jct_s"),
            (
                Constraint {
                    step: 0.0,
                    ..Constraint::default()
                },
                "constraint.step",
            ),
            (
                Constraint {
                    baseline: "sjff".into(),
                    ..Constraint::default()
                },
                "sjff",
            ),
        ] {
            let said = constraint.check().unwrap_err().to_string();
            assert!(said.contains(word), "{said}");
        }
        assert!(bounds(&[("p99_jct_s", 1.05)]).check().is_ok());
    }
}
