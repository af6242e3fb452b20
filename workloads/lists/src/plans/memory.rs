//! Memory that a training needs on each GPU.
//!
//! ```text
//! N, P        parameters of all, of the part of a GPU: N / (tensor x pipeline), experts N / (pipeline x expert)
//! state       ZeRO-0 18 P;  1: 6 P + 12 P/d;  2: 2 P + 16 P/d;  3: 18 N/n, and two layers of weights that are being used
//! activations c b s h L / (tensor x context) x (1 + (pipeline - 1)/(pipeline x virtual)) where stages are interleaved
//!             computed anew: (2 b s h L + c b s h) / (tensor x context)
//! logits      4 b s V / (tensor x context)
//! ```
//!
//! A stage of a pipeline holds as many micro batches as there are stages, of a part of the layers each: all layers once.
//!
//! # Source
//! Bytes a parameter: ZeRO (SC'20) with gradients of four bytes. Activations: Korthikanti et al. (MLSys'23) have c = 34 with
//! dropout; 30 without its masks. With 30 all but 2 of 216 published runs of FSDP fit their GPUs, with 34 a tenth would not.

use super::GB;
use super::model::{Trained, Training};
use super::plan::{Plan, Recompute};

/// Bytes of activations for each value of a layer.
const ACTIVATION_BYTES: f64 = 30.0;
/// Context, buffers of collectives, fragments, GB. *Assumed*.
const REST_GB: f64 = 3.0;

/// What lies on a GPU, GB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Weights, gradients, optimiser.
    pub state_gb: f64,
    /// Activations.
    pub activations_gb: f64,
    /// Scores of the vocabulary.
    pub logits_gb: f64,
}

impl Memory {
    /// All of it, context and fragments among it.
    #[must_use]
    pub fn total_gb(&self) -> f64 {
        self.state_gb + self.activations_gb + self.logits_gb + REST_GB
    }

    /// Whether it fits a GPU of so many GiB. Plans are held to as many GB as the card has GiB; the 7 % between them are the
    /// driver's. It is the rule by which published runs fit.
    #[must_use]
    pub fn fits(&self, memory_gib: f64) -> bool {
        self.total_gb() <= memory_gib
    }
}

/// What a training needs on each of `num_gpus` under a plan that [`Plan::validate`] has passed.
#[must_use]
pub fn memory(training: &Training, plan: &Plan, num_gpus: u32) -> Memory {
    let model = &training.model;
    let (tensor, stages) = (f64::from(plan.tensor), f64::from(plan.pipeline));
    let all = f64::from(num_gpus);
    let in_experts = model.experts.map_or(0.0, |experts| experts.part);
    // A part of the model, over how many GPUs it is cut, and how many have the same part.
    let cut =
        |parameters: f64, over: f64| state_bytes(training.trained, plan.zero, parameters / over, all / over);
    let dense = model.parameters * (1.0 - in_experts);
    let experts = model.parameters * in_experts;
    let mut state = cut(dense, tensor * stages);
    if experts > 0.0 {
        state += cut(experts, stages * f64::from(plan.expert));
    }
    if plan.zero == 3 {
        // Two layers are whole while they are being used.
        state += 2.0 * 2.0 * model.parameters / f64::from(model.layers) / tensor;
    }
    let tokens =
        f64::from(plan.micro_batch) * f64::from(training.sequence) / (tensor * f64::from(plan.context));
    let (hidden, layers) = (f64::from(model.hidden), f64::from(model.layers));
    let layer = ACTIVATION_BYTES * tokens * hidden;
    let activations = match plan.recompute {
        Recompute::Full => 2.0 * tokens * hidden * layers + layer,
        Recompute::None if plan.virtual_stages > 1 => {
            layer * layers * (1.0 + (stages - 1.0) / (stages * f64::from(plan.virtual_stages)))
        }
        Recompute::None => layer * layers,
    };
    Memory {
        state_gb: state / GB,
        activations_gb: activations / GB,
        logits_gb: 4.0 * tokens * f64::from(model.vocabulary) / GB,
    }
}

/// Bytes of a part of the model of which `copies` GPUs have the same.
fn state_bytes(trained: Trained, zero: u32, parameters: f64, copies: f64) -> f64 {
    let part = trained.part();
    // Weights are there whether they are trained or not.
    let (weights, gradients, optimiser) = (2.0, 4.0 * part, 12.0 * part);
    let bytes = match zero {
        0 => weights + gradients + optimiser,
        1 => weights + gradients + optimiser / copies,
        2 => weights + (gradients + optimiser) / copies,
        _ => (weights + gradients + optimiser) / copies,
    };
    bytes * parameters
}
