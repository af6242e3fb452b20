//! When two jobs had better share their GPUs than follow each other.
//!
//! # Source
//! The pair theorem of SJF-BSBF (WiseShare, IWQoS'24; arXiv 2407.13088): for two jobs of which one runs, the mean of their
//! ends is linear in the time at which the other joins, so the best start is *now* or *never*. With rests alone `E_A`
//! (newcomer) and `E_B` (running) and rests beside each other `S_A`, `S_B` (`S = E` over the speed of the pair):
//!
//! ```text
//! share = E_A / 2 + (1 - speed_A / 2) S_B   if S_A >= S_B      (the running job leaves first)
//!         E_B / 2 + (1 - speed_B / 2) S_A   otherwise
//! wait  = E_B + E_A / 2
//! ```
//!
//! Where sharing does not pay now it will not later: as the running job comes to its end, the test only turns from yes to no, so
//! no pass is needed for it between events.

/// The mean of two jobs' ends, counted from now, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanEnds {
    /// If they share from now on.
    pub share_s: f64,
    /// If the newcomer waits until the running job has left.
    pub wait_s: f64,
}

impl MeanEnds {
    /// Of rests alone, s, and speeds beside each other, (0, 1]; `a` is the newcomer, `b` runs.
    #[must_use]
    pub fn of(alone_a_s: f64, alone_b_s: f64, speed_a: f64, speed_b: f64) -> MeanEnds {
        let (beside_a_s, beside_b_s) = (alone_a_s / speed_a, alone_b_s / speed_b);
        let share_s = if beside_a_s >= beside_b_s {
            alone_a_s / 2.0 + (1.0 - speed_a / 2.0) * beside_b_s
        } else {
            alone_b_s / 2.0 + (1.0 - speed_b / 2.0) * beside_a_s
        };
        MeanEnds {
            share_s,
            wait_s: alone_b_s + alone_a_s / 2.0,
        }
    }

    /// Whether both are better off on average if they share now.
    #[must_use]
    pub fn favour_sharing(&self) -> bool {
        self.share_s < self.wait_s
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Event by event: `b` runs alone until `join_s`, then both run beside each other until one is done, then the other
    /// alone. Returns both ends.
    fn simulate(alone: [f64; 2], speeds: [f64; 2], join_s: f64) -> [f64; 2] {
        let (mut left, mut ends, mut now_s) = (alone, [None, None], 0.0);
        while ends.contains(&None) {
            let joined = now_s >= join_s || ends[1].is_some();
            let here = [ends[0].is_none() && joined, ends[1].is_none()];
            let rate = |job: usize| match here {
                [true, true] => speeds[job],
                _ if here[job] => 1.0,
                _ => 0.0,
            };
            // The next event: an end, or the start of sharing.
            let mut step_s = if joined { f64::INFINITY } else { join_s - now_s };
            for (job, rest_s) in left.iter().enumerate() {
                if here[job] {
                    step_s = step_s.min(rest_s / rate(job));
                }
            }
            now_s += step_s;
            for job in 0..2 {
                left[job] -= rate(job) * step_s;
                if here[job] && left[job] <= 1e-9 * alone[job] {
                    ends[job] = Some(now_s);
                }
            }
        }
        ends.map(Option::unwrap)
    }

    fn mean(ends: [f64; 2]) -> f64 {
        f64::midpoint(ends[0], ends[1])
    }

    #[test]
    fn both_ways_to_end_by_hand() {
        // A 100 s, B 60 s, each at half speed beside the other: B ends at 120, A has 40 left and ends at 160. Waiting: 60, 160.
        let ends = MeanEnds::of(100.0, 60.0, 0.5, 0.5);
        assert_eq!((ends.share_s, ends.wait_s), (140.0, 110.0));
        // A 30 s, B 100 s, speeds 0.75 and 0.8: A ends at 40, B has 68 left and ends at 108. Waiting: 100 and 130.
        let ends = MeanEnds::of(30.0, 100.0, 0.75, 0.8);
        assert!((ends.share_s - 74.0).abs() < 1e-12 && ends.wait_s == 115.0);
        assert!(ends.favour_sharing());
    }

    #[test]
    fn equal_jobs_share_exactly_while_each_slows_the_other_by_less_than_half() {
        // share = xi E, wait = 1.5 E: the two are equal at xi = 1.5.
        for length_s in [1.0, 100.0, 12_345.0] {
            let at = |xi: f64| MeanEnds::of(length_s, length_s, 1.0 / xi, 1.0 / xi);
            assert!(at(1.499_999).favour_sharing() && !at(1.500_001).favour_sharing());
            let MeanEnds { share_s, wait_s } = at(1.5);
            assert!((share_s - wait_s).abs() < 1e-9 * length_s && wait_s == 1.5 * length_s);
        }
    }

    #[test]
    fn no_time_to_begin_sharing_is_better_than_now_or_never() {
        // Every pair of lengths and slow-downs of a grid, against 51 times to begin with.
        let lengths = [1.0, 7.0, 30.0, 100.0, 365.0];
        let slower = [1.0, 1.1, 1.3, 1.5, 1.7, 2.0, 3.0];
        let mut num_shared = 0;
        for alone in lengths.into_iter().flat_map(|a| lengths.map(|b| [a, b])) {
            for speeds in slower
                .into_iter()
                .flat_map(|a| slower.map(|b| [1.0 / a, 1.0 / b]))
            {
                let ends = MeanEnds::of(alone[0], alone[1], speeds[0], speeds[1]);
                let close = |found: f64, expected: f64| (found - expected).abs() < 1e-6 * expected;
                assert!(close(ends.share_s, mean(simulate(alone, speeds, 0.0))), "now");
                assert!(
                    close(ends.wait_s, mean(simulate(alone, speeds, alone[1]))),
                    "never"
                );
                let best = ends.share_s.min(ends.wait_s);
                for begin in 0..=50 {
                    let join_s = alone[1] * f64::from(begin) / 50.0;
                    let found = mean(simulate(alone, speeds, join_s));
                    assert!(
                        found >= best * (1.0 - 1e-9),
                        "{alone:?} {speeds:?}: {join_s} s gives {found}"
                    );
                }
                num_shared += u32::from(ends.favour_sharing());
            }
        }
        assert!(
            num_shared > 100 && num_shared < 1100,
            "{num_shared} of 1225 share"
        );
    }

    proptest! {
        #[test]
        fn what_does_not_pay_now_does_not_pay_later(
            a in 1.0_f64..1000.0, b in 1.0_f64..1000.0, u in 0.2_f64..1.0, v in 0.2_f64..1.0, later in 0.0_f64..1.0,
        ) {
            let now = MeanEnds::of(a, b, u, v);
            prop_assume!(now.share_s > now.wait_s * (1.0 + 1e-9));
            prop_assert!(!MeanEnds::of(a, b * later + 1e-6, u, v).favour_sharing());
        }
    }
}
