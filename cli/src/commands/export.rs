//! `pleach export`: a tree as code of other languages.

use pleach_scheduler::tree::{Export, Tree};

use crate::commands::Context;
use crate::flags::ExportArgs;
use pleach_experiments::error::Error;
use pleach_experiments::run_folder::atomic_file::write;

/// Writes the files.
///
/// # Errors
/// An unknown form, a file that is no tree of this version, a folder that cannot be written.
pub fn run(args: &ExportArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let forms: Vec<Export> = args.to.iter().map(|name| form(name)).collect::<Result<_, _>>()?;
    let tree = Tree::load(&args.file).map_err(|error| Error::data(&args.file, error.to_string()))?;
    for form in forms {
        let place = args.out.join(form.file_name());
        write(&place, tree.export(form).as_bytes())?;
        context.say(&place.display().to_string())?;
    }
    Ok(())
}

fn form(name: &str) -> Result<Export, Error> {
    let found = Export::ALL.into_iter().find(|form| form.name() == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = Export::ALL.iter().map(|form| form.name()).collect();
        let hint = "Several are given with commas: --to c,python.";
        Error::config("to", name, known.join(", "), hint)
    })
}
