//! Requests of applications on slices of GPUs: dispatchers compared on the same requests, and trees searched for that dispatch.

mod compare;
mod describe;
mod page;
mod search;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use pleach_env::Seed;
use pleach_scheduler::tree::Tree;
use pleach_serving::functions::{
    Arrivals, Call, Dispatcher, Late, Outcome, Platform, SCHEMA, ScorerDispatcher, Sharing, Work, by_name,
    read, replay, simulate, surface,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::evaluate::flag_values;
use crate::serving::tree_over;

pub use compare::{DispatcherComparison, DispatcherRow, Loads, Warmth, compare_dispatchers};
pub use describe::CallsDescription;
pub use search::{DispatchSearch, SearchedDispatcher, search_dispatcher};

/// Requests, machines, and what becomes of late requests.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FunctionsConfig {
    /// A list of calls: ours, Azure Functions', Alibaba GenAI's (docs/serving-functions.md) [default: drawn]
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    pub requests: Option<PathBuf>,
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
    /// Target over an application's reference time [default: the setting's], of a list over a call's own run time [default: 2]
    #[arg(long, value_name = "X", value_parser = flag_values::positive, help_heading = "Requests")]
    pub slo: Option<f64>,
    /// So many times the setting's load, or a list so many times as fast
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = flag_values::positive, help_heading = "Requests")]
    pub load: f64,
    /// Requests of a drawn list, 1 to 100,000,000
    #[arg(long, value_name = "N", default_value_t = 4_000, value_parser = flag_values::whole::<u32>(1..=100_000_000),
        help_heading = "Requests")]
    pub num_requests: u32,
    /// Lists to draw, or parts into which a list is cut: consecutive ones, or by functions where it has counts alone, 1 to 1,000
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = flag_values::whole::<u16>(1..=1000),
        help_heading = "Requests")]
    pub lists: u16,
    /// What becomes of late requests: serve; expire: dropped past their deadline; shed: dispatchers may drop them before
    #[arg(long, value_name = "NAME", default_value = "serve", help_heading = "Machines")]
    pub late: String,
    /// Shares of GPUs: mps, or mig, where another number of slices is a cold start
    #[arg(long, value_name = "NAME", default_value = "mps", help_heading = "Machines")]
    pub sharing: String,
    /// Nodes of 16 cores and 7 slices, 1 to 1,024
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = flag_values::whole::<u16>(1..=1024),
        help_heading = "Machines")]
    pub nodes: u16,
    /// Warm containers of each function on each node at the beginning, 0 to 1,000 [default: 3, of a list 0]
    #[arg(long, value_name = "N", value_parser = flag_values::whole::<u16>(0..=1000), help_heading = "Machines")]
    pub prewarmed: Option<u16>,
    /// How long an idle container is kept warm, s
    #[arg(long, value_name = "S", default_value_t = 600.0, value_parser = flag_values::not_negative, help_heading = "Machines")]
    pub keep_s: f64,
}

impl Default for FunctionsConfig {
    fn default() -> FunctionsConfig {
        let platform = Platform::default();
        FunctionsConfig {
            requests: None,
            setting: "relaxed-heavy".into(),
            slo: None,
            surface: "assumed".into(),
            load: 1.0,
            num_requests: 4_000,
            lists: 5,
            late: "serve".into(),
            sharing: "mps".into(),
            nodes: platform.nodes,
            prewarmed: None,
            keep_s: 1e-6 * platform.keep_us as f64,
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
    /// Requests that are drawn, and the target.
    pub arrivals: Arrivals,
    /// Requests that are not.
    pub recorded: Option<Arc<Recorded>>,
}

/// A recorded list in parts.
#[derive(Debug)]
pub struct Recorded {
    /// Parts, each from 0 on.
    pub parts: Vec<Vec<Call>>,
    /// What was left out, mended or assumed.
    pub notes: Vec<String>,
}

/// Target of a recorded call over its own run time. *Assumed.*
const RECORDED_SLO: f64 = 2.0;

impl FunctionsConfig {
    /// The machines.
    ///
    /// # Errors
    /// A name that is not there.
    fn platform(&self) -> Result<Platform, Error> {
        let one_of = |key: &str, value: &str, allowed: &[&str]| {
            let found = allowed.iter().position(|name| *name == value);
            found.ok_or_else(|| Error::config(key, value, allowed.join(", "), "Take one of them."))
        };
        let late = one_of("late", &self.late, &["serve", "expire", "shed"])?;
        let sharing = one_of("sharing", &self.sharing, &["mps", "mig"])?;
        let defaults = Platform::default();
        let prewarmed = match self.requests {
            Some(_) => 0,
            None => defaults.prewarmed,
        };
        Ok(Platform {
            nodes: self.nodes,
            prewarmed: self.prewarmed.unwrap_or(prewarmed),
            keep_us: (1e6 * self.keep_s) as u64,
            late: [Late::Serve, Late::Expire, Late::Shed][late],
            sharing: [Sharing::Mps, Sharing::Mig][sharing],
            ..defaults
        })
    }

    /// What is played, at so many times the load.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn setup(&self, load: f64) -> Result<Setup, Error> {
        let platform = self.platform()?;
        let mut arrivals = Arrivals::of_setting(&self.setting, &self.surface, self.num_requests)?;
        arrivals.load = self.load * load;
        let Some(path) = &self.requests else {
            arrivals.slo = self.slo.unwrap_or(arrivals.slo);
            return Ok(Setup {
                work: surface::work(&self.surface)?,
                platform,
                arrivals,
                recorded: None,
            });
        };
        arrivals.slo = self.slo.unwrap_or(RECORDED_SLO);
        let (recorded, work) = self.recorded(path, arrivals.load)?;
        Ok(Setup {
            work,
            platform,
            arrivals,
            recorded: Some(Arc::new(recorded)),
        })
    }

    /// A list so many times as fast, in parts.
    fn recorded(&self, path: &Path, faster: f64) -> Result<(Recorded, Work), Error> {
        let seed = Seed(0).child("calls", 0);
        let list = read(path, seed).map_err(pleach_env::workload::Error::from)?;
        let mut parts = list.parts(self.lists.into(), seed);
        if let Some(empty) = parts.iter().position(Vec::is_empty) {
            let value = format!("{}: part {empty} has no call", self.lists);
            let hint = "Give fewer lists.";
            return Err(Error::config("lists", value, "parts with a call each", hint));
        }
        for call in parts.iter_mut().flatten() {
            call.at_us = (call.at_us as f64 / faster) as u64;
        }
        let (num, functions) = (list.calls.len(), list.functions.len());
        let mut notes = vec![format!("{}: {num} calls of {functions} functions", list.format)];
        notes.extend(list.told());
        Ok((Recorded { parts, notes }, list.work()?))
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

    /// Plays policies on lists, or on the parts of a recorded one: `[policy][list]`.
    ///
    /// # Errors
    /// A policy that cannot be used, a run that fails.
    pub fn play_all(&self, policies: &[String], lists: &[Seed]) -> Result<Vec<Vec<Outcome>>, Error> {
        let num = lists.len();
        let runs = (0..policies.len() * num).into_par_iter().map(|run| {
            let mut dispatcher = self.dispatcher(&policies[run / num])?;
            let Some(recorded) = &self.recorded else {
                return self.play(dispatcher.as_mut(), lists[run % num]);
            };
            let calls = (recorded.parts[run % num].as_slice(), self.arrivals.slo);
            Ok(replay(&self.work, &self.platform, calls, dispatcher.as_mut())?)
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
