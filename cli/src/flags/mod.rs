//! The command line of `pleach`: what each command takes, with help texts that teach. No command runs here.

pub mod calibrate;
pub mod check;
pub mod cluster;
pub mod distill;
pub mod emit;
pub mod evaluate;
pub mod explain;
pub mod export;
pub mod index;
mod own;
pub mod policies;
pub mod quickstart;
#[cfg(test)]
#[path = "./tests/reference.rs"]
mod reference;
pub mod report;
pub mod run;
pub mod seal;
pub mod sweep;
pub mod sweep_place;
pub mod train;
pub mod twin;
pub mod verify;
pub mod watch;
pub mod when;
pub mod workload;

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory as _, Parser, Subcommand};

/// Threads, at most, by flag or by variable.
pub const THREADS_MAX: u16 = 1024;

pub use calibrate::{CalibrateArgs, WideGangsFlags};
pub use check::CheckArgs;
pub use cluster::ClusterArgs;
pub use distill::{DistillArgs, DistillCommand, MonotoneFlag};
pub use evaluate::EvaluateArgs;
pub use explain::ExplainArgs;
pub use export::ExportArgs;
pub use index::IndexArgs;
pub use pleach_experiments::command::flags::{
    AgainstFlag, EpisodeFlags, ForceFlag, FormsFlag, JsonFlag, MachineFlags, QuietFlag, ReportFlags, RunArgs,
    SeedFlag, WorldFlag, is_standard_output,
};
pub use policies::PoliciesArgs;
pub use quickstart::QuickstartArgs;
pub use report::ReportArgs;
pub use run::SiteArgs;
pub use seal::SealArgs;
pub use sweep::SweepArgs;
pub use train::TrainArgs;
pub use twin::TwinArgs;
pub use verify::VerifyArgs;
pub use watch::WatchArgs;
pub use when::WhenArgs;
pub use workload::WorkloadArgs;

/// Learns schedulers for shared GPU clusters, and prunes them into decision trees that people can read.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "pleach",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true
)]
#[command(after_help = "\
Start here:
  pleach run site.toml                     from your site's files to a decision
  pleach quickstart                        train, search for a tree and compare, with a report
  pleach evaluate --seeds 10               compare the classic heuristics
  pleach train --out runs/mine             train a network
  pleach distill --teacher runs/mine       prune it into a tree
  pleach evaluate --policy fifo,srtf,runs/mine/tree.json --reference srtf

The same seed, configuration and version give the same bytes, on any number of threads.
Exit codes: 0 done, 1 failed, 2 an input cannot be used, 75 worth another try, 130 and 143 stopped by SIGINT and SIGTERM.")]
pub struct Cli {
    /// Write manual pages and what shells need to complete commands and flags into this folder, and end
    #[arg(long, value_name = "DIR")]
    pub generate: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// From a site's files to a decision: deploy, do not deploy, or nothing to win here
    Run(SiteArgs),
    /// Train, prune and compare on a small cluster in minutes; writes a report
    Quickstart(QuickstartArgs),
    /// Train a network to schedule, by reinforcement or by imitation
    Train(TrainArgs),
    /// Choose what decides while the queue is short: a network, or a heuristic in its place
    Calibrate(CalibrateArgs),
    /// Learn the formula by which a planner deals GPUs
    Index(IndexArgs),
    /// Prune a teacher into a decision tree, chosen by what it does in the simulator
    Distill(DistillArgs),
    /// Write a tree as C, Rust, Go, Python or ONNX, or a network as ONNX
    Export(ExportArgs),
    /// Tell in words why a tree did what it did on a list of jobs
    Explain(ExplainArgs),
    /// Compare policies on the same workloads and seeds
    Evaluate(EvaluateArgs),
    /// Check the record of a schedule against its cluster and its jobs
    Verify(Box<VerifyArgs>),
    /// Make a page on which the record of a schedule can be watched
    Watch(Box<WatchArgs>),
    /// What the program registered, such as the laboratory's.
    #[command(flatten)]
    Own(own::Own),
    /// Run thousands of independent units on one machine or under any batch system
    Sweep(SweepArgs),
    /// List the policies, or show one
    Policies(PoliciesArgs),
    /// List, describe, generate, convert and import workloads
    Workload(WorkloadArgs),
    /// Simulate a site's list and print what happened there beside it
    Twin(TwinArgs),
    /// Forecast when a job would start, with an interval, and what would be gained by asking for less
    When(Box<WhenArgs>),
    /// Hold what was promised of a policy against the weeks since it went live
    Report(ReportArgs),
    /// Write, check and show descriptions of clusters
    Cluster(ClusterArgs),
}

/// The command line. Numbers below 0 are values, so that a flag says what it allows and no number passes for a flag.
#[must_use]
pub fn command() -> clap::Command {
    with_negative_numbers(Cli::command())
}

/// Flags that a line gives to the command that it calls, by their names.
#[must_use]
pub fn given(command: &clap::Command, matches: &ArgMatches) -> Vec<String> {
    if let Some((name, inner)) = matches.subcommand() {
        let called = command.find_subcommand(name);
        return called.map_or_else(Vec::new, |called| given(called, inner));
    }
    let is_given =
        |flag: &&clap::Arg| matches.value_source(flag.get_id().as_str()) == Some(ValueSource::CommandLine);
    let flags = command.get_arguments().filter(is_given);
    flags.filter_map(clap::Arg::get_long).map(str::to_owned).collect()
}

fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|inner| inner.get_name().to_owned())
        .collect();
    let command = command.mut_args(|flag| match flag.get_action().takes_values() {
        true => flag.allow_negative_numbers(true),
        false => flag,
    });
    let inner = |command: clap::Command, name: String| command.mut_subcommand(name, with_negative_numbers);
    names.into_iter().fold(command, inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::Once;

    /// The commands, with those of the laboratory where the program is built with it.
    pub(super) fn whole() -> clap::Command {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| crate::register(crate::Plugins::new()).unwrap());
        Cli::command()
    }

    /// Every command below `command` with its path: `["sweep", "plan"]`.
    pub(super) fn walk(
        command: &clap::Command,
        path: &[String],
        visit: &mut impl FnMut(&[String], &clap::Command),
    ) {
        visit(path, command);
        for inner in command.get_subcommands() {
            let path = [path, &[inner.get_name().to_string()]].concat();
            walk(inner, &path, visit);
        }
    }

    #[test]
    fn the_definitions_are_sound() {
        whole().debug_assert();
    }

    #[test]
    fn there_are_few_commands_and_the_docs_name_each() {
        let docs = concat!(
            include_str!("../../../docs/cli.md"),
            include_str!("../../../lab/notes/commands.md")
        );
        let mut num = 0;
        walk(&whole(), &[], &mut |path, _| {
            if path.is_empty() {
                return;
            }
            let name = format!("pleach {}", path.join(" "));
            assert!(
                docs.contains(&format!("`{name}`")),
                "docs/cli.md does not name `{name}`"
            );
            num += 1;
        });
        assert!(num <= 40, "{num} commands: a flag of one that is there would do");
    }

    #[test]
    fn every_command_and_flag_has_a_help_text_and_leaves_have_examples() {
        walk(&whole(), &[], &mut |path, command| {
            assert!(command.get_about().is_some(), "{path:?}");
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{path:?} {}", argument.get_id());
            }
            if command.get_subcommands().next().is_none() {
                let after = command
                    .get_after_help()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                assert!(after.contains("pleach "), "{path:?} has no example");
            }
        });
    }

    #[test]
    fn the_examples_in_the_help_texts_parse() {
        walk(&whole(), &[], &mut |path, command| {
            let after = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            for line in after
                .lines()
                .map(str::trim)
                .filter(|line| line.starts_with("pleach "))
            {
                let example = line.split("  ").next().unwrap_or(line);
                if example.contains(['$', '{', '|', '>']) {
                    continue;
                }
                let parsed = Cli::try_parse_from(example.split_whitespace());
                assert!(parsed.is_ok(), "{path:?}: {example}: {}", parsed.unwrap_err());
            }
        });
    }

    /// Documents and sources of the whole workspace.
    pub(super) fn texts() -> Vec<(PathBuf, String)> {
        let mut folders = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() && !name.starts_with('.') && name != "target" {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "md" || end == "rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    found.push((path, text));
                }
            }
        }
        found
    }

    /// The word that stands at the start of a text, of small letters and hyphens.
    fn first_word(text: &str) -> &str {
        let end = text.find(|letter: char| !letter.is_ascii_lowercase() && letter != '-');
        &text[..end.unwrap_or(text.len())]
    }

    #[cfg(feature = "lab")]
    #[test]
    fn every_command_that_documents_and_messages_name_exists() {
        let root = whole();
        let mut num_named = 0;
        for (path, text) in texts() {
            for (at, _) in text.match_indices("pleach ") {
                let before = &text[..at];
                let is_other = before
                    .ends_with(|letter: char| letter.is_alphanumeric() || "-_/.=".contains(letter))
                    || before.ends_with("from ")
                    || before.ends_with("kubectl -n ");
                let rest = &text[at + "pleach ".len()..];
                let word = first_word(rest);
                // What left the program stands in the list of changes, and beside figures with the commit that had it.
                let named = rest.lines().next().unwrap_or_default();
                let has_left = path.ends_with("CHANGELOG.md") || named.contains("at commit 996874d");
                // The first line of the text over which schemas are hashed.
                let is_other = is_other || rest.starts_with("features 1");
                if is_other || has_left || word.is_empty() || word.starts_with('-') {
                    continue;
                }
                let command = root.find_subcommand(word);
                let command = command.unwrap_or_else(|| panic!("{}: pleach {named}", path.display()));
                num_named += 1;
                // A command that requires a subcommand is followed by one.
                let next = rest[word.len()..].strip_prefix(' ').map_or("", first_word);
                assert!(
                    next.is_empty()
                        || next.starts_with('-')
                        || !command.is_subcommand_required_set()
                        || command.find_subcommand(next).is_some(),
                    "{}: pleach {named}",
                    path.display()
                );
            }
        }
        assert!(num_named > 300, "only {num_named} commands were found");
    }
}
