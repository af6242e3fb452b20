//! HFTA: identical jobs are fused into one program when they start.
//!
//! Jobs are looked at in the order of arrival, and none blocks those behind. A job that fits on free GPUs starts there. A job
//! of one GPU that does not is fused with jobs of its class that start at this very instant, if the memory holds it: with
//! the smallest such group, so that groups grow evenly. Programs that already run take no more jobs in.
//!
//! # Source
//! Wang et al., MLSys'21 (arXiv 2102.02344): jobs that differ in hyperparameters only are batched into one program up to the
//! memory of the accelerator; the framework's memory is paid once. What that gains is
//! [`pleach_scheduler::physics::mixed::Fusion`] of the class. HFTA fuses what a user gives it; which job waits for which is no
//! part of it, so first come, first served is ours.
//!
//! # Deviations
//! - Fused jobs may end one by one, as if the program let them go (early stopping does); published runs end together.
//! - Gangs are not fused, as in the paper, which fuses on one accelerator.

use pleach_scheduler::cluster::{Cluster, Placement, Sharing};
use pleach_scheduler::{ClassId, ConfigError, JobId, Planner, PolicyError, Time};
use serde::{Deserialize, Serialize};

use super::hosts::can_share;
use crate::shared::allocate_by_priority::tightest;
use crate::shared::settings::check;

/// Settings of [`Hfta`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HftaConfig {
    /// Jobs in one program at most, 1 to 1000, besides what the memory holds.
    pub jobs_max: u32,
}

impl Default for HftaConfig {
    fn default() -> HftaConfig {
        HftaConfig { jobs_max: 1000 }
    }
}

/// A program that starts at this instant.
#[derive(Clone, Debug)]
struct Group {
    class: ClassId,
    placement: Placement,
    num_jobs: u32,
}

/// The planner.
#[derive(Clone, Debug)]
pub struct Hfta {
    config: HftaConfig,
    /// Programs that were started at `opened_at`.
    groups: Vec<Group>,
    opened_at: Time,
    slices: Vec<pleach_scheduler::cluster::Slice>,
}

impl Hfta {
    /// From its settings.
    ///
    /// # Errors
    /// A setting out of its range.
    pub fn new(config: HftaConfig) -> Result<Hfta, ConfigError> {
        let most = config.jobs_max;
        check("hfta", "jobs_max", most, (1..=1000).contains(&most), "1 to 1000")?;
        Ok(Hfta {
            config,
            groups: Vec::new(),
            opened_at: Time::ZERO,
            slices: Vec::new(),
        })
    }

    /// The smallest program that a job can become a part of.
    fn group_for(&self, cluster: &Cluster, id: JobId) -> Option<usize> {
        let class = cluster.job(id).request.class;
        let takes = |group: &Group| {
            let slice = group.placement[0];
            group.class == class
                && group.num_jobs < self.config.jobs_max
                && cluster.joinable(id, slice.node) & slice.gpus != 0
        };
        let open = self.groups.iter().enumerate().filter(|(_, group)| takes(group));
        let smallest = open.min_by_key(|(at, group)| (group.num_jobs, *at));
        smallest.map(|(at, _)| at)
    }
}

/// Whether a job can be fused at all.
fn can_fuse(cluster: &Cluster, id: JobId) -> bool {
    let request = &cluster.job(id).request;
    cluster.capabilities().sharing != Sharing::Off
        && request.num_gpus == 1
        && can_share(cluster, id)
        && cluster.class(request.class).fusion.is_some()
}

impl Planner for Hfta {
    fn name(&self) -> &str {
        "hfta"
    }

    fn plan(&mut self, cluster: &mut Cluster) -> Result<(), PolicyError> {
        if self.opened_at != cluster.now() {
            self.groups.clear();
            self.opened_at = cluster.now();
        }
        // Members may have left in the meantime, and others may have taken the GPU.
        let is_there = |group: &Group| {
            let slice = group.placement[0];
            let members = cluster.residents(slice.node, slice.gpus.trailing_zeros());
            let is_new = |id: &JobId| cluster.job(*id).run_start == cluster.now();
            !members.is_empty() && members.iter().all(is_new)
        };
        self.groups.retain(is_there);
        let mut order: Vec<JobId> = cluster.pending().collect();
        order.sort_unstable();
        for id in order {
            let fuses = can_fuse(cluster, id);
            if let Some(placement) = tightest(cluster, id, &mut self.slices) {
                if fuses {
                    self.groups.push(Group {
                        class: cluster.job(id).request.class,
                        placement: placement.clone(),
                        num_jobs: 1,
                    });
                }
                cluster.start(id, placement);
            } else if fuses
                && cluster.has_room(cluster.demand(id))
                && let Some(at) = self.group_for(cluster, id)
            {
                self.groups[at].num_jobs += 1;
                cluster.start(id, self.groups[at].placement.clone());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{class, cluster_of, plan_at, submit_as};
    use super::*;
    use pleach_scheduler::cluster_spec::ModelClass;
    use pleach_scheduler::physics::mixed::Fusion;

    /// Nodes of 32 GiB; class 0 fuses up to (32 - 2) / 6 = 5 jobs, class 1 cannot.
    fn cluster(num_gpus: u32) -> Cluster {
        let fusion = Fusion {
            best_sum: 6.0,
            framework_gib: 2.0,
            job_gib: 6.0,
        };
        let fused = ModelClass {
            fusion: Some(fusion),
            ..class("fused", 0.3)
        };
        cluster_of(1, num_gpus, &[fused, class("other", 0.3)], &[])
    }

    fn hfta() -> Hfta {
        Hfta::new(HftaConfig::default()).unwrap()
    }

    fn gpus(running: &[(u32, Vec<(u32, u64)>)]) -> Vec<(u32, u64)> {
        running.iter().map(|(id, slices)| (*id, slices[0].1)).collect()
    }

    #[test]
    fn jobs_of_a_class_that_start_together_are_fused_evenly_up_to_the_memory() {
        let mut cluster = cluster(2);
        for _ in 0..12 {
            submit_as(&mut cluster, 0, 1, 600.0, 8.0);
        }
        // Five on each of two GPUs; two wait.
        let running = plan_at(&mut hfta(), &mut cluster, 0.0);
        let on: Vec<(u32, u64)> = (0..10).map(|id| (id, 1 << (id % 2))).collect();
        assert_eq!(gpus(&running), on);
        // 5 x 6 / 10 = 3 in all: each at 0.6, so 600 s take 1,000 s; one after the other on two GPUs, 3,000 s.
        let ends = |id: u32| cluster.job(JobId(id)).expected_finish;
        assert!((0..10).all(|id| ends(id) == Time::from_secs_f64(1000.0)));
    }

    #[test]
    fn a_program_that_runs_takes_nobody_in() {
        let mut cluster = cluster(1);
        let mut planner = hfta();
        submit_as(&mut cluster, 0, 1, 100.0, 8.0);
        plan_at(&mut planner, &mut cluster, 0.0);
        for _ in 0..3 {
            submit_as(&mut cluster, 0, 1, 100.0, 8.0);
        }
        assert_eq!(plan_at(&mut planner, &mut cluster, 1.0).len(), 1);
        // When it has ended, the three that waited start together.
        cluster.advance(Time::from_secs_f64(100.0));
        cluster.finish(JobId(0));
        assert_eq!(plan_at(&mut planner, &mut cluster, 100.0).len(), 3);
    }

    #[test]
    fn other_classes_gangs_and_fractions_are_left_alone() {
        let mut cluster = cluster(2);
        let mut planner = hfta();
        for (class, num_gpus) in [(1, 1), (0, 1), (1, 1), (0, 2), (0, 1)] {
            submit_as(&mut cluster, class, num_gpus, 100.0, 8.0);
        }
        let running = plan_at(&mut planner, &mut cluster, 0.0);
        assert_eq!(gpus(&running), [(0, 0b1), (1, 0b10), (4, 0b10)]);
    }

    #[test]
    fn groups_may_be_kept_smaller_than_the_memory_allows() {
        let mut cluster = cluster(1);
        for _ in 0..4 {
            submit_as(&mut cluster, 0, 1, 100.0, 8.0);
        }
        let mut pairs = Hfta::new(HftaConfig { jobs_max: 2 }).unwrap();
        assert_eq!(plan_at(&mut pairs, &mut cluster, 0.0).len(), 2);
        let text = Hfta::new(HftaConfig { jobs_max: 0 }).unwrap_err().to_string();
        assert!(text.contains("hfta.jobs_max"), "{text}");
    }
}
