//! GPU types: peaks and memory from data sheets.
//!
//! # Source
//! `gpu-specs.ts` of SemiAnalysisAI/InferenceX-app, 2026-04 (dense peaks, memory, fabrics); A100 and L40S: NVIDIA's data sheets.
//! Memory of B300 and GB200 as plans of trainings have it.

use pleach_scheduler::Problem;

use super::names::unknown;

/// A GPU type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// Name in commands.
    pub name: &'static str,
    /// Peaks of dense operations of two bytes, one byte and four bits, TFLOPS; 0: it has none.
    pub tflops: [f64; 3],
    /// Bandwidth of its memory, TB/s.
    pub tb_per_s: f64,
    /// Memory, GB.
    pub memory_gb: f64,
    /// Row of the constants that hold for it.
    pub family: &'static str,
    /// No published measurement is behind its constants.
    pub is_unmeasured: bool,
}

/// GPU types by name.
pub const GPUS: [Gpu; 13] = [
    gpu("H100", [989.0, 1_979.0, 0.0], 3.35, 80.0, "H100"),
    gpu("A100", [312.0, 0.0, 0.0], 2.04, 80.0, "A100"),
    gpu("L40S", [362.0, 733.0, 0.0], 0.864, 48.0, "L40S"),
    gpu("H200", [989.0, 1_979.0, 0.0], 4.8, 141.0, "H200"),
    gpu("B200", [2_250.0, 4_500.0, 9_000.0], 8.0, 180.0, "B200"),
    gpu("MI300X", [1_307.0, 2_615.0, 0.0], 5.3, 192.0, "MI300X"),
    gpu("A100-PCIe", [312.0, 0.0, 0.0], 1.94, 80.0, "A100-PCIe"),
    gpu("B300", [2_250.0, 4_500.0, 13_500.0], 8.0, 288.0, "B200"),
    gpu("GB200", [2_500.0, 5_000.0, 10_000.0], 8.0, 186.0, "GB200"),
    gpu("GB300", [2_500.0, 5_000.0, 15_000.0], 8.0, 288.0, "B200").unmeasured(),
    gpu("MI325X", [1_307.0, 2_615.0, 0.0], 6.0, 256.0, "MI300X").unmeasured(),
    gpu("MI355X", [2_516.0, 5_033.0, 10_066.0], 8.0, 288.0, "MI300X").unmeasured(),
    gpu("H200-NVL", [835.0, 1_671.0, 0.0], 4.8, 141.0, "H200").unmeasured(),
];

/// Their names.
pub const GPU_NAMES: [&str; GPUS.len()] = {
    let (mut names, mut place) = ([""; GPUS.len()], 0);
    while place < names.len() {
        names[place] = GPUS[place].name;
        place += 1;
    }
    names
};

const fn gpu(
    name: &'static str,
    tflops: [f64; 3],
    tb_per_s: f64,
    memory_gb: f64,
    family: &'static str,
) -> Gpu {
    Gpu {
        name,
        tflops,
        tb_per_s,
        memory_gb,
        family,
        is_unmeasured: false,
    }
}

impl Gpu {
    const fn unmeasured(self) -> Gpu {
        Gpu {
            is_unmeasured: true,
            ..self
        }
    }

    /// The GPU type of a name.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn of(name: &str) -> Result<&'static Gpu, Problem> {
        GPUS.iter()
            .find(|known| known.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| unknown("gpu", name, &GPU_NAMES))
    }
}
