//! Language models: shapes and sizes. What the layers without full attention hold is left out.
//!
//! # Source
//! `data/models.csv`.

use std::sync::LazyLock;

use pleach_scheduler::Problem;
use pleach_workloads::embedded::{number, rows};

use super::names::unknown;

/// A language model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Name in commands.
    pub name: &'static str,
    /// Parameters, in thousands of millions.
    pub params_g: f64,
    /// Of which a token uses so many: fewer in a mixture of experts.
    pub active_g: f64,
    /// Layers.
    pub num_layers: u32,
    /// Numbers of a token between two layers.
    pub width: u32,
    /// Heads of queries.
    pub num_heads: u32,
    /// Heads of keys; 1 where all heads share what is held (latent attention).
    pub num_kv_heads: u32,
    /// Width of a head.
    pub head_width: u32,
    /// Of a mixture of experts.
    pub experts: Option<Experts>,
    /// Part of the layers whose attention looks at everything.
    pub full_attention: f64,
    /// Keys and values are held as one latent vector of 576 numbers (DeepSeek-V2).
    pub is_latent: bool,
    /// Bytes of a weight in an expert, where it is published in them alone.
    pub expert_bytes: Option<f64>,
}

/// Experts of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Experts {
    /// Of each layer that has them.
    pub num: u32,
    /// Through which a token goes.
    pub top: u32,
    /// Parameters of one, millions.
    pub params_m: f64,
    /// Layers that have them.
    pub num_layers: u32,
}

/// Most GPUs of a replica.
pub const GPUS_MAX: u32 = 8;
/// Numbers of a latent vector: 512 and 64 for positions (DeepSeek-V2).
const LATENT: f64 = 576.0;
/// Operations of a pair of tokens in latent attention, over 2 x heads: with the latent vectors (512 + 64 + 512) where they are read,
/// and with keys and values unfolded (192 + 128) where a prompt is computed.
const LATENT_READ: f64 = 1_088.0;
const LATENT_PROMPT: f64 = 320.0;

/// Models by name.
pub static MODELS: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let rows = rows(include_str!("../../../data/models.csv"));
    rows.map(of_row).collect()
});
/// Their names.
pub static MODEL_NAMES: LazyLock<Vec<&str>> =
    LazyLock::new(|| MODELS.iter().map(|model| model.name).collect());

fn of_row(row: [&'static str; 15]) -> Model {
    let [name, sizes @ .., full_attention, held, expert_bytes] = row;
    let count = |place: usize| number(sizes[place]) as u32;
    let experts = (!sizes[7].is_empty()).then(|| Experts {
        num: count(7),
        top: count(8),
        num_layers: count(9),
        params_m: number(sizes[10]),
    });
    Model {
        name,
        params_g: number(sizes[0]),
        active_g: number(sizes[1]),
        num_layers: count(2),
        width: count(3),
        num_heads: count(4),
        num_kv_heads: count(5),
        head_width: count(6),
        experts,
        full_attention: number(full_attention),
        is_latent: held == "latent",
        expert_bytes: (!expert_bytes.is_empty()).then(|| number(expert_bytes)),
    }
}

impl Model {
    /// The model of a name.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn of(name: &str) -> Result<&'static Model, Problem> {
        MODELS
            .iter()
            .find(|known| known.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| unknown("model", name, &MODEL_NAMES))
    }

    /// Parameters of all experts.
    pub(super) fn expert_params(&self) -> f64 {
        self.experts.map_or(0.0, |experts| {
            f64::from(experts.num) * experts.params_m * 1e6 * f64::from(experts.num_layers)
        })
    }

    /// Parameters outside of experts.
    pub(super) fn dense_params(&self) -> f64 {
        (self.params_g * 1e9 - self.expert_params()).max(0.0)
    }

    /// Layers whose attention looks at everything.
    fn looking_layers(&self) -> f64 {
        f64::from(self.num_layers) * self.full_attention
    }

    /// Numbers that a token leaves behind as keys and values, over all layers.
    pub(super) fn kv_numbers(&self) -> f64 {
        let of_layer = if self.is_latent {
            LATENT
        } else {
            2.0 * f64::from(self.num_kv_heads * self.head_width)
        };
        of_layer * self.looking_layers()
    }

    /// Operations of a new token for each one that it looks at.
    pub(super) fn read_flop(&self) -> f64 {
        let of_head = if self.is_latent {
            LATENT_READ
        } else {
            2.0 * f64::from(self.head_width)
        };
        2.0 * f64::from(self.num_heads) * of_head * self.looking_layers()
    }

    /// The same of a token of a prompt.
    pub(super) fn pair_flop(&self) -> f64 {
        if !self.is_latent {
            return self.read_flop();
        }
        2.0 * f64::from(self.num_heads) * LATENT_PROMPT * self.looking_layers()
    }

    /// GPUs among which keys and values of a replica's copy are split.
    pub(super) fn kv_split(&self, num_gpus: u32) -> u32 {
        num_gpus.min(self.num_kv_heads)
    }

    /// Numbers of GPUs among which its heads can be split: heads of keys are split evenly, or each is held as often as needed.
    pub(super) fn splits(&self) -> impl Iterator<Item = u32> {
        let (heads, kv) = (self.num_heads, self.num_kv_heads);
        (1..=GPUS_MAX).filter(move |num| {
            heads.is_multiple_of(*num) && (kv.is_multiple_of(*num) || num.is_multiple_of(kv))
        })
    }

    /// # Errors
    /// GPUs among which the heads cannot be split.
    pub(super) fn check_split(&self, num_gpus: u32) -> Result<(), Problem> {
        if self.splits().any(|num| num == num_gpus) {
            return Ok(());
        }
        let allowed: Vec<String> = self.splits().map(|num| num.to_string()).collect();
        let allowed = format!("{} for {}", allowed.join(", "), self.name);
        let hint = "Its heads are split evenly.";
        Err(Problem::new("replica_gpus", num_gpus, allowed, hint))
    }
}
