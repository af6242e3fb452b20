//! All steps of a run, one after the other.

use pleach_scheduler::cluster_spec::Seen;

use super::found::Decided;
use super::page::{Told, report};
use super::shadow::scheduler_config;
use super::site::{ARTEFACT_BYTES_MAX, FORMULA, PROMISE, Say, Site, TREE, TWIN_PLOTS};
use super::trials::Trials;
use super::verdict::{Choice, Evidence, Verdict, verdict};
use crate::door::PolicySpec;
use crate::error::Error;
use crate::run_folder::atomic_file;
use crate::twin::{Trust, Under};

/// All steps.
///
/// # Errors
/// Files that cannot be used, simulations that fail, what `say` gives.
pub fn decide(site: &Site<'_>, say: Say<'_>) -> Result<Decided, Error> {
    let (workload, parts) = site.list(say)?;
    let described = site.described(&workload, say)?;
    let twin = site.twin(&workload, say)?;
    let ground = Trials::of(site, &workload, parts, &twin)?;
    let compared = ground.compared(say)?;
    let changes: Vec<String> = site.changes().iter().map(|change| change.name.clone()).collect();
    let choice = Choice::of(&compared).or_change(&compared, &changes);
    say(&in_words(&choice, &compared, changes.contains(&choice.policy)))?;
    let searched = [ground.searched(say)?, ground.searched_formula(say)?];
    let searched: Vec<PolicySpec> = searched.into_iter().flatten().collect();
    let learned = match searched.is_empty() {
        true => None,
        false => ground.chosen(searched, &choice, say)?,
    };
    let judged = ground.judged(learned.as_ref(), &choice.policy, say)?;
    let found = verdict(&Evidence {
        trust: twin.trust,
        judged: &judged,
        choice: &choice,
        learned: learned.as_ref().map(PolicySpec::name),
    });
    let tree = learned.as_ref().filter(|own| own.name() == TREE);
    let explained = match tree {
        Some(_) => ground.explained(&choice.policy, say)?,
        None => String::new(),
    };
    let shadow = shadow(site, &found, &workload.cluster.seen)?;
    // What a site deploys all the same has a promise too, where the simulation can be believed.
    let is_believed = !matches!(twin.trust, None | Some(Trust::No)) && choice.policy != twin.policy;
    let chosen = Some(&choice.policy).filter(|_| is_believed);
    let promised = found.policy.as_ref().or(chosen);
    let promised = promised.map(|name| ground.promised(name)).transpose()?;
    let commands = ground.commands(&choice.policy, learned.as_ref().map(PolicySpec::name));
    let decided = Decided {
        verdict: found,
        parts,
        twin: twin.clone(),
        world: ground.world(),
        compared,
        judged,
        shadow,
    };
    atomic_file::write_json(&site.file("decision.json"), &decided)?;
    if !site.config.is_on_kubernetes(&workload.cluster.seen) {
        let config = scheduler_config(
            &workload,
            decided.twin.estimates,
            site.config.scheduling.preemption,
            &site.slurm_names()?,
            promised.map(|_| site.file(PROMISE)).as_deref(),
        );
        atomic_file::write(&site.file("pleach-scheduler.toml"), config.as_bytes())?;
    }
    let told = Told {
        list: &workload,
        described: &described,
        explained: &explained,
        tree: tree.and_then(|tree| Some(tree.tree_policy()?.tree())),
        plots: match site.file(TWIN_PLOTS) {
            // A run of an older program has none.
            path if path.is_file() => atomic_file::read_json(&path, ARTEFACT_BYTES_MAX)?,
            _ => Vec::new(),
        },
        list_file: &site.file("list.csv").display().to_string(),
        commands: &commands,
    };
    report(&decided, told).write(&site.file("report.html"))?;
    Ok(decided)
}

/// Which candidate goes on, in a line.
fn in_words(choice: &Choice, compared: &Under, is_change: bool) -> String {
    let site = &compared.rows[0].policy;
    let name = &choice.policy;
    match choice.against.as_slice() {
        [] if name == site => format!("no candidate is ahead of {site}"),
        [] if is_change => format!(
            "{name} goes on: a change of the site's own settings that is no worse in p99, slowdown and fairness, and at most 2 % behind the \
             best candidate"
        ),
        [] => format!(
            "{name} goes on: of those that are no worse in p99, slowdown and fairness it has the least completion time"
        ),
        against => format!(
            "none that is ahead passes; {name} is furthest ahead, and will not be deployed: {}",
            against.join(", ")
        ),
    }
}

/// What to do with what is to be deployed: how its shadow begins, or the settings to change.
fn shadow(site: &Site<'_>, verdict: &Verdict, seen: &Seen) -> Result<Option<String>, Error> {
    let Some(name) = verdict.policy.as_deref() else {
        return Ok(None);
    };
    if let Some(told) = site.written_change(name)? {
        return Ok(Some(told));
    }
    let policy = match name {
        own @ (TREE | FORMULA) => site.file(&format!("{own}.json")).display().to_string(),
        name => site.deployed(name),
    };
    if site.config.is_on_kubernetes(seen) {
        let command = format!("pleach-kubernetes run --policy {policy} --shadow --state-dir shadow");
        return Ok(Some(command));
    }
    Ok(Some(format!(
        "pleach-scheduler --config {} --state-dir shadow run --policy {policy} --shadow",
        site.file("pleach-scheduler.toml").display()
    )))
}
