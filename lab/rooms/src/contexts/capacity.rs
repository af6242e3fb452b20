//! How fast a GPU is with several stages in flight.

use pleach_scheduler::Problem;

use super::FS_PER_US;

/// Throughput of the whole GPU by the number of stages in flight, over that of one alone on all SMs. Stages in flight share it
/// equally (processor sharing), but none runs faster than alone on the SMs of its context.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// (stages in flight, throughput over that of one alone).
    points: Vec<(u32, f64)>,
}

impl Capacity {
    /// A table by stages in flight, ascending from 1; linear between two entries, the last one beyond them.
    ///
    /// # Errors
    /// A table that does not begin at 1 or does not ascend; a throughput out of range.
    pub fn new(points: Vec<(u32, f64)>) -> Result<Capacity, Problem> {
        let nums = || points.iter().map(|(num, _)| *num);
        if nums().next() != Some(1) || !nums().is_sorted_by(|a, b| a < b) {
            let given = format!("{:?}", nums().collect::<Vec<_>>());
            let hint = "The throughput of one stage alone comes first.";
            return Err(Problem::new(
                "capacity: stages in flight",
                given,
                "ascending, from 1",
                hint,
            ));
        }
        if let Some((num, gain)) = points.iter().find(|(_, gain)| !(1e-3..=1e3).contains(gain)) {
            let hint = "Divide by the throughput of one stage alone.";
            return Err(Problem::new(
                format!("capacity[{num}]"),
                gain,
                "0.001 to 1000",
                hint,
            ));
        }
        Ok(Capacity { points })
    }

    /// The same throughput however many are in flight.
    #[must_use]
    pub fn constant() -> Capacity {
        Capacity {
            points: vec![(1, 1.0)],
        }
    }

    /// Throughput with so many stages in flight, at least 1, over that of one alone.
    #[must_use]
    pub fn at(&self, num: u32) -> f64 {
        let place = self.points.partition_point(|(given, _)| *given < num);
        if place == 0 || place == self.points.len() {
            return self.points[place.min(self.points.len() - 1)].1;
        }
        let ((from, low), (to, high)) = (self.points[place - 1], self.points[place]);
        low + (high - low) * (f64::from(num - from) / f64::from(to - from))
    }

    /// Speed of each of so many stages, fs of work per µs, rounded to the nearest whole number.
    pub(super) fn speed(&self, num: u32) -> u64 {
        (self.at(num) / f64::from(num) * FS_PER_US as f64).round() as u64
    }
}
