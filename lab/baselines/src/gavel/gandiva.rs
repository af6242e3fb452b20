//! Gandiva as Gavel's authors run it as a rival: all combinations share the time of all types equally, and once not all jobs
//! have GPUs, jobs of equal gangs are paired at random.
//!
//! The system of the Gandiva paper, for GPUs of one type, is [`Gandiva`](crate::sharing::Gandiva).
//!
//! # Source
//! The policy `gandiva` of the released code (stanford-futuredata/gavel at c4fa400), read for its behaviour.
//!
//! # Deviations
//! Two that cannot share any type are not paired; there they hold each other up until targets are set anew.

use std::collections::BTreeMap;

use pleach_scheduler::JobId;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::snapshot::Snapshot;
use crate::rounds::{JobCombination, Targets};

/// Which jobs share GPUs, and the draws.
#[derive(Clone, Debug)]
pub struct Grouping {
    rng: ChaCha8Rng,
    /// Both directions. A pair lasts while both jobs do and share well enough.
    beside: BTreeMap<JobId, JobId>,
}

impl Default for Grouping {
    fn default() -> Grouping {
        Grouping {
            rng: ChaCha8Rng::from_seed(*b"pleach.planner.gavel-gandiva.v1."),
            beside: BTreeMap::new(),
        }
    }
}

impl Grouping {
    /// What every combination is due. The snapshot has all pairs that can share a type.
    pub(super) fn targets(&mut self, snapshot: &Snapshot) -> Targets {
        let kinds: BTreeMap<JobId, usize> = snapshot.jobs.iter().copied().collect();
        let gang = |job: &JobId| snapshot.kinds[kinds[job]].num_gpus;
        let sum = |a: JobId, b: JobId| -> Option<f64> {
            let (a, b) = (*kinds.get(&a)?, *kinds.get(&b)?);
            let pair = snapshot.pairs.get(&(a.min(b), a.max(b)))?;
            let alone = [a.min(b), a.max(b)].map(|kind| &snapshot.kinds[kind].speed);
            let of_type = |(kind, speeds): (usize, &[f64; 2])| match speeds[0] > 0.0 {
                true => speeds[0] / alone[0][kind] + speeds[1] / alone[1][kind],
                false => 0.0,
            };
            Some(pair.iter().enumerate().map(of_type).sum())
        };
        // The parts of their speeds alone are added up over all types there.
        self.beside
            .retain(|a, b| sum(*a, *b).is_some_and(|sum| sum >= 1.0));
        let wanted: f64 = kinds.keys().map(|job| f64::from(gang(job))).sum();
        let fits = wanted <= snapshot.gpus.iter().sum();
        if !fits {
            let mut free: Vec<JobId> = kinds.keys().copied().collect();
            free.retain(|job| !self.beside.contains_key(job));
            for _ in 0..free.len() {
                if free.len() < 2 {
                    break;
                }
                let a = self.rng.random_range(0..free.len());
                let b = (a + 1 + self.rng.random_range(0..free.len() - 1)) % free.len();
                let pair = [free[a], free[b]];
                if gang(&pair[0]) == gang(&pair[1]) && sum(pair[0], pair[1]).is_some() {
                    free.retain(|job| !pair.contains(job));
                    self.beside.extend([(pair[0], pair[1]), (pair[1], pair[0])]);
                }
            }
        }
        let combination = |job: &JobId| match self.beside.get(job).filter(|_| !fits) {
            Some(beside) => (JobCombination::pair(*job, *beside), gang(job)),
            None => (JobCombination::alone(*job), gang(job)),
        };
        equal_times(&snapshot.gpus, &kinds.keys().map(combination).collect())
    }
}

/// Each combination, with its gang, has of each type the same part of the GPUs, and all of its time at most. `[type]`
#[must_use]
pub fn equal_times(gpus: &[f64], combinations: &BTreeMap<JobCombination, u32>) -> Targets {
    let time = |(combination, gang): (&JobCombination, &u32)| {
        let part = 1.0 / combinations.len() as f64 / f64::from(*gang);
        let sum = (gpus.iter().sum::<f64>() * part).max(1.0);
        (*combination, gpus.iter().map(|gpus| gpus * part / sum).collect())
    };
    combinations.iter().map(time).collect()
}
