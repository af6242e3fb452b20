//! An autoscaler that scores changes of the number of replicas by their columns: a tree with its weights, or any other scorer of
//! [`AUTOSCALING`].

use std::collections::VecDeque;

use pleach_scheduler::tree::Tree;
use pleach_scheduler::{Problem, Scorer};

use super::columns::{self, AUTOSCALING, Belief, ROW_WIDTH};
use super::demand::{Autoscaler, Demand};
use crate::scoring::Scoring;

/// Time between two questions, s. *Assumed.*
const PERIOD_S: f64 = 15.0;
/// What the next rate weighs in the moving average, and in the slow one: of five minutes. *Assumed.*
const RATE_WEIGHT: f64 = 0.5;
const SLOW_WEIGHT: f64 = 0.1;
/// Time in which a backlog is to be worked off beside what comes, s. *Assumed.*
const BACKLOG_S: f64 = 30.0;
/// Loads of which the highest is kept: five minutes.
const PEAK_LOADS: usize = 20;

/// What is seen of the requests, from question to question.
#[derive(Clone, Debug)]
struct Sense {
    capacity_per_s: f64,
    arrived: u64,
    /// Moving averages of the rate, 1/s; none before the first question after the beginning.
    rates: Option<[f64; 2]>,
    loads: VecDeque<f64>,
    /// When replicas were granted and taken back last, s.
    changed_s: [f64; 2],
}

impl Sense {
    fn new(capacity_per_s: f64) -> Sense {
        Sense {
            capacity_per_s,
            arrived: 0,
            rates: None,
            loads: VecDeque::new(),
            changed_s: [0.0; 2],
        }
    }

    /// What is believed now; none at the very beginning, when nothing has been seen.
    fn look(&mut self, demand: &Demand<'_>) -> Option<Belief> {
        if demand.now_s == 0.0 {
            return None;
        }
        let seen = (demand.load.arrived - self.arrived) as f64 / PERIOD_S;
        self.arrived = demand.load.arrived;
        let [fast, slow] = self.rates.unwrap_or([seen; 2]);
        let rates = [
            fast + RATE_WEIGHT * (seen - fast),
            slow + SLOW_WEIGHT * (seen - slow),
        ];
        self.rates = Some(rates);
        let load = (rates[0] + demand.load.waiting as f64 / BACKLOG_S) / self.capacity_per_s;
        if self.loads.len() == PEAK_LOADS {
            self.loads.pop_front();
        }
        self.loads.push_back(load);
        Some(Belief {
            load,
            rate_per_s: rates[0],
            peak: self.loads.iter().copied().fold(0.0, f64::max),
            trend: if rates[1] > 0.0 { rates[0] / rates[1] } else { 1.0 },
            since_s: self.changed_s.map(|at_s| demand.now_s - at_s),
        })
    }

    /// The number that was chosen.
    fn chose(&mut self, demand: &Demand<'_>, replicas: usize) {
        if replicas > demand.up() {
            self.changed_s[0] = demand.now_s;
        } else if replicas < demand.up() {
            self.changed_s[1] = demand.now_s;
        }
    }
}

/// What an autoscaler that is learned is shown at each question: a row for each change of the number of replicas.
#[derive(Clone, Debug)]
pub struct Changes {
    sense: Sense,
    rows: Vec<f32>,
    context: Vec<f32>,
}

impl Changes {
    /// Most rows of a question.
    pub const NUM_MAX: usize = columns::ROWS_MAX;

    /// Before the first question; a replica serves `capacity_per_s`.
    #[must_use]
    pub fn new(capacity_per_s: f64) -> Changes {
        Changes {
            sense: Sense::new(capacity_per_s),
            rows: Vec::new(),
            context: Vec::new(),
        }
    }

    /// Time between two questions, s.
    #[must_use]
    pub fn period_s() -> f64 {
        PERIOD_S
    }

    /// What is asked: rows `[C, F]`, fewest replicas first, and context `[G]` of [`AUTOSCALING`]. None at the very beginning, when
    /// nothing has been seen: then there are [`Demand::at_first`] replicas.
    pub fn ask(&mut self, demand: &Demand<'_>) -> Option<(&[f32], &[f32])> {
        let belief = self.sense.look(demand)?;
        columns::write(
            demand,
            &belief,
            self.sense.capacity_per_s,
            (&mut self.rows, &mut self.context),
        );
        Some((&self.rows, &self.context))
    }

    /// The number of replicas of a row.
    pub fn take(&mut self, demand: &Demand<'_>, row: usize) -> usize {
        let replicas = columns::offered(demand).start() + row;
        self.sense.chose(demand, replicas);
        replicas
    }
}

/// Chooses the change of the highest score; among equal ones the least weighted sum of the tree's features, then the fewest
/// replicas.
pub struct ScorerAutoscaler {
    scoring: Scoring,
    changes: Changes,
}

impl ScorerAutoscaler {
    /// Over the columns of [`AUTOSCALING`]; a replica serves `capacity_per_s`.
    ///
    /// # Errors
    /// A scorer of other columns.
    pub fn new(scorer: Box<dyn Scorer>, capacity_per_s: f64) -> Result<ScorerAutoscaler, Problem> {
        Ok(ScorerAutoscaler {
            scoring: Scoring::new("autoscaler", scorer, &AUTOSCALING)?,
            changes: Changes::new(capacity_per_s),
        })
    }

    /// A scorer with the weights of a tree's key.
    ///
    /// # Errors
    /// A scorer of other columns.
    pub fn keyed(
        scorer: Box<dyn Scorer>,
        tree: &Tree,
        capacity_per_s: f64,
    ) -> Result<ScorerAutoscaler, Problem> {
        Ok(ScorerAutoscaler {
            scoring: Scoring::keyed("autoscaler", scorer, tree, &AUTOSCALING)?,
            changes: Changes::new(capacity_per_s),
        })
    }
}

impl Autoscaler for ScorerAutoscaler {
    fn period_s(&self) -> Option<f64> {
        Some(PERIOD_S)
    }

    fn want(&mut self, demand: &Demand<'_>) -> Result<usize, Problem> {
        let Some((rows, context)) = self.changes.ask(demand) else {
            return Ok(demand.at_first());
        };
        let first = self.scoring.first((rows, ROW_WIDTH), context, |_| 0)?;
        Ok(self.changes.take(demand, first))
    }
}
