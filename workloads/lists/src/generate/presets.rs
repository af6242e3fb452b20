//! The presets by name: profiles, the generators of papers, and those of a program of one's own.

use pleach_scheduler::heuristics::nearest_of;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::paper::{PAPERS, Paper};
use super::profile::Profile;
use super::profile_config::ProfileConfig;
use super::profile_file::PROFILES;
use super::{OwnGenerator, own};
use crate::Error;
use crate::config;

/// A preset and its parameters; every parameter has a default.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum GeneratorConfig {
    /// A site's jobs and machines, of this crate or a file.
    Profile(ProfileConfig),
    /// An experiment of a paper, or a generator of a program's own.
    Paper(Paper),
}

impl Default for GeneratorConfig {
    fn default() -> GeneratorConfig {
        GeneratorConfig::Profile(ProfileConfig::default())
    }
}

impl From<Paper> for GeneratorConfig {
    fn from(paper: Paper) -> GeneratorConfig {
        GeneratorConfig::Paper(paper)
    }
}

impl From<ProfileConfig> for GeneratorConfig {
    fn from(profile: ProfileConfig) -> GeneratorConfig {
        GeneratorConfig::Profile(profile)
    }
}

impl<'de> Deserialize<'de> for GeneratorConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<GeneratorConfig, D::Error> {
        let mut keys = Map::<String, Value>::deserialize(from)?;
        let Some(Value::String(name)) = keys.remove("preset") else {
            return Err(D::Error::missing_field("preset"));
        };
        if let Some(profile) = Profile::named(&name).map_err(D::Error::custom)? {
            return ProfileConfig::of(profile, &keys)
                .map(GeneratorConfig::Profile)
                .map_err(D::Error::custom);
        }
        if name != "own" && Paper::named(&name).is_none() {
            return Err(D::Error::custom(unknown(&name)));
        }
        keys.insert("preset".into(), Value::String(name));
        let paper = serde_json::from_value(Value::Object(keys)).map_err(D::Error::custom)?;
        Ok(GeneratorConfig::Paper(paper))
    }
}

fn unknown(name: &str) -> Error {
    let known: Vec<&str> = GeneratorConfig::names().collect();
    let allowed = format!(
        "one of {}, or a profile in a file that ends in .toml",
        known.join(", ")
    );
    let nearest = nearest_of(&known, name).unwrap_or_default();
    config("preset", name, &allowed, &format!("did you mean {nearest}?"))
}

impl GeneratorConfig {
    /// Names of the presets.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        let profiles = PROFILES.iter().map(|(name, _)| *name);
        profiles.chain(PAPERS.iter().map(|(name, ..)| *name))
    }

    /// Names of the presets, and of the generators that the program has beside them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        GeneratorConfig::presets().chain(own::own().iter().map(|own| own.name))
    }

    /// A preset, or the profile of a file, with its defaults.
    ///
    /// # Errors
    /// A name that is no preset; a file that is no profile.
    pub fn preset(name: &str) -> Result<GeneratorConfig, Error> {
        if let Some(profile) = Profile::named(name)? {
            let made = ProfileConfig::of(profile, &Map::new());
            return made
                .map(GeneratorConfig::Profile)
                .map_err(|fault| config("preset", name, &fault, "see docs/workloads.md"));
        }
        Paper::named(name)
            .map(GeneratorConfig::Paper)
            .ok_or_else(|| unknown(name))
    }

    /// Name of the preset.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            GeneratorConfig::Profile(config) => &config.profile.name,
            GeneratorConfig::Paper(paper) => paper.facts().0,
        }
    }

    /// The preset of links that stands for those of the site whose jobs these are; none where those that its GPUs usually come with
    /// do, or where the cluster has links of its own.
    pub(super) fn site_fabric(&self) -> Option<&str> {
        match self {
            GeneratorConfig::Profile(config) => config.profile.site_fabric.as_deref(),
            GeneratorConfig::Paper(paper) => paper.facts().2,
        }
    }

    /// What the preset is, one line.
    #[must_use]
    pub fn describe(&self) -> &str {
        match self {
            GeneratorConfig::Profile(config) => &config.profile.about,
            GeneratorConfig::Paper(paper) => paper.facts().1,
        }
    }

    /// Jobs and load.
    #[must_use]
    pub fn size(&self) -> (usize, f64) {
        match self {
            GeneratorConfig::Profile(config) => (config.num_jobs, config.load),
            GeneratorConfig::Paper(paper) => paper.clone().resize(None, None),
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
    pub fn resized(mut self, num_jobs: Option<usize>, load: Option<f64>) -> GeneratorConfig {
        match &mut self {
            GeneratorConfig::Profile(config) => {
                config.num_jobs = num_jobs.unwrap_or(config.num_jobs);
                config.load = load.unwrap_or(config.load);
            }
            GeneratorConfig::Paper(paper) => {
                paper.resize(num_jobs, load);
            }
        }
        self
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn validate(&self) -> Result<(), Error> {
        match self {
            GeneratorConfig::Profile(config) => config.validate(),
            GeneratorConfig::Paper(paper) => paper.validate(),
        }
    }
}

/// Says which generators a program has; once, before anything is read.
///
/// # Errors
/// A name that is taken; a second call.
pub fn register(generators: Vec<OwnGenerator>) -> Result<(), Error> {
    for (place, one) in generators.iter().enumerate() {
        let is_taken = GeneratorConfig::presets().any(|name| name == one.name)
            || generators[..place].iter().any(|other| other.name == one.name);
        Error::refuse_if(
            is_taken || one.name.is_empty() || one.name.contains([',', '/', '.']),
            "generator",
            one.name,
            "a name without commas, dots and slashes that nothing else has",
            "give it another name",
        )?;
    }
    Error::refuse_if(
        !own::keep(generators),
        "generator",
        "registered again",
        "once in a program",
        "name all of them in one call",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_name_is_refused_and_so_is_one_that_this_program_does_not_have() {
        let own = |name| OwnGenerator {
            name,
            describe: "",
            defaults: || super::super::OwnConfig::new("mine"),
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
