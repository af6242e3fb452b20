//! A profile: everything that is known of a site's jobs and machines, as a file. Eight come with the crate, in the folder `profiles`; a
//! site writes its own in the same form.
//!
//! Refused: a key that no profile has, tables of other lengths, levels that do not rise, a model of no plan.

use std::collections::BTreeMap;
use std::fmt;

use pleach_scheduler::physics::links::Fabric;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::mix::Lengths;
use super::outcomes::{Ends, EndsByLevel};
use super::quantiles::Curve;
use super::site::Machines;

/// A site's jobs and machines.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name of the preset, or the path of its file.
    #[serde(skip)]
    pub(super) name: String,
    /// What it is, one line.
    pub(super) about: String,
    /// Where the figures come from.
    pub(super) source: String,
    /// Preset of the links of the site.
    pub(super) site_fabric: Option<String>,
    /// Nodes by shape; none: equal nodes of `gpus_per_node` GPUs.
    #[serde(default)]
    pub(super) machines: Vec<Machines>,
    /// Links of its cluster, where they are known.
    pub(super) fabric: Option<Fabric>,
    /// Nodes of a pod above the racks.
    pub(super) pod_nodes: Option<u32>,
    /// Bandwidth of the shared store for each 2,000 GPUs, GB/s.
    pub(super) store_gb_s: Option<f64>,
    /// Machines and links by the setting `gpus`.
    #[serde(default)]
    pub(super) gpus: BTreeMap<String, Fleet>,
    /// The settings that it has, and their defaults.
    pub(super) defaults: Map<String, Value>,
    pub(super) arrivals: Arrivals,
    #[serde(default)]
    pub(super) runs: Runs,
    #[serde(default)]
    pub(super) tenants: Tenants,
    /// GPU types that jobs accept.
    pub(super) constraints: Option<Constraints>,
    /// How ends lean on the run time.
    pub(super) ends_by_run_time: Option<EndsByLevel>,
    /// Odds of ends over completing, by run time and GPU time.
    pub(super) odds: Option<Odds>,
    /// Jobs of a list from which on it is drawn evenly, so that one list stands for all; none: never.
    pub(super) even_from: Option<usize>,
    pub(super) spot: Option<Spot>,
    pub(super) long: Option<Long>,
    /// Plans of models by name.
    #[serde(default)]
    pub(super) models: BTreeMap<String, Plan>,
    /// Kinds of work. `[num_works]`
    pub(super) works: Vec<Work>,
}

/// Machines and their links.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fleet {
    pub fabric: Fabric,
    pub machines: Vec<Machines>,
}

/// When jobs come.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arrivals {
    /// Spread of the logarithm of the wandering rate, and its hourly correlation.
    pub sigma: f64,
    pub correlation: f64,
    /// Rate by hour of the day and by weekday from Monday, each with mean 1.
    #[serde(default = "flat_day")]
    pub hours: [f64; 24],
    #[serde(default = "flat_week")]
    pub weekdays: [f64; 7],
}

fn flat_day() -> [f64; 24] {
    [1.0; 24]
}

fn flat_week() -> [f64; 7] {
    [1.0; 7]
}

/// Jobs of one user in a row.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Runs {
    /// Users in each tenant, 0 where the source names none, and the exponent of the Zipf law of their activity.
    pub users: usize,
    pub user_exponent: f64,
    /// Correlation of the normal scores of neighbouring run times.
    pub run_time_correlation: f64,
    /// Longest run.
    pub length_max: Option<u32>,
    /// Gaps inside a run: share of gaps of at most this length, s.
    pub gaps_s: Vec<(f64, f64)>,
}

/// Tenants, largest first.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tenants {
    /// Largest gang of each column of jobs but the last; empty: a column is a work.
    pub jobs_up_to: Vec<u32>,
    pub rows: Vec<Tenant>,
}

/// A tenant.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tenant {
    /// Name; none: by its place.
    pub name: Option<String>,
    /// Its part of the GPUs, relative.
    pub quota: f64,
    /// What its jobs are multiplied by.
    #[serde(default = "one")]
    pub weight: f64,
    /// Relative number of jobs. `[num_columns]`
    pub jobs: Vec<f64>,
}

/// Jobs that accept some GPU types only. Columns: a share of a GPU, one GPU, more.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Constraints {
    /// Share of the jobs in the source that have one.
    pub share: f64,
    /// Jobs without.
    pub any: [u32; 3],
    pub sets: Vec<TypeSet>,
}

/// GPU types, and the jobs that accept these alone.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypeSet {
    pub types: Vec<String>,
    pub pods: [u32; 3],
}

/// Odds of ends over completing.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Odds {
    /// Failed: at one minute, and the power with which they fall with the run time.
    pub failed: (f64, f64),
    /// Cancelled: at one GPU-hour, and the power with which they grow with the GPU-hours.
    pub cancelled: (f64, f64),
}

/// Jobs that may be stopped: a tenant without a quota.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spot {
    /// Share of the jobs.
    pub share: f64,
    /// Their share of long jobs over that of all jobs.
    pub long: f64,
}

/// Run times of which each kind has a share that is long.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Long {
    /// Quantiles, s: the short ones, then the long ones.
    pub seconds: Vec<f64>,
    /// Levels of the short ones by gang; the last is the share of the short ones where nothing else is said.
    pub short: Vec<Row<Vec<f64>>>,
    /// Levels of the others among long jobs.
    pub levels: Vec<f64>,
}

/// How a model is trained.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// The model of its plan.
    pub plan: String,
    /// Whether adapters alone are trained.
    #[serde(default)]
    pub adapters: bool,
    /// Sequences of a step; none: two on each GPU, between 256 and 2,048.
    pub batch: Option<u32>,
}

/// A kind of work.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Work {
    pub name: String,
    /// The GPU type that it runs on; none: any.
    pub gpu_type: Option<String>,
    pub mix: Vec<Demand>,
    /// Run times by gang, where they are not long ones.
    #[serde(default)]
    pub run_times: Vec<Row<Curve>>,
    /// What the shares of long jobs are multiplied by.
    #[serde(default = "one")]
    pub long_times: f64,
    /// How jobs end, by gang.
    #[serde(default)]
    pub ends: Vec<Row<Ends>>,
    /// Lengths of runs by gang.
    #[serde(default)]
    pub runs: Vec<Row<Lengths>>,
    /// CPU cores for each GPU and shares of jobs, by gang.
    #[serde(default)]
    pub cpu_cores: Vec<Row<Vec<(f64, f64)>>>,
    /// Models with equal chances, by gang.
    #[serde(default)]
    pub models: Vec<Row<Vec<String>>>,
    /// Whether it may run on other numbers of GPUs.
    #[serde(default)]
    pub elastic: bool,
}

/// What jobs ask for.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Demand {
    pub gpus: u32,
    /// Relative number of jobs.
    pub jobs: f64,
    #[serde(default = "whole")]
    pub gpu_milli: u16,
    #[serde(default)]
    pub cpu_cores: f64,
    #[serde(default)]
    pub memory_gib: f64,
    /// Share of them that is long.
    #[serde(default)]
    pub long: f64,
}

impl Demand {
    /// By what tables are looked up: GPUs, 0 for a share of one.
    pub fn size(&self) -> u32 {
        if self.gpu_milli < 1000 { 0 } else { self.gpus }
    }
}

/// A row of a table by gang.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row<T> {
    /// Largest gang that the row stands for.
    #[serde(default = "any")]
    pub up_to: u32,
    pub of: T,
}

/// The row that stands for a gang; the last one for gangs above all rows.
pub(super) fn row<T>(rows: &[Row<T>], size: u32) -> Option<&T> {
    let row = rows.iter().find(|row| size <= row.up_to).or(rows.last());
    row.map(|row| &row.of)
}

fn one() -> f64 {
    1.0
}

fn whole() -> u16 {
    1000
}

fn any() -> u32 {
    u32::MAX
}

impl fmt::Debug for Profile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.name)
    }
}
