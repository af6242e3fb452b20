//! A network that routes: it imitates the best rule by hand, is evolved or learns by PPO, is judged against the strongest rule, and
//! becomes a tree.
//!
//! Drawn lists of the streams share nothing: rivals and the teacher are chosen on `tune` and `teacher`, the network learns on
//! `generation`, the best one and the best tree are taken on `validation` and `choice`, and all are judged on `judge`. Of a list that
//! is given all that learns or chooses rivals has the first half, the same in each generation; the other three have parts of
//! their own.

use std::path::{Path, PathBuf};

use pleach_agents::evolution::EvolutionConfig;
use pleach_agents::ppo::PpoConfig;
use pleach_agents::{Checkpoint, Learner, TrainConfig, Trainer};
use pleach_env::Seed;
use pleach_network::{Inference, NetworkConfig, TrainedNetwork};
use pleach_scheduler::tree::Tree;
use pleach_serving::Reward;
use pleach_serving::llm::generate::RequestGenerator;
use pleach_serving::llm::{Fleet, Lists, Requests, Router, Routing, ScorerRouter, simulate};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::compare::{Comparison, compare_on};
use super::gain::Gain;
use super::learn::{Keeper, distilled, learn, scorer, shown, trainer};
use super::race::best_of;
use super::rivals::strongest;
use super::routed::Routed;
use super::starts::starts;
use super::vector::Routings;
use super::{ServingConfig, tree};
use crate::error::Error;
use crate::progress::Watcher;
use crate::run_folder::{atomic_file, remove_temporaries};

/// Lists of each load on which rivals and trees are chosen. *Assumed.*
const CHOICE_LISTS: usize = 9;
/// Lists of each load that a network is shown, that it is looked at on, and of a round of distilling. *Assumed.*
const SHOWN_LISTS: usize = 2;
const VALIDATION_LISTS: usize = 4;
const DISTILL_LISTS: usize = 1;
/// Environments of PPO for each load. *Assumed.*
const ENVS: usize = 2;
/// Most bytes of settings.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// In a folder: what a training was asked for, where it stands, its best network, the tree made of it.
const FILES: [&str; 4] = ["settings.json", "training.ckpt", "network.ckpt", "tree.json"];

/// How a network is trained that routes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoutingTraining {
    /// Rates of the lists over that of the configuration.
    pub rates: Vec<f64>,
    /// A tree that is imitated; none: the best rule by hand.
    pub teacher: Option<PathBuf>,
    /// Most leaves of the tree that is made of the network.
    pub leaves: usize,
    /// Lists of each rate on which the result is judged.
    pub judge_lists: usize,
    /// The learner and the network; `evolution.num_workloads` are lists of each rate.
    pub train: TrainConfig,
}

impl Default for RoutingTraining {
    fn default() -> RoutingTraining {
        RoutingTraining {
            rates: vec![0.9, 1.0, 1.1],
            teacher: None,
            leaves: 16,
            judge_lists: 20,
            train: TrainConfig {
                learner: Learner::EVOLUTION,
                num_updates: 40,
                // Whole episodes of PPO.
                num_steps: 4_096,
                horizon_s: 30.0,
                // A clone that decides well is spoiled by values that are not learnt yet, and by wide steps. *Assumed.*
                value_warmup_updates: 5,
                ppo: PpoConfig {
                    entropy_coef: 0.001,
                    learning_rate: 2e-4,
                    learning_rate_final: 2e-5,
                    ..PpoConfig::default()
                },
                network: NetworkConfig {
                    hidden: 16,
                    context: 16,
                    ..NetworkConfig::default()
                },
                evolution: EvolutionConfig {
                    num_pairs: 8,
                    num_workloads: 1,
                    sigma: 0.05,
                    ..EvolutionConfig::default()
                },
                ..TrainConfig::default()
            },
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct TrainedRouter {
    /// Of each rate: the strongest rule, the teacher, the network and its tree, on fresh lists.
    pub judged: Vec<(f64, Comparison)>,
    /// Points of hits over the strongest rule of each rate, over all fresh lists: imitated tree, network, its tree.
    pub gains: [Gain; 3],
    /// Points of hits of the network over the imitated tree.
    pub learned: Gain,
}

impl TrainedRouter {
    /// The result in two sentences.
    #[must_use]
    pub fn verdict(&self) -> String {
        let [teacher, network, tree] = self.gains;
        let first = if self.learned.is_sure() {
            "The network is ahead of the tree that it imitated"
        } else {
            "Nothing was learned beyond the tree that was imitated"
        };
        format!(
            "{first}: {} points of hits.\nOver the strongest rule of each rate: the imitated tree {teacher}, the network {network}, the \
             tree made of it {tree}.",
            self.learned
        )
    }
}

/// From where to where in a given list the lists of a stream are.
fn part_of(name: &str) -> (f64, f64) {
    match name {
        "validation" => (0.5, 0.65),
        "choice" => (0.65, 0.8),
        "judge" => (0.8, 1.0),
        _ => (0.0, 0.5),
    }
}

/// What a folder was asked for.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    serving: ServingConfig,
    training: RoutingTraining,
    seed: u64,
}

/// Lists of a configuration, streams by name.
struct Drawn<'a> {
    config: &'a ServingConfig,
    rates: &'a [f64],
    /// A list that is given, read once.
    whole: Option<Requests>,
    root: Seed,
}

impl Drawn<'_> {
    fn at(&self, name: &str, rate: f64, number: u64, num: usize) -> Result<Vec<Requests>, Error> {
        let seed = self.root.child(name, (rate * 1e6) as u64).child("number", number);
        self.config
            .of_whole(self.whole.as_ref(), part_of(name), seed, num, rate)
    }

    /// So many of each rate, a list of each in turn.
    fn of_all(&self, name: &str, number: u64, num: usize) -> Result<Vec<Requests>, Error> {
        let of_each = self.rates.iter().map(|rate| self.at(name, *rate, number, num));
        let mut of_each: Vec<_> = of_each
            .map(|lists| Ok(lists?.into_iter()))
            .collect::<Result<_, Error>>()?;
        Ok((0..num)
            .flat_map(|_| of_each.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>())
            .collect())
    }
}

/// Trains in a folder, or goes on there, and judges.
///
/// # Errors
/// Settings out of range, a folder of another training, a run that fails.
pub fn train_router(
    config: &ServingConfig,
    settings: &RoutingTraining,
    seed: u64,
    folder: &Path,
    watcher: &Watcher,
) -> Result<TrainedRouter, Error> {
    let fleet = config.fleet()?;
    let asked = Asked {
        serving: config.clone(),
        training: settings.clone(),
        seed,
    };
    settings.train.check()?;
    enter(folder, &asked)?;
    let drawn = Drawn {
        config,
        rates: &settings.rates,
        whole: config.whole()?,
        root: Seed(seed).child("serving", 2),
    };
    let game = Routed {
        fleet: &fleet,
        without: Vec::new(),
    };
    let teacher = teacher(&game, settings, &drawn)?;
    let [_, _, network, tree] = FILES.map(|name| folder.join(name));
    learned(&game, settings, &teacher, &drawn, folder, watcher)?;
    let network = TrainedNetwork::load(&network)?;
    let draw = |name: &str, number: u64| drawn.of_all(name, number, DISTILL_LISTS);
    let trees = distilled(
        &game,
        &network,
        (settings.leaves, &teacher.meta().key_weights),
        &draw,
    )?;
    let choice = drawn.of_all("choice", 0, CHOICE_LISTS)?;
    let made = best_of(&game, trees, &choice.iter().collect::<Vec<_>>(), 3)?;
    atomic_file::write(&tree, made.to_json().as_bytes())?;
    judged(&game, [&teacher, &made], &network, settings, &drawn)
}

/// Makes the folder of a training, or finds that it is of this one.
fn enter(folder: &Path, asked: &Asked) -> Result<(), Error> {
    let path = folder.join(FILES[0]);
    std::fs::create_dir_all(folder).map_err(|error| Error::io("make", folder, error))?;
    // What a training before was killed at.
    let clear = || remove_temporaries(folder).map_err(|error| Error::io("read", folder, error));
    if !path.exists() {
        clear()?;
        return atomic_file::write_json(&path, asked);
    }
    let found: Asked = atomic_file::read_json(&path, SETTINGS_BYTES_MAX)?;
    if found == *asked {
        return clear();
    }
    let allowed = "a folder of the same requests, fleet, settings and seed, or a new one";
    let hint = format!(
        "{} says what it was asked for; take another folder",
        path.display()
    );
    Err(Error::config("to", folder.display(), allowed, hint))
}

/// The tree that is imitated: a file's, or the rule by hand with the fewest misses.
fn teacher(game: &Routed<'_>, settings: &RoutingTraining, drawn: &Drawn<'_>) -> Result<Tree, Error> {
    if let Some(path) = &settings.teacher {
        return tree(path);
    }
    let lists = drawn.of_all("teacher", 0, CHOICE_LISTS)?;
    best_of(game, starts(game)?, &lists.iter().collect::<Vec<_>>(), 3)
}

/// Trains to the end, from where the folder stands.
fn learned(
    game: &Routed<'_>,
    settings: &RoutingTraining,
    teacher: &Tree,
    drawn: &Drawn<'_>,
    folder: &Path,
    watcher: &Watcher,
) -> Result<(), Error> {
    let [_, training, best, _] = FILES.map(|name| folder.join(name));
    let mut trainer = if training.exists() {
        Trainer::resume(Checkpoint::load(&training)?)?
    } else {
        let fleet = game.fleet;
        let num_rows = fleet.num_replicas + usize::from(fleet.may_refuse);
        let mut trainer = trainer(game, num_rows, settings.train, drawn.root)?;
        let lists = drawn.of_all("shown", 0, SHOWN_LISTS)?;
        watcher.part("imitate", 0, || {
            let shown = shown(game, trainer.contract().spaces, teacher, &lists)?;
            trainer.warm_start(&shown).map_err(Error::from)
        })?;
        trainer
    };
    let draw = |name: &str, number: u64| {
        let num = if name == "validation" {
            VALIDATION_LISTS
        } else {
            settings.train.evolution.num_workloads
        };
        drawn.of_all(name, number, num)
    };
    let mut keeper = Keeper {
        training: &mut |trainer| Ok(trainer.checkpoint().save(&training)?),
        best: &mut |network| Ok(network.save(&best)?),
    };
    let mut envs = environments(settings, game.fleet, drawn)?;
    learn(game, &mut trainer, &mut envs, &draw, &mut keeper, watcher)
}

/// What PPO steps through: lists of as many requests as it takes steps in an update, or parts of a list that is given.
fn environments(settings: &RoutingTraining, fleet: &Fleet, drawn: &Drawn<'_>) -> Result<Routings, Error> {
    let num_requests = settings.train.num_steps as u32;
    let mut envs = Vec::new();
    for &rate in &settings.rates {
        let lists = match &drawn.config.requests {
            Some(_) => Lists::Given(drawn.at("generation", rate, 0, ENVS)?),
            None => Lists::Drawn(RequestGenerator {
                num_requests,
                rate_per_s: drawn.config.rate_per_s * drawn.config.faster * rate,
                ..drawn.config.generator()
            }),
        };
        for _ in 0..ENVS {
            envs.push(Routing::new(fleet.clone(), lists.clone(), Reward::default())?);
        }
    }
    Ok(Routings::new(envs))
}

/// Makes a router anew.
type Open<'a> = dyn Fn() -> Result<Box<dyn Router>, Error> + Sync + 'a;

fn judged(
    game: &Routed<'_>,
    [teacher, made]: [&Tree; 2],
    network: &TrainedNetwork,
    settings: &RoutingTraining,
    drawn: &Drawn<'_>,
) -> Result<TrainedRouter, Error> {
    let fleet = game.fleet;
    let inference = Inference::new(&network.layout()?, &network.parameters)?;
    let of_network = || -> Result<Box<dyn Router>, Error> {
        let scorer = scorer(game, &network.contract, &inference)?;
        Ok(Box::new(ScorerRouter::new(scorer)?))
    };
    let of_tree =
        |tree: &Tree| -> Result<Box<dyn Router>, Error> { Ok(Box::new(ScorerRouter::of_tree(tree)?)) };
    let players: [(&str, &Open<'_>); 3] = [
        ("imitated tree", &|| of_tree(teacher)),
        ("network", &of_network),
        ("its tree", &|| of_tree(made)),
    ];
    let (mut tables, mut hits) = (Vec::new(), [const { Vec::new() }; 4]);
    for &rate in &settings.rates {
        let rival = strongest(&drawn.at("tune", rate, 0, CHOICE_LISTS)?, fleet, drawn.root.0)?;
        let lists = drawn.at("judge", rate, 0, settings.judge_lists)?;
        let mut table = compare_on(&lists, fleet, &[], &[rival], drawn.root.0)?;
        for (name, router) in players {
            let outcomes = lists
                .par_iter()
                .map(|list| Ok(simulate(list, fleet, router()?.as_mut())?));
            table.join(name, &outcomes.collect::<Result<Vec<_>, Error>>()?, fleet);
        }
        for (hits, row) in hits.iter_mut().zip(&table.routers) {
            hits.extend_from_slice(&row.by_list);
        }
        tables.push((rate, table));
    }
    Ok(TrainedRouter {
        judged: tables,
        gains: [1, 2, 3].map(|player| Gain::of(&hits[player], &hits[0])),
        learned: Gain::of(&hits[2], &hits[1]),
    })
}
