//! Published measurements: which rows the law can be held to, and what each needs of it.

use pleach_env::Seed;
use pleach_serving::llm::{Chunks, GPUS, Pace, Server, closed_loop, s_of_ps};
use rand::RngExt as _;
use serde::Deserialize;

/// Names of models and what they are here; sizes of one family have the same shape.
const MODELS: [(&str, &str); 25] = [
    ("Llama3-8B", "llama-3-8b"),
    ("Llama3.1-8B", "llama-3-8b"),
    ("Llama3-70B", "llama-3-70b"),
    ("Llama3.1-70B", "llama-3-70b"),
    ("Llama3.3-70B", "llama-3-70b"),
    ("Llama2-70B", "llama-2-70b"),
    ("Llama3.1-405B", "llama-3-405b"),
    ("Mistral-7B", "mistral-7b"),
    ("Mixtral-8x7B", "mixtral-8x7b"),
    ("Mixtral-8x22B", "mixtral-8x22b"),
    ("Qwen2.5-72B", "qwen-2.5-72b"),
    ("Qwen3-32B", "qwen-3-32b"),
    ("QwQ-32B", "qwq-32b"),
    ("Qwen3-30B-A3B", "qwen-3-30b-a3b"),
    ("Qwen3-235B-A22B", "qwen-3-235b-a22b"),
    ("Qwen3.5-397B-A17B", "qwen-3.5-397b-a17b"),
    ("gpt-oss-20b", "gpt-oss-20b"),
    ("gpt-oss-120b", "gpt-oss-120b"),
    ("DeepSeek-R1", "deepseek-r1"),
    ("DeepSeek-V3", "deepseek-v3"),
    ("Kimi-K2.5", "kimi-k2.5"),
    ("GLM-5", "glm-5"),
    ("MiniMax-M2.5", "minimax-m2.5"),
    ("Llama-4-Scout", "llama-4-scout"),
    ("Llama-4-Maverick", "llama-4-maverick"),
];

/// One measurement, of what this reads.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    pub half: String,
    pub model: String,
    pub gpu: String,
    #[serde(deserialize_with = "csv::invalid_option")]
    num_gpus: Option<u32>,
    #[serde(deserialize_with = "csv::invalid_option")]
    tp: Option<u32>,
    #[serde(deserialize_with = "csv::invalid_option")]
    dp: Option<u32>,
    mode: String,
    pub precision: String,
    kv: String,
    engine: String,
    version: String,
    spec: String,
    load: String,
    #[serde(deserialize_with = "csv::invalid_option")]
    isl: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    osl: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    concurrency: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    out_tok_s: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    out_tok_s_gpu: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    total_tok_s: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    ttft_ms: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    ttft_p50_ms: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    tpot_ms: Option<f64>,
    #[serde(deserialize_with = "csv::invalid_option")]
    tpot_p50_ms: Option<f64>,
    note: String,
    pub source: String,
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Time per token of a number of requests at once, s.
    Token,
    /// Tokens of answers a second of as many requests as fit.
    Most,
    /// All tokens a second of a batch that begins and ends together.
    Batch,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Token => "time per token",
            Kind::Most => "most throughput",
            Kind::Batch => "batch offline",
        }
    }
}

/// A row that the law can be held to.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub server: Server,
    pub kind: Kind,
    pub measured: f64,
    /// Time to the first token, s, where it was measured.
    ttft_s: Option<f64>,
    /// None: as many as fit.
    at_once: Option<f64>,
    pub prompt: f64,
    pub output: f64,
    /// Its lengths are drawn evenly from 0.8 to 1 of the nominal.
    is_drawn: bool,
    /// Its requests come in waves: the next ones when all have ended.
    is_wave: bool,
    /// Place in the rows.
    pub row: usize,
}

/// Part of the nominal lengths that InferenceX draws in the mean: evenly from 0.8 to 1.
const DRAWN: f64 = 0.9;
/// Version of SGLang whose sweep came in waves: its times to the first token are 0.6 to 0.9 of what the prompts of all requests take,
/// those of other sweeps 0.1 to 0.5 (rows to fit by, 16 requests and more).
const WAVES: &str = "0.5.1.post1";
/// Requests at once of a low load.
const LOW: f64 = 4.0;
/// Share of their steady throughput that measurements of the most reach, their beginnings and ends among them. Fitted with the constants.
pub(super) const MOST_PART: f64 = 0.928;

impl Row {
    /// What the law needs of it; else why it is left out.
    pub fn held(&self, row: usize) -> Result<Held, &'static str> {
        let known = MODELS.iter().find(|(name, _)| *name == self.model);
        let (_, model) = known.ok_or("another model")?;
        if !GPUS.iter().any(|gpu| gpu.name == self.gpu) {
            return Err("another GPU");
        }
        if self.mode != "agg" {
            return Err("pools");
        }
        if self.spec.contains("MTP") {
            return Err("it may speculate");
        }
        if self.load.contains("open") || self.load.starts_with("MLPerf") {
            return Err("an open load, or MLPerf's");
        }
        if self.note.contains("FP8-meta") && self.gpu == "MI300X" {
            return Err("a build that fell back to slow kernels");
        }
        if self.model == "DeepSeek-V3" && self.source.contains("nvidia") {
            return Err("a model that is not named for sure");
        }
        let (kind, measured) = self.measured().ok_or("neither time per token nor throughput")?;
        let (prompt, output) = self.isl.zip(self.osl).ok_or("no lengths")?;
        let at_once = self.concurrency.filter(|_| kind != Kind::Most);
        if at_once.is_none() && kind != Kind::Most {
            return Err("no number of requests");
        }
        let server = self.server(model)?;
        let is_drawn = self.source.contains("aiconfigurator")
            && !self.source.contains("sxm/")
            && !self.source.contains("gb200/");
        let part = if is_drawn { DRAWN } else { 1.0 };
        Ok(Held {
            server,
            kind,
            measured,
            ttft_s: self.ttft_ms.or(self.ttft_p50_ms).map(|ms| ms / 1e3),
            at_once,
            prompt: part * prompt,
            output: part * output,
            is_drawn,
            is_wave: self.engine == "sglang" && self.version == WAVES,
            row,
        })
    }

    fn measured(&self) -> Option<(Kind, f64)> {
        let positive = |value: Option<f64>| value.filter(|value| *value > 0.0);
        let per_gpu = self
            .out_tok_s_gpu
            .zip(self.num_gpus)
            .map(|(rate, num)| rate * f64::from(num));
        if let Some(ms) = positive(self.tpot_ms).or(positive(self.tpot_p50_ms)) {
            return Some((Kind::Token, ms / 1e3));
        }
        match &*self.load {
            "offline batch" => Some((Kind::Batch, positive(self.total_tok_s)?)),
            load if load.contains("offline max") => {
                Some((Kind::Most, positive(self.out_tok_s).or(positive(per_gpu))?))
            }
            _ => None,
        }
    }

    /// Engine by what it was in its year.
    fn engine(&self) -> Result<&'static str, &'static str> {
        match &*self.engine {
            engine if engine.starts_with("trt") && self.version.starts_with("0.14") => Ok("trtllm-2024"),
            engine if engine.starts_with("trt") => Ok("trtllm"),
            "vllm" if self.version.starts_with("0.6") || self.version.starts_with("2024") => Ok("vllm-2024"),
            "vllm" => Ok("vllm"),
            "sglang" => Ok("sglang"),
            _ => Err("another engine"),
        }
    }

    fn server(&self, model: &str) -> Result<Server, &'static str> {
        let num_gpus = self.num_gpus.ok_or("no number of GPUs")?;
        let (mut copy_gpus, mut copies) = (self.tp.unwrap_or(0), self.dp.unwrap_or(1));
        if self.note.contains("attention DP") {
            (copy_gpus, copies) = (1, num_gpus);
        }
        if copy_gpus * copies != num_gpus {
            return Err("no split among its GPUs is named");
        }
        let precision = match self.precision.as_str() {
            "fp16" => "bf16",
            "fp4 (mxfp4)" => "fp4",
            other => other,
        };
        let server = Server::of(self.engine()?, model, &self.gpu, num_gpus);
        let server = server.map_err(|_| "its heads cannot be split so")?;
        let server = server
            .kept_in(precision)
            .map_err(|_| "numbers that its GPU has not")?;
        let server = server.copied(copies).map_err(|_| "copies")?;
        Ok(Server {
            has_small_kv: server.has_small_kv || self.kv == "fp8",
            ..server
        })
    }
}

impl Held {
    pub fn is_mixture(&self) -> bool {
        self.server.model.experts.is_some()
    }

    /// Requests at once: as many as the row says, and no more than a step takes or memory holds.
    pub fn at_once(&self, pace: &Pace) -> f64 {
        // TensorRT-LLM, of which these are, takes up a request where all of its answer fits (GUARANTEED_NO_EVICT, its default).
        let part = if self.kind == Kind::Most { 1.0 } else { 0.5 };
        let answer = part * self.output;
        let fit = (pace.kv_tokens as f64 / (self.prompt + answer)).max(1.0);
        let most = f64::from(pace.batch_max) * f64::from(self.server.num_copies);
        self.at_once.unwrap_or(most).min(most).min(fit).floor().max(1.0)
    }

    /// The measured time to the first token, s, of few requests at once; none where there were more.
    pub fn low_ttft_s(&self) -> Option<f64> {
        let is_low = self.at_once.is_some_and(|num| num <= LOW);
        self.ttft_s.filter(|ttft_s| is_low && *ttft_s > 0.0)
    }

    /// What the law says of it, in the unit of what was measured.
    pub fn predicted(&self, pace: &Pace, most_part: f64) -> f64 {
        let (at_once, output) = (self.at_once(pace), self.output);
        let batch = at_once as u64;
        let context = (at_once * (self.prompt + output / 2.0)) as u64;
        let decode_s = pace.token_s(batch, context);
        let prompt_s = self.prompt_s(pace, batch, context);
        match self.kind {
            // A request sees the prompts of all others while it runs, but of a wave those that come after its own: half.
            Kind::Token if self.is_wave => decode_s + 0.5 * (at_once - 1.0) / output * prompt_s,
            Kind::Token => decode_s + (at_once - 1.0) / output * prompt_s,
            Kind::Most => most_part * at_once / (decode_s + at_once / output * prompt_s),
            Kind::Batch => at_once * (self.prompt + output) / (at_once * prompt_s + output * decode_s),
        }
    }

    /// By how much a prompt in its chunks lengthens steps of a batch, s.
    fn prompt_s(&self, pace: &Pace, batch: u64, context: u64) -> f64 {
        let (room, whole) = (pace.prompt_room(batch), self.prompt as u64);
        let alone = pace.step(batch, context, Chunks::default());
        let (mut before, mut sum) = (0, 0);
        while before < whole {
            let mut chunk = Chunks::default();
            let tokens = room.min(whole - before);
            chunk.add(tokens, before);
            sum += pace.step(batch, context, chunk) - alone;
            before += tokens;
        }
        s_of_ps(sum)
    }

    /// Mean time to the first token and between later ones, s, as the replica plays it.
    pub fn played(&self, pace: &Pace) -> [f64; 2] {
        let mut rng = Seed(1).stream("lengths", 0);
        let mut length = |nominal: f64| {
            let part = if self.is_drawn {
                rng.random_range(0.8..=1.0) / DRAWN
            } else {
                1.0
            };
            (part * nominal).max(1.0) as u32
        };
        closed_loop(pace, self.at_once(pace) as u32, || {
            (length(self.prompt), length(self.output))
        })
    }
}
