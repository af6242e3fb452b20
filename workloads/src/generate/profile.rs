//! A profile: everything that is known of a site's jobs and machines, as a file. Eight come with the crate, in the folder `profiles`; a
//! site writes its own in the same form.
//!
//! Refused: a key that no profile has, tables of other lengths, levels that do not rise, a model of no plan.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, LazyLock, OnceLock};

use pleach_scheduler::physics::links::Fabric;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::mix::Lengths;
use super::outcomes::{Ends, EndsByLevel};
use super::profile_config::ProfileConfig;
use super::quantiles::Curve;
use super::site::Machines;
use crate::Error;
use crate::plans::Model;

/// Profiles of the crate by name, with their texts.
pub(super) const PROFILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/profiles.rs"));
/// Longest file, bytes.
const BYTES_MAX: u64 = 1 << 20;

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

impl Profile {
    /// The profile of a name of this crate, or of a file that ends in `.toml`; none where it is neither.
    ///
    /// # Errors
    /// A file that cannot be read or is no profile.
    pub fn named(name: &str) -> Result<Option<Arc<Profile>>, Error> {
        static READ: LazyLock<Vec<OnceLock<Arc<Profile>>>> =
            LazyLock::new(|| PROFILES.iter().map(|_| OnceLock::new()).collect());
        if let Some(at) = PROFILES.iter().position(|(known, _)| *known == name) {
            let read = || Profile::of_text(name, PROFILES[at].1).map(Arc::new);
            let profile = READ[at].get_or_init(|| read().unwrap_or_else(|fault| panic!("{fault}")));
            return Ok(Some(profile.clone()));
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|extension| extension != "toml") || !path.is_file() {
            return Ok(None);
        }
        let text = read(path).map_err(Error::unread(path))?;
        Ok(Some(Arc::new(Profile::of_text(name, &text)?)))
    }

    /// Whether a file looks like a profile, be it right or not.
    #[must_use]
    pub fn is_file(path: &Path) -> bool {
        let is_toml = path.extension().is_some_and(|extension| extension == "toml");
        let text = is_toml.then(|| read(path).ok()).flatten().unwrap_or_default();
        text.lines().any(|line| line.trim() == "[[works]]")
    }

    /// A profile from the text of a file.
    ///
    /// # Errors
    /// `file` with everything that is wrong in it.
    pub fn of_text(file: &str, text: &str) -> Result<Profile, Error> {
        let see = "see docs/workloads.md, A profile of your own";
        let refused = |fault: String| Error::data(file, format!("{fault}; {see}"));
        let mut profile: Profile = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            Error::at_byte(file, text, start, format!("{}; {see}", error.message()))
        })?;
        file.clone_into(&mut profile.name);
        let faults = profile.faults();
        if !faults.is_empty() {
            return Err(refused(faults.join("; ")));
        }
        let defaults = ProfileConfig::of(Arc::new(profile.clone()), &Map::new());
        let checked = defaults.and_then(|config| config.validate().map_err(|error| error.to_string()));
        checked.map_err(|fault| refused(format!("defaults: {fault}")))?;
        Ok(profile)
    }

    /// Everything that is wrong, a few words each.
    fn faults(&self) -> Vec<String> {
        let columns = match self.tenants.jobs_up_to.len() {
            0 => self.works.len(),
            bounds => bounds + 1,
        };
        let all = |numbers: &[f64], from: f64, to: f64| numbers.iter().all(|n| (from..=to).contains(n));
        let shares = |rows: &[(f64, f64)]| {
            rows.iter()
                .all(|(a, b)| all(&[*a], 0.0, 1.0) && all(&[*b], 0.0, 1e9))
        };
        let fleets = self
            .gpus
            .values()
            .map(|fleet| &fleet.machines)
            .chain([&self.machines]);
        let machines: Vec<&Machines> = fleets.flatten().collect();
        let tenants = &self.tenants.rows;
        let long = |long: &Long| {
            let num = long.levels.len();
            let is_short =
                |row: &Row<Vec<f64>>| row.of.len() + num == long.seconds.len() && is_rising(&row.of);
            is_quantiles(&long.seconds)
                && is_rising(&long.levels)
                && long.short.iter().all(is_short)
                && !long.short.is_empty()
        };
        let plans = |plan: &Plan| Model::from_name(&plan.plan).is_ok() && plan.batch != Some(0);
        let odds = |odds: &Odds| {
            all(
                &[odds.failed.0, odds.failed.1, odds.cancelled.0, odds.cancelled.1],
                0.0,
                1e6,
            )
        };
        let set = |sets: &Constraints| sets.share > 0.0 && sets.sets.iter().all(|set| !set.types.is_empty());
        let mut faults = Vec::new();
        for (is_right, key, allowed) in [
            (
                !self.works.is_empty() && self.works.len() <= 1000,
                "works",
                "1 to 1,000",
            ),
            (self.pod_nodes != Some(0), "pod_nodes", "1 or more"),
            (
                all(self.store_gb_s.as_slice(), 0.001, 1e6),
                "store_gb_s",
                "0.001 to 1e6",
            ),
            (
                all(&[self.arrivals.sigma], 0.0, 10.0),
                "arrivals.sigma",
                "0 to 10",
            ),
            (
                all(&[self.arrivals.correlation], 0.0, 0.999),
                "arrivals.correlation",
                "0 to 0.999",
            ),
            (
                all(&self.arrivals.hours, 0.001, 100.0),
                "arrivals.hours",
                "0.001 to 100",
            ),
            (
                all(&self.arrivals.weekdays, 0.001, 100.0),
                "arrivals.weekdays",
                "0.001 to 100",
            ),
            (self.runs.users <= 1_000_000, "runs.users", "at most 1,000,000"),
            (
                all(&[self.runs.user_exponent], 0.0, 100.0),
                "runs.user_exponent",
                "0 to 100",
            ),
            (
                all(&[self.runs.run_time_correlation], 0.0, 0.999),
                "runs.run_time_correlation",
                "0 to 0.999",
            ),
            (self.runs.length_max != Some(0), "runs.length_max", "1 or more"),
            (
                shares(&self.runs.gaps_s),
                "runs.gaps_s",
                "shares from 0 to 1, and seconds",
            ),
            (tenants.len() <= 1000, "tenants.rows", "at most 1,000"),
            (
                tenants.iter().all(|row| row.jobs.len() == columns),
                "tenants.rows.jobs",
                "a number for each column",
            ),
            (
                tenants.iter().all(|row| all(&row.jobs, 0.0, 1e12)),
                "tenants.rows.jobs",
                "0 to 1e12",
            ),
            (
                tenants.iter().all(|row| all(&[row.quota, row.weight], 0.0, 1e9)),
                "tenants.rows",
                "quotas of 0 to 1e9",
            ),
            (
                tenants.is_empty() || tenants[0].quota > 0.0,
                "tenants.rows.quota",
                "above 0 for the first",
            ),
            (
                self.spot
                    .as_ref()
                    .is_none_or(|spot| all(&[spot.share, spot.long], 0.0, 0.999)),
                "spot",
                "0 to 0.999",
            ),
            (
                self.long.as_ref().is_none_or(long),
                "long",
                "rising levels, with the last at 1 as many as rising seconds",
            ),
            (self.odds.as_ref().is_none_or(odds), "odds", "0 to 1e6"),
            (
                self.constraints.as_ref().is_none_or(set),
                "constraints",
                "a share above 0, and sets of types",
            ),
            (
                self.models.values().all(plans),
                "models",
                "plans of models that are known",
            ),
            (
                machines.iter().all(|row| row.count > 0 && row.gpus_per_node > 0),
                "machines",
                "nodes with GPUs",
            ),
            (
                self.ends_by_run_time.as_ref().is_none_or(EndsByLevel::is_right),
                "ends_by_run_time",
                "shares above 0, rising levels",
            ),
        ] {
            if !is_right {
                faults.push(format!("{key}: allowed is {allowed}"));
            }
        }
        self.works
            .iter()
            .for_each(|work| self.faults_of(work, &mut faults));
        faults
    }

    fn faults_of(&self, work: &Work, faults: &mut Vec<String>) {
        let demand = |row: &Demand| {
            let shares = [
                row.long * work.long_times.max(1.0),
                f64::from(row.gpu_milli) / 1000.0,
            ];
            let asked = [row.jobs, row.cpu_cores, row.memory_gib];
            (1..=1 << 20).contains(&row.gpus)
                && shares.iter().all(|share| (0.0..=1.0).contains(share))
                && row.gpu_milli > 0
                && asked.iter().all(|asked| (0.0..=1e12).contains(asked))
        };
        let ends = |row: &Row<Ends>| match row.of {
            Ends::Shares { killed, failed } => killed >= 0.0 && failed >= 0.0 && killed + failed <= 1.0,
            Ends::Leaning(shares) => {
                shares.iter().all(|share| *share >= 0.0) && self.ends_by_run_time.is_some()
            }
        };
        let cores =
            |row: &Row<Vec<(f64, f64)>>| row.of.iter().all(|(cores, share)| *cores >= 0.0 && *share > 0.0);
        for (is_right, key, allowed) in [
            (
                !work.mix.is_empty() && work.mix.iter().all(demand),
                "mix",
                "GPUs, jobs, and shares of at most 1",
            ),
            (
                work.run_times.is_empty() == self.long.is_some(),
                "run_times",
                "run times, or long ones",
            ),
            (
                work.run_times.iter().all(|row| row.of.is_right()),
                "run_times",
                "rising levels from 0 to 1, as many as rising seconds",
            ),
            (is_by_gang(&work.run_times), "run_times.up_to", "rising gangs"),
            (
                is_by_gang(&work.ends) && work.ends.iter().all(ends),
                "ends",
                "shares of at most 1",
            ),
            (
                is_by_gang(&work.runs) && work.runs.iter().all(|row| row.of.is_right()),
                "runs",
                "a mean above 1, or rising shares",
            ),
            (
                is_by_gang(&work.cpu_cores) && work.cpu_cores.iter().all(cores),
                "cpu_cores",
                "cores, and shares above 0",
            ),
            (
                is_by_gang(&work.models) && work.models.iter().all(|row| !row.of.is_empty()),
                "models",
                "names",
            ),
        ] {
            if !is_right {
                faults.push(format!("works.{}.{key}: allowed is {allowed}", work.name));
            }
        }
    }
}

/// The text of a file that is no longer than a profile may be.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if read as u64 > BYTES_MAX {
        return Err(io::Error::other("longer than 1 MiB"));
    }
    Ok(text)
}

fn is_by_gang<T>(rows: &[Row<T>]) -> bool {
    rows.windows(2).all(|pair| pair[0].up_to < pair[1].up_to)
}

/// Whether levels rise.
pub(super) fn is_rising(levels: &[f64]) -> bool {
    !levels.is_empty()
        && levels.iter().all(|level| (0.0..=1.0).contains(level))
        && levels.windows(2).all(|pair| pair[0] < pair[1])
}

/// Whether quantiles are run times that never fall.
pub(super) fn is_quantiles(seconds: &[f64]) -> bool {
    let is_time = |time: &f64| (crate::RUN_TIME_S_MIN..=crate::RUN_TIME_S_MAX).contains(time);
    seconds.iter().all(is_time) && seconds.windows(2).all(|pair| pair[0] <= pair[1])
}

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
