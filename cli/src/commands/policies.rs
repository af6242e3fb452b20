//! `pleach policies`: what there is.

use std::path::Path;

use pleach_dealing::{Entry, deal_markdown};
use pleach_scheduler::features::FeatureSchema;
use pleach_scheduler::heuristics::{self, Info};

use crate::commands::Context;
use crate::flags::PoliciesArgs;
use pleach_experiments::door::requirement_flags;
use pleach_experiments::door::{DOOR, PolicySpec, RIVALS, Rival, label_and_place, own_policies};
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::train::fine_tuning::network_at;
use pleach_experiments::train::network_card;
use pleach_experiments::tree_page;
use pleach_experiments::worlds;

/// Lists heuristics and planners, shows one, or prints the features.
///
/// # Errors
/// An unknown policy, or a file that cannot be written.
pub fn run(args: &PoliciesArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if args.features {
        let page = FeatureSchema::current().markdown() + &deal_markdown();
        return context.say(page.trim_end());
    }
    if let Some(spec) = &args.show {
        // Rooms may have rules of the same name.
        let serving: Vec<String> = worlds::policies()
            .filter(|info| info.name == spec)
            .map(described)
            .collect();
        if !serving.is_empty() && infos().all(|(info, _)| info.name != spec) {
            return context.say(&serving.join("\n\n"));
        }
        let policies = DOOR.open(spec)?;
        if let Some(path) = &args.html {
            let Some(tree) = policies.iter().find_map(PolicySpec::tree_policy) else {
                let hint = "Make one: pleach distill --teacher NAME|PATH.";
                return Err(Error::config("show", spec, "a tree with --html", hint));
            };
            tree_page::report(tree.tree()).write(path)?;
            return context.say(&format!("written to {}", path.display()));
        }
        for policy in policies {
            let mut words = shown(&policy);
            if policy.is_network() {
                let (_, place) = label_and_place(spec);
                let card = network_card::text(&network_at(Path::new(place))?);
                words = format!("{}: a trained network\n{card}", policy.name());
            }
            context.say(&words)?;
        }
        return Ok(());
    }
    if let Some(path) = &args.data.json {
        let of = |info: &Info, kind: &str, entry: Option<&Entry>| {
            serde_json::json!({"name": info.name, "family": info.family, "citation": info.citation,
                "knows": info.knows, "decides": info.decides, "kind": kind,
                "asks": asks(entry), "defaults": entry.map(|entry| (entry.defaults)())})
        };
        let jobs =
            infos().map(|(info, entry)| of(info, if entry.is_some() { "planner" } else { "policy" }, entry));
        let list: Vec<_> = jobs
            .chain(worlds::policies().map(|info| of(info, "serving", None)))
            .collect();
        context.write_json(path, &serde_json::json!({"schema": 2, "policies": list}))?;
    }
    let rows = infos().map(|(info, entry)| {
        let asks = asks(entry).join(" ");
        [
            info.name,
            info.family,
            info.knows,
            info.decides,
            &asks,
            info.citation,
        ]
        .map(str::to_string)
        .to_vec()
    });
    let header = ["name", "family", "needs to know", "decides", "asks for", "source"]
        .map(str::to_string)
        .to_vec();
    let table = Table {
        header,
        rows: rows.collect(),
        notes: Vec::new(),
    };
    let serving = Table {
        header: ["serving", "family", "needs to know", "decides", "source"]
            .map(str::to_string)
            .to_vec(),
        rows: worlds::policies()
            .map(|info| {
                [info.name, info.family, info.knows, info.decides, info.citation]
                    .map(str::to_string)
                    .to_vec()
            })
            .collect(),
        notes: vec![
            "serving: for requests, not for jobs (--workload requests, calls or service; docs/serving.md)"
                .into(),
        ],
    };
    context.say(&format!("{}\n{}", table.to_terminal(), serving.to_terminal()))
}

/// All with a name: heuristics, rivals, policies of the program's own, then planners.
fn infos() -> impl Iterator<Item = (&'static Info, Option<&'static Entry>)> {
    let heuristics = heuristics::infos().iter();
    let own = own_policies().iter().map(|own| &own.info);
    let planners = DOOR.planners().map(|entry| (&entry.info, Some(entry)));
    let rivals = RIVALS.iter().map(|rival| &rival.info);
    heuristics
        .chain(rivals)
        .chain(own)
        .map(|info| (info, None))
        .chain(planners)
}

/// The flags that a planner needs.
fn asks(entry: Option<&Entry>) -> Vec<&'static str> {
    entry.map_or_else(Vec::new, |entry| requirement_flags(entry.requirements))
}

fn shown(policy: &PolicySpec) -> String {
    if let Some(text) = policy.text() {
        return match Rival::find(policy.name()) {
            Some(rival) => format!("{}\n\n{text}", described(&rival.info)),
            None => text,
        };
    }
    let Some((info, entry)) = infos().find(|(info, _)| info.name == policy.name()) else {
        return policy.name().to_string();
    };
    let mut text = described(info);
    if let Some(entry) = entry {
        let asks = asks(Some(entry)).join(" ");
        if !asks.is_empty() {
            text.push_str(&format!("\nasks for: {asks}"));
        }
        let defaults = settings_as_toml(&(entry.defaults)());
        text.push_str(&format!(
            "\nsettings, for --policy-config:\n[{}]\n{defaults}",
            info.name
        ));
    }
    text
}

fn described(info: &Info) -> String {
    format!(
        "{}: {}\nneeds to know: {}\ndecides: {}\nsource: {}",
        info.name, info.family, info.knows, info.decides, info.citation
    )
}

/// Settings as TOML; what is left out by default stands as a comment.
fn settings_as_toml(settings: &serde_json::Value) -> String {
    let (mut set, mut left_out) = (serde_json::Map::new(), String::new());
    for (key, value) in settings.as_object().into_iter().flatten() {
        if value.is_null() {
            left_out.push_str(&format!("# {key} = (none)\n"));
        } else {
            set.insert(key.clone(), value.clone());
        }
    }
    toml::to_string(&set).unwrap_or_default() + &left_out
}
