//! `pleach completions` and `pleach man`: flags.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Prints what a shell needs to complete commands and flags.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach completions bash                               to ~/.local/share/bash-completion/completions/pleach
  pleach completions zsh                                to a file _pleach in a folder of $fpath
  pleach completions fish                               to ~/.config/fish/completions/pleach.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Writes a manual page for the program and one for each of its commands.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  pleach man man1                                       then: man -l man1/pleach-train.1
  pleach man ~/.local/share/man/man1                    where man finds them by name")]
pub struct ManArgs {
    /// Folder for the pages; it is made if it is not there
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
