//! The tables of flags in `docs/cli.md`, made from the flags: between `<!-- flags: NAME -->` and `<!-- end of flags -->`.
//!
//! `PLEACH_WRITE_DOCS=1 cargo test -p pleach-cli --lib reference` writes the page anew.

use std::collections::BTreeSet;

use clap::{Arg, ArgAction, Args, Command, CommandFactory as _};
use pleach_experiments::{SchedulingConfig, WorkloadSource};

use super::common::{ReportFlags, RunArgs};
use super::sweep_place::SweepPlace;
use super::{Cli, tests::walk};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/cli.md");
const END: &str = "<!-- end of flags -->";

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

/// All blocks by name.
fn blocks() -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    for (name, _, group) in shared() {
        if name != "every report" {
            blocks.push((name.to_string(), table(flags(&group))));
        }
    }
    walk(&Cli::command(), &[], &mut |path, command| {
        let text = of_command(command);
        if !text.is_empty() {
            blocks.push((["pleach", &path.join(" ")].join(" ").trim().to_string(), text));
        }
    });
    blocks
}

#[test]
fn the_tables_of_flags_on_the_page_are_made_from_the_flags() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let mut made = page.clone();
    for (name, text) in blocks() {
        let begin = format!("<!-- flags: {name} -->\n");
        let (before, rest) = made
            .split_once(&begin)
            .unwrap_or_else(|| panic!("docs/cli.md has no line {begin}"));
        let (_, after) = rest.split_once(END).unwrap();
        made = format!("{before}{begin}\n{text}\n{END}{after}");
    }
    let num_blocks = made.matches("<!-- flags: ").count();
    assert_eq!(num_blocks, blocks().len(), "a block of docs/cli.md is of nothing");
    if page == made {
        return;
    }
    if std::env::var("PLEACH_WRITE_DOCS").is_ok() {
        std::fs::write(PAGE, made).unwrap();
        panic!("docs/cli.md is written anew; read it and commit it");
    }
    let differs = page.lines().zip(made.lines()).find(|(old, new)| old != new);
    panic!(
        "docs/cli.md is not what the flags say: {differs:?}\n\
         PLEACH_WRITE_DOCS=1 cargo test -p pleach-cli --lib reference writes it anew"
    );
}
