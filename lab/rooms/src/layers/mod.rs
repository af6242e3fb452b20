//! Networks that share accelerators layer by layer: requests whose layers take as long as their sample is dense, and schedulers
//! that may change their mind at each layer's end.
//!
//! [`Profiles`] say what is believed of models, a list of [`Requests`] holds what is true of samples, and [`simulate`] plays it
//! under a [`Scheduler`], by name ([`by_name`]) or by the columns of [`SCHEMA`] ([`ScorerLayers`]).
//!
//! # What is deliberately not here
//! Costs of preemption (weights stay on the accelerator, as in DySta's simulator), batches, several requests on one accelerator.
//! Measured profiles: those of DySta are not public, ours are drawn.

mod columns;
mod outcome;
mod policy;
mod profile;
mod request;
mod scored;
mod simulate;

pub use columns::{LAYERS_1, SCHEMA};
pub use outcome::{Outcome, Served};
pub use policy::{POLICIES, Queue, Scheduler, Waiting, by_name};
pub use profile::{Model, PROFILES, Profiles};
pub use request::{PRIORITIES, REQUESTS_MAX, Request, RequestGenerator, Requests};
pub use scored::ScorerLayers;
pub use simulate::simulate;
