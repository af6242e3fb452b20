//! Requests of applications on slices of GPUs: dispatchers choose which requests run on how much, when. What is to be much is the share of
//! requests within their targets.

mod describe;
mod settings;
mod starts;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use pleach_distill::search::SearchConfig;
use pleach_env::Seed;
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::tree::Tree;
use pleach_serving::functions::{
    Calls, DISPATCHING_1, Dispatcher, Dispatching, GPU_SLICES, Interval, Outcome, SCHEMA, ScorerDispatcher,
    read,
};
use pleach_serving::{Environment, Reward};

use super::world::{Description, Draw, Habits, Loss, Player, Turn, Verb, World};
use crate::error::Error;
use crate::evaluate::metric::Metric;
use crate::evaluate::results::Results;
use crate::figures;
use crate::plot::{Axis, Mark, Plot};

pub use describe::CallsDescription;
pub use settings::{CallsSettings, Setup};

figures! {
    |_world: &CallsWorld, outcome: &Outcome|
    "hits_pct", "hits %", 2, Higher, Points, "requests served within their target"
        => 100.0 * outcome.hit_share();
    "dropped_pct", "dropped %", 2, Neither, Points, "requests that were not served"
        => 100.0 * outcome.dropped_share();
    "usd_per_1000", "$ per 1,000", 4, Lower, Percent, "cost of 1,000 requests"
        => outcome.usd_per_1000();
    "usd_per_1000_hits", "$ per 1,000 hits", 4, Lower, Percent, "cost of 1,000 hits"
        => outcome.usd_per_1000_hits();
    "cold_pct", "cold %", 1, Lower, Points, "part of the cost that cold starts are"
        => 100.0 * outcome.cold_usd / outcome.usd.max(1e-12);
    "cold_calls_pct", "cold calls %", 2, Lower, Points, "calls for which a container was made"
        => 100.0 * outcome.cold_starts as f64 * of_call(outcome);
    "gpu_s", "GPU s", 2, Lower, Percent, "GPU time paid for a call, cold starts among it"
        => 1e-6 * outcome.slice_us / f64::from(GPU_SLICES) * of_call(outcome);
    "core_s", "core s", 2, Lower, Percent, "core time of a call"
        => 1e-6 * outcome.core_us * of_call(outcome);
    "idle_s", "idle s", 1, Lower, Percent, "time that containers were warm and idle for a call"
        => 1e-6 * outcome.idle_us as f64 * of_call(outcome);
    "p50_ms", "p50 ms", 0, Lower, Points, "median latency of served requests"
        => 1e-3 * outcome.latencies.quantile_us(0.5);
    "p99_ms", "p99 ms", 0, Lower, Points, "99th percentile of the same"
        => 1e-3 * outcome.latencies.quantile_us(0.99);
    "batch", "batch", 2, Neither, Points, "requests of a batch"
        => outcome.batch_mean();
    "no_room_pct", "no room %", 2, Lower, Points, "configurations asked for that no node had room for"
        => 100.0 * outcome.refused as f64 / outcome.asked.max(1) as f64;
}

/// Part of a call in a sum over all.
fn of_call(outcome: &Outcome) -> f64 {
    1.0 / outcome.num_requests.max(1) as f64
}

/// Columns of drawn lists, and of recorded ones.
const DRAWN: [&str; 8] = [
    "hits_pct",
    "dropped_pct",
    "usd_per_1000",
    "usd_per_1000_hits",
    "cold_pct",
    "p50_ms",
    "p99_ms",
    "batch",
];
const RECORDED: [&str; 8] = [
    "hits_pct",
    "dropped_pct",
    "cold_calls_pct",
    "gpu_s",
    "idle_s",
    "usd_per_1000_hits",
    "p50_ms",
    "p99_ms",
];

/// Applications of functions on slices of GPUs.
pub struct CallsWorld {
    settings: CallsSettings,
    given: Option<Calls>,
}

/// A list that is drawn by a seed, or a part of a recorded one.
pub struct CallList {
    setup: Arc<Setup>,
    seed: Seed,
    part: usize,
}

impl CallsWorld {
    /// Of settings.
    ///
    /// # Errors
    /// A setting that cannot be used, a list that cannot be read.
    pub fn new(settings: CallsSettings) -> Result<CallsWorld, Error> {
        let given = settings.requests.as_deref();
        let given = given.map(|path| read(path, Seed(0).child("calls", 0)));
        Ok(CallsWorld {
            given: given.transpose()?,
            settings,
        })
    }

    fn setup(&self, load: f64) -> Result<Setup, Error> {
        self.settings.setup_of(self.given.as_ref(), load)
    }
}

impl World for CallsWorld {
    type List = CallList;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "calls"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn columns(&self, results: &Results) -> Vec<&'static str> {
        if self.given.is_none() {
            return DRAWN.to_vec();
        }
        let mut policies = results.policies();
        let uses_gpus =
            policies.any(|(_, summary)| summary.metrics.get("gpu_s").is_some_and(|gpu_s| *gpu_s > 0.0));
        let key = |key: &'static str| {
            if key == "gpu_s" && !uses_gpus {
                "core_s"
            } else {
                key
            }
        };
        RECORDED.map(key).to_vec()
    }

    fn schema(&self) -> (&'static FeatureSchema, View) {
        (&SCHEMA, DISPATCHING_1)
    }

    fn policies(&self) -> Vec<String> {
        let names = [
            "esg",
            "infless",
            "fast-gshare",
            "orion",
            "aquatope",
            "clockwork",
            "nexus",
            "edf",
            "fastest",
        ];
        names.map(str::to_string).to_vec()
    }

    fn asked(&self) -> (Vec<f64>, usize) {
        (self.settings.loads.clone(), self.settings.lists.into())
    }

    fn draw(&self, draw: Draw<'_>) -> Result<Vec<CallList>, Error> {
        Error::refuse_if(
            self.given.is_some() && draw.verb != Verb::Compare,
            "requests",
            "a recorded list",
            "none with a search",
            "Leave it out: trees and networks learn on drawn lists.",
        )?;
        let root = Seed(draw.seed).child("functions", 0);
        let setup = Arc::new(self.setup(draw.load)?);
        let list = |part: usize| {
            let seed = root.child(draw.stream, part as u64);
            CallList {
                setup: Arc::clone(&setup),
                seed: match draw.number {
                    0 => seed,
                    number => seed.child("number", number),
                },
                part,
            }
        };
        Ok((0..draw.num).map(list).collect())
    }

    fn play(&self, list: &CallList, _turn: Turn<'_>, player: Player<'_>) -> Result<Outcome, Error> {
        let mut dispatcher: Box<dyn Dispatcher> = match player {
            Player::Rule(name) => list.setup.dispatcher(name)?,
            Player::Scorer(scorer) => Box::new(ScorerDispatcher::new(scorer)?),
            Player::Keyed(scorer, tree) => Box::new(ScorerDispatcher::keyed(scorer, tree)?),
        };
        list.setup.play(dispatcher.as_mut(), list.seed, list.part)
    }

    fn figures(&self, outcome: &Outcome) -> Vec<(&'static str, f64)> {
        figures_of(self, outcome)
    }

    /// That with the most hits, among equal ones the cheapest.
    fn reference(&self, names: &[String], figures: &[Vec<Vec<(&'static str, f64)>>]) -> usize {
        let sum = |policy: usize, key: &str| -> f64 {
            let all = figures[policy].iter().flatten();
            all.filter(|(own, _)| *own == key).map(|(_, value)| value).sum()
        };
        let better = |one: usize, other: usize| {
            let cheaper = sum(other, "usd_per_1000").total_cmp(&sum(one, "usd_per_1000"));
            sum(one, "hits_pct")
                .total_cmp(&sum(other, "hits_pct"))
                .then(cheaper)
        };
        (1..names.len()).fold(0, |best, policy| {
            if better(policy, best).is_gt() {
                policy
            } else {
                best
            }
        })
    }

    fn loss(&self, outcome: &Outcome) -> Loss {
        let p99_s = 1e-6 * outcome.latencies.quantile_us(0.99);
        Loss {
            misses: 1.0 - outcome.hit_share(),
            // A long one where none was served.
            tail_s: if p99_s.is_finite() { p99_s.max(1e-6) } else { 1e6 },
            cost: outcome.usd_per_1000(),
        }
    }

    fn habits(&self) -> Habits {
        Habits {
            loads: vec![1.0],
            tune_lists: (4, 4),
            choice_lists: 12,
            first_of_choice: 3,
            judge_lists: 20,
            search: SearchConfig {
                simulations: 2_000,
                rungs: vec![2, 6, 12],
                leaves_max: 16,
                ..SearchConfig::default()
            },
        }
    }

    fn rivals(&self) -> Vec<Vec<String>> {
        vec![starts::rivals(), starts::esg()]
    }

    fn starts(&self, without: &[u16]) -> Result<Vec<Tree>, Error> {
        starts::starts(without)
    }

    fn environments(&self, draw: Draw<'_>, _num_steps: usize) -> Result<Vec<Box<dyn Environment>>, Error> {
        let env = || {
            let setup = self.setup(draw.load)?;
            let reward = Reward::default();
            let env = Dispatching::new(setup.work, setup.platform, setup.arrivals, (1.0, 1.0), reward)?;
            Ok(Box::new(env) as Box<dyn Environment>)
        };
        (0..draw.num).map(|_| env()).collect()
    }

    fn account(&self) -> Vec<String> {
        self.given.as_ref().map(Calls::told).unwrap_or_default()
    }

    fn notes(&self, _results: &Results) -> Vec<String> {
        let Some(given) = &self.given else {
            return vec!["hits: served within the target; cold: part of the cost".into()];
        };
        let mut notes = vec![
            "hits: within the target times the own run time; cold calls: a container was made; s: of a call"
                .into(),
            format!(
                "{}: {} calls of {} functions",
                given.format,
                given.calls.len(),
                given.functions.len()
            ),
        ];
        notes.extend(given.told());
        notes
    }

    fn plots(&self, names: &[String], outcomes: &[Vec<Outcome>]) -> Vec<Plot> {
        let platform = self.settings.platform();
        let all = |of_node: u16| f64::from(of_node) * f64::from(platform.nodes);
        let (cores, slices) = (all(platform.cores), all(platform.slices));
        let firsts: Vec<&Outcome> = outcomes.iter().filter_map(|lists| lists.first()).collect();
        let uses_slices = firsts.iter().any(|outcome| outcome.slice_us > 0.0);
        let busy = |one: &Interval| match uses_slices {
            true => 100.0 * one.slice_us as f64 / slices,
            false => 100.0 * one.core_us as f64 / cores,
        };
        let over_time = |what: &str, of: &dyn Fn(&Interval) -> f64| {
            let lines = names.iter().zip(&firsts);
            let marks: Vec<Mark> = lines
                .map(|(name, outcome)| Mark::line(name, outcome.timeline.points(of)))
                .collect();
            let points = marks.iter().flat_map(|mark| &mark.points);
            let end_s = points.map(|point| point.0).fold(0.0, f64::max);
            let x = Axis::time("time since the first request", end_s);
            let plot = Plot::new(format!("{what} over time on the first list"), x, Axis::of(what));
            plot.of_policies().with(marks)
        };
        let held = if uses_slices {
            "slices held (%)"
        } else {
            "cores held (%)"
        };
        vec![
            over_time(held, &busy),
            over_time("requests that wait", &|one| one.waiting_us as f64),
            over_time("cold starts a second", &|one| 1e6 * one.cold_starts as f64),
        ]
    }

    fn describe(&self, _seed: u64) -> Result<Description, Error> {
        let Some(list) = &self.given else {
            let hint = "Give a file with calls to --workload.";
            return Err(Error::config("workload", "calls", "a list of calls", hint));
        };
        CallsDescription::of(list).shown()
    }
}
