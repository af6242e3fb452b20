//! Registered environments of routing and of autoscaling. A change that alters results bumps the version in the id.

use pleach_env::Seed;
use pleach_scheduler::ConfigError;
use pleach_scheduler::heuristics::nearest_of;
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{Lists, Reward, Routing};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{MixedConfig, Scaling, ServingConfig};
use crate::error::Error;

type Registered<Config> = (&'static str, &'static str, fn() -> Config);

/// Those of routing: id, one line, settings.
const ROUTING: [Registered<ServingConfig>; 2] = [
    (
        "Pleach/LlmRouting-v0",
        "conversations of three turns on 16 replicas behind four gateways, facts a second old, nobody is refused",
        conversations,
    ),
    (
        "Pleach/ServingBursts-v0",
        "bursts of requests above capacity on 16 replicas behind four gateways, facts a second old, requests may be refused",
        bursts,
    ),
];

/// Those of autoscaling.
const SCALING: [Registered<MixedConfig>; 1] = [(
    "Pleach/Mixed-v0",
    "a day of requests to replicas that lease GPUs of 16 on which gangs of four train",
    beside_gangs,
)];
/// What a miss costs where nothing is said, GPU·s of training: about what it is worth to rules at 99.9 % (docs/serving-mixed.md).
const PRICE_GPU_S: f64 = 18.0;

/// Ids of the environments of routing.
pub fn routing_ids() -> impl Iterator<Item = &'static str> {
    ROUTING.iter().map(|(id, ..)| *id)
}

/// Ids of the environments of autoscaling.
pub fn scaling_ids() -> impl Iterator<Item = &'static str> {
    SCALING.iter().map(|(id, ..)| *id)
}

/// What an environment of routing or autoscaling is, in one line.
#[must_use]
pub fn describe_serving(id: &str) -> Option<&'static str> {
    let routing = ROUTING.iter().map(|(known, line, _)| (*known, *line));
    let mut all = routing.chain(SCALING.iter().map(|(known, line, _)| (*known, *line)));
    all.find(|(known, _)| *known == id).map(|(_, line)| line)
}

/// The settings of an environment of routing by name: those of [`ServingConfig`], and `reward`.
#[must_use]
pub fn routing_settings() -> Vec<String> {
    names_of(&ServingConfig::default(), "reward")
}

/// The settings of an environment of autoscaling by name: those of [`MixedConfig`], and `price_gpu_s`.
#[must_use]
pub fn scaling_settings() -> Vec<String> {
    names_of(&MixedConfig::default(), "price_gpu_s")
}

/// The environment of an id with other settings, in JSON. A list that is given is cut into `lists` parts; a seed takes one.
///
/// # Errors
/// An id or a setting that is not there, a value out of range, a list that cannot be read.
pub fn routing_environment(id: &str, changes: &str) -> Result<Routing, Error> {
    let (config, reward) = changed(&ROUTING, id, changes, "reward", &routing_settings())?;
    let lists = match &config.requests {
        Some(_) => Lists::Given(config.draw(Seed(0), usize::from(config.lists), 1.0)?),
        None => Lists::Drawn(RequestGenerator {
            rate_per_s: config.rate_per_s * config.faster,
            ..config.generator()
        }),
    };
    Ok(Routing::new(
        config.fleet()?,
        lists,
        reward.unwrap_or_else(Reward::default),
    )?)
}

/// The environment of an id with other settings, in JSON; a seed is a day, `lists` says nothing.
///
/// # Errors
/// An id or a setting that is not there, a value out of range.
pub fn scaling_environment(id: &str, changes: &str) -> Result<Scaling, Error> {
    let (config, price_gpu_s) = changed(&SCALING, id, changes, "price_gpu_s", &scaling_settings())?;
    Scaling::new(&config, price_gpu_s.unwrap_or(PRICE_GPU_S))
}

fn names_of(config: &impl Serialize, own: &str) -> Vec<String> {
    let whole = serde_json::to_value(config).unwrap_or_default();
    let keys = whole.as_object().into_iter().flat_map(Map::keys).cloned();
    keys.chain([own.to_string()]).collect()
}

/// The settings of an id with changes, and the change of one that is none of the configuration.
fn changed<Config: Serialize + DeserializeOwned, Own: DeserializeOwned>(
    all: &[Registered<Config>],
    id: &str,
    changes: &str,
    own: &str,
    settings: &[String],
) -> Result<(Config, Option<Own>), Error> {
    let Some((_, _, config)) = all.iter().find(|(known, ..)| *known == id) else {
        let known: Vec<&str> = all.iter().map(|(known, ..)| *known).collect();
        let hint = format!("did you mean {}?", nearest_of(&known, id).unwrap_or_default());
        return Err(ConfigError::new("env id", id, known.join(", "), hint).into());
    };
    let refuse = |error: serde_json::Error| {
        let allowed = settings.join(", ");
        ConfigError::new("settings of the environment", error, allowed, "Leave it out.")
    };
    let mut changes: Map<String, Value> = serde_json::from_str(changes).map_err(refuse)?;
    let own = changes
        .remove(own)
        .map(serde_json::from_value)
        .transpose()
        .map_err(refuse)?;
    let mut whole = serde_json::to_value(config()).map_err(refuse)?;
    if let Some(whole) = whole.as_object_mut() {
        whole.extend(changes);
    }
    Ok((serde_json::from_value(whole).map_err(refuse)?, own))
}

fn conversations() -> ServingConfig {
    ServingConfig {
        num_requests: 15_000,
        rate_per_s: 75.0,
        turns: 3.0,
        gateways: 4,
        ..ServingConfig::default()
    }
}

fn bursts() -> ServingConfig {
    ServingConfig {
        num_requests: 15_000,
        rate_per_s: 210.0,
        burst: 0.5,
        gateways: 4,
        refuse: true,
        ..ServingConfig::default()
    }
}

fn beside_gangs() -> MixedConfig {
    MixedConfig {
        gang: 4,
        restart_s: 180.0,
        load_s: 180.0,
        ..MixedConfig::default()
    }
}
