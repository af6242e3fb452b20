#![doc = include_str!("../README.md")]

pub mod api;
pub mod apply;
pub mod arrival;
pub mod claims;
pub mod config;
pub mod constraint;
pub mod controller;
pub mod ended;
pub mod error;
pub mod extender;
pub mod gang;
pub mod job_pods;
pub mod kueue;
pub mod late;
pub mod lease;
pub mod leases;
mod leaving;
pub mod line;
mod look;
pub mod mark;
pub mod names;
pub mod node;
pub mod observe;
pub mod pod;
pub mod quantity;
mod ranking;
pub mod reach;
pub mod seats;
pub mod server;
pub mod stand;
pub mod usage;
pub mod view;
pub mod webhook;

pub use config::Settings;
pub use error::Error;
