//! Parts that make one rate: gangs on mixed GPU types, copies of a job that split its work, identical jobs fused into
//! one.
//!
//! # Source
//! Hadar and HadarE (IPDPS'24; arXiv 2503.10918): a synchronous gang runs at its slowest member; copies on separate
//! nodes split the steps of a round in proportion to their rates and are averaged at its end. Dynamic batching
//! (arXiv 2305.12213): a gang that gives slow members smaller batches runs at the mean. HFTA (MLSys'21): identical jobs
//! in one kernel stream.

use crate::settings;
use crate::settings::Above;

settings! {
    /// How the copies of a job are brought together.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Copies: required {
        /// Length of a round, s; the copies are averaged at its end.
        pub round_s: f64, in 1e-9..=1e9;
        /// Bytes of weights that each copy sends and receives.
        pub weight_bytes: f64, in 0.0..=1e18;
        /// Bandwidth of that, GB/s.
        pub gb_per_s: f64, in 1e-9..=1e9;
    }
}

impl Copies {
    /// Seconds of a round that averaging costs; 0 for a single copy. Every copy sends its weights to one place and
    /// gets the mean back, over one link.
    #[must_use]
    pub fn consolidation_s(&self, num_copies: u32) -> f64 {
        if num_copies <= 1 {
            return 0.0;
        }
        2.0 * self.weight_bytes * f64::from(num_copies - 1) / (self.gb_per_s * 1e9)
    }

    /// Rate of a job whose copies run at `rates`, averaged over a round: their sum, less consolidation. At least 0;
    /// not monotone in the number of copies, because each costs its transfer.
    #[must_use]
    pub fn rate(&self, rates: &[f64]) -> f64 {
        let useful = 1.0 - self.consolidation_s(rates.len() as u32) / self.round_s;
        rates.iter().sum::<f64>() * useful.max(0.0)
    }

    /// The steps of a round for each copy: `remaining` in proportion to the rates, so that all end together, but no
    /// more than a copy can do in a round. Writes one number per copy; returns their sum.
    pub fn split(&self, remaining: f64, rates: &[f64], steps: &mut [f64]) -> f64 {
        let useful_s = (self.round_s - self.consolidation_s(rates.len() as u32)).max(0.0);
        let sum: f64 = rates.iter().sum();
        let mut given = 0.0;
        for (rate, step) in rates.iter().zip(steps.iter_mut()) {
            let part = if sum > 0.0 { rate / sum } else { 0.0 };
            *step = (remaining * part).min(rate * useful_s);
            given += *step;
        }
        given
    }
}

settings! {
    /// Identical jobs fused into one on one GPU.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Fusion: required {
        /// Sum of the jobs' rates that the GPU tends to with many jobs, one job alone = 1. 1 or more.
        pub best_sum: f64, in 1.0..=1e3;
        /// Memory of the framework, paid once, GiB.
        pub framework_gib: f64, in 0.0..=1e6;
        /// Memory of each job beyond that, GiB.
        pub job_gib: f64, in Above(0.0, 1e6);
    }
}

impl Fusion {
    /// The gain that HFTA publishes at best, 15.1 times one job per accelerator; the memory figures are assumed (a small
    /// model on 16 GiB).
    pub const HFTA_BEST: Fusion = Fusion {
        best_sum: 15.1,
        framework_gib: 1.0,
        job_gib: 0.5,
    };

    /// Sum of the rates of `num_jobs` fused jobs: `k best / (k + best - 1)`. Concave, 1 at one job, `best_sum` in the
    /// limit: the first jobs fill an idle GPU, the last ones share a full one.
    ///
    /// # Source
    /// HFTA publishes a concave throughput and its maximum; the curve through them is assumed.
    #[must_use]
    pub(crate) fn sum_rate(&self, num_jobs: u32) -> f64 {
        let jobs = f64::from(num_jobs);
        if num_jobs == 0 {
            0.0
        } else {
            jobs * self.best_sum / (jobs + self.best_sum - 1.0)
        }
    }

    /// Rate of each of `num_jobs` fused jobs, (0, 1].
    #[must_use]
    pub(crate) fn each_rate(&self, num_jobs: u32) -> f64 {
        if num_jobs == 0 {
            0.0
        } else {
            self.sum_rate(num_jobs) / f64::from(num_jobs)
        }
    }

    /// Memory of `num_jobs` fused jobs, GiB: one framework and all the jobs.
    #[cfg(test)]
    fn memory_gib(&self, num_jobs: u32) -> f64 {
        if num_jobs == 0 {
            0.0
        } else {
            self.framework_gib + f64::from(num_jobs) * self.job_gib
        }
    }

    /// Jobs that fit into this memory together.
    #[cfg(test)]
    fn max_jobs(&self, device_memory_gib: f64) -> u32 {
        let room = (device_memory_gib - self.framework_gib) / self.job_gib;
        // Saturates: a negative room is 0.
        (room + 1e-9).floor() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings as _;
    use proptest::prelude::*;

    #[test]
    fn copies_add_up_less_the_averaging_at_the_end_of_each_round() {
        // Three copies of 450 MB over 1 GB/s: 2 x 0.45 x 2 = 1.8 s of a round of 360 s, half a percent.
        let copies = Copies {
            round_s: 360.0,
            weight_bytes: 4.5e8,
            gb_per_s: 1.0,
        };
        copies.check_at("copies", "").unwrap();
        assert!((copies.consolidation_s(3) - 1.8).abs() < 1e-12);
        assert!((copies.rate(&[1.0, 0.5, 0.25]) - 1.75 * 0.995).abs() < 1e-12);
        assert_eq!(copies.rate(&[0.5]), 0.5);
    }

    #[test]
    fn the_steps_of_a_round_are_split_so_that_all_copies_end_together() {
        let copies = Copies {
            round_s: 100.0,
            weight_bytes: 0.0,
            gb_per_s: 1.0,
        };
        let mut steps = [0.0; 2];
        // 60 steps left at rates 2 and 1: 40 and 20, 20 s each.
        assert!((copies.split(60.0, &[2.0, 1.0], &mut steps) - 60.0).abs() < 1e-12);
        assert_eq!(steps, [40.0, 20.0]);
        // 900 left: a round does 200 and 100 of them.
        assert_eq!(copies.split(900.0, &[2.0, 1.0], &mut steps), 300.0);
        assert_eq!(steps, [200.0, 100.0]);
    }

    #[test]
    fn fusing_is_concave_and_tends_to_the_published_gain() {
        let fusion = Fusion::HFTA_BEST;
        fusion.check_at("fusion", "").unwrap();
        assert!((fusion.sum_rate(1) - 1.0).abs() < 1e-12);
        // Two jobs: 2 x 15.1 / 16.1 = 1.876.
        assert!((fusion.sum_rate(2) - 30.2 / 16.1).abs() < 1e-12);
        assert!(fusion.sum_rate(10_000) < 15.1 && fusion.sum_rate(10_000) > 15.0);
        // 16 GiB: (16 - 1) / 0.5 = 30 jobs; none fit where the framework does not.
        assert_eq!(fusion.max_jobs(16.0), 30);
        assert_eq!(fusion.max_jobs(0.5), 0);
        assert_eq!(fusion.memory_gib(30), 16.0);
    }

    #[test]
    fn broken_values_are_refused_by_name() {
        let fusion = Fusion {
            best_sum: 0.9,
            ..Fusion::HFTA_BEST
        };
        assert!(
            fusion
                .check_at("fusion", "")
                .unwrap_err()
                .to_string()
                .contains("fusion.best_sum")
        );
        let copies = Copies {
            round_s: 0.0,
            weight_bytes: 0.0,
            gb_per_s: 1.0,
        };
        assert!(
            copies
                .check_at("copies", "")
                .unwrap_err()
                .to_string()
                .contains("copies.round_s")
        );
    }

    proptest! {
        #[test]
        fn fused_jobs_gain_together_and_lose_each(best_sum in 1.0_f64..20.0, num_jobs in 1_u32..200) {
            let fusion = Fusion { best_sum, ..Fusion::HFTA_BEST };
            prop_assert!(fusion.sum_rate(num_jobs + 1) >= fusion.sum_rate(num_jobs) - 1e-12);
            prop_assert!(fusion.each_rate(num_jobs + 1) <= fusion.each_rate(num_jobs) + 1e-12);
            let gain = |jobs: u32| fusion.sum_rate(jobs + 1) - fusion.sum_rate(jobs);
            prop_assert!(gain(num_jobs + 1) <= gain(num_jobs) + 1e-12);
        }

        #[test]
        fn a_round_of_copies_never_does_more_than_is_left_or_possible(
            rates in prop::collection::vec(0.0_f64..10.0, 1..8), remaining in 0.0_f64..1e5, weight_bytes in 0.0_f64..1e12,
        ) {
            let copies = Copies { round_s: 360.0, weight_bytes, gb_per_s: 10.0 };
            let mut steps = vec![0.0; rates.len()];
            let done = copies.split(remaining, &rates, &mut steps);
            prop_assert!(done <= remaining * (1.0 + 1e-12));
            prop_assert!(done <= copies.rate(&rates) * 360.0 * (1.0 + 1e-12) + 1e-9);
        }
    }
}
