//! What is left out of a tree's boxes is empty, and what is empty by more than rounding is left out: a bound between features that
//! is too tight would prove what does not hold.

use proptest::prelude::*;

use super::boxes::LeafBox;
use crate::features::{Feature, FeatureSchema};

const GPU_TIME: &str = "gpu_time_gpu_s";

/// Place of a feature among those of row and context.
fn place(name: &str) -> usize {
    let features = FeatureSchema::current().features;
    features.iter().position(|own| own.name == name).unwrap()
}

fn feature(name: &str) -> &'static Feature {
    &FeatureSchema::current().features[place(name)]
}

/// Whether some row of a start has these features within these raw bounds, and the others anywhere.
fn has_a_row(bounds: &[(&str, f64, f64)]) -> bool {
    let schema = FeatureSchema::current();
    let kind = schema.kinds.iter().position(|kind| kind.name == "start").unwrap();
    let mut ranges: Vec<(f32, f32)> = schema.features.iter().map(|own| own.range_among(kind)).collect();
    for (name, low, high) in bounds {
        let scaled = |raw: f64| feature(name).encode(raw as f32);
        ranges[place(name)] = (scaled(*low), scaled(*high));
    }
    LeafBox::between(schema, kind, ranges).has_a_row()
}

#[test]
fn gpu_time_is_what_rest_and_gang_make_it() {
    // A rest of 100 to 1,000 s on 2 to 4 GPUs is 200 to 4,000 GPU s.
    let of = |low: f64, high: f64| {
        has_a_row(&[
            ("remaining_s", 100.0, 1000.0),
            ("num_gpus", 2.0, 4.0),
            (GPU_TIME, low, high),
        ])
    };
    assert!(of(3960.0, 1e6) && of(1.0, 202.0) && of(200.0, 4000.0) && of(700.0, 800.0));
    assert!(!of(4040.0, 1e6) && !of(1.0, 198.0));
}

#[test]
fn the_ratio_of_waiting_is_what_wait_and_rest_make_it() {
    // A wait of 500 to 900 s before a rest of 100 to 1,000 s is a ratio of 1.5 to 10.
    let of = |low: f64, high: f64| {
        has_a_row(&[
            ("wait_s", 500.0, 900.0),
            ("remaining_s", 100.0, 1000.0),
            ("wait_ratio", low, high),
        ])
    };
    assert!(of(9.9, 50.0) && of(1.0, 1.52) && of(1.5, 10.0) && of(3.0, 3.1));
    assert!(!of(10.1, 50.0) && !of(1.0, 1.48));
}

#[test]
fn nobody_has_waited_longer_than_the_oldest() {
    let of = |oldest_s: f64| has_a_row(&[("wait_s", 500.0, 900.0), ("oldest_wait_s", 0.0, oldest_s)]);
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
                ("remaining_s", rest_s),
                ("num_gpus", gpus),
                ("wait_s", wait_s),
                (GPU_TIME, gpu_time),
                ("wait_ratio", ratio),
                ("oldest_wait_s", wait_s),
            ];
            has_a_row(&values.map(|(column, value)| (column, value, value)))
        };
        let (gpu_time, ratio) = (rest_s * gpus, (wait_s + rest_s) / rest_s);
        prop_assert!(point(gpu_time, ratio));
        let is_inside = |name: &str, value: f64| value * 1.05 < f64::from(feature(name).max);
        if is_inside(GPU_TIME, gpu_time) {
            prop_assert!(!point(off_by * gpu_time, ratio));
        }
        if is_inside("wait_ratio", ratio) && ratio * off_by >= 1.0 {
            prop_assert!(!point(gpu_time, off_by * ratio));
        }
    }
}

#[test]
fn a_box_without_bounds_has_a_row() {
    assert!(has_a_row(&[]));
}
