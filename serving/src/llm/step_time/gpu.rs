//! GPU types: peaks and memory from data sheets.
//!
//! # Source
//! `data/gpus.csv`.

use std::sync::LazyLock;

use pleach_scheduler::Problem;
use pleach_workloads::embedded::{number, rows};

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
pub static GPUS: LazyLock<Vec<Gpu>> = LazyLock::new(|| {
    let rows = rows(include_str!("../../../data/gpus.csv"));
    let of_row = |[name, bf16, fp8, fp4, tb_per_s, memory_gb, family, measured]: [&'static str; 8]| Gpu {
        name,
        tflops: [bf16, fp8, fp4].map(number),
        tb_per_s: number(tb_per_s),
        memory_gb: number(memory_gb),
        family,
        is_unmeasured: measured == "unmeasured",
    };
    rows.map(of_row).collect()
});
/// Their names.
pub static GPU_NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| GPUS.iter().map(|gpu| gpu.name).collect());

impl Gpu {
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
