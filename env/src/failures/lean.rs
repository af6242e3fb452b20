//! Which jobs of a list end how: the odds of an end lean on the run time, and each end keeps its share of every gang size.
//!
//! For job i of a row of the model, with run time t and the row's shares s:
//!
//! ```text
//! P(killed)       = c_k s_k t^killed       / (s_p + c_k s_k t^killed + c_u s_u t^unsuccessful)
//! P(unsuccessful) = c_u s_u t^unsuccessful / (the same)
//! ```
//!
//! where c_k and c_u are such that the means over the row's jobs are s_k and s_u. They are found by scaling one end after the other,
//! which converges for positive weights (Sinkhorn and Knopp, Pacific J. Math. 1967). Powers of 0 leave the shares as they are.

use pleach_scheduler::Problem;
use pleach_scheduler::portable_math::exp;
use pleach_scheduler::settings;
use pleach_scheduler::settings::Settings as _;

/// Most rounds of scaling. *Assumed*: shares are met to 1e-9 within some dozen.
const ROUNDS_MAX: usize = 200;
/// How close the mean chances come to the shares.
const SLACK: f64 = 1e-9;
/// Largest power either way. *Assumed*: with 4 the odds of a job that is twice as long are sixteen times as large.
const POWER_MAX: f64 = 4.0;

settings! {
    /// By which powers of the run time the odds of an end, over those to pass, grow.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Lean {
        /// Of being killed, [-4, 4].
        pub killed: f64, in -POWER_MAX..=POWER_MAX;
        /// Of ending unsuccessful, [-4, 4].
        pub unsuccessful: f64, in -POWER_MAX..=POWER_MAX;
    }
}

impl Lean {
    /// How a job ends has nothing to do with its run time.
    pub(super) fn is_none(&self) -> bool {
        *self == Lean::default()
    }

    /// Checks ranges.
    ///
    /// # Errors
    /// The first power that is out of its range.
    pub(super) fn validate(&self) -> Result<(), Problem> {
        self.check_at("outcomes.lean", "0 = whatever the run time")
    }
}

/// How likely a job is to end otherwise than by passing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Chances {
    /// That its user kills it.
    pub(crate) killed: f64,
    /// That it is given up.
    pub(crate) unsuccessful: f64,
}

/// The chances of the jobs of a row, of which `shares` are killed and unsuccessful, from the logarithms of their run times.
pub(super) fn leaning(shares: [f64; 2], lean: Lean, jobs: &[(usize, f64)]) -> Vec<Chances> {
    let num_jobs = jobs.len().max(1) as f64;
    let passed = 1.0 - shares[0] - shares[1];
    let middle = jobs.iter().map(|(_, log)| log).sum::<f64>() / num_jobs;
    let weights = jobs.iter().map(|(_, log)| {
        let weight = |power: f64, share: f64| share * exp(power * (log - middle));
        [
            weight(lean.killed, shares[0]),
            weight(lean.unsuccessful, shares[1]),
        ]
    });
    let weights: Vec<[f64; 2]> = weights.collect();
    let mut scales = [1.0, 1.0];
    let of = |weights: &[f64; 2], scales: &[f64; 2]| -> [f64; 2] {
        let scaled = [weights[0] * scales[0], weights[1] * scales[1]];
        let sum = (passed + scaled[0] + scaled[1]).max(f64::MIN_POSITIVE);
        scaled.map(|weight| weight / sum)
    };
    for _ in 0..ROUNDS_MAX {
        let mut means = [0.0, 0.0];
        for weights in &weights {
            let here = of(weights, &scales);
            means[0] += here[0] / num_jobs;
            means[1] += here[1] / num_jobs;
        }
        if (0..2).all(|end| (means[end] - shares[end]).abs() <= SLACK) {
            break;
        }
        for end in 0..2 {
            if means[end] > 0.0 {
                scales[end] *= shares[end] / means[end];
            }
        }
    }
    let chances = weights.iter().map(|weights| of(weights, &scales));
    chances
        .map(|[killed, unsuccessful]| Chances { killed, unsuccessful })
        .collect()
}
