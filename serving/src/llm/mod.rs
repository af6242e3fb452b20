//! Large language models: requests, replicas that batch them, and the routers in front.
//!
//! A list of [`Requests`] comes from a file ([`mod@file`]) or a generator ([`mod@generate`]). [`simulate`] plays it on replicas
//! ([`Replica`]) behind gateways, each of which sends its requests by a [`Router`] that reads facts of a stated age, and
//! [`simulate_pools`] on replicas that compute prompts and others that decode; [`Routing`] is the loop of the former in steps,
//! for learners. What a policy reads are the columns of [`SCHEMA`], so trees, exports and certificates are
//! those of training jobs.
//!
//! # What is deliberately not here
//! The scheduler of single steps, which belongs to the inference server.

mod autoscaler;
mod certify;
mod closed_loop;
mod columns;
pub mod deploy;
mod environment;
pub mod file;
mod fleet;
mod gateway;
pub mod generate;
mod link;
mod outcome;
mod pools;
mod replica;
mod request;
mod router;
mod service;
mod simulate;
mod step_time;
mod turns;

pub use autoscaler::{
    AUTOSCALERS, AUTOSCALING, AUTOSCALING_1, Autoscaler, Beside, Changes, Demand, ScorerAutoscaler, Yield,
    autoscaler, capacity_per_s,
};
pub use certify::certificates;
pub use closed_loop::closed_loop;
pub use columns::{ROUTING_1, ROUTING_2, SCHEMA};
pub use environment::{Lists, Routing};
pub use fleet::Fleet;
pub use link::Link;
pub use outcome::{Outcome, Served, Targets};
pub use pools::{Pooled, Pools, simulate_pools};
pub use replica::{Event, Replica, Told, Work};
pub use request::{
    ARRIVAL_S_MAX, After, BLOCK_TOKENS, Blocks, REQUESTS_MAX, Request, Requests, TOKENS_MAX, WAIT_S_MIN,
};
pub use router::{Believed, Decision, Facts, Flow, Lately, POLICIES, Router, ScorerRouter, Sent, by_name};
pub use service::{Load, Route, Service};
pub use simulate::simulate;
pub use step_time::{
    Chunks, Constants, Defaults, ENGINE_NAMES, ENGINES, Engine, Experts, GPU_NAMES, GPUS, GPUS_MAX, Gpu,
    KV_PRECISIONS, Levels, MODEL_NAMES, MODELS, Model, NUM_CONSTANTS, NUM_LEVELS, PAIR_PARTS, PRECISIONS,
    Pace, Server, ps_of_s, s_of_ps,
};
