//! What is left out of a tree's boxes is empty, and what is empty by more than rounding is left out: a bound between features that
//! is too tight would prove what does not hold.

use proptest::prelude::*;

use super::boxes::{LeafBox, NUM_FEATURES, ranges_of};
use super::feature_of;
use crate::candidate::CandidateKind;
use crate::features::column::{Candidate as C, Global as G};
use crate::observation::NUM_CANDIDATE_FEATURES;

const OLDEST_WAIT: usize = NUM_CANDIDATE_FEATURES + G::OldestWaitS as usize;

fn scaled(column: usize, raw: f64) -> f32 {
    feature_of(column as u16).encode(raw as f32)
}

/// Whether some row of a start has these features within these raw bounds, and the others anywhere.
fn has_a_row(bounds: &[(usize, f64, f64)]) -> bool {
    let mut ranges = ranges_of(CandidateKind::Start);
    for (column, low, high) in bounds {
        ranges[*column] = (scaled(*column, *low), scaled(*column, *high));
    }
    let kind = CandidateKind::Start;
    LeafBox {
        kind,
        place: 0,
        ranges,
    }
    .has_a_row()
}

#[test]
fn gpu_time_is_what_rest_and_gang_make_it() {
    // A rest of 100 to 1,000 s on 2 to 4 GPUs is 200 to 4,000 GPU s.
    let of = |low: f64, high: f64| {
        let (rest, gpus) = (C::RemainingS as usize, C::NumGpus as usize);
        has_a_row(&[
            (rest, 100.0, 1000.0),
            (gpus, 2.0, 4.0),
            (C::GpuTime as usize, low, high),
        ])
    };
    assert!(of(3960.0, 1e6) && of(1.0, 202.0) && of(200.0, 4000.0) && of(700.0, 800.0));
    assert!(!of(4040.0, 1e6) && !of(1.0, 198.0));
}

#[test]
fn the_ratio_of_waiting_is_what_wait_and_rest_make_it() {
    // A wait of 500 to 900 s before a rest of 100 to 1,000 s is a ratio of 1.5 to 10.
    let of = |low: f64, high: f64| {
        let (wait, rest) = (C::WaitS as usize, C::RemainingS as usize);
        has_a_row(&[
            (wait, 500.0, 900.0),
            (rest, 100.0, 1000.0),
            (C::WaitRatio as usize, low, high),
        ])
    };
    assert!(of(9.9, 50.0) && of(1.0, 1.52) && of(1.5, 10.0) && of(3.0, 3.1));
    assert!(!of(10.1, 50.0) && !of(1.0, 1.48));
}

#[test]
fn nobody_has_waited_longer_than_the_oldest() {
    let of = |oldest_s: f64| has_a_row(&[(C::WaitS as usize, 500.0, 900.0), (OLDEST_WAIT, 0.0, oldest_s)]);
    assert!(of(505.0) && !of(495.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A box around what the program would fill in for a job has a row, however small it is; the same with a product that is off by a
    /// twentieth has none.
    #[test]
    fn no_row_of_a_job_is_left_out_and_no_other_is_kept(
        rest_log in 0.0..5.0_f64,
        wait_log in 0.0..5.0_f64,
        num_gpus in 1_u32..200,
        off_by in prop::sample::select(vec![0.95, 1.05]),
    ) {
        let (rest_s, wait_s) = (10_f64.powf(rest_log), 10_f64.powf(wait_log));
        let gpus = f64::from(num_gpus);
        let point = |gpu_time: f64, ratio: f64| {
            let values = [
                (C::RemainingS as usize, rest_s),
                (C::NumGpus as usize, gpus),
                (C::WaitS as usize, wait_s),
                (C::GpuTime as usize, gpu_time),
                (C::WaitRatio as usize, ratio),
                (OLDEST_WAIT, wait_s),
            ];
            has_a_row(&values.map(|(column, value)| (column, value, value)))
        };
        let (gpu_time, ratio) = (rest_s * gpus, (wait_s + rest_s) / rest_s);
        prop_assert!(point(gpu_time, ratio));
        let is_inside = |column: C, value: f64| value * 1.05 < f64::from(feature_of(column as u16).max);
        if is_inside(C::GpuTime, gpu_time) {
            prop_assert!(!point(off_by * gpu_time, ratio));
        }
        if is_inside(C::WaitRatio, ratio) && ratio * off_by >= 1.0 {
            prop_assert!(!point(gpu_time, off_by * ratio));
        }
    }
}

#[test]
fn every_feature_has_a_range() {
    assert_eq!(ranges_of(CandidateKind::Start).len(), NUM_FEATURES);
    assert!(has_a_row(&[]));
}
