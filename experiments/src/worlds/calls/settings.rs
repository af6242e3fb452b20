//! Requests, machines, and what becomes of late requests: the settings of the world, and what is played by them.

use std::path::PathBuf;

use pleach_env::Seed;
use pleach_scheduler::settings::{Above, OneOf};
use pleach_serving::functions::{
    Arrivals, Call, Calls, Dispatcher, Late, Outcome, Platform, Sharing, Work, by_name, replay, simulate,
    surface,
};

use crate::error::Error;

pleach_scheduler::settings! {
    /// Requests, machines, and what becomes of late requests.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CallsSettings {
        /// A list of calls: ours, Azure Functions', Alibaba GenAI's (docs/serving-functions.md) [default: drawn]
        pub requests: Option<PathBuf>;
        /// Targets and load
        pub setting: String = "relaxed-heavy".into(), in OneOf(&["strict-light", "moderate-normal", "relaxed-heavy"]);
        /// Profiles of functions; infless is measured
        pub surface: String = "assumed".into(), in OneOf(&["assumed", "flat", "infless"]);
        /// Target over an application's reference time [default: the setting's], of a list over a call's own run time [default: 2]
        pub slo: Option<f64>, in Above(0.0, 1e12);
        /// So many times the setting's load, or a list so many times as fast
        pub load: f64 = 1.0, in Above(0.0, 1e12);
        /// Times that load at which policies are compared, a list
        pub loads: Vec<f64> = vec![1.0], in Above(0.0, 1e12);
        /// Requests of a drawn list
        pub num_requests: u32 = 4_000, in 1..=100_000_000;
        /// Lists to draw, or parts into which a list is cut: consecutive ones, or by functions where it has counts alone
        pub lists: u16 = 5, in 1..=1000;
        /// What becomes of late requests: serve; expire: dropped past their deadline; shed: dispatchers may drop them before
        pub late: String = "serve".into(), in OneOf(&["serve", "expire", "shed"]);
        /// Shares of GPUs: mps, or mig, where another number of slices is a cold start
        pub sharing: String = "mps".into(), in OneOf(&["mps", "mig"]);
        /// Nodes of 16 cores and 7 slices
        pub nodes: u16 = 16, in 1..=1024;
        /// Warm containers of each function on each node at the beginning [default: 3, of a list 0]
        pub prewarmed: Option<u16>, in 0..=1000;
        /// How long an idle container is kept warm, s
        pub keep_s: f64 = 600.0, in 0.0..=1e12;
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
    /// Calls that are not drawn, in parts, each from 0 on.
    pub parts: Option<Vec<Vec<Call>>>,
}

/// Target of a recorded call over its own run time. *Assumed.*
const RECORDED_SLO: f64 = 2.0;

impl CallsSettings {
    /// The machines.
    pub(super) fn platform(&self) -> Platform {
        let defaults = Platform::default();
        let prewarmed = match self.requests {
            Some(_) => 0,
            None => defaults.prewarmed,
        };
        Platform {
            nodes: self.nodes,
            prewarmed: self.prewarmed.unwrap_or(prewarmed),
            keep_us: (1e6 * self.keep_s) as u64,
            late: match self.late.as_str() {
                "expire" => Late::Expire,
                "shed" => Late::Shed,
                _ => Late::Serve,
            },
            sharing: if self.sharing == "mig" {
                Sharing::Mig
            } else {
                Sharing::Mps
            },
            ..defaults
        }
    }

    /// What is played of drawn requests, at so many times the load.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn setup(&self, load: f64) -> Result<Setup, Error> {
        self.setup_of(None, load)
    }

    /// The same of a given list, so many times as fast.
    pub(super) fn setup_of(&self, given: Option<&Calls>, load: f64) -> Result<Setup, Error> {
        let mut arrivals = Arrivals::of_setting(&self.setting, &self.surface, self.num_requests)?;
        arrivals.load = self.load * load;
        let default_slo = given.map_or(arrivals.slo, |_| RECORDED_SLO);
        arrivals.slo = self.slo.unwrap_or(default_slo);
        Ok(Setup {
            work: given.map_or_else(|| surface::work(&self.surface), Calls::work)?,
            platform: self.platform(),
            parts: given.map(|list| self.parts(list, arrivals.load)).transpose()?,
            arrivals,
        })
    }

    /// A list so many times as fast, in parts.
    fn parts(&self, list: &Calls, faster: f64) -> Result<Vec<Vec<Call>>, Error> {
        let mut parts = list.parts(self.lists.into(), Seed(0).child("calls", 0));
        if let Some(empty) = parts.iter().position(Vec::is_empty) {
            let value = format!("{}: part {empty} has no call", self.lists);
            let hint = "Give fewer lists.";
            return Err(Error::config("lists", value, "parts with a call each", hint));
        }
        for call in parts.iter_mut().flatten() {
            call.at_us = (call.at_us as f64 / faster) as u64;
        }
        Ok(parts)
    }
}

impl Setup {
    /// A dispatcher by name.
    ///
    /// # Errors
    /// A name that is not there.
    pub fn dispatcher(&self, name: &str) -> Result<Box<dyn Dispatcher>, Error> {
        Ok(by_name(name, &self.work, &self.platform, self.arrivals.slo)?)
    }

    /// Plays the list of a seed, or a part of a given one.
    ///
    /// # Errors
    /// A run that fails.
    pub fn play(&self, dispatcher: &mut dyn Dispatcher, seed: Seed, part: usize) -> Result<Outcome, Error> {
        let (work, platform, arrivals) = (&self.work, &self.platform, &self.arrivals);
        Ok(match &self.parts {
            None => simulate(work, platform, arrivals, dispatcher, seed)?,
            Some(parts) => replay(work, platform, (&parts[part], arrivals.slo), dispatcher)?,
        })
    }
}
