//! Dominant resource fairness: the tenant with the smallest dominant share, its share of the resource of which it holds
//! most, goes next.
//!
//! Progressive filling: the tenant with the least dominant share over GPUs, CPU and host memory starts its oldest job that
//! fits, until no tenant's job fits. Running jobs are never stopped.
//!
//! # Source
//! Ghodsi et al., Dominant Resource Fairness (NSDI'11), algorithm 1 and, for weights, section 4.3.
//!
//! # Deviations
//! - The paper's algorithm ends at the first task that does not fit. With gangs that would leave GPUs idle, so the tenant's
//!   next job is tried, and then the next tenant.
//! - CPU and memory count as they are granted: a job that reserves none holds none.

use std::cmp::Ordering;

use pleach_scheduler::cluster::{Cluster, Demand, JobState};
use pleach_scheduler::{ConfigError, JobId, Planner, PolicyError};
use serde::{Deserialize, Serialize};

use crate::shared::allocate_by_priority::tightest;

/// Settings of [`Drf`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DrfConfig {
    /// What a share is divided by before tenants are compared.
    pub weights: Weights,
}

/// What tenants are entitled to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// All the same.
    #[default]
    Equal,
    /// As their quotas; a tenant without one counts as having one GPU.
    Quota,
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Drf {
    config: DrfConfig,
}

/// GPUs, CPU and memory, in thousandths and MiB.
type Amounts = [f64; 3];

impl Drf {
    /// # Errors
    /// None at present: every setting is a word.
    pub fn new(config: DrfConfig) -> Result<Drf, ConfigError> {
        Ok(Drf { config })
    }

    /// The part of a resource that a tenant holds, for the resource of which it holds most, over its weight.
    fn dominant_share(&self, cluster: &Cluster, tenant: usize, held: Amounts, all: Amounts) -> f64 {
        let parts = held.iter().zip(all).filter(|(_, all)| *all > 0.0);
        let share = parts.map(|(held, all)| held / all).fold(0.0, f64::max);
        match self.config.weights {
            Weights::Equal => share,
            Weights::Quota => share / f64::from(cluster.tenants()[tenant].quota_gpus.max(1)),
        }
    }
}

/// What a job holds while it runs, or would if it ran.
fn amounts(cluster: &Cluster, id: JobId) -> Amounts {
    let job = cluster.job(id);
    let (shape, num_gpus) = match job.state {
        JobState::Running => (cluster.shape(job.granted), job.num_held),
        _ => (cluster.shape(job.shape), job.request.num_gpus),
    };
    [u32::from(shape.gpu_milli), shape.cpu_milli, shape.memory_mib]
        .map(|each| f64::from(each) * f64::from(num_gpus))
}

fn capacity(cluster: &Cluster) -> Amounts {
    let mut all = [0.0; 3];
    for node in cluster.nodes() {
        let node = [node.num_gpus * 1000, node.cpu_milli, node.memory_mib];
        for (all, node) in all.iter_mut().zip(node) {
            *all += f64::from(node);
        }
    }
    all
}

fn add(into: &mut Amounts, other: Amounts) {
    for (part, other) in into.iter_mut().zip(other) {
        *part += other;
    }
}

impl Planner for Drf {
    fn name(&self) -> &str {
        "drf"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        if cluster.num_pending() == 0 {
            return Ok(());
        }
        let num_tenants = cluster.tenants().len();
        let all = capacity(cluster);
        let mut held: Vec<Amounts> = vec![[0.0; 3]; num_tenants];
        for id in cluster.running() {
            let tenant = cluster.job(id).request.tenant.index();
            add(&mut held[tenant], amounts(cluster, id));
        }
        // Oldest last, so that the next one is popped.
        let mut waiting: Vec<Vec<JobId>> = vec![Vec::new(); num_tenants];
        let mut pending: Vec<JobId> = cluster.pending().collect();
        pending.sort_unstable();
        for id in pending.into_iter().rev() {
            waiting[cluster.job(id).request.tenant.index()].push(id);
        }
        // Nothing is given back while we allocate, so what did not fit once does not fit later.
        let mut too_large: Vec<Demand> = Vec::new();
        let mut slices = Vec::new();
        loop {
            let share = |tenant: &usize| self.dominant_share(cluster, *tenant, held[*tenant], all);
            let by_share = |a: &usize, b: &usize| -> Ordering { share(a).total_cmp(&share(b)) };
            let with_jobs = (0..num_tenants).filter(|tenant| !waiting[*tenant].is_empty());
            let Some(tenant) = with_jobs.min_by(by_share) else {
                return Ok(());
            };
            while let Some(id) = waiting[tenant].pop() {
                let demand = cluster.demand(id);
                if too_large.contains(&demand) {
                    continue;
                }
                if let Some(placement) = tightest(cluster, id, &mut slices) {
                    add(&mut held[tenant], amounts(cluster, id));
                    cluster.start(id, placement);
                    break;
                }
                too_large.push(demand);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_clusters::running;
    use pleach_scheduler::TenantId;
    use pleach_scheduler::cluster::{Capabilities, Submission};
    use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass, Resources, TenantSpec};
    use pleach_scheduler::{ClassId, Estimate, Provenance, Time};

    /// One node of 64 GPUs, 9 cores and 18 GiB, and two tenants: the paper's example with more GPUs than the jobs need.
    fn example(quotas: [u32; 2]) -> Cluster {
        let mut spec = ClusterSpec::uniform(1, 64, 1);
        (spec.node_groups[0].cpu_cores, spec.node_groups[0].memory_gib) = (9.0, 18.0);
        spec.tenants = ["A", "B"]
            .iter()
            .zip(quotas)
            .map(|(name, quota_gpus)| TenantSpec {
                name: (*name).into(),
                quota_gpus,
            })
            .collect();
        Cluster::new(&spec, &[ModelClass::default()], Capabilities::DEFAULT).unwrap()
    }

    fn submit(cluster: &mut Cluster, tenant: u16, cpu_cores: f64, memory_gib: f64) -> JobId {
        let request = Submission {
            tenant: TenantId(tenant),
            class: ClassId(0),
            num_gpus: 1,
            estimate_s: Estimate {
                value: 100.0,
                provenance: Provenance::Oracle,
            },
            resources: Resources {
                cpu_cores,
                memory_gib,
                ..Resources::WHOLE_GPU
            },
        };
        cluster.submit(request).unwrap()
    }

    fn plan(cluster: &mut Cluster, weights: Weights) {
        let mut drf = Drf::new(DrfConfig { weights }).unwrap();
        drf.plan(cluster).unwrap();
        cluster.check();
    }

    #[test]
    fn the_papers_example_of_nine_cores_and_18_gb() {
        // Section 4.1: 9 cores, 18 GB; A's tasks take (1 core, 4 GB), B's (3 cores, 1 GB). DRF gives A three tasks and B two:
        // both have two thirds of what is dominant for them, A of memory (12 of 18), B of cores (6 of 9).
        let mut cluster = example([32, 32]);
        for _ in 0..6 {
            submit(&mut cluster, 0, 1.0, 4.0);
        }
        for _ in 0..6 {
            submit(&mut cluster, 1, 3.0, 1.0);
        }
        plan(&mut cluster, Weights::Equal);
        assert_eq!(running(&cluster), [0, 1, 2, 6, 7]);
    }

    #[test]
    fn what_ends_goes_to_whoever_then_holds_least() {
        // A task of B ends: B holds a third of the cores, A two thirds of the memory, so B's next one starts.
        let mut cluster = example([32, 32]);
        for _ in 0..6 {
            submit(&mut cluster, 0, 1.0, 4.0);
            submit(&mut cluster, 1, 3.0, 1.0);
        }
        plan(&mut cluster, Weights::Equal);
        assert_eq!(running(&cluster), [0, 1, 2, 3, 4]);
        cluster.advance(Time::from_secs_f64(10.0));
        cluster.finish(JobId(1));
        plan(&mut cluster, Weights::Equal);
        assert_eq!(running(&cluster), [0, 2, 3, 4, 5]);
    }

    #[test]
    fn weights_shift_the_shares() {
        // B is entitled to three times as much. One by one: A (2/9 of memory; weighted 2/9), B (3/9; weighted 1/9), B (6/9;
        // 2/9; tie to A), A (4/9), B (9/9: all cores; A's next has no core).
        let mut cluster = example([1, 3]);
        for _ in 0..6 {
            submit(&mut cluster, 0, 0.0, 4.0);
        }
        for _ in 0..6 {
            submit(&mut cluster, 1, 3.0, 1.0);
        }
        plan(&mut cluster, Weights::Quota);
        // A's tasks take no cores here, so that after B has all nine A goes on until 18 GiB are full: 3 x 1 + 3 x 4 = 15.
        assert_eq!(running(&cluster), [0, 1, 2, 6, 7, 8]);
    }

    #[test]
    fn on_a_cluster_of_gpus_only_it_is_max_min_fairness_over_gpus() {
        let mut spec = ClusterSpec::uniform(1, 8, 1);
        spec.tenants = ["A", "B"]
            .map(|name| TenantSpec {
                name: name.into(),
                quota_gpus: 4,
            })
            .to_vec();
        let mut cluster = Cluster::new(&spec, &[ModelClass::default()], Capabilities::DEFAULT).unwrap();
        // A asks for pairs, B for single GPUs: four GPUs each.
        for _ in 0..8 {
            crate::test_clusters::submit_for(&mut cluster, 0, 2, 100.0);
            crate::test_clusters::submit_for(&mut cluster, 1, 1, 100.0);
        }
        plan(&mut cluster, Weights::Equal);
        let held = [0, 1].map(|tenant| cluster.tenants()[tenant].used_milli);
        assert_eq!(held, [4000, 4000]);
    }
}
