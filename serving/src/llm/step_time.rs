//! How long a step of a replica takes.
//!
//! # The law
//! ```text
//! step = max(W/(n BW ew) + E touched/(n BW ee), 2 P tokens/(n peak ep)) + context x max(KV/(n' BW ek), attention FLOP/(n peak ea))
//!      + layers x tl + 2 layers x tr [n > 1] + MoE layers x (tm + tx [n > 1]) + requests x tq + tokens x link
//!      + pairs of a prompt x attention FLOP/(n peak ea)
//! touched = 1 - (1 - k/E)^tokens
//! before the queue = k steps of one request + tokens of the prompt x tb
//! ```
//! Weights are read once a step, and of experts those that its tokens go to; the operations of all tokens hide behind that, or
//! take longer. Keys and values of contexts are read once. A prompt's token looks at all before it, so a chunk of t tokens after p
//! others has t p + t (t + 1) / 2 pairs. From its arrival to the queue a request waits as long as some steps, and longer with its
//! prompt.
//!
//! # Source
//! A roofline as in Vidur and LLM-Viewer, with constants fitted to published measurements ([`Constants`]); facts of models
//! and GPUs from their configurations and data sheets ([`Model`], [`Gpu`]).

mod constants;
mod engine;
mod gpu;
mod model;
mod names;
mod pace;
mod server;

pub use constants::{Constants, Levels, NUM_CONSTANTS, NUM_LEVELS};
pub use engine::{Defaults, ENGINE_NAMES, ENGINES, Engine};
pub use gpu::{GPU_NAMES, GPUS, Gpu};
pub use model::{Experts, GPUS_MAX, MODEL_NAMES, MODELS, Model};
pub use pace::{Chunks, PAIR_PARTS, Pace, ps_of_s, s_of_ps};
pub use server::{KV_PRECISIONS, PRECISIONS, Server};

#[cfg(test)]
mod tests;
