//! Measured training speeds of 26 job types on three GPU types, alone and in gangs.
//!
//! # Source
//! Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads" (Gavel), OSDI 2020;
//! `simulation_throughputs.json` of the released simulator (MIT, (c) 2020 Stanford FutureData), rounded to four digits.
//! A class is a (job type, gang size), because the ratio between GPU types depends on both. The reference type is the
//! V100, on which Gavel's run times are defined.

use std::sync::LazyLock;

use pleach_scheduler::cluster_spec::{GpuTypeSpec, LocalityFactors, ModelClass};

use crate::embedded::{number, rows};

/// Names of Gavel's GPU types, in the order of the table's columns.
pub(crate) const GPU_TYPES: [&str; 3] = ["K80", "P100", "V100"];
/// Memory of one GPU of each type, GiB (vendor sheets: one half of a K80 board, P100 and V100 with 16 GB).
const MEMORY_GIB: [f64; 3] = [12.0, 16.0, 16.0];
/// Column of the reference type.
const REFERENCE: usize = 2;

/// A job type on a gang: its steps/s on each type with the gang on as few servers as possible, and on V100 with the gang spread over
/// servers. A speed of 0 means that it does not run there. Job types that occur with gang size 1 only are not distributed.
type Speeds = (&'static str, u32, [f64; 3], f64);

static STEPS_PER_S: LazyLock<Vec<Speeds>> = LazyLock::new(|| {
    let rows = rows(include_str!("../data/gavel_speeds.csv"));
    let read = rows.map(|[name, gang, k80, p100, v100, spread]: [&'static str; 6]| {
        (
            name,
            number(gang) as u32,
            [k80, p100, v100].map(number),
            number(spread),
        )
    });
    read.collect()
});

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
    let class = |(name, num_gpus, steps, spread): &Speeds| {
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
