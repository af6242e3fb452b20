//! Guards: rules that hold whatever a policy says. No job waits for ever behind better scores, no job is stopped again and again,
//! and no tenant with waiting jobs is kept below its floor while others start.
//!
//! A guard narrows the candidates before the policy chooses among them, at the one place where policies choose
//! (`choice_of` of [`policy`](crate::policy)), so training, evaluation and a daemon obey alike.
//!
//! # What is deliberately not here
//! A promise of a start by some time: when running jobs end is not known. What holds is an order.
//!
//! # Source
//! Ageing against starvation: every text on operating systems. GPUs held back for the first job while others start only if they
//! do not delay it: EASY backfilling (Lifka, JSSPP'95). A bound on preemptions: ours. Floors: the *min share* of Hadoop's Fair
//! Scheduler, from its documentation: pools below theirs come first, the one furthest below before the others.

use serde::{Deserialize, Serialize};

use crate::candidate::{Candidate, CandidateKind, CandidateSet, MAX_CANDIDATES};
use crate::cluster::Cluster;
use crate::ids::{JobId, TenantId};

// A set of candidates is a word of bits.
const _: () = assert!(MAX_CANDIDATES <= u64::BITS as usize);

/// What a policy may not do. None of them = everything is as the policy says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guards {
    /// Time since its submission, s, after which a waiting job is overdue. The first overdue job by arrival that there are
    /// candidates for comes before everything else: it starts where it fits; where it does not, GPUs are held back for it, and
    /// others start only if they do not delay it, as far as is believed. 60 to 1e8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue_after_s: Option<f64>,
    /// A job that was stopped so often is not stopped again. 1 to 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptions_max: Option<u32>,
    /// Share of its quota below which a tenant comes first: of the tenants that hold less, the one that holds the least share, if
    /// there are candidates about its jobs. They start where they fit; where none does, GPUs are held back for one of them. After
    /// what is overdue. Above 0, to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_floor: Option<f64>,
}

impl Guards {
    /// No guards.
    pub const NONE: Guards = Guards {
        overdue_after_s: None,
        preemptions_max: None,
        tenant_floor: None,
    };

    /// Whether there is no guard.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Guards::NONE
    }

    /// Whether a guard of waiting would have this job come first, were it first by arrival.
    #[must_use]
    pub fn is_overdue(&self, cluster: &Cluster, job: JobId) -> bool {
        let waited_s = cluster.job(job).age_s_at(cluster.now());
        self.overdue_after_s.is_some_and(|after_s| waited_s > after_s)
    }

    /// The candidates that are left, a bit each: bit 0 is that of candidate 0.
    #[must_use]
    pub fn allowed(&self, cluster: &Cluster, set: &CandidateSet) -> u64 {
        let mut allowed = u64::MAX;
        if let Some(max) = self.preemptions_max {
            let stopped_too_often =
                |row: &Candidate| set.stops(row).any(|job| cluster.job(job).num_preemptions >= max);
            allowed &= bits(set, |row| !stopped_too_often(row));
        }
        if let Some(job) = self.first_overdue(cluster, set, allowed) {
            return now_if_any(set, bits(set, |row| row.waiting_job() == Some(job)) & allowed);
        }
        match self.first_below_floor(cluster, set, allowed) {
            Some(tenant) => {
                let is_its = |row: &Candidate| {
                    row.waiting_job()
                        .is_some_and(|job| cluster.job(job).request.tenant == tenant)
                };
                now_if_any(set, bits(set, is_its) & allowed)
            }
            None => allowed,
        }
    }

    /// The tenant that is furthest below its floor, of those that some allowed candidate is about; among equals the first. None
    /// where there is only one tenant.
    #[must_use]
    pub fn first_below_floor(&self, cluster: &Cluster, set: &CandidateSet, allowed: u64) -> Option<TenantId> {
        let floor = self.tenant_floor.filter(|_| cluster.tenants().len() > 1)?;
        let offered = set.iter().enumerate().filter_map(|(index, row)| {
            let job = row.waiting_job().filter(|_| allowed >> index & 1 == 1)?;
            let tenant = cluster.job(job).request.tenant;
            let of = &cluster.tenants()[tenant.index()];
            (of.quota_gpus > 0 && of.use_ratio() < floor).then(|| (of.use_ratio(), tenant))
        });
        let least = offered.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        least.map(|(_, tenant)| tenant)
    }

    /// The first overdue job by arrival that some allowed candidate is about.
    #[must_use]
    pub fn first_overdue(&self, cluster: &Cluster, set: &CandidateSet, allowed: u64) -> Option<JobId> {
        self.overdue_after_s?;
        let jobs = set.iter().enumerate().filter_map(|(index, row)| {
            let job = row.waiting_job().filter(|_| allowed >> index & 1 == 1)?;
            self.is_overdue(cluster, job).then_some(job)
        });
        jobs.min_by_key(|job| (cluster.job(*job).submit, job.0))
    }
}

/// Those of some candidates that start a job now, alone on free GPUs: neither beside another job nor later on a better type. All
/// of them where none does.
fn now_if_any(set: &CandidateSet, own: u64) -> u64 {
    let starts = |row: &Candidate| row.kind == CandidateKind::Start && row.partner.is_none();
    match own & bits(set, starts) {
        0 => own,
        now => now,
    }
}

/// The candidates for which something holds, a bit each.
fn bits(set: &CandidateSet, holds: impl Fn(&Candidate) -> bool) -> u64 {
    let rows = set.iter().enumerate();
    rows.fold(0, |bits, (index, row)| bits | u64::from(holds(row)) << index)
}
