//! A world: lists that are drawn, policies that play them, figures of each play. Every verb is written over this and knows no more.

use std::path::Path;

use pleach_network::{NetworkScorer, TrainedNetwork};
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::tree::{FlatTree, MAX_BYTES, Tree};
use pleach_scheduler::{Problem, Scorer};
use pleach_serving::Environment;

use super::compared::{Beside, Comparing};
use crate::error::Error;
use crate::evaluate::metric::Metric;
use crate::evaluate::results::{PolicyRun, Results};
use crate::plot::Plot;
use crate::progress::Watcher;
use crate::report::Report;
use crate::run_folder::atomic_file;

/// Makes choices in a play.
pub enum Player<'a> {
    /// A rule by name, with settings after colons.
    Rule(&'a str),
    /// What scores rows.
    Scorer(Box<dyn Scorer>),
    /// What scores rows, ties by the key of a tree.
    Keyed(Box<dyn Scorer>, &'a Tree),
}

impl<'a> Player<'a> {
    /// A tree with its key.
    #[must_use]
    pub fn tree(tree: &'a Tree) -> Player<'a> {
        Player::Keyed(Box::new(FlatTree::of(tree)), tree)
    }
}

/// What a list is drawn for. Verbs share no list, nor do two streams of a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A comparison of policies.
    Compare,
    /// A search for a tree.
    Search,
    /// A training of a network.
    Train,
}

/// Which lists are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Draw<'a> {
    /// What for.
    pub verb: Verb,
    /// Root of all randomness.
    pub seed: u64,
    /// The stream.
    pub stream: &'a str,
    /// Which draw of the stream.
    pub number: u64,
    /// Load of the lists over that of the world's settings.
    pub load: f64,
    /// How many lists.
    pub num: usize,
}

/// Of which play it is the turn.
#[derive(Default)]
pub struct Turn<'a> {
    /// Place of the list among those of the verb, for rules that draw.
    pub place: u64,
    /// Where rules that draw draw from.
    pub seed: u64,
    /// Place of the form of the machines.
    pub form: usize,
    /// Makes the choices of a second stage, where the form has one.
    pub second: Option<Player<'a>>,
    /// Hears of the steps of the play.
    pub watcher: Option<&'a Watcher>,
}

impl Turn<'_> {
    /// That of a list.
    #[must_use]
    pub fn of(place: u64) -> Turn<'static> {
        Turn {
            place,
            ..Turn::default()
        }
    }
}

/// What a play comes to in a search: less is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Share of requests that miss their targets, 0 to 1, or what else is to be little.
    pub misses: f64,
    /// A tail of the latency, s, above 0.
    pub tail_s: f64,
    /// What is to be little among rules that miss alike.
    pub cost: f64,
}

/// How trees are searched for and networks are trained where nothing else is said.
#[derive(Clone, Debug, PartialEq)]
pub struct Habits {
    /// Loads of the lists, side by side.
    pub loads: Vec<f64>,
    /// Lists of each load on which rules are tuned, and how many of them all rules play.
    pub tune_lists: (usize, usize),
    /// Lists of each load on which one of the kept trees is taken.
    pub choice_lists: usize,
    /// How many of them all kept trees play.
    pub first_of_choice: usize,
    /// Lists of each load on which the result is judged.
    pub judge_lists: usize,
    /// The search.
    pub search: pleach_distill::search::SearchConfig,
}

impl Default for Habits {
    /// At the load of the settings, as many lists as requests have. *Assumed.*
    fn default() -> Habits {
        Habits {
            loads: vec![1.0],
            tune_lists: (27, 1),
            choice_lists: 27,
            first_of_choice: 3,
            judge_lists: 20,
            search: pleach_distill::search::SearchConfig::default(),
        }
    }
}

/// What is compared, searched in, learned in and explained.
pub trait World: Send + Sync {
    /// One list.
    type List: Send + Sync;
    /// What became of it.
    type Outcome: Send + Sync;

    /// One word.
    fn name(&self) -> &'static str;

    /// Figures of a play; policies are held against each other by the first.
    fn metrics(&self) -> &'static [Metric];

    /// Those that a table shows of these results; all that there are where nothing else is said.
    fn columns(&self, results: &Results) -> Vec<&'static str> {
        results.known().iter().map(|metric| metric.key).collect()
    }

    /// The same for a report, which has room for more.
    fn report_columns(&self, results: &Results) -> Vec<&'static str> {
        self.columns(results)
    }

    /// What policies read.
    fn schema(&self) -> (&'static FeatureSchema, View);

    /// Policies that are compared where none are named.
    fn policies(&self) -> Vec<String>;

    /// Policies by name or file.
    ///
    /// # Errors
    /// A name that is not there, a file of something else.
    fn opened(&self, names: &[String]) -> Result<Vec<Policy>, Error> {
        let schema = self.schema().0;
        names.iter().map(|name| Policy::open(name, schema)).collect()
    }

    /// Loads at which lists are compared, and lists of each.
    fn asked(&self) -> (Vec<f64>, usize);

    /// Draws lists.
    ///
    /// # Errors
    /// Settings that cannot be drawn from.
    fn draw(&self, draw: Draw<'_>) -> Result<Vec<Self::List>, Error>;

    /// Forms of the machines beside which each policy is compared, by name: one without a name where nothing else is said.
    fn forms(&self) -> Vec<String> {
        vec![String::new()]
    }

    /// Plays a list.
    ///
    /// # Errors
    /// A rule that is not there, a tree of other columns.
    fn play(&self, list: &Self::List, turn: Turn<'_>, player: Player<'_>) -> Result<Self::Outcome, Error>;

    /// Steps of progress that a play reports; 0: none.
    fn steps(&self, _list: &Self::List) -> usize {
        0
    }

    /// Figures of a play by key; those that are not finite are left out.
    fn figures(&self, outcome: &Self::Outcome) -> Vec<(&'static str, f64)>;

    /// The runs of policies on the list of a place and load, as results have them: the figures, unless a world knows more.
    ///
    /// # Errors
    /// A run that cannot be.
    fn runs(
        &self,
        _list: &Self::List,
        (place, load): (usize, f64),
        plays: &[(&str, &Self::Outcome)],
    ) -> Result<Vec<PolicyRun>, Error> {
        let workload = match load {
            1.0 => self.name().to_string(),
            load => format!("{} x{load}", self.name()),
        };
        let run = |(name, outcome): &(&str, &Self::Outcome)| {
            let figures = self.figures(outcome).into_iter();
            let figures = figures.filter(|(_, value)| value.is_finite());
            PolicyRun {
                policy: (*name).to_string(),
                workload: workload.clone(),
                seed: place as u64,
                metrics: figures.map(|(key, value)| (key.to_string(), value)).collect(),
                ..PolicyRun::default()
            }
        };
        Ok(plays.iter().map(run).collect())
    }

    /// Results with what the world knows of them beside the runs.
    ///
    /// # Errors
    /// Settings that cannot be read.
    fn with_facts(&self, results: Results, _lists: &[Self::List]) -> Result<Results, Error> {
        Ok(results)
    }

    /// What a comparison of plays `[policy][list]` tells beside its scores, of what was asked for.
    ///
    /// # Errors
    /// A run that fails.
    fn beside(
        &self,
        _lists: &[Self::List],
        _played: (&Results, &mut [Vec<Self::Outcome>]),
        _asked: &Comparing,
        _watcher: &Watcher,
    ) -> Result<Beside, Error> {
        Ok(Beside::default())
    }

    /// The world with one thing after the other taken away, of what it has, and the lists that change by that.
    fn without<'a>(&'a self, _lists: &'a [Self::List]) -> Box<dyn Iterator<Item = Without<Self>> + 'a>
    where
        Self: Sized,
    {
        Box::new(std::iter::empty())
    }

    /// Policies that others are held against: the first, unless a world says otherwise.
    fn reference(&self, names: &[String], _figures: &[Vec<Vec<(&'static str, f64)>>]) -> usize {
        let _ = names;
        0
    }

    /// What a search makes little.
    fn loss(&self, outcome: &Self::Outcome) -> Loss;

    /// How trees are searched for.
    fn habits(&self) -> Habits {
        Habits::default()
    }

    /// Groups of rules, of each of which the strongest is to be beaten.
    fn rivals(&self) -> Vec<Vec<String>> {
        vec![self.policies()]
    }

    /// Tunes what rules and losses need before a search, on lists of the stream *tune*.
    ///
    /// # Errors
    /// A run that fails.
    fn tune(&mut self, _lists: &[Self::List], _watcher: &Watcher) -> Result<(), Error> {
        Ok(())
    }

    /// The rules to beat, by name, one of each group; chosen on the lists *tune*, brought to what is asked for on the lists *choice*.
    /// None: the strongest of each group of [`World::rivals`] on the lists *tune*.
    ///
    /// # Errors
    /// A run that fails.
    fn settled_rivals(
        &mut self,
        _choice: &[Self::List],
        _watcher: &Watcher,
    ) -> Result<Option<Vec<String>>, Error> {
        Ok(None)
    }

    /// A tree brought to what is asked for.
    ///
    /// # Errors
    /// A run that fails.
    fn settled(&self, tree: Tree, _choice: &[Self::List], _watcher: &Watcher) -> Result<Tree, Error> {
        Ok(tree)
    }

    /// Words on a policy that was found, by its name in the scores: whether its win counts, given whether the interval says so, and what
    /// else is to be known.
    fn remarks(&self, _own: &str, is_sure: bool, _judged: &[(f64, &Results)]) -> (bool, String) {
        (is_sure, String::new())
    }

    /// Rules by hand as trees over the columns that may be read; none: no tree is searched for here.
    ///
    /// # Errors
    /// A tree that cannot be.
    fn starts(&self, _without: &[u16]) -> Result<Vec<Tree>, Error> {
        Ok(Vec::new())
    }

    /// Environments in which a learner steps, all with as many rows; a world without one trains no network.
    ///
    /// # Errors
    /// Settings that cannot be played.
    fn environments(&self, _draw: Draw<'_>, _num_steps: usize) -> Result<Vec<Box<dyn Environment>>, Error> {
        Ok(Vec::new())
    }

    /// Whether a decision takes one of its rows; else all of them are put in an order.
    fn chooses_one(&self) -> bool {
        true
    }

    /// A row of a decision that has so many, in a word or two.
    fn row_name(&self, row: usize, _num_rows: usize) -> String {
        format!("row {row}")
    }

    /// What was read of a given list, and what was left out.
    fn account(&self) -> Vec<String> {
        Vec::new()
    }

    /// Lines under a table.
    fn notes(&self, _results: &Results) -> Vec<String> {
        Vec::new()
    }

    /// Plots of plays `[policy][list]`.
    fn plots(&self, _names: &[String], _outcomes: &[Vec<Self::Outcome>]) -> Vec<Plot> {
        Vec::new()
    }

    /// What the first list of a comparison is like.
    ///
    /// # Errors
    /// A list that cannot be read.
    fn describe(&self, seed: u64) -> Result<Description, Error>;

    /// Writes the first list of a comparison, and says what was written.
    ///
    /// # Errors
    /// A world whose lists have no file, what the system says.
    fn write(&self, _path: &Path, _seed: u64) -> Result<String, Error> {
        let hint = "Requests can be written: --workload requests.";
        Err(Error::config(
            "workload",
            self.name(),
            "a world whose lists have a file",
            hint,
        ))
    }
}

/// A world without one thing that it had.
pub struct Without<W: World> {
    /// The world as it is then.
    pub words: &'static str,
    /// The world.
    pub world: W,
    /// The lists; none: as they were.
    pub lists: Option<Vec<W::List>>,
}

/// What a list is like.
pub struct Description {
    /// What a terminal shows.
    pub said: String,
    /// The figures with their plots.
    pub report: Report,
    /// All figures for programs.
    pub json: serde_json::Value,
}

/// A policy that was opened: a rule by name, or a file that scores rows.
#[derive(Clone)]
pub enum Policy {
    /// A rule.
    Rule(String),
    /// A tree by its file.
    Tree(Box<Tree>),
    /// A network by its file.
    Network(Box<NetworkScorer>),
}

impl Policy {
    /// Of a text: a file with a tree or a network over the rows of a schema, or else the name of a rule.
    ///
    /// # Errors
    /// A file that is of other rows.
    pub fn open(text: &str, schema: &'static FeatureSchema) -> Result<Policy, Error> {
        let path = Path::new(text);
        let path = match path.join("tree.json") {
            tree if tree.is_file() => tree,
            _ => path.into(),
        };
        Ok(match path.extension().and_then(std::ffi::OsStr::to_str) {
            Some("json") => Policy::Tree(Box::new(tree_over(schema, &path)?)),
            Some("ckpt" | "onnx") => Policy::Network(Box::new(NetworkScorer::over(
                schema,
                &TrainedNetwork::load(&path)?,
            )?)),
            _ => Policy::Rule(text.to_string()),
        })
    }

    /// One play of it.
    #[must_use]
    pub fn player(&self) -> Player<'_> {
        match self {
            Policy::Rule(name) => Player::Rule(name),
            Policy::Tree(tree) => Player::tree(tree),
            Policy::Network(scorer) => Player::Scorer(scorer.clone()),
        }
    }
}

/// A tree of a schema.
///
/// # Errors
/// A file that is none.
pub fn tree_over(schema: &'static FeatureSchema, path: &Path) -> Result<Tree, Error> {
    let text = atomic_file::read_text(path, MAX_BYTES)?;
    Tree::from_json_over(schema, &text).map_err(|error| Error::data(path, error.to_string()))
}

/// Numbers of columns by name.
///
/// # Errors
/// A name that is not there.
pub(crate) fn columns_named(schema: &FeatureSchema, names: &[String]) -> Result<Vec<u16>, Error> {
    let numbers = names.iter().map(|name| {
        let known = || schema.features.iter().map(|feature| feature.name);
        let number = schema.joined_index(name).ok_or_else(|| {
            let allowed = known().collect::<Vec<_>>().join(", ");
            Error::from(Problem::new("without", name, allowed, "Leave it out."))
        });
        Ok(number? as u16)
    });
    numbers.collect()
}
