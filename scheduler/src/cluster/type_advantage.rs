//! Which GPU types suit which classes: facts of a cluster that change only where a speed turns out to be another.

use crate::cluster_spec::ModelClass;
use crate::ids::GpuTypeId;

/// What the types are worth to the classes.
#[derive(Clone, Debug)]
pub(super) struct TypeWorth {
    /// See [`Cluster::type_advantage`](super::Cluster::type_advantage). `[class][type]`
    pub advantage: Vec<f64>,
    /// The type on which the average class is fastest; the lowest of equal ones.
    pub fastest: GpuTypeId,
    /// Whether jobs can have anything else: other types, sizes, or shares of a node.
    pub has_choice: bool,
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
