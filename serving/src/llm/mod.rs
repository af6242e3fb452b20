//! Large language models: requests, replicas that batch them, and the routers in front.
//!
//! A list of [`Requests`] comes from a file ([`mod@file`]) or a generator ([`mod@generate`]). [`simulate`] plays it on replicas
//! ([`Replica`]) behind gateways, each of which sends its requests by a [`Router`] that reads facts of a stated age. What a policy
//! reads are the columns of [`SCHEMA`], so trees, exports and certificates are those of training jobs.
//!
//! # What is deliberately not here
//! The scheduler of single steps, which belongs to the inference server.

mod columns;
pub mod file;
mod fleet;
pub mod generate;
mod outcome;
mod replica;
mod request;
mod router;
mod simulate;
mod step_time;

pub use columns::{ROUTING_1, SCHEMA};
pub use fleet::Fleet;
pub use outcome::{Outcome, Served, Targets};
pub use replica::{Event, Replica, Told, Work};
pub use request::{ARRIVAL_S_MAX, REQUESTS_MAX, Request, Requests, TOKENS_MAX};
pub use router::{Decision, Facts, POLICIES, Router, ScorerRouter, Sent, by_name};
pub use simulate::simulate;
pub use step_time::{GPUS, Gpu, MODELS, Model, Pace, ps_of_s, s_of_ps};
