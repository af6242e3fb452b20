//! The controller for Kubernetes as a whole: hand-worked lists, an API server in memory, the server, its manifests.

#![allow(clippy::unwrap_used)]

mod admission;
mod bodies;
mod bounds;
mod bursts;
mod chart;
mod drift;
mod driven;
mod end_to_end;
mod ended;
mod events;
mod failing;
mod fake;
mod gangs;
mod gangs_live;
mod golden;
mod hostile;
mod lease;
mod leases;
mod leases_killed;
mod let_go;
mod manifests;
mod marks;
mod memo;
mod objects;
mod observe;
mod operator;
mod order;
mod owners;
mod pages;
mod places;
mod promised;
mod ray_jobs;
mod rests;
mod server;
mod simulated;
mod suspended;
mod turns;
mod unheld;
mod unready;
mod watches;
mod yielding;
