//! An order by more than a formula: something is added to its score, or put in its place.

use std::sync::{Arc, Mutex};

use pleach_baselines::dealing::{Dealer, Formula, FormulaOrder, INDEX_FEATURES, Order, Step};
use pleach_scheduler::cluster::Cluster;
use pleach_scheduler::{ConfigError, GpuTypeId, JobId, Planner, PolicyError};
use rand::RngExt as _;
use rayon::prelude::*;

use crate::judge::{Held, Make};

pub const NUM_FEATURES: usize = INDEX_FEATURES.len();
/// Features of a job on a type.
pub type Row = [f64; NUM_FEATURES];
/// Rows of all lists together that are kept.
const ROWS_MAX: usize = 400_000;

/// What a form adds to the weighted sum, or puts in its place.
pub type Extra = dyn Fn(&Row) -> f64 + Send + Sync;

/// Rows of deals.
pub type Seen = Arc<Mutex<Vec<Row>>>;

/// An order that is not only a formula.
struct Shaped {
    formula: FormulaOrder,
    extra: Arc<Extra>,
    seen: Option<Seen>,
}

impl Shaped {
    fn extra_of(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId, step: Option<&Step>) -> f64 {
        let row = self.formula.features(cluster, id, kind, step);
        if let Some(seen) = &self.seen {
            seen.lock().unwrap_or_else(|broken| broken.into_inner()).push(row);
        }
        (self.extra)(&row)
    }
}

impl Order for Shaped {
    fn look(&mut self, cluster: &Cluster, movable: &[JobId]) -> Result<(), PolicyError> {
        self.formula.look(cluster, movable)
    }

    fn of_job(&self, cluster: &Cluster, id: JobId) -> f64 {
        self.formula.of_job(cluster, id)
    }

    fn of_type(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId) -> f64 {
        self.formula.of_type(cluster, id, kind) + self.extra_of(cluster, id, kind, None)
    }

    fn of_step(&self, cluster: &Cluster, id: JobId, kind: GpuTypeId, step: &Step) -> f64 {
        self.formula.of_step(cluster, id, kind, step) + self.extra_of(cluster, id, kind, Some(step))
            - (self.extra)(&self.formula.features(cluster, id, kind, None))
    }
}

/// A form with its rules.
#[derive(Clone)]
pub struct Form {
    pub formula: Formula,
    pub extra: Arc<Extra>,
}

impl Form {
    pub fn of(formula: &Formula) -> Form {
        Form {
            formula: formula.clone(),
            extra: Arc::new(|_| 0.0),
        }
    }

    pub fn planner(&self, seen: Option<Seen>) -> Result<Box<dyn Planner>, ConfigError> {
        let order = Shaped {
            formula: FormulaOrder::new(&self.formula),
            extra: self.extra.clone(),
            seen,
        };
        Ok(Box::new(Dealer::new("form", self.formula.rules, order)?))
    }

    /// Makes planners of it.
    pub fn make(self) -> Box<Make> {
        Box::new(move || self.planner(None))
    }
}

/// Rows of deals on these lists, equally many of each.
pub fn recorded(form: &Form, lists: &[Held]) -> Result<Vec<Row>, String> {
    let each = lists.par_iter().map(|list| {
        let seen = Seen::default();
        let planner = form
            .planner(Some(seen.clone()))
            .map_err(|error| error.to_string())?;
        list.play(planner)?;
        let mut rows = std::mem::take(&mut *seen.lock().unwrap_or_else(|broken| broken.into_inner()));
        let mut rng = list.seed.stream("rows", 0);
        let share = (ROWS_MAX / lists.len()) as f64 / rows.len().max(1) as f64;
        rows.retain(|_| rng.random_bool(share.min(1.0)));
        Ok(rows)
    });
    let each: Vec<Vec<_>> = each.collect::<Result<_, String>>()?;
    Ok(each.concat())
}
