//! Requests of applications: graphs of functions with one target from end to end, batched on slices of GPUs.
//!
//! Functions ([`Function`]) have profiles: configurations of batch, cores and slices with their latency. Applications
//! ([`Work`]) are graphs of them; each function of each application has a queue. [`simulate`] plays requests
//! ([`Arrivals`]) on machines ([`Platform`]) under a [`Dispatcher`], which chooses queue, configuration and node, and may
//! drop requests.
//!
//! # What is deliberately not here
//! Interference between slices, memory, and the link: a fetch takes a given time. Placing of long-lived replicas.

mod app;
mod arrivals;
mod calls;
mod columns;
mod engine;
mod environment;
mod events;
mod file;
mod fronts;
mod outcome;
mod platform;
mod policies;
mod profile;
mod scored;
mod state;
pub mod surface;
mod timeline;

pub use app::{App, Graph, Step, Work};
pub use arrivals::{Arrivals, Gaps, SETTINGS};
pub use calls::{Call, Called, Calls};
pub use columns::{DISPATCHING_1, SCHEMA};
pub use engine::{Dispatcher, replay, simulate};
pub use environment::Dispatching;
pub use file::{is_calls, read};
pub use outcome::{Latencies, Outcome};
pub use platform::{GPU_SLICES, Late, Placing, Platform, Sharing};
pub use policies::{POLICIES, by_name};
pub use profile::{Configuration, Function};
pub use scored::ScorerDispatcher;
pub use state::{Queue, State, Waiting};
pub use timeline::{Interval, Timeline};
