//! `pleach index`: learns the formula of an index.

use pleach_baselines::dealing::{Formula, deal_schema, formula_of};

use crate::commands::Context;
use crate::flags::IndexArgs;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::workload_source::WorkloadSource;
use pleach_experiments::index_search::{IndexSearch, by_hand};
use pleach_experiments::run_folder::atomic_file;

/// Searches, and writes the formula.
///
/// # Errors
/// Flags that cannot be used, simulations that fail, a file that cannot be written.
pub fn run(args: &IndexArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if args.to.exists() && !args.target.force {
        let hint = "Give another name, or --force to replace it.";
        let allowed = "a file that is not there yet";
        return Err(Error::config("to", args.to.display(), allowed, hint));
    }
    let search = search(args)?;
    let first = match &args.from {
        Some(path) => read(path)?,
        None => by_hand(),
    };
    let mut failed = None;
    let found = search.run(&first, |generation, loss| {
        let line = format!("generation {generation}: {loss:+.4} on validation lists");
        if !args.machine.words.quiet && failed.is_none() {
            failed = context.say(&line).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let mut formula = found.best;
    let conditions = search.conditions.iter().map(|condition| condition.word());
    formula.origin = format!(
        "evolution from \"{}\": seed {}, {} generations of {} on {} lists of {} at loads {:?}, {}; {:+.4} on validation lists",
        first.origin,
        search.seed,
        search.generations,
        search.population,
        search.lists,
        search.kinds.join(", "),
        search.loads,
        conditions.collect::<Vec<_>>().join(" and "),
        found.validation_loss
    );
    atomic_file::write_json(&args.to, &formula)?;
    if args.machine.words.quiet {
        return Ok(());
    }
    context.say(&format!("{}\n{}", formula.text(), args.to.display()))
}

fn search(args: &IndexArgs) -> Result<IndexSearch, Error> {
    let mut search = IndexSearch {
        num_jobs: args.num_jobs,
        generations: args.generations,
        population: args.population.into(),
        lists: args.lists.into(),
        validation_lists: args.validation_lists.into(),
        without: args.without.clone(),
        conditions: args.conditions.all(),
        step: args.step,
        seed: args.draws.seed,
        ..IndexSearch::default()
    };
    if !args.workload.is_empty() {
        search.kinds.clone_from(&args.workload);
    }
    if !args.load.is_empty() {
        search.loads.clone_from(&args.load);
        search.loads_of_files.clone_from(&args.load);
    }
    for name in &args.without {
        deal_schema().check_name(name).map_err(|allowed| {
            let hint = "`pleach policies --features` lists the columns of a deal.";
            Error::config("without", name, allowed, hint)
        })?;
    }
    let whole = WorkloadSource {
        workload: search.kinds.clone(),
        ..WorkloadSource::default()
    };
    whole.check()?;
    Ok(search)
}

fn read(path: &std::path::Path) -> Result<Formula, Error> {
    let formula = formula_of(&Formula::value_in(path)?)?;
    formula.validate("index")?;
    Ok(formula)
}
