//! The presets by name: one variant each, its numbers of jobs and load, its checks.

use pleach_scheduler::heuristics::nearest_of;
use serde::{Deserialize, Serialize};

use super::{
    AcmeLikeConfig, AlibabaConfig, GavelConfig, HeliosLikeConfig, ItpLikeConfig, LlmSiteConfig,
    OpenbLikeConfig, OwnConfig, OwnGenerator, PaiShareConfig, PhillyLikeConfig, PolluxConfig, SiaConfig,
    SynergyConfig, own, sia,
};
use crate::Error;
use crate::config;

/// A preset and its parameters; every parameter has a default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "preset", rename_all = "kebab-case")]
pub enum GeneratorConfig {
    /// One cluster of equal GPUs, jobs as on Microsoft's Philly: heavy-tailed, bursty, mostly one GPU, several tenants.
    PhillyLike(PhillyLikeConfig),
    /// Jobs as on SenseTime's Helios: many gangs of eight and more, short medians, virtual clusters, CPU threads.
    HeliosLike(HeliosLikeConfig),
    /// Jobs as on Microsoft's internal training clusters: hours long, mostly one GPU.
    ItpLike(ItpLikeConfig),
    /// Many small tasks on shares of a GPU, as on Alibaba's PAI in 2020, on five GPU types.
    PaiShare(PaiShareConfig),
    /// Pods with shares of a GPU, CPU, memory and GPU-type constraints, as on Alibaba's cluster of 2023.
    OpenbLike(OpenbLikeConfig),
    /// Language-model development as on Acme: evaluation is most of the jobs, pre-training most of the GPU time.
    AcmeLike(AcmeLikeConfig),
    /// A site of today: Acme's mix of work with models, plans, memory and links, on A100, H100 or both.
    LlmSite(LlmSiteConfig),
    /// Guaranteed and spot jobs of many organisations on six GPU types, as on Alibaba's cluster of 2025 and 2026.
    #[serde(rename = "alibaba-2026")]
    Alibaba2026(AlibabaConfig),
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
    /// 160 jobs in 8 h on 64 GPUs of three types, by GPU-hours as sampled from Helios.
    SiaHelios(SiaConfig),
    /// 960 jobs in 48 h on 64 GPUs of three types, by GPU-hours as sampled from ITP.
    SiaNewtrace(SiaConfig),
    /// 160 elastic jobs in 8 h on 64 T4: Pollux's applications, which run on any number of GPUs.
    Pollux(PolluxConfig),
    /// A generator that the program has beside these.
    Own(OwnConfig),
}

impl Default for GeneratorConfig {
    fn default() -> GeneratorConfig {
        GeneratorConfig::PhillyLike(PhillyLikeConfig::default())
    }
}

impl GeneratorConfig {
    /// Names of the presets.
    pub const PRESETS: [&'static str; 16] = [
        "philly-like",
        "helios-like",
        "itp-like",
        "pai-share",
        "openb-like",
        "acme-like",
        "llm-site",
        "alibaba-2026",
        "gavel-multi",
        "gavel-single",
        "synergy-multi",
        "synergy-single",
        "sia-philly",
        "sia-helios",
        "sia-newtrace",
        "pollux",
    ];

    /// Names of the presets, and of the generators that the program has beside them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        GeneratorConfig::PRESETS
            .into_iter()
            .chain(own::own().iter().map(|own| own.name))
    }

    /// A preset with its defaults.
    ///
    /// # Errors
    /// A name that is no preset.
    pub fn preset(name: &str) -> Result<GeneratorConfig, Error> {
        Ok(match name {
            "philly-like" => GeneratorConfig::PhillyLike(PhillyLikeConfig::default()),
            "helios-like" => GeneratorConfig::HeliosLike(HeliosLikeConfig::default()),
            "itp-like" => GeneratorConfig::ItpLike(ItpLikeConfig::default()),
            "pai-share" => GeneratorConfig::PaiShare(PaiShareConfig::default()),
            "openb-like" => GeneratorConfig::OpenbLike(OpenbLikeConfig::default()),
            "acme-like" => GeneratorConfig::AcmeLike(AcmeLikeConfig::default()),
            "llm-site" => GeneratorConfig::LlmSite(LlmSiteConfig::default()),
            "alibaba-2026" => GeneratorConfig::Alibaba2026(AlibabaConfig::default()),
            "gavel-multi" => GeneratorConfig::GavelMulti(GavelConfig::default()),
            "gavel-single" => GeneratorConfig::GavelSingle(GavelConfig::default()),
            "synergy-multi" => GeneratorConfig::SynergyMulti(SynergyConfig::default()),
            "synergy-single" => GeneratorConfig::SynergySingle(SynergyConfig::default()),
            "sia-philly" => GeneratorConfig::SiaPhilly(SiaConfig::default()),
            "sia-helios" => GeneratorConfig::SiaHelios(SiaConfig::default()),
            "sia-newtrace" => GeneratorConfig::SiaNewtrace(SiaConfig::default()),
            "pollux" => GeneratorConfig::Pollux(PolluxConfig::default()),
            _ => {
                if let Some(own) = own::find(name) {
                    return Ok(GeneratorConfig::Own((own.defaults)()));
                }
                let known: Vec<&str> = GeneratorConfig::names().collect();
                let allowed = format!("one of {}", known.join(", "));
                let nearest = nearest_of(&known, name).unwrap_or_default();
                let hint = format!("did you mean {nearest}?");
                return Err(config("preset", name, &allowed, &hint));
            }
        })
    }

    /// Name of the preset.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            GeneratorConfig::PhillyLike(_) => "philly-like",
            GeneratorConfig::HeliosLike(_) => "helios-like",
            GeneratorConfig::ItpLike(_) => "itp-like",
            GeneratorConfig::PaiShare(_) => "pai-share",
            GeneratorConfig::OpenbLike(_) => "openb-like",
            GeneratorConfig::AcmeLike(_) => "acme-like",
            GeneratorConfig::LlmSite(_) => "llm-site",
            GeneratorConfig::Alibaba2026(_) => "alibaba-2026",
            GeneratorConfig::GavelMulti(_) => "gavel-multi",
            GeneratorConfig::GavelSingle(_) => "gavel-single",
            GeneratorConfig::SynergyMulti(_) => "synergy-multi",
            GeneratorConfig::SynergySingle(_) => "synergy-single",
            GeneratorConfig::SiaPhilly(_) => "sia-philly",
            GeneratorConfig::SiaHelios(_) => "sia-helios",
            GeneratorConfig::SiaNewtrace(_) => "sia-newtrace",
            GeneratorConfig::Pollux(_) => "pollux",
            GeneratorConfig::Own(config) => config.generator().map_or("own", |own| own.name),
        }
    }

    /// The preset of links that stands for those of the site whose jobs these are; none where those that its GPUs usually come with
    /// do, or where the cluster has links of its own.
    ///
    /// # Source
    /// Philly: its study (ATC'19). Acme: NSDI'24. Helios, ITP and Synergy: V100 nodes on InfiniBand, its speed *assumed*. PAI and its
    /// successor of 2023: mixed small GPUs on Ethernet, its speed *assumed*. Gavel: the links that its spread gangs show.
    pub(super) fn site_fabric(&self) -> Option<&'static str> {
        match self {
            GeneratorConfig::PhillyLike(_) => Some("philly"),
            GeneratorConfig::HeliosLike(_)
            | GeneratorConfig::ItpLike(_)
            | GeneratorConfig::SynergyMulti(_)
            | GeneratorConfig::SynergySingle(_) => Some("v100-edr"),
            GeneratorConfig::PaiShare(_) | GeneratorConfig::OpenbLike(_) => Some("ethernet-25"),
            GeneratorConfig::AcmeLike(_) => Some("acme-seren"),
            GeneratorConfig::GavelMulti(_) | GeneratorConfig::GavelSingle(_) => Some("gavel"),
            GeneratorConfig::LlmSite(_)
            | GeneratorConfig::Alibaba2026(_)
            | GeneratorConfig::SiaPhilly(_)
            | GeneratorConfig::SiaHelios(_)
            | GeneratorConfig::SiaNewtrace(_)
            | GeneratorConfig::Pollux(_)
            | GeneratorConfig::Own(_) => None,
        }
    }

    /// What the preset is, one line.
    #[must_use]
    pub fn describe(&self) -> &'static str {
        match self {
            GeneratorConfig::PhillyLike(_) => {
                "one cluster of equal GPUs, jobs as on Microsoft's Philly: heavy-tailed, bursty, mostly one GPU, several tenants"
            }
            GeneratorConfig::HeliosLike(_) => {
                "jobs as on SenseTime's Helios: many gangs of eight and more, short medians, virtual clusters, CPU threads"
            }
            GeneratorConfig::ItpLike(_) => {
                "jobs as on Microsoft's internal training clusters: hours long, mostly one GPU"
            }
            GeneratorConfig::PaiShare(_) => {
                "many small tasks on shares of a GPU, as on Alibaba's PAI in 2020, on five GPU types"
            }
            GeneratorConfig::OpenbLike(_) => {
                "pods with shares of a GPU, CPU, memory and GPU-type constraints, as on Alibaba's cluster of 2023"
            }
            GeneratorConfig::AcmeLike(_) => {
                "language-model development as on Acme: evaluation is most of the jobs, pre-training most of the GPU time"
            }
            GeneratorConfig::LlmSite(_) => {
                "a site of today: Acme's mix of work with models, plans, memory and links, on A100, H100 or both"
            }
            GeneratorConfig::Alibaba2026(_) => {
                "guaranteed and spot jobs of many organisations on six GPU types, as on Alibaba's cluster of 2025 and 2026"
            }
            GeneratorConfig::GavelMulti(_) => {
                "Gavel's mix of measured models on three GPU types, gangs of 1, 2, 4 and 8"
            }
            GeneratorConfig::GavelSingle(_) => "Gavel's mix with single GPUs only",
            GeneratorConfig::SynergyMulti(_) => {
                "Synergy's mix of image, speech and language models with CPU and memory requests, Philly's gangs"
            }
            GeneratorConfig::SynergySingle(_) => "Synergy's mix with single GPUs only",
            GeneratorConfig::SiaPhilly(_) => {
                "160 jobs in 8 h on 64 GPUs of three types, by GPU-hours as sampled from Philly"
            }
            GeneratorConfig::SiaHelios(_) => {
                "160 jobs in 8 h on 64 GPUs of three types, by GPU-hours as sampled from Helios"
            }
            GeneratorConfig::SiaNewtrace(_) => {
                "960 jobs in 48 h on 64 GPUs of three types, by GPU-hours as sampled from ITP"
            }
            GeneratorConfig::Pollux(_) => {
                "160 elastic jobs in 8 h on 64 T4: Pollux's applications, which run on any number of GPUs"
            }
            GeneratorConfig::Own(config) => config.generator().map_or("", |own| own.describe),
        }
    }

    /// Jobs and load.
    #[must_use]
    pub fn size(&self) -> (usize, f64) {
        match self {
            GeneratorConfig::PhillyLike(config) => (config.num_jobs, config.load),
            GeneratorConfig::HeliosLike(config) => (config.num_jobs, config.load),
            GeneratorConfig::ItpLike(config) => (config.num_jobs, config.load),
            GeneratorConfig::PaiShare(config) => (config.num_jobs, config.load),
            GeneratorConfig::OpenbLike(config) => (config.num_jobs, config.load),
            GeneratorConfig::AcmeLike(config) => (config.num_jobs, config.load),
            GeneratorConfig::LlmSite(config) => (config.num_jobs, config.load),
            GeneratorConfig::Alibaba2026(config) => (config.num_jobs, config.load),
            GeneratorConfig::GavelMulti(config) | GeneratorConfig::GavelSingle(config) => {
                (config.num_jobs, config.load)
            }
            GeneratorConfig::SynergyMulti(config) | GeneratorConfig::SynergySingle(config) => {
                (config.num_jobs, config.load)
            }
            GeneratorConfig::SiaPhilly(config) => {
                (config.num_jobs.unwrap_or(sia::PHILLY.num_jobs), config.load)
            }
            GeneratorConfig::SiaHelios(config) => {
                (config.num_jobs.unwrap_or(sia::HELIOS.num_jobs), config.load)
            }
            GeneratorConfig::SiaNewtrace(config) => {
                (config.num_jobs.unwrap_or(sia::NEWTRACE.num_jobs), config.load)
            }
            GeneratorConfig::Pollux(config) => (config.num_jobs, config.load),
            GeneratorConfig::Own(config) => (config.num_jobs, config.load),
        }
    }

    /// The same preset with another number of jobs and another load, by which then the arrivals go.
    #[must_use]
    pub fn with(self, num_jobs: usize, load: f64) -> GeneratorConfig {
        self.resized(Some(num_jobs), Some(load))
    }

    /// The same preset with another number of jobs, another load, or both; a preset with an arrival rate keeps it as long
    /// as no load is given.
    #[must_use]
    pub fn resized(self, num_jobs: Option<usize>, load: Option<f64>) -> GeneratorConfig {
        let config = match num_jobs {
            Some(num_jobs) => self.with_num_jobs(num_jobs),
            None => self,
        };
        match load {
            Some(load) => config.with_load(load),
            None => config,
        }
    }

    fn with_num_jobs(mut self, num_jobs: usize) -> GeneratorConfig {
        match &mut self {
            GeneratorConfig::PhillyLike(config) => config.num_jobs = num_jobs,
            GeneratorConfig::HeliosLike(config) => config.num_jobs = num_jobs,
            GeneratorConfig::ItpLike(config) => config.num_jobs = num_jobs,
            GeneratorConfig::PaiShare(config) => config.num_jobs = num_jobs,
            GeneratorConfig::OpenbLike(config) => config.num_jobs = num_jobs,
            GeneratorConfig::AcmeLike(config) => config.num_jobs = num_jobs,
            GeneratorConfig::LlmSite(config) => config.num_jobs = num_jobs,
            GeneratorConfig::Alibaba2026(config) => config.num_jobs = num_jobs,
            GeneratorConfig::GavelMulti(config) | GeneratorConfig::GavelSingle(config) => {
                config.num_jobs = num_jobs;
            }
            GeneratorConfig::SynergyMulti(config) | GeneratorConfig::SynergySingle(config) => {
                config.num_jobs = num_jobs;
            }
            GeneratorConfig::SiaPhilly(config)
            | GeneratorConfig::SiaHelios(config)
            | GeneratorConfig::SiaNewtrace(config) => config.num_jobs = Some(num_jobs),
            GeneratorConfig::Pollux(config) => config.num_jobs = num_jobs,
            GeneratorConfig::Own(config) => config.num_jobs = num_jobs,
        }
        self
    }

    /// Another load, by which then the arrivals go even where the preset has a rate.
    fn with_load(mut self, load: f64) -> GeneratorConfig {
        match &mut self {
            GeneratorConfig::PhillyLike(config) => config.load = load,
            GeneratorConfig::HeliosLike(config) => config.load = load,
            GeneratorConfig::ItpLike(config) => config.load = load,
            GeneratorConfig::PaiShare(config) => config.load = load,
            GeneratorConfig::OpenbLike(config) => config.load = load,
            GeneratorConfig::AcmeLike(config) => config.load = load,
            GeneratorConfig::LlmSite(config) => config.load = load,
            GeneratorConfig::Alibaba2026(config) => config.load = load,
            GeneratorConfig::GavelMulti(config) | GeneratorConfig::GavelSingle(config) => {
                (config.load, config.jobs_per_hour) = (load, None);
            }
            GeneratorConfig::SynergyMulti(config) | GeneratorConfig::SynergySingle(config) => {
                (config.load, config.jobs_per_hour) = (load, None);
            }
            GeneratorConfig::SiaPhilly(config)
            | GeneratorConfig::SiaHelios(config)
            | GeneratorConfig::SiaNewtrace(config) => (config.load, config.jobs_per_hour) = (load, None),
            GeneratorConfig::Pollux(config) => (config.load, config.jobs_per_hour) = (load, None),
            GeneratorConfig::Own(config) => config.load = load,
        }
        self
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        match self {
            GeneratorConfig::PhillyLike(config) => config.validate(),
            GeneratorConfig::HeliosLike(config) => config.validate(),
            GeneratorConfig::ItpLike(config) => config.validate(),
            GeneratorConfig::PaiShare(config) => config.validate(),
            GeneratorConfig::OpenbLike(config) => config.validate(),
            GeneratorConfig::AcmeLike(config) => config.validate(),
            GeneratorConfig::LlmSite(config) => config.validate(),
            GeneratorConfig::Alibaba2026(config) => config.validate(),
            GeneratorConfig::GavelMulti(config) | GeneratorConfig::GavelSingle(config) => config.validate(),
            GeneratorConfig::SynergyMulti(config) | GeneratorConfig::SynergySingle(config) => {
                config.validate()
            }
            GeneratorConfig::SiaPhilly(config)
            | GeneratorConfig::SiaHelios(config)
            | GeneratorConfig::SiaNewtrace(config) => config.validate(),
            GeneratorConfig::Pollux(config) => config.validate(),
            GeneratorConfig::Own(config) => config.validate(),
        }
    }
}

/// Says which generators a program has; once, before anything is read.
///
/// # Errors
/// A name that is taken; a second call.
pub fn register(generators: Vec<OwnGenerator>) -> Result<(), Error> {
    for (place, one) in generators.iter().enumerate() {
        let is_taken = GeneratorConfig::PRESETS.contains(&one.name)
            || generators[..place].iter().any(|other| other.name == one.name);
        if is_taken || one.name.is_empty() || one.name.contains([',', '/', '.']) {
            let allowed = "a name without commas, dots and slashes that nothing else has";
            return Err(config("generator", one.name, allowed, "give it another name"));
        }
    }
    if own::keep(generators) {
        return Ok(());
    }
    let hint = "name all of them in one call";
    Err(config("generator", "registered again", "once in a program", hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_name_is_refused_and_so_is_one_that_this_program_does_not_have() {
        let own = |name| OwnGenerator {
            name,
            describe: "",
            defaults: || OwnConfig::new("mine"),
            make: |_, _| Err(config("x", "x", "x", "x")),
        };
        for names in [vec!["pollux"], vec!["a", "a"], vec!["a.csv"]] {
            let said = register(names.iter().map(|name| own(name)).collect()).unwrap_err();
            assert!(
                said.to_string().contains("that nothing else has"),
                "{names:?}: {said}"
            );
        }
        let text = "preset = 'own'\nname = 'mine'\nnum_jobs = 7\n[settings]\nburst = 3.0";
        let parsed: GeneratorConfig = toml::from_str(text).unwrap();
        assert_eq!(parsed.size(), (7, 0.8));
        let said = parsed.validate().unwrap_err().to_string();
        assert!(
            said.contains("generator.name = mine") && said.contains("no generators of its own"),
            "{said}"
        );
    }
}
