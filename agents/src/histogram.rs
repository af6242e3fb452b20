//! How numbers are spread: thirty buckets of equal width from the smallest to the largest.
//!
//! What goes into TensorBoard's histograms and into `histograms.jsonl`. Numbers that are not finite are left out.

/// Buckets of a histogram.
///
/// # Source
/// The default of `tf.summary.histogram` in TensorFlow 2, which has equal widths too.
pub(crate) const NUM_BUCKETS: usize = 30;

/// A histogram. Bucket `i` holds what is at least limit `i - 1` and below limit `i`; the last holds the largest too.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Smallest number.
    pub min: f64,
    /// Largest number.
    pub max: f64,
    /// Numbers counted.
    pub num: u64,
    /// Their sum.
    pub sum: f64,
    /// Sum of their squares.
    pub sum_squares: f64,
    /// Numbers in each bucket; one bucket where all numbers are equal.
    pub counts: Vec<u64>,
}

impl Histogram {
    /// Counts the finite ones among `values`; None where there is none.
    #[must_use]
    pub fn of(values: impl Iterator<Item = f32> + Clone) -> Option<Histogram> {
        let values = values.filter(|value| value.is_finite()).map(f64::from);
        let mut histogram = Histogram {
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            num: 0,
            sum: 0.0,
            sum_squares: 0.0,
            counts: Vec::new(),
        };
        for value in values.clone() {
            histogram.min = histogram.min.min(value);
            histogram.max = histogram.max.max(value);
            histogram.num += 1;
            histogram.sum += value;
            histogram.sum_squares += value * value;
        }
        if histogram.num == 0 {
            return None;
        }
        if histogram.min == histogram.max {
            histogram.counts = vec![histogram.num];
            return Some(histogram);
        }
        histogram.counts = vec![0; NUM_BUCKETS];
        let limits: Vec<f64> = histogram.limits().collect();
        for value in values {
            let bucket = limits.partition_point(|limit| *limit <= value);
            histogram.counts[bucket.min(NUM_BUCKETS - 1)] += 1;
        }
        Some(histogram)
    }

    /// Upper limits of the buckets.
    pub fn limits(&self) -> impl Iterator<Item = f64> + '_ {
        let num = self.counts.len();
        let width = (self.max - self.min) / num as f64;
        (1..=num).map(move |bucket| {
            if bucket == num {
                self.max
            } else {
                self.min + width * bucket as f64
            }
        })
    }

    /// As it is written to `histograms.jsonl`.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "min": self.min,
            "max": self.max,
            "num": self.num,
            "sum": self.sum,
            "sum_squares": self.sum_squares,
            "counts": self.counts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_in_buckets_of_equal_width_and_what_is_not_finite_is_left_out() {
        // 0 to 30: limits 1, 2, ... 30. 0 is in the first bucket, 1 and 1.5 in the second, 30 in the last.
        let values = [0.0, 1.0, 1.5, f32::NAN, 30.0, f32::INFINITY];
        let histogram = Histogram::of(values.into_iter()).unwrap();
        assert_eq!((histogram.min, histogram.max, histogram.num), (0.0, 30.0, 4));
        assert_eq!((histogram.sum, histogram.sum_squares), (32.5, 903.25));
        let mut expected = vec![0; 30];
        (expected[0], expected[1], expected[29]) = (1, 2, 1);
        assert_eq!(histogram.counts, expected);
        assert_eq!(
            histogram.limits().collect::<Vec<_>>(),
            (1..=30).map(f64::from).collect::<Vec<_>>()
        );
    }

    #[test]
    fn equal_numbers_have_one_bucket_and_no_numbers_no_histogram() {
        let equal = Histogram::of([2.0; 5].into_iter()).unwrap();
        assert_eq!((equal.counts.as_slice(), equal.num), ([5].as_slice(), 5));
        assert_eq!(equal.limits().collect::<Vec<_>>(), [2.0]);
        assert!(Histogram::of([f32::NAN].into_iter()).is_none());
    }
}
