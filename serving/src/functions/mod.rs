//! Requests of applications: graphs of functions with one target from end to end, batched on slices of GPUs.
//!
//! Functions ([`Function`]) have profiles: configurations of batch, cores and slices with their latency. Applications
//! ([`Work`]) are graphs of them; each function of each application has a queue. [`simulate`] plays requests
//! ([`Arrivals`]) on machines ([`Platform`]) under a [`Dispatcher`], which chooses queue, configuration and node, and may
//! drop requests.
//!
//! # What is deliberately not here
//! Interference between slices, memory, and the link: a fetch takes the time it is told. Placing of long-lived replicas.

mod app;
mod arrivals;
mod columns;
mod engine;
mod events;
mod fronts;
mod outcome;
mod platform;
mod policies;
mod profile;
mod scored;
mod state;
pub mod surface;

pub use app::{App, Graph, Step, Work};
pub use arrivals::{Arrivals, Gaps, SETTINGS};
pub use columns::{DISPATCHING_1, SCHEMA};
pub use engine::{Dispatcher, simulate};
pub use outcome::{Latencies, Outcome};
pub use platform::{Late, Placing, Platform, Sharing};
pub use policies::{POLICIES, by_name};
pub use profile::{Configuration, Function};
pub use scored::ScorerDispatcher;
pub use state::{Queue, State, Waiting};
