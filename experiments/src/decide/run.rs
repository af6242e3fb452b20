//! All steps of a run, one after the other.

use super::found::Decided;
use super::ground::Ground;
use super::page::{self, Told};
use super::shadow::scheduler_config;
use super::site::{Say, Site, TREE};
use super::verdict::{Evidence, Verdict, verdict};
use crate::door::PolicySpec;
use crate::error::Error;
use crate::run_folder::atomic_file;

/// All steps.
///
/// # Errors
/// Files that cannot be used, simulations that fail, what `say` gives.
pub fn decide(site: &Site<'_>, say: Say<'_>) -> Result<Decided, Error> {
    let (workload, parts) = site.list(say)?;
    let described = site.described(&workload, say)?;
    let twin = site.twin(&workload, say)?;
    let ground = Ground::of(site, &workload, parts, &twin)?;
    let compared = ground.compared(say)?;
    let strongest = compared
        .best()
        .filter(|best| best.avg_jct_s < compared.rows[0].avg_jct_s);
    let strongest = strongest.map_or(&twin.policy, |row| &row.policy).clone();
    let searched = ground.searched(say)?;
    let learned = match &searched {
        Some(tree) => ground.chosen(tree, &strongest, say)?,
        None => false,
    };
    let tree = searched.filter(|_| learned);
    let judged = ground.judged(tree.as_ref(), &strongest, say)?;
    let found = verdict(&Evidence {
        trust: twin.trust,
        judged: &judged,
        strongest: &strongest,
        learned: tree.as_ref().map(PolicySpec::name),
    });
    let explained = match &tree {
        Some(_) => ground.explained(&strongest, say)?,
        None => String::new(),
    };
    let shadow = shadow(site, &found);
    let commands = ground.commands(&strongest, tree.is_some());
    let decided = Decided {
        verdict: found,
        parts,
        twin: twin.clone(),
        compared,
        judged,
        shadow,
    };
    atomic_file::write_json(&site.file("decision.json"), &decided)?;
    let config = scheduler_config(
        &workload,
        decided.twin.estimates,
        site.config.scheduling.preemption,
        &site.slurm_names()?,
    );
    atomic_file::write(&site.file("pleach-scheduler.toml"), config.as_bytes())?;
    let told = Told {
        list: &workload,
        described: &described,
        explained: &explained,
        tree: tree.as_ref().and_then(PolicySpec::text),
        commands: &commands,
    };
    atomic_file::write(
        &site.file("report.html"),
        page::render(&decided, &told).as_bytes(),
    )?;
    Ok(decided)
}

/// How the shadow of what is to be deployed begins.
fn shadow(site: &Site<'_>, verdict: &Verdict) -> Option<String> {
    let policy = match verdict.policy.as_deref()? {
        TREE => site.file("tree.json").display().to_string(),
        name => name.to_owned(),
    };
    Some(format!(
        "pleach-scheduler --config {} --state-dir shadow run --policy {policy} --shadow",
        site.file("pleach-scheduler.toml").display()
    ))
}
