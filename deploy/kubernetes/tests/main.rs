//! The controller for Kubernetes as a whole: hand-worked lists, an API server in memory, the server, its manifests.

#![allow(clippy::unwrap_used)]

mod bodies;
mod bursts;
mod drift;
mod end_to_end;
mod ended;
mod events;
mod fake;
mod gangs;
mod golden;
mod hostile;
mod lease;
mod leases;
mod manifests;
mod marks;
mod objects;
mod observe;
mod operator;
mod order;
mod owners;
mod pages;
mod places;
mod server;
mod simulated;
mod turns;
mod unheld;
mod unready;
mod yielding;
