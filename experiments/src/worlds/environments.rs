//! Registered environments of work that serves. A change that alters results bumps the version in the id.

use pleach_scheduler::Problem;
use pleach_scheduler::heuristics::nearest_of;
use pleach_serving::Reward;
use pleach_serving::functions::Dispatching;
use pleach_serving::llm::{Lists, Routing};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, to_value};

use super::calls::CallsSettings;
use super::own::{Opened, Registered, own_rooms};
use super::requests::{RequestsSettings, RequestsWorld};
use super::service::{Scaling, ServiceSettings};
use super::world::{Draw, Verb, World as _};
use crate::error::Error;

/// All of them.
const ALL: [Registered; 6] = [
    Registered {
        id: "Pleach/LlmRouting-v2",
        line: "conversations of three turns on 16 replicas behind four gateways, facts a second old, no request is refused",
        settings: || to_value(rewarded(conversations())),
        open: routing,
    },
    Registered {
        id: "Pleach/ServingBursts-v2",
        line: "bursts of requests above capacity on 16 replicas behind four gateways, facts a second old, requests may be refused",
        settings: || to_value(rewarded(bursts())),
        open: routing,
    },
    Registered {
        id: "Pleach/EsgSaturated-v0",
        line: "chains of functions that ask for 105 to 150 % of the slices of 16 GPUs, requests may be dropped",
        settings: || to_value(Dispatch::saturated()),
        open: dispatching,
    },
    Registered {
        id: "Pleach/EsgPublished-v0",
        line: "the same at ESG's heavy load as published, where a fixed plan hits 100 %: nothing is left to win",
        settings: || to_value(Dispatch::default()),
        open: dispatching,
    },
    Registered {
        id: "Pleach/Mixed-v2",
        line: "a day of requests to replicas that lease GPUs of 16 on which gangs of four train",
        settings: || to_value(gangs()),
        open: scaling,
    },
    Registered {
        id: "Pleach/LlmServe-v1",
        line: "twelve hours of requests to replicas of a 70B model that lease four H100 each of 256 on which gangs of eight train",
        settings: || to_value(llm_site()),
        open: scaling,
    },
];

/// Ids of the environments.
pub fn serving_ids() -> impl Iterator<Item = &'static str> {
    all().map(|registered| registered.id)
}

fn all() -> impl Iterator<Item = &'static Registered> {
    let own = own_rooms().iter().flat_map(|room| room.environments);
    ALL.iter().chain(own)
}

/// What an environment is, in one line.
///
/// # Errors
/// An id that is not there.
pub fn describe_environment(id: &str) -> Result<&'static str, Problem> {
    Ok(registered(id)?.line)
}

/// The settings of an environment by name.
///
/// # Errors
/// An id that is not there.
pub fn environment_settings(id: &str) -> Result<Vec<String>, Problem> {
    let whole = (registered(id)?.settings)().unwrap_or_default();
    let keys = whole.as_object().into_iter().flat_map(Map::keys);
    Ok(keys.cloned().collect())
}

fn registered(id: &str) -> Result<&'static Registered, Problem> {
    all().find(|registered| registered.id == id).ok_or_else(|| {
        let known: Vec<&str> = serving_ids().collect();
        let hint = format!("did you mean {}?", nearest_of(&known, id).unwrap_or_default());
        Problem::new("env id", id, known.join(", "), hint)
    })
}

/// The environment of an id with other settings, in JSON.
///
/// # Errors
/// An id or a setting that is not there, a value out of range, a list that cannot be read.
pub fn serving_environment(id: &str, changes: &str) -> Opened {
    let registered = registered(id)?;
    let changes: Map<String, Value> = parsed(id, serde_json::from_str(changes))?;
    let mut whole = parsed(id, (registered.settings)())?;
    if let Some(whole) = whole.as_object_mut() {
        if let Some(unknown) = changes.keys().find(|key| !whole.contains_key(*key)) {
            return Err(refused(id, format!("unknown field `{unknown}`")).into());
        }
        whole.extend(changes);
    }
    (registered.open)(whole)
}

fn refused(id: &str, error: impl std::fmt::Display) -> Problem {
    let allowed = environment_settings(id).unwrap_or_default().join(", ");
    Problem::new("settings of the environment", error, allowed, "Leave it out.")
}

fn parsed<T>(id: &str, value: serde_json::Result<T>) -> Result<T, Problem> {
    value.map_err(|error| refused(id, error))
}

/// Settings of a kind.
///
/// # Errors
/// Settings that are others.
pub fn config<T: DeserializeOwned>(settings: Value) -> Result<T, Problem> {
    serde_json::from_value(settings).map_err(|error| {
        let hint = "Leave it out for its default.";
        Problem::new(
            "settings of the environment",
            error,
            "what it has by default",
            hint,
        )
    })
}

/// Settings with what requests earn.
#[derive(Serialize, Deserialize)]
struct Rewarded<Config> {
    #[serde(flatten)]
    config: Config,
    reward: Reward,
}

fn rewarded(config: RequestsSettings) -> Rewarded<RequestsSettings> {
    let reward = Reward::default();
    Rewarded { config, reward }
}

/// A list that is given is cut into `lists` parts; a seed takes one.
fn routing(settings: Value) -> Opened {
    let Rewarded { config, reward } = config::<Rewarded<RequestsSettings>>(settings)?;
    config.refuse_latencies()?;
    let world = RequestsWorld::new(config.clone())?;
    let lists = match &config.requests {
        Some(_) => Lists::Given(world.draw(Draw {
            verb: Verb::Compare,
            seed: 0,
            stream: "compare",
            number: 0,
            load: 1.0,
            num: config.num_lists(),
        })?),
        None => Lists::Drawn(world.generator(1.0)),
    };
    Ok(Box::new(Routing::new(config.fleet()?, lists, reward)?))
}

fn conversations() -> RequestsSettings {
    RequestsSettings {
        num_requests: Some(15_000),
        rate_per_s: 110.0,
        turns: 3.0,
        gateways: 4,
        ..RequestsSettings::default()
    }
}

fn bursts() -> RequestsSettings {
    RequestsSettings {
        num_requests: Some(15_000),
        rate_per_s: 300.0,
        burst: 0.5,
        gateways: 4,
        refuse: true,
        ..RequestsSettings::default()
    }
}

/// Requests of applications on slices of GPUs: those of [`CallsSettings`] with a range of loads.
#[derive(Default, Serialize, Deserialize)]
struct Dispatch {
    #[serde(flatten)]
    functions: CallsSettings,
    /// Most times the setting's load; an episode's is drawn evenly from `load` on. 0: `load` itself.
    load_max: f64,
    reward: Reward,
}

/// Times the heavy load at which one request at a time on one slice would hold 105 and 150 % of all slices; at once it is 79 %.
const LOADS: (f64, f64) = (1.33, 1.9);

impl Dispatch {
    fn saturated() -> Dispatch {
        Dispatch {
            functions: CallsSettings {
                load: LOADS.0,
                late: "shed".into(),
                ..CallsSettings::default()
            },
            load_max: LOADS.1,
            reward: Reward::default(),
        }
    }
}

fn dispatching(settings: Value) -> Opened {
    let Dispatch {
        functions,
        load_max,
        reward,
    } = config(settings)?;
    Error::refuse_if(
        functions.requests.is_some(),
        "requests",
        "a recorded list",
        "none",
        "Leave it out: episodes are drawn.",
    )?;
    let setup = functions.setup(1.0)?;
    let most = if load_max > 0.0 {
        load_max / functions.load
    } else {
        1.0
    };
    let env = Dispatching::new(setup.work, setup.platform, setup.arrivals, (1.0, most), reward)?;
    Ok(Box::new(env))
}

/// A day whose jobs are gangs.
fn gangs() -> ServiceSettings {
    ServiceSettings {
        gang: 4,
        restart_s: 180.0,
        load_s: 180.0,
        ..ServiceSettings::default()
    }
}

/// Hours of the site of `Pleach/LlmSite-v1`, full of gangs of whole nodes that yield GPUs to a service.
fn llm_site() -> ServiceSettings {
    ServiceSettings {
        nodes: 32,
        gang: 8,
        checkpoint_s: Some(1800.0),
        model: "llama-3-70b".into(),
        replica_gpus: 4,
        hours: 12.0,
        restart_s: 180.0,
        load_s: 180.0,
        ..ServiceSettings::default()
    }
}

/// A seed is a day, `lists` says nothing.
fn scaling(settings: Value) -> Opened {
    let settings: ServiceSettings = config(settings)?;
    Ok(Box::new(Scaling::new(&settings, settings.price_gpu_s)?))
}
