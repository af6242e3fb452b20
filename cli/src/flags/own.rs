//! Commands that the program registered, among those of the enumeration.

use clap::{ArgMatches, Command, Error, FromArgMatches, Subcommand};
use pleach_experiments::command::{OwnCommand, own_commands};

/// One of them, with the flags that were given.
#[derive(Clone, Debug)]
pub struct Own {
    /// The command.
    pub command: OwnCommand,
    /// What was given.
    pub given: ArgMatches,
}

fn find(name: &str) -> Option<OwnCommand> {
    own_commands().iter().copied().find(|own| own.name == name)
}

impl FromArgMatches for Own {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Own, Error> {
        let found = matches
            .subcommand()
            .and_then(|(name, given)| Some((find(name)?, given)));
        let (command, given) = found.ok_or_else(|| Error::new(clap::error::ErrorKind::MissingSubcommand))?;
        Ok(Own {
            command,
            given: given.clone(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Own::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Own {
    fn augment_subcommands(command: Command) -> Command {
        own_commands().iter().fold(command, |command, own| {
            command.subcommand((own.define)(Command::new(own.name)))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Own::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        find(name).is_some()
    }
}
