//! Calls of functions as a list has them, each function an application of its own, a chain of one.

use std::collections::HashMap;
use std::path::Path;

use pleach_tables::{Account, Problem, Table};
use pleach_workloads::Seed;
use rand::seq::SliceRandom as _;

use super::app::{Graph, Work};
use super::profile::{Configuration, Function};

/// Calls of a list at most.
pub(super) const CALLS_MAX: usize = 20_000_000;
/// Functions of a list at most.
pub(super) const FUNCTIONS_MAX: usize = 10_000;
/// Longest run and cold start, s.
pub(super) const RUN_S_MAX: f64 = 3_600.0;
/// Latest arrival, s.
pub(super) const ARRIVAL_S_MAX: f64 = 1e9;
/// Cold start where a list has none, s. *Assumed.*
pub(super) const COLD_S: f64 = 1.0;
/// What to do about a row.
pub(super) const FIX: &str = "mend the row or leave it out";

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// When it comes, us from the first.
    pub at_us: u64,
    /// Number of its function.
    pub function: u32,
    /// How long it runs, us: 1 to an hour.
    pub run_us: u32,
}

/// A function as a list has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// Its name.
    pub name: String,
    /// Slices of a GPU that it holds; 0: it runs on a core alone.
    pub slices: u16,
    /// Its cold start, s; none where the list has none, and 1 s is *assumed*.
    pub cold_s: Option<f64>,
}

/// A list that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Calls {
    /// The format.
    pub format: &'static str,
    /// Functions.
    pub functions: Vec<Called>,
    /// By time; the first comes at 0.
    pub calls: Vec<Call>,
    /// Times were drawn within minutes, by counts: a part has some functions for the whole time, not all for some of it.
    pub is_counted: bool,
    /// Rows read, left out and mended, by reason.
    pub account: Account,
    /// What was assumed.
    pub notes: Vec<String>,
}

/// A complaint about a file.
pub(super) fn whole(path: &Path, message: &str) -> Problem {
    Problem::data(path, message)
}

/// Functions by name, as they come.
#[derive(Default)]
pub(super) struct Names(HashMap<String, u32>);

impl Names {
    /// The number of a name in a list, to which a function that is new is added; `column` is what the name stands in.
    ///
    /// # Errors
    /// One function too many; a new one that cannot be read.
    pub(super) fn number(
        &mut self,
        list: &mut Calls,
        (table, column): (&Table, Option<usize>),
        name: String,
        called: impl FnOnce(String) -> Result<Called, Problem>,
    ) -> Result<u32, Problem> {
        if let Some(number) = self.0.get(&name) {
            return Ok(*number);
        }
        let num = list.functions.len();
        if num == FUNCTIONS_MAX {
            return Err(table.refuse(column, &format!("at most {FUNCTIONS_MAX} functions"), FIX));
        }
        self.0.insert(name.clone(), num as u32);
        list.functions.push(called(name)?);
        Ok(num as u32)
    }
}

impl Calls {
    pub(super) fn new(format: &'static str) -> Calls {
        Calls {
            format,
            functions: Vec::new(),
            calls: Vec::new(),
            is_counted: false,
            notes: Vec::new(),
            account: Account::default(),
        }
    }

    /// Adds a call, times in s. Whether its run time was mended: below a microsecond or above an hour.
    pub(super) fn push(
        &mut self,
        table: &Table,
        at_s: f64,
        function: u32,
        run_s: f64,
    ) -> Result<bool, Problem> {
        if self.calls.len() == CALLS_MAX {
            return Err(table.error(
                "-",
                format!("more than {CALLS_MAX} calls; give a part of the list"),
            ));
        }
        let run_us = (1e6 * run_s).round().clamp(1.0, 1e6 * RUN_S_MAX);
        self.calls.push(Call {
            at_us: (1e6 * at_s).round() as u64,
            function,
            run_us: run_us as u32,
        });
        Ok(run_us != (1e6 * run_s).round())
    }

    /// What was left out, mended and assumed, a line each.
    #[must_use]
    pub fn told(&self) -> Vec<String> {
        let rows = [self.account.sums("rows")]
            .into_iter()
            .chain(self.account.lines("rows"));
        rows.chain(self.notes.iter().cloned()).collect()
    }

    /// The functions as profiles: each its median run time on a core and its slices.
    ///
    /// # Errors
    /// More slices than a GPU has.
    pub fn work(&self) -> Result<Work, Problem> {
        let mut runs: Vec<Vec<u32>> = vec![Vec::new(); self.functions.len()];
        self.calls
            .iter()
            .for_each(|call| runs[call.function as usize].push(call.run_us));
        let profile = |(called, mut runs): (&Called, Vec<u32>)| {
            runs.sort_unstable();
            let median = Configuration {
                batch: 1,
                cores: 1,
                slices: called.slices,
                latency_us: runs.get(runs.len() / 2).map_or(1, |run_us| u64::from(*run_us)),
            };
            let cold_us = (1e6 * called.cold_s.unwrap_or(COLD_S)) as u64;
            Function::new(&called.name, cold_us, vec![median])
        };
        let functions = self.functions.iter().zip(runs).map(profile);
        let chain = |called: &Called| Graph::chain(&called.name, &[&called.name]);
        let graphs: Vec<Graph> = self.functions.iter().map(chain).collect();
        Work::new(functions.collect::<Result<_, _>>()?, &graphs)
    }

    /// So many parts, each from 0 on: consecutive ones, or, of a list that was counted, all calls of some functions each.
    #[must_use]
    pub fn parts(&self, num: usize, seed: Seed) -> Vec<Vec<Call>> {
        let mut parts = vec![Vec::new(); num];
        if self.is_counted {
            let mut dealt: Vec<usize> = (0..self.functions.len()).map(|function| function % num).collect();
            dealt.shuffle(&mut seed.stream("functions", 0));
            for call in &self.calls {
                parts[dealt[call.function as usize]].push(*call);
            }
        } else {
            for (place, call) in self.calls.iter().enumerate() {
                parts[place * num / self.calls.len()].push(*call);
            }
        }
        for part in &mut parts {
            let first_us = part.first().map_or(0, |call: &Call| call.at_us);
            part.iter_mut().for_each(|call| call.at_us -= first_us);
        }
        parts
    }
}
