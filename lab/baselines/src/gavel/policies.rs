//! What each of Gavel's policies maximises.
//!
//! | policy | programme |
//! |---|---|
//! | LAS | max min `gang x work per second / work per second at equal shares` |
//! | makespan | max min `work per second / remaining work`, whose inverse is the makespan |
//! | finish-time fairness | min max `(age + remaining / speed) / (time alone so far + remaining / speed with 1/n of the cluster)`, by bisection |
//! | FIFO | max sum `speed / fastest speed x place from the end of the queue` |
//! | cost | max sum `speed / fastest speed / price of the gang`, optionally with deadlines |
//! | hierarchical | water-filling over tenants, then their jobs |
//!
//! # Source
//! Gavel (OSDI'20), section 4, and the policies of the released code (stanford-futuredata/gavel at c4fa400), read for what
//! they maximise.
//!
//! # Deviations
//! - An optimum is rarely unique. The released code takes what an interior-point solver ends at; we take, of the optima, one
//!   with the most progress over all jobs.
//! - Makespan is one programme, not a bisection with 5 % tolerance. Those of finish-time fairness:
//!   [`finish_time`](super::finish_time).
//! - Cost counts progress as a part of a job's fastest speed and per GPU of its gang; the released code adds up steps per second,
//!   so that models with small steps come first.
//! - FIFO in the released code hands out types greedily; this is the paper's programme. Jobs so far back that those before
//!   them want twice the cluster are left out and take only what is left over.
//! - Where more jobs differ than `exact_jobs_max`, what they are due is rounded up to 1/32 of its power of two, so that jobs
//!   can be counted together.
//! - No programme solved within its limits: all share equally until the next change.

use std::collections::BTreeMap;

use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::{JobId, TenantId};

use super::config::{Common, CostConfig, HierarchicalConfig, Inside, Weights};
use super::finish_time::{IsolatedTime, Progress, fairest};
use super::max_min::{Due, by_norm, fill, limits};
use super::snapshot::Snapshot;
use super::time_program::{Group, Shares, TimeProgram, group_by};
use crate::rounds::Targets;
use crate::shared::linear_program::Unsolved;

/// A policy and what it must remember.
#[derive(Clone, Debug)]
pub enum Objective {
    /// Least attained service: heterogeneity-aware max-min fairness.
    Las,
    /// Shortest makespan.
    Makespan,
    /// Finish-time fairness.
    FinishTime(IsolatedTime),
    /// In the order of arrival.
    Fifo,
    /// Most progress for the money.
    Cost(CostConfig),
    /// Fair among tenants, then within each.
    Hierarchical(HierarchicalConfig),
}

/// What a programme knows of a job besides its kind.
#[derive(Clone, Copy, Debug)]
struct Work {
    remaining_s: f64,
    /// Time since it came, s.
    age_s: f64,
    tenant: TenantId,
    /// Believed work in all, s of the reference run.
    total_s: f64,
}

/// A policy with its settings.
#[derive(Clone, Debug)]
pub struct GavelPolicy {
    objective: Objective,
    common: Common,
    /// Programmes that were not solved so far.
    pub num_unsolved: usize,
}

impl GavelPolicy {
    /// A policy.
    #[must_use]
    pub fn new(objective: Objective, common: Common) -> GavelPolicy {
        GavelPolicy {
            objective,
            common,
            num_unsolved: 0,
        }
    }

    /// What every active job, alone or in pairs, is due from now on.
    pub fn targets(&mut self, cluster: &Cluster, packed: bool) -> Targets {
        let mut snapshot = Snapshot::of(cluster, packed.then_some(self.common.pack_above));
        if self.common.blind {
            snapshot.forget_types();
        }
        if snapshot.jobs.is_empty() {
            return Targets::new();
        }
        let now = cluster.now();
        let work = |(id, _): &(JobId, usize)| {
            let job = cluster.job(*id);
            Work {
                remaining_s: job.remaining_s_at(now),
                age_s: (now - job.submit).as_secs_f64(),
                tenant: job.request.tenant,
                total_s: job.work_s(),
            }
        };
        let work: Vec<Work> = snapshot.jobs.iter().map(work).collect();
        let solved = match &mut self.objective {
            Objective::Las => las(&snapshot, &self.common),
            Objective::Makespan => makespan(&snapshot, &work, &self.common),
            Objective::FinishTime(isolated) => finish_time(&snapshot, &work, isolated, &self.common),
            Objective::Fifo => fifo(&snapshot, &self.common),
            Objective::Cost(config) => cost(&snapshot, &work, config, &self.common),
            Objective::Hierarchical(config) => {
                let quotas: Vec<u32> = cluster.tenants().iter().map(|tenant| tenant.quota_gpus).collect();
                hierarchical(&snapshot, &work, &quotas, config, &self.common)
            }
        };
        let (groups, shares) = solved.unwrap_or_else(|_| {
            self.num_unsolved += 1;
            let groups = group_by(&snapshot, |_| ());
            let shares = Shares::equal(&snapshot, &groups);
            (groups, shares)
        });
        shares.targets(&snapshot, &groups)
    }
}

/// The groups of jobs, and how much time they spend where.
pub type Solved = Result<(Vec<Group>, Shares), Unsolved>;

/// Norms of least attained service: the work per second at equal shares of a GPU of the gang.
#[must_use]
pub fn las_norms(snapshot: &Snapshot) -> Vec<f64> {
    let jobs = 0..snapshot.jobs.len();
    jobs.map(|job| snapshot.equal_share(job, false) / f64::from(snapshot.kind(job).num_gpus))
        .collect()
}

fn las(snapshot: &Snapshot, common: &Common) -> Solved {
    let (groups, filled) = by_norm(snapshot, &las_norms(snapshot), common)?;
    Ok((groups, filled.shares))
}

fn makespan(snapshot: &Snapshot, work: &[Work], common: &Common) -> Solved {
    let norms: Vec<f64> = work.iter().map(|job| job.remaining_s).collect();
    let (groups, filled) = by_norm(snapshot, &norms, common)?;
    Ok((groups, filled.shares))
}

fn finish_time(snapshot: &Snapshot, work: &[Work], isolated: &mut IsolatedTime, common: &Common) -> Solved {
    let claims = isolated.claims(snapshot, |job| Progress {
        remaining_s: work[job].remaining_s,
        age_s: work[job].age_s,
        total_s: work[job].total_s,
    });
    let found = fairest(snapshot, &claims, common)?;
    Ok((found.groups, found.shares))
}

/// In the order of arrival.
///
/// # Errors
/// Why there is no answer.
pub fn fifo(snapshot: &Snapshot, common: &Common) -> Solved {
    // Those so far back that nothing can be left for them are not asked about.
    let room = 2.0 * snapshot.gpus.iter().sum::<f64>();
    let mut wanted = 0.0;
    let jobs = snapshot.jobs.iter().take_while(|(_, kind)| {
        let before = wanted;
        wanted += f64::from(snapshot.kinds[*kind].num_gpus);
        before < room
    });
    let front = Snapshot {
        jobs: jobs.copied().collect(),
        ..snapshot.clone()
    };
    let groups = group_by(&front, |job| job);
    let mut time = TimeProgram::new(&front, &groups, common.pairs_max);
    for (rank, group) in groups.iter().enumerate() {
        let best = front.kinds[group.kind].speed_max();
        if best > 0.0 {
            time.add_objective(rank, (groups.len() - rank) as f64 / groups.len() as f64 / best);
        }
    }
    let (_, shares) = time.solve(limits(common))?;
    // The jobs of the front are the first of all: their places are the same.
    Ok((groups, shares))
}

fn cost(snapshot: &Snapshot, work: &[Work], config: &CostConfig, common: &Common) -> Solved {
    // The speed at which each job ends in time; 0 where there is no deadline, or it is missed whatever happens.
    let need = |job: usize| {
        let (kind, work) = (snapshot.kind(job), &work[job]);
        let Some(factor) = config.deadline_factor else {
            return 0.0;
        };
        let left_s = factor * work.total_s / kind.speed_max().max(1e-12) - work.age_s;
        let need = work.remaining_s / left_s;
        if left_s > 0.0 && need <= kind.speed_max() {
            need
        } else {
            0.0
        }
    };
    let needs: Vec<f64> = (0..snapshot.jobs.len()).map(need).collect();
    most_progress(snapshot, &needs, &config.prices, common)
}

/// Most progress for the price of the GPUs, each job at least as fast as it needs to be, if all can be. `prices` of the types
/// are 1 where the list ends; `needs` are in work per second, 0 for none. `[type]`, `[job]`
///
/// # Errors
/// Why there is no answer.
pub fn most_progress(snapshot: &Snapshot, needs: &[f64], prices: &[f64], common: &Common) -> Solved {
    let groups = group_by(snapshot, |job| needs[job].to_bits());
    let price = |kind: usize| prices.get(kind).copied().unwrap_or(1.0);
    let mut time = TimeProgram::new(snapshot, &groups, common.pairs_max);
    // Two that share GPUs split the bill.
    time.add_objective_by_type(|kind| 1.0 / price(kind));
    let free = time.clone();
    for (number, group) in groups.iter().enumerate() {
        let need = needs[group.jobs[0]];
        if need > 0.0 {
            let terms = time.throughput(number).iter();
            let terms = terms.map(|(column, speed)| (*column, speed / need)).collect();
            time.program.at_least(terms, 1.0);
        }
    }
    let solved = match time.solve(limits(common)) {
        // Not all jobs can end in time: as in the released code, no deadline counts then.
        Err(Unsolved::Infeasible) => free.solve(limits(common))?,
        other => other?,
    };
    Ok((groups, solved.1))
}

fn hierarchical(
    snapshot: &Snapshot,
    work: &[Work],
    quotas: &[u32],
    config: &HierarchicalConfig,
    common: &Common,
) -> Solved {
    let is_fifo = config.inside == Inside::Fifo;
    let groups = group_by(snapshot, |job| (work[job].tenant, is_fifo.then_some(job)));
    let norms = las_norms(snapshot);
    let norms: Vec<f64> = groups.iter().map(|group| norms[group.jobs[0]]).collect();
    let tenant = |group: &Group| work[group.jobs[0]].tenant;
    let weight = |tenant: TenantId| match config.weights {
        Weights::Quota => f64::from(quotas[tenant.index()].max(1)),
        Weights::Equal => 1.0,
    };
    let rates = |is_full: &[bool]| -> Vec<f64> {
        // Jobs of each tenant that are not full; in order of arrival only the first counts.
        let mut open: BTreeMap<TenantId, (usize, usize)> = BTreeMap::new();
        for (number, group) in groups.iter().enumerate().filter(|(number, _)| !is_full[*number]) {
            let entry = open.entry(tenant(group)).or_insert((number, 0));
            entry.1 += group.jobs.len();
        }
        let rate = |(number, group): (usize, &Group)| {
            let (first, num_open) = open.get(&tenant(group)).copied()?;
            match is_fifo {
                true => (number == first).then(|| weight(tenant(group))),
                false => (!is_full[number]).then(|| weight(tenant(group)) / num_open as f64),
            }
        };
        let rates = groups.iter().enumerate().map(|group| rate(group).unwrap_or(0.0));
        rates.collect()
    };
    let due = Due {
        norms: &norms,
        levels_max: config.levels_max,
        pairs_max: common.pairs_max,
        limits: limits(common),
    };
    let filled = fill(snapshot, &groups, &due, rates)?;
    Ok((groups, filled.shares))
}
