//! Inference engines: what they take in a step by default.
//!
//! # Source
//! vLLM 0.27 (`get_batch_defaults` in `vllm/engine/arg_utils.py`, its server's values; `gpu_memory_utilization`), 0.6 of 2024
//! (`max_num_seqs`, chunks of 2,048 tokens); SGLang 0.5 (`server_args.py`: chunks by memory, at least 2,048 requests, memory of 0.88
//! where the GPU is not known); TensorRT-LLM 1.x (`max_batch_size`, `max_num_tokens`, `free_gpu_memory_fraction`).

use pleach_scheduler::Problem;

use super::gpu::Gpu;
use super::names::unknown;

/// An engine, of today or of a year.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// Name in commands, and of its levels.
    pub name: &'static str,
    /// Whether it keeps keys and values of models of one byte and less in one byte.
    pub has_small_kv: bool,
    defaults: fn(&Gpu) -> Defaults,
}

/// What a step takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Defaults {
    /// Requests.
    pub batch_max: u32,
    /// Tokens.
    pub step_tokens: u32,
    /// Share of the memory that a replica takes.
    pub memory_share: f64,
}

/// Engines by name, the default first.
pub const ENGINES: [Engine; 5] = [
    engine("vllm", false, vllm),
    engine("sglang", false, sglang),
    engine("trtllm", true, trtllm),
    engine("vllm-2024", false, |_| defaults(256, 2_048, 0.9)),
    engine("trtllm-2024", true, trtllm),
];
/// Their names.
pub const ENGINE_NAMES: [&str; ENGINES.len()] = {
    let (mut names, mut place) = ([""; ENGINES.len()], 0);
    while place < names.len() {
        names[place] = ENGINES[place].name;
        place += 1;
    }
    names
};

/// Memory from which vLLM takes large batches, 70 GiB in GB.
const LARGE_GB: f64 = 75.2;

const fn engine(name: &'static str, has_small_kv: bool, defaults: fn(&Gpu) -> Defaults) -> Engine {
    Engine {
        name,
        has_small_kv,
        defaults,
    }
}

const fn defaults(batch_max: u32, step_tokens: u32, memory_share: f64) -> Defaults {
    Defaults {
        batch_max,
        step_tokens,
        memory_share,
    }
}

fn vllm(gpu: &Gpu) -> Defaults {
    if gpu.memory_gb >= LARGE_GB && !gpu.name.starts_with("A100") {
        defaults(1_024, 8_192, 0.92)
    } else {
        defaults(256, 2_048, 0.92)
    }
}

fn sglang(gpu: &Gpu) -> Defaults {
    match gpu.memory_gb {
        160.0.. => defaults(2_048, 16_384, 0.88),
        _ => defaults(2_048, 8_192, 0.88),
    }
}

fn trtllm(_: &Gpu) -> Defaults {
    defaults(2_048, 8_192, 0.9)
}

impl Engine {
    /// The engine of a name.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn of(name: &str) -> Result<&'static Engine, Problem> {
        ENGINES
            .iter()
            .find(|known| known.name == name)
            .ok_or_else(|| unknown("engine", name, &ENGINE_NAMES))
    }

    /// What it takes in a step on a GPU type.
    #[must_use]
    pub fn defaults(&self, gpu: &Gpu) -> Defaults {
        (self.defaults)(gpu)
    }
}
