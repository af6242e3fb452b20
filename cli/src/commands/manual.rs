//! `pleach --generate`: what the flags say, for `man` and for shells.

use std::path::Path;

use clap::{CommandFactory as _, ValueEnum as _};
use clap_complete::{Generator as _, Shell};
use pleach_experiments::error::Error;
use pleach_experiments::run_folder::atomic_file;

use crate::commands::Context;
use crate::flags::Cli;

/// Writes `man1/pleach.1`, `man1/pleach-train.1`, ..., and completions for each shell into `completions`, under the names that the
/// shells look for.
///
/// # Errors
/// A folder that cannot be made or written.
pub fn generate(folder: &Path, context: &mut Context<'_>) -> Result<(), Error> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    let num_pages = pages(&program, &folder.join("man1"))?;
    let shells = Shell::value_variants();
    for shell in shells {
        let mut script = Vec::new();
        clap_complete::generate(*shell, &mut Cli::command(), "pleach", &mut script);
        let name = shell.file_name("pleach");
        atomic_file::write(&folder.join("completions").join(name), &script)?;
    }
    let (num_shells, place) = (shells.len(), folder.display());
    context.say(&format!(
        "{num_pages} pages and completions of {num_shells} shells written to {place}"
    ))
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

    #[test]
    fn every_command_has_a_manual_page_with_its_flags_and_shells_know_the_commands() {
        let folder = tempfile::tempdir().unwrap();
        let mut print = Vec::new();
        let mut context = Context {
            command_line: String::new(),
            given: Vec::new(),
            clock: &|| 0.0,
            stopwatch: &Duration::default,
            bars: crate::progress::bars,
            print: &mut print,
            data: &mut std::io::sink(),
            stop: std::sync::Arc::default(),
        };
        generate(folder.path(), &mut context).unwrap();
        let words = String::from_utf8(print).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(read("man1/pleach.1").contains("pleach\\-train(1)"), "{words}");
        assert!(read("man1/pleach-train.1").contains("warm\\-start"));
        assert!(read("man1/pleach-sweep-unit.1").contains("SLURM_ARRAY_TASK_ID"));
        let num = std::fs::read_dir(folder.path().join("man1")).unwrap().count();
        assert!(words.starts_with(&format!("{num} pages")), "{words}");
        for name in ["pleach.bash", "_pleach", "pleach.fish"] {
            let script = read(&format!("completions/{name}"));
            assert!(
                script.contains("quickstart") && script.contains("warm-start"),
                "{name}"
            );
        }
    }
}
