//! Registered environments of routing. A change that alters results bumps the version in the id.

use pleach_env::Seed;
use pleach_scheduler::ConfigError;
use pleach_scheduler::heuristics::nearest_of;
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{Lists, Reward, Routing};
use serde_json::{Map, Value};

use super::ServingConfig;
use crate::error::Error;

type Registered = (&'static str, &'static str, fn() -> ServingConfig);

/// All of them: id, one line, settings.
const ALL: [Registered; 2] = [
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

/// Ids of the environments of routing.
pub fn routing_ids() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(id, ..)| *id)
}

/// What an environment of routing is, in one line.
#[must_use]
pub fn describe_routing(id: &str) -> Option<&'static str> {
    let found = ALL.iter().find(|(known, ..)| *known == id);
    found.map(|(_, line, _)| *line)
}

/// The settings of an environment of routing by name: those of [`ServingConfig`], and `reward`.
#[must_use]
pub fn routing_settings() -> Vec<String> {
    let whole = serde_json::to_value(ServingConfig::default()).unwrap_or_default();
    let keys = whole.as_object().into_iter().flat_map(Map::keys).cloned();
    keys.chain(["reward".to_string()]).collect()
}

/// The environment of an id with other settings, in JSON. A list that is given is cut into `lists` parts; a seed takes one.
///
/// # Errors
/// An id or a setting that is not there, a value out of range, a list that cannot be read.
pub fn routing_environment(id: &str, changes: &str) -> Result<Routing, Error> {
    let Some((_, _, config)) = ALL.iter().find(|(known, ..)| *known == id) else {
        let known: Vec<&str> = routing_ids().collect();
        let hint = format!("did you mean {}?", nearest_of(&known, id).unwrap_or_default());
        return Err(ConfigError::new("env id", id, known.join(", "), hint).into());
    };
    let refuse = |error: serde_json::Error| {
        let allowed = routing_settings().join(", ");
        ConfigError::new("settings of the environment", error, allowed, "Leave it out.")
    };
    let mut changes: Map<String, Value> = serde_json::from_str(changes).map_err(refuse)?;
    let reward = match changes.remove("reward") {
        Some(reward) => serde_json::from_value(reward).map_err(refuse)?,
        None => Reward::default(),
    };
    let mut whole = serde_json::to_value(config()).map_err(refuse)?;
    if let Some(whole) = whole.as_object_mut() {
        whole.extend(changes);
    }
    let config: ServingConfig = serde_json::from_value(whole).map_err(refuse)?;
    let lists = match &config.requests {
        Some(_) => Lists::Given(config.draw(Seed(0), usize::from(config.lists), 1.0)?),
        None => Lists::Drawn(RequestGenerator {
            rate_per_s: config.rate_per_s * config.faster,
            ..config.generator()
        }),
    };
    Ok(Routing::new(config.fleet()?, lists, reward)?)
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
