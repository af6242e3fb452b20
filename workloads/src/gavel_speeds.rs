//! Measured training speeds of 26 job types on three GPU types, alone and in gangs.
//!
//! # Source
//! Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads" (Gavel), OSDI 2020;
//! `simulation_throughputs.json` of the released simulator (MIT, (c) 2020 Stanford FutureData), rounded to four digits.
//! A class is a (job type, gang size), because the ratio between GPU types depends on both. The reference type is the
//! V100, on which Gavel's run times are defined.

use pleach_scheduler::cluster_spec::{GpuTypeSpec, LocalityFactors, ModelClass};

/// Names of Gavel's GPU types, in the order of the table's columns.
pub(crate) const GPU_TYPES: [&str; 3] = ["K80", "P100", "V100"];
/// Memory of one GPU of each type, GiB (vendor sheets: one half of a K80 board, P100 and V100 with 16 GB).
const MEMORY_GIB: [f64; 3] = [12.0, 16.0, 16.0];
/// Column of the reference type.
const REFERENCE: usize = 2;

/// (job type, gang size, steps/s on K80, P100, V100 with the gang on as few servers as possible, steps/s on V100 with
/// the gang spread over servers). A speed of 0 means that it does not run there (out of memory). Job types that occur
/// with gang size 1 only are not distributed.
#[rustfmt::skip]
const STEPS_PER_S: [(&str, u32, [f64; 3], f64); 83] = [
    ("ResNet-18 (batch size 16)", 1, [4.795, 35.87, 32.35], 32.35),
    ("ResNet-18 (batch size 16)", 2, [8.758, 60.91, 100.1], 35.34),
    ("ResNet-18 (batch size 16)", 4, [16.12, 94.32, 123.9], 40.59),
    ("ResNet-18 (batch size 16)", 8, [26.92, 130.1, 382.6], 64.41),
    ("ResNet-18 (batch size 32)", 1, [7.176, 35.83, 29.95], 29.95),
    ("ResNet-18 (batch size 32)", 2, [13.18, 57.52, 94.25], 32.66),
    ("ResNet-18 (batch size 32)", 4, [22.53, 97.04, 114.7], 38.12),
    ("ResNet-18 (batch size 32)", 8, [43.92, 142.0, 340.0], 63.2),
    ("ResNet-18 (batch size 64)", 1, [7.052, 22.3, 24.09], 24.09),
    ("ResNet-18 (batch size 64)", 2, [12.5, 41.48, 74.14], 31.48),
    ("ResNet-18 (batch size 64)", 4, [21.63, 74.99, 95.59], 38.31),
    ("ResNet-18 (batch size 64)", 8, [42.64, 120.0, 255.8], 63.15),
    ("ResNet-18 (batch size 128)", 1, [1.807, 11.68, 17.99], 17.99),
    ("ResNet-18 (batch size 128)", 2, [3.631, 24.23, 23.99], 24.51),
    ("ResNet-18 (batch size 128)", 4, [6.982, 45.35, 69.95], 35.36),
    ("ResNet-18 (batch size 128)", 8, [13.66, 85.08, 162.1], 61.14),
    ("ResNet-18 (batch size 256)", 1, [0.8856, 7.723, 10.3], 10.3),
    ("ResNet-18 (batch size 256)", 2, [1.674, 14.23, 15.88], 19.7),
    ("ResNet-18 (batch size 256)", 4, [3.405, 27.73, 27.78], 30.23),
    ("ResNet-18 (batch size 256)", 8, [6.975, 53.96, 81.51], 53.86),
    ("ResNet-50 (batch size 16)", 1, [2.301, 9.053, 11.4], 11.4),
    ("ResNet-50 (batch size 16)", 2, [4.301, 16.19, 13.86], 10.04),
    ("ResNet-50 (batch size 16)", 4, [7.704, 30.8, 23.2], 14.9),
    ("ResNet-50 (batch size 16)", 8, [15.06, 44.76, 27.8], 25.17),
    ("ResNet-50 (batch size 32)", 1, [1.237, 4.888, 7.787], 7.787),
    ("ResNet-50 (batch size 32)", 2, [2.353, 9.749, 10.83], 8.974),
    ("ResNet-50 (batch size 32)", 4, [4.379, 18.55, 13.76], 12.85),
    ("ResNet-50 (batch size 32)", 8, [8.792, 33.57, 24.07], 22.83),
    ("ResNet-50 (batch size 64)", 1, [0.619, 2.619, 4.395], 4.395),
    ("ResNet-50 (batch size 64)", 2, [1.264, 5.516, 7.922], 6.866),
    ("ResNet-50 (batch size 64)", 4, [2.412, 10.36, 9.452], 11.14),
    ("ResNet-50 (batch size 64)", 8, [4.569, 18.22, 17.3], 19.76),
    ("ResNet-50 (batch size 128)", 1, [0.3472, 1.584, 2.497], 2.497),
    ("ResNet-50 (batch size 128)", 2, [0.0, 2.881, 4.223], 4.334),
    ("ResNet-50 (batch size 128)", 4, [0.0, 5.191, 7.029], 7.506),
    ("ResNet-50 (batch size 128)", 8, [0.0, 9.935, 10.29], 13.94),
    ("Transformer (batch size 16)", 1, [5.467, 9.537, 11.06], 11.06),
    ("Transformer (batch size 16)", 2, [7.047, 14.31, 14.15], 8.875),
    ("Transformer (batch size 16)", 4, [10.27, 21.23, 20.08], 11.63),
    ("Transformer (batch size 16)", 8, [18.62, 29.02, 71.65], 19.81),
    ("Transformer (batch size 32)", 1, [3.507, 7.869, 10.62], 10.62),
    ("Transformer (batch size 32)", 2, [5.097, 11.22, 13.33], 8.719),
    ("Transformer (batch size 32)", 4, [7.985, 18.16, 22.82], 11.96),
    ("Transformer (batch size 32)", 8, [13.91, 26.22, 63.98], 19.12),
    ("Transformer (batch size 64)", 1, [1.752, 5.092, 8.618], 8.618),
    ("Transformer (batch size 64)", 2, [3.063, 7.887, 15.88], 7.005),
    ("Transformer (batch size 64)", 4, [5.031, 13.31, 19.66], 10.57),
    ("Transformer (batch size 64)", 8, [8.976, 19.94, 49.65], 17.01),
    ("Transformer (batch size 128)", 1, [0.9816, 3.074, 5.446], 5.446),
    ("Transformer (batch size 128)", 2, [1.657, 5.087, 10.07], 5.049),
    ("Transformer (batch size 128)", 4, [2.865, 8.774, 14.17], 7.784),
    ("Transformer (batch size 128)", 8, [5.257, 13.68, 30.88], 13.03),
    ("Transformer (batch size 256)", 1, [0.4583, 1.678, 1.595], 1.595),
    ("Transformer (batch size 256)", 2, [0.8492, 2.941, 2.885], 2.233),
    ("Transformer (batch size 256)", 4, [1.513, 5.243, 4.763], 3.664),
    ("Transformer (batch size 256)", 8, [2.923, 9.253, 9.717], 6.799),
    ("LM (batch size 5)", 1, [25.49, 90.78, 109.2], 109.2),
    ("LM (batch size 5)", 2, [32.39, 76.92, 185.7], 40.35),
    ("LM (batch size 5)", 4, [44.09, 110.2, 126.7], 44.9),
    ("LM (batch size 5)", 8, [76.86, 133.5, 698.8], 73.12),
    ("LM (batch size 10)", 1, [23.79, 77.08, 81.65], 81.65),
    ("LM (batch size 10)", 2, [29.98, 72.53, 163.1], 35.14),
    ("LM (batch size 10)", 4, [42.96, 105.2, 121.5], 37.82),
    ("LM (batch size 10)", 8, [75.57, 127.8, 615.1], 65.52),
    ("LM (batch size 20)", 1, [17.14, 58.17, 64.74], 64.74),
    ("LM (batch size 20)", 2, [23.77, 62.33, 132.2], 30.44),
    ("LM (batch size 20)", 4, [35.7, 93.81, 111.0], 33.4),
    ("LM (batch size 20)", 8, [61.45, 116.6, 497.3], 58.89),
    ("LM (batch size 40)", 1, [11.5, 35.77, 45.24], 45.24),
    ("LM (batch size 40)", 2, [16.07, 48.04, 91.59], 21.22),
    ("LM (batch size 40)", 4, [22.99, 76.05, 96.03], 29.17),
    ("LM (batch size 40)", 8, [43.15, 102.2, 359.3], 52.04),
    ("LM (batch size 80)", 1, [6.054, 21.16, 28.24], 28.24),
    ("LM (batch size 80)", 2, [10.01, 31.84, 58.09], 17.75),
    ("LM (batch size 80)", 4, [16.39, 55.0, 74.81], 26.65),
    ("LM (batch size 80)", 8, [28.29, 82.93, 231.2], 47.89),
    ("Recommendation (batch size 512)", 1, [32.86, 48.88, 23.32], 23.32),
    ("Recommendation (batch size 1024)", 1, [20.05, 30.74, 13.28], 13.28),
    ("Recommendation (batch size 2048)", 1, [10.44, 16.6, 7.47], 7.47),
    ("Recommendation (batch size 4096)", 1, [5.3, 8.897, 3.906], 3.906),
    ("Recommendation (batch size 8192)", 1, [2.699, 5.548, 2.842], 2.842),
    ("A3C", 1, [3.439, 5.681, 7.176], 7.176),
    ("CycleGAN", 1, [0.5048, 2.403, 4.426], 4.426),
];

/// GPU types as a cluster declares them.
pub(crate) fn gpu_types() -> Vec<GpuTypeSpec> {
    let both = GPU_TYPES.iter().zip(MEMORY_GIB);
    both.map(|(name, memory_gib)| GpuTypeSpec {
        name: (*name).into(),
        memory_gib,
        mig: None,
    })
    .collect()
}

/// All 83 classes for a cluster with these GPU types, in the order of the table; `Err` names a type that Gavel did not
/// measure.
pub(crate) fn classes(gpu_types: &[GpuTypeSpec]) -> Result<Vec<ModelClass>, String> {
    let mut columns = Vec::with_capacity(gpu_types.len());
    for gpu in gpu_types {
        let column = GPU_TYPES.iter().position(|name| *name == gpu.name);
        columns.push(column.ok_or_else(|| gpu.name.clone())?);
    }
    let class = |(name, num_gpus, steps, spread): &(&str, u32, [f64; 3], f64)| {
        let loose = (spread / steps[REFERENCE]).clamp(0.01, 1.0);
        ModelClass {
            name: format!("{name} x{num_gpus}"),
            speed: columns
                .iter()
                .map(|column| steps[*column] / steps[REFERENCE])
                .collect(),
            // Gavel measured "spread over servers" only once; the same loss is taken for other racks.
            locality: LocalityFactors {
                more_nodes: loose,
                cross_rack: loose,
            },
            ..ModelClass::default()
        }
    };
    Ok(STEPS_PER_S.iter().map(class).collect())
}

/// Steps/s of class `index` on the reference type.
pub(crate) fn reference_steps_per_s(index: usize) -> f64 {
    STEPS_PER_S[index].2[REFERENCE]
}

/// Index of the class of this job type and gang size.
pub(crate) fn class_index(job_type: &str, num_gpus: u32) -> Option<usize> {
    STEPS_PER_S
        .iter()
        .position(|row| row.0 == job_type && row.1 == num_gpus)
}

/// Indexes of the classes with this gang size: one per job type that can run so.
pub(crate) fn classes_of_size(num_gpus: u32) -> Vec<u16> {
    let with_size = STEPS_PER_S
        .iter()
        .enumerate()
        .filter(|(_, row)| row.1 == num_gpus);
    with_size.map(|(index, _)| index as u16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_the_published_job_types_and_ratios() {
        assert_eq!(classes_of_size(1).len(), 26);
        assert_eq!(classes_of_size(8).len(), 19);
        let all = classes(&gpu_types()).unwrap();
        let speed = |job_type: &str, column: usize| all[class_index(job_type, 1).unwrap()].speed[column];
        // Extremes quoted for the table: V100 over K80 from 0.66 to 11.6.
        assert!((1.0 / speed("ResNet-18 (batch size 256)", 0) - 11.6).abs() < 0.1);
        assert!((1.0 / speed("Recommendation (batch size 1024)", 0) - 0.66).abs() < 0.01);
        assert!(all.iter().all(|class| class.speed[2] == 1.0));
        assert_eq!(
            all[class_index("ResNet-50 (batch size 128)", 2).unwrap()].speed[0],
            0.0
        );
        // Unconsolidated over consolidated, 8 workers: ResNet-18 b128 .38, LM b20 .12.
        let loose = |job_type: &str| all[class_index(job_type, 8).unwrap()].locality.more_nodes;
        assert!((loose("ResNet-18 (batch size 128)") - 0.38).abs() < 0.01);
        assert!((loose("LM (batch size 20)") - 0.12).abs() < 0.01);
    }

    #[test]
    fn a_type_that_was_not_measured_is_named() {
        let types = [GpuTypeSpec {
            name: "H100".into(),
            memory_gib: 80.0,
            mig: None,
        }];
        assert_eq!(classes(&types).unwrap_err(), "H100");
    }
}
