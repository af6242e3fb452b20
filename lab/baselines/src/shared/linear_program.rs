//! Linear and integer programmes: the largest objective of some columns under rows of linear limits.
//!
//! The only file that knows the solver (`microlp`, pure Rust: a simplex method, and branch and bound over it);
//! lab/notes/solvers.md says why this one. Work is limited by counts, never by time, so a programme has the same answer on every machine: one with
//! too many terms is refused before it is solved, and a search over whole numbers ends after so many nodes with the best
//! that it has found. What to do without an answer (keep what was planned, share equally) is the planner's to say.
//!
//! An answer meets every row within 1e-7 of the numbers in it (5e-7 where rows had to be loosened to find one), so keep those
//! near 1: divide a row by its largest factor.

use microlp::{ComparisonOp, Error, OptimizationDirection, Problem, SolutionStatus, SolveOptions, Variable};

pub use super::solution::{Column, Limits, Solution, Unsolved};

#[derive(Clone, Copy, Debug)]
struct Range {
    objective: f64,
    low: f64,
    high: f64,
    is_integer: bool,
}

#[derive(Clone, Debug)]
struct Row {
    terms: Vec<(Column, f64)>,
    comparison: ComparisonOp,
    limit: f64,
}

/// How a programme is stated to the solver. Where many vertices are nearly the same point, rounding can lead its pivots round in
/// a circle. With the columns in another order they may take another way to the same optimum; with each row loosened by a
/// little, and by another little than the next one, the vertices lie apart (Charnes, Econometrica 1952).
#[derive(Clone, Copy, Debug)]
struct Formulation {
    columns_reversed: bool,
    /// How far a row's limit is moved at least, as a part of the larger of it and 1; at most twice as far.
    loosened: f64,
}

impl Formulation {
    /// As stated first, so a programme that the solver can do is solved once.
    const ALL: [Formulation; 3] = [
        Formulation::new(false, 0.0),
        Formulation::new(true, 0.0),
        Formulation::new(false, 2e-7),
    ];

    const fn new(columns_reversed: bool, loosened: f64) -> Formulation {
        Formulation {
            columns_reversed,
            loosened,
        }
    }

    /// The limit of row number `place` of `num`.
    fn limit(self, row: &Row, place: usize, num: usize) -> f64 {
        let part = self.loosened * (1.0 + place as f64 / num as f64);
        let by = part * row.limit.abs().max(1.0);
        match row.comparison {
            ComparisonOp::Le => row.limit + by,
            ComparisonOp::Ge => row.limit - by,
            ComparisonOp::Eq => row.limit,
        }
    }
}

/// A programme: maximise the sum of the columns, each times its factor under the rows.
///
/// ```
/// use pleach_baselines::linear_program::{Limits, LinearProgram};
/// // 3 x + 2 y is to be as large as possible; x + y is at most 4, x at most 3, y whole and at most 10.
/// let mut program = LinearProgram::new();
/// let x = program.column(3.0, 0.0, 3.0);
/// let y = program.integer(2.0, 0, 10);
/// program.at_most(vec![(x, 1.0), (y, 1.0)], 4.0);
/// let answer = program.solve(Limits::default()).unwrap();
/// assert_eq!((answer.objective, answer.value(x), answer.value(y)), (11.0, 3.0, 1.0));
/// ```
#[derive(Clone, Debug, Default)]
pub struct LinearProgram {
    columns: Vec<Range>,
    rows: Vec<Row>,
}

impl LinearProgram {
    /// No columns, no rows.
    #[must_use]
    pub fn new() -> LinearProgram {
        LinearProgram::default()
    }

    /// Adds a number between `low` and `high`, of which each unit adds `objective` to the objective. `high` may be infinite.
    pub fn column(&mut self, objective: f64, low: f64, high: f64) -> Column {
        self.add(objective, low, high, false)
    }

    /// Adds a whole number between `low` and `high`.
    pub fn integer(&mut self, objective: f64, low: i32, high: i32) -> Column {
        self.add(objective, f64::from(low), f64::from(high), true)
    }

    fn add(&mut self, objective: f64, low: f64, high: f64, is_integer: bool) -> Column {
        self.columns.push(Range {
            objective,
            low,
            high,
            is_integer,
        });
        Column(self.columns.len() - 1)
    }

    /// The sum of the terms is at most `limit`. A column stands in a row once.
    pub fn at_most(&mut self, terms: Vec<(Column, f64)>, limit: f64) {
        self.row(terms, ComparisonOp::Le, limit);
    }

    /// The sum of the terms is at least `limit`. A column stands in a row once.
    pub(crate) fn at_least(&mut self, terms: Vec<(Column, f64)>, limit: f64) {
        self.row(terms, ComparisonOp::Ge, limit);
    }

    /// The sum of the terms is `limit`. A column stands in a row once.
    pub fn equals(&mut self, terms: Vec<(Column, f64)>, limit: f64) {
        self.row(terms, ComparisonOp::Eq, limit);
    }

    fn row(&mut self, terms: Vec<(Column, f64)>, comparison: ComparisonOp, limit: f64) {
        self.rows.push(Row {
            terms,
            comparison,
            limit,
        });
    }

    /// Adds to what a unit of a column adds to the objective.
    pub fn add_objective(&mut self, column: Column, objective: f64) {
        self.columns[column.0].objective += objective;
    }

    /// Number of columns.
    #[must_use]
    pub fn num_columns(&self) -> usize {
        self.columns.len()
    }

    /// Number of terms in all rows.
    #[must_use]
    pub fn num_terms(&self) -> usize {
        self.rows.iter().map(|row| row.terms.len()).sum()
    }

    /// The best choice.
    ///
    /// # Errors
    /// Why there is none, or none was found.
    pub fn solve(&self, limits: Limits) -> Result<Solution, Unsolved> {
        self.solve_from(None, limits)
    }

    /// The best choice, where a search over whole numbers begins with a choice that is known to meet all rows. One that
    /// does not is passed over.
    ///
    /// # Errors
    /// As [`LinearProgram::solve`].
    pub(crate) fn solve_from(&self, known: Option<&[f64]>, limits: Limits) -> Result<Solution, Unsolved> {
        let (terms, terms_max) = (self.num_terms(), limits.terms_max);
        if terms > terms_max {
            return Err(Unsolved::TooLarge { terms, terms_max });
        }
        let mut failed = None;
        for formulation in Formulation::ALL {
            match self.solve_as(formulation, known, limits) {
                Err(Unsolved::Failed(reason)) => failed.get_or_insert(reason),
                other => return other,
            };
        }
        Err(Unsolved::Failed(failed.unwrap_or_default()))
    }

    fn solve_as(
        &self,
        formulation: Formulation,
        known: Option<&[f64]>,
        limits: Limits,
    ) -> Result<Solution, Unsolved> {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let mut add = |range: &Range| {
            if range.is_integer {
                // A range that was changed may lie between two whole numbers: then it is empty, as it must be.
                problem.add_integer_var(
                    range.objective,
                    (range.low.ceil() as i32, range.high.floor() as i32),
                )
            } else {
                problem.add_var(range.objective, (range.low, range.high))
            }
        };
        let mut variables: Vec<Variable> = if formulation.columns_reversed {
            self.columns.iter().rev().map(&mut add).collect()
        } else {
            self.columns.iter().map(&mut add).collect()
        };
        if formulation.columns_reversed {
            variables.reverse();
        }
        for (place, row) in self.rows.iter().enumerate() {
            let terms = row
                .terms
                .iter()
                .map(|(column, factor)| (variables[column.0], *factor));
            let limit = formulation.limit(row, place, self.rows.len());
            problem.add_constraint(terms, row.comparison, limit);
        }
        let mut options = SolveOptions::default();
        options.node_limit = Some(limits.nodes_max);
        options.mip_gap = limits.gap;
        options.warm_start =
            known.map(|values| variables.iter().copied().zip(values.iter().copied()).collect());
        let outcome = problem.solve_with(options).map_err(|error| match error {
            Error::Infeasible => Unsolved::Infeasible,
            Error::Unbounded => Unsolved::Unbounded,
            other => Unsolved::Failed(other.to_string()),
        })?;
        let Some(solution) = outcome.solution() else {
            return Err(Unsolved::OutOfNodes {
                nodes_max: limits.nodes_max,
            });
        };
        let value = |(variable, range): (&Variable, &Range)| {
            let value = solution.var_value(*variable);
            let value = if range.is_integer { value.round() } else { value };
            value.max(range.low).min(range.high)
        };
        let values: Vec<f64> = variables.iter().zip(&self.columns).map(value).collect();
        Ok(Solution {
            objective: self
                .columns
                .iter()
                .zip(&values)
                .map(|(range, value)| range.objective * value)
                .sum(),
            is_best: solution.status() == SolutionStatus::Optimal,
            values,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_programme_of_two_columns_ends_in_the_corner_that_a_drawing_shows() {
        // max x + 2 y, x + y <= 4, x + 3 y <= 6, x, y >= 0: corners (0,0), (4,0), (3,1), (0,2) come to 0, 4, 5, 4.
        let mut program = LinearProgram::new();
        let x = program.column(1.0, 0.0, f64::INFINITY);
        let y = program.column(2.0, 0.0, f64::INFINITY);
        program.at_most(vec![(x, 1.0), (y, 1.0)], 4.0);
        program.at_most(vec![(x, 1.0), (y, 3.0)], 6.0);
        let answer = program.solve(Limits::default()).unwrap();
        assert!((answer.objective - 5.0).abs() < 1e-9 && answer.is_best);
        assert!((answer.value(x) - 3.0).abs() < 1e-9 && (answer.value(y) - 1.0).abs() < 1e-9);
        // Now 4 x + 2 y: (4, 0). With x at most 1: (1, 5/3), objective 4 + 10/3... the row x + 3 y <= 6 binds.
        program.add_objective(x, 3.0);
        assert!((program.solve(Limits::default()).unwrap().objective - 16.0).abs() < 1e-9);
        program.at_most(vec![(x, 1.0)], 1.0);
        let answer = program.solve(Limits::default()).unwrap();
        assert!((answer.objective - (4.0 + 10.0 / 3.0)).abs() < 1e-9);
    }

    #[test]
    fn a_programme_without_an_answer_says_why() {
        let mut program = LinearProgram::new();
        let x = program.column(1.0, 0.0, f64::INFINITY);
        assert_eq!(program.solve(Limits::default()), Err(Unsolved::Unbounded));
        program.at_most(vec![(x, 1.0)], 1.0);
        program.at_least(vec![(x, 1.0)], 2.0);
        assert_eq!(program.solve(Limits::default()), Err(Unsolved::Infeasible));
        let limits = Limits {
            terms_max: 1,
            ..Limits::default()
        };
        let too_large = Unsolved::TooLarge {
            terms: 2,
            terms_max: 1,
        };
        assert_eq!(program.solve(limits), Err(too_large));
        program.column(1.0, 0.0, f64::NAN);
        assert!(matches!(
            program.solve(Limits::default()),
            Err(Unsolved::Failed(_))
        ));
    }

    /// A knapsack whose relaxation says little: equal items of weight and value 2 for an odd room, beside a column that
    /// fills what is left at a loss.
    fn stubborn(num: usize) -> LinearProgram {
        let mut program = LinearProgram::new();
        let items: Vec<Column> = (0..num).map(|_| program.integer(2.0, 0, 1)).collect();
        let rest = program.column(-1.0, 0.0, 1.0);
        let terms = items.iter().map(|item| (*item, 2.0)).chain([(rest, 1.0)]);
        program.equals(terms.collect(), num as f64 + 1.0 - (num % 2) as f64);
        program
    }

    #[test]
    fn the_search_is_limited_by_nodes_and_begins_with_what_is_known() {
        // Room for 9: 4 items of 2 and a rest of 1 come to 8 - 1.
        let best = stubborn(8).solve(Limits::default()).unwrap();
        assert!(best.is_best && (best.objective - 7.0).abs() < 1e-9);
        // Among 30 items there are too many halves to try: the answer is good, but not known to be best.
        let few = Limits {
            nodes_max: 50,
            ..Limits::default()
        };
        let mut known = vec![0.0; 31];
        known[..15].fill(1.0);
        known[30] = 1.0;
        let answer = stubborn(30).solve_from(Some(&known), few).unwrap();
        assert!((answer.objective - 29.0).abs() < 1e-9 && !answer.is_best);
    }

    /// A small programme: columns 0 to 3 with a factor of the objective each, whole or not, and rows.
    #[derive(Clone, Debug)]
    struct Small {
        objectives: Vec<i32>,
        rows: Vec<(Vec<i32>, i32)>,
    }

    fn small() -> impl Strategy<Value = Small> {
        (1_usize..5).prop_flat_map(|num| {
            let objectives = proptest::collection::vec(-5_i32..6, num);
            let row = (proptest::collection::vec(-3_i32..6, num), 0_i32..15);
            let rows = proptest::collection::vec(row, 0..4);
            (objectives, rows).prop_map(|(objectives, rows)| Small { objectives, rows })
        })
    }

    /// The best of all choices on a grid of so many steps a unit, by trying each.
    fn best_on_grid(small: &Small, steps: i32) -> f64 {
        let num = small.objectives.len();
        let mut best = f64::NEG_INFINITY;
        let mut choice = vec![0_i32; num];
        'all: loop {
            let sum = |factors: &[i32]| -> i32 { factors.iter().zip(&choice).map(|(a, b)| a * b).sum() };
            if small
                .rows
                .iter()
                .all(|(factors, limit)| sum(factors) <= limit * steps)
            {
                best = best.max(f64::from(sum(&small.objectives)) / f64::from(steps));
            }
            for digit in &mut choice {
                if *digit < 3 * steps {
                    *digit += 1;
                    continue 'all;
                }
                *digit = 0;
            }
            return best;
        }
    }

    fn program_of(small: &Small, is_integer: bool) -> LinearProgram {
        let mut program = LinearProgram::new();
        let columns: Vec<Column> = small
            .objectives
            .iter()
            .map(|objective| match is_integer {
                true => program.integer(f64::from(*objective), 0, 3),
                false => program.column(f64::from(*objective), 0.0, 3.0),
            })
            .collect();
        for (factors, limit) in &small.rows {
            let terms = columns
                .iter()
                .zip(factors)
                .map(|(column, factor)| (*column, f64::from(*factor)));
            program.at_most(terms.collect(), f64::from(*limit));
        }
        program
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn whole_numbers_are_as_good_as_trying_all_and_parts_at_least_so(small in small()) {
            let whole = program_of(&small, true).solve(Limits::default()).unwrap();
            let parts = program_of(&small, false).solve(Limits::default()).unwrap();
            let best = best_on_grid(&small, 1);
            prop_assert!((whole.objective - best).abs() < 1e-6, "{} is not {}", whole.objective, best);
            let grid = best_on_grid(&small, 3);
            // No point of the grid beats the optimum, and the optimum meets every row.
            prop_assert!(parts.objective >= grid - 1e-6);
            for (factors, limit) in &small.rows {
                let sum: f64 = factors.iter().zip(&parts.values).map(|(a, b)| f64::from(*a) * b).sum();
                prop_assert!(sum <= f64::from(*limit) + 1e-6);
            }
            let objective: f64 = small.objectives.iter().zip(&parts.values).map(|(a, b)| f64::from(*a) * b).sum();
            prop_assert!((objective - parts.objective).abs() < 1e-6);
            prop_assert!(whole.values.iter().all(|value| value.fract() == 0.0));
        }

        #[test]
        fn the_same_programme_has_the_same_answer_to_the_last_bit(small in small()) {
            for is_integer in [true, false] {
                let solve = || program_of(&small, is_integer).solve(Limits::default()).unwrap();
                prop_assert_eq!(solve(), solve());
            }
        }
    }
}
