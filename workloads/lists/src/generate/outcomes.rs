//! How jobs end, where the source says: by shares, or by shares that lean on how long the job ran.

use rand::Rng;
use serde::Deserialize;

use super::quantiles::is_rising;
use super::{pick, unit};
use crate::Outcome;

/// Shares of ways to end by how long the jobs run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndsByLevel {
    /// The ways to end; two may mean the same outcome.
    pub ends: [Outcome; 4],
    /// Their shares among all jobs.
    pub all: [f64; 4],
    /// (level of the run time among jobs of the same gang size, rising to 1; shares of the ends up to it).
    pub rows: Vec<(f64, [f64; 4])>,
}

impl EndsByLevel {
    /// Whether levels rise to 1 and nothing is below 0.
    pub(super) fn is_right(&self) -> bool {
        let levels: Vec<f64> = self.rows.iter().map(|(level, _)| *level).collect();
        is_rising(&levels)
            && self.all.iter().all(|share| *share > 0.0)
            && self
                .rows
                .iter()
                .all(|(_, shares)| shares.iter().all(|share| (0.0..=1.0).contains(share)))
    }
}

/// How jobs of a gang end, as profiles say it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Ends {
    /// Shares of killed and failed jobs; the rest completed.
    Shares { killed: f64, failed: f64 },
    /// Shares of each end, which lean on the run time.
    Leaning([f64; 4]),
}

/// How the jobs of a kind end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcomes<'a> {
    /// The source does not say.
    Unknown,
    /// Shares of killed and failed jobs, whatever their run time; the rest completed.
    Shares { killed: f64, failed: f64 },
    /// Shares of each end among the jobs of the kind; each leans on the run time as it does among all jobs.
    Leaning {
        shares: &'a [f64; 4],
        by_level: &'a EndsByLevel,
    },
}

impl Outcomes<'_> {
    /// The end of a job whose run time is at this level (0 to 1) of those of its kind.
    pub(super) fn draw(self, level: f64, rng: &mut impl Rng) -> Outcome {
        match self {
            Outcomes::Unknown => Outcome::Unknown,
            Outcomes::Shares { killed, failed } => {
                let share = unit(rng);
                if share < killed {
                    Outcome::Killed
                } else if share < killed + failed {
                    Outcome::Failed
                } else {
                    Outcome::Completed
                }
            }
            Outcomes::Leaning { shares, by_level } => {
                let row = by_level.rows.iter().find(|(up_to, _)| level <= *up_to);
                let (_, here) = row.unwrap_or(&by_level.rows[by_level.rows.len() - 1]);
                let weight = |end: usize| shares[end] * here[end] / by_level.all[end];
                by_level.ends[pick(&[0, 1, 2, 3].map(weight), rng)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    #[test]
    fn ends_lean_on_the_run_time_as_among_all_jobs() {
        // Among all jobs half complete, a quarter each is killed and fails; of the short half a half fails and a quarter
        // completes, of the long half a quarter is killed and three quarters complete. For a kind of which 0.2 complete,
        // 0.4 are killed and 0.4 fail, the short half has weights 0.2 x 0.5, 0.4 x 1, 0.4 x 2: completed 0.1 / 1.3.
        let law: EndsByLevel = EndsByLevel {
            ends: [
                Outcome::Completed,
                Outcome::Killed,
                Outcome::Failed,
                Outcome::Failed,
            ],
            all: [0.5, 0.25, 0.25, 1.0],
            rows: vec![(0.5, [0.25, 0.25, 0.5, 0.0]), (1.0, [0.75, 0.25, 0.0, 0.0])],
        };
        let outcomes = Outcomes::Leaning {
            shares: &[0.2, 0.4, 0.4, 0.0],
            by_level: &law,
        };
        let mut rng = Seed(1).stream("test", 0);
        let mut share = |level: f64, outcome: Outcome| {
            let found = (0..20_000).filter(|_| outcomes.draw(level, &mut rng) == outcome);
            found.count() as f64 / 20_000.0
        };
        assert!((share(0.3, Outcome::Completed) - 0.1 / 1.3).abs() < 0.01);
        // The long half: 0.2 x 1.5 to 0.4 x 1, nothing fails.
        assert!((share(0.7, Outcome::Killed) - 0.4 / 0.7).abs() < 0.015);
        assert_eq!(share(0.7, Outcome::Failed), 0.0);
    }
}
