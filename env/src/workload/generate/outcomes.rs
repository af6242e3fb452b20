//! How jobs end, where the source says: by shares, or by shares that lean on how long the job ran.

use rand::Rng;

use super::pick;
use crate::workload::Outcome;

/// One way to end and how long the jobs run that end so.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub outcome: Outcome,
    /// Mean of the normal score of the run time (0 = an ordinary job of its gang size, 1 = one standard deviation of
    /// the logarithm longer).
    pub score_mean: f64,
    /// Standard deviation of that score, above 0.
    pub score_sigma: f64,
}

/// How the jobs of a kind end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcomes {
    /// The source does not say.
    Unknown,
    /// Shares of killed and failed jobs, whatever their run time; the rest completed.
    Shares { killed: f64, failed: f64 },
    /// Shares of each end over all run times; at one run time they follow Bayes' rule.
    Leaning {
        ends: &'static [End],
        shares: &'static [f64],
    },
}

impl Outcomes {
    /// The end of a job whose run time has normal score `z` among those of its kind.
    pub(super) fn draw(self, z: f64, rng: &mut impl Rng) -> Outcome {
        match self {
            Outcomes::Unknown => Outcome::Unknown,
            Outcomes::Shares { killed, failed } => {
                let share = super::unit(rng);
                if share < killed {
                    Outcome::Killed
                } else if share < killed + failed {
                    Outcome::Failed
                } else {
                    Outcome::Completed
                }
            }
            Outcomes::Leaning { ends, shares } => {
                let weight = |(end, share): (&End, &f64)| {
                    let distance = (z - end.score_mean) / end.score_sigma;
                    share * (-0.5 * distance * distance).exp() / end.score_sigma
                };
                let weights: Vec<f64> = ends.iter().zip(shares).map(weight).collect();
                ends[pick(&weights, rng)].outcome
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    #[test]
    fn ends_that_lean_on_the_run_time_follow_bayes() {
        // Failed jobs one standard deviation shorter than completed ones, equally many. At score 0 the densities are
        // equal but for distance: completed at 0.5 and failed at -0.5 are equally likely; at score 1 the odds are
        // exp(-(0.5^2) / 2) / exp(-(1.5^2) / 2) = e : 1, so 0.731 completed.
        const ENDS: [End; 2] = [
            End {
                outcome: Outcome::Completed,
                score_mean: 0.5,
                score_sigma: 1.0,
            },
            End {
                outcome: Outcome::Failed,
                score_mean: -0.5,
                score_sigma: 1.0,
            },
        ];
        let law = Outcomes::Leaning {
            ends: &ENDS,
            shares: &[0.5, 0.5],
        };
        let mut rng = Seed(1).stream("test", 0);
        for (z, share) in [(0.0, 0.5), (1.0, 0.731)] {
            let completed = (0..20_000).filter(|_| law.draw(z, &mut rng) == Outcome::Completed);
            let found = completed.count() as f64 / 20_000.0;
            assert!((found - share).abs() < 0.015, "{z} {found}");
        }
    }
}
