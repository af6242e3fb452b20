//! `pleach completions` and `pleach man`: what the flags say, for shells and for `man`.

use clap::CommandFactory as _;
use pleach_experiments::error::Error;
use pleach_experiments::run_folder::atomic_file;

use crate::commands::Context;
use crate::flags::{Cli, CompletionsArgs, ManArgs};

/// Prints the completions of a shell.
///
/// # Errors
/// Where standard output cannot be written.
pub fn completions(args: &CompletionsArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pleach", &mut script);
    context.say(String::from_utf8_lossy(&script).trim_end())
}

/// Writes `pleach.1`, `pleach-train.1`, ... into a folder.
///
/// # Errors
/// A folder that cannot be made or written.
pub fn man(args: &ManArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    let num_pages = pages(&program, &args.folder)?;
    context.say(&format!("{num_pages} pages written to {}", args.folder.display()))
}

/// Writes the page of a command and those of the commands below it; gives their number.
fn pages(command: &clap::Command, folder: &std::path::Path) -> Result<usize, Error> {
    let page = clap_mangen::Man::new(command.clone());
    let path = folder.join(page.get_filename());
    let mut bytes = Vec::new();
    page.render(&mut bytes)
        .map_err(|source| Error::io("write", &path, source))?;
    atomic_file::write(&path, &bytes)?;
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below
        .map(|below| pages(below, folder))
        .sum::<Result<usize, Error>>()
        .map(|num| num + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn said(work: impl FnOnce(&mut Context<'_>) -> Result<(), Error>) -> String {
        let mut print = Vec::new();
        let mut context = Context {
            command_line: String::new(),
            clock: &|| 0.0,
            stopwatch: &Duration::default,
            print: &mut print,
            data: &mut std::io::sink(),
            stop: std::sync::Arc::default(),
        };
        work(&mut context).unwrap();
        String::from_utf8(print).unwrap()
    }

    #[test]
    fn every_command_has_a_manual_page_with_its_flags() {
        let folder = tempfile::tempdir().unwrap();
        let args = ManArgs {
            folder: folder.path().join("man1"),
        };
        let words = said(|context| man(&args, context));
        let read = |name: &str| std::fs::read_to_string(args.folder.join(name)).unwrap();
        assert!(read("pleach.1").contains("pleach\\-train(1)"), "{words}");
        assert!(read("pleach-train.1").contains("warm\\-start"));
        assert!(read("pleach-sweep-unit.1").contains("SLURM_ARRAY_TASK_ID"));
        let num = std::fs::read_dir(&args.folder).unwrap().count();
        assert!(words.starts_with(&format!("{num} pages")), "{words}");
    }

    #[test]
    fn completions_know_the_commands() {
        for shell in [
            clap_complete::Shell::Bash,
            clap_complete::Shell::Zsh,
            clap_complete::Shell::Fish,
        ] {
            let script = said(|context| completions(&CompletionsArgs { shell }, context));
            assert!(
                script.contains("tournament") && script.contains("warm-start"),
                "{shell}"
            );
        }
    }
}
