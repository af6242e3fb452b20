//! `pleach distill --search --form formula`: a formula from a search in the simulator.

use pleach_experiments::door::{DOOR, FORMULA_FILE};
use pleach_experiments::error::Error;
use pleach_experiments::formula_search::{FormulaInput, FormulaSearch, search_formula};
use pleach_scheduler::FormulaPolicy;
use pleach_scheduler::formula::ScoreFormula;

use super::search::against;
use super::shared::Setup;
use crate::commands::Context;
use crate::flags::DistillArgs;
use crate::progress::bars;

/// The formulas that a search begins with too, each with its name.
fn starts(paths: &[String]) -> Result<Vec<(String, ScoreFormula)>, Error> {
    let named = paths.iter().map(|path| {
        let policy = DOOR.open_one(path)?;
        let formula = policy.formula_policy().map(FormulaPolicy::formula);
        let formula = formula.filter(|formula| formula.guards().is_none());
        let hint = "Guards are put into the result: pleach distill seal --overdue.";
        let refused = || Error::config("start", path, "formulas without guards", hint);
        Ok((format!("start: {path}"), formula.ok_or_else(refused)?.clone()))
    });
    named.collect()
}

/// Searches for a formula.
///
/// # Errors
/// As [`super::run`].
pub(super) fn run(args: &DistillArgs, context: &mut Context<'_>) -> Result<(), Error> {
    Error::refuse_if(
        args.deal,
        "deal",
        true,
        "none with --form formula",
        "A formula is dealt by as it is: --policy deal:formula.json.",
    )?;
    let setup = Setup::of(args, &[])?;
    let usual = FormulaSearch::default();
    let config = FormulaSearch {
        simulations: args.simulations.unwrap_or(usual.simulations),
        symbols_max: args
            .leaves
            .iter()
            .max()
            .map_or(usual.symbols_max, |most| usize::from(*most)),
        accept_lists: args.accept_lists.map_or(usual.accept_lists, usize::from),
        ..usual
    };
    let input = FormulaInput {
        teacher: setup.teacher.clone(),
        formulas: starts(&args.start)?,
        against: against(&args.beside.against, None, setup.env.sim.capabilities)?,
    };
    let folder = setup.folder("distill", None, context)?;
    let watcher = bars(setup.quiet);
    let found = watcher.part("search", config.simulations as usize, || {
        search_formula(&setup.env, &config, &input, setup.seed, &watcher)
    })?;
    let words = found.formula.in_words();
    let table = found.report.markdown();
    folder.write(FORMULA_FILE, found.formula.to_json().as_bytes())?;
    folder.write("formula.txt", words.as_bytes())?;
    folder.write("search.md", table.as_bytes())?;
    folder.write_json("search.json", &found.report)?;
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if !setup.quiet {
        let file = place.join(FORMULA_FILE);
        let next = format!("pleach evaluate --policy {}", file.display());
        context.say(&format!(
            "{words}\n{table}\n{}\nwritten to {}; on jobs of your own: {next}",
            found.report.verdict,
            place.display()
        ))?;
    }
    Ok(())
}
