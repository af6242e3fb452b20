//! Deals: all jobs of a cluster, waiting and running, are put in an order on each GPU type, and GPUs are dealt out along it. The average
//! JCT is to be little.
//!
//! A decision is a deal: its rows are those of [`deal_schema`], and their scores are the order. What is learned here deals in jobs'
//! evaluations and in the daemons as it did here.

mod environment;
mod settings;
mod starts;

use pleach_dealing::{NAMES, ScoredOrder, deal_schema, scored_planner};
use pleach_distill::search::SearchConfig;
use pleach_env::{Metrics, Seed, SimConfig, simulate_planner};
use pleach_scheduler::Planner;
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::tree::Tree;

use super::world::{Description, Draw, Habits, Loss, Player, Policy, Turn, World};
use crate::door::DOOR;
use crate::error::Error;
use crate::evaluate::instances::Instance;
use crate::evaluate::metric::Metric;
use crate::evaluate::results::Results;
use crate::figures;

pub use environment::{Deals, deal_environment, deal_environments, deal_settings};
pub use settings::DealsSettings;

figures! {
    |_world: &DealsWorld, metrics: &Metrics|
    "avg_jct_s", "avg JCT s", 0, Lower, Percent, "mean of finish - submit"
        => metrics.avg_jct_s;
    "p99_jct_s", "p99 JCT s", 0, Lower, Percent, "99th percentile of finish - submit"
        => metrics.p99_jct_s;
    "avg_slowdown", "slowdown", 2, Lower, Percent, "mean of JCT / max(isolated time, 10 s)"
        => metrics.avg_slowdown;
    "held_pct", "held %", 1, Neither, Points, "held GPU-time / all GPU-time; a shared GPU is held twice"
        => 100.0 * metrics.utilisation;
    "preemptions", "preempted", 0, Neither, Points, "times that a running job was stopped"
        => metrics.preemptions;
}

/// Jobs on a cluster whose GPUs are dealt.
#[derive(Clone, Debug)]
pub struct DealsWorld {
    settings: DealsSettings,
    sim: SimConfig,
}

impl DealsWorld {
    /// Of settings.
    ///
    /// # Errors
    /// Jobs that are not there or cannot be drawn.
    pub fn new(settings: DealsSettings) -> Result<DealsWorld, Error> {
        settings.source(1.0)?;
        Ok(DealsWorld {
            sim: settings.sim(),
            settings,
        })
    }

    /// The cluster of a list, whose facts it has.
    fn sim_of(&self, list: &Instance) -> SimConfig {
        SimConfig {
            seed: list.seed,
            ..self.sim.clone()
        }
    }

    fn planner(&self, player: Player<'_>) -> Result<Box<dyn Planner>, Error> {
        let order = match player {
            Player::Rule(name) => {
                let policy = DOOR.open_one(name)?;
                policy.check(self.sim.capabilities)?;
                return Ok(policy.make_planner()?);
            }
            Player::Scorer(scorer) => ScoredOrder::new(scorer)?,
            Player::Keyed(scorer, tree) => ScoredOrder::keyed(scorer, tree)?,
        };
        Ok(Box::new(scored_planner("learned", order)?))
    }
}

impl World for DealsWorld {
    type List = Instance;
    type Outcome = Metrics;

    fn name(&self) -> &'static str {
        "deals"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn schema(&self) -> (&'static FeatureSchema, View) {
        (deal_schema(), deal_schema().views[0])
    }

    fn policies(&self) -> Vec<String> {
        let mut names = NAMES.map(str::to_string).to_vec();
        // The learned one first: others are held against it.
        names.sort_by_key(|name| name != "index");
        names
    }

    /// As jobs' evaluations open them, files over a deal's rows among them.
    fn opened(&self, names: &[String]) -> Result<Vec<Policy>, Error> {
        let opened = names.iter().map(|name| {
            DOOR.open_one(name)?.check(self.sim.capabilities)?;
            Ok(Policy::Rule(name.clone()))
        });
        opened.collect()
    }

    fn asked(&self) -> (Vec<f64>, usize) {
        (self.settings.loads.clone(), self.settings.lists.into())
    }

    fn draw(&self, draw: Draw<'_>) -> Result<Vec<Instance>, Error> {
        let root = Seed(draw.seed).child("deals", draw.verb as u64);
        let root = root.child(draw.stream, (draw.load * 1e6) as u64);
        let root = root.child("number", draw.number);
        let seeds: Vec<Seed> = (0..draw.num as u64)
            .map(|list| root.child("list", list))
            .collect();
        self.settings
            .source(draw.load)?
            .instances(&self.sim, &seeds, &mut |_| {})
    }

    fn play(&self, list: &Instance, _turn: Turn<'_>, player: Player<'_>) -> Result<Metrics, Error> {
        let mut planner = self.planner(player)?;
        let played = simulate_planner(&list.workload, &self.sim_of(list), planner.as_mut())?;
        Ok(played.metrics)
    }

    fn figures(&self, outcome: &Metrics) -> Vec<(&'static str, f64)> {
        figures_of(self, outcome)
    }

    fn loss(&self, outcome: &Metrics) -> Loss {
        Loss {
            misses: outcome.avg_jct_s,
            tail_s: outcome.p99_jct_s.max(1e-6),
            cost: 0.0,
        }
    }

    fn chooses_one(&self) -> bool {
        false
    }

    fn habits(&self) -> Habits {
        Habits {
            loads: vec![1.0],
            tune_lists: (6, 2),
            choice_lists: 8,
            first_of_choice: 2,
            judge_lists: 20,
            search: SearchConfig {
                simulations: 1_000,
                rungs: vec![2, 6, 12],
                leaves_max: 8,
                ..SearchConfig::default()
            },
        }
    }

    fn starts(&self, without: &[u16]) -> Result<Vec<Tree>, Error> {
        starts::starts(without)
    }

    fn notes(&self, _results: &Results) -> Vec<String> {
        let DealsSettings {
            jobs,
            num_jobs,
            load,
            estimates,
            ..
        } = &self.settings;
        vec![format!(
            "{num_jobs} jobs of {jobs} at load {load}, run times {estimates}; running jobs may be stopped"
        )]
    }

    fn describe(&self, _seed: u64) -> Result<Description, Error> {
        let hint = "pleach workload describe takes its jobs by their own name.";
        Err(Error::config("workload", "deals", "a list of jobs", hint))
    }
}
