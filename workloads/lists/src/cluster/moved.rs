//! The same jobs on another cluster.

use pleach_scheduler::cluster_spec::{ClusterSpec, TenantSpec};

use crate::import::share_out;
use crate::{Error, Workload, config};

impl Workload {
    /// The same jobs on another cluster. A single tenant that owns it all makes way for the tenants of the jobs. They share the
    /// new cluster as they shared their own. A class keeps its speeds by the names of GPU types; where no name of the new cluster
    /// is known, by their places if there are as many types. A class with the same speed on all types keeps it.
    ///
    /// # Errors
    /// Jobs that cannot run there, speeds that are known on some of its types alone.
    pub fn on_cluster(mut self, cluster: ClusterSpec) -> Result<Workload, Error> {
        let before = std::mem::replace(&mut self.cluster, cluster);
        let cluster = &mut self.cluster;
        *cluster = cluster.clone().with_site_of(&before);
        let is_needed = self.jobs.iter().any(|job| job.tenant > 0);
        if cluster.tenants.len() == 1 && is_needed {
            let shares: Vec<f64> = before
                .tenants
                .iter()
                .map(|tenant| f64::from(tenant.quota_gpus))
                .collect();
            let quotas = share_out(&shares, u32::try_from(cluster.num_gpus()).unwrap_or(u32::MAX));
            let tenants = before.tenants.iter().zip(quotas);
            let shared = tenants.map(|(tenant, quota_gpus)| TenantSpec {
                name: tenant.name.clone(),
                quota_gpus,
            });
            cluster.tenants = shared.collect();
        }
        let place = |name: &str| before.gpu_types.iter().position(|gpu| gpu.name == name);
        let places: Option<Vec<usize>> = cluster.gpu_types.iter().map(|gpu| place(&gpu.name)).collect();
        let known = cluster.gpu_types.iter().find(|gpu| place(&gpu.name).is_some());
        for class in &mut self.classes {
            let first = class.speed.first().copied().unwrap_or(1.0);
            if let Some(places) = &places {
                class.speed = places.iter().map(|place| class.speed[*place]).collect();
            } else if class.speed.iter().all(|speed| *speed == first) {
                class.speed = vec![first; cluster.gpu_types.len()];
            } else if let Some(gpu) = known {
                let names: Vec<&str> = before.gpu_types.iter().map(|gpu| gpu.name.as_str()).collect();
                let value = format!("{} and types that class {} has no speed on", gpu.name, class.name);
                let hint = "name all types as the list does, or all of them otherwise";
                return Err(config("cluster", value, &names.join(", "), hint));
            }
        }
        self.validate()?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use crate::cluster::of_short;
    use crate::{GeneratorConfig, Seed, generate};

    #[test]
    fn speeds_move_by_the_names_of_types_and_by_places_only_where_all_names_are_new() {
        let mut workload = generate(&GeneratorConfig::default().with(5, 0.8), Seed(1)).unwrap();
        workload.cluster = of_short("40x8:A100,10x4:V100").unwrap().0;
        for class in &mut workload.classes {
            class.speed = vec![1.0, 0.25];
        }
        workload.jobs.iter_mut().for_each(|job| job.tenant = 0);
        let moved = |short: &str| workload.clone().on_cluster(of_short(short).unwrap().0);
        let speeds = |short: &str| moved(short).unwrap().classes[0].speed.clone();
        assert_eq!(speeds("10x4:V100,40x8:A100"), [0.25, 1.0]);
        assert_eq!(speeds("10x4:V100"), [0.25]);
        assert_eq!(speeds("10x4:H100,40x8:B200"), [1.0, 0.25]);
        let refused = moved("10x4:V100,40x8:B200").unwrap_err().to_string();
        assert!(
            refused.contains("A100, V100") && refused.contains("V100 and types"),
            "{refused}"
        );
    }

    #[test]
    fn jobs_of_several_tenants_move_to_a_cluster_in_the_short_form() {
        let workload = generate(&GeneratorConfig::default().with(50, 0.8), Seed(1)).unwrap();
        assert!(workload.cluster.tenants.len() > 1);
        let names: Vec<_> = workload
            .cluster
            .tenants
            .iter()
            .map(|tenant| tenant.name.clone())
            .collect();
        let (cluster, _) = of_short("40x8:A100,10x4:V100").unwrap();
        let moved = workload.clone().on_cluster(cluster).unwrap();
        assert_eq!(moved.jobs, workload.jobs);
        let moved_names: Vec<_> = moved
            .cluster
            .tenants
            .iter()
            .map(|tenant| tenant.name.clone())
            .collect();
        assert_eq!(moved_names, names);
        let quotas: u32 = moved.cluster.tenants.iter().map(|tenant| tenant.quota_gpus).sum();
        assert_eq!(u64::from(quotas), moved.cluster.num_gpus());
        let back = moved.on_cluster(workload.cluster.clone()).unwrap();
        assert_eq!(back.cluster.tenants, workload.cluster.tenants);
    }
}
