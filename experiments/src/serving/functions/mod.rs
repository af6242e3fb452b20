//! Requests of applications on slices of GPUs: dispatchers compared on the same requests, and trees searched for that dispatch.

mod search;
#[cfg(test)]
mod tests;

use std::path::Path;

use clap::Args;
use pleach_env::Seed;
use pleach_scheduler::tree::Tree;
use pleach_serving::functions::{
    Arrivals, Dispatcher, Late, Outcome, Platform, SCHEMA, ScorerDispatcher, Sharing, Work, by_name,
    simulate, surface,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::evaluate::flag_values;
use crate::evaluate::stats::{bootstrap_mean, mean};
use crate::evaluate::table::Table;
use crate::serving::tree_over;

pub use search::{DispatchSearch, SearchedDispatcher, search_dispatcher};

/// Requests, machines, and what becomes of late requests.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FunctionsConfig {
    /// Targets and load: strict-light, moderate-normal, relaxed-heavy
    #[arg(
        long,
        value_name = "NAME",
        default_value = "relaxed-heavy",
        help_heading = "Requests"
    )]
    pub setting: String,
    /// Profiles of functions: assumed, flat, infless (measured)
    #[arg(
        long,
        value_name = "NAME",
        default_value = "assumed",
        help_heading = "Requests"
    )]
    pub surface: String,
    /// So many times the setting's load
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = flag_values::positive, help_heading = "Requests")]
    pub load: f64,
    /// Requests of a list, 1 to 100,000,000
    #[arg(long, value_name = "N", default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000),
        help_heading = "Requests")]
    pub num_requests: u32,
    /// Lists to draw, 1 to 1,000
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000),
        help_heading = "Requests")]
    pub lists: u16,
    /// What becomes of late requests: serve; expire: dropped past their deadline; shed: dispatchers may drop them before
    #[arg(long, value_name = "NAME", default_value = "serve", help_heading = "Machines")]
    pub late: String,
    /// Shares of GPUs: mps, or mig, where another number of slices is a cold start
    #[arg(long, value_name = "NAME", default_value = "mps", help_heading = "Machines")]
    pub sharing: String,
    /// Nodes of 16 cores and 7 slices, 1 to 1,024
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024),
        help_heading = "Machines")]
    pub nodes: u16,
    /// Warm containers of each function on each node at the beginning, 0 to 1,000
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=1000),
        help_heading = "Machines")]
    pub prewarmed: u16,
}

impl Default for FunctionsConfig {
    fn default() -> FunctionsConfig {
        let platform = Platform::default();
        FunctionsConfig {
            setting: "relaxed-heavy".into(),
            surface: "assumed".into(),
            load: 1.0,
            num_requests: 4_000,
            lists: 5,
            late: "serve".into(),
            sharing: "mps".into(),
            nodes: platform.nodes,
            prewarmed: platform.prewarmed,
        }
    }
}

/// All that a run needs but its seed and its dispatcher.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Functions and applications.
    pub work: Work,
    /// Machines.
    pub platform: Platform,
    /// Requests.
    pub arrivals: Arrivals,
}

impl FunctionsConfig {
    /// What is played, at so many times the load.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn setup(&self, load: f64) -> Result<Setup, Error> {
        let one_of = |key: &str, value: &str, allowed: &[&str]| {
            let found = allowed.iter().position(|name| *name == value);
            found.ok_or_else(|| Error::config(key, value, allowed.join(", "), "Take one of them."))
        };
        let late = one_of("late", &self.late, &["serve", "expire", "shed"])?;
        let sharing = one_of("sharing", &self.sharing, &["mps", "mig"])?;
        let mut arrivals = Arrivals::of_setting(&self.setting, &self.surface, self.num_requests)?;
        arrivals.load = self.load * load;
        Ok(Setup {
            work: surface::work(&self.surface)?,
            platform: Platform {
                nodes: self.nodes,
                prewarmed: self.prewarmed,
                late: [Late::Serve, Late::Expire, Late::Shed][late],
                sharing: [Sharing::Mps, Sharing::Mig][sharing],
                ..Platform::default()
            },
            arrivals,
        })
    }
}

impl Setup {
    /// A dispatcher by name, or a tree by file.
    ///
    /// # Errors
    /// A name that is not there, a file that is no tree of dispatching decisions.
    pub fn dispatcher(&self, text: &str) -> Result<Box<dyn Dispatcher>, Error> {
        let path = Path::new(text);
        if path.extension().is_some_and(|extension| extension == "json") {
            return Ok(Box::new(ScorerDispatcher::of_tree(&tree(path)?)?));
        }
        Ok(by_name(text, &self.work, &self.platform, self.arrivals.slo)?)
    }

    /// Plays a list.
    ///
    /// # Errors
    /// A run that fails.
    pub fn play(&self, dispatcher: &mut dyn Dispatcher, seed: Seed) -> Result<Outcome, Error> {
        Ok(simulate(
            &self.work,
            &self.platform,
            &self.arrivals,
            dispatcher,
            seed,
        )?)
    }

    /// Plays policies on lists: `[policy][list]`.
    ///
    /// # Errors
    /// A policy that cannot be used, a run that fails.
    pub fn play_all(&self, policies: &[String], lists: &[Seed]) -> Result<Vec<Vec<Outcome>>, Error> {
        let num = lists.len();
        let runs = (0..policies.len() * num).into_par_iter().map(|run| {
            let mut dispatcher = self.dispatcher(&policies[run / num])?;
            self.play(dispatcher.as_mut(), lists[run % num])
        });
        let outcomes: Vec<Outcome> = runs.collect::<Result<_, Error>>()?;
        Ok(outcomes.chunks(num).map(<[Outcome]>::to_vec).collect())
    }
}

/// A tree that dispatches.
///
/// # Errors
/// A file that is none.
fn tree(path: &Path) -> Result<Tree, Error> {
    tree_over(&SCHEMA, path)
}

/// Seeds of lists that are drawn; streams by name share nothing.
fn lists(seed: u64, name: &str, num: usize) -> Vec<Seed> {
    let root = Seed(seed).child("functions", 0);
    (0..num).map(|list| root.child(name, list as u64)).collect()
}

/// What one dispatcher came to, mean over lists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DispatcherRow {
    /// Name or file.
    pub policy: String,
    /// Served within their target, %.
    pub hits_pct: f64,
    /// By how many points that is above the strongest's, on the same lists; none for the strongest.
    pub gain_points: Option<f64>,
    /// Its 95 % interval; none with fewer than two lists.
    pub gain_interval: Option<(f64, f64)>,
    /// Not served, %.
    pub dropped_pct: f64,
    /// Cost of 1,000 requests, $.
    pub usd_per_1000: f64,
    /// Cost of 1,000 hits, $.
    pub usd_per_1000_hits: f64,
    /// Part of the cost that cold starts are, %.
    pub cold_pct: f64,
    /// Median latency of served requests, ms.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Requests of a batch.
    pub batch: f64,
    /// Part of the configurations asked for that no node had room for, %.
    pub no_room_pct: f64,
    /// Hits of each list, %.
    pub by_list: Vec<f64>,
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DispatcherComparison {
    /// Lists.
    pub num_lists: usize,
    /// Place of the strongest: most hits, then the cheapest.
    pub strongest: usize,
    /// In the order given.
    pub policies: Vec<DispatcherRow>,
}

/// Plays all dispatchers on all lists.
///
/// # Errors
/// A dispatcher or a setting that cannot be used.
pub fn compare_dispatchers(
    config: &FunctionsConfig,
    policies: &[String],
    seed: u64,
) -> Result<DispatcherComparison, Error> {
    let setup = config.setup(1.0)?;
    for policy in policies {
        setup.dispatcher(policy)?;
    }
    let outcomes = setup.play_all(policies, &lists(seed, "compare", config.lists.into()))?;
    Ok(DispatcherComparison::of(policies, &outcomes))
}

impl DispatcherComparison {
    /// Of outcomes `[policy][list]`.
    fn of(policies: &[String], outcomes: &[Vec<Outcome>]) -> DispatcherComparison {
        let mut rows: Vec<DispatcherRow> = policies
            .iter()
            .zip(outcomes)
            .map(|(name, outcomes)| row(name, outcomes))
            .collect();
        let better = |one: &DispatcherRow, other: &DispatcherRow| {
            let cheaper = other.usd_per_1000.total_cmp(&one.usd_per_1000);
            one.hits_pct.total_cmp(&other.hits_pct).then(cheaper)
        };
        let mut strongest = 0;
        for place in 1..rows.len() {
            if better(&rows[place], &rows[strongest]).is_gt() {
                strongest = place;
            }
        }
        let first = rows[strongest].by_list.clone();
        for (place, row) in rows.iter_mut().enumerate() {
            if place != strongest {
                let gains: Vec<f64> = row
                    .by_list
                    .iter()
                    .zip(&first)
                    .map(|(own, first)| own - first)
                    .collect();
                row.gain_points = Some(mean(&gains));
                row.gain_interval = bootstrap_mean(&gains, 0.95);
            }
        }
        DispatcherComparison {
            num_lists: outcomes[0].len(),
            strongest,
            policies: rows,
        }
    }

    /// The decisive column first.
    #[must_use]
    pub fn table(&self) -> Table {
        let strongest = &self.policies[self.strongest].policy;
        let header = [
            "dispatcher",
            "hits %",
            &format!("points over {strongest}"),
            "dropped %",
            "$ per 1,000",
            "$ per 1,000 hits",
            "cold %",
            "p50 ms",
            "p99 ms",
            "batch",
        ];
        let rows = self.policies.iter().map(|row| {
            let gain = match (row.gain_points, row.gain_interval) {
                (Some(gain), Some((low, high))) => format!("{gain:+.2} [{low:+.2}, {high:+.2}]"),
                (Some(gain), None) => format!("{gain:+.2}"),
                _ => String::new(),
            };
            vec![
                row.policy.clone(),
                format!("{:.2}", row.hits_pct),
                gain,
                format!("{:.2}", row.dropped_pct),
                format!("{:.4}", row.usd_per_1000),
                format!("{:.4}", row.usd_per_1000_hits),
                format!("{:.1}", row.cold_pct),
                format!("{:.0}", row.p50_ms),
                format!("{:.0}", row.p99_ms),
                format!("{:.2}", row.batch),
            ]
        });
        Table {
            header: header.map(str::to_string).to_vec(),
            rows: rows.collect(),
            notes: vec![format!(
                "mean over {} lists; hits: served within the target; cold: part of the cost",
                self.num_lists
            )],
        }
    }
}

fn row(name: &str, outcomes: &[Outcome]) -> DispatcherRow {
    let over = |figure: &dyn Fn(&Outcome) -> f64| mean(&outcomes.iter().map(figure).collect::<Vec<_>>());
    let by_list: Vec<f64> = outcomes
        .iter()
        .map(|outcome| 100.0 * outcome.hit_share())
        .collect();
    DispatcherRow {
        policy: name.into(),
        hits_pct: mean(&by_list),
        gain_points: None,
        gain_interval: None,
        dropped_pct: over(&|outcome| 100.0 * outcome.dropped_share()),
        usd_per_1000: over(&Outcome::usd_per_1000),
        usd_per_1000_hits: over(&Outcome::usd_per_1000_hits),
        cold_pct: over(&|outcome| 100.0 * outcome.cold_usd / outcome.usd.max(1e-12)),
        p50_ms: over(&|outcome| 1e-3 * outcome.latencies.quantile_us(0.5)),
        p99_ms: over(&|outcome| 1e-3 * outcome.latencies.quantile_us(0.99)),
        batch: over(&Outcome::batch_mean),
        no_room_pct: over(&|outcome| 100.0 * outcome.refused as f64 / outcome.asked.max(1) as f64),
        by_list,
    }
}
