//! The generators of papers' experiments, and those of a program of one's own: what they are called, their size, their checks.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    GavelConfig, OwnConfig, PolluxConfig, SiaConfig, SynergyConfig, gavel, own, pollux, sia, synergy,
};
use crate::Error;
use crate::Workload;
use crate::seed::Seed;

/// A paper's generator and its parameters; every parameter has a default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "preset", rename_all = "kebab-case")]
pub enum Paper {
    /// Gavel's mix of measured models on three GPU types, gangs of 1, 2, 4 and 8.
    GavelMulti(GavelConfig),
    /// Gavel's mix with single GPUs only.
    GavelSingle(GavelConfig),
    /// Synergy's mix of image, speech and language models with CPU and memory requests, Philly's gangs.
    SynergyMulti(SynergyConfig),
    /// Synergy's mix with single GPUs only.
    SynergySingle(SynergyConfig),
    /// 160 jobs in 8 h on 64 GPUs of three types, by GPU-hours as sampled from Philly.
    SiaPhilly(SiaConfig),
    /// The same as sampled from Helios.
    SiaHelios(SiaConfig),
    /// 960 jobs in 48 h, by GPU-hours as sampled from ITP.
    SiaNewtrace(SiaConfig),
    /// 160 elastic jobs in 8 h on 64 T4: Pollux's applications.
    Pollux(PolluxConfig),
    /// A generator that the program has beside these.
    Own(OwnConfig),
}

/// Name, what it is, and the links of its cluster: Synergy's V100 nodes are on InfiniBand, its speed *assumed*; Gavel's are those that
/// its spread gangs show.
pub(super) const PAPERS: [(&str, &str, Option<&str>); 8] = [
    (
        "gavel-multi",
        "Gavel's mix of measured models on three GPU types, gangs of 1, 2, 4 and 8",
        Some("gavel"),
    ),
    ("gavel-single", "Gavel's mix with single GPUs only", Some("gavel")),
    (
        "synergy-multi",
        "Synergy's mix of image, speech and language models with CPU and memory requests, Philly's gangs",
        Some("v100-edr"),
    ),
    (
        "synergy-single",
        "Synergy's mix with single GPUs only",
        Some("v100-edr"),
    ),
    (
        "sia-philly",
        "160 jobs in 8 h on 64 GPUs of three types, by GPU-hours as sampled from Philly",
        None,
    ),
    (
        "sia-helios",
        "160 jobs in 8 h on 64 GPUs of three types, by GPU-hours as sampled from Helios",
        None,
    ),
    (
        "sia-newtrace",
        "960 jobs in 48 h on 64 GPUs of three types, by GPU-hours as sampled from ITP",
        None,
    ),
    (
        "pollux",
        "160 elastic jobs in 8 h on 64 T4: Pollux's applications, which run on any number of GPUs",
        None,
    ),
];

impl Paper {
    /// The generator of a name with its defaults.
    pub(super) fn named(name: &str) -> Option<Paper> {
        if let Some(own) = own::find(name) {
            return Some(Paper::Own((own.defaults)()));
        }
        let is_known = PAPERS.iter().any(|(known, ..)| *known == name);
        is_known
            .then(|| serde_json::from_value(json!({ "preset": name })).ok())
            .flatten()
    }

    /// Its row of [`PAPERS`].
    fn place(&self) -> usize {
        match self {
            Paper::GavelMulti(_) => 0,
            Paper::GavelSingle(_) => 1,
            Paper::SynergyMulti(_) => 2,
            Paper::SynergySingle(_) => 3,
            Paper::SiaPhilly(_) => 4,
            Paper::SiaHelios(_) => 5,
            Paper::SiaNewtrace(_) => 6,
            Paper::Pollux(_) => 7,
            Paper::Own(_) => PAPERS.len(),
        }
    }

    /// Name, what it is, and links.
    pub(super) fn facts(&self) -> (&'static str, &'static str, Option<&'static str>) {
        match self {
            Paper::Own(config) => config
                .generator()
                .map_or(("own", "", None), |own| (own.name, own.describe, None)),
            other => PAPERS[other.place()],
        }
    }

    /// The experiment of one of Sia's.
    fn experiment(&self) -> &'static sia::Experiment {
        [&sia::PHILLY, &sia::HELIOS, &sia::NEWTRACE][self.place().clamp(4, 6) - 4]
    }

    /// Sets jobs, load or both, and says what they are then. With a load arrivals go by it even where there is a rate.
    pub(super) fn resize(&mut self, num_jobs: Option<usize>, load: Option<f64>) -> (usize, f64) {
        let experiment = self.experiment();
        let mut no_rate = None;
        let mut of_sia = experiment.num_jobs;
        let (jobs, own_load, rate) = match self {
            Paper::GavelMulti(own) | Paper::GavelSingle(own) => {
                (&mut own.num_jobs, &mut own.load, &mut own.jobs_per_hour)
            }
            Paper::SynergyMulti(own) | Paper::SynergySingle(own) => {
                (&mut own.num_jobs, &mut own.load, &mut own.jobs_per_hour)
            }
            Paper::SiaPhilly(own) | Paper::SiaHelios(own) | Paper::SiaNewtrace(own) => {
                own.num_jobs = num_jobs.or(own.num_jobs);
                of_sia = own.num_jobs.unwrap_or(of_sia);
                (&mut of_sia, &mut own.load, &mut own.jobs_per_hour)
            }
            Paper::Pollux(own) => (&mut own.num_jobs, &mut own.load, &mut own.jobs_per_hour),
            Paper::Own(own) => (&mut own.num_jobs, &mut own.load, &mut no_rate),
        };
        *jobs = num_jobs.unwrap_or(*jobs);
        if let Some(load) = load {
            (*own_load, *rate) = (load, None);
        }
        (*jobs, *own_load)
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        match self {
            Paper::GavelMulti(own) | Paper::GavelSingle(own) => own.validate(),
            Paper::SynergyMulti(own) | Paper::SynergySingle(own) => own.validate(),
            Paper::SiaPhilly(own) | Paper::SiaHelios(own) | Paper::SiaNewtrace(own) => own.validate(),
            Paper::Pollux(own) => own.validate(),
            Paper::Own(own) => own.validate(),
        }
    }

    pub(super) fn generate(&self, seed: Seed) -> Result<Workload, Error> {
        match self {
            Paper::GavelMulti(own) => gavel::generate(own, gavel::MULTI, seed),
            Paper::GavelSingle(own) => gavel::generate(own, gavel::SINGLE, seed),
            Paper::SynergyMulti(own) => synergy::generate(own, false, seed),
            Paper::SynergySingle(own) => synergy::generate(own, true, seed),
            Paper::SiaPhilly(own) | Paper::SiaHelios(own) | Paper::SiaNewtrace(own) => {
                sia::generate(own, self.experiment(), seed)
            }
            Paper::Pollux(own) => pollux::generate(own, seed),
            Paper::Own(own) => own.generate(seed),
        }
    }
}
