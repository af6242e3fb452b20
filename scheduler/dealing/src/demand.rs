//! CPU and host memory as Synergy counts them, what a gang asks for and what it holds.

use std::collections::BTreeMap;

/// CPU and host memory.
pub type CpuMemory = [f64; 2];

/// What a job can be given, per GPU, and its speed then.
pub type Choice = (CpuMemory, f64);

/// GPUs of a gang by server.
pub type Counts = BTreeMap<usize, u32>;

/// What a gang may get beside its GPUs. Everything is per GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceDemand {
    /// Size of the gang.
    pub num_gpus: u32,
    /// The least with which it runs fastest.
    pub best: CpuMemory,
    /// The proportional share, or [`ResourceDemand::best`] where that is no more of either.
    pub tuned: CpuMemory,
    /// Where it would rather stay than go elsewhere; empty = nowhere.
    pub stays: Counts,
}

impl ResourceDemand {
    /// A gang that would like `best` and is due `fair`, both per GPU.
    #[must_use]
    pub fn new(num_gpus: u32, best: CpuMemory, fair: CpuMemory) -> ResourceDemand {
        ResourceDemand {
            num_gpus,
            best,
            tuned: if fits(best, fair) { best } else { fair },
            stays: Counts::new(),
        }
    }
}

/// What a gang holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    /// What it may get.
    pub demand: ResourceDemand,
    /// GPUs by server.
    pub counts: Counts,
    /// CPU and memory with each GPU.
    pub each: CpuMemory,
    /// Whether that is what is best for it.
    pub is_best: bool,
    /// Whether it was looked for as a whole on one server, not GPU by GPU.
    pub is_whole: bool,
}

/// So many times as much.
pub fn scaled(inputs: CpuMemory, by: f64) -> CpuMemory {
    inputs.map(|input| input * by)
}

/// Whether neither is more than what is free.
pub fn fits(wanted: CpuMemory, free: CpuMemory) -> bool {
    wanted.iter().zip(free).all(|(wanted, free)| *wanted <= free)
}

/// Adds `sign` times the other.
pub fn add(into: &mut CpuMemory, other: CpuMemory, sign: f64) {
    for (part, other) in into.iter_mut().zip(other) {
        *part += sign * other;
    }
}

/// Leaves out what is no faster than something that takes no more of anything.
#[must_use]
pub fn worthwhile(mut choices: Vec<Choice>) -> Vec<Choice> {
    choices.sort_by(|a, b| {
        let (a, b) = ([a.0[0], a.0[1], -a.1], [b.0[0], b.0[1], -b.1]);
        a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut kept: Vec<Choice> = Vec::new();
    for (each, speed) in choices {
        let beaten =
            |(other, faster): &Choice| other[0] <= each[0] && other[1] <= each[1] && *faster >= speed - 1e-12;
        if !kept.iter().any(beaten) {
            kept.push((each, speed));
        }
    }
    kept
}
