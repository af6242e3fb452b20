//! What a job could have besides what it asks for: other GPU types, other sizes, other shares of a node, and what they are
//! worth to it.

use crate::cluster::Cluster;
use crate::cluster::jobs::shape::{Shape, units};
use crate::cluster::rates::goodput_cache::{FirstGoodput, WaitingPace};
use crate::cluster::tables::Slice;
use crate::cluster_spec::Tasks;
use crate::ids::{ClassId, GpuTypeId, JobId, NodeId};

impl Cluster {
    /// Speed of a class on a type over its mean over the cluster's types, over the same of the average class: what
    /// [`Template::BestValue`](crate::cluster::Template::BestValue) makes most of. 1 with one type.
    #[must_use]
    pub fn type_advantage(&self, class: ClassId, kind: GpuTypeId) -> f64 {
        self.facts.worth.advantage(class, kind)
    }

    /// The type on which the average class is fastest.
    #[must_use]
    pub(crate) fn fastest_type(&self) -> GpuTypeId {
        self.facts.worth.fastest
    }

    /// Whether jobs can have anything else than what they ask for: another GPU type, another size, other cores.
    #[must_use]
    pub fn has_choice(&self) -> bool {
        self.facts.worth.has_choice
    }

    /// Some node of a type.
    pub(crate) fn node_of(&self, kind: GpuTypeId) -> Option<NodeId> {
        let of_type = self.places.racks.iter().find(|rack| rack.gpu_type == kind);
        of_type.map(|rack| rack.first_node)
    }

    /// CPU cores that a shape reserves over the share of the node that is proportional to its GPUs; 1 for a shape that
    /// reserves none, and where CPU is not modelled.
    #[must_use]
    pub(crate) fn cores_ratio(&self, shape: Shape, node: NodeId) -> f64 {
        let node = &self.places.nodes[node.index()];
        if shape.cpu_milli == 0 || node.cpu_milli == 0 {
            return 1.0;
        }
        f64::from(shape.cpu_milli) * f64::from(node.num_gpus) / f64::from(node.cpu_milli)
    }

    /// Rate of a class with what a shape reserves over its rate with the most CPU and memory that its surface knows, on the
    /// same GPUs; 1 for a class without a surface. (0, 1]
    #[must_use]
    pub(crate) fn demand_rate_ratio(&self, class: ClassId, shape: Shape, placement: &[Slice]) -> f64 {
        let Some(surface) = &self.facts.classes[class.index()].sensitivity else {
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
        let job = &self.jobs.rows[id.index()];
        if self.facts.classes[job.request.class.index()]
            .sensitivity
            .is_none()
        {
            return 1.0;
        }
        let slice = self.node_of(kind).map(|node| Slice { node, gpus: 1 });
        self.input_speed(job.request.class, self.shape(job.shape), slice.as_slice())
    }

    /// What each GPU of a job comes with at the least CPU and memory with which its class runs fastest, within what one node of
    /// the type has for such a gang: Synergy's demand vector (OSDI'22, section 4.1). None for a class without a surface, a
    /// fraction of a GPU, and where CPU or memory is not modelled.
    #[must_use]
    pub(crate) fn saturating_shape(&self, id: JobId, kind: GpuTypeId) -> Option<Shape> {
        let request = &self.jobs.rows[id.index()].request;
        let surface = self.facts.classes[request.class.index()].sensitivity.as_ref()?;
        if request.resources.is_fractional() {
            return None;
        }
        // Nodes of a rack are alike; each GPU of the gang can have its part of the roomiest node.
        let (mut most, mut roomiest) = ((0, 0), None);
        for rack in self.places.racks.iter().filter(|rack| rack.gpu_type == kind) {
            let node = &self.places.nodes[rack.first_node.index()];
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
            tasks: request.resources.tasks,
            ..Shape::PLAIN
        })
    }

    /// Whether there is a number left for a shape.
    pub(crate) fn can_number(&self, shape: Shape) -> bool {
        self.jobs.shapes.can_number(shape)
    }

    /// What is looked up of an elastic job while it waits; plain for others.
    pub(in crate::cluster) fn waiting_pace(&mut self, id: JobId) -> WaitingPace {
        let mut first = std::mem::take(&mut self.facts.first_goodput);
        let pace = self.pace_with(&mut first, id);
        self.facts.first_goodput = first;
        pace
    }

    fn pace_with(&self, first: &mut FirstGoodput, id: JobId) -> WaitingPace {
        let job = &self.jobs.rows[id.index()];
        let class = job.request.class;
        let Some(elastic) = &self.facts.classes[class.index()].elastic else {
            return WaitingPace::NONE;
        };
        let profile = &elastic.profile;
        let noise = profile.noise(job.executed_s / job.request.estimate_s.value);
        let mut goodput = |num_gpus: u32, num_nodes: u32| {
            let search = || profile.goodput(num_gpus, num_nodes, noise);
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
        let mut tightest = |num_gpus: u32| match self.tightest(job.types, num_gpus, Tasks::ANY).0 {
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
