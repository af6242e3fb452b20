//! What a run looked like over time, in a bounded number of intervals that grow with its length.

use serde::Serialize;

/// Intervals at most; then two become one.
const INTERVALS_MAX: usize = 400;
/// Their first length, us.
const FIRST_US: u64 = 1_000;

/// Sums over an interval, at most what 64 bits hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Cores held times time, us.
    pub core_us: u64,
    /// Slices held times time, us.
    pub slice_us: u64,
    /// Requests that waited times time, us.
    pub waiting_us: u64,
    /// Containers that had to be made.
    pub cold_starts: u64,
}

impl Interval {
    fn add(&mut self, more: Interval) {
        self.core_us = self.core_us.saturating_add(more.core_us);
        self.slice_us = self.slice_us.saturating_add(more.slice_us);
        self.waiting_us = self.waiting_us.saturating_add(more.waiting_us);
        self.cold_starts += more.cold_starts;
    }
}

/// Intervals from the beginning on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Timeline {
    length_us: u64,
    intervals: Vec<Interval>,
}

impl Timeline {
    pub(crate) fn new() -> Timeline {
        Timeline {
            length_us: FIRST_US,
            intervals: Vec::new(),
        }
    }

    /// Books cores and slices held, and requests that wait, from one time to a later one.
    pub(crate) fn book(&mut self, (from_us, to_us): (u64, u64), (cores, slices): (u64, u64), waiting: u64) {
        let mut at_us = from_us;
        while at_us < to_us {
            let place = self.place(to_us - 1, at_us);
            let end_us = to_us.min((place as u64 + 1) * self.length_us);
            let (span_us, interval) = (end_us - at_us, &mut self.intervals[place]);
            interval.add(Interval {
                core_us: cores.saturating_mul(span_us),
                slice_us: slices.saturating_mul(span_us),
                waiting_us: waiting.saturating_mul(span_us),
                cold_starts: 0,
            });
            at_us = end_us;
        }
    }

    pub(crate) fn book_cold_start(&mut self, at_us: u64) {
        let place = self.place(at_us, at_us);
        self.intervals[place].cold_starts += 1;
    }

    /// The interval of a time, where there are to be intervals up to a last one.
    fn place(&mut self, last_us: u64, at_us: u64) -> usize {
        while last_us / self.length_us >= INTERVALS_MAX as u64 {
            let pairs = self.intervals.chunks(2).map(|pair| {
                let mut sum = pair[0];
                pair[1..].iter().for_each(|one| sum.add(*one));
                sum
            });
            self.intervals = pairs.collect();
            self.length_us *= 2;
        }
        let num = (last_us / self.length_us) as usize + 1;
        if num > self.intervals.len() {
            self.intervals.resize(num, Interval::default());
        }
        (at_us / self.length_us) as usize
    }

    /// A figure of each interval over its length: (begin, s; figure). The last interval, a part of one, is left out where there
    /// are others.
    #[must_use]
    pub fn points(&self, figure: impl Fn(&Interval) -> f64) -> Vec<(f64, f64)> {
        let whole = self
            .intervals
            .len()
            .saturating_sub(1)
            .max(self.intervals.len().min(1));
        let length_us = self.length_us as f64;
        let points = self.intervals[..whole].iter().enumerate();
        points
            .map(|(place, interval)| (1e-6 * length_us * place as f64, figure(interval) / length_us))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_what_they_are_however_intervals_grow() {
        let mut timeline = Timeline::new();
        timeline.book((500, 2_500), (3, 2), 5);
        timeline.book_cold_start(2_500);
        // 500 us of the first, 1,000 of the second, 500 of the third.
        let slices: Vec<u64> = timeline.intervals.iter().map(|one| one.slice_us).collect();
        assert_eq!(slices, [1_000, 2_000, 1_000]);
        assert_eq!(
            timeline.points(|one| one.slice_us as f64),
            [(0.0, 1.0), (0.001, 2.0)]
        );
        timeline.book((2_500, 3_000_000_000), (1, 1), 0);
        assert!(timeline.intervals.len() <= INTERVALS_MAX && timeline.length_us == FIRST_US << 13);
        let sum = |figure: fn(&Interval) -> u64| timeline.intervals.iter().map(figure).sum::<u64>();
        assert_eq!(sum(|one| one.slice_us), 4_000 + 2_999_997_500);
        assert_eq!(sum(|one| one.core_us), 6_000 + 2_999_997_500);
        assert_eq!(
            (sum(|one| one.waiting_us), sum(|one| one.cold_starts)),
            (10_000, 1)
        );
    }

    #[test]
    fn sums_that_no_64_bits_hold_stay_at_the_most_that_they_do() {
        let mut timeline = Timeline::new();
        for day in 0..3 {
            let span = (day * 10_u64.pow(15), (day + 1) * 10_u64.pow(15));
            timeline.book(span, (1_000_000, 7_168), 100_000_000);
        }
        let most = timeline.intervals.iter().map(|one| one.waiting_us).max();
        assert_eq!(most, Some(u64::MAX), "10^8 wait for 8 * 10^12 us");
    }
}
