//! Serving language models: routers compared on the same requests, and trees searched for that route.
//!
//! A list is drawn ([`ServingConfig`]) or a file's, cut into consecutive parts, so that there are pairs to compare. What is to
//! be much is the share of requests within both targets; refused ones are misses.

mod compare;
mod deploy;
mod describe;
mod environments;
pub mod functions;
mod gain;
mod learn;
mod mixed;
mod own;
mod page;
mod pools;
mod race;
mod rivals;
mod routed;
mod search;
mod starts;
#[cfg(test)]
mod tests;
mod train;
#[cfg(test)]
mod train_tests;
mod vector;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use pleach_env::Seed;
use pleach_network::{NetworkScorer, TrainedNetwork};
use pleach_scheduler::ConfigError;
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::heuristics::Info;
use pleach_scheduler::tree::{MAX_BYTES, Tree, Verdict};
use pleach_serving::functions as serving_functions;
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{
    self, Explaining, Fleet, Pace, Request, Requests, Router, SCHEMA, ScorerRouter, Targets, by_name, file,
    simulate,
};
use serde::{Deserialize, Serialize};

use self::own::own_rooms;
use crate::error::Error;
use crate::evaluate::flag_values;
use crate::run_folder::atomic_file;

pub use compare::{Comparison, Rates, RouterRow, compare};
pub use deploy::{DeploymentConfig, is_routing_tree};
pub use describe::Description;
pub use environments::{
    Opened, Registered, config, describe_environment, environment_settings, serving_environment, serving_ids,
};
pub use gain::Gain;
pub use mixed::{
    AutoscalerSearch, Day, MixedBench, MixedComparison, MixedConfig, MixedDay, MixedRow, Scaling,
    SearchedAutoscaler, compare_mixed, compare_mixed_on, search_autoscaler,
};
pub use own::{OwnRoom, register as register_rooms};
pub use pleach_serving::llm::RequestTold;
pub use pleach_serving::llm::deploy::EndpointPicker;
pub use pools::PoolsConfig;
pub use search::{RoutingSearch, SearchedRouter, search_router};
pub use train::{RoutingTraining, TrainedRouter, train_router};

/// Requests, replicas and what users expect.
#[derive(Args, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServingConfig {
    /// A list of requests: ours, Azure's or Mooncake's (docs/serving.md) [default: drawn]
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    pub requests: Option<PathBuf>,
    /// Requests of a drawn list, 1 to 10,000,000
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = flag_values::whole::<u32>(1..=10_000_000),
        help_heading = "Requests")]
    pub num_requests: u32,
    /// Requests a second of a drawn list
    #[arg(long, value_name = "RATE", default_value_t = 180.0, value_parser = flag_values::positive, help_heading = "Requests")]
    pub rate_per_s: f64,
    /// Spread of the logarithm of the rate from minute to minute, 0 to 3; 0: a Poisson process
    #[arg(long, value_name = "X", default_value_t = 0.3, value_parser = flag_values::not_negative, help_heading = "Requests")]
    pub burst: f64,
    /// Mean requests of a conversation, 1 to 100; each later prompt begins with what was said before
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = flag_values::positive, help_heading = "Requests")]
    pub turns: f64,
    /// Play a list of requests so many times as fast
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = flag_values::positive, help_heading = "Requests")]
    pub faster: f64,
    /// Lists to draw, or consecutive parts into which a file is cut, 1 to 1,000
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = flag_values::whole::<u16>(1..=1000),
        help_heading = "Requests")]
    pub lists: u16,
    /// Language model: llama-3-8b, mistral-7b, qwen-2.5-7b, qwen-2.5-14b, llama-3-70b, mixtral-8x7b
    #[arg(
        long,
        value_name = "NAME",
        default_value = "llama-3-8b",
        help_heading = "Replicas"
    )]
    pub model: String,
    /// GPU type of a replica: H100, A100, L40S
    #[arg(long, value_name = "NAME", default_value = "H100", help_heading = "Replicas")]
    pub gpu: String,
    /// GPUs of a replica, among which the model is split: 1, 2, 4, 8
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = flag_values::whole::<u32>(1..=8),
        help_heading = "Replicas")]
    pub replica_gpus: u32,
    /// Replicas, 1 to 4,096
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = flag_values::whole::<u16>(1..=4096),
        help_heading = "Replicas")]
    pub replicas: u16,
    /// Gateways, 1 to 4,096; each knows of its own requests only
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = flag_values::whole::<u16>(1..=4096),
        help_heading = "Gateways")]
    pub gateways: u16,
    /// Time between two looks of a gateway at all replicas, s; 0: it looks at each request
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = flag_values::not_negative, help_heading = "Gateways")]
    pub scrape_s: f64,
    /// Whether a router may refuse requests
    #[arg(long, help_heading = "Gateways")]
    pub refuse: bool,
    /// Target of the time to the first token, s
    #[arg(long, value_name = "S", default_value_t = 0.5, value_parser = flag_values::positive, help_heading = "Targets")]
    pub ttft_s: f64,
    /// Target of the mean time between two later tokens, s
    #[arg(long, value_name = "S", default_value_t = 0.03, value_parser = flag_values::positive, help_heading = "Targets")]
    pub tpot_s: f64,
}

impl Default for ServingConfig {
    fn default() -> ServingConfig {
        let generator = RequestGenerator::default();
        let targets = Targets::default();
        ServingConfig {
            requests: None,
            num_requests: generator.num_requests,
            rate_per_s: 180.0,
            burst: generator.burst,
            turns: generator.turns,
            faster: 1.0,
            lists: 5,
            model: "llama-3-8b".into(),
            gpu: "H100".into(),
            replica_gpus: 1,
            replicas: 16,
            gateways: 1,
            scrape_s: 1.0,
            refuse: false,
            ttft_s: targets.ttft_s,
            tpot_s: targets.tpot_s,
        }
    }
}

impl ServingConfig {
    /// The replicas and gateways.
    ///
    /// # Errors
    /// A model or GPU that is not there, a number out of range.
    pub fn fleet(&self) -> Result<Fleet, ConfigError> {
        let fleet = Fleet {
            pace: Pace::split(&self.model, &self.gpu, self.replica_gpus)?,
            num_replicas: usize::from(self.replicas),
            num_gateways: usize::from(self.gateways),
            scrape_s: self.scrape_s,
            targets: Targets {
                ttft_s: self.ttft_s,
                tpot_s: self.tpot_s,
            },
            may_refuse: self.refuse,
        };
        fleet.check()?;
        Ok(fleet)
    }

    fn generator(&self) -> RequestGenerator {
        RequestGenerator {
            num_requests: self.num_requests,
            rate_per_s: self.rate_per_s,
            burst: self.burst,
            turns: self.turns,
            ..RequestGenerator::default()
        }
    }

    /// The lists, `faster` times as fast besides.
    ///
    /// # Errors
    /// A file that cannot be read, a setting out of range.
    pub fn draw(&self, seed: Seed, num: usize, faster: f64) -> Result<Vec<Requests>, Error> {
        self.draw_of((0.0, 1.0), seed, num, faster)
    }

    /// The same of a part of a given list, from a share of its requests to another: who learns and who is judged play no request
    /// in common. Drawn lists differ by their seeds.
    fn draw_of(&self, part: (f64, f64), seed: Seed, num: usize, faster: f64) -> Result<Vec<Requests>, Error> {
        self.of_whole(self.whole()?.as_ref(), part, seed, num, faster)
    }

    /// The list that is given, where one is.
    fn whole(&self) -> Result<Option<Requests>, Error> {
        let read = self.requests.as_deref().map(read).transpose()?;
        Ok(read.map(|read| read.requests))
    }

    /// Rows read, kept and left out of the list that is given, a line each; none where lists are drawn.
    ///
    /// # Errors
    /// As [`read`].
    pub fn account(&self) -> Result<Vec<String>, Error> {
        let read = self.requests.as_deref().map(read).transpose()?;
        Ok(read.map(|read| lines_of(&read)).unwrap_or_default())
    }

    /// [`ServingConfig::draw_of`] where the list has been read.
    fn of_whole(
        &self,
        whole: Option<&Requests>,
        part: (f64, f64),
        seed: Seed,
        num: usize,
        faster: f64,
    ) -> Result<Vec<Requests>, Error> {
        let Some(whole) = whole else {
            let generator = RequestGenerator {
                rate_per_s: self.rate_per_s * self.faster * faster,
                ..self.generator()
            };
            let lists = (0..num).map(|list| generator.draw(seed.child("list", list as u64)));
            return Ok(lists.collect::<Result<_, _>>()?);
        };
        cut(&whole.faster(self.faster * faster)?, part, num)
    }
}

/// Why a tree sent a request of the first list, so many times as fast, where it did, by its number there.
///
/// # Errors
/// A file that is no tree of requests, a number that is not in the list, a run that fails.
pub fn explain(
    config: &ServingConfig,
    path: &Path,
    (request, faster): (usize, f64),
    seed: u64,
) -> Result<RequestTold, Error> {
    let lists = config.draw(Seed(seed).child("serving", 0), usize::from(config.lists), faster)?;
    let mut router = Explaining::new(&tree(path)?, request)?;
    simulate(&lists[0], &config.fleet()?, &mut router)?;
    router.into_told().ok_or_else(|| {
        let allowed = format!("0 to {}", lists[0].rows().len().saturating_sub(1));
        Error::config("explain", request, allowed, "Take one of the list.")
    })
}

/// Writes a list.
///
/// # Errors
/// What the system says.
pub fn write(path: &Path, requests: &Requests) -> Result<(), Error> {
    Ok(file::write(path, requests).map_err(pleach_env::workload::Error::from)?)
}

/// Reads a list in any of its forms.
///
/// # Errors
/// A file that cannot be read.
pub fn read(path: &Path) -> Result<file::Read, Error> {
    Ok(file::read(path).map_err(pleach_env::workload::Error::from)?)
}

/// What a list is, and its account.
fn lines_of(read: &file::Read) -> Vec<String> {
    let first = format!("{} list: {}", read.format, read.account.sums("rows"));
    [first].into_iter().chain(read.account.lines("rows")).collect()
}

/// Consecutive parts, of as many requests, of the rows between two shares; each begins at 0.
fn cut(whole: &Requests, (from, to): (f64, f64), num: usize) -> Result<Vec<Requests>, Error> {
    let at = |share: f64| (share * whole.rows().len() as f64).round() as usize;
    let rows = &whole.rows()[at(from)..at(to)];
    if num > rows.len() {
        let allowed = format!("at most the list's {} requests", rows.len());
        return Err(Error::config("lists", num, allowed, "Try fewer."));
    }
    let parts = (0..num).map(|part| {
        let rows = &rows[part * rows.len() / num..(part + 1) * rows.len() / num];
        let begins_s = rows[0].arrival_s;
        let rows = rows.iter().map(|row| Request {
            arrival_s: row.arrival_s - begins_s,
            ..*row
        });
        whole.of_rows(rows.collect())
    });
    Ok(parts.collect::<Result<_, _>>()?)
}

/// All policies with a name that decide about requests, room by room.
pub fn policies() -> impl Iterator<Item = &'static Info> {
    let own = own_rooms().iter().flat_map(|room| room.policies);
    let rooms = [&llm::POLICIES, &serving_functions::POLICIES].into_iter();
    rooms.chain(own).copied().flatten()
}

/// A router by name, or by file: a tree, or a network that was trained here or elsewhere.
///
/// # Errors
/// A name that is not there, a file that is of other rows than those of requests.
pub fn router(text: &str, seed: u64) -> Result<Box<dyn Router>, Error> {
    let path = Path::new(text);
    match path.extension().and_then(OsStr::to_str) {
        Some("json") => Ok(Box::new(ScorerRouter::of_tree(&tree(path)?)?)),
        Some("ckpt" | "onnx") => {
            let scorer = NetworkScorer::over(&SCHEMA, &TrainedNetwork::load(path)?)?;
            Ok(Box::new(ScorerRouter::new(Box::new(scorer))?))
        }
        _ => Ok(by_name(text, seed)?),
    }
}

/// A tree that routes.
///
/// # Errors
/// A file that is none.
pub fn tree(path: &Path) -> Result<Tree, Error> {
    tree_over(&SCHEMA, path)
}

/// A tree of a room that serves, and what is known for certain of it by the property's name.
pub struct Certified {
    /// The tree.
    pub tree: Tree,
    /// What is known, by name.
    pub verdicts: Vec<(String, Verdict)>,
}

/// A tree of a room that serves, with what is known for certain of it; none where the file is of something else.
///
/// # Errors
/// A file that says that it is one, and is not.
pub fn certified(path: &Path) -> Result<Option<Certified>, Error> {
    let schemas: [&'static FeatureSchema; 3] = [&llm::SCHEMA, &llm::AUTOSCALING, &serving_functions::SCHEMA];
    let own = own_rooms().iter().flat_map(|room| room.schemas).copied();
    let rows = rows_of(path);
    let Some(schema) = schemas.into_iter().chain(own).find(|schema| schema.name == rows) else {
        return Ok(None);
    };
    let tree = tree_over(schema, path)?;
    let verdicts = if schema.name == SCHEMA.name {
        llm::certificates(&tree)
    } else {
        let all = tree.certify().into_iter();
        all.map(|own| (own.property.to_string(), own.verdict)).collect()
    };
    Ok(Some(Certified { tree, verdicts }))
}

/// The name of the rows that a tree's file says it reads; empty where it is none.
fn rows_of(path: &Path) -> String {
    let text = atomic_file::read_text(path, MAX_BYTES).unwrap_or_default();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    file["rows"].as_str().unwrap_or_default().into()
}

/// A tree of a schema.
fn tree_over(schema: &'static FeatureSchema, path: &Path) -> Result<Tree, Error> {
    let text = atomic_file::read_text(path, MAX_BYTES)?;
    Tree::from_json_over(schema, &text).map_err(|error| Error::data(path, error.to_string()))
}
