//! Gives the jobs of any list what is published of the models that they train: size of a checkpoint, memory, interval, what a start
//! takes, how busy they keep a GPU, what a step sends; and the cluster the links and the store that such sites have.
//!
//! A class is known by its name ([`CLASSES`]). Lists that do not say what a job trains get one of several models of that time by the
//! size of the gang, always the same one for the same job; the published memory stands in for theirs then. Of a class of another name
//! nothing is assumed: its memory stays unknown, and clusters that guard their sharing refuse it. What a list says itself stays.
//! The memory of a class is at most that of the smallest GPU on which it runs, because it does run there.

mod aggressors;
mod fabrics;
mod table;

use std::collections::BTreeMap;

use pleach_scheduler::cluster_spec::{ClusterSpec, Load, LocalityFactors, ModelClass};
use pleach_scheduler::physics::interference::Interference;

pub use table::{CLASSES, ClassFacts, facts_of};
use table::{MIXES, Mix, row_of};

use crate::{Seed, Workload};

/// Bytes of a GiB over those of a GB.
pub(crate) const GIB_GB: f64 = 1.073_741_824;

/// Of how many jobs the class is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// Jobs whose class has a name of the table.
    pub num_known: usize,
    /// Jobs for which one of several models stands.
    pub num_assumed: usize,
    /// Jobs of an unknown class.
    pub num_unknown: usize,
}

impl Workload {
    /// Gives each class what is published of it, and the cluster links, a shared store and guarded sharing, where the list says
    /// nothing. A gang's loss by links stands for a loss that was not measured for its class. Restarts that were measured whole are given where `measured_restarts` says so.
    pub fn fill_class_facts(&mut self, measured_restarts: bool) -> Filled {
        let mut filled = Filled::default();
        let given = std::mem::take(&mut self.classes);
        let filling = Filling {
            cluster: &self.cluster,
            measured_restarts,
        };
        // A kind of which a model is drawn for each job becomes as many classes; others keep their place.
        let mut drawn: BTreeMap<(u16, &str), u16> = BTreeMap::new();
        let known: Vec<Option<&ClassFacts>> = given.iter().map(|class| facts_of(&class.name)).collect();
        let mixes: Vec<Vec<&Mix>> = given
            .iter()
            .map(|class| mixes_of(&class.name, &self.cluster))
            .collect();
        self.classes
            .extend(given.iter().zip(&known).map(|(class, facts)| {
                facts.map_or_else(|| class.clone(), |facts| filling.with_facts(class, facts))
            }));
        for job in &mut self.jobs {
            let of = usize::from(job.class);
            if known[of].is_some() {
                filled.num_known += 1;
                continue;
            }
            let Some((.., models)) = mixes[of].iter().find(|(_, up_to, _)| job.num_gpus <= *up_to) else {
                filled.num_unknown += 1;
                continue;
            };
            filled.num_assumed += 1;
            let name = models[(Seed(0).child(&job.id, 0).0 % models.len() as u64) as usize];
            job.class = *drawn.entry((job.class, name)).or_insert_with(|| {
                let facts = row_of(name);
                let class = ModelClass {
                    name: format!("{}: {name}", given[of].name),
                    ..filling.with_facts(&given[of], facts)
                };
                self.classes.push(class);
                (self.classes.len() - 1) as u16
            });
        }
        self.fill_links();
        self.cluster.storage.get_or_insert_default();
        if self.cluster.interference == Interference::default() {
            self.cluster.interference = Interference::MEASURED;
            if self.cluster.pairs.is_empty() {
                self.cluster.pairs = aggressors::pairs_of(&self.classes, &self.cluster);
            }
        }
        filled
    }

    /// Links for the cluster, and for each class what a step sends, unless spread gangs of it were measured: one loss for all gangs
    /// ([`LocalityFactors::PHILLY`]), or none, is what lists have that say nothing.
    fn fill_links(&mut self) {
        let says_nothing = [LocalityFactors::PHILLY, LocalityFactors::NONE];
        let fabric = self.cluster.fabric;
        let Some(fabric) = fabric.or_else(|| fabrics::fabric_of(&self.cluster)) else {
            return;
        };
        let classes = self.classes.iter_mut();
        for class in classes.filter(|class| says_nothing.contains(&class.locality)) {
            if class.step.is_none() && class.elastic.is_none() {
                class.step = facts_of(&class.name).and_then(ClassFacts::step);
            }
        }
        if self.classes.iter().any(|class| class.step.is_some()) {
            self.cluster.fabric = Some(fabric);
        }
    }
}

/// How classes are filled.
struct Filling<'a> {
    cluster: &'a ClusterSpec,
    measured_restarts: bool,
}

impl Filling<'_> {
    /// The class with what is published of it, where it says nothing itself.
    fn with_facts(&self, class: &ModelClass, facts: &ClassFacts) -> ModelClass {
        let usable = self
            .cluster
            .gpu_types
            .iter()
            .zip(&class.speed)
            .filter(|(_, speed)| **speed > 0.0);
        let smallest_gib = usable
            .map(|(gpu, _)| gpu.memory_gib)
            .fold(f64::INFINITY, f64::min);
        let or = |own: f64, published: f64| if own == 0.0 { published } else { own };
        let says_nothing = class.state_gib == 0.0 && class.warm_up_s == 0.0;
        let bandwidth = match facts.utilisation {
            light if light < 0.35 => 0.07,
            medium if medium < 0.7 => 0.20,
            _ => 0.55,
        };
        let published = Load {
            utilisation: facts.utilisation,
            bandwidth,
        };
        ModelClass {
            state_gib: or(class.state_gib, facts.state_gb() / GIB_GB),
            gpu_memory_gib: or(
                class.gpu_memory_gib,
                (facts.gpu_memory_gb / GIB_GB).min(smallest_gib),
            ),
            host_memory_gib: or(class.host_memory_gib, facts.host_memory_gb / GIB_GB),
            warm_up_s: or(class.warm_up_s, facts.warm_up_s),
            checkpoint_interval_s: class
                .checkpoint_interval_s
                .or(Some(facts.interval_s).filter(|interval_s| *interval_s > 0.0)),
            restart_cost_s: class
                .restart_cost_s
                .or(facts.restart_s.filter(|_| self.measured_restarts && says_nothing)),
            load: if class.load == Load::default() {
                published
            } else {
                class.load
            },
            ..class.clone()
        }
    }
}

/// What jobs of a class may train that says no more of itself: by its word, or where it names GPU types that it accepts.
fn mixes_of(name: &str, cluster: &ClusterSpec) -> Vec<&'static Mix> {
    let is_type = |part: &str| cluster.gpu_types.iter().any(|gpu| gpu.name == part);
    let word = if name.split('|').any(is_type) { "any" } else { name };
    MIXES.iter().filter(|(known, ..)| *known == word).collect()
}

#[cfg(test)]
mod tests;
