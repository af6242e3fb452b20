//! Facts of large models, and what of them is trained.
//!
//! # Source
//! The papers and configurations named in each row. Parameters of expert models in their experts: counted from those (Mixtral
//! 32 layers x 8 experts x 3 x 4096 x 14,336; DeepSeek-V3 58 layers x 256 experts x 3 x 7168 x 2048).

use std::sync::LazyLock;

use pleach_scheduler::Problem;
use pleach_scheduler::heuristics::nearest_of;

use super::precision::Precision;
use crate::embedded::{number, rows};

/// A transformer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Name; that of its row in [`crate::classes::CLASSES`], where it has one.
    pub name: &'static str,
    /// Parameters, embeddings among them.
    pub parameters: f64,
    /// Parameters that a token passes.
    pub active: f64,
    /// Layers.
    pub layers: u32,
    /// Width.
    pub hidden: u32,
    /// Heads of attention: at most so many GPUs share a layer.
    pub heads: u32,
    /// Width of attention: heads times the mean length of their keys and values, times the part of layers that see the whole
    /// sequence.
    pub attention: u32,
    /// Tokens of the vocabulary.
    pub vocabulary: u32,
    /// Tokens of a sequence as it was trained.
    pub sequence: u32,
    /// Its experts; none: every token passes all.
    pub experts: Option<Experts>,
}

/// Experts of a layer, of which a token passes a few.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Experts {
    /// Experts of a layer.
    pub num: u32,
    /// Experts that a token passes.
    pub top: u32,
    /// Part of all parameters that lies in experts, [0, 1].
    pub part: f64,
}

/// Models whose shape is published.
pub static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let rows = rows(include_str!("../../data/models.csv"));
    let read = rows.map(|row: [&'static str; 12]| {
        let [layers, hidden, heads, vocabulary, sequence] =
            [row[3], row[4], row[5], row[6], row[7]].map(|field| number(field) as u32);
        let parameters = number(row[1]) * 1e9;
        Model {
            name: row[0],
            parameters,
            active: if row[2].is_empty() {
                parameters
            } else {
                number(row[2])
            },
            layers,
            hidden,
            heads,
            attention: if row[11].is_empty() {
                hidden
            } else {
                number(row[11]) as u32
            },
            vocabulary,
            sequence,
            experts: (!row[8].is_empty()).then(|| Experts {
                num: number(row[8]) as u32,
                top: number(row[9]) as u32,
                part: number(row[10]),
            }),
        }
    });
    read.collect()
});

impl Model {
    /// The model of this name.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn from_name(name: &str) -> Result<&'static Model, Problem> {
        MODELS.iter().find(|model| model.name == name).ok_or_else(|| {
            let names: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
            let nearest = nearest_of(&names, name).unwrap_or(names[0]);
            let hint = format!("did you mean {nearest}?");
            Problem::new("plan.model", format!("{name:?}"), names.join(", "), hint)
        })
    }

    /// Bytes of a checkpoint for each parameter that is trained: the master copy, two moments and the weight itself.
    /// # Source
    /// Adam in mixed precision (ZeRO, SC'20), as in [`crate::classes`].
    pub const FILE_BYTES: f64 = 14.0;
}

/// What of a model is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trained {
    /// All parameters, by Adam in mixed precision.
    All,
    /// Adapters alone (LoRA, ICLR'22): the rest is read and not written.
    Adapters,
}

impl Trained {
    /// Part of the parameters that is trained.
    /// # Source
    /// LoRA: 0.1 to 1 % of the parameters; the middle is *assumed*.
    #[must_use]
    pub fn part(self) -> f64 {
        match self {
            Trained::All => 1.0,
            Trained::Adapters => 0.005,
        }
    }

    /// Work of a token over that of training all: a step forward, one for the activations, and one for the weights that is left
    /// out where they are not written.
    #[must_use]
    pub(super) fn flop_part(self) -> f64 {
        match self {
            Trained::All => 1.0,
            Trained::Adapters => 2.0 / 3.0,
        }
    }
}

/// A model as a job trains it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// The model.
    pub model: Model,
    /// What of it is trained.
    pub trained: Trained,
    /// Tokens of a sequence.
    pub sequence: u32,
    /// Sequences of a step, over all GPUs; it stays when the number of GPUs changes.
    pub batch: u32,
    /// What its matrices compute in; attention computes in 16 bits.
    pub precision: Precision,
}

impl Training {
    /// All of a model at its own sequence length, in 16 bits.
    #[must_use]
    pub fn all(model: &Model, batch: u32) -> Training {
        Training {
            model: *model,
            trained: Trained::All,
            sequence: model.sequence,
            batch,
            precision: Precision::Bf16,
        }
    }

    /// Size of a checkpoint, GB: what is trained.
    #[must_use]
    pub fn state_gb(&self) -> f64 {
        self.model.parameters * self.trained.part() * Model::FILE_BYTES / super::GB
    }

    /// Floating-point operations of a token in matrices: 6 for each parameter that it passes.
    #[must_use]
    pub fn matrix_flop(&self) -> f64 {
        6.0 * self.model.active * self.trained.flop_part()
    }

    /// Floating-point operations of a token in attention, which looks at half of the sequence.
    #[must_use]
    pub fn attention_flop(&self) -> f64 {
        let model = &self.model;
        let looks = 6.0 * f64::from(model.layers) * f64::from(model.attention) * f64::from(self.sequence);
        looks * self.trained.flop_part()
    }
}
