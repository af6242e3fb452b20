//! What a job could have besides what it asks for: other GPU types, other sizes, other shares of a node, and what they are
//! worth to it.

use super::Cluster;
use super::shape::{Shape, ShapeId, units};
use super::tables::{Node, Slice};
use crate::ids::{ClassId, GpuTypeId, JobId, NodeId};
use crate::spec::ModelClass;

/// What the types are worth to the classes; fixed for a cluster.
#[derive(Clone, Debug)]
pub(super) struct TypeWorth {
    /// See [`Cluster::type_advantage`]. `[class][type]`
    advantage: Vec<f64>,
    /// The type on which the average class is fastest; the lowest of equal ones.
    fastest: GpuTypeId,
    /// Whether jobs can have anything else: other types, sizes, or shares of a node.
    has_choice: bool,
}

impl TypeWorth {
    /// `value` is the mean speed of all classes on each type; types without GPUs do not count.
    pub(super) fn new(classes: &[ModelClass], value: &[f64], num_gpus: &[u32]) -> TypeWorth {
        let present: Vec<usize> = (0..value.len()).filter(|kind| num_gpus[*kind] > 0).collect();
        let mean = |speeds: &[f64]| {
            let sum: f64 = present.iter().map(|kind| speeds[*kind]).sum();
            sum / present.len().max(1) as f64
        };
        let part = |speeds: &[f64], kind: usize| {
            let mean = mean(speeds);
            if mean > 0.0 { speeds[kind] / mean } else { 1.0 }
        };
        let mut advantage = Vec::with_capacity(classes.len() * value.len());
        for class in classes {
            advantage.extend((0..value.len()).map(|kind| match part(value, kind) {
                average if average > 0.0 => part(&class.speed, kind) / average,
                _ => 1.0,
            }));
        }
        let fastest = present
            .iter()
            .copied()
            .fold(None, |best: Option<usize>, kind| match best {
                Some(other) if value[kind] <= value[other] => best,
                _ => Some(kind),
            });
        let varied = |class: &ModelClass| class.elastic.is_some() || class.sensitivity.is_some();
        TypeWorth {
            advantage,
            fastest: GpuTypeId(fastest.unwrap_or(0) as u8),
            has_choice: value.len() > 1 || classes.iter().any(varied),
        }
    }
}

impl Cluster {
    /// Speed of a class on a type over its mean over the cluster's types, over the same of the average class: what
    /// [`Template::BestValue`](super::Template::BestValue) makes most of. 1 with one type.
    #[must_use]
    pub fn type_advantage(&self, class: ClassId, kind: GpuTypeId) -> f64 {
        self.worth.advantage[class.index() * self.num_types() + kind.index()]
    }

    /// The type on which the average class is fastest.
    #[must_use]
    pub fn fastest_type(&self) -> GpuTypeId {
        self.worth.fastest
    }

    /// Whether jobs can have anything else than what they ask for.
    pub(crate) fn has_choice(&self) -> bool {
        self.worth.has_choice
    }

    /// Some node of a type.
    pub(crate) fn node_of(&self, kind: GpuTypeId) -> Option<NodeId> {
        let of_type = self.racks.iter().find(|rack| rack.gpu_type == kind);
        of_type.map(|rack| rack.first_node)
    }

    /// CPU cores that a shape reserves over the share of the node that is proportional to its GPUs; 1 for a shape that
    /// reserves none, and where CPU is not modelled.
    #[must_use]
    pub fn cores_ratio(&self, shape: ShapeId, node: NodeId) -> f64 {
        let (shape, node): (Shape, &Node) = (self.shape(shape), &self.nodes[node.index()]);
        if shape.cpu_milli == 0 || node.cpu_milli == 0 {
            return 1.0;
        }
        f64::from(shape.cpu_milli) * f64::from(node.num_gpus) / f64::from(node.cpu_milli)
    }

    /// Rate of a class with what a shape reserves over its rate with the most CPU and memory that its surface knows, on the
    /// same GPUs; 1 for a class without a surface. (0, 1]
    #[must_use]
    pub fn demand_rate_ratio(&self, class: ClassId, shape: ShapeId, placement: &[Slice]) -> f64 {
        let Some(surface) = &self.classes[class.index()].sensitivity else {
            return 1.0;
        };
        let last = |axis: &[f64], per: f64| units(axis.last().copied().unwrap_or(0.0), per);
        let all = Shape {
            cpu_milli: last(&surface.cores, 1000.0),
            memory_mib: last(&surface.memory_gib, 1024.0),
            ..self.shape(shape)
        };
        let here = self.input_speed(class, self.shape(shape), placement);
        (here / self.input_speed(class, all, placement)).min(1.0)
    }

    /// What the CPU and memory that a job asks for make of its speed on a type, as on some node of it.
    pub(crate) fn asked_input_speed(&self, id: JobId, kind: GpuTypeId) -> f64 {
        let job = &self.jobs[id.index()];
        if self.classes[job.request.class.index()].sensitivity.is_none() {
            return 1.0;
        }
        let slice = self.node_of(kind).map(|node| Slice { node, gpus: 1 });
        self.input_speed(job.request.class, self.shape(job.shape), slice.as_slice())
    }

    /// What [`Job::peak_per_gpu`](super::Job::peak_per_gpu) is now; none for a job that is not elastic.
    pub(super) fn best_per_gpu(&self, id: JobId) -> Option<f64> {
        let job = &self.jobs[id.index()];
        let elastic = self.classes[job.request.class.index()].elastic.as_ref()?;
        let profile = &elastic.profile;
        let noise = profile.noise(job.executed_s / job.request.estimate_s.value);
        let goodput = |num_gpus: u32| {
            let num_nodes = self.tightest(job.types, num_gpus).0;
            let choice = (num_nodes != u32::MAX).then(|| profile.best(num_gpus, num_nodes, noise))??;
            Some(choice.goodput)
        };
        let asked = job.request.num_gpus;
        let reference = goodput(asked)?;
        let sizes = (0..31).map(|power| 1_u32 << power);
        let sizes = sizes
            .take_while(|size| *size <= elastic.gpus_max)
            .filter(|size| *size != asked);
        let per_gpu = |size: u32| Some(goodput(size)? / f64::from(size));
        let best = sizes
            .filter_map(per_gpu)
            .fold(reference / f64::from(asked), f64::max);
        Some(best / reference)
    }
}
