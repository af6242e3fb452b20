//! A tree for the runtimes of other people's models: ONNX, and scikit-learn's trees.
//!
//! Beside [`pleach_scheduler::tree::Export`], whose forms are texts that need nothing, and apart from it because a scheduler in
//! production writes none of these. The numbers are the tree's own: a score is the same 32-bit float, to the bit.
//!
//! # What is deliberately not here
//! Features, and the order of equal candidates: as with every export, who runs it fills the rows as `docs/features.md` says, puts
//! *hold* last of its tier, and breaks ties by the tie key.

mod columns;
mod onnx;
mod sklearn;

use pleach_scheduler::tree::{Export, Tree};

/// Builds a regressor of scikit-learn from the arrays.
const SKLEARN_LOADER: &str = include_str!("tree_sklearn.py");

/// A form that a tree can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Source code, or a page for readers.
    Text(Export),
    /// An ONNX model: `TreeEnsembleRegressor` for the score, multiplications and additions of 64 bits for the key.
    Onnx,
    /// The arrays of `sklearn.tree._tree.Tree` as JSON, and a module of Python that builds a `DecisionTreeRegressor` from them.
    Sklearn,
}

impl Form {
    /// All forms.
    pub fn all() -> impl Iterator<Item = Form> {
        let text = Export::ALL.into_iter().map(Form::Text);
        text.chain([Form::Onnx, Form::Sklearn])
    }

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Form::Text(export) => export.name(),
            Form::Onnx => "onnx",
            Form::Sklearn => "sklearn",
        }
    }

    /// The files of a tree in this form: name and content.
    #[must_use]
    pub fn files(self, tree: &Tree) -> Vec<(&'static str, Vec<u8>)> {
        match self {
            Form::Text(export) => vec![(export.file_name(), tree.export(export).into_bytes())],
            Form::Onnx => vec![("tree.onnx", onnx::model(tree))],
            Form::Sklearn => vec![
                ("tree_sklearn.json", sklearn::arrays(tree).into_bytes()),
                ("tree_sklearn.py", SKLEARN_LOADER.as_bytes().to_vec()),
            ],
        }
    }
}

#[cfg(test)]
mod tests;
