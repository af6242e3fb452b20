//! A formula from a search: genetic programming over the expressions of [`pleach_scheduler::formula`], judged in the simulator.
//!
//! It begins with rules by hand, given formulas, and a teacher's scores by least squares. Children race on shared lists in three rungs;
//! constants of the best are tuned by evolution ([`SepCma`](crate::index_search::SepCma)); parts that change nothing are cut. One of the
//! kept formulas is chosen on lists that the race has not seen, the smallest that is nearly the best, and it is accepted where it beats
//! the best start on lists that nothing was chosen by, by a paired interval, and loses on no part ([`crate::judge`]).
//!
//! # Source
//! Priority rules by genetic programming: Branke, Nguyen, Pickardt and Zhang (IEEE TEVC 2016). Rungs are successive halving (Jamieson
//! and Talwalkar, AISTATS'16).

mod config;
mod race;
mod starts;
mod variation;

use std::collections::BTreeMap;

use pleach_distill::search::{Outcome, SearchConfig};
use pleach_env::{EnvConfig, Split};
use pleach_scheduler::FormulaPolicy;
use pleach_scheduler::formula::ScoreFormula;
use pleach_scheduler::policy::Policy as _;
use pleach_scheduler::settings::Settings as _;
use serde::Serialize;

pub use config::FormulaSearch;

use self::race::{Entry, Race};
use self::starts::{hand_rules, least_squares};
use crate::door::PolicySpec;
use crate::error::Error;
use crate::evaluate::stats::Ratio;
use crate::judge::{
    CHOICE_LISTS, CHOSEN, Kind, Lists, PartRow, REPORTED, Rivals, SEARCHED, kinds_of, markdown, nearly_best,
    paired,
};
use crate::progress::Watcher;

/// What a search begins with beside the rules by hand, and what it is held against.
#[derive(Clone, Debug, Default)]
pub struct FormulaInput {
    /// Whose scores are fitted; none = rules alone.
    pub teacher: Option<PolicySpec>,
    /// More starts.
    pub formulas: Vec<(String, ScoreFormula)>,
    /// Policies that the table shows beside the formula.
    pub against: Vec<PolicySpec>,
}

/// How a formula came about.
#[derive(Clone, Debug, Serialize)]
pub struct FormulaReport {
    /// The settings.
    pub config: FormulaSearch,
    /// Lists simulated in the race.
    pub simulations: u64,
    /// The best start and its objective in the race.
    pub best_start: (String, f64),
    /// Symbols, objective in the race and on the lists of the choice of each formula that was chosen among, and its line.
    pub frontier: Vec<(usize, f64, f64, String)>,
    /// Whether the found one takes the place of the best start.
    pub accepted: bool,
    /// Why.
    pub verdict: String,
    /// Average JCT of what was found over the best start's.
    pub over_start: Option<Ratio>,
    /// What was found, the best start and the others, part by part over the best heuristic.
    pub rows: Vec<(String, Vec<PartRow>)>,
    /// What was found over each of the others, in their order, over all lists.
    pub over_others: Vec<(String, Option<Ratio>)>,
}

/// The result.
#[derive(Clone, Debug)]
pub struct FoundFormula {
    /// The formula, sealed.
    pub formula: ScoreFormula,
    /// How it came about.
    pub report: FormulaReport,
}

impl FormulaReport {
    /// The tables as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let parts = self.rows.first().map_or(&[][..], |(_, rows)| rows.as_slice());
        let mut text = markdown(parts, &self.rows);
        text.push_str("\n| symbols | objective of the race, of the choice | formula |\n|---|---|---|\n");
        for (symbols, race, choice, line) in &self.frontier {
            text.push_str(&format!("| {symbols} | {race:.4}, {choice:.4} | `{line}` |\n"));
        }
        for (name, ratio) in &self.over_others {
            if let Some(ratio) = ratio {
                text.push_str(&format!(
                    "\nAverage JCT over {name}'s: {}",
                    crate::judge::in_words(ratio)
                ));
            }
        }
        text.push('\n');
        text
    }
}

/// Searches for a formula on the episodes of an environment.
///
/// # Errors
/// Settings out of range, lists that cannot be drawn, a run that fails.
pub fn search_formula(
    env: &EnvConfig,
    config: &FormulaSearch,
    input: &FormulaInput,
    seed: u64,
    watcher: &Watcher,
) -> Result<FoundFormula, Error> {
    config.check_at("search", "")?;
    let kinds = kinds_of(env, &SEARCHED);
    let num_parts = kinds.len().max(1);
    let rungs = SearchConfig::default().rungs.into_iter();
    let objective = SearchConfig {
        num_parts,
        rungs: rungs.map(|lists| lists.div_ceil(num_parts) * num_parts).collect(),
        ..SearchConfig::default()
    };
    let of_each = objective.num_lists() / objective.num_parts;
    let lists = Lists::draw(
        env,
        &kinds,
        (seed, "formula/race"),
        of_each,
        Rivals::Heuristics,
        watcher,
    )?;
    let mut starts = hand_rules(env)?;
    starts.extend(input.formulas.iter().cloned());
    if let Some(teacher) = &input.teacher
        && let Some(fit) = least_squares(env, teacher, (seed, config.symbols_max))?
    {
        starts.push((format!("least squares of {}", teacher.name()), fit));
    }
    for (name, start) in &starts {
        PolicySpec::formula(name, start.clone()).check(env.sim.capabilities)?;
    }
    let mut race = Race::of(env, &lists, &objective, config, (seed, watcher))?;
    race.begin(starts)?;
    race.evolve()?;
    race.tune()?;
    race.cut()?;
    finished(env, input, seed, &race, watcher)
}

/// Chooses, accepts and reports.
fn finished(
    env: &EnvConfig,
    input: &FormulaInput,
    seed: u64,
    race: &Race<'_>,
    watcher: &Watcher,
) -> Result<FoundFormula, Error> {
    let drawn = |split: Split, kinds: &[Kind], stream: &str, num: usize| {
        Lists::draw(
            &env.in_split(split),
            kinds,
            (seed, stream),
            num,
            Rivals::Heuristics,
            watcher,
        )
    };
    let choice = drawn(Split::Validation, &CHOSEN, "formula/choice", CHOICE_LISTS)?;
    let objective = SearchConfig {
        num_parts: choice.parts.len(),
        ..SearchConfig::default()
    };
    let frontier: Vec<Entry> = race.frontier();
    let mut judged = Vec::new();
    for entry in &frontier {
        judged.push(objective.objective(&played(&choice, &entry.formula)?));
    }
    let chosen = &frontier[nearly_best(&judged)?];
    let start = race.best_start();

    let lists = drawn(
        Split::Test,
        &REPORTED,
        "formula/acceptance",
        race.config.accept_lists,
    )?;
    let (own, of_start) = (played(&lists, &chosen.formula)?, played(&lists, &start.formula)?);
    let judgement = lists.acceptance(&own, &of_start);
    let mut all = vec![
        ("found".to_owned(), judgement.rows),
        (format!("the best start ({})", start.origin), judgement.of_start),
    ];
    let mut over_others = Vec::new();
    for policy in input.teacher.iter().chain(&input.against) {
        let other = lists.all(policy)?;
        all.push((policy.name().to_owned(), lists.rows(&other)));
        over_others.push((policy.name().to_owned(), paired(&own, &other)));
    }
    let kept = if judgement.accepted { chosen } else { start };
    let mut formula = kept.formula.clone();
    formula.estimates = vec![crate::distill::provenance(env.sim.estimates)];
    formula.trained_by = BTreeMap::from([
        ("seed".to_owned(), serde_json::json!(seed)),
        ("origin".to_owned(), serde_json::json!(kept.origin)),
        ("search".to_owned(), serde_json::json!(race.config)),
    ]);
    let line = |(entry, judged): (&Entry, &f64)| {
        let symbols = entry.formula.expression().num_symbols();
        (symbols, entry.objective, *judged, entry.formula.text())
    };
    let report = FormulaReport {
        config: race.config.clone(),
        simulations: race.simulations,
        best_start: (start.origin.clone(), start.objective),
        frontier: frontier.iter().zip(&judged).map(line).collect(),
        accepted: judgement.accepted,
        verdict: judgement.verdict,
        over_start: judgement.over_start,
        rows: all,
        over_others,
    };
    Ok(FoundFormula {
        formula: formula.sealed(),
        report,
    })
}

/// A formula on all lists.
fn played(lists: &Lists, formula: &ScoreFormula) -> Result<Vec<Outcome>, Error> {
    let policy = FormulaPolicy::new(formula.clone()).sparing();
    debug_assert!(policy.needs().observation);
    lists.played(|| Ok(race::planner(&policy)))
}

#[cfg(test)]
mod tests;
