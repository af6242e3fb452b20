//! What remains of a job whose estimate is no more than a guess.
//!
//! A run time is believed to be log-logistic: its median is the estimate, and it is as wide as the estimates of the jobs that have
//! ended were off. The *believed cost* of a job that has executed `a` is the inverse of its Gittins index there: the least time, over
//! all quanta, that one expects to spend on it for each time that it ends,
//!
//! `min over d of E[min(T - a, d) | T > a] / P(T - a <= d | T > a)`
//!
//! Where estimates are exact that is the rest, as in shortest remaining time first. Where they are off by a factor of four in the mean
//! (shape 1) it is estimate plus service, so new jobs go by their estimates and old ones by least attained service. A job that has
//! outlived its estimate is then believed to be a long one, not one that is about to end.
//!
//! # Source
//! The Gittins index of a known distribution: Aalto, Ayesta and Righter, Queueing Systems 63 (2009). Log-logistic run times are
//! *assumed*: their hazard first rises and then falls as `1 / t`, as those of jobs do (Harchol-Balter and Downey, TOCS 1997).

use pleach_scheduler::portable_math::{exp, ln};

use super::trust::Trust;

/// ln of the first and of the last age over the estimate in the table.
const LN_AGE_MAX: f64 = 8.0;
/// From one entry to the next, in ln of age over estimate.
const LN_AGE_STEP: f64 = 0.1;
/// Entries of the table.
const NUM_AGES: usize = 161;
/// Shapes are distinguished in such steps, so that tables are made seldom. *Assumed.*
const SHAPE_STEP: f64 = 0.05;
/// The widest belief: quartiles a factor of 81 from the median. *Assumed.*
const SHAPE_MAX: f64 = 4.0;

/// A table of believed costs for an estimate of 1 s.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Belief {
    /// Of the shape, in [`SHAPE_STEP`]s.
    num_steps: u32,
    /// ln of the believed cost, s, by ln of the age.
    ln_costs: Vec<f64>,
}

impl Default for Belief {
    fn default() -> Belief {
        Belief::of_steps(steps_of(Trust::default()))
    }
}

/// The mean absolute logarithm of a log-logistic error is `2 ln 2` times its shape.
fn steps_of(trust: Trust) -> u32 {
    let shape = trust.mean_error() / (2.0 * ln(2.0));
    ((shape.min(SHAPE_MAX) / SHAPE_STEP).round() as u32).max(1)
}

impl Belief {
    /// Believes estimates as far as those of ended jobs were right.
    pub(super) fn look(&mut self, trust: Trust) {
        let num_steps = steps_of(trust);
        if num_steps != self.num_steps {
            *self = Belief::of_steps(num_steps);
        }
    }

    fn of_steps(num_steps: u32) -> Belief {
        let shape = f64::from(num_steps) * SHAPE_STEP;
        let ln_ages: Vec<f64> = (0..NUM_AGES)
            .map(|at| at as f64 * LN_AGE_STEP - LN_AGE_MAX)
            .collect();
        let ages: Vec<f64> = ln_ages.iter().map(|ln_age| exp(*ln_age)).collect();
        let survival: Vec<f64> = ln_ages
            .iter()
            .map(|ln_age| 1.0 / (1.0 + exp(ln_age / shape)))
            .collect();
        let cost = |from: usize| -> f64 {
            // Expected time spent until each later age, by the rule of trapezoids; the sum starts here, or it would round away.
            let (mut spent, mut least) = (0.0, f64::INFINITY);
            for at in from + 1..NUM_AGES {
                spent += (ages[at] - ages[at - 1]) * (survival[at] + survival[at - 1]) / 2.0;
                let ended = survival[from] - survival[at];
                if ended > 0.0 {
                    least = f64::min(least, spent / ended);
                }
            }
            least
        };
        let mut ln_costs: Vec<f64> = (0..NUM_AGES - 1).map(|from| ln(cost(from))).collect();
        // Far out the hazard is 1 / (shape x age).
        ln_costs.push(ln(shape) + LN_AGE_MAX);
        Belief { num_steps, ln_costs }
    }

    /// The believed cost of a job that was estimated at `estimate_s` and has executed `executed_s`, s.
    pub(super) fn cost_s(&self, estimate_s: f64, executed_s: f64) -> f64 {
        let ln_age = ln((executed_s / estimate_s).max(1e-6));
        let place = (ln_age + LN_AGE_MAX) / LN_AGE_STEP;
        let last = NUM_AGES - 1;
        if place >= last as f64 {
            return estimate_s * exp(self.ln_costs[last] + ln_age - LN_AGE_MAX);
        }
        let before = place.max(0.0) as usize;
        let part = place.max(0.0) - before as f64;
        let ln_cost = self.ln_costs[before] + part * (self.ln_costs[before + 1] - self.ln_costs[before]);
        estimate_s * exp(ln_cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trusting(mean_error: f64) -> Belief {
        let trust = Trust {
            num_ended: 1_000_000,
            error: mean_error * 1e6,
        };
        let mut belief = Belief::default();
        belief.look(trust);
        belief
    }

    #[test]
    fn exact_estimates_leave_what_remains() {
        let belief = trusting(0.0);
        for executed_s in [0.0, 100.0, 300.0, 600.0] {
            let cost_s = belief.cost_s(1000.0, executed_s);
            assert!(
                (cost_s / (1000.0 - executed_s) - 1.0).abs() < 0.25,
                "{executed_s}: {cost_s}"
            );
        }
    }

    /// With shape 1 the hazard is 1 / (estimate + age) and falls from the beginning, so the least quantum is best. The table has none
    /// below a step, which adds a twentieth.
    #[test]
    fn where_estimates_are_off_by_a_factor_of_four_the_cost_is_estimate_plus_service() {
        let belief = trusting(2.0 * 2_f64.ln());
        for executed_s in [60.0, 500.0, 1e3, 2e3, 1e4, 1e6, 1e9] {
            let cost_s = belief.cost_s(1000.0, executed_s);
            assert!(
                (cost_s / (1000.0 + executed_s) - 1.0).abs() < 0.06,
                "{executed_s}: {cost_s}"
            );
        }
    }

    /// The slow obvious version: the same integral in steps of a thousandth of the estimate, over all quanta.
    #[test]
    fn the_table_is_the_gittins_index() {
        let shape = 0.8;
        let belief = trusting(shape * 2.0 * 2_f64.ln());
        let survival = |age: f64| 1.0 / (1.0 + age.powf(1.0 / shape));
        for age in [0.01, 0.3, 1.0, 3.0] {
            let (mut spent, mut least) = (0.0, f64::INFINITY);
            let step = 1e-3;
            for number in 0..2_000_000 {
                let at = age + f64::from(number) * step;
                spent += step * (survival(at) + survival(at + step)) / 2.0;
                least = f64::min(least, spent / (survival(age) - survival(at + step)));
            }
            let cost = belief.cost_s(1.0, age);
            assert!((cost / least - 1.0).abs() < 0.05, "{age}: {cost} {least}");
        }
    }

    #[test]
    fn costs_are_finite_and_scale_with_time_whatever_the_trust() {
        for mean_error in [0.0, 0.05, 0.3, 1.0, 3.0, 5.0] {
            let belief = trusting(mean_error);
            for executed_s in [0.0, 1e-3, 1.0, 1e3, 1e6, 1e9] {
                let (one, many) = (
                    belief.cost_s(1.0, executed_s),
                    belief.cost_s(60.0, 60.0 * executed_s),
                );
                assert!(one.is_finite() && one > 0.0, "{mean_error} {executed_s} {one}");
                assert!((many / one / 60.0 - 1.0).abs() < 1e-9);
            }
        }
    }
}
