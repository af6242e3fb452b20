//! What is held of one node now.

use pleach_tables::schedule::{Gpus, Segment};

use crate::{Node, Rule};

/// A rule that a segment breaks as it begins on a node, and the other segment there.
pub(super) struct Clash {
    pub(super) rule: Rule,
    pub(super) other: Option<u32>,
    pub(super) what: String,
}

/// What is held of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Here {
    /// (GPU, segment), in the order in which they came.
    on: Vec<(u32, u32)>,
    /// Segments that hold GPUs of which only the number is known.
    somewhere: Vec<u32>,
    /// Thousandths of GPUs.
    milli: u64,
    cpu_milli: u64,
    memory_mib: u64,
    /// The segments on the node.
    segments: Vec<u32>,
}

/// Thousandths of cores and MiB that a segment holds with so many GPUs.
fn held(segment: &Segment, gpus: Gpus) -> (u64, u64) {
    let num = u64::from(gpus.num());
    // They were written down in thousandths and MiB, so nothing is lost to rounding.
    let (cpu_milli, memory_mib) = (segment.cpu_cores * 1000.0, segment.memory_gib * 1024.0);
    (num * cpu_milli.round() as u64, num * memory_mib.round() as u64)
}

impl Here {
    pub(super) fn begin(&mut self, gpus: Gpus, index: u32, segment: &Segment) {
        match gpus {
            Gpus::Which(mask) => {
                let gpus = (0..64).filter(|gpu| mask >> gpu & 1 == 1);
                self.on.extend(gpus.map(|gpu| (gpu, index)));
            }
            Gpus::Num(_) => self.somewhere.push(index),
        }
        let (cpu_milli, memory_mib) = held(segment, gpus);
        self.milli += u64::from(gpus.num()) * u64::from(segment.gpu_milli);
        self.cpu_milli += cpu_milli;
        self.memory_mib += memory_mib;
        self.segments.push(index);
    }

    pub(super) fn end(&mut self, gpus: Gpus, index: u32, segment: &Segment) {
        self.on.retain(|(_, other)| *other != index);
        self.somewhere.retain(|other| *other != index);
        let (cpu_milli, memory_mib) = held(segment, gpus);
        self.milli -= u64::from(gpus.num()) * u64::from(segment.gpu_milli);
        self.cpu_milli -= cpu_milli;
        self.memory_mib -= memory_mib;
        self.segments.retain(|other| *other != index);
    }

    /// The segments that hold a GPU, in the order in which they came.
    pub(super) fn on(&self, gpu: u32) -> impl Iterator<Item = u32> {
        let here = self.on.iter().filter(move |(other, _)| *other == gpu);
        here.map(|(_, index)| *index)
    }

    /// Sums of the node that the last segment makes too large.
    pub(super) fn clashes(&self, node: &Node, gpus: Gpus, sharing: bool, clashes: &mut Vec<Clash>) {
        let other = self.segments.iter().rev().nth(1).copied();
        let mut clash = |rule, what| clashes.push(Clash { rule, other, what });
        let is_counted = matches!(gpus, Gpus::Num(_)) || !self.somewhere.is_empty();
        let has_milli = u64::from(node.num_gpus) * if sharing { 2000 } else { 1000 };
        if is_counted && self.milli > has_milli {
            let (held, has) = (self.milli as f64 / 1000.0, node.num_gpus);
            clash(Rule::Gpus, format!("makes {held} GPUs of {has}"));
        }
        if self.cpu_milli > node.cpu_milli {
            let (held, has) = (self.cpu_milli as f64 / 1000.0, node.cpu_milli as f64 / 1000.0);
            clash(Rule::Cores, format!("makes {held} cores of {has}"));
        }
        if self.memory_mib > node.memory_mib {
            clash(
                Rule::Memory,
                format!(
                    "makes {} MiB of host memory of {}",
                    self.memory_mib, node.memory_mib
                ),
            );
        }
    }
}
