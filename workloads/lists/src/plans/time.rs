//! Time of a step: a roofline, the bubble of a pipeline, and collectives that the links price.
//!
//! ```text
//! FLOP      6 active parameters a token in matrices, 6 L a s in attention of width a that looks back (12: all of it is counted)
//! compute   (matrices / peak + attention / peak in 16 bits) x tokens (4/3 where layers are computed anew) / (n x level) x (h +
//! 700)/h
//! bubble    (pipeline - 1) / (micro batches x virtual stages)
//! tensor    16 bytes a token, layer and unit of width, gathered and scattered inside the domain (3/2 if computed anew)
//! context   1.5 bytes a token, layer and unit of width, gathered
//! data      4 bytes a parameter of a GPU (ZeRO-3: 6, for each micro batch), `tensor` rings beside each other
//! expert    8 bytes a token, layer, unit of width and copy, all to all; a token goes once to each of the domains of its experts
//! step      compute (1 + bubble) + 0.35 (tensor + context) + 0.8 data + 0.2 expert
//! ```
//!
//! # Source
//! FLOP: Narayanan et al. (SC'21). Width 700 and exposure 0.8 of data parallel traffic are fitted to the published rows of the
//! calibrate half ([`super::stack`]), 0.2 of experts is what they bear: 0 to 0.4 are within 0.01 of the error. 0.35 is not
//! identified by them and *assumed*, and so is the 1.5: keys and values of an eighth of the width, there and back.

use pleach_scheduler::physics::links::{Fabric, Spread};

use super::model::Training;
use super::plan::{Plan, Recompute};

/// Width at which half of the peak's level is left.
const WIDTH: f64 = 700.0;
/// Part of each traffic that does not hide behind compute.
const EXPOSED_TENSOR: f64 = 0.35;
const EXPOSED_DATA: f64 = 0.8;
const EXPOSED_EXPERT: f64 = 0.2;

/// GPUs of one type as a training meets them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Peak of a GPU in what the training computes in, FLOP/s.
    pub peak: f64,
    /// The same in 16 bits, in which attention computes.
    pub peak_16: f64,
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
    /// Traffic of GPUs that share layers or sequences.
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
    let token_s = training.matrix_flop() / machine.peak
        + machine.attention * training.attention_flop() / machine.peak_16;
    let narrow = (hidden + WIDTH) / hidden;
    let compute_s = token_s * tokens * (1.0 + again / 3.0) / (f64::from(num_gpus) * machine.level) * narrow;
    let micro_batches = plan.micro_batches(training, num_gpus);
    let bubble = (stages - 1.0) / (micro_batches * f64::from(plan.virtual_stages));

    let fabric = &machine.fabric;
    // Tokens that pass a GPU's tensor group, and its layers of them.
    let group_tokens = tokens / (f64::from(plan.readers(num_gpus)) * f64::from(plan.context));
    let passed = group_tokens * hidden * layers / stages;
    let tensor_bytes = 16.0 * passed * (1.0 + again / 2.0);
    let tensor_s = fabric.gather_s(machine.spread(plan.tensor, 1, 1), tensor_bytes);
    let among = machine.spread(plan.context, plan.tensor, plan.tensor);
    let context_s = fabric.gather_s(
        among,
        1.5 * passed * f64::from(plan.context) / f64::from(plan.tensor),
    );
    StepTime {
        compute_s,
        bubble_s: compute_s * bubble,
        tensor_s: EXPOSED_TENSOR * (tensor_s + context_s),
        data_s: EXPOSED_DATA * data_s(training, plan, num_gpus, machine),
        expert_s: EXPOSED_EXPERT * expert_s(training, plan, machine, passed),
    }
}

/// Gradients, and weights that are divided: of the dense part over all copies, of experts over those with the same ones.
fn data_s(training: &Training, plan: &Plan, num_gpus: u32, machine: &Machine) -> f64 {
    let model = &training.model;
    let rounds = match plan.zero {
        3 => 6.0 * plan.micro_batches(training, num_gpus).max(1.0),
        _ => 4.0,
    };
    // Frozen weights are gathered, and only gradients of adapters come back.
    let moved = match plan.zero {
        3 => (2.0 + training.trained.part()) / 3.0,
        _ => training.trained.part(),
    };
    let bytes = |part: f64, over: u32| rounds * moved * part * model.parameters / f64::from(over);
    let in_experts = model.experts.map_or(0.0, |experts| experts.part);
    let copies = num_gpus / plan.replica();
    let dense = machine.spread(copies, plan.tensor, plan.tensor);
    let dense_s = machine
        .fabric
        .gather_s(dense, bytes(1.0 - in_experts, plan.replica()));
    if in_experts == 0.0 {
        return dense_s;
    }
    let over = plan.pipeline.saturating_mul(plan.expert);
    let same = (num_gpus / over).max(1);
    let experts = machine.spread(same, plan.expert, plan.expert);
    dense_s + machine.fabric.gather_s(experts, bytes(in_experts, over))
}

/// Tokens on their way to experts and back, of `passed` tokens x width x layers of a tensor group.
fn expert_s(training: &Training, plan: &Plan, machine: &Machine, passed: f64) -> f64 {
    let Some(experts) = training.model.experts else {
        return 0.0;
    };
    let spread = machine.spread(plan.expert, 1, 1);
    let top = f64::from(experts.top);
    let copies = match spread.num_domains {
        0 | 1 => top,
        // Domains that hold one of its experts at least.
        num => {
            let num = f64::from(num);
            let misses = (0..experts.top).fold(1.0, |misses, _| misses * (1.0 - 1.0 / num));
            num * (1.0 - misses)
        }
    };
    let bytes = 8.0 * passed / f64::from(plan.tensor) * copies;
    machine.fabric.all_to_all_s(spread, bytes)
}
