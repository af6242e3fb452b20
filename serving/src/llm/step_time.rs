//! How long a step of a replica takes: published constants of models and GPUs, and what follows from them.
//!
//! # Source
//! The form and its factors are those of BLIS (llm-d's inference simulator; its guide to latency models, Apache-2.0): weights and
//! keys and values are read once a step, each layer, request and step costs a fixed time. Its factor for prompts, 0.152 of
//! the time of their operations at the GPU's peak, is more than a GPU can; here a prompt takes them at half of the peak,
//! *assumed*. A replica of g GPUs divides weights, keys and values and operations by g (tensor parallelism) and adds two
//! all-reduces a layer for each token of the step, as BLIS does (`sim/latency/trained_physics_model.go`): 2 layers x width x 2
//! bytes x 2 (g - 1) / g over
//! *memory* bandwidth, with a factor that stands for links between GPUs of one node; nothing for their latency. A mixture of
//! experts reads all of them each step, and a prompt computes those of its tokens. BLIS states a mean error of 11.8 % of
//! end-to-end and 22.8 % of TTFT over 38 measured runs; ours was not measured on a GPU.

use pleach_scheduler::Problem;
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
/// Of all-reduces among the GPUs of a replica, over memory bandwidth (BLIS).
const ALL_REDUCE_FACTOR: f64 = 0.75;
/// Of each layer, of each request in a batch, of each step, s (BLIS).
const LAYER_S: f64 = 32e-6;
const REQUEST_S: f64 = 4e-6;
const STEP_S: f64 = 126e-6;
/// Before a request is in a replica's queue, after its first token, and for each token that goes out, s (BLIS).
const BEFORE_QUEUE_S: f64 = 15.6e-3;
const AFTER_FIRST_S: f64 = 0.78e-3;

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
    /// Heads of keys; the GPUs of a replica have as many each.
    pub num_kv_heads: u32,
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
    /// The same of one byte; 0: it has none.
    pub tflops_fp8: f64,
    /// Bandwidth of its memory, TB/s.
    pub tb_per_s: f64,
    /// Memory, GB.
    pub memory_gb: f64,
}

/// Models by name, from their published configurations.
pub const MODELS: [Model; 9] = [
    model("llama-3-8b", [8.03, 8.03], 32, 4_096, 8, 131_072),
    model("mistral-7b", [7.25, 7.25], 32, 4_096, 8, 131_072),
    model("qwen-2.5-7b", [7.62, 7.62], 28, 3_584, 4, 57_344),
    model("qwen-2.5-14b", [14.77, 14.77], 48, 5_120, 8, 196_608),
    model("llama-3-70b", [70.55, 70.55], 80, 8_192, 8, 327_680),
    model("mixtral-8x7b", [46.70, 12.88], 32, 4_096, 8, 131_072),
    model("qwen-2.5-72b", [72.70, 72.70], 80, 8_192, 8, 327_680),
    model("qwen-3-32b", [32.80, 32.80], 64, 5_120, 8, 262_144),
    model("llama-3-405b", [405.90, 405.90], 126, 16_384, 8, 516_096),
];
/// GPU types by name, from their data sheets.
pub const GPUS: [Gpu; 6] = [
    gpu("H100", [989.5, 1_979.0], 3.35, 80.0),
    gpu("A100", [312.0, 0.0], 2.04, 80.0),
    gpu("L40S", [362.0, 733.0], 0.864, 48.0),
    gpu("H200", [989.5, 1_979.0], 4.8, 141.0),
    gpu("B200", [2_250.0, 4_500.0], 8.0, 180.0),
    gpu("MI300X", [1_307.0, 2_615.0], 5.3, 192.0),
];

const fn model(
    name: &'static str,
    [params_g, active_g]: [f64; 2],
    num_layers: u32,
    width: u32,
    num_kv_heads: u32,
    kv_bytes_per_token: u32,
) -> Model {
    Model {
        name,
        params_g,
        active_g,
        num_layers,
        width,
        num_kv_heads,
        kv_bytes_per_token,
    }
}

const fn gpu(name: &'static str, [tflops, tflops_fp8]: [f64; 2], tb_per_s: f64, memory_gb: f64) -> Gpu {
    Gpu {
        name,
        tflops,
        tflops_fp8,
        tb_per_s,
        memory_gb,
    }
}

/// Numbers in which a model's weights are kept and multiplied, by name; keys and values have two bytes.
pub const PRECISIONS: &[&str] = &["bf16", "fp8"];

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

impl Model {
    /// The model of a name.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn of(name: &str) -> Result<&'static Model, Problem> {
        MODELS
            .iter()
            .find(|known| known.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| unknown("model", name, MODELS.iter().map(|model| model.name)))
    }

    /// Memory for keys and values in a replica of so many GPUs beside so many GB of weights, GB; below 0 where not even those fit.
    fn kv_gb(weights_gb: f64, gpu: &Gpu, num_gpus: u32) -> f64 {
        MEMORY_SHARE * f64::from(num_gpus) * gpu.memory_gb - weights_gb - WORKSPACE_GB * f64::from(num_gpus)
    }

    /// Numbers of GPUs among which its heads can be split.
    fn splits(&self) -> impl Iterator<Item = u32> {
        (1..=self.num_kv_heads).filter(|num| self.num_kv_heads.is_multiple_of(*num))
    }

    /// # Errors
    /// GPUs among which the heads cannot be split.
    pub(super) fn check_split(&self, num_gpus: u32) -> Result<(), Problem> {
        if self.splits().any(|num| num == num_gpus) {
            return Ok(());
        }
        let allowed: Vec<String> = self.splits().map(|num| num.to_string()).collect();
        let allowed = format!("{} for {}", allowed.join(", "), self.name);
        let hint = "Its heads of keys are split evenly.";
        Err(Problem::new("replica_gpus", num_gpus, allowed, hint))
    }

    fn does_not_fit(&self, gpu: &Gpu, num_gpus: u32, weights_gb: f64) -> Problem {
        let value = match num_gpus {
            1 => format!("{} on one {}", self.name, gpu.name),
            _ => format!("{} on {num_gpus} {}", self.name, gpu.name),
        };
        let most_gb = Model::kv_gb(0.0, gpu, num_gpus);
        let allowed = format!("weights of at most {most_gb:.0} GB");
        let fits = self
            .splits()
            .find(|num| Model::kv_gb(weights_gb, gpu, *num) > 0.0);
        let hint = match fits {
            Some(num) => format!("Its weights take {weights_gb:.0} GB: a replica of {num} holds it."),
            None => format!("Its weights take {weights_gb:.0} GB: take a larger GPU."),
        };
        Problem::new("model", value, allowed, hint)
    }
}

fn unknown(key: &str, name: &str, known: impl Iterator<Item = &'static str>) -> Problem {
    let allowed: Vec<&str> = known.collect();
    Problem::new(key, name, allowed.join(", "), "Take one of them.")
}

impl Pace {
    /// The pace of a model on one GPU, both by name. The batch and the tokens of a step are vLLM's defaults, 256 and 2,048.
    ///
    /// # Errors
    /// A name that is not there; a model that does not fit.
    pub fn of(model: &str, gpu: &str) -> Result<Pace, Problem> {
        Pace::split(model, gpu, 1)
    }

    /// The same where a replica has several GPUs, among which the heads of keys are split evenly.
    ///
    /// # Errors
    /// A name that is not there; GPUs among which the heads cannot be split; a model that does not fit.
    pub fn split(model: &str, gpu: &str, num_gpus: u32) -> Result<Pace, Problem> {
        Pace::kept_in(PRECISIONS[0], model, gpu, num_gpus)
    }

    /// The same with weights in other numbers ([`PRECISIONS`]).
    ///
    /// # Errors
    /// As [`Pace::split`], and a GPU that has no such operations.
    pub fn kept_in(precision: &str, model: &str, gpu: &str, num_gpus: u32) -> Result<Pace, Problem> {
        let model = Model::of(model)?;
        let Some(gpu) = GPUS.iter().find(|known| known.name.eq_ignore_ascii_case(gpu)) else {
            return Err(unknown("gpu", gpu, GPUS.iter().map(|gpu| gpu.name)));
        };
        model.check_split(num_gpus)?;
        let (bytes, tflops) = match precision {
            "bf16" => (2.0, gpu.tflops),
            "fp8" => (1.0, gpu.tflops_fp8),
            other => return Err(unknown("precision", other, PRECISIONS.iter().copied())),
        };
        if tflops == 0.0 {
            let value = format!("{precision} on {}", gpu.name);
            return Err(Problem::new(
                "precision",
                value,
                "bf16",
                "It has no operations of one byte.",
            ));
        }
        let weights_gb = bytes * model.params_g;
        let kv_gb = Model::kv_gb(weights_gb, gpu, num_gpus);
        let kv_tokens = kv_gb * 1e9 / f64::from(model.kv_bytes_per_token);
        if kv_tokens < 1.0 {
            return Err(model.does_not_fit(gpu, num_gpus, weights_gb));
        }
        let gpus = f64::from(num_gpus);
        let bytes_per_s = gpus * gpu.tb_per_s * 1e12;
        let all_reduce_s = {
            let bytes = 2.0 * 2.0 * f64::from(model.num_layers) * f64::from(model.width) * 2.0;
            ALL_REDUCE_FACTOR * bytes * (gpus - 1.0) / gpus / (gpu.tb_per_s * 1e12)
        };
        let step_s = WEIGHTS_FACTOR * weights_gb / (gpus * gpu.tb_per_s * 1e3)
            + LAYER_S * f64::from(model.num_layers)
            + STEP_S;
        let kv_s = KV_FACTOR * f64::from(model.kv_bytes_per_token) / bytes_per_s;
        let prompt_s = 2.0 * model.active_g * 1e9 / (PROMPT_MFU * gpus * tflops * 1e12);
        Ok(Pace {
            step_ps: ps_of_s(step_s),
            request_ps: ps_of_s(REQUEST_S + all_reduce_s),
            context_token_ps: ps_of_s(kv_s),
            prompt_token_ps: ps_of_s(prompt_s + all_reduce_s),
            before_queue_ps: ps_of_s(BEFORE_QUEUE_S),
            after_first_ps: ps_of_s(AFTER_FIRST_S),
            kv_tokens: kv_tokens as u64,
            batch_max: 256,
            tokens_max: 2_048,
        })
    }

    /// The same with other bounds of a step: requests, and tokens of prompts and decodes together.
    #[must_use]
    pub fn bounded(self, batch_max: Option<u32>, tokens_max: Option<u32>) -> Pace {
        Pace {
            batch_max: batch_max.unwrap_or(self.batch_max),
            tokens_max: tokens_max.unwrap_or(self.tokens_max),
            ..self
        }
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
    use pleach_workloads::plans::Precision as PlanPrecision;

    use super::*;

    /// Worked by hand from the constants: 1.4 x 16.06 / 3350 + 32 x 32e-6 + 126e-6 = 7.862 ms; 1.9 x 131072 / 3.35e12 = 74.339
    /// ns; 2 x 8.03e9 / (0.5 x 989.5e12) = 32.46 us; (72 - 16.06 - 2) GB / 131072 = 411,529 tokens.
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

    /// 1.4 x 141.1 / (4 x 3350) + 80 x 32e-6 + 126e-6 = 17.4277 ms; an all-reduce of a token 0.75 x 2 x 80 x 8192 x 2 x 2 x 3/4 /
    /// 3.35e12 = 0.88033 us; 2 x 70.55e9 / (0.5 x 4 x 989.5e12) = 71.299 us; 1.9 x 327680 / 13.4e12 = 46.462 ns;
    /// (4 x 72 - 141.1 - 8) GB / 327680 = 423,889 tokens.
    #[test]
    fn a_70b_model_on_four_gpus_has_the_pace_worked_by_hand() {
        let pace = Pace::split("llama-3-70b", "H100", 4).unwrap();
        assert!((s_of_ps(pace.step_ps) - 17.4277e-3).abs() < 1e-6);
        assert!((s_of_ps(pace.request_ps) - 4.88033e-6).abs() < 1e-10);
        assert!((s_of_ps(pace.prompt_token_ps) - (71.299e-6 + 0.88033e-6)).abs() < 1e-9);
        assert_eq!((pace.context_token_ps, pace.kv_tokens), (46_462, 423_889));
        // A mixture of experts reads 46.7 and computes 12.88 thousand million parameters: 1.4 x 93.4 / 6700 + 32 x 32e-6 +
        // 126e-6.
        let experts = Pace::split("mixtral-8x7b", "H100", 2).unwrap();
        assert!((s_of_ps(experts.step_ps) - 20.6664e-3).abs() < 1e-6);
        assert!((s_of_ps(experts.prompt_token_ps) - (26.034e-6 + 0.11739e-6)).abs() < 1e-8);
    }

    /// Half the bytes, twice the operations: 1.4 x 8.03 / 3350 + 32 x 32e-6 + 126e-6 = 4.5058 ms; 2 x 8.03e9 / (0.5 x 1979e12) = 16.23
    /// us; (72 - 8.03 - 2) GB / 131072 = 472,793 tokens.
    #[test]
    fn weights_of_one_byte_take_half_the_time_and_an_a100_has_none() {
        let pace = Pace::kept_in("fp8", "llama-3-8b", "H100", 1).unwrap();
        assert!((s_of_ps(pace.step_ps) - 4.5058e-3).abs() < 1e-6);
        assert!((s_of_ps(pace.prompt_token_ps) - 16.23e-6).abs() < 1e-8);
        assert_eq!(pace.kv_tokens, 472_793);
        let said = Pace::kept_in("fp8", "llama-3-8b", "A100", 1)
            .unwrap_err()
            .to_string();
        assert!(said.contains("fp8 on A100"), "{said}");
        let said = Pace::kept_in("fp4", "llama-3-8b", "H100", 1)
            .unwrap_err()
            .to_string();
        assert!(said.contains("bf16, fp8"), "{said}");
        let today = pace.bounded(Some(1024), None);
        assert_eq!((today.batch_max, today.tokens_max), (1024, 2048));
        // 812 GB of weights fit into eight GPUs of 180 GB, and not into eight of 80.
        assert!(
            Pace::split("llama-3-405b", "B200", 8).is_ok() && Pace::split("llama-3-405b", "H100", 8).is_err()
        );
    }

    /// The plans of trainings have data sheets too; 989 and 989.5 TFLOPS of an H100 are one.
    #[test]
    fn gpus_are_those_of_plans_of_trainings() {
        let mut num = 0;
        for gpu in &GPUS {
            let Some(other) = pleach_workloads::plans::GPUS
                .iter()
                .find(|other| other.name == gpu.name)
            else {
                continue;
            };
            num += 1;
            assert_eq!(gpu.memory_gb, other.memory_gb, "{}", gpu.name);
            for (own, precision) in [
                (gpu.tflops, PlanPrecision::Bf16),
                (gpu.tflops_fp8, PlanPrecision::Fp8),
            ] {
                assert!(
                    (own * 1e12 - other.peak(precision)).abs() <= 1e-3 * own * 1e12,
                    "{}",
                    gpu.name
                );
            }
        }
        assert_eq!(num, 6);
    }

    #[test]
    fn a_model_that_does_not_fit_and_names_that_are_not_there_are_refused() {
        let refusal = |model: &str, gpu: &str, num_gpus: u32| {
            let refused = Pace::split(model, gpu, num_gpus);
            refused.unwrap_err().to_string()
        };
        for (model, gpu, num_gpus, parts) in [
            (
                "llama-3-70b",
                "H100",
                1,
                [
                    "llama-3-70b on one H100",
                    "at most 70 GB",
                    "141 GB: a replica of 4",
                ],
            ),
            (
                "llama-3-70b",
                "H100",
                2,
                [
                    "llama-3-70b on 2 H100",
                    "at most 140 GB",
                    "141 GB: a replica of 4",
                ],
            ),
            (
                "llama-3-8b",
                "H100",
                3,
                ["replica_gpus = 3", "1, 2, 4, 8 for llama-3-8b", ""],
            ),
            ("qwen-2.5-7b", "H100", 8, ["replica_gpus = 8", "1, 2, 4 for", ""]),
            ("llama", "H100", 1, ["llama-3-8b", "mixtral-8x7b", "llama-3-405b"]),
            ("llama-3-8b", "B300", 1, ["H100, A100, L40S, H200", "", ""]),
        ] {
            let said = refusal(model, gpu, num_gpus);
            assert!(
                parts.iter().all(|part| said.contains(part)),
                "{model} {num_gpus}: {said}"
            );
        }
    }
}
