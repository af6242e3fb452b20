//! The page of flags, made from the flags: `flags.md` of the site, which `tests/conventions/site.sh` takes from `target/pages`.

use std::collections::BTreeSet;

use clap::{Arg, ArgAction, Args, Command};
use pleach_experiments::command::own_commands;
use pleach_experiments::{SchedulingConfig, WorkloadSource};

use super::sweep_place::SweepPlace;
use super::tests::{texts, walk, whole};
use super::{ReportFlags, RunArgs};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Flags that stand on the page once: name of their block, where they stand, and the flags.
fn shared() -> [(&'static str, &'static str, Command); 5] {
    [
        (
            "a workload",
            "a-workload",
            WorkloadSource::augment_args(Command::new("")),
        ),
        (
            "scheduling",
            "scheduling",
            SchedulingConfig::augment_args(Command::new("")),
        ),
        ("every run", "every-run", RunArgs::augment_args(Command::new(""))),
        (
            "every report",
            "every-run",
            ReportFlags::augment_args(Command::new("")),
        ),
        ("a sweep", "a-sweep", SweepPlace::augment_args(Command::new(""))),
    ]
}

fn ids(command: &Command) -> BTreeSet<String> {
    flags(command).map(|flag| flag.get_id().to_string()).collect()
}

/// Those that people give: not `--help` and `--version`.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|flag| !["help", "version"].contains(&flag.get_id().as_str()))
}

/// A line of a table.
fn row(flag: &Arg) -> String {
    let takes = !matches!(flag.get_action(), ArgAction::SetTrue);
    let value = flag.get_value_names().filter(|_| takes).unwrap_or_default();
    let value = value.iter().map(|name| name.replace('|', "\\|"));
    let value = value.collect::<Vec<_>>().join(" ");
    let name = match (flag.get_long(), flag.get_short()) {
        (Some(long), Some(short)) => format!("`--{long}`, `-{short}`"),
        (Some(long), None) => format!("`--{long}`"),
        _ => String::new(),
    };
    let name = format!("{name} {value}").trim().to_string();
    let mut words = flag.get_help().map(ToString::to_string).unwrap_or_default();
    let possible = flag.get_possible_values();
    let possible: Vec<String> = possible
        .iter()
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({help})", value.get_name()),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if takes && !possible.is_empty() && !flag.is_hide_possible_values_set() {
        words.push_str(&format!(": {}", possible.join(", ")));
    }
    let defaults = flag.get_default_values();
    if takes && !defaults.is_empty() {
        let defaults: Vec<_> = defaults.iter().map(|value| value.to_string_lossy()).collect();
        words.push_str(&format!(" [default: {}]", defaults.join(",")));
    }
    format!("| {name} | {} |\n", words.replace('|', "\\|"))
}

fn table<'a>(flags: impl Iterator<Item = &'a Arg>) -> String {
    let rows: String = flags.map(row).collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!("| flag | means |\n| --- | --- |\n{rows}"),
    }
}

/// The flags of a command: its own, then where those stand that it shares.
fn of_command(command: &Command) -> String {
    let all = ids(command);
    let (mut seen, mut links) = (BTreeSet::new(), Vec::new());
    for (name, anchor, group) in shared() {
        let group = ids(&group);
        if group.is_subset(&all) && !group.is_subset(&seen) {
            links.push(format!("[{name}](#{anchor})"));
            seen.extend(group);
        }
    }
    let mut text = table(flags(command).filter(|flag| !seen.contains(flag.get_id().as_str())));
    if !links.is_empty() {
        let words = if text.is_empty() { "The" } else { "\nAnd the" };
        text.push_str(&format!("{words} flags of {}.\n", links.join(", ")));
    }
    text
}

/// The page: a section for what commands share, then one for each command.
fn page() -> String {
    let mut page = String::from(
        "# Flags\n\nWhat `pleach COMMAND --help` says of flags, command by command. [The command line](cli.md) has the rest.\n",
    );
    for (name, _, group) in shared() {
        if name != "every report" {
            let heading = name[..1].to_uppercase() + &name[1..];
            page.push_str(&format!("\n## {heading}\n\n{}", table(flags(&group))));
        }
    }
    walk(&whole(), &[], &mut |path, command| {
        let text = of_command(command);
        if !text.is_empty() {
            let name = ["pleach", &path.join(" ")].join(" ");
            page.push_str(&format!("\n## `{}`\n\n{text}", name.trim()));
        }
    });
    page
}

#[test]
fn the_page_of_flags_is_made_for_the_site_and_links_into_it_arrive() {
    let page = page();
    std::fs::create_dir_all(format!("{ROOT}/target/pages/docs")).unwrap();
    std::fs::write(format!("{ROOT}/target/pages/docs/flags.md"), &page).unwrap();
    let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
    let anchors: Vec<String> = headings
        .map(|heading| heading.to_lowercase().replace('`', "").replace(' ', "-"))
        .collect();
    assert!(
        anchors.iter().any(|anchor| anchor == "pleach-sweep-plan"),
        "{anchors:?}"
    );
    let own = ("flags.md", page.clone());
    let others = texts();
    let others = others
        .iter()
        .map(|(path, text)| (path.to_str().unwrap_or_default(), text.clone()));
    for (path, text) in others.filter(|(path, _)| path.ends_with(".md")).chain([own]) {
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let arrives = match file {
                "" => path != "flags.md",
                file => !file.ends_with("flags.md") || anchor.is_empty(),
            };
            assert!(
                arrives || anchors.iter().any(|known| known == anchor),
                "{path} links to {target}"
            );
        }
    }
}

/// As `tests/conventions/tests/budgets.rs` holds all other numbers. What the laboratory registers is its own.
#[test]
fn there_are_no_more_flags_than_their_budget() {
    let mut names = BTreeSet::new();
    walk(&whole(), &[], &mut |path, command| {
        if path
            .first()
            .is_some_and(|name| own_commands().iter().any(|own| own.name == name))
        {
            return;
        }
        names.extend(flags(command).filter_map(|flag| flag.get_long().map(str::to_owned)));
    });
    let path = format!("{ROOT}/tests/conventions/budgets.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let line = text.lines().find(|line| line.starts_with("flags = ")).unwrap();
    let (num, budget) = (names.len(), line["flags = ".len()..].parse::<usize>().unwrap());
    assert!(
        num <= budget,
        "{num} flags, above the budget of {budget}: one that is there may do"
    );
    if num < budget && std::env::var_os("PLEACH_WRITE_DOCS").is_some() {
        std::fs::write(path, text.replace(line, &format!("flags = {num}"))).unwrap();
    }
}

/// Flags of other programs that documents of ours name: `kubectl`, `valgrind`, the scripts of peers, `help` of all.
const OF_OTHERS: [&str; 4] = ["help", "scale", "toggle-collect", "wait"];

/// But for those on daemons, which have flags of their own.
#[test]
fn flags_that_documents_name_are_there() {
    let mut names = BTreeSet::from(OF_OTHERS.map(str::to_owned));
    walk(&whole(), &[], &mut |_, command| {
        names.extend(flags(command).filter_map(|flag| flag.get_long().map(str::to_owned)));
    });
    let is_document = |path: &std::path::Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".md") && !name.starts_with("deploy-") && name != "CHANGELOG.md"
    };
    for (path, text) in texts().iter().filter(|(path, _)| is_document(path)) {
        for span in text.split("`--").skip(1) {
            let end = span.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
            let word = &span[..end.unwrap_or(span.len())];
            assert!(
                word.is_empty() || names.contains(word),
                "{}: no command has --{word}",
                path.display()
            );
        }
    }
}
