//! `pleach export`: a tree or a formula as code of other languages, a tree or a network for other runtimes.

use pleach_network::TrainedNetwork;
use pleach_scheduler::FormulaPolicy;
use pleach_scheduler::formula::ScoreFormula;
use pleach_scheduler::tree::{Tree, TreePolicy};

use crate::commands::Context;
use crate::flags::{ExportArgs, FormsFlag};
use pleach_experiments::door::DOOR;
use pleach_experiments::error::Error;
use pleach_experiments::removed::{Place, instead};
use pleach_experiments::run_folder::atomic_file::write;
use pleach_experiments::train::fine_tuning::network_at;
use pleach_experiments::tree_export::Form;
use pleach_experiments::worlds::requests::EndpointPicker;
use pleach_experiments::worlds::world_tree;

/// Writes the files.
///
/// # Errors
/// An unknown form, a file that is no tree and no network of this version, a form that networks or these trees do not have, a folder
/// that cannot be written.
pub fn run(args: &ExportArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let (pickers, names): (Vec<_>, Vec<_>) = args.forms.to.iter().partition(|name| picker(name).is_some());
    let forms = names.into_iter().map(|name| form(name, &EndpointPicker::ALL));
    let forms = forms.collect::<Result<Vec<Form>, Error>>()?;
    if let Some(tree) = world_tree(&args.file)? {
        for picker in pickers.into_iter().filter_map(|name| picker(name)) {
            let (name, content) = args.deployment.plugin(&tree, picker)?;
            let place = args.out.join(name);
            write(&place, content.as_bytes())?;
            context.say(&place.display().to_string())?;
        }
        return export_tree(&tree, forms, args, context);
    }
    if let Some(name) = pickers.first() {
        let hint = "pleach distill --search --workload requests makes one.";
        let allowed = "other forms; this one is for trees that route requests";
        return Err(Error::config("to", name, allowed, hint));
    }
    let policy = DOOR.open_one(&args.file.display().to_string())?;
    if policy.is_network() {
        return export_network(&network_at(&args.file)?, &forms, args, context);
    }
    if let Some(formula) = policy.formula_policy().map(FormulaPolicy::formula) {
        return export_formula(formula, &forms, args, context);
    }
    let Some(tree) = policy.tree_policy().map(TreePolicy::tree) else {
        let hint = "pleach distill makes a tree.";
        let allowed = "a tree, a formula or a network";
        return Err(Error::config("file", args.file.display(), allowed, hint));
    };
    export_tree(tree, forms, args, context)
}

fn export_tree(
    tree: &Tree,
    forms: Vec<Form>,
    args: &ExportArgs,
    context: &mut Context<'_>,
) -> Result<(), Error> {
    for form in forms {
        let (name, content) = form.file(tree);
        let place = args.out.join(name);
        write(&place, &content)?;
        context.say(&place.display().to_string())?;
    }
    if !tree.guards().is_none() {
        context.say("the tree's guards are not in these files: the caller of the score has to obey them")?;
    }
    Ok(())
}

/// A formula has the forms of source code.
fn export_formula(
    formula: &ScoreFormula,
    forms: &[Form],
    args: &ExportArgs,
    context: &mut Context<'_>,
) -> Result<(), Error> {
    for form in forms {
        let Form::Text(language) = form else {
            let hint = "ONNX is for trees and networks.";
            return Err(Error::config(
                "to",
                form.name(),
                "c, rust, go or python for a formula",
                hint,
            ));
        };
        let (name, content) = formula.export(*language);
        let place = args.out.join(name);
        write(&place, content.as_bytes())?;
        context.say(&place.display().to_string())?;
    }
    if !formula.guards().is_none() {
        context
            .say("the formula's guards are not in these files: the caller of the score has to obey them")?;
    }
    Ok(())
}

fn picker(name: &str) -> Option<EndpointPicker> {
    EndpointPicker::ALL
        .into_iter()
        .find(|picker| picker.name() == name)
}

/// A network has one form.
fn export_network(
    network: &TrainedNetwork,
    forms: &[Form],
    args: &ExportArgs,
    context: &mut Context<'_>,
) -> Result<(), Error> {
    if let Some(other) = forms.iter().find(|form| **form != Form::Onnx) {
        let hint = "A network is no tree; pleach distill makes one of it.";
        return Err(Error::config("to", other.name(), "onnx for a network", hint));
    }
    let model = network
        .to_onnx()
        .map_err(|error| Error::data(&args.file, error.to_string()))?;
    let place = args.out.join("network.onnx");
    write(&place, &model)?;
    context.say(&place.display().to_string())
}

/// The forms of the flag.
pub(super) fn forms(flag: &FormsFlag) -> Result<Vec<Form>, Error> {
    flag.to.iter().map(|name| form(name, &[])).collect()
}

/// A form by name. Pickers are only named in the message that refuses other names.
fn form(name: &str, pickers: &[EndpointPicker]) -> Result<Form, Error> {
    let found = Form::all().find(|form| form.name() == name);
    found.ok_or_else(|| {
        let pickers = pickers.iter().map(|picker| picker.name());
        let known: Vec<&str> = Form::all().map(Form::name).chain(pickers).collect();
        let hint = instead(Place::Form, name).unwrap_or("Several are given with commas: --to c,python.");
        Error::config("to", name, known.join(", "), hint)
    })
}
