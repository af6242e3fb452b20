//! The settings of a profile: which there are, what they mean and in which range, in one table; which of them a profile has, and their
//! defaults, its file says.

use std::ops::RangeInclusive;
use std::sync::Arc;

use pleach_scheduler::cluster_spec::LocalityFactors;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::profile::Profile;
use super::require::require;
use super::site::require_locality;
use crate::Error;
use crate::{NUM_JOBS_MAX, RUN_TIME_S_MAX};

macro_rules! settings {
    ($($(#[$about:meta])* $key:ident: $type:ty = $neutral:expr, $is_right:expr, $allowed:literal;)*) => {
        /// A profile and its settings. What the profile has no default for is neutral, and stays so.
        #[derive(Clone, Debug, PartialEq)]
        pub struct ProfileConfig {
            /// The profile.
            pub profile: Arc<Profile>,
            $($(#[$about])* pub $key: $type,)*
        }

        impl ProfileConfig {
            /// A profile with these settings beside its defaults.
            ///
            /// # Errors
            /// A setting that it does not have, or a value of another kind.
            pub(super) fn of(profile: Arc<Profile>, keys: &Map<String, Value>) -> Result<ProfileConfig, String> {
                if let Some(key) = keys.keys().find(|key| !profile.defaults.contains_key(*key)) {
                    return Err(unknown(key, &profile));
                }
                let mut config = ProfileConfig { profile: profile.clone(), $($key: $neutral,)* };
                for (key, value) in profile.defaults.iter().chain(keys) {
                    let value = value.clone();
                    match key.as_str() {
                        $(stringify!($key) => config.$key = serde_json::from_value(value).map_err(|error| format!("{key}: {error}"))?,)*
                        _ => return Err(unknown(key, &profile)),
                    }
                }
                if !keys.contains_key("gang_max") {
                    config.gang_max = config.gang_max.filter(|gang| *gang > 0);
                }
                Ok(config)
            }

            fn validate_ranges(&self) -> Result<(), Error> {
                $(
                    let is_right: fn(&$type) -> bool = $is_right;
                    let value = format!("{:?}", self.$key).replace("Some(", "").replace(')', "");
                    require(stringify!($key), value, is_right(&self.$key), $allowed)?;
                )*
                Ok(())
            }
        }

        impl Serialize for ProfileConfig {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let keys = &self.profile.defaults;
                let mut out = to.serialize_struct("GeneratorConfig", 1 + keys.len())?;
                out.serialize_field("preset", &self.profile.name)?;
                $(if keys.contains_key(stringify!($key)) {
                    out.serialize_field(stringify!($key), &self.$key)?;
                })*
                out.end()
            }
        }
    };
}

/// Ranges.
const LOADS: RangeInclusive<f64> = 0.001..=100.0;

settings! {
    /// Jobs to draw, 1 to 10,000,000.
    num_jobs: usize = 1000, |num| (1..=NUM_JOBS_MAX).contains(num), "1 to 10,000,000";
    /// GPUs of the nodes, where the profile has a choice.
    gpus: String = String::new(), |_| true, "";
    /// Nodes, 1 to 100,000; of several shapes in the proportions of the profile.
    num_nodes: u32 = 1, |num| (1..=100_000).contains(num), "1 to 100,000";
    /// GPUs in each node where all are equal, 1 to 64.
    gpus_per_node: u32 = 8, |num| (1..=64).contains(num), "1 to 64";
    /// Nodes in each rack, 1 or more.
    nodes_per_rack: u32 = 16, |num| *num > 0, "1 or more";
    /// NICs of a pod over its links to the core, 1 to 1000.
    pod_oversubscription: f64 = 1.0, |over| (1.0..=1000.0).contains(over), "1 to 1000";
    /// Work over capacity between the first and the last arrival, 0.001 to 100; a share of a GPU counts as such.
    load: f64 = 0.8, |load| LOADS.contains(load), "0.001 to 100";
    /// Whether jobs ask for shares of a GPU; false gives each of them a whole one.
    sharing: bool = true, |_| true, "";
    /// Share of jobs that accept some GPU types only, 0 to 1.
    typed_share: f64 = 0.0, |share| (0.0..=1.0).contains(share), "0 to 1";
    /// Tenants, largest first; 0 where the profile has no number of them: all.
    num_tenants: usize = 0, |_| true, "";
    /// Whether tenants may use more than their quota while others leave GPUs idle.
    borrowing: bool = true, |_| true, "";
    /// Largest gang; larger ones are drawn again. The cluster's size where absent.
    gang_max: Option<u32> = None, |gang| *gang != Some(0), "1 or more";
    /// Longest run time, s, at least 60: the distribution is cut there, without a pile-up.
    run_time_s_max: f64 = RUN_TIME_S_MAX, |longest| (60.0..=RUN_TIME_S_MAX).contains(longest), "60 to 1e9";
    /// Longest run of one user's jobs; never more than a tenth of the jobs.
    run_length_max: u32 = u32::MAX, |length| *length > 0, "1 or more";
    /// Whether the arrival rate follows the hour and the weekday.
    daily_profile: bool = true, |_| true, "";
    /// Whether jobs come in runs and the rate wanders; false gives one Poisson arrival per job.
    bursty: bool = true, |_| true, "";
    /// Whether jobs ask for CPU threads; false leaves them out.
    cpu_requests: bool = true, |_| true, "";
    /// Whether jobs carry a time limit.
    user_limits: bool = true, |_| true, "";
    /// Whether some works may run on a quarter to four times the GPUs that they ask for, where a plan fits.
    elastic: bool = false, |_| true, "";
    /// What a loose placement costs; of models with a plan nothing beside what it says.
    locality: LocalityFactors = LocalityFactors::PHILLY, |_| true, "";
}

fn unknown(key: &str, profile: &Profile) -> String {
    let known: Vec<&str> = profile.defaults.keys().map(String::as_str).collect();
    format!("unknown field `{key}`, expected one of `{}`", known.join("`, `"))
}

impl ProfileConfig {
    pub(super) fn validate(&self) -> Result<(), Error> {
        self.validate_ranges()?;
        if self.profile.defaults.contains_key("num_tenants") {
            let (num, most) = (self.num_tenants, self.profile.tenants.rows.len());
            require(
                "num_tenants",
                num,
                (1..=most).contains(&num),
                &format!("1 to {most}"),
            )?;
        }
        if !self.profile.gpus.is_empty() {
            let known: Vec<&str> = self.profile.gpus.keys().map(String::as_str).collect();
            require(
                "gpus",
                &self.gpus,
                known.contains(&self.gpus.as_str()),
                &known.join(", "),
            )?;
        }
        require_locality(self.locality)
    }
}
