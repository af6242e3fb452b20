//! How much work comes, from which tenants and users, and how many GPUs it would take if no job had to wait.

use std::collections::{BTreeMap, BTreeSet};

use pleach_env::workload::{Workload, num_gpus_by_type};
use pleach_scheduler::Time;
use serde::Serialize;

use super::sizes::gpu_s;
use super::spread::{Concentration, share};

/// Seconds of a day.
const DAY_S: f64 = 86_400.0;

/// A tenant and what it asks for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TenantLoad {
    /// Name.
    pub name: String,
    /// GPUs that are its own.
    pub quota_gpus: u32,
    /// Its jobs.
    pub num_jobs: usize,
    /// Its users, where they are known.
    pub num_users: usize,
    /// Part of all jobs.
    pub jobs: Option<f64>,
    /// Part of all GPU-time.
    pub gpu_time: Option<f64>,
    /// Its GPU-time over what its quota gives between the first and the last submission.
    pub load_on_quota: Option<f64>,
}

/// GPUs held if every job began when it was submitted, on a cluster without end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Unconstrained {
    /// Mean between the first and the last submission, GPUs.
    pub mean_gpus: Option<f64>,
    /// Most, GPUs.
    pub max_gpus: Option<f64>,
    /// Part of that time in which more was asked for than the cluster has.
    pub above_capacity: Option<f64>,
    /// (time s, GPUs) at every change.
    #[serde(skip)]
    pub series: Vec<(f64, f64)>,
}

/// What is asked of a GPU type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeLoad {
    /// Its name.
    pub name: String,
    /// Its GPUs.
    pub num_gpus: u32,
    /// Its part of the load ([`Workload::offered_load_by_type`]).
    pub offered: Option<f64>,
}

/// The load of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Load {
    /// Work over capacity between the first and the last submission.
    pub offered: Option<f64>,
    /// The same of each GPU type; empty where there is one.
    pub by_type: Vec<TypeLoad>,
    /// GPUs, each counted at the mean speed on its type of the jobs that may use it.
    pub capacity_gpus: f64,
    /// (number of the day from time zero, work submitted that day over the capacity of a day).
    pub per_day: Vec<(usize, f64)>,
    /// Largest first.
    pub tenants: Vec<TenantLoad>,
    /// Jobs whose user is known.
    pub num_jobs_with_user: usize,
    /// How unequally GPU-time is shared out among users, over jobs whose user is known.
    pub users_gpu_time: Concentration,
    /// The same for jobs.
    pub users_jobs: Concentration,
    /// How unequally GPU-time is shared out among tenants that submit anything.
    pub tenants_gpu_time: Concentration,
    /// The same for jobs.
    pub tenants_jobs: Concentration,
    /// What it would take for no job to wait.
    pub unconstrained: Unconstrained,
}

impl Load {
    /// The load of a workload.
    #[must_use]
    pub fn of(workload: &Workload) -> Load {
        let capacity_gpus = workload.capacity_gpus();
        let mut days: BTreeMap<usize, f64> = BTreeMap::new();
        let mut users: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        let mut members: BTreeSet<(u16, &str)> = BTreeSet::new();
        let mut tenants = vec![(0_usize, 0.0); workload.cluster.tenants.len()];
        for job in &workload.jobs {
            let work = gpu_s(job);
            let day = (job.submit.as_secs_f64() / DAY_S).floor() as usize;
            *days.entry(day).or_default() += work;
            let tenant = &mut tenants[usize::from(job.tenant)];
            (tenant.0, tenant.1) = (tenant.0 + 1, tenant.1 + work);
            if let Some(user) = &job.user {
                members.insert((job.tenant, user));
                let sums = users.entry(user).or_default();
                (sums.0, sums.1) = (sums.0 + 1.0, sums.1 + work);
            }
        }
        let submitting = || tenants.iter().filter(|tenant| tenant.0 > 0);
        let first_day = days.keys().next().copied().unwrap_or(0);
        let last_day = days.keys().next_back().copied();
        let num_days = last_day.map_or(0, |last| (last - first_day + 1).min(10_000));
        let per_day = (first_day..first_day + num_days).map(|day| {
            let work = days.get(&day).copied().unwrap_or(0.0);
            (day, work / (capacity_gpus * DAY_S))
        });
        Load {
            offered: Some(workload.offered_load())
                .filter(|load| load.is_finite() && !workload.jobs.is_empty()),
            by_type: by_type(workload),
            capacity_gpus,
            per_day: per_day.collect(),
            num_jobs_with_user: workload.jobs.iter().filter(|job| job.user.is_some()).count(),
            users_gpu_time: Concentration::of(users.values().map(|sums| sums.1)),
            users_jobs: Concentration::of(users.values().map(|sums| sums.0)),
            tenants_gpu_time: Concentration::of(submitting().map(|tenant| tenant.1)),
            tenants_jobs: Concentration::of(submitting().map(|tenant| tenant.0 as f64)),
            tenants: tenant_loads(workload, &tenants, &members),
            unconstrained: Unconstrained::of(workload, capacity_gpus),
        }
    }
}

/// What is asked of each GPU type; nothing of the only one.
#[must_use]
pub fn by_type(workload: &Workload) -> Vec<TypeLoad> {
    let kinds = workload.cluster.gpu_types.iter();
    let num_gpus = num_gpus_by_type(&workload.cluster);
    let loads = workload.offered_load_by_type();
    let all = kinds
        .zip(num_gpus)
        .zip(loads)
        .map(|((kind, num_gpus), load)| TypeLoad {
            name: kind.name.clone(),
            num_gpus,
            offered: Some(load).filter(|load| load.is_finite()),
        });
    let all: Vec<TypeLoad> = all.filter(|of| of.num_gpus > 0).collect();
    if all.len() < 2 { Vec::new() } else { all }
}

fn tenant_loads(
    workload: &Workload,
    sums: &[(usize, f64)],
    members: &BTreeSet<(u16, &str)>,
) -> Vec<TenantLoad> {
    let (num_jobs, work) = (workload.jobs.len() as f64, workload.demand_gpu_s());
    let span_s = workload.arrival_span_s();
    let specs = workload.cluster.tenants.iter().zip(sums).enumerate();
    let mut rows: Vec<TenantLoad> = specs
        .map(|(number, (spec, (jobs, gpu_s)))| TenantLoad {
            name: spec.name.clone(),
            quota_gpus: spec.quota_gpus,
            num_jobs: *jobs,
            num_users: members
                .iter()
                .filter(|(tenant, _)| usize::from(*tenant) == number)
                .count(),
            jobs: share(*jobs as f64, num_jobs),
            gpu_time: share(*gpu_s, work),
            load_on_quota: share(*gpu_s, f64::from(spec.quota_gpus) * span_s),
        })
        .collect();
    let key = |row: &TenantLoad| row.gpu_time.unwrap_or(0.0);
    rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
    rows
}

impl Unconstrained {
    fn of(workload: &Workload, capacity_gpus: f64) -> Unconstrained {
        let mut changes: Vec<(Time, i64)> = Vec::with_capacity(2 * workload.jobs.len());
        for job in &workload.jobs {
            let gpus = i64::from(job.num_gpus);
            changes.push((job.submit, gpus));
            changes.push((job.submit + Time::from_secs_f64(job.run_time_s), -gpus));
        }
        changes.sort_unstable();
        let Some(last) = workload.jobs.last().map(|job| job.submit) else {
            return Unconstrained::default();
        };
        let (mut held, mut series) = (0_i64, Vec::new());
        for (position, (time, change)) in changes.iter().enumerate() {
            held += change;
            if changes.get(position + 1).is_none_or(|next| next.0 > *time) {
                series.push((time.as_secs_f64(), held as f64));
            }
        }
        let (mut area, mut above_s, last_s) = (0.0, 0.0, last.as_secs_f64());
        for pair in series.windows(2).filter(|pair| pair[0].0 < last_s) {
            let span_s = pair[1].0.min(last_s) - pair[0].0;
            area += pair[0].1 * span_s;
            above_s += if pair[0].1 > capacity_gpus { span_s } else { 0.0 };
        }
        let span_s = workload.arrival_span_s();
        Unconstrained {
            mean_gpus: share(area, span_s),
            max_gpus: series.iter().map(|point| point.1).max_by(f64::total_cmp),
            above_capacity: share(above_s, span_s),
            series,
        }
    }
}
