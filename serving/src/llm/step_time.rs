//! How long a step of a replica takes: published constants of models and GPUs, and what follows from them.
//!
//! # Source
//! The form and its factors are those of BLIS (llm-d's inference simulator; its guide to latency models, Apache-2.0): weights and
//! keys and values are read once a step, each layer, request and step costs a fixed time. Its factor for prompts, 0.152 of
//! the time of their operations at the GPU's peak, is more than a GPU can; here a prompt takes them at half of the peak, *assumed*.
//! BLIS states a mean error of 11.8 % of end-to-end and 22.8 % of TTFT over 38 measured runs; ours was not measured on a GPU.

use pleach_scheduler::ConfigError;
use serde::{Deserialize, Serialize};

/// Share of a GPU's memory that a replica takes. The default of vLLM (`gpu_memory_utilization`).
const MEMORY_SHARE: f64 = 0.9;
/// Memory that is neither weights nor keys and values, GB. *Assumed.*
const WORKSPACE_GB: f64 = 2.0;
/// Share of the peak that prompts reach. *Assumed.*
const PROMPT_MFU: f64 = 0.5;
/// Of the weights, of keys and values, both over memory bandwidth (BLIS).
const WEIGHTS_FACTOR: f64 = 1.4;
const KV_FACTOR: f64 = 1.9;
/// Of each layer, of each request in a batch, of each step, s (BLIS).
const LAYER_S: f64 = 32e-6;
const REQUEST_S: f64 = 4e-6;
const STEP_S: f64 = 126e-6;
/// Before a request is in a replica's queue, after its first token, and for each token that goes out, s (BLIS).
const BEFORE_QUEUE_S: f64 = 15.6e-3;
const AFTER_FIRST_S: f64 = 0.78e-3;

/// A language model with weights of two bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Name in commands.
    pub name: &'static str,
    /// Parameters, in thousands of millions.
    pub params_g: f64,
    /// Layers.
    pub num_layers: u32,
    /// Keys and values of a token, bytes: 2 x layers x heads of keys x width of a head x 2.
    pub kv_bytes_per_token: u32,
}

/// A GPU type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// Name in commands.
    pub name: &'static str,
    /// Peak of dense operations of two bytes, TFLOPS.
    pub tflops: f64,
    /// Bandwidth of its memory, TB/s.
    pub tb_per_s: f64,
    /// Memory, GB.
    pub memory_gb: f64,
}

/// Models by name, from their published configurations.
pub const MODELS: [Model; 4] = [
    model("llama-3-8b", 8.03, 32, 131_072),
    model("mistral-7b", 7.25, 32, 131_072),
    model("qwen-2.5-7b", 7.62, 28, 57_344),
    model("qwen-2.5-14b", 14.77, 48, 196_608),
];
/// GPU types by name, from their data sheets.
pub const GPUS: [Gpu; 3] = [
    gpu("H100", 989.5, 3.35, 80.0),
    gpu("A100", 312.0, 2.04, 80.0),
    gpu("L40S", 362.0, 0.864, 48.0),
];

const fn model(name: &'static str, params_g: f64, num_layers: u32, kv_bytes_per_token: u32) -> Model {
    Model {
        name,
        params_g,
        num_layers,
        kv_bytes_per_token,
    }
}

const fn gpu(name: &'static str, tflops: f64, tb_per_s: f64, memory_gb: f64) -> Gpu {
    Gpu {
        name,
        tflops,
        tb_per_s,
        memory_gb,
    }
}

/// A replica's size and pace. Times are whole picoseconds, so that sums of steps are exact in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// Of every step, ps.
    pub step_ps: u64,
    /// More for each request in the batch, ps.
    pub request_ps: u64,
    /// More for each token of their contexts, ps.
    pub context_token_ps: u64,
    /// More for each token of a prompt in the step, ps.
    pub prompt_token_ps: u64,
    /// From arrival to the replica's queue, ps.
    pub before_queue_ps: u64,
    /// From the end of a request's first step to its user's first token, ps.
    pub after_first_ps: u64,
    /// Tokens whose keys and values fit.
    pub kv_tokens: u64,
    /// Most requests of a batch.
    pub batch_max: u32,
    /// Most tokens of a step, prompts and decodes together.
    pub tokens_max: u32,
}

impl Pace {
    /// The pace of a model on one GPU, both by name. The batch and the tokens of a step are vLLM's defaults, 256 and 2,048.
    ///
    /// # Errors
    /// A name that is not there; a model that does not fit.
    pub fn of(model: &str, gpu: &str) -> Result<Pace, ConfigError> {
        let names = |names: Vec<&str>| names.join(", ");
        let Some(model) = MODELS.iter().find(|known| known.name.eq_ignore_ascii_case(model)) else {
            let allowed = names(MODELS.iter().map(|model| model.name).collect());
            return Err(ConfigError::new("model", model, allowed, "Take one of them."));
        };
        let Some(gpu) = GPUS.iter().find(|known| known.name.eq_ignore_ascii_case(gpu)) else {
            let allowed = names(GPUS.iter().map(|gpu| gpu.name).collect());
            return Err(ConfigError::new("gpu", gpu, allowed, "Take one of them."));
        };
        Pace::of_parts(model, gpu)
    }

    fn of_parts(model: &Model, gpu: &Gpu) -> Result<Pace, ConfigError> {
        let weights_gb = 2.0 * model.params_g;
        let kv_gb = MEMORY_SHARE * gpu.memory_gb - weights_gb - WORKSPACE_GB;
        let kv_tokens = kv_gb * 1e9 / f64::from(model.kv_bytes_per_token);
        if kv_tokens < 1.0 {
            let value = format!("{} on one {}", model.name, gpu.name);
            let allowed = format!(
                "weights of at most {:.0} GB",
                MEMORY_SHARE * gpu.memory_gb - WORKSPACE_GB
            );
            return Err(ConfigError::new("model", value, allowed, "Take a larger GPU."));
        }
        let step_s = WEIGHTS_FACTOR * weights_gb / (gpu.tb_per_s * 1e3)
            + LAYER_S * f64::from(model.num_layers)
            + STEP_S;
        let kv_s = KV_FACTOR * f64::from(model.kv_bytes_per_token) / (gpu.tb_per_s * 1e12);
        let prompt_s = 2.0 * model.params_g * 1e9 / (PROMPT_MFU * gpu.tflops * 1e12);
        Ok(Pace {
            step_ps: ps_of_s(step_s),
            request_ps: ps_of_s(REQUEST_S),
            context_token_ps: ps_of_s(kv_s),
            prompt_token_ps: ps_of_s(prompt_s),
            before_queue_ps: ps_of_s(BEFORE_QUEUE_S),
            after_first_ps: ps_of_s(AFTER_FIRST_S),
            kv_tokens: kv_tokens as u64,
            batch_max: 256,
            tokens_max: 2_048,
        })
    }

    /// A step with so many requests in the batch, tokens in their contexts and tokens of prompts, ps.
    #[must_use]
    #[inline]
    pub fn step(&self, batch: u64, context_tokens: u64, prompt_tokens: u64) -> u64 {
        self.step_ps
            + self.request_ps * batch
            + self.context_token_ps * context_tokens
            + self.prompt_token_ps * prompt_tokens
    }

    /// Tokens of prompts for which a step has room beside a batch, at least 1.
    #[must_use]
    #[inline]
    pub fn prompt_room(&self, batch: u64) -> u64 {
        u64::from(self.tokens_max).saturating_sub(batch).max(1)
    }

    /// When a prompt would have its first token, s from now, with prompts of `ahead_tokens` before it and that much running.
    #[must_use]
    pub fn first_token_s(
        &self,
        prompt_tokens: u64,
        ahead_tokens: u64,
        running: u64,
        context_tokens: u64,
    ) -> f64 {
        let prompts = prompt_tokens + ahead_tokens;
        let steps = prompts.div_ceil(self.prompt_room(running)).max(1);
        let decodes = steps * self.step(running, context_tokens, 0);
        s_of_ps(self.before_queue_ps + decodes + prompts * self.prompt_token_ps + self.after_first_ps)
    }

    /// Time of a step without prompts, s.
    #[must_use]
    pub fn token_s(&self, running: u64, context_tokens: u64) -> f64 {
        s_of_ps(self.step(running, context_tokens, 0))
    }
}

/// Seconds as whole picoseconds; negative ones are 0.
#[must_use]
pub fn ps_of_s(seconds: f64) -> u64 {
    (seconds * 1e12 + 0.5) as u64
}

/// Picoseconds as seconds.
#[must_use]
pub fn s_of_ps(ps: u64) -> f64 {
    ps as f64 / 1e12
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand from the constants: 1.4 x 16.06 / 3350 + 32 x 32e-6 + 126e-6 = 7.862 ms; 1.9 x 131072 / 3.35e12 = 74.339 ns;
    /// 2 x 8.03e9 / (0.5 x 989.5e12) = 32.46 us; (72 - 16.06 - 2) GB / 131072 = 411,529 tokens.
    #[test]
    fn an_8b_model_on_an_h100_has_the_pace_worked_by_hand() {
        let pace = Pace::of("llama-3-8b", "h100").unwrap();
        assert!((s_of_ps(pace.step_ps) - 7.8617e-3).abs() < 1e-6);
        assert_eq!((pace.context_token_ps, pace.request_ps), (74_339, 4_000_000));
        assert!((s_of_ps(pace.prompt_token_ps) - 32.46e-6).abs() < 1e-8);
        assert_eq!(pace.kv_tokens, 411_529);
        let many = pace.step(10, 1_000, 100);
        assert_eq!(
            many,
            pace.step_ps + 10 * 4_000_000 + 1_000 * 74_339 + 100 * pace.prompt_token_ps
        );
    }

    #[test]
    fn a_model_that_does_not_fit_and_names_that_are_not_there_are_refused() {
        let big = Model {
            params_g: 70.6,
            ..MODELS[0]
        };
        let error = Pace::of_parts(&big, &GPUS[0]).unwrap_err().to_string();
        assert!(
            error.contains("llama-3-8b on one H100") && error.contains("70 GB"),
            "{error}"
        );
        assert!(
            Pace::of("llama", "H100")
                .unwrap_err()
                .to_string()
                .contains("llama-3-8b")
        );
        assert!(
            Pace::of("llama-3-8b", "B300")
                .unwrap_err()
                .to_string()
                .contains("H100, A100, L40S")
        );
    }
}
