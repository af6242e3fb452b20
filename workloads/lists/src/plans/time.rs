//! Time of a step: a roofline, the bubble of a pipeline, and collectives that the links price.
//!
//! ```text
//! FLOP      6 active parameters a token, and 6 L h s for attention that looks back (12 where a source counts all of it)
//! compute   FLOP x tokens (4/3 where layers are computed anew) / (n x peak x level) x (h + 700)/h
//! bubble    (pipeline - 1) / (micro batches x virtual stages)
//! tensor    16 bytes a token, layer and unit of width, gathered and scattered inside the domain (3/2 if computed anew)
//! data      4 bytes a parameter of a GPU (ZeRO-3: 6, for each micro batch), `tensor` rings beside each other
//! expert    8 bytes a token, layer, unit of width and expert passed, all to all
//! step      compute (1 + bubble) + 0.35 tensor + 0.8 data + 0.4 expert
//! ```
//!
//! # Source
//! FLOP: Narayanan et al. (SC'21). Width 700 and exposure 0.8 of data parallel traffic fitted to published rows ([`super::stack`]);
//! that of tensor parallel traffic is not identified by them (0 to 0.5 within 0.002 of the error), 0.35 and 0.4 are *assumed*.

use pleach_scheduler::physics::links::{Fabric, Spread};

use super::model::Training;
use super::plan::{Plan, Recompute};

/// Width at which half of the peak's level is left.
const WIDTH: f64 = 700.0;
/// Part of each traffic that does not hide behind compute.
const EXPOSED_TENSOR: f64 = 0.35;
const EXPOSED_DATA: f64 = 0.8;
const EXPOSED_EXPERT: f64 = 0.4;

/// GPUs of one type as a training meets them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Peak of a GPU, FLOP/s.
    pub peak: f64,
    /// Part of the peak that the software gets of a wide model without traffic, (0, 1].
    pub level: f64,
    /// 1 where attention looks back alone; 2 where a source counts, or computes, all of it.
    pub attention: f64,
    /// Memory of a GPU, GiB.
    pub memory_gib: f64,
    /// GPUs of a node.
    pub gpus_per_node: u32,
    /// Links.
    pub fabric: Fabric,
}

/// What a step is made of, s; of collectives what is not hidden.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepTime {
    /// Compute.
    pub compute_s: f64,
    /// Waiting of pipeline stages.
    pub bubble_s: f64,
    /// Tensor parallel traffic.
    pub tensor_s: f64,
    /// Gradients and weights.
    pub data_s: f64,
    /// Tokens on their way to experts.
    pub expert_s: f64,
}

impl StepTime {
    /// The whole step, s.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.compute_s + self.bubble_s + self.tensor_s + self.data_s + self.expert_s
    }
}

impl Machine {
    /// GPUs that NVLink joins.
    pub(super) fn domain(&self) -> u32 {
        self.gpus_per_node * self.fabric.inside.nodes_per_domain
    }

    /// How `ranks` lie that are every `stride`-th GPU of the gang, with `beside` such groups at once.
    fn spread(&self, ranks: u32, stride: u32, beside: u32) -> Spread {
        let domain = self.domain();
        let in_domain = (domain / stride).clamp(1, ranks);
        let nics = self.fabric.between.nics_per_node * self.fabric.inside.nodes_per_domain;
        Spread {
            num_gpus: ranks,
            num_domains: ranks.div_ceil(in_domain),
            domain_gpus_min: in_domain,
            domain_nics_min: nics.min(domain),
            is_one_island: true,
            is_one_rack: true,
            share: 1.0 / f64::from(beside.clamp(1, domain)),
        }
    }
}

/// Time of a step under a plan that [`Plan::validate`] has passed, on whole domains that the gang has to itself.
#[must_use]
pub fn step_time(training: &Training, plan: &Plan, num_gpus: u32, machine: &Machine) -> StepTime {
    let model = &training.model;
    let (hidden, layers) = (f64::from(model.hidden), f64::from(model.layers));
    let stages = f64::from(plan.pipeline);
    let tokens = f64::from(training.batch) * f64::from(training.sequence);
    let again = match plan.recompute {
        Recompute::None => 0.0,
        Recompute::Full => 1.0,
    };
    let flop = training.flop_per_token(machine.attention) * tokens * (1.0 + again / 3.0);
    let narrow = (hidden + WIDTH) / hidden;
    let compute_s = flop / (f64::from(num_gpus) * machine.peak * machine.level) * narrow;
    let micro_batches = plan.micro_batches(training, num_gpus);
    let bubble = (stages - 1.0) / (micro_batches * f64::from(plan.virtual_stages));

    let fabric = &machine.fabric;
    // Tokens that pass a GPU's tensor group, and its layers of them.
    let group_tokens = tokens / (f64::from(plan.readers(num_gpus)) * f64::from(plan.context));
    let passed = group_tokens * hidden * layers / stages;
    let tensor_bytes = 16.0 * passed * (1.0 + again / 2.0);
    let tensor_s = fabric.gather_s(machine.spread(plan.tensor, 1, 1), tensor_bytes);

    let copies = num_gpus / plan.replica();
    let rounds = if plan.zero == 3 {
        6.0 * micro_batches.max(1.0)
    } else {
        4.0
    };
    // Frozen weights are gathered, and only gradients of adapters come back.
    let moved = match plan.zero {
        3 => (2.0 + training.trained.part()) / 3.0,
        _ => training.trained.part(),
    };
    let data_bytes = rounds * moved * model.parameters / f64::from(plan.replica());
    let data_s = fabric.gather_s(machine.spread(copies, plan.tensor, plan.tensor), data_bytes);

    let expert_s = model.experts.map_or(0.0, |experts| {
        let bytes = 8.0 * passed / f64::from(plan.tensor) * f64::from(experts.top);
        fabric.all_to_all_s(machine.spread(plan.expert, 1, 1), bytes)
    });
    StepTime {
        compute_s,
        bubble_s: compute_s * bubble,
        tensor_s: EXPOSED_TENSOR * tensor_s,
        data_s: EXPOSED_DATA * data_s,
        expert_s: EXPOSED_EXPERT * expert_s,
    }
}
