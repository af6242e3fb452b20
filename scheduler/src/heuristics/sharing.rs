//! Shortest job first, beside a running job where that beats waiting for it.
//!
//! # Source
//! The pair test is that of SJF-BSBF (WiseShare, IWQoS'24): for two jobs of which one runs, the mean JCT is linear in the
//! time at which the other joins, so the best start is *now* or *never*. With solo rests `E_A` (newcomer), `E_B`
//! (running) and rests beside each other `S_A`, `S_B` (`S = E` over the speed of the pair):
//!
//! ```text
//! share = E_A / 2 + (1 - speed_A / 2) S_B   if S_A >= S_B      (the running job leaves first)
//!         E_B / 2 + (1 - speed_B / 2) S_A   otherwise
//! wait  = E_B + E_A / 2
//! ```
//!
//! Deviations: the partner is the one with which both get most done, on exactly its GPUs (the paper gathers GPUs of several
//! partners); no sub-batches.

use super::rank::{rank, under};
use crate::candidate::{Candidate, CandidateKind};
use crate::cluster::{Cluster, Template};
use crate::error::PolicyError;
use crate::ids::JobId;
use crate::lens::{Lens, LensSet};
use crate::policy::{DecisionPoint, Needs, Policy};

/// Shortest job first; who does not fit goes beside a running job where the pair test says so.
#[derive(Clone, Copy, Debug, Default)]
pub struct SjfShare;

/// Shortest jobs that are looked at for a place beside another.
const HEADS: usize = 4;

impl Policy for SjfShare {
    fn name(&self) -> &str {
        "sjf-share"
    }

    fn needs(&self) -> Needs {
        Needs {
            heads: HEADS,
            templates: &[Template::Fastest, Template::Beside],
            ..Needs::first_fitting(LensSet::of(Lens::Shortest))
        }
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        rank(&point, scores, |candidate, job| {
            match (candidate.kind, candidate.partner) {
                (CandidateKind::Start, None) => under(point.cluster, Lens::Shortest, 0, job),
                (CandidateKind::Start, Some(partner))
                    if beats_waiting(point.cluster, candidate, job, partner) =>
                {
                    under(point.cluster, Lens::Shortest, 1, job)
                }
                _ => None,
            }
        });
        Ok(())
    }
}

/// Whether a newcomer and its partner finish earlier on average if they share now.
fn beats_waiting(cluster: &Cluster, candidate: &Candidate, job: JobId, partner: JobId) -> bool {
    let Some(facts) = candidate.facts else {
        return false;
    };
    let (now, running) = (cluster.now(), cluster.job(partner));
    let speed_a = cluster.packed_speed(job, &[partner], facts.gpu_type);
    let speed_b = cluster.packed_speed(partner, &[job], facts.gpu_type);
    let alone_a_s = cluster.job(job).remaining_s_at(now) / (facts.rate / speed_a);
    let alone_b_s = running.remaining_s_at(now) / running.rate_alone;
    pair_shares(alone_a_s, alone_b_s, speed_a, speed_b)
}

/// The pair test: solo rests of the newcomer and of the running job, s, and their speeds beside each other.
fn pair_shares(alone_a_s: f64, alone_b_s: f64, speed_a: f64, speed_b: f64) -> bool {
    let (beside_a_s, beside_b_s) = (alone_a_s / speed_a, alone_b_s / speed_b);
    let share_s = if beside_a_s >= beside_b_s {
        alone_a_s / 2.0 + (1.0 - speed_a / 2.0) * beside_b_s
    } else {
        alone_b_s / 2.0 + (1.0 - speed_b / 2.0) * beside_a_s
    };
    share_s < alone_b_s + alone_a_s / 2.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_jobs_share_exactly_while_each_slows_the_other_by_less_than_half() {
        assert!(pair_shares(100.0, 100.0, 1.0 / 1.49, 1.0 / 1.49));
        assert!(!pair_shares(100.0, 100.0, 1.0 / 1.51, 1.0 / 1.51));
    }

    proptest! {
        #[test]
        fn the_pair_test_is_the_mean_of_the_two_finishes(
            a in 1.0_f64..1000.0, b in 1.0_f64..1000.0, u in 0.2_f64..1.0, v in 0.2_f64..1.0,
        ) {
            // Simulated: both run at their pair speeds until the first is done, then the other alone.
            let (end_a, end_b) = (a / u, b / v);
            let (finish_a, finish_b) = if end_a >= end_b {
                (end_b + (a - end_b * u), end_b)
            } else {
                (end_a, end_a + (b - end_a * v))
            };
            let (share, wait) = (f64::midpoint(finish_a, finish_b), f64::midpoint(b + a, b));
            prop_assume!((share - wait).abs() > 1e-6);
            prop_assert_eq!(pair_shares(a, b, u, v), share < wait);
        }
    }
}
