//! A service of a language model beside training jobs on the same GPUs: autoscalers lease GPUs for replicas. What is to be much is the
//! training that they leave, at a share of requests within both targets.

mod bench;
mod environment;
mod settings;
mod starts;
#[cfg(test)]
mod tests;
mod timeline;
mod tuned;

use std::sync::Arc;

use pleach_distill::search::SearchConfig;
use pleach_env::Seed;
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::tree::Tree;
use pleach_serving::Environment;
use pleach_serving::llm::{
    AUTOSCALERS, AUTOSCALING, AUTOSCALING_1, Autoscaler, ScorerAutoscaler, autoscaler,
};
use rayon::prelude::*;

use super::requests::extrapolation;
use super::world::{Description, Draw, Habits, Loss, Player, Turn, Verb, World};
use crate::error::Error;
use crate::evaluate::metric::Metric;
use crate::evaluate::results::Results;
use crate::figures;
use crate::plot::Plot;
use crate::progress::{Progress, Watcher};

use self::timeline::Played;
use self::tuned::{Level, Rule, mean_of, tuned, worth_gpu_h};

pub use bench::{Day, MixedBench};
pub use environment::Scaling;
pub use settings::ServiceSettings;
pub use timeline::{MixedDay, Timeline};

figures! {
    |_world: &ServiceWorld, day: &MixedDay|
    "training_gpu_h", "training GPU h", 1, Higher, Percent, "work of jobs that was done and kept"
        => day.training_gpu_h;
    "hits_pct", "hits %", 2, Higher, Points, "requests within both targets"
        => day.hits_pct;
    "serving_gpu_h", "serving GPU h", 1, Neither, Percent, "held by replicas"
        => day.serving_gpu_h;
    "held_gpu_h", "held GPU h", 1, Neither, Percent, "held by jobs"
        => day.held_gpu_h;
    "idle_gpu_h", "idle GPU h", 1, Lower, Percent, "held by neither"
        => day.idle_gpu_h;
    "moves", "moves", 0, Neither, Points, "GPUs that were leased, one after another"
        => day.moves;
    "preemptions", "preempted", 0, Lower, Points, "jobs that were stopped for them"
        => day.preemptions;
    "lost_gpu_h", "lost GPU h", 1, Lower, Points, "held by jobs for starts and for work that was lost again"
        => day.lost_gpu_h;
    "returned", "returned", 0, Lower, Points, "requests that went back to the gateway"
        => day.returned;
    "num_requests", "requests", 0, Neither, Points, "requests of the day"
        => day.num_requests;
}
/// Columns of a table.
const COLUMNS: [&str; 7] = [
    "training_gpu_h",
    "hits_pct",
    "serving_gpu_h",
    "moves",
    "preemptions",
    "lost_gpu_h",
    "returned",
];

/// By how much less a tree may hit on fresh days and still be called ahead, points. *Assumed*: both sides are brought to the same
/// share on days that choose.
const HITS_SLACK_PCT: f64 = 0.05;
/// Targets at which rules that nothing tunes are brought to the hits. *Assumed.*
const TARGETS: [f64; 2] = [1.0, 0.74];

/// What a search tunes before trees race.
struct Tuned {
    /// Training that a miss is worth, GPU s.
    price_gpu_s: f64,
    rules: [Rule; 3],
    /// Settings of the rules at the end of what was tried.
    edges: Vec<String>,
}

/// A cluster with its service.
pub struct ServiceWorld {
    bench: Arc<MixedBench>,
    settings: ServiceSettings,
    tuned: Option<Tuned>,
}

impl ServiceWorld {
    /// Of settings.
    ///
    /// # Errors
    /// A setting that cannot be used, a list that cannot be read.
    pub fn new(settings: ServiceSettings) -> Result<ServiceWorld, Error> {
        Ok(ServiceWorld {
            bench: Arc::new(MixedBench::new(&settings)?),
            settings,
            tuned: None,
        })
    }

    /// The cluster with its service.
    #[must_use]
    pub fn bench(&self) -> &MixedBench {
        &self.bench
    }

    fn autoscaler(&self, player: Player<'_>) -> Result<Box<dyn Autoscaler>, Error> {
        let capacity_per_s = self.bench.capacity_per_s;
        Ok(match player {
            Player::Rule(name) => autoscaler(name, capacity_per_s)?,
            Player::Scorer(scorer) => Box::new(ScorerAutoscaler::new(scorer, capacity_per_s)?),
            Player::Keyed(scorer, tree) => Box::new(ScorerAutoscaler::keyed(scorer, tree, capacity_per_s)?),
        })
    }

    fn price_gpu_s(&self) -> f64 {
        self.tuned
            .as_ref()
            .map_or(self.settings.price_gpu_s, |tuned| tuned.price_gpu_s)
    }

    fn level<'a>(&'a self, watcher: &'a Watcher) -> Level<'a> {
        Level {
            bench: &self.bench,
            hits_pct: self.settings.hits_pct,
            watcher,
        }
    }
}

impl World for ServiceWorld {
    type List = Day;
    type Outcome = Played;

    fn name(&self) -> &'static str {
        "service"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn columns(&self, _results: &Results) -> Vec<&'static str> {
        COLUMNS.to_vec()
    }

    fn schema(&self) -> (&'static FeatureSchema, View) {
        (&AUTOSCALING, AUTOSCALING_1)
    }

    fn policies(&self) -> Vec<String> {
        let names = [
            "static:replicas=8",
            "reactive:target=0.85",
            "reactive:target=0.7",
            "forecast:target=0.85",
            "lyra:target=0.85",
            "oracle:target=0.85",
        ];
        names.map(str::to_string).to_vec()
    }

    fn asked(&self) -> (Vec<f64>, usize) {
        (vec![1.0], self.settings.lists.into())
    }

    fn draw(&self, draw: Draw<'_>) -> Result<Vec<Day>, Error> {
        let root = Seed(draw.seed);
        let seed = |day: u64| match draw.verb {
            Verb::Compare => root.child("mixed", day),
            _ => {
                let seed = root.child("autoscaler", 0).child(draw.stream, day);
                if draw.number > 0 {
                    seed.child("number", draw.number)
                } else {
                    seed
                }
            }
        };
        let days = (0..draw.num as u64).into_par_iter();
        days.map(|day| self.bench.day(seed(day), draw.load)).collect()
    }

    fn steps(&self, day: &Day) -> usize {
        day.num_steps()
    }

    fn play(&self, day: &Day, turn: Turn<'_>, player: Player<'_>) -> Result<Played, Error> {
        let mut autoscaler = self.autoscaler(player)?;
        match turn.watcher {
            Some(watcher) => self.bench.play_watched(day, autoscaler.as_mut(), watcher),
            None => self.bench.play(day, autoscaler.as_mut()),
        }
    }

    fn figures(&self, (day, _): &Played) -> Vec<(&'static str, f64)> {
        figures_of(self, day)
    }

    /// The part of all GPU time that was not worth anything.
    fn loss(&self, (day, _): &Played) -> Loss {
        Loss {
            misses: 1.0 - worth_gpu_h(day, self.price_gpu_s()) / self.bench.gpu_h(),
            tail_s: 1.0,
            cost: 0.0,
        }
    }

    fn habits(&self) -> Habits {
        Habits {
            loads: vec![1.0],
            tune_lists: (3, 3),
            choice_lists: 3,
            judge_lists: 10,
            first_of_choice: 1,
            search: SearchConfig {
                simulations: 400,
                rungs: vec![1, 2, 4],
                starts: 4,
                leaves_max: 16,
                // A miss is a miss, however late it is.
                tail_weight: 0.0,
                ..SearchConfig::default()
            },
        }
    }

    fn rivals(&self) -> Vec<Vec<String>> {
        let rules = AUTOSCALERS.iter().map(|rule| rule.name);
        // The split has no target, and the oracle is no rule but a bound.
        let rules = rules.filter(|name| !["static", "oracle"].contains(name));
        let at_targets = rules.flat_map(|name| TARGETS.map(|target| format!("{name}:target={target}")));
        vec![at_targets.collect()]
    }

    fn tune(&mut self, days: &[Day], watcher: &Watcher) -> Result<(), Error> {
        let level = self.level(watcher);
        let price_gpu_s = watcher.part("price of a miss", 0, || level.price_gpu_s(days))?;
        let rules = watcher.part("rules", 0, || tuned(&level, days, price_gpu_s))?;
        self.tuned = Some(Tuned {
            price_gpu_s,
            rules,
            edges: Vec::new(),
        });
        Ok(())
    }

    /// The rule that trains most and tuned `reactive`, each with as little reserve as the hits allow.
    fn settled_rivals(&mut self, days: &[Day], watcher: &Watcher) -> Result<Option<Vec<String>>, Error> {
        let Some(tuned) = &self.tuned else {
            return Ok(None);
        };
        let level = self.level(watcher);
        let least = |name: &dyn Fn(f64) -> String| {
            level.least(|reserve| {
                let name = name(reserve);
                let played = level.play(days, &name)?;
                Ok((name, played))
            })
        };
        let brought = watcher.part(
            "rules at the hits",
            0,
            || -> Result<Vec<(String, Vec<Played>)>, Error> {
                let mut all = Vec::new();
                for rule in &tuned.rules {
                    all.push(least(&|reserve| rule.text(1.0 / reserve))?);
                }
                let tuned_names = ["reactive", "seasonal"];
                for rule in AUTOSCALERS.iter().map(|rule| rule.name) {
                    if !tuned_names.contains(&rule) && !["static", "oracle"].contains(&rule) {
                        all.push(least(&|reserve| {
                            format!("{rule}:target={:.4}", TARGETS[1] / reserve)
                        })?);
                    }
                }
                Ok(all)
            },
        )?;
        let training = |place: usize| mean_of(&brought[place].1, |day| day.training_gpu_h);
        let best = (0..brought.len())
            .rev()
            .max_by(|one, other| training(*one).total_cmp(&training(*other)));
        let best = best.unwrap_or(0);
        let mut rivals = vec![brought[best].0.clone()];
        if best != 0 {
            rivals.push(brought[0].0.clone());
        }
        let mut edges = Vec::new();
        for place in [best, 0] {
            let keys = tuned.rules.get(place).map(Rule::edges).unwrap_or_default();
            edges.extend(keys.iter().map(|key| format!("{key} of {}", brought[place].0)));
        }
        edges.dedup();
        if let Some(tuned) = &mut self.tuned {
            tuned.edges = edges;
        }
        Ok(Some(rivals))
    }

    /// The same tree with as little reserve as the hits allow.
    fn settled(&self, tree: Tree, days: &[Day], watcher: &Watcher) -> Result<Tree, Error> {
        let level = self.level(watcher);
        let (tree, _) = watcher.part("trees at the hits", 0, || {
            level.least(|reserve| {
                let tree = starts::with_reserve(&tree, reserve)?;
                let played = days
                    .par_iter()
                    .map(|day| self.play(day, Turn::default(), Player::tree(&tree)));
                let played = played.collect::<Result<Vec<_>, Error>>()?;
                watcher.tell(Progress::Step);
                Ok((tree, played))
            })
        })?;
        Ok(tree)
    }

    fn remarks(&self, own: &str, is_sure: bool, judged: &[(f64, &Results)]) -> (bool, String) {
        let (results, rival) = match judged {
            [(_, results), ..] => (results, results.reference().unwrap_or_default()),
            [] => return (is_sure, String::new()),
        };
        let hits = |name: &str| crate::evaluate::stats::mean(&results.values(name, "hits_pct"));
        let (own_pct, other_pct) = (hits(own), hits(rival));
        let (price, edges) = match &self.tuned {
            Some(tuned) => (tuned.price_gpu_s, tuned.edges.join(", ")),
            None => (self.settings.price_gpu_s, String::new()),
        };
        let edges = match edges.as_str() {
            "" => "no setting of a rule stands at the end of what was tried".to_string(),
            edges => format!("at the end of what was tried: {edges}"),
        };
        let words = format!(
            " Hits: {own} {own_pct:.2} %, that rule {other_pct:.2} %. A miss cost {price:.1} GPU s; {edges}."
        );
        // More training for fewer hits is no win.
        (is_sure && own_pct >= other_pct - HITS_SLACK_PCT, words)
    }

    fn starts(&self, without: &[u16]) -> Result<Vec<Tree>, Error> {
        let targets = self
            .tuned
            .as_ref()
            .map(|tuned| [tuned.rules[0].target(), tuned.rules[1].target()]);
        starts::starts(targets.unwrap_or([TARGETS[1]; 2]), without)
    }

    fn environments(&self, draw: Draw<'_>, _num_steps: usize) -> Result<Vec<Box<dyn Environment>>, Error> {
        let env = || {
            Ok(Box::new(Scaling::on(Arc::clone(&self.bench), self.price_gpu_s())?) as Box<dyn Environment>)
        };
        (0..draw.num).map(|_| env()).collect()
    }

    fn notes(&self, results: &Results) -> Vec<String> {
        let first = results
            .policies()
            .next()
            .map(|(name, _)| results.values(name, "num_requests"));
        let num_requests = crate::evaluate::stats::mean(&first.unwrap_or_default());
        let server = self.bench.config.server().ok();
        let lines = vec![
            format!(
                "a day: {num_requests:.0} requests and {:.0} GPU h",
                self.bench.gpu_h()
            ),
            format!(
                "a replica serves {:.2} requests a second within the targets; training: work done and kept; lost: starts and lost work",
                self.bench.capacity_per_s
            ),
        ];
        let extrapolated = server.and_then(|server| extrapolation(&server));
        lines.into_iter().chain(extrapolated).collect()
    }

    fn plots(&self, names: &[String], outcomes: &[Vec<Played>]) -> Vec<Plot> {
        let first = names.iter().zip(outcomes);
        first
            .filter_map(|(name, days)| Some(days.first()?.1.plots(name)))
            .flatten()
            .collect()
    }

    fn describe(&self, _seed: u64) -> Result<Description, Error> {
        let hint = "Its jobs and its requests are described each by its own file.";
        Err(Error::config(
            "workload",
            "service",
            "a list of jobs, requests or calls",
            hint,
        ))
    }
}
