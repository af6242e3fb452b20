//! `pleach index`: learns the formula of an index.

use pleach_dealing::{Formula, deal_schema, formula_of};

use crate::commands::Context;
use crate::flags::IndexArgs;
use pleach_experiments::error::Error;
use pleach_experiments::index_search::{IndexSearch, by_hand};
use pleach_experiments::judge::{PartRow, markdown};
use pleach_experiments::run_folder::atomic_file;
use pleach_experiments::train::verdict;
use pleach_experiments::{SchedulingConfig, WorkloadSource};

/// Jobs of a list, unless another number is given.
const NUM_JOBS: u32 = 200;

/// Searches, and writes the formula.
///
/// # Errors
/// Flags that cannot be used, simulations that fail, a file that cannot be written.
pub fn run(args: &IndexArgs, context: &mut Context<'_>) -> Result<(), Error> {
    args.target.check("to", &args.to)?;
    let search = search(args)?;
    let first = match &args.from {
        Some(path) => read(path)?,
        None => by_hand(),
    };
    if !args.machine.words.quiet {
        for line in search.beforehand()? {
            context.say(&line)?;
        }
    }
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
    let conditions: Vec<&str> = match &search.scheduling {
        Some(_) => vec!["conditions of its own"],
        None => search
            .conditions
            .iter()
            .map(|condition| condition.word())
            .collect(),
    };
    formula.origin = format!(
        "evolution from \"{}\": seed {}, {} generations of {} on {} lists of {} at loads {:?}, {}; {:+.4} on validation lists",
        first.origin,
        search.seed,
        search.generations,
        search.population,
        search.lists,
        search.kinds.join(", "),
        search.loads,
        conditions.join(" and "),
        found.validation_loss
    );
    atomic_file::write_json(&args.to, &formula)?;
    if args.machine.words.quiet {
        return Ok(());
    }
    context.say(&format!("{}\n{}", formula.text(), args.to.display()))?;
    let to_try = [
        "more --generations and --lists".to_string(),
        "a smaller --step from a formula that is good already (--from)".to_string(),
    ];
    let is_start = found.validation_loss >= 0.0;
    if let Some(verdict) = verdict::in_words(is_start, None, &to_try) {
        return context.say(&verdict);
    }
    let bars = (context.bars)(false);
    let judged = search.judge(&formula, &first, &bars)?;
    let named = |name: &str, rows: &[PartRow]| (name.to_string(), rows.to_vec());
    let table = markdown(
        &judged.rows,
        &[named("found", &judged.rows), named("first", &judged.of_start)],
    );
    context.say(&format!("{table}{}", judged.verdict))
}

fn search(args: &IndexArgs) -> Result<IndexSearch, Error> {
    let mut search = IndexSearch {
        num_jobs: args.workload.num_jobs.unwrap_or(NUM_JOBS),
        generations: args.generations,
        population: args.population.into(),
        lists: args.lists.into(),
        validation_lists: args.validation_lists.into(),
        without: args.without.clone(),
        conditions: args.conditions.condition.clone(),
        step: args.step,
        seed: args.draws.seed,
        ..IndexSearch::default()
    };
    if !args.workload.workload.is_empty() {
        search.kinds.clone_from(&args.workload.workload);
    }
    let loads: Vec<f64> = args
        .workload
        .load
        .into_iter()
        .chain(args.loads.iter().copied())
        .collect();
    if !loads.is_empty() {
        search.loads.clone_from(&loads);
        search.loads_of_files = loads;
    }
    search.source = WorkloadSource {
        workload: Vec::new(),
        num_jobs: None,
        load: None,
        ..args.workload.clone()
    };
    if args.scheduling != SchedulingConfig::default() {
        args.scheduling.check()?;
        search.scheduling = Some(args.scheduling.clone());
        search.conditions.truncate(1);
    }
    for name in &args.without {
        deal_schema().check_name(name).map_err(|allowed| {
            let hint = "`pleach policies --features` lists the columns of a deal.";
            Error::config("without", name, allowed, hint)
        })?;
    }
    search.check()?;
    Ok(search)
}

fn read(path: &std::path::Path) -> Result<Formula, Error> {
    let formula = formula_of(&Formula::value_in(path)?)?;
    formula.validate("index")?;
    Ok(formula)
}
