//! What users ask for: time limits from a short menu, mostly far above what the job needs.
//!
//! # Source
//! Requested over actual run time has median 2.4 (KTH-SP2), 3.7 (CTC-SP2) and 6.4 (SDSC-SP2) in the Parallel Workloads
//! Archive; requests cluster on a few round values (on ThetaGPU 2023, 12 h and 1 h are 70 % of all). The log-normal
//! shape, its spread and the menu are *assumed*, set so that the median lies in that range.

use pleach_scheduler::portable_math::exp;
use rand::Rng;

use crate::normal::standard_normal;

/// Limits that users pick from, s: 10 min to 60 days.
const MENU_S: [f64; 14] = [
    600.0,
    1800.0,
    3600.0,
    7200.0,
    14_400.0,
    28_800.0,
    43_200.0,
    86_400.0,
    172_800.0,
    259_200.0,
    604_800.0,
    1_209_600.0,
    2_592_000.0,
    5_184_000.0,
];
const MONTH_S: f64 = 2_592_000.0;
/// Median and spread (of the natural logarithm) of the factor before rounding up to the menu.
const FACTOR_MEDIAN: f64 = 2.0;
const FACTOR_SIGMA: f64 = 1.0;

/// By how much a user overstates, at least 1; one draw holds for a whole run of similar jobs.
pub(super) fn draw_factor(rng: &mut impl Rng) -> f64 {
    let z = standard_normal(rng);
    (FACTOR_MEDIAN * exp(FACTOR_SIGMA * z)).max(1.0)
}

/// The limit for a job, s; never below its run time.
pub(super) fn limit_s(run_time_s: f64, factor: f64) -> f64 {
    let longest = MENU_S[MENU_S.len() - 1];
    round_up((run_time_s * factor).min(run_time_s.max(longest)))
}

fn round_up(seconds: f64) -> f64 {
    match MENU_S.iter().find(|limit| **limit >= seconds) {
        Some(limit) => *limit,
        None => (seconds / MONTH_S).ceil() * MONTH_S,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    #[test]
    fn limits_come_from_the_menu_and_cover_the_run_time() {
        assert_eq!(limit_s(601.0, 1.0), 1800.0);
        assert_eq!(limit_s(3600.0, 1.0), 3600.0);
        assert_eq!(limit_s(5_184_000.0, 3.0), 5_184_000.0);
        assert_eq!(limit_s(5_184_001.0, 3.0), 7_776_000.0);
        let mut rng = Seed(1).stream("test", 0);
        for index in 0..1000 {
            let run_time_s = 1.5_f64.powi(index % 40);
            assert!(limit_s(run_time_s, draw_factor(&mut rng)) >= run_time_s);
        }
    }
}
