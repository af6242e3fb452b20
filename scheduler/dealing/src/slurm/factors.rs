//! Priorities of `priority/multifactor`: weighted factors of 0 to 1, summed and truncated.
//!
//! # Source
//! slurm.conf(5), priority_multifactor and fair_tree of Slurm's documentation, checked against 3,700 rows of `sprio` and 462
//! fair-share factors of `sshare` of a real Slurm 22.05.8.

use pleach_scheduler::settings;

settings! {
    /// `PriorityWeight*` and what the factors depend on; keys and defaults as in slurm.conf.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Priority {
        /// `PriorityWeightAge`.
        pub age: u32;
        /// `PriorityWeightFairshare`.
        pub fair_share: u32;
        /// `PriorityWeightJobSize`.
        pub size: u32;
        /// `PriorityWeightPartition`.
        pub partition: u32;
        /// `PriorityWeightQOS`.
        pub qos: u32;
        /// `GRES/gpu` of `PriorityWeightTRES`.
        pub gpu: u32;
        /// `CPU` of the same.
        pub cpu: u32;
        /// `PriorityMaxAge`, s, above 0.
        pub max_age_s: f64 = 604_800.0, in 1.0..=1e9;
        /// `PriorityCalcPeriod`, s: between two recomputations all priorities stand still. 1 to 86,400
        pub calc_period_s: f64 = 300.0, in 1.0..=86_400.0;
        /// When the first recomputation is, s after a whole multiple of the period. A controller counts from its start. 0 to the
        /// period
        pub calc_phase_s: f64;
        /// `PriorityDecayHalfLife`, s; 0: use never fades.
        pub half_life_s: f64 = 604_800.0, in 0.0..=1e9;
        /// `PriorityFavorSmall`.
        pub favor_small: bool;
        /// Fair tree; false: `NO_FAIR_TREE` of `PriorityFlags`.
        pub fair_tree: bool = true;
    }
}

/// What the factors of a job are made of; all but the age and the fair share stay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// For how long it has been eligible at the last recomputation, s.
    pub age_s: f64,
    /// 0 to 1, of its user.
    pub fair_share: f64,
    /// Its nodes over those of the cluster.
    pub nodes: f64,
    /// Its CPU over that of the cluster.
    pub cpus_of_cluster: f64,
    /// Its CPU and GPUs over those of its partition.
    pub cpus: f64,
    /// The same of GPUs.
    pub gpus: f64,
    /// `PriorityJobFactor` of its partition over the largest.
    pub partition: f64,
    /// Priority of its quality of service over the largest.
    pub qos: f64,
    /// What its user took off (`--nice`).
    pub nice: f64,
}

impl Priority {
    /// The priority of a job, 1 or more.
    #[must_use]
    pub fn of(&self, facts: &Facts) -> u32 {
        let size = (facts.nodes + facts.cpus_of_cluster) / 2.0;
        let sum = f64::from(self.age) * (facts.age_s.max(0.0) / self.max_age_s).min(1.0)
            + f64::from(self.fair_share) * facts.fair_share
            + f64::from(self.size) * if self.favor_small { 1.0 - size } else { size }
            + f64::from(self.partition) * facts.partition
            + f64::from(self.qos) * facts.qos
            + f64::from(self.gpu) * facts.gpus
            + f64::from(self.cpu) * facts.cpus
            - facts.nice;
        sum.clamp(1.0, f64::from(u32::MAX)) as u32
    }

    /// What is left of use after a time, 0 to 1.
    #[must_use]
    pub fn left(&self, seconds: f64) -> f64 {
        match self.half_life_s > 0.0 {
            true => pleach_scheduler::portable_math::pow((1.0 - 0.693 / self.half_life_s).max(0.0), seconds),
            false => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_weighted_summed_and_truncated() {
        // Half of the longest age: 500. A quarter of all nodes and an eighth of all cores: 1000 x 3/16 = 187.5.
        let priority = Priority {
            age: 1000,
            size: 1000,
            max_age_s: 600.0,
            ..Priority::default()
        };
        let facts = Facts {
            age_s: 300.0,
            nodes: 0.25,
            cpus_of_cluster: 0.125,
            ..Facts::default()
        };
        assert_eq!(priority.of(&facts), 687);
        let small_first = Priority {
            favor_small: true,
            ..priority
        };
        assert_eq!(small_first.of(&facts), 500 + 812);
        assert_eq!(
            priority.of(&Facts {
                age_s: 1e9,
                nice: 900.0,
                ..Facts::default()
            }),
            100
        );
        assert_eq!(priority.of(&Facts::default()), 1, "none is below 1");
    }

    #[test]
    fn half_of_the_use_is_left_after_the_half_life() {
        let priority = Priority {
            half_life_s: 86_400.0,
            ..Priority::default()
        };
        assert!((priority.left(86_400.0) - 0.5).abs() < 1e-3);
        let never = Priority {
            half_life_s: 0.0,
            ..Priority::default()
        };
        assert_eq!(never.left(1e9), 1.0);
    }
}
