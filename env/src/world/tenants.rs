//! Time integrals by tenant, for rewards that depend on which tenants wait and which hold GPUs.

use pleach_scheduler::cluster::Cluster;

/// Time integrals of each tenant since they were last taken, `[T]` each, in the order of the cluster's tenants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TenantIntegrals {
    /// Waiting jobs of the tenant x s; over the tenants the sum is [`super::Integrals::waiting_s`].
    pub waiting_s: Vec<f64>,
    /// GPUs that the tenant holds x s; of a shared GPU, its share.
    pub held_gpu_s: Vec<f64>,
}

impl TenantIntegrals {
    /// Nothing gained by `num_tenants` tenants.
    #[must_use]
    pub fn zeros(num_tenants: usize) -> TenantIntegrals {
        TenantIntegrals {
            waiting_s: vec![0.0; num_tenants],
            held_gpu_s: vec![0.0; num_tenants],
        }
    }

    /// As [`TenantIntegrals::zeros`], in the memory that is there.
    pub fn clear(&mut self, num_tenants: usize) {
        for column in [&mut self.waiting_s, &mut self.held_gpu_s] {
            column.clear();
            column.resize(num_tenants, 0.0);
        }
    }

    /// Names and columns in a fixed order.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, &[f64]); 2] {
        [
            ("tenant_waiting_s", &self.waiting_s),
            ("tenant_held_gpu_s", &self.held_gpu_s),
        ]
    }

    /// Adds `dt_s` seconds of the present state. It walks the queue, hence only on request.
    pub(super) fn add(&mut self, cluster: &Cluster, dt_s: f64) {
        for id in cluster.pending() {
            self.waiting_s[cluster.job(id).request.tenant.index()] += dt_s;
        }
        for (held_gpu_s, tenant) in self.held_gpu_s.iter_mut().zip(cluster.tenants()) {
            *held_gpu_s += tenant.used_milli as f64 / 1000.0 * dt_s;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::random::RandomActions;
    use crate::vector::{AutoresetMode, Batch, VectorEnv as _};
    use crate::{EnvConfig, VecEnv};
    use pleach_workloads::Seed;

    #[test]
    fn tenants_add_up_to_all_jobs_and_nothing_is_gained_where_an_episode_begins() {
        for mode in [AutoresetMode::SameStep, AutoresetMode::NextStep] {
            let mut config = EnvConfig::registered("Pleach/HeliosTenants-v1").unwrap();
            config.workload = config.workload.resized(Some(40), Some(1.5));
            config.max_steps = Some(90);
            let mut envs = VecEnv::new(&config, 2, mode).unwrap();
            assert!(envs.by_tenant().all(|one| one.is_none()));
            envs.record_tenants();
            let mut batch = Batch::new(envs.spaces(), 2);
            envs.reset(&[1, 2], &mut batch).unwrap();
            let mut random = RandomActions::new(Seed(3));
            let (mut waited_s, mut num_ends) = ([0.0; 5], 0);
            for _ in 0..300 {
                let actions = random.draw(&batch.mask, envs.spaces().num_candidates);
                envs.step(&actions, &mut batch).unwrap();
                for (index, by_tenant) in envs.by_tenant().enumerate() {
                    let (by_tenant, all) = (by_tenant.unwrap(), batch.gained[index]);
                    let close = |parts: &[f64], whole: f64| {
                        (parts.iter().sum::<f64>() - whole).abs() <= 1e-6 * whole.max(1.0)
                    };
                    assert_eq!(by_tenant.waiting_s.len(), 5);
                    assert!(
                        close(&by_tenant.waiting_s, all.waiting_s),
                        "{by_tenant:?} {all:?}"
                    );
                    assert!(
                        close(&by_tenant.held_gpu_s, all.held_gpu_s),
                        "{by_tenant:?} {all:?}"
                    );
                    for (sum_s, gained_s) in waited_s.iter_mut().zip(&by_tenant.waiting_s) {
                        *sum_s += gained_s;
                    }
                    num_ends += usize::from(batch.truncated[index] || batch.terminated[index]);
                }
            }
            assert!(
                num_ends >= 2 && waited_s.iter().filter(|sum_s| **sum_s > 0.0).count() >= 3,
                "{waited_s:?}"
            );
        }
    }
}
