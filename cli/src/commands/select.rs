//! `pleach distill select`: a selector from a search.

use crate::commands::Context;
use crate::flags::SelectArgs;
use crate::progress::bars;
use pleach_experiments::distill::select::{SelectInput, default_rules, select};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::policy_spec::SELECTOR_FILE;
use pleach_experiments::run_folder::RunFolder;

/// Searches for a selector.
///
/// # Errors
/// Flags that cannot be used, a folder in the way, a run that fails.
pub fn run(args: &SelectArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let env = args.workload.source().env(&args.scheduling.config())?;
    env.validate()?;
    let mut rules: Vec<String> = args.rules.clone();
    if rules.is_empty() {
        rules = default_rules(&env);
    }
    let input = SelectInput {
        rules,
        leaves: args.leaves.into(),
        simulations: args.simulations,
        lists: args.lists.into(),
        made_on: serde_json::to_value(&args.workload).unwrap_or_default(),
    };
    let (seed, quiet) = (args.run.seed, args.run.quiet);
    let folder = RunFolder::open("select", args, seed, args.run.out.as_deref(), args.run.existing())?;
    let found = select(&env, &input, seed, &bars(quiet))?;
    folder.write(SELECTOR_FILE, found.selector.to_json().as_bytes())?;
    let words = found.selector.to_text();
    folder.write("selector.txt", words.as_bytes())?;
    for selector in &found.sizes {
        let name = format!("sizes/leaves-{}.json", selector.num_leaves());
        folder.write(&name, selector.to_json().as_bytes())?;
    }
    folder.write_json("select.json", &found.report)?;
    let table = found.report.markdown();
    let made = serde_json::to_string_pretty(&found.selector.meta().trained_by).unwrap_or_default();
    let page = format!(
        "# A selector\n\n```text\n{words}```\n\nAverage JCT over that of the heuristic that is best over the part in hindsight, geometric \
         mean and paired 95 % interval,\n{} lists of each part on which nothing was chosen; {} lists were simulated in the race.\n\n{table}\n\
         ```bash\n{}\n```\n\n```json\n{made}\n```\n",
        args.lists, found.report.simulations, context.command_line
    );
    folder.write("report.md", page.as_bytes())?;
    if let Some(path) = &args.run.json {
        context.write_json(path, &found.report)?;
    }
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if !quiet {
        context.say(&words)?;
        context.say(&table)?;
        context.say(&format!("written to {}", place.display()))?;
    }
    Ok(())
}
