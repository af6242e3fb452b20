//! Finish-time fairness: no job ends much later than with 1/n of the cluster to itself.
//!
//! A job's ratio is `(age + remaining / speed) / (time alone so far + remaining / speed alone)`; the largest of them is to be as
//! small as it can be. For a given ratio each job needs a certain speed, and whether all can have theirs is a max-min
//! programme, so the ratio is found by bisection.
//!
//! # Source
//! Gavel (OSDI'20), section 4.2, and the released code (stanford-futuredata/gavel at c4fa400), read for what it minimises; the
//! metric is that of Themis (NSDI'20).
//!
//! # Deviations
//! - Bisection stops at 0.1 %.
//! - What a job did since the last plan is counted at the speed that it has alone now; the released code takes the speed
//!   of the last plan.

use std::collections::BTreeMap;

use pleach_scheduler::JobId;

use super::config::Common;
use super::max_min::{Filled, by_norm};
use super::snapshot::Snapshot;
use super::time_program::{Group, Shares};
use crate::shared::linear_program::Unsolved;

/// Steps of the bisection at most.
const BISECTIONS_MAX: usize = 24;
/// Where the bisection stops, as a part of the ratio.
const PRECISION: f64 = 1e-3;

/// What a job's ratio is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// What it has still to do, in units of its work.
    pub remaining_s: f64,
    /// Time since it came, s.
    pub age_s: f64,
    /// What all of it takes, with 1/n of the cluster, s.
    pub alone_s: f64,
}

/// How far a job is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// What it has still to do, s of the reference run.
    pub(super) remaining_s: f64,
    /// Time since it came, s.
    pub(super) age_s: f64,
    /// Believed work in all, s of the reference run.
    pub(super) total_s: f64,
}

/// How long each job would have run so far with 1/n of the cluster.
#[derive(Clone, Debug, Default)]
pub struct IsolatedTime {
    /// Time, s, and what remained when it was last counted, s of the reference run.
    by_job: BTreeMap<JobId, (f64, f64)>,
}

impl IsolatedTime {
    /// The claims of the jobs of a snapshot now, from what each has done.
    pub(super) fn claims(&mut self, snapshot: &Snapshot, of: impl Fn(usize) -> Progress) -> Vec<Claim> {
        let mut by_job = BTreeMap::new();
        let mut claims = Vec::new();
        for (job, (id, _)) in snapshot.jobs.iter().enumerate() {
            let Progress {
                remaining_s,
                age_s,
                total_s,
            } = of(job);
            let speed = snapshot.equal_share(job, true).max(1e-12);
            let (so_far_s, before_s) = self.by_job.get(id).copied().unwrap_or((0.0, total_s));
            let so_far_s = so_far_s + (before_s - remaining_s).max(0.0) / speed;
            by_job.insert(*id, (so_far_s, remaining_s));
            claims.push(Claim {
                remaining_s,
                age_s,
                alone_s: so_far_s + remaining_s / speed,
            });
        }
        self.by_job = by_job;
        claims
    }
}

/// Shares under which the largest ratio is least.
#[derive(Clone, Debug)]
pub struct Fairest {
    /// The largest ratio, up to the bisection's precision.
    pub ratio: f64,
    /// Jobs of one kind that need the same speed.
    pub groups: Vec<Group>,
    /// How much time each group spends on each type.
    pub shares: Shares,
}

/// Finds them. `claims` are those of the jobs of the snapshot, in their order.
///
/// # Errors
/// Why there is no answer.
pub fn fairest(snapshot: &Snapshot, claims: &[Claim], common: &Common) -> Result<Fairest, Unsolved> {
    // The work per second that each job needs for a ratio; none where it is too late for that.
    let needs = |ratio: f64| -> Option<Vec<f64>> {
        let needs = claims.iter().map(|claim| {
            let left_s = ratio * claim.alone_s - claim.age_s;
            (left_s > 0.0).then(|| claim.remaining_s / left_s)
        });
        needs.collect()
    };
    let meets = |ratio: f64| -> Result<Option<(Vec<Group>, Filled)>, Unsolved> {
        let Some(needs) = needs(ratio) else {
            return Ok(None);
        };
        let found = by_norm(snapshot, &needs, common)?;
        Ok((found.1.least >= 1.0).then_some(found))
    };
    let too_late = |claim: &Claim| claim.age_s / claim.alone_s;
    let mut low = claims.iter().map(too_late).fold(0.0, f64::max);
    // Isolation gives every job its time alone from now on: no ratio is worse than that of the oldest and slowest job.
    let worst = |claim: &Claim| (claim.age_s + claim.alone_s) / claim.alone_s;
    let mut high = claims.iter().map(worst).fold(1.0, f64::max) * 1.1;
    let mut best = meets(high)?;
    for _ in 0..BISECTIONS_MAX {
        if best.is_none() {
            // Rounding, or a job that runs nowhere now: allow more.
            high *= 2.0;
            best = meets(high)?;
            continue;
        }
        if high - low <= PRECISION * high {
            break;
        }
        let middle = 0.5 * (low + high);
        match meets(middle)? {
            Some(found) => (high, best) = (middle, Some(found)),
            None => low = middle,
        }
    }
    let (groups, filled) = best.ok_or(Unsolved::Infeasible)?;
    Ok(Fairest {
        ratio: high,
        groups,
        shares: filled.shares,
    })
}
