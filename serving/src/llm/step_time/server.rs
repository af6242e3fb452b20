//! A server of a model: what it runs on and how, and the pace that follows.

use pleach_scheduler::Problem;

use super::constants::{Constants, Levels};
use super::engine::{ENGINE_NAMES, Engine};
use super::gpu::Gpu;
use super::model::Model;
use super::names::unknown;
use super::pace::{PAIR_PARTS, Pace, ps_of_s};

/// Numbers in which a model's weights are kept and multiplied, by name. In fp4 the weights outside of experts stay at two bytes;
/// int4 multiplies in two bytes.
pub const PRECISIONS: &[&str] = &["bf16", "fp8", "fp4", "int4"];
/// Numbers in which keys and values are kept: as the engine does by default, or in these.
pub const KV_PRECISIONS: &[&str] = &["engine", "bf16", "fp8"];
/// Bytes of four bits with a scale of eight for each 16 (NVFP4), and of a group of 128 (AWQ).
const FP4_BYTES: f64 = 0.5625;
const INT4_BYTES: f64 = 0.53;
/// Memory of a GPU that is neither weights nor keys and values, GB. *Assumed.*
const WORKSPACE_GB: f64 = 3.0;
/// Least room for keys and values with which an engine starts, GB. *Assumed.*
const KV_GB_MIN: f64 = 1.0;
/// From the end of a request's first step to its user, s (BLIS).
const AFTER_FIRST_S: f64 = 0.78e-3;

/// A server: model, GPUs, numbers, engine.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// What it serves.
    pub model: &'static Model,
    /// GPU type.
    pub gpu: &'static Gpu,
    /// GPUs of a replica.
    pub num_gpus: u32,
    /// Copies of all but experts, each on as many GPUs; 1: the model is split among all of them.
    pub num_copies: u32,
    /// One of [`PRECISIONS`].
    pub precision: &'static str,
    /// Whether keys and values have one byte.
    pub has_small_kv: bool,
    /// What runs it.
    pub engine: &'static Engine,
    /// Tokens of an answer that a step gives with speculation; 1: without.
    pub speculation: f64,
    /// Most requests of a step, where it is not the engine's default.
    pub batch_max: Option<u32>,
    /// Most tokens of a step, where it is not the engine's default.
    pub step_tokens: Option<u32>,
    /// Share of the memory that a replica takes, where it is not the engine's default.
    pub memory_share: Option<f64>,
    /// Whether what has ended stays in free memory.
    pub keeps_prefixes: bool,
    /// Factors on times of layers and on shares of bandwidth and peak: a site's own over those of the engine.
    pub own_levels: [f64; 2],
}

impl Server {
    /// A model on some GPUs by name, in two bytes, with an engine.
    ///
    /// # Errors
    /// A name that is not there; GPUs among which the heads cannot be split.
    pub fn of(engine: &str, model: &str, gpu: &str, num_gpus: u32) -> Result<Server, Problem> {
        let server = Server {
            model: Model::of(model)?,
            gpu: Gpu::of(gpu)?,
            num_gpus,
            num_copies: 1,
            precision: PRECISIONS[0],
            has_small_kv: false,
            engine: Engine::of(engine)?,
            speculation: 1.0,
            batch_max: None,
            step_tokens: None,
            memory_share: None,
            keeps_prefixes: true,
            own_levels: [1.0; 2],
        };
        server.model.check_split(num_gpus)?;
        Ok(server)
    }

    /// The same with weights in other numbers; keys and values follow the engine.
    ///
    /// # Errors
    /// A name that is not there, a GPU that has no such operations.
    pub fn kept_in(self, precision: &str) -> Result<Server, Problem> {
        let known = PRECISIONS.iter().find(|known| **known == precision);
        let server = Server {
            precision: known.ok_or_else(|| unknown("precision", precision, PRECISIONS))?,
            ..self
        };
        Problem::refuse_if(
            server.tflops() == 0.0,
            "precision",
            format_args!("{precision} on {}", server.gpu.name),
            "bf16, int4",
            "It has no such operations.",
        )?;
        Ok(Server {
            has_small_kv: server.engine.has_small_kv
                && precision != "bf16"
                && server.model.expert_bytes.is_none(),
            ..server
        })
    }

    /// The same with so many copies of all but experts.
    ///
    /// # Errors
    /// GPUs that cannot be divided so.
    pub fn copied(self, num_copies: u32) -> Result<Server, Problem> {
        Problem::refuse_if(
            num_copies == 0 || !self.num_gpus.is_multiple_of(num_copies),
            "copies",
            num_copies,
            format_args!("a divisor of {}, the GPUs of a replica", self.num_gpus),
            "Try 1.",
        )?;
        Ok(Server { num_copies, ..self })
    }

    /// What of it no published measurement stands behind, in words.
    #[must_use]
    pub fn unmeasured(&self) -> Vec<String> {
        let mut of = Vec::new();
        if self.gpu.is_unmeasured {
            of.push(self.gpu.name.to_string());
        }
        if self.speculation > 1.0 {
            of.push("speculation".to_string());
        }
        of
    }

    /// Bytes of a weight in experts and outside.
    fn bytes(&self) -> [f64; 2] {
        let of_all = match self.precision {
            "fp8" => 1.0,
            "fp4" => FP4_BYTES,
            "int4" => INT4_BYTES,
            _ => 2.0,
        };
        if let Some(of_experts) = self.model.expert_bytes {
            return [of_experts, 2.0];
        }
        match self.model.experts {
            Some(_) if of_all < 1.0 => [of_all, 2.0],
            _ => [of_all, of_all],
        }
    }

    /// Peak of the operations, TFLOPS. Experts published in four bits are multiplied in them where the GPU can.
    fn tflops(&self) -> f64 {
        let [two, one, half] = self.gpu.tflops;
        match (self.precision, self.model.expert_bytes) {
            (_, Some(_)) if half > 0.0 => half,
            (_, Some(_)) | ("bf16" | "int4", None) => two,
            ("fp8", None) => one,
            (_, None) => half,
        }
    }

    /// Bytes of keys and values of a token on each GPU that holds them.
    #[must_use]
    pub fn gpu_kv_bytes(&self) -> f64 {
        let bytes = if self.has_small_kv { 1.0 } else { 2.0 };
        self.model.kv_numbers() * bytes / f64::from(self.model.kv_split(self.copy_gpus()))
    }

    /// GPUs of a copy.
    fn copy_gpus(&self) -> u32 {
        self.num_gpus / self.num_copies
    }

    /// Weights of a GPU, GB.
    fn gpu_weights_gb(&self) -> f64 {
        let [of_experts, outside] = self.bytes();
        (self.model.dense_params() * outside / f64::from(self.copy_gpus())
            + self.model.expert_params() * of_experts / f64::from(self.num_gpus))
            / 1e9
    }

    /// Tokens whose keys and values fit; below 1 where not even the weights do.
    fn kv_tokens(&self, memory_share: f64) -> f64 {
        let room_gb = memory_share * self.gpu.memory_gb - self.gpu_weights_gb() - WORKSPACE_GB;
        if room_gb < KV_GB_MIN {
            return 0.0;
        }
        room_gb * 1e9 / self.gpu_kv_bytes() * f64::from(self.num_copies)
    }

    fn does_not_fit(&self, memory_share: f64) -> Problem {
        let (model, gpu, num_gpus) = (self.model, self.gpu, self.num_gpus);
        let value = match num_gpus {
            1 => format!("{} on one {}", model.name, gpu.name),
            _ => format!("{} on {num_gpus} {}", model.name, gpu.name),
        };
        let most_gb = memory_share * gpu.memory_gb - WORKSPACE_GB - KV_GB_MIN;
        let own_gb = self.gpu_weights_gb();
        let allowed = format!("weights of at most {most_gb:.0} GB a GPU");
        let fits = model.splits().find(|num| {
            let larger = Server {
                num_gpus: *num,
                num_copies: 1,
                ..*self
            };
            larger.kv_tokens(memory_share) >= 1.0
        });
        let hint = match fits {
            Some(num) => format!("Its weights take {own_gb:.0} GB a GPU: a replica of {num} holds it."),
            None => format!("Its weights take {own_gb:.0} GB a GPU: take a larger GPU or another precision."),
        };
        Problem::new("model", value, allowed, hint)
    }

    /// The pace that follows from the constants of its GPU type and the levels of its engine.
    ///
    /// # Errors
    /// A model that does not fit.
    pub fn pace(&self) -> Result<Pace, Problem> {
        let levels = Levels::of_engine(self.engine.name).times(self.own_levels);
        self.pace_with(Constants::of_family(self.gpu.family), &levels)
    }

    /// The same with other constants and levels.
    ///
    /// # Errors
    /// As [`Server::pace`].
    pub fn pace_with(&self, constants: &Constants, levels: &Levels) -> Result<Pace, Problem> {
        let defaults = self.engine.defaults(self.gpu);
        let memory_share = self.memory_share.unwrap_or(defaults.memory_share);
        let kv_tokens = self.kv_tokens(memory_share);
        if kv_tokens < 1.0 {
            return Err(self.does_not_fit(memory_share));
        }
        let pace = Pace {
            kv_tokens: kv_tokens as u64,
            batch_max: self.batch_max.unwrap_or(defaults.batch_max),
            tokens_max: self.step_tokens.unwrap_or(defaults.step_tokens),
            ..self.steps(constants, levels)
        };
        let before_queue_s = levels.before_queue_steps * pace.token_s(1, 0);
        let pace = Pace {
            before_queue_ps: ps_of_s(before_queue_s),
            ..pace
        };
        Ok(pace.speculating(self.speculation))
    }

    /// Times of a step; see the front page of [`super`].
    fn steps(&self, constants: &Constants, levels: &Levels) -> Pace {
        let (model, gpu) = (self.model, self.gpu);
        let [gpus, copies] = [self.num_gpus, self.num_copies].map(f64::from);
        let copy_gpus = f64::from(self.copy_gpus());
        let [of_experts, outside] = self.bytes();
        let [layers, width] = [model.num_layers, model.width].map(f64::from);
        let (bytes_per_s, peak) = (gpu.tb_per_s * 1e12, self.tflops() * 1e12);
        let level = levels.efficiency;

        let weights_s =
            model.dense_params() * outside / copy_gpus / (bytes_per_s * constants.weights * level);
        let experts_s = model.expert_params() * of_experts / gpus / (bytes_per_s * constants.experts * level);
        let share = match model.experts {
            Some(_) => constants.mixture,
            None => constants.dense,
        };
        let token_s = 2e9 * model.active_g / (gpus * peak * share * level);
        let attention_per_s = gpus * gpu.tflops[0] * 1e12 * constants.attention * level;
        let read_s = self.gpu_kv_bytes() / copies / (bytes_per_s * constants.kv * level);
        let context_s = read_s.max(model.read_flop() / attention_per_s);

        let (mixed_layers, top) = model.experts.map_or((0.0, 0.0), |experts| {
            (f64::from(experts.num_layers), f64::from(experts.top))
        });
        let mut link_s = 0.0;
        let mut step_s =
            (layers * constants.layer_s + mixed_layers * constants.expert_layer_s) * levels.overhead;
        if self.copy_gpus() > 1 {
            step_s += 2.0 * layers * constants.reduce_s;
            link_s += 4.0 * layers * width * constants.reduce_byte_s;
        }
        if self.num_gpus > 1 {
            step_s += mixed_layers * constants.exchange_s;
        }
        if self.num_copies > 1 {
            link_s += 3.0 * mixed_layers * top * width * (gpus - 1.0) / gpus * constants.exchange_byte_s;
        }
        let left = model.experts.map_or(1.0, |experts| {
            1.0 - f64::from(experts.top) / f64::from(experts.num)
        });
        Pace {
            step_ps: ps_of_s(step_s),
            request_ps: ps_of_s((constants.request_s * levels.request + link_s) / copies),
            context_token_ps: ps_of_s(context_s),
            weights_ps: ps_of_s(weights_s),
            experts_ps: ps_of_s(experts_s),
            experts_left: (left * f64::from(u32::MAX)) as u32,
            token_ps: ps_of_s(token_s),
            prompt_token_ps: ps_of_s(token_s),
            prompt_link_ps: ps_of_s(link_s / copies),
            prompt_pair_parts: ps_of_s(model.pair_flop() / attention_per_s * PAIR_PARTS as f64),
            before_queue_ps: 0,
            before_queue_token_ps: ps_of_s(levels.before_queue_token_s),
            after_first_ps: ps_of_s(AFTER_FIRST_S),
            kv_tokens: 0,
            batch_max: 0,
            tokens_max: 0,
            keeps_prefixes: self.keeps_prefixes,
        }
    }
}

impl Pace {
    /// The pace of a model on one GPU, both by name, with the first engine.
    ///
    /// # Errors
    /// A name that is not there; a model that does not fit.
    pub fn of(model: &str, gpu: &str) -> Result<Pace, Problem> {
        Pace::split(model, gpu, 1)
    }

    /// The same where a replica has several GPUs, among which the heads are split evenly.
    ///
    /// # Errors
    /// A name that is not there; GPUs among which the heads cannot be split; a model that does not fit.
    pub fn split(model: &str, gpu: &str, num_gpus: u32) -> Result<Pace, Problem> {
        Server::of(ENGINE_NAMES[0], model, gpu, num_gpus)?.pace()
    }
}
