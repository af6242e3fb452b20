//! Which plan a training has on so many GPUs: the fastest that fits.

use super::memory::{Memory, memory};
use super::model::{Trained, Training};
use super::plan::{Plan, Recompute};
use super::time::{Machine, StepTime, step_time};

/// The best plan of a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// GPUs.
    pub num_gpus: u32,
    /// How it is cut.
    pub plan: Plan,
    /// What it needs on each GPU.
    pub memory: Memory,
    /// What a step is made of.
    pub step: StepTime,
}

impl Size {
    /// Tokens a second over all GPUs.
    #[must_use]
    pub fn tokens_per_s(&self, training: &Training) -> f64 {
        f64::from(training.batch) * f64::from(training.sequence) / self.step.total_s()
    }
}

/// Micro batches, and stages of each GPU, that are tried.
const FEW: [u32; 4] = [1, 2, 4, 8];
/// Tokens of a sequence that one GPU takes at most where a longer one is cut. *Assumed*.
const TOKENS_MAX: u32 = 32_768;
/// Tokens of a sequence up to which it is cut only where there are fewer sequences than GPUs. *Assumed*.
const TOKENS_SHORT: u32 = 8_192;

/// The fastest plan that fits, of those with the fewest parts among equals; none where none fits.
///
/// Tensor parallel groups stay in a node. Weights are divided (ZeRO-3) only without stages, as public software does it.
#[must_use]
pub fn best_plan(training: &Training, machine: &Machine, num_gpus: u32) -> Option<Size> {
    let mut best: Option<Size> = None;
    for plan in plans(training, machine, num_gpus) {
        let Some(size) = planned(training, machine, &plan, num_gpus) else {
            continue;
        };
        if best.is_none_or(|best| size.step.total_s() < best.step.total_s()) {
            best = Some(size);
        }
    }
    best
}

/// What a plan comes to; none where it cuts unevenly or does not fit.
#[must_use]
pub fn planned(training: &Training, machine: &Machine, plan: &Plan, num_gpus: u32) -> Option<Size> {
    plan.validate(training, num_gpus).ok()?;
    let memory = memory(training, plan, num_gpus);
    memory.fits(machine.memory_gib).then(|| Size {
        num_gpus,
        plan: *plan,
        memory,
        step: step_time(training, plan, num_gpus, machine),
    })
}

/// The best plan of each of these numbers of GPUs that has one.
#[must_use]
pub fn sizes(training: &Training, machine: &Machine, wanted: impl IntoIterator<Item = u32>) -> Vec<Size> {
    let found = wanted
        .into_iter()
        .filter_map(|num_gpus| best_plan(training, machine, num_gpus));
    found.collect()
}

/// Plans that are tried, few parts first.
fn plans(training: &Training, machine: &Machine, num_gpus: u32) -> impl Iterator<Item = Plan> {
    let model = training.model;
    let powers = |most: u32| (0..=most.max(1).ilog2()).map(|power| 1_u32 << power);
    let stages: Vec<u32> = (1..=model.layers.min(num_gpus))
        .filter(|stages| num_gpus.is_multiple_of(*stages))
        .filter(|stages| model.layers.is_multiple_of(*stages) || stages.is_power_of_two())
        .collect();
    let fewest = training.sequence.div_ceil(TOKENS_MAX).next_power_of_two();
    let is_cut = training.sequence > TOKENS_SHORT || training.batch < num_gpus;
    let contexts: Vec<u32> = FEW[..if is_cut { FEW.len() } else { 1 }]
        .iter()
        .map(|times| times * fewest)
        .filter(|context| *context == fewest || *context <= num_gpus)
        .collect();
    let tensors: Vec<u32> = powers(machine.domain().min(num_gpus))
        .filter(|tensor| model.heads.is_multiple_of(*tensor))
        .collect();
    let experts: Vec<u32> = powers(model.experts.map_or(1, |experts| experts.num)).collect();
    let mut plans = Vec::new();
    for &tensor in &tensors {
        for &pipeline in &stages {
            for (&expert, &context) in experts
                .iter()
                .flat_map(|expert| contexts.iter().map(move |context| (expert, context)))
            {
                for zero in 1..=if pipeline == 1 { 3 } else { 2 } {
                    for micro_batch in FEW {
                        for recompute in [Recompute::None, Recompute::Full] {
                            for virtual_stages in FEW {
                                if virtual_stages > 1
                                    && (pipeline == 1
                                        || !model.layers.is_multiple_of(pipeline * virtual_stages))
                                {
                                    continue;
                                }
                                plans.push(Plan {
                                    tensor,
                                    pipeline,
                                    virtual_stages,
                                    context,
                                    expert,
                                    zero,
                                    micro_batch,
                                    recompute,
                                });
                            }
                        }
                    }
                }
            }
        }
    }
    // Adapters are small: dividing their optimiser buys nothing, dividing the frozen weights does.
    let divided = training.trained == Trained::All;
    plans.into_iter().filter(move |plan| divided || plan.zero != 2)
}
