//! `pleach policies` and `pleach features`: what there is.

use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::heuristics;

use crate::atomic_file;
use crate::cli::PoliciesArgs;
use crate::commands::Context;
use crate::contestant::Contestant;
use crate::error::Error;
use crate::table::Table;

/// Lists the heuristics, or shows one policy.
///
/// # Errors
/// An unknown policy, or a file that cannot be written.
pub fn run(args: &PoliciesArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if let Some(spec) = &args.show {
        for contestant in Contestant::open(spec)? {
            match contestant.text() {
                Some(text) => context.say(&text)?,
                None => match heuristics::infos()
                    .iter()
                    .find(|info| info.name == contestant.name())
                {
                    Some(info) => context.say(&format!(
                        "{}: {}\nneeds: {}\ndecides: {}\nsource: {}",
                        info.name, info.family, info.knows, info.decides, info.citation
                    ))?,
                    None => context.say(&format!("{}: a trained network", contestant.name()))?,
                },
            }
        }
        return Ok(());
    }
    let rows = heuristics::infos().iter().map(|info| {
        [info.name, info.family, info.knows, info.decides, info.citation]
            .map(str::to_string)
            .to_vec()
    });
    let header = ["name", "family", "needs to know", "decides", "source"]
        .map(str::to_string)
        .to_vec();
    let table = Table {
        header,
        rows: rows.collect(),
        notes: Vec::new(),
    };
    if let Some(path) = &args.json {
        let list: Vec<_> = heuristics::infos()
            .iter()
            .map(|info| {
                serde_json::json!({"name": info.name, "family": info.family, "citation": info.citation,
                    "knows": info.knows, "decides": info.decides})
            })
            .collect();
        atomic_file::write_json(path, &serde_json::json!({"schema": 1, "policies": list}))?;
    }
    context.say(&table.to_terminal())
}

/// Prints the feature schema as Markdown.
///
/// # Errors
/// Where standard output cannot be written.
pub fn features(context: &mut Context<'_>) -> Result<(), Error> {
    context.say(FeatureSchema::current().markdown().trim_end())
}
