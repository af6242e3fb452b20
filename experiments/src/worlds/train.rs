//! A network of a world: it imitates the best rule by hand, is trained by a learner of the registry, is judged against the strongest
//! rule, and becomes a tree.
//!
//! Streams of lists share nothing: rules and the teacher are chosen on *tune* and *teacher*, the network learns on *generation*, the
//! best one and the best tree are taken on *validation* and *choice*, and all are judged on *judge*.

use std::path::{Path, PathBuf};

use pleach_agents::evolution::EvolutionConfig;
use pleach_agents::learner::{Plays, way};
use pleach_agents::ppo::PpoConfig;
use pleach_agents::{Checkpoint, Learner, TrainConfig, Trainer};
use pleach_env::Seed;
use pleach_network::{Inference, NetworkConfig, NetworkScorer, TrainedNetwork};
use pleach_scheduler::tree::Tree;
use pleach_serving::Environment;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::learn::{Keeper, check_learner, distilled, learn, shown, trainer};
use super::race::{Game, best_of};
use super::search::{Judge, Searched, is_ahead, strongest, verdict};
use super::vector::Together;
use super::world::{Draw, Player, Verb, World, tree_over};
use crate::error::Error;
use crate::evaluate::gain::Gain;
use crate::progress::Watcher;
use crate::run_folder::{atomic_file, remove_temporaries};

/// Lists of each load on which rules and trees are chosen. *Assumed.*
const CHOICE_LISTS: usize = 9;
/// Lists of each load that a network is shown, that it is looked at on, and of a round of distilling. *Assumed.*
const SHOWN_LISTS: usize = 2;
const VALIDATION_LISTS: usize = 4;
const DISTILL_LISTS: usize = 1;
/// Rows of a decision in a world without environments: what buffers begin with. *Assumed.*
const ROWS: usize = 512;
/// Environments of a learner that steps, for each load. *Assumed.*
const ENVS: usize = 2;
/// Most bytes of settings.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// In a folder: what a training was asked for, where it stands, its best network, the tree made of it.
const FILES: [&str; 4] = ["settings.json", "training.ckpt", "network.ckpt", "tree.json"];

/// How a network is trained in a world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Training {
    /// Loads of the lists; none: those that the world names.
    pub loads: Vec<f64>,
    /// A tree that is imitated; none: the best rule by hand.
    pub teacher: Option<PathBuf>,
    /// Most leaves of the tree that is made of the network.
    pub leaves: usize,
    /// Lists of each load on which the result is judged.
    pub judge_lists: usize,
    /// The learner and the network; `evolution.num_workloads` are lists of each load.
    pub train: TrainConfig,
}

impl Default for Training {
    fn default() -> Training {
        Training {
            loads: Vec::new(),
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

/// What a folder was asked for.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    world: String,
    settings: Value,
    training: Training,
    seed: u64,
}

/// A training in a folder.
struct Run<'a, W> {
    game: Game<'a, W>,
    training: &'a Training,
    loads: Vec<f64>,
    seed: u64,
    folder: &'a Path,
    watcher: &'a Watcher,
}

/// Trains in a folder, or goes on there, and judges. `settings` are the world's, so that a folder is not taken for another's.
///
/// # Errors
/// Settings out of range, a folder of another training, a run that fails.
pub fn train<W: World>(
    world: &W,
    settings: Value,
    (training, seed): (&Training, u64),
    folder: &Path,
    watcher: &Watcher,
) -> Result<Searched, Error> {
    training.train.check()?;
    check_learner(way(training.train.learner))?;
    let asked = Asked {
        world: world.name().into(),
        settings,
        training: training.clone(),
        seed,
    };
    enter(folder, &asked)?;
    let run = Run {
        game: Game {
            world,
            without: Vec::new(),
        },
        training,
        loads: match training.loads.as_slice() {
            [] => world.habits().loads,
            given => given.to_vec(),
        },
        seed,
        folder,
        watcher,
    };
    let envs = run.environments()?;
    let teacher = run.teacher()?;
    run.learned(&teacher, envs)?;
    let [_, _, network, tree] = FILES.map(|name| folder.join(name));
    let network = TrainedNetwork::load(&network)?;
    let draw = |name: &str, number: u64| run.of_all(name, number, DISTILL_LISTS);
    let key = &teacher.meta().key_weights;
    let trees = distilled(&run.game, &network, (training.leaves, key), &draw)?;
    let choice = run.of_all("choice", 0, CHOICE_LISTS)?;
    let made = best_of(&run.game, trees, &choice.iter().collect::<Vec<_>>(), 3)?;
    atomic_file::write(&tree, made.to_json().as_bytes())?;
    run.judged(&teacher, made, &network)
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
    let allowed = "a folder of the same world, settings and seed, or a new one";
    let hint = format!(
        "{} says what it was asked for; take another folder",
        path.display()
    );
    Err(Error::config("out", folder.display(), allowed, hint))
}

impl<W: World> Run<'_, W> {
    fn at(&self, stream: &str, load: f64, number: u64, num: usize) -> Result<Vec<W::List>, Error> {
        self.game.world.draw(Draw {
            verb: Verb::Train,
            seed: self.seed,
            stream,
            number,
            load,
            num,
        })
    }

    /// So many of each load, a list of each in turn.
    fn of_all(&self, stream: &str, number: u64, num: usize) -> Result<Vec<W::List>, Error> {
        let of_each = self.loads.iter().map(|load| self.at(stream, *load, number, num));
        let mut of_each: Vec<_> = of_each
            .map(|lists| Ok(lists?.into_iter()))
            .collect::<Result<_, Error>>()?;
        Ok((0..num)
            .flat_map(|_| of_each.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>())
            .collect())
    }

    /// The tree that is imitated: a file's, or the rule by hand with the fewest misses.
    fn teacher(&self) -> Result<Tree, Error> {
        if let Some(path) = &self.training.teacher {
            return tree_over(self.game.schema().0, path);
        }
        let lists = self.of_all("teacher", 0, CHOICE_LISTS)?;
        let starts = self.game.world.starts(&[])?;
        best_of(&self.game, starts, &lists.iter().collect::<Vec<_>>(), 3)
    }

    /// Environments of each load in which the learner steps.
    fn environments(&self) -> Result<Vec<Box<dyn Environment>>, Error> {
        let world = self.game.world;
        let mut envs = Vec::new();
        for &load in &self.loads {
            let draw = Draw {
                verb: Verb::Train,
                seed: self.seed,
                stream: "generation",
                number: 0,
                load,
                num: ENVS,
            };
            envs.extend(world.environments(draw, self.training.train.num_steps)?);
        }
        let steps = way(self.training.train.learner).plays() == Plays::Steps;
        Error::refuse_if(
            envs.is_empty() && steps,
            "train.learner",
            way(self.training.train.learner).name(),
            "a learner that plays lists",
            format_args!("{} has lists and no steps: evolution learns there", world.name()),
        )?;
        Ok(envs)
    }

    /// Trains to the end, from where the folder stands.
    fn learned(&self, teacher: &Tree, envs: Vec<Box<dyn Environment>>) -> Result<(), Error> {
        let [_, training, best, _] = FILES.map(|name| self.folder.join(name));
        let config = self.training.train;
        let mut trainer = if training.exists() {
            Trainer::resume(Checkpoint::load(&training)?)?
        } else {
            let num_rows = envs.first().map_or(ROWS, |env| env.rows().mask.len());
            let root = Seed(self.seed).child("serving", 2);
            let mut trainer = trainer(&self.game, num_rows, config, root)?;
            let lists = self.of_all("shown", 0, SHOWN_LISTS)?;
            self.watcher.part("imitate", 0, || {
                let shown = shown(&self.game, trainer.contract().spaces, teacher, &lists)?;
                trainer.warm_start(&shown).map_err(Error::from)
            })?;
            trainer
        };
        let draw = |name: &str, number: u64| {
            let num = match name {
                "validation" => VALIDATION_LISTS,
                _ => config.evolution.num_workloads,
            };
            self.of_all(name, number, num)
        };
        let mut keeper = Keeper {
            training: &mut |trainer| Ok(trainer.checkpoint().save(&training)?),
            best: &mut |network| Ok(network.save(&best)?),
        };
        let mut envs = Together::new(envs);
        learn(
            &self.game,
            &mut trainer,
            &mut envs,
            &draw,
            &mut keeper,
            self.watcher,
        )
    }

    fn judged(&self, teacher: &Tree, made: Tree, network: &TrainedNetwork) -> Result<Searched, Error> {
        let world = self.game.world;
        let inference = Inference::new(&network.layout()?, &network.parameters)?;
        let scorer = NetworkScorer::new(self.game.schema().0, &network.contract, inference)?;
        let mut rivals = Vec::new();
        for &load in &self.loads {
            let tune = self.at("tune", load, 0, CHOICE_LISTS)?;
            rivals.push((
                load,
                strongest(world, &tune, world.habits().tune_lists.1, self.seed)?,
            ));
        }
        let judge = Judge {
            lists: &|load| self.at("judge", load, 0, self.training.judge_lists),
            rivals,
            own: &[
                ("imitated tree", &|| Player::tree(teacher)),
                ("network", &|| Player::Scorer(Box::new(scorer.clone()))),
                ("its tree", &|| Player::tree(&made)),
            ],
            seed: self.seed,
        };
        let (judged, gains) = judge.judged(world, self.watcher)?;
        let metric = &world.metrics()[0];
        let all = |name: &str| -> Vec<f64> {
            let values = judged.at.iter().map(|at| at.results.values(name, metric.key));
            values.flatten().collect()
        };
        let learned = Gain::by(metric.versus, &all("network"), &all("imitated tree"));
        let first = if is_ahead(metric, &learned) {
            "The network is ahead of the tree that it imitated"
        } else {
            "Nothing was learned beyond the tree that was imitated"
        };
        let over: Vec<String> = ["imitated tree", "network", "its tree"]
            .iter()
            .zip(&gains)
            .map(|(what, gains)| format!("{what} {}", gains[0]))
            .collect();
        let verdict = format!(
            "{first}: {learned} in {}. {}\nOver the strongest rule of each load: {}.",
            metric.label,
            verdict(
                world,
                ("tree made of the network", "its tree"),
                &gains[2],
                &judged
            ),
            over.join(", ")
        );
        Ok(Searched {
            tree: made.clone(),
            judged,
            gains: gains[2].clone(),
            verdict,
        })
    }
}
