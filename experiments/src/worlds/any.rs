//! Worlds by name: opened from what `--workload` says, with all verbs.

use std::path::Path;
use std::sync::OnceLock;

use pleach_dealing::deal_schema;
use pleach_env::workload::import::Format;
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::heuristics::Info;
use pleach_scheduler::settings::{Field, Settings as Fields};
use pleach_serving::functions::{self, is_calls};
use pleach_serving::llm;
use pleach_serving::llm::file::is_requests;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::calls::{CallsSettings, CallsWorld};
use super::compare::compare;
use super::compared::{Compared, Comparing};
use super::deals::{DealsSettings, DealsWorld};
use super::explain::{DecisionTold, explain};
use super::requests::{RequestsSettings, RequestsWorld};
use super::search::{Searched, Searching, search};
use super::service::{ServiceSettings, ServiceWorld};
use super::settings::{Settings, read};
use super::train::{Training, train};
use super::world::{Description, World};
use crate::error::Error;
use crate::progress::Watcher;

/// A world with every verb.
pub trait AnyWorld: Send + Sync {
    /// One word.
    fn name(&self) -> &'static str;

    /// What was read of a given list, and what was left out.
    fn account(&self) -> Vec<String>;

    /// Refuses policies that are not there, before anything is played.
    ///
    /// # Errors
    /// A name that is not there, a file of something else.
    fn check(&self, policies: &[String]) -> Result<(), Error>;

    /// Plays policies on the same lists.
    ///
    /// # Errors
    /// A policy or a setting that cannot be used.
    fn compare(&self, asked: &Comparing, watcher: &Watcher) -> Result<Compared, Error>;

    /// Searches for a tree with the draws of a seed; a file keeps the state of the race, which goes on from it.
    ///
    /// # Errors
    /// Settings out of range, columns that are not there.
    fn search(
        &mut self,
        asked: &Searching,
        draws: (u64, Option<&Path>),
        watcher: &Watcher,
    ) -> Result<Searched, Error>;

    /// Trains a network in a folder, or goes on there.
    ///
    /// # Errors
    /// Settings out of range, a folder of another training, a run that fails.
    fn train(
        &self,
        settings: &Settings,
        asked: (&Training, u64),
        folder: &Path,
        watcher: &Watcher,
    ) -> Result<Searched, Error>;

    /// Why a tree chose as it did at a decision of the first list.
    ///
    /// # Errors
    /// A file that is no tree of this world, a number that is not in the list.
    fn explain(&self, tree: &Path, decision: usize, seed: u64) -> Result<DecisionTold, Error>;

    /// What the first list is like.
    ///
    /// # Errors
    /// A list that cannot be read.
    fn describe(&self, seed: u64) -> Result<Description, Error>;

    /// Writes the first list, and says what was written.
    ///
    /// # Errors
    /// A world whose lists have no file, what the system says.
    fn write(&self, path: &Path, seed: u64) -> Result<String, Error>;
}

impl<W: World> AnyWorld for W {
    fn name(&self) -> &'static str {
        World::name(self)
    }

    fn account(&self) -> Vec<String> {
        World::account(self)
    }

    fn check(&self, policies: &[String]) -> Result<(), Error> {
        self.opened(policies).map(drop)
    }

    fn compare(&self, asked: &Comparing, watcher: &Watcher) -> Result<Compared, Error> {
        compare(self, asked, watcher)
    }

    fn search(
        &mut self,
        asked: &Searching,
        draws: (u64, Option<&Path>),
        watcher: &Watcher,
    ) -> Result<Searched, Error> {
        search(self, asked, draws, watcher)
    }

    fn train(
        &self,
        settings: &Settings,
        asked: (&Training, u64),
        folder: &Path,
        watcher: &Watcher,
    ) -> Result<Searched, Error> {
        train(self, Value::Object(settings.clone()), asked, folder, watcher)
    }

    fn explain(&self, tree: &Path, decision: usize, seed: u64) -> Result<DecisionTold, Error> {
        explain(self, tree, decision, seed)
    }

    fn describe(&self, seed: u64) -> Result<Description, Error> {
        World::describe(self, seed)
    }

    fn write(&self, path: &Path, seed: u64) -> Result<String, Error> {
        World::write(self, path, seed)
    }
}

/// A world by name.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The name that `--workload` takes.
    pub name: &'static str,
    /// What it is, in a line.
    pub doc: &'static str,
    /// Its rules by name.
    pub policies: &'static [Info],
    /// What its trees and networks read.
    pub schema: &'static FeatureSchema,
    /// Whether a file is a list of it, which its settings then have as `requests`.
    pub reads: fn(&Path) -> bool,
    /// Opens it; [`opened`] reads settings.
    pub open: fn(&Settings) -> Result<Box<dyn AnyWorld>, Error>,
    /// The keys of its settings.
    pub keys: fn() -> Vec<Field>,
}

/// A world of settings.
///
/// # Errors
/// Settings that are not there or out of range, and what the world refuses.
pub fn opened<T: Fields + Serialize + DeserializeOwned + Default, W: World + 'static>(
    settings: &Settings,
    of: fn(T) -> Result<W, Error>,
) -> Result<Box<dyn AnyWorld>, Error> {
    Ok(Box::new(of(read::<T>(settings)?)?))
}

/// All worlds beside that of jobs.
const KINDS: [Kind; 4] = [
    Kind {
        name: "requests",
        doc: "requests to replicas of a language model, a drawn list or a file's: routers choose replicas",
        policies: llm::POLICIES,
        schema: &llm::SCHEMA,
        reads: is_requests,
        open: |settings| opened(settings, RequestsWorld::new),
        keys: || RequestsSettings::fields(""),
    },
    Kind {
        name: "calls",
        doc: "applications of functions on slices of GPUs, drawn or a file's calls: dispatchers choose what runs on how much",
        policies: functions::POLICIES,
        schema: &functions::SCHEMA,
        reads: is_calls,
        open: |settings| opened(settings, CallsWorld::new),
        keys: || CallsSettings::fields(""),
    },
    Kind {
        name: "service",
        doc: "a service of a language model beside training jobs, of their own or of a list: autoscalers lease GPUs",
        policies: llm::AUTOSCALERS,
        schema: &llm::AUTOSCALING,
        reads: |_| false,
        open: |settings| opened(settings, ServiceWorld::new),
        keys: || ServiceSettings::fields(""),
    },
    Kind {
        name: "deals",
        doc: "jobs whose GPUs are dealt anew at events: what scores a deal's rows orders all jobs, waiting and running, on each type",
        policies: &[],
        schema: deal_schema(),
        reads: |_| false,
        open: |settings| opened(settings, DealsWorld::new),
        keys: || DealsSettings::fields(""),
    },
];

static OWN: OnceLock<Vec<Kind>> = OnceLock::new();

/// Keeps the program's own worlds, once.
///
/// # Errors
/// A name that is taken; a second call.
pub fn register(own: Vec<Kind>) -> Result<(), Error> {
    for (place, kind) in own.iter().enumerate() {
        let mut others = KINDS.iter().chain(&own[..place]);
        Error::refuse_if(
            others.any(|other| other.name == kind.name || other.schema.name == kind.schema.name),
            "world",
            kind.name,
            "a name that no other world has",
            "Give it another name, and its schema too.",
        )?;
    }
    let again = |_| {
        Error::config(
            "worlds",
            "registered again",
            "once in a program",
            "Name all in one call.",
        )
    };
    OWN.set(own).map_err(again)
}

/// All worlds beside that of jobs, those of the program's own last.
pub fn kinds() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().chain(OWN.get().into_iter().flatten())
}

fn kind(name: &str) -> Option<&'static Kind> {
    kinds().find(|kind| kind.name == name)
}

/// A world with its settings.
pub type Opened = (Box<dyn AnyWorld>, Settings);

/// The world that names and files stand for, with its settings; none where they are jobs. Requests beside a list of jobs, or *service*
/// beside one, are a service beside those jobs.
///
/// # Errors
/// Settings that are not there or out of range, a list that cannot be read, lists that do not go together.
pub fn open(names: &[String], mut settings: Settings) -> Result<Option<Opened>, Error> {
    let of = |name: &String| {
        kind(name).or_else(|| {
            let path = Path::new(name);
            let is_list = path.is_file() && Format::of_file(path).is_err();
            is_list
                .then(|| KINDS.iter().find(|kind| (kind.reads)(path)))
                .flatten()
        })
    };
    let kinds: Vec<Option<&Kind>> = names.iter().map(of).collect();
    let mut put = |key: &str, name: &String| settings.insert(key.into(), name.as_str().into());
    let found = match (names, kinds.as_slice()) {
        (_, all) if all.iter().all(Option::is_none) => return Ok(None),
        ([name], [Some(kind)]) => {
            if kind.name != name {
                put("requests", name);
            }
            *kind
        }
        ([jobs, other], [None, Some(kind)]) | ([other, jobs], [Some(kind), None])
            if ["requests", "service"].contains(&kind.name) =>
        {
            put("jobs", jobs);
            if kind.name != other {
                put("requests", other);
            }
            &KINDS[2]
        }
        _ => {
            let allowed = "one world, or a list of jobs and one of requests";
            let hint = "Give --workload once.";
            return Err(Error::config("workload", names.join(","), allowed, hint));
        }
    };
    Ok(Some(((found.open)(&settings)?, settings)))
}
