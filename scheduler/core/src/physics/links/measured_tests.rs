//! All-reduces of trays and racks of GB200 and GB300 as published, beside the law: those that it was fitted to, and others.

use super::tests::{preset, spread};

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;
const GIB: f64 = 1024.0 * MIB;

/// Microseconds of an all-reduce over so many GPUs of a rack.
fn law_us(num_gpus: u32, bytes: f64) -> f64 {
    preset("gb200-nvl72").all_reduce_s(spread(num_gpus, 1), bytes) * 1e6
}

/// The time of which nccl-tests print this bus bandwidth, us.
fn measured_us(num_gpus: u32, bytes: f64, bus_gb_per_s: f64) -> f64 {
    let ranks = f64::from(num_gpus);
    2.0 * (ranks - 1.0) / ranks * bytes / bus_gb_per_s * 1e-3
}

fn root_mean_square(errors: &[f64]) -> f64 {
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
}

/// A tray: 13 + 2 x 1.1 us, 690 GB/s, 2.6 + 2 x 0.19 us x root W. A rack of 72: 13 + 70 x 1.1, 940 GB/s, 2.6 + 70 x 0.19.
#[test]
fn a_tray_and_a_rack_worked_by_hand() {
    // W = 1.5 x 1,024 bytes: 15.2 + 0.0022 + 2.98 x root 0.001536.
    let near = |found: f64, by_hand: f64| assert!((found / by_hand - 1.0).abs() < 1e-3, "{found} {by_hand}");
    near(law_us(4, KIB), 15.2 + 0.0022 + 0.1168);
    // W = 1.5 x 16 MiB = 25.166 MB: 15.2 + 36.472 + 2.98 x 5.0166.
    near(law_us(4, 16.0 * MIB), 15.2 + 36.472 + 14.949);
    // W = 142/72 KiB: 90 + 0.0021 + 15.9 x root 0.0020196.
    near(law_us(72, KIB), 90.0 + 0.0021 + 0.7145);
    // The same before: 440 us, whatever the gang.
    assert!(440.0 / law_us(4, KIB) > 25.0 && 440.0 / law_us(72, KIB) > 4.0);
}

/// One tray of 4 GB200 (NCCL 2.25.1, rings): Azure/AI-benchmarking-guide, ND GB200 v6. Every other row was fitted to.
#[test]
fn a_tray_is_met_on_rows_that_were_not_fitted() {
    let rows = [
        (KIB, 0.10, true),
        (8.0 * KIB, 0.76, false),
        (64.0 * KIB, 5.71, true),
        (256.0 * KIB, 22.41, false),
        (MIB, 80.48, true),
        (2.0 * MIB, 110.43, false),
        (4.0 * MIB, 146.27, true),
        (8.0 * MIB, 253.46, false),
        (16.0 * MIB, 331.09, true),
        (32.0 * MIB, 422.62, false),
        (64.0 * MIB, 550.73, true),
        (128.0 * MIB, 574.19, false),
        (256.0 * MIB, 593.53, true),
        (512.0 * MIB, 618.74, false),
        (GIB, 646.87, true),
        (2.0 * GIB, 666.63, false),
        (8.0 * GIB, 679.61, true),
    ];
    let errors = |is_fitted: bool| -> Vec<f64> {
        let rows = rows.iter().filter(|row| row.2 == is_fitted);
        rows.map(|(bytes, bus, _)| (law_us(4, *bytes) / measured_us(4, *bytes, *bus)).ln())
            .collect()
    };
    let (fitted, others) = (errors(true), errors(false));
    eprintln!("fitted {fitted:.2?}\nothers {others:.2?}");
    let [fitted, others] = [fitted, others].map(|errors| root_mean_square(&errors));
    eprintln!("RMS of the logarithm of time: fitted {fitted:.3}, others {others:.3}");
    assert!(fitted < 0.13 && others < 0.11, "{fitted} {others}");
}

/// Points on which nothing was fitted. *Sources*: GB300 in one NVLink domain, NCCL 2.30.7, vllm-project/vllm PR 53318; NVIDIA's
/// post on NCCL 2.27, 6.3 us with symmetric memory on 32 GPUs, and up to 7.6 times as long without.
#[test]
fn other_gangs_of_a_rack_are_met_where_they_are_large_and_within_the_spread_of_kernels_where_they_are_small()
{
    for (num_gpus, bytes, measured_us, tolerance) in [
        (2, 64.0 * MIB, 149.75, 0.15),
        (4, 80.0 * MIB, 237.86, 0.05),
        (8, 64.0 * MIB, 183.79, 0.15),
        (32, KIB, 6.3 * 7.6, 0.05),
    ] {
        let error = law_us(num_gpus, bytes) / measured_us - 1.0;
        eprintln!("{num_gpus} GPUs, {bytes} bytes: {measured_us} us, law {error:+.2}");
        assert!(error.abs() < tolerance, "{num_gpus}: {error}");
    }
    // Kernels with symmetric memory are faster than the law, those without slower: 8 MiB on 16 take 37 us, 4 MiB on 12 take 111.
    let (fast, slow) = (law_us(16, 8.0 * MIB) / 37.34, law_us(12, 4.0 * MIB) / 111.04);
    eprintln!("16 GPUs, 8 MiB: {fast:.2} of the measured time; 12 GPUs, 4 MiB: {slow:.2}");
    assert!(
        fast > 1.0 && fast < 2.2 && slow < 1.0 && slow > 0.4,
        "{fast} {slow}"
    );
}
