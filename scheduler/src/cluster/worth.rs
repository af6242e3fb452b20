//! What a job could have besides what it asks for: other GPU types, other sizes, other shares of a node, and what they are
//! worth to it.

use super::Cluster;
use super::shape::{Shape, units};
use super::tables::Slice;
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

/// Goodput at the start of training by class, number of GPUs, and whether on several nodes. Jobs that have not run yet share
/// it: a goodput is a search, and a queue may hold thousands of jobs of the same few models. It is filled as it is asked for, and
/// has its memory from the start.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstGoodput {
    /// NaN for what was not asked for yet. `[class][num_gpus][one node, several]`
    classes: Vec<Vec<[f64; 2]>>,
}

impl FirstGoodput {
    /// For jobs that ask for up to `num_gpus`, all of the cluster, and look at twice as many.
    pub(super) fn new(classes: &[ModelClass], num_gpus: u32) -> FirstGoodput {
        let sizes = |class: &ModelClass| {
            let most = class.elastic.map_or(0, |elastic| elastic.gpus_max.min(num_gpus));
            vec![[f64::NAN; 2]; if most > 0 { 2 * most as usize + 1 } else { 0 }]
        };
        FirstGoodput {
            classes: classes.iter().map(sizes).collect(),
        }
    }

    fn get(
        &mut self,
        class: ClassId,
        num_gpus: u32,
        is_on_several: bool,
        search: impl FnOnce() -> f64,
    ) -> f64 {
        let Some(kept) = self.classes[class.index()].get_mut(num_gpus as usize) else {
            return search();
        };
        let kept = &mut kept[usize::from(is_on_several)];
        if kept.is_nan() {
            *kept = search();
        }
        *kept
    }
}

/// How an elastic job scales with the noise scale at which it waits: a goodput is a search over batches, too slow for every
/// look at every placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitingPace {
    /// Goodput on half, all and twice of what it asked for, on one node and on several; 0 where it cannot run. `[size][nodes]`
    goodput: [[f64; 2]; 3],
    /// Progress per GPU at its most efficient size over its progress at the size that it asked for: the best of the sizes 1, 2,
    /// 4, ... and the one asked for, all at their tightest. 0 for a job that is not elastic.
    pub peak_per_gpu: f64,
}

impl WaitingPace {
    /// Of a job that is not elastic.
    pub(super) const NONE: WaitingPace = WaitingPace {
        goodput: [[0.0; 2]; 3],
        peak_per_gpu: 0.0,
    };

    fn sizes(asked: u32) -> [u32; 3] {
        [asked / 2, asked, asked.saturating_mul(2)]
    }

    /// Goodput on so many GPUs, if it is kept. How many nodes more than one does not matter to the synchronisation.
    pub(super) fn of(&self, asked: u32, num_gpus: u32, num_nodes: u32) -> Option<f64> {
        let at = Self::sizes(asked).iter().position(|size| *size == num_gpus)?;
        Some(self.goodput[at][usize::from(num_nodes > 1)])
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
    pub fn cores_ratio(&self, shape: Shape, node: NodeId) -> f64 {
        let node = &self.nodes[node.index()];
        if shape.cpu_milli == 0 || node.cpu_milli == 0 {
            return 1.0;
        }
        f64::from(shape.cpu_milli) * f64::from(node.num_gpus) / f64::from(node.cpu_milli)
    }

    /// Rate of a class with what a shape reserves over its rate with the most CPU and memory that its surface knows, on the
    /// same GPUs; 1 for a class without a surface. (0, 1]
    #[must_use]
    pub fn demand_rate_ratio(&self, class: ClassId, shape: Shape, placement: &[Slice]) -> f64 {
        let Some(surface) = &self.classes[class.index()].sensitivity else {
            return 1.0;
        };
        let last = |axis: &[f64], per: f64| units(axis.last().copied().unwrap_or(0.0), per);
        let all = Shape {
            cpu_milli: last(&surface.cores, 1000.0),
            memory_mib: last(&surface.memory_gib, 1024.0),
            ..shape
        };
        let here = self.input_speed(class, shape, placement);
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

    /// What each GPU of a job comes with at the least CPU and memory with which its class runs fastest, within what one node of
    /// the type has for such a gang: Synergy's demand vector (OSDI'22, section 4.1). None for a class without a surface, a
    /// fraction of a GPU, and where CPU or memory is not modelled.
    #[must_use]
    pub fn saturating_shape(&self, id: JobId, kind: GpuTypeId) -> Option<Shape> {
        let request = &self.jobs[id.index()].request;
        let surface = self.classes[request.class.index()].sensitivity.as_ref()?;
        if request.resources.is_fractional() {
            return None;
        }
        // Nodes of a rack are alike; each GPU of the gang can have its part of the roomiest node.
        let (mut most, mut roomiest) = ((0, 0), None);
        for rack in self.racks.iter().filter(|rack| rack.gpu_type == kind) {
            let node = &self.nodes[rack.first_node.index()];
            let gpus = request.num_gpus.min(node.num_gpus);
            let part = (node.cpu_milli / gpus, node.memory_mib / gpus);
            if part > most && part.1 > 0 {
                (most, roomiest) = (part, Some(rack.first_node));
            }
        }
        let slice = Slice {
            node: roomiest?,
            gpus: 1,
        };
        let speed = |cpu_milli: u32, memory_mib: u32| {
            let shape = Shape {
                cpu_milli,
                memory_mib,
                ..Shape::PLAIN
            };
            self.input_speed(request.class, shape, &[slice])
        };
        let enough = speed(most.0, most.1) - 1e-12;
        let levels = |axis: &[f64], per: f64, most: u32, fast: &dyn Fn(u32) -> bool| {
            let mut levels = axis.iter().map(|level| units(*level, per).min(most));
            levels.find(|level| fast(*level)).unwrap_or(most)
        };
        let cpu_milli = levels(&surface.cores, 1000.0, most.0, &|cpu| {
            speed(cpu, most.1) >= enough
        });
        let memory_mib = levels(&surface.memory_gib, 1024.0, most.1, &|memory| {
            speed(cpu_milli, memory) >= enough
        });
        Some(Shape {
            cpu_milli,
            memory_mib,
            ..Shape::PLAIN
        })
    }

    /// Whether there is a number left for a shape.
    pub(crate) fn can_number(&self, shape: Shape) -> bool {
        self.shapes.can_number(shape)
    }

    /// What is looked up of an elastic job while it waits; plain for others.
    pub(super) fn waiting_pace(&mut self, id: JobId) -> WaitingPace {
        let mut first = std::mem::take(&mut self.first_goodput);
        let pace = self.pace_with(&mut first, id);
        self.first_goodput = first;
        pace
    }

    fn pace_with(&self, first: &mut FirstGoodput, id: JobId) -> WaitingPace {
        let job = &self.jobs[id.index()];
        let class = job.request.class;
        let Some(elastic) = &self.classes[class.index()].elastic else {
            return WaitingPace::NONE;
        };
        let profile = &elastic.profile;
        let noise = profile.noise(job.executed_s / job.request.estimate_s.value);
        let mut goodput = |num_gpus: u32, num_nodes: u32| {
            let search = || {
                let choice = profile.best(num_gpus, num_nodes, noise);
                choice.map_or(0.0, |choice| choice.goodput)
            };
            if job.executed_s > 0.0 {
                return search();
            }
            first.get(class, num_gpus, num_nodes > 1, search)
        };
        let asked = job.request.num_gpus;
        let mut pace = WaitingPace::NONE;
        for (at, num_gpus) in WaitingPace::sizes(asked).into_iter().enumerate() {
            pace.goodput[at] = [goodput(num_gpus, 1), goodput(num_gpus, 2)];
        }
        let mut tightest = |num_gpus: u32| match self.tightest(job.types, num_gpus).0 {
            u32::MAX => 0.0,
            num_nodes => pace
                .of(asked, num_gpus, num_nodes)
                .unwrap_or_else(|| goodput(num_gpus, num_nodes)),
        };
        let sizes = (0..31).map(|power| 1_u32 << power);
        let sizes = sizes.take_while(|size| *size <= elastic.gpus_max).chain([asked]);
        let best = sizes
            .map(|size| tightest(size) / f64::from(size))
            .fold(0.0, f64::max);
        let reference = tightest(asked);
        pace.peak_per_gpu = if reference > 0.0 { best / reference } else { 0.0 };
        pace
    }
}
