//! What the jobs of a site of today train, and how they end.
//!
//! # Source
//! Kinds of work and their gangs: Acme (NSDI'24). Which model a gang trains, and its batch, is *assumed*: the largest that teams
//! of that size publish. Ends: fitted to Seren's published shares of jobs (49.7, 42.9, 7.5 % completed, failed, cancelled) and of
//! GPU time (21.2, 12.4, 66.4 %).

use crate::plans::Trained;

/// A model as jobs of some kind train it.
pub(super) struct Trains {
    /// Its row in [`crate::classes::CLASSES`].
    pub name: &'static str,
    /// The model of its plan, and what of it is trained; none: it has no plan.
    pub plan: Option<(&'static str, Trained)>,
}

const fn plain(name: &'static str) -> Trains {
    Trains { name, plan: None }
}

const fn all(name: &'static str) -> Trains {
    Trains {
        name,
        plan: Some((name, Trained::All)),
    }
}

const fn of(name: &'static str, model: &'static str, trained: Trained) -> Trains {
    Trains {
        name,
        plan: Some((model, trained)),
    }
}

/// Models by gang: at most so many GPUs, any of these with equal chances.
type ByGang = [(u32, &'static [Trains])];

const LORA_8B: Trains = of("llama-8b-lora", "llama-8b", Trained::Adapters);
const LORA_70B: Trains = of("llama-70b-lora", "llama-70b", Trained::Adapters);
const SFT_70B: Trains = of("llama-70b-sft", "llama-70b", Trained::All);

/// In the order of the kinds: evaluation, fine-tuning, other, multi-modal, debugging, pre-training.
const KINDS: [&ByGang; 6] = [
    &[(2, &[plain("eval-7b")]), (u32::MAX, &[plain("eval-70b")])],
    &[
        (4, &[LORA_8B]),
        (8, &[LORA_8B, LORA_70B, all("llama-8b")]),
        (32, &[all("llama-8b"), all("llama-13b")]),
        (u32::MAX, &[SFT_70B]),
    ],
    &[
        (
            1,
            &[plain("resnet50-imagenet"), plain("bert-base"), all("gpt2-124m")],
        ),
        (8, &[plain("bert-large"), all("gpt2-355m"), all("gpt2-774m")]),
        (u32::MAX, &[all("gpt2-1.5b"), all("llama-8b")]),
    ],
    &[
        (8, &[plain("sd2-unet"), plain("whisper-large-ft")]),
        (u32::MAX, &[plain("flux-12b"), plain("sd2-unet")]),
    ],
    &[
        (1, &[all("gpt2-124m")]),
        (8, &[all("gpt2-1.5b")]),
        (64, &[all("llama-8b")]),
        (u32::MAX, &[all("llama-70b")]),
    ],
    &[
        (8, &[all("gpt2-1.5b")]),
        (64, &[all("llama-8b")]),
        (128, &[all("llama-13b"), all("mixtral-8x7b")]),
        (u32::MAX, &[all("llama-70b")]),
    ],
];

/// What jobs of a kind train on a gang.
pub(super) fn trains(kind: usize, gang: u32) -> &'static [Trains] {
    let rows = KINDS[kind];
    let row = rows.iter().find(|(up_to, _)| gang <= *up_to);
    row.map_or(rows[rows.len() - 1].1, |(_, models)| *models)
}

/// Sequences of a step where adapters are trained.
pub(super) const BATCH_ADAPTERS: u32 = 64;

/// Sequences of a step: two on each GPU, between 256 and 2,048.
pub(super) fn batch_of(gang: u32) -> u32 {
    (2 * gang.next_power_of_two()).clamp(256, 2048)
}

/// Lengths of runs of evaluation jobs: (length, share of runs of at most this length). One run in twenty is the evaluation of a
/// checkpoint on forty to sixty data sets; the mean of five is that of `acme-like`.
pub(super) const BURSTS: [(u32, f64); 4] = [(1, 0.7), (8, 0.93), (39, 0.95), (60, 1.0)];

/// Odds of ends over completing.
pub(super) struct Ends {
    /// Failed: at one minute, and the power with which they fall with the run time.
    pub failed: (f64, f64),
    /// Cancelled: at one GPU-hour, and the power with which they grow with the GPU-hours.
    pub cancelled: (f64, f64),
}

/// Fitted to both published margins.
pub(super) const ENDS: Ends = Ends {
    failed: (0.889, 0.065),
    cancelled: (0.258, 0.317),
};
