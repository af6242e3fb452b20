//! Which GPU types suit which classes: facts of a cluster that change only where a speed turns out to be another.

use crate::cluster_spec::ModelClass;
use crate::ids::{ClassId, GpuTypeId};

/// What the types are worth to the classes.
#[derive(Clone, Debug)]
pub(in crate::cluster) struct TypeWorth {
    /// Types that have GPUs; the others do not count.
    present: Vec<usize>,
    /// Speed of each class on each type over its mean on all types. `[class][type]`
    part: Vec<f64>,
    /// The same of the mean of all classes. `[type]`
    average: Vec<f64>,
    /// The type on which the average class is fastest; the lowest of equal ones.
    pub fastest: GpuTypeId,
    /// Whether jobs can have anything else: other types, sizes, or shares of a node.
    pub has_choice: bool,
}

impl TypeWorth {
    /// `value` is the mean speed of all classes on each type; types without GPUs do not count.
    pub(in crate::cluster) fn new(classes: &[ModelClass], value: &[f64], num_gpus: &[u32]) -> TypeWorth {
        let varied = |class: &ModelClass| class.elastic.is_some() || class.sensitivity.is_some();
        let mut worth = TypeWorth {
            present: (0..value.len()).filter(|kind| num_gpus[*kind] > 0).collect(),
            part: Vec::with_capacity(classes.len() * value.len()),
            average: Vec::new(),
            fastest: GpuTypeId(0),
            has_choice: value.len() > 1 || classes.iter().any(varied),
        };
        for class in classes {
            let parts = worth.parts(&class.speed);
            worth.part.extend(parts);
        }
        worth.set_value(value);
        worth
    }

    /// A class turns out to have other speeds, and the mean of all classes with it.
    pub(in crate::cluster) fn learn(&mut self, class: ClassId, speeds: &[f64], value: &[f64]) {
        let parts = self.parts(speeds);
        let first = class.index() * value.len();
        self.part[first..first + value.len()].copy_from_slice(&parts);
        self.set_value(value);
    }

    /// See [`Cluster::type_advantage`](crate::cluster::Cluster::type_advantage).
    pub(in crate::cluster) fn advantage(&self, class: ClassId, kind: GpuTypeId) -> f64 {
        match self.average[kind.index()] {
            average if average > 0.0 => {
                self.part[class.index() * self.average.len() + kind.index()] / average
            }
            _ => 1.0,
        }
    }

    fn set_value(&mut self, value: &[f64]) {
        self.average = self.parts(value);
        let fastest = self
            .present
            .iter()
            .copied()
            .fold(None, |best: Option<usize>, kind| match best {
                Some(other) if value[kind] <= value[other] => best,
                _ => Some(kind),
            });
        self.fastest = GpuTypeId(fastest.unwrap_or(0) as u8);
    }

    /// Speeds over their mean on the types that count.
    fn parts(&self, speeds: &[f64]) -> Vec<f64> {
        let sum: f64 = self.present.iter().map(|kind| speeds[*kind]).sum();
        let mean = sum / self.present.len().max(1) as f64;
        let part = |speed: &f64| if mean > 0.0 { speed / mean } else { 1.0 };
        speeds.iter().map(part).collect()
    }
}
