//! Names of learners, as settings have them.

use std::sync::OnceLock;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::error::Error;

/// A learner by its name; what it does is [`way`](crate::learner::way).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learner(&'static str);

static OWN: OnceLock<Vec<&'static str>> = OnceLock::new();

/// Names of a program's own learners.
pub(crate) fn register(names: Vec<&'static str>) -> Result<(), Error> {
    for (place, name) in names.iter().enumerate() {
        let is_taken = Learner::OURS.contains(&Learner(name)) || names[..place].contains(name);
        if is_taken || !(1..=24).contains(&name.len()) {
            let allowed = "a name of up to 24 characters that nothing else has";
            return Err(Error::config("train.learner", name, allowed));
        }
    }
    OWN.set(names)
        .map_err(|_| Error::config("train.learner", "registered again", "once in a program"))
}

impl Learner {
    /// Proximal policy optimisation.
    pub const PPO: Learner = Learner("ppo");
    /// Evolution strategies.
    pub const EVOLUTION: Learner = Learner("evolution");
    /// Cloning alone.
    pub const IMITATION: Learner = Learner("imitation");

    /// Exact credit by forks.
    pub const COUNTERFACTUAL: Learner = Learner("counterfactual");

    const OURS: [Learner; 4] = [
        Learner::PPO,
        Learner::EVOLUTION,
        Learner::IMITATION,
        Learner::COUNTERFACTUAL,
    ];

    /// Ours, then the program's own.
    pub fn all() -> impl Iterator<Item = Learner> {
        let own = OWN.get().into_iter().flatten();
        Learner::OURS.into_iter().chain(own.map(|name| Learner(name)))
    }

    /// The one of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Learner> {
        Learner::all().find(|learner| learner.0 == name)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0
    }
}

impl Default for Learner {
    fn default() -> Learner {
        Learner::PPO
    }
}

impl Serialize for Learner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Learner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Learner, D::Error> {
        let name = String::deserialize(deserializer)?;
        Learner::find(&name).ok_or_else(|| {
            let known: Vec<&str> = Learner::all().map(Learner::name).collect();
            de::Error::custom(format!(
                "unknown learner `{name}`, expected one of {}",
                known.join(", ")
            ))
        })
    }
}
