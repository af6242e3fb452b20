//! The race of formulas on shared lists, and the formulas that it keeps.

use pleach_distill::search::{Outcome, SearchConfig};
use pleach_env::{EnvConfig, Seed};
use pleach_scheduler::formula::{Expression, ScoreFormula};
use pleach_scheduler::{FormulaPolicy, Planner, PolicyPlanner};
use rand::RngExt as _;

use super::config::FormulaSearch;
use super::variation::{changed, constants, is_sound, numbers_of, terminals, with_constants, with_part};
use crate::error::Error;
use crate::index_search::SepCma;
use crate::judge::Lists;
use crate::progress::{Progress, Watcher};

/// Formulas that are kept, and of how many the best is a parent. *Assumed*.
const KEPT: usize = 24;
const TOURNAMENT: usize = 3;
/// Candidates of a generation of constants, and how far they move at first, as a share and besides. *Assumed*.
const POPULATION: usize = 10;
const STEPS: (f64, f64) = (0.1, 0.02);
/// What a formula may lose by a part that is cut, in the objective. *Assumed*.
const CUT: f64 = 0.0005;

/// A formula that is kept.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) formula: ScoreFormula,
    pub(super) origin: String,
    /// On all lists of the race.
    pub(super) objective: f64,
}

/// A planner of a formula in one simulation.
pub(super) fn planner(policy: &FormulaPolicy) -> Box<dyn Planner> {
    Box::new(PolicyPlanner::of_one_cluster(policy.clone()))
}

/// The race.
pub(super) struct Race<'a> {
    lists: &'a Lists,
    objective: &'a SearchConfig,
    pub(super) config: FormulaSearch,
    seed: Seed,
    watcher: &'a Watcher,
    terminals: Vec<Expression>,
    /// The best first.
    kept: Vec<Entry>,
    best_start: Option<Entry>,
    /// Lists simulated.
    pub(super) simulations: u64,
}

impl<'a> Race<'a> {
    pub(super) fn of(
        env: &EnvConfig,
        lists: &'a Lists,
        objective: &'a SearchConfig,
        config: &FormulaSearch,
        (seed, watcher): (u64, &'a Watcher),
    ) -> Result<Race<'a>, Error> {
        Ok(Race {
            lists,
            objective,
            config: config.clone(),
            seed: Seed(seed),
            watcher,
            terminals: terminals(env.view()?),
            kept: Vec::new(),
            best_start: None,
            simulations: 0,
        })
    }

    /// Objectives of formulas on the first `num` lists, side by side.
    fn judged(&mut self, formulas: &[ScoreFormula], num: usize) -> Result<Vec<f64>, Error> {
        let num = num.min(self.lists.lists.len());
        let runs: Vec<(usize, usize)> = (0..formulas.len())
            .flat_map(|place| (0..num).map(move |list| (place, list)))
            .collect();
        let policies: Vec<FormulaPolicy> = formulas
            .iter()
            .map(|formula| FormulaPolicy::new(formula.clone()).sparing())
            .collect();
        let found = self
            .lists
            .outcomes(|place| Ok(planner(&policies[place])), &runs)?;
        self.simulations += runs.len() as u64;
        let words = self.kept.first().map_or(String::new(), |best| {
            format!("best objective {:.4}", best.objective)
        });
        self.watcher.tell(Progress::At(
            self.simulations.min(self.config.simulations),
            &words,
        ));
        let of_each = found.chunks(num.max(1));
        Ok(of_each
            .map(|own: &[Outcome]| self.objective.objective(own))
            .collect())
    }

    /// Races formulas in rungs; those that get to the end are kept.
    fn raced(&mut self, mut field: Vec<(ScoreFormula, String)>, survivors: &[usize]) -> Result<(), Error> {
        let rungs = self.objective.rungs.clone();
        for (rung, num) in rungs.iter().enumerate() {
            let formulas: Vec<ScoreFormula> = field.iter().map(|(formula, _)| formula.clone()).collect();
            let objectives = self.judged(&formulas, *num)?;
            let mut order: Vec<usize> = (0..field.len()).collect();
            // Among equals the smaller one.
            let size = |at: &usize| field[*at].0.expression().num_symbols();
            order.sort_by(|a, b| {
                objectives[*a]
                    .total_cmp(&objectives[*b])
                    .then(size(a).cmp(&size(b)))
            });
            if let Some(most) = survivors.get(rung) {
                order.truncate(*most);
                field = order.iter().map(|at| field[*at].clone()).collect();
                continue;
            }
            for at in order {
                let (formula, origin) = field[at].clone();
                self.keep(Entry {
                    formula,
                    origin,
                    objective: objectives[at],
                });
            }
            break;
        }
        Ok(())
    }

    fn keep(&mut self, entry: Entry) {
        let text = entry.formula.text();
        if self.kept.iter().any(|other| other.formula.text() == text) {
            return;
        }
        let place = self
            .kept
            .partition_point(|other| other.objective <= entry.objective);
        self.kept.insert(place, entry);
        self.kept.truncate(KEPT);
    }

    /// Runs the starts; the best are run on all lists.
    pub(super) fn begin(&mut self, starts: Vec<(String, ScoreFormula)>) -> Result<(), Error> {
        let field = starts
            .into_iter()
            .map(|(name, formula)| (formula, name))
            .collect();
        let most = self.objective.starts;
        self.raced(field, &[most, most.div_ceil(2)])?;
        self.best_start = self.kept.first().cloned();
        Ok(())
    }

    pub(super) fn best_start(&self) -> &Entry {
        self.best_start.as_ref().unwrap_or(&self.kept[0])
    }

    fn child(&self, parent: &ScoreFormula, expression: Expression) -> Option<ScoreFormula> {
        let mut made = ScoreFormula::new(&parent.name, expression, parent.needs()).ok()?;
        made.tie_key = parent.tie_key;
        Some(made)
    }

    /// Generations of children, as long as simulations are left for them.
    pub(super) fn evolve(&mut self) -> Result<(), Error> {
        let until = (self.config.simulations as f64 * (1.0 - self.config.constants)) as u64;
        let survivors = self.objective.survivors.clone();
        let mut generation = 0;
        while self.simulations < until && !self.kept.is_empty() {
            let mut rng = self.seed.stream("formula/children", generation);
            let mut field: Vec<(ScoreFormula, String)> = Vec::new();
            for _ in 0..self.config.children {
                let mut parent = || {
                    let drawn = (0..TOURNAMENT).map(|_| rng.random_range(0..self.kept.len()));
                    drawn.min().unwrap_or_default()
                };
                let (own, other) = (&self.kept[parent()], &self.kept[parent()]);
                let pair = (own.formula.expression(), other.formula.expression());
                // A start may be larger than what is searched for: its children may be as large at first.
                let most = self.config.symbols_max.max(pair.0.num_symbols());
                let expression = changed(&mut rng, pair, &self.terminals, most);
                if let Some(child) = self.child(&own.formula, expression)
                    && field
                        .iter()
                        .all(|(known, _)| known.expression() != child.expression())
                {
                    let root = own.origin.split(", changed").next().unwrap_or_default();
                    field.push((child, format!("{root}, changed")));
                }
            }
            self.raced(field, &survivors)?;
            generation += 1;
        }
        Ok(())
    }

    /// Tunes the constants of the best by evolution.
    pub(super) fn tune(&mut self) -> Result<(), Error> {
        let Some(best) = self.kept.first().cloned() else {
            return Ok(());
        };
        let mean = constants(best.formula.expression());
        if mean.is_empty() {
            return Ok(());
        }
        let steps: Vec<f64> = mean.iter().map(|value| STEPS.0 * value.abs() + STEPS.1).collect();
        let mut search = SepCma::new(mean, &steps, POPULATION);
        let mut rng = self.seed.stream("formula/constants", 0);
        let made = |race: &Race<'_>, numbers: &[f64]| {
            race.child(&best.formula, with_constants(best.formula.expression(), numbers))
                .unwrap_or_else(|| best.formula.clone())
        };
        let num = self.objective.rungs.get(1).copied().unwrap_or(1);
        let until = self.config.simulations;
        while self.simulations < until {
            search.step(&mut rng, POPULATION, |drawn| {
                let formulas: Vec<ScoreFormula> = drawn.iter().map(|numbers| made(self, numbers)).collect();
                self.judged(&formulas, num)
            })?;
        }
        let tuned = made(self, search.mean());
        let objective = self.judged(std::slice::from_ref(&tuned), usize::MAX)?[0];
        self.keep(Entry {
            formula: tuned,
            origin: format!("{}, tuned", best.origin),
            objective,
        });
        Ok(())
    }

    /// Cuts parts of the best that change next to nothing, as long as there are any; each size on the way is kept.
    pub(super) fn cut(&mut self) -> Result<(), Error> {
        let Some(mut best) = self.kept.first().cloned() else {
            return Ok(());
        };
        loop {
            let mut shorter: Vec<(ScoreFormula, String)> = Vec::new();
            let own = best.formula.expression().clone();
            for (place, part) in numbers_of(&own).iter().enumerate() {
                let inner = numbers_of(part)
                    .into_iter()
                    .skip(1)
                    .chain([Expression::Number(0.0)]);
                for instead in inner.filter(|instead| instead.num_symbols() < part.num_symbols()) {
                    let made = with_part(&own, place, &instead);
                    if is_sound(&made, usize::MAX)
                        && let Some(child) = self.child(&best.formula, made)
                        && shorter
                            .iter()
                            .all(|(known, _)| known.expression() != child.expression())
                    {
                        shorter.push((child, format!("{}, cut", best.origin.trim_end_matches(", cut"))));
                    }
                }
            }
            let formulas: Vec<ScoreFormula> = shorter.iter().map(|(formula, _)| formula.clone()).collect();
            let first = self.judged(&formulas, self.objective.rungs[0])?;
            let mut order: Vec<usize> = (0..formulas.len()).collect();
            order.sort_by(|a, b| first[*a].total_cmp(&first[*b]));
            order.truncate(self.objective.survivors.first().copied().unwrap_or(1));
            let near: Vec<ScoreFormula> = order.iter().map(|at| formulas[*at].clone()).collect();
            let objectives = self.judged(&near, usize::MAX)?;
            let mut next: Option<Entry> = None;
            for (at, objective) in order.iter().zip(objectives) {
                let entry = Entry {
                    formula: shorter[*at].0.clone(),
                    origin: shorter[*at].1.clone(),
                    objective,
                };
                self.keep(entry.clone());
                let size = |entry: &Entry| entry.formula.expression().num_symbols();
                let is_near = objective <= best.objective + CUT;
                if is_near && next.as_ref().is_none_or(|next| size(&entry) < size(next)) {
                    next = Some(entry);
                }
            }
            match next {
                Some(next) => best = next,
                None => return Ok(()),
            }
        }
    }

    /// The kept formulas that are no larger than wanted where there are such, smallest first, each better than all smaller ones.
    pub(super) fn frontier(&self) -> Vec<Entry> {
        let mut sorted = self.kept.clone();
        let size = |entry: &Entry| entry.formula.expression().num_symbols();
        if sorted.iter().any(|entry| size(entry) <= self.config.symbols_max) {
            sorted.retain(|entry| size(entry) <= self.config.symbols_max);
        }
        sorted.sort_by(|a, b| size(a).cmp(&size(b)).then(a.objective.total_cmp(&b.objective)));
        let mut found: Vec<Entry> = Vec::new();
        for entry in sorted {
            if found.last().is_none_or(|last| entry.objective < last.objective) {
                found.push(entry);
            }
        }
        found
    }
}
