//! What each GPU of a gang comes with, in whole units, so that sums are exact: a share of the GPU, CPU and host memory; and how the
//! gang is cut into tasks.
//!
//! Jobs that ask for whole GPUs, cut as one likes, and nothing else have the *plain* shape, number 0: whether they fit is a count of free
//! GPUs. Every other shape is looked up node by node. Shapes are numbered as they first appear.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cluster_spec::{AllowedNodes, Resources, Tasks};

/// Number of a shape in its cluster; 0 is [`Shape::PLAIN`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShapeId(pub u16);

impl ShapeId {
    /// Whole GPUs and nothing else.
    pub const PLAIN: ShapeId = ShapeId(0);
}

/// What one GPU of a gang comes with, and how the gang is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Share of the GPU in thousandths, 1 to 1000.
    pub gpu_milli: u16,
    /// GPU memory, MiB; counts only where the GPU is shared.
    pub gpu_memory_mib: u32,
    /// CPU, thousandths of a core.
    pub cpu_milli: u32,
    /// Host memory, MiB.
    pub memory_mib: u32,
    /// How the gang is cut into tasks.
    #[serde(default, skip_serializing_if = "Tasks::is_any")]
    pub tasks: Tasks,
    /// The nodes that it may have.
    #[serde(default, skip_serializing_if = "AllowedNodes::is_all")]
    pub nodes: AllowedNodes,
}

impl Shape {
    /// A whole GPU and nothing else.
    pub const PLAIN: Shape = Shape {
        gpu_milli: 1000,
        gpu_memory_mib: 0,
        cpu_milli: 0,
        memory_mib: 0,
        tasks: Tasks::ANY,
        nodes: AllowedNodes::ALL,
    };

    /// The shape of a request; fractions of a unit are rounded up, so that nothing is promised twice. The memory of a
    /// whole GPU is no part of it: a job that has the GPU alone has all of it.
    #[must_use]
    pub fn of(resources: &Resources) -> Shape {
        let fractional = resources.is_fractional();
        Shape {
            gpu_milli: resources.gpu_milli,
            gpu_memory_mib: if fractional {
                units(resources.gpu_memory_gib, 1024.0)
            } else {
                0
            },
            cpu_milli: units(resources.cpu_cores, 1000.0),
            memory_mib: units(resources.memory_gib, 1024.0),
            tasks: resources.tasks,
            nodes: resources.nodes,
        }
    }

    /// Whether each GPU is a whole one and comes with nothing, however the gang is cut: free GPUs tell where it fits.
    #[must_use]
    pub fn is_gpus_alone(self) -> bool {
        let tasks = self.tasks;
        self == Shape {
            tasks,
            ..Shape::PLAIN
        }
    }

    /// Whether each GPU is a whole one: free GPUs, CPU and host memory of nodes tell where it fits.
    #[must_use]
    pub fn is_of_whole_gpus(self) -> bool {
        self.gpu_milli == 1000
    }

    /// Whether its GPUs come with CPU or host memory.
    #[must_use]
    pub fn has_inputs(self) -> bool {
        self.cpu_milli != 0 || self.memory_mib != 0
    }

    /// Whether it takes only a part of each GPU.
    #[must_use]
    pub fn is_fractional(self) -> bool {
        self.gpu_milli < 1000
    }

    /// How many GPUs of this shape, tasks apart, the CPU and host memory of a node can serve.
    #[must_use]
    #[inline]
    pub fn served_by(self, cpu_milli: u32, memory_mib: u32) -> u32 {
        let by_cpu = cpu_milli.checked_div(self.cpu_milli).unwrap_or(u32::MAX);
        by_cpu.min(memory_mib.checked_div(self.memory_mib).unwrap_or(u32::MAX))
    }

    /// How many of so many GPUs they can serve: mostly all, which no division tells.
    #[must_use]
    #[inline]
    pub fn served_of(self, num_gpus: u32, cpu_milli: u32, memory_mib: u32) -> u32 {
        let takes = |each: u32| u64::from(each) * u64::from(num_gpus);
        if takes(self.cpu_milli) <= u64::from(cpu_milli) && takes(self.memory_mib) <= u64::from(memory_mib) {
            return num_gpus;
        }
        num_gpus.min(self.served_by(cpu_milli, memory_mib))
    }
}

/// A quantity in whole units, rounded up.
pub(in crate::cluster) fn units(value: f64, per: f64) -> u32 {
    // The validated range, 0 to 1e6, times 1024 fits.
    (value * per - 1e-6).ceil().max(0.0) as u32
}

/// A node's capacity in whole units, rounded down.
pub(in crate::cluster) fn capacity(value: f64, per: f64) -> u32 {
    (value * per + 1e-6).floor().max(0.0) as u32
}

/// The shapes of a cluster.
#[derive(Clone, Debug)]
pub(in crate::cluster) struct Shapes {
    rows: Vec<Shape>,
    numbers: BTreeMap<Shape, ShapeId>,
}

impl Shapes {
    pub(in crate::cluster) fn new() -> Shapes {
        Shapes {
            rows: vec![Shape::PLAIN],
            numbers: [(Shape::PLAIN, ShapeId::PLAIN)].into(),
        }
    }

    pub(in crate::cluster) fn get(&self, id: ShapeId) -> Shape {
        self.rows[usize::from(id.0)]
    }

    /// Whether [`Shapes::number`] has one for it.
    pub(in crate::cluster) fn can_number(&self, shape: Shape) -> bool {
        self.rows.len() <= usize::from(u16::MAX) || self.numbers.contains_key(&shape)
    }

    /// Number of a shape, a new one where it was not seen before; none if there are too many.
    pub(in crate::cluster) fn number(&mut self, shape: Shape) -> Option<ShapeId> {
        if let Some(known) = self.numbers.get(&shape) {
            return Some(*known);
        }
        let id = ShapeId(u16::try_from(self.rows.len()).ok()?);
        self.rows.push(shape);
        self.numbers.insert(shape, id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_rounded_up_and_a_capacity_down() {
        let shape = Shape::of(&Resources {
            gpu_milli: 500,
            gpu_memory_gib: 0.1,
            cpu_cores: 1.0005,
            memory_gib: 2.0,
            ..Resources::WHOLE_GPU
        });
        assert_eq!(
            (shape.gpu_memory_mib, shape.cpu_milli, shape.memory_mib),
            (103, 1001, 2048)
        );
        assert_eq!(capacity(1.9999, 1000.0), 1999);
        assert_eq!(
            Shape::of(&Resources {
                gpu_memory_gib: 9.0,
                ..Resources::WHOLE_GPU
            }),
            Shape::PLAIN
        );
    }

    #[test]
    fn the_scarcer_of_cpu_and_memory_decides_how_many_a_node_serves() {
        let shape = Shape {
            cpu_milli: 4000,
            memory_mib: 1024,
            ..Shape::PLAIN
        };
        assert_eq!(shape.served_by(24_000, 1024 * 9), 6);
        assert_eq!(shape.served_by(24_000, 1024 * 5), 5);
        assert_eq!(Shape::PLAIN.served_by(0, 0), u32::MAX);
    }

    #[test]
    fn shapes_are_numbered_as_they_appear() {
        let mut shapes = Shapes::new();
        let half = Shape {
            gpu_milli: 500,
            ..Shape::PLAIN
        };
        assert_eq!(shapes.number(Shape::PLAIN), Some(ShapeId::PLAIN));
        assert_eq!(shapes.number(half), Some(ShapeId(1)));
        assert_eq!(shapes.number(half), Some(ShapeId(1)));
        assert_eq!(shapes.get(ShapeId(1)), half);
    }
}
