//! `pleach distill --search`: a tree from a search in the simulator.

use pleach_distill::search::SearchConfig;
use pleach_scheduler::tree::{Tree, TreePolicy};
use pleach_scheduler::{ActionKind, Capabilities};

use super::shared::{Page, Setup, write_tree};
use crate::commands::Context;
use crate::flags::DistillArgs;
use crate::progress::bars;
use pleach_experiments::distill::search::{SearchInput, search_tree, state_file};
use pleach_experiments::door::{DOOR, PolicySpec};
use pleach_experiments::error::Error;
use pleach_experiments::train::objective;

/// Lists of each part on which a searched tree must beat its start.
const ACCEPT_LISTS: u16 = 40;

/// The trees that a search begins at too, each with its name.
fn starts(paths: &[String], capabilities: Capabilities) -> Result<Vec<(String, Tree)>, Error> {
    let mut trees = Vec::new();
    for path in paths {
        let policy = DOOR.open_one(path)?;
        policy.check(capabilities)?;
        let Some(tree) = policy.tree_policy().map(TreePolicy::tree) else {
            return Err(Error::config("start", path, "trees", "pleach distill makes one."));
        };
        Error::refuse_if(
            !tree.guards().is_none(),
            "start",
            path,
            "trees without guards, which a search does not judge",
            "Take them out of a copy, and put one into the result with pleach distill seal --overdue.",
        )?;
        trees.push((format!("start: {path}"), tree.clone()));
    }
    Ok(trees)
}

/// Searches for a tree.
///
/// # Errors
/// As [`super::run`].
pub(super) fn run(args: &DistillArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let setup = Setup::of(args, &[])?;
    let capabilities = setup.env.sim.capabilities;
    let mut search = SearchConfig::default();
    search.simulations = args.simulations.unwrap_or(search.simulations);
    if let Some(leaves) = args.leaves.iter().max() {
        search.leaves_max = usize::from(*leaves);
    }
    let against = against(&args.beside.against, setup.teacher.as_ref(), capabilities)?;
    let trees = starts(&args.start, capabilities)?;
    Error::refuse_if(
        args.deal && !capabilities.can(ActionKind::Preempt),
        "deal",
        true,
        "a cluster whose jobs may be stopped",
        "Give --preemption too.",
    )?;
    let folder = setup.folder("distill", None, context)?;
    let input = SearchInput {
        config: search,
        accept_lists: args.accept_lists.unwrap_or(ACCEPT_LISTS).into(),
        teacher: setup.teacher.clone(),
        distill: setup.config.clone(),
        trees,
        against,
        deals: args.deal,
    };
    let (watcher, state) = (bars(setup.quiet), state_file(folder.path()));
    let found = search_tree(&setup.env, &input, setup.seed, &state, &watcher)?;
    write_tree(&folder, &found.tree)?;
    folder.write_json("search.json", &found.report)?;
    for (row, tree) in found.report.frontier.iter().zip(&found.frontier) {
        folder.write(
            &format!("frontier/leaves-{}.json", row.leaves),
            tree.to_json().as_bytes(),
        )?;
    }
    let table = found.report.markdown();
    folder.write("search.md", table.as_bytes())?;
    let verdict = &found.report.verdict;
    let words = format!("{}\n{table}\n{verdict}\n", found.tree.to_text());
    let settings = toml::to_string_pretty(&input.config).unwrap_or_default();
    let page = Page {
        title: "A tree from a search",
        settings: &settings,
        words: &words,
        objective: &objective::avg_jct(),
    };
    let compared = setup.compared(&found.tree, &folder, (page, context))?;
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if !setup.quiet {
        context.say(&words)?;
        if let Some(verdict) = &compared.verdict {
            context.say(verdict)?;
        }
        context.say(&format!("written to {}", place.display()))?;
    }
    Ok(())
}

/// The policies that the tree is compared with. No two rows have the same name: the teacher comes first.
pub(super) fn against(
    named: &[String],
    teacher: Option<&PolicySpec>,
    capabilities: Capabilities,
) -> Result<Vec<PolicySpec>, Error> {
    let mut against: Vec<PolicySpec> = teacher.into_iter().cloned().collect();
    for policy in named {
        DOOR.open(policy)?
            .into_iter()
            .for_each(|policy| policy.join(&mut against));
    }
    for policy in &against {
        policy.check(capabilities)?;
    }
    Ok(against)
}
