//! Language models: shapes and sizes from their published configurations.
//!
//! # Source
//! `config.json` of each model on Hugging Face and its technical report; parameters as their makers count them. Parameters of an
//! expert are 3 x width x width of the expert (Llama 4: its routed ones). Sharing of attention: gpt-oss looks at 128 tokens in
//! half of its layers, Qwen 3.5 has full attention in a quarter; what those layers hold is left out.

use pleach_scheduler::Problem;

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
#[rustfmt::skip]
pub const MODELS: [Model; 25] = [
    dense("llama-3-8b", 8.03, [32, 4_096, 32, 8, 128]),
    dense("mistral-7b", 7.25, [32, 4_096, 32, 8, 128]),
    dense("qwen-2.5-7b", 7.62, [28, 3_584, 28, 4, 128]),
    dense("qwen-2.5-14b", 14.77, [48, 5_120, 40, 8, 128]),
    dense("llama-3-70b", 70.55, [80, 8_192, 64, 8, 128]),
    mixture("mixtral-8x7b", [46.70, 12.88], [32, 4_096, 32, 8, 128], experts([8, 2, 32], 176.2)),
    dense("qwen-2.5-72b", 72.70, [80, 8_192, 64, 8, 128]),
    dense("qwen-3-32b", 32.80, [64, 5_120, 64, 8, 128]),
    dense("llama-3-405b", 405.90, [126, 16_384, 128, 8, 128]),
    dense("llama-2-70b", 68.98, [80, 8_192, 64, 8, 128]),
    dense("qwq-32b", 32.80, [64, 5_120, 40, 8, 128]),
    mixture("mixtral-8x22b", [140.60, 39.10], [56, 6_144, 48, 8, 128], experts([8, 2, 56], 302.0)),
    mixture("qwen-3-30b-a3b", [30.50, 3.30], [48, 2_048, 32, 4, 128], experts([128, 8, 48], 4.72)),
    mixture("qwen-3-235b-a22b", [235.0, 22.0], [94, 4_096, 64, 4, 128], experts([128, 8, 94], 18.87)),
    mixture("qwen-3.5-397b-a17b", [397.0, 17.0], [60, 4_096, 32, 2, 256], experts([512, 10, 60], 12.58)).looking(0.25),
    mixture("gpt-oss-20b", [20.90, 3.60], [24, 2_880, 64, 8, 64], experts([32, 4, 24], 24.88)).looking(0.5).published_in(MXFP4_BYTES),
    mixture("gpt-oss-120b", [116.80, 5.10], [36, 2_880, 64, 8, 64], experts([128, 4, 36], 24.88)).looking(0.5).published_in(MXFP4_BYTES),
    mixture("deepseek-v3", [671.0, 37.0], [61, 7_168, 128, 1, 128], experts([256, 8, 58], 44.04)).latent(),
    mixture("deepseek-r1", [671.0, 37.0], [61, 7_168, 128, 1, 128], experts([256, 8, 58], 44.04)).latent(),
    mixture("kimi-k2", [1_026.0, 32.60], [61, 7_168, 64, 1, 128], experts([384, 8, 60], 44.04)).latent(),
    mixture("kimi-k2.5", [1_026.0, 32.60], [61, 7_168, 64, 1, 128], experts([384, 8, 60], 44.04)).latent(),
    mixture("glm-5", [744.0, 40.0], [78, 6_144, 64, 1, 128], experts([256, 8, 75], 37.70)).latent(),
    mixture("minimax-m2.5", [230.0, 10.0], [62, 3_072, 48, 8, 128], experts([256, 8, 62], 14.16)),
    mixture("llama-4-scout", [109.0, 17.0], [48, 5_120, 40, 8, 128], experts([16, 1, 48], 125.8)),
    mixture("llama-4-maverick", [400.0, 17.0], [48, 5_120, 40, 8, 128], experts([128, 1, 24], 125.8)),
];

/// Their names.
pub const MODEL_NAMES: [&str; MODELS.len()] = {
    let (mut names, mut place) = ([""; MODELS.len()], 0);
    while place < names.len() {
        names[place] = MODELS[place].name;
        place += 1;
    }
    names
};

/// Numbers of four bits with a scale of eight for each 32 (OCP microscaling formats, 1.0).
const MXFP4_BYTES: f64 = 0.53125;

const fn dense(
    name: &'static str,
    params_g: f64,
    [num_layers, width, num_heads, num_kv_heads, head_width]: [u32; 5],
) -> Model {
    Model {
        name,
        params_g,
        active_g: params_g,
        num_layers,
        width,
        num_heads,
        num_kv_heads,
        head_width,
        experts: None,
        full_attention: 1.0,
        is_latent: false,
        expert_bytes: None,
    }
}

const fn mixture(
    name: &'static str,
    [params_g, active_g]: [f64; 2],
    shape: [u32; 5],
    experts: Experts,
) -> Model {
    Model {
        active_g,
        experts: Some(experts),
        ..dense(name, params_g, shape)
    }
}

const fn experts([num, top, num_layers]: [u32; 3], params_m: f64) -> Experts {
    Experts {
        num,
        top,
        params_m,
        num_layers,
    }
}

impl Model {
    const fn looking(self, full_attention: f64) -> Model {
        Model {
            full_attention,
            ..self
        }
    }

    const fn latent(self) -> Model {
        Model {
            is_latent: true,
            ..self
        }
    }

    const fn published_in(self, expert_bytes: f64) -> Model {
        Model {
            expert_bytes: Some(expert_bytes),
            ..self
        }
    }

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
