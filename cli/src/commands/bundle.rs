//! `pleach distill bundle`: a folder with all that a tree is deployed with.

use pleach_scheduler::tree::Tree;

use crate::commands::Context;
use crate::commands::export::form;
use crate::flags::BundleArgs;
use pleach_experiments::distill::bundle::bundle;
use pleach_experiments::error::Error;
use pleach_experiments::tree_export::Form;

/// Writes the bundle.
///
/// # Errors
/// A file that is no tree, an unknown form, a folder in the way.
pub fn run(args: &BundleArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let tree = Tree::load(&args.file).map_err(|error| Error::data(&args.file, error.to_string()))?;
    let forms: Vec<Form> = args.to.iter().map(|name| form(name)).collect::<Result<_, _>>()?;
    if !tree.has_golden() {
        context.say(
            "the tree is not sealed: pleach distill seal FILE puts golden vectors and a fallback into it",
        )?;
    }
    let manifest = bundle(&tree, &forms, args.commit.clone(), &args.out)?;
    for file in &manifest.files {
        context.say(&format!("{} {}", file.sha256, file.file))?;
    }
    context.say(&format!("written to {}", args.out.display()))
}
