//! From a training to a model class: its speed on each GPU type, what it needs there, and what it loses when it lies apart.

use pleach_scheduler::Problem;
use pleach_scheduler::cluster_spec::{ClusterSpec, ModelClass};
use pleach_scheduler::physics::links::{Fabric, Spread, StepCost};

use super::gpu::Gpu;
use super::memory::memory;
use super::model::Training;
use super::plan::Plan;
use super::precision::Precision;
use super::search::{Size, best_plan, planned};
use super::stack::level;
use super::time::Machine;
use crate::classes::GIB_GB;

/// Sizes that are named where a wanted one does not fit.
const SIZES_TRIED: u32 = 15;
/// Least part of a step that is compute where traffic is taken out of it.
const COMPUTE_PART_MIN: f64 = 0.05;

/// Most bytes of a step, and halvings after which the bytes of a time are known to 16 bytes.
const BYTES_MAX: f64 = 1e15;
const HALVINGS: u32 = 46;

impl Machine {
    /// A GPU type of a cluster as a training meets it, with the cluster's links or else those in which the type is sold. None for
    /// a type that is not known, that has no nodes, or that does not compute in the training's bits.
    #[must_use]
    pub fn of_cluster(cluster: &ClusterSpec, gpu_type: usize, training: &Training) -> Option<Machine> {
        let kind = &cluster.gpu_types[gpu_type];
        let known = Gpu::of(&kind.name)?;
        let groups = cluster
            .node_groups
            .iter()
            .filter(|group| group.gpu_type == kind.name);
        let gpus_per_node = groups.map(|group| group.gpus_per_node).max()?;
        let fabric = match cluster.fabric {
            Some(fabric) => fabric,
            None => Fabric::from_name(known.fabric).ok()?,
        };
        let peak = known.peak(training.precision);
        (peak > 0.0).then(|| Machine {
            peak,
            peak_16: known.peak(Precision::Bf16),
            level: level(known, training).0,
            attention: 1.0,
            memory_gib: kind.memory_gib,
            gpus_per_node,
            fabric,
        })
    }
}

/// A training on so many GPUs, by a plan of its own or the best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gang {
    /// What is trained.
    pub training: Training,
    /// GPUs.
    pub num_gpus: u32,
    /// How it is cut on every type; none: on each by the fastest plan that fits.
    pub plan: Option<Plan>,
}

impl Gang {
    /// By its best plans.
    #[must_use]
    pub fn new(training: Training, num_gpus: u32) -> Gang {
        Gang {
            training,
            num_gpus,
            plan: None,
        }
    }

    /// How it runs on a machine; none where it does not fit.
    #[must_use]
    pub fn on(&self, machine: &Machine) -> Option<Size> {
        match &self.plan {
            Some(plan) => planned(&self.training, machine, plan, self.num_gpus),
            None => best_plan(&self.training, machine, self.num_gpus),
        }
    }
}

/// The class of a gang: on each type of the cluster the speed of its plan over that on the first type that holds it; 0 where none
/// fits.
///
/// Links: the traffic of the plan on that first type is given as one all-reduce of the same time, so a loose placement costs
/// what the cluster's fabric makes of it. Traffic of tensor groups counts where a node holds the whole gang; in larger gangs it
/// stays in nodes (*assumed*: the parts of a loose placement are multiples of a group).
///
/// # Errors
/// A plan that cuts unevenly, and a gang that fits no type of the cluster; what fits is named.
pub fn class_of(name: &str, gang: &Gang, cluster: &ClusterSpec) -> Result<ModelClass, Problem> {
    let training = &gang.training;
    if let Some(plan) = &gang.plan {
        plan.validate(training, gang.num_gpus)?;
    }
    let types = 0..cluster.gpu_types.len();
    let machines: Vec<Option<Machine>> = types
        .map(|kind| Machine::of_cluster(cluster, kind, training))
        .collect();
    let on = |machine: &Option<Machine>| machine.as_ref().and_then(|machine| gang.on(machine));
    let sizes: Vec<Option<Size>> = machines.iter().map(on).collect();
    let mut found = sizes.iter().zip(&machines);
    let first = found.find_map(|(size, machine)| Some((size.as_ref()?, machine.as_ref()?)));
    let Some((reference, machine)) = first else {
        return Err(fits_nowhere(gang, cluster, &machines));
    };
    let speed = |size: &Size| size.tokens_per_s(training) / reference.tokens_per_s(training);
    let usable = cluster.gpu_types.iter().zip(&sizes);
    let usable = usable.filter(|(_, size)| size.is_some());
    let smallest_gib = usable.fold(f64::INFINITY, |least, (kind, _)| least.min(kind.memory_gib));
    Ok(ModelClass {
        name: name.into(),
        speed: sizes
            .iter()
            .map(|size| size.as_ref().map_or(0.0, speed))
            .collect(),
        step: Some(step_cost(reference, machine)),
        state_gib: training.state_gb() / GIB_GB,
        gpu_memory_gib: (reference.memory.total_gb() / GIB_GB).min(smallest_gib),
        ..ModelClass::default()
    })
}

impl Machine {
    /// The tightest placement of a gang that fills whole domains, or lies in one.
    fn whole(&self, num_gpus: u32) -> Spread {
        let num_domains = num_gpus.div_ceil(self.domain());
        let here = num_gpus / num_domains;
        let nodes = here.div_ceil(self.gpus_per_node);
        Spread {
            num_gpus,
            num_domains,
            domain_gpus_min: here,
            domain_nics_min: (self.fabric.between.nics_per_node * nodes).min(here),
            is_one_island: true,
            is_one_rack: true,
            share: 1.0,
        }
    }

    /// Bytes whose all-reduce takes so long; 0 where even an empty one takes longer.
    fn all_reduced_bytes(&self, spread: Spread, seconds: f64) -> f64 {
        let (mut low, mut high) = (0.0, BYTES_MAX);
        if spread.num_gpus <= 1 {
            return 0.0;
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if self.fabric.all_reduce_s(spread, middle) <= seconds {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// A step as compute and one all-reduce over the whole gang, as long together as the plan's step on its tightest placement.
fn step_cost(size: &Size, machine: &Machine) -> StepCost {
    let total_s = size.step.total_s();
    let spread = machine.whole(size.num_gpus);
    let is_one_domain = spread.num_domains <= 1;
    let sent_s = size.step.data_s
        + if is_one_domain {
            size.step.tensor_s + size.step.expert_s
        } else {
            size.step.expert_s
        };
    let gradient_bytes = machine.all_reduced_bytes(spread, sent_s);
    let sync_s = machine.fabric.all_reduce_s(spread, gradient_bytes);
    StepCost {
        compute_s: (total_s - sync_s).max(COMPUTE_PART_MIN * total_s),
        gradient_bytes,
        gamma: 1.0,
    }
}

/// What would fit instead: for a plan of one's own the memory that it needs, else the sizes.
fn fits_nowhere(gang: &Gang, cluster: &ClusterSpec, machines: &[Option<Machine>]) -> Problem {
    let mut allowed = Vec::new();
    for (kind, machine) in cluster.gpu_types.iter().zip(machines) {
        let Some(machine) = machine else {
            allowed.push(format!(
                "{}: its peak in this precision or its nodes are not known",
                kind.name
            ));
            continue;
        };
        let powers = (0..SIZES_TRIED).map(|power| 1 << power);
        let fits = powers.filter(|size| best_plan(&gang.training, machine, *size).is_some());
        let fits: Vec<String> = fits.map(|size| size.to_string()).collect();
        let fits = if fits.is_empty() {
            "no number of".into()
        } else {
            fits.join(", ")
        };
        allowed.push(format!("{} with {} GiB: {fits} GPUs", kind.name, kind.memory_gib));
    }
    let (training, num_gpus) = (&gang.training, gang.num_gpus);
    let allowed = allowed.join("; ");
    let Some(plan) = &gang.plan else {
        let value = format!(
            "{num_gpus} for {} with a batch of {}",
            training.model.name, training.batch
        );
        let hint =
            "take more GPUs, a batch that they can share out, adapters alone, or a type with more memory";
        return Problem::new("num_gpus", value, allowed, hint);
    };
    let needs = memory(training, plan, num_gpus).total_gb();
    Problem::new(
        "plan",
        format!("{needs:.1} GB on each of {num_gpus} GPUs"),
        format!("at most the GB of a card; by their best plans {allowed}"),
        "cut it into more parts, set recompute = \"full\", or leave plan out",
    )
}
