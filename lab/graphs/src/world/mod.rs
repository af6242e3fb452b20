//! The world of graph jobs by name, with every verb: lists that are drawn, rules and learned policies that play them, figures.

mod settings;
mod starts;

use std::sync::Arc;

use pleach_experiments::Error;
use pleach_experiments::evaluate::metric::{Better, Metric, Versus, figure, show_plain};
use pleach_experiments::evaluate::results::Results;
use pleach_experiments::evaluate::stats::{mean, quantile};
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::report::{Block, Report};
use pleach_experiments::worlds::{
    Description, Draw, Habits, Kind, Loss, Opened, OwnRoom, Player, Registered, SearchConfig, Turn, Verb,
    World, config, opened,
};
use pleach_scheduler::features::{FeatureSchema, View};
use pleach_scheduler::settings::Settings as _;
use pleach_scheduler::tree::Tree;
use pleach_serving::Environment;
use pleach_workloads::Seed;
use serde_json::{Value, json, to_value};

use crate::board::Scored;
use crate::columns::{SCHEMA, STAGES_1};
use crate::engine::Outcome;
use crate::environment::Choosing;
use crate::list::List;
use crate::rules::{self, RULES};

pub use settings::{GraphSettings, Source};

/// The world by name.
pub const KIND: Kind = Kind {
    name: "graphs",
    doc: "jobs that are graphs of stages on shared executors, drawn or a file's graphs: policies choose stages and executors",
    policies: RULES,
    schema: &SCHEMA,
    reads: |_| false,
    open: |settings| opened(settings, GraphWorld::new),
    keys: || GraphSettings::fields(""),
};

/// Its environment.
pub const ROOM: OwnRoom = OwnRoom {
    policies: &[],
    schemas: &[],
    environments: &[Registered {
        id: "Pleach/SparkGraph-v0",
        line: "graphs of stages like TPC-H's on 50 executors: each choice sends some of those that are free to a stage",
        settings: || to_value(GraphSettings::default()),
        open: choosing,
    }],
};

/// Figures of a play.
const METRICS: &[Metric] = &[
    figure(
        ("mean_jct_s", "mean JCT s", 2),
        (Better::Lower, Versus::Percent),
        "mean time from a job's arrival to its end",
    ),
    figure(
        ("p95_jct_s", "p95 JCT s", 1),
        (Better::Lower, Versus::Percent),
        "95th percentile of the same",
    ),
    figure(
        ("makespan_s", "makespan s", 1),
        (Better::Lower, Versus::Percent),
        "from the first arrival to the last end",
    ),
    figure(
        ("busy_pct", "busy %", 1),
        (Better::Neither, Versus::Points),
        "share of the executors' time in which they ran tasks",
    ),
    figure(
        ("moves", "moves", 1),
        (Better::Neither, Versus::Percent),
        "times that an executor went to another job, for each job",
    ),
    figure(
        ("decisions", "decisions", 1),
        (Better::Neither, Versus::Percent),
        "decisions for each job",
    ),
];

/// Graph jobs.
pub struct GraphWorld {
    settings: GraphSettings,
    source: Source,
}

impl GraphWorld {
    /// Of settings.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn new(settings: GraphSettings) -> Result<GraphWorld, Error> {
        Ok(GraphWorld {
            source: settings.source()?,
            settings,
        })
    }
}

/// The seed of a list of a draw.
fn seed_of(draw: Draw<'_>, list: u64) -> Seed {
    let verb = Seed(draw.seed).child(draw.stream, draw.verb as u64);
    verb.child("number", draw.number).child("list", list)
}

impl World for GraphWorld {
    type List = Arc<List>;
    type Outcome = Outcome;

    fn name(&self) -> &'static str {
        "graphs"
    }

    fn metrics(&self) -> &'static [Metric] {
        METRICS
    }

    fn schema(&self) -> (&'static FeatureSchema, View) {
        (&SCHEMA, STAGES_1)
    }

    /// Weighted fair comes first, with the power that was the best on other lists.
    fn policies(&self) -> Vec<String> {
        let power = match self.settings.arrivals.as_str() {
            "batch" => -0.5,
            "stream" => 0.1,
            _ => 0.0,
        };
        let first = format!("stage-weighted-fair:power={power}");
        let others = [
            "stage-fifo",
            "stage-fair",
            "srpt-cap:cap=1",
            "srpt-cap:cap=2",
            "sjf-cp",
            "graphene-like",
            "stage-heft",
            "stage-index",
        ];
        std::iter::once(first).chain(others.map(str::to_string)).collect()
    }

    fn asked(&self) -> (Vec<f64>, usize) {
        (self.settings.loads.clone(), self.settings.lists.into())
    }

    fn draw(&self, draw: Draw<'_>) -> Result<Vec<Arc<List>>, Error> {
        let list = |list: usize| {
            let drawn = self
                .source
                .list(seed_of(draw, list as u64), list as u64, draw.load)?;
            Ok(Arc::new(drawn))
        };
        (0..draw.num).map(list).collect()
    }

    fn play(&self, list: &Arc<List>, turn: Turn<'_>, player: Player<'_>) -> Result<Outcome, Error> {
        let (scorer, tree) = match player {
            Player::Rule(name) => {
                let seed = Seed(turn.seed).child("turn", turn.place);
                let mut rule = rules::by_name(name, list, seed.0)?;
                return Ok(rules::play(Arc::clone(list), rule.as_mut())?);
            }
            Player::Scorer(scorer) => (scorer, None),
            Player::Keyed(scorer, tree) => (scorer, Some(tree)),
        };
        let mut scored = Scored::new(scorer, tree, self.settings.offers())?;
        let outcome = rules::play(Arc::clone(list), &mut scored)?;
        match scored.take_failure() {
            Some(problem) => Err(problem.into()),
            None => Ok(outcome),
        }
    }

    fn figures(&self, outcome: &Outcome) -> Vec<(&'static str, f64)> {
        outcome.figures()
    }

    /// The mean completion time in 100 s stands for the share of misses.
    fn loss(&self, outcome: &Outcome) -> Loss {
        Loss {
            misses: 1e-2 * outcome.mean_jct_s(),
            tail_s: outcome.jcts_s().fold(1e-3, f64::max),
            cost: 0.0,
        }
    }

    fn habits(&self) -> Habits {
        Habits {
            loads: vec![1.0],
            tune_lists: (18, 6),
            choice_lists: 24,
            first_of_choice: 8,
            judge_lists: 60,
            search: SearchConfig {
                simulations: 2_000,
                rungs: vec![4, 12, 36],
                leaves_max: 16,
                // The mean is what is to be little, as in the papers.
                tail_weight: 0.0,
                ..SearchConfig::default()
            },
        }
    }

    fn rivals(&self) -> Vec<Vec<String>> {
        starts::rivals()
    }

    fn starts(&self, without: &[u16]) -> Result<Vec<Tree>, Error> {
        starts::starts(without)
    }

    fn environments(&self, draw: Draw<'_>, _num_steps: usize) -> Result<Vec<Box<dyn Environment>>, Error> {
        let env = |place: usize| {
            let (source, load) = (self.source.clone(), draw.load);
            let drawn = move |seed: Seed| source.list(seed, place as u64, load);
            Ok(Box::new(Choosing::new(Box::new(drawn), self.settings.offers())?) as Box<dyn Environment>)
        };
        (0..draw.num).map(env).collect()
    }

    fn row_name(&self, row: usize, num_rows: usize) -> String {
        match row + 1 == num_rows {
            true => "none".into(),
            false => format!("choice {row}"),
        }
    }

    fn notes(&self, _results: &Results) -> Vec<String> {
        let graphs = self.source.graphs();
        let stages: usize = graphs.iter().map(|graph| graph.stages().len()).sum();
        let work_s = graphs
            .iter()
            .map(|graph| 1e-3 * graph.work_ms() as f64)
            .sum::<f64>();
        let num = graphs.len().max(1) as f64;
        vec![format!(
            "{} graphs of {:.1} stages and {:.0} s of work on average, {}, on {} executors",
            graphs.len(),
            stages as f64 / num,
            work_s / num,
            self.settings.arrivals,
            self.settings.executors
        )]
    }

    fn describe(&self, seed: u64) -> Result<Description, Error> {
        let draw = Draw {
            verb: Verb::Compare,
            seed,
            stream: "compare",
            number: 0,
            load: self.settings.loads.first().copied().unwrap_or(1.0),
            num: 1,
        };
        let lists = self.draw(draw)?;
        let list = &lists[0];
        let graphs = || (0..list.jobs().len()).map(|job| list.graph(job));
        let stages = || graphs().flat_map(|graph| graph.stages());
        let rows = [
            (
                "stages of a job",
                graphs().map(|graph| graph.stages().len() as f64).collect(),
            ),
            (
                "edges of a job",
                graphs().map(|graph| graph.num_edges() as f64).collect(),
            ),
            (
                "tasks of a stage",
                stages().map(|stage| f64::from(stage.tasks)).collect(),
            ),
            (
                "mean task (ms)",
                stages().map(|stage| f64::from(stage.mean_ms)).collect(),
            ),
            (
                "work of a job (s)",
                graphs().map(|graph| 1e-3 * graph.work_ms() as f64).collect(),
            ),
            (
                "least time of a job (s)",
                graphs().map(|graph| 1e-3 * graph.bound_ms() as f64).collect(),
            ),
        ];
        let last_s = list.jobs().last().map_or(0.0, |job| 1e-3 * job.at_ms as f64);
        let notes = vec![format!("{} jobs arrive in {last_s:.0} s", list.jobs().len())];
        Ok(described(&rows, notes))
    }
}

/// Figures with their quantiles.
fn described(rows: &[(&str, Vec<f64>)], notes: Vec<String>) -> Description {
    let mut json = serde_json::Map::new();
    let rows = rows.iter().map(|(name, values)| {
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |q: f64| quantile(&sorted, q).unwrap_or(f64::NAN);
        let figures = [mean(&sorted), at(0.1), at(0.5), at(0.9), at(1.0)];
        json.insert(
            (*name).into(),
            json!({"mean": figures[0], "p50": figures[2], "max": figures[4]}),
        );
        std::iter::once((*name).to_string())
            .chain(figures.map(show_plain))
            .collect()
    });
    let rows = rows.collect();
    let table = Table {
        header: ["", "mean", "p10", "p50", "p90", "largest"]
            .map(str::to_string)
            .to_vec(),
        rows,
        notes,
    };
    Description {
        said: table.to_terminal().trim_end().to_string(),
        report: Report::new("A list of graphs").section("Figures", [Block::from(table)]),
        json: Value::Object(json),
    }
}

fn choosing(settings: Value) -> Opened {
    let settings: GraphSettings = config(settings)?;
    settings.check_at("", "Leave it out for its default.")?;
    let (source, offers) = (settings.source()?, settings.offers());
    let drawn = move |seed: Seed| source.list(seed, seed.0, 1.0);
    Ok(Box::new(Choosing::new(Box::new(drawn), offers)?))
}
