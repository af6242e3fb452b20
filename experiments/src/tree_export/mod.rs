//! A tree for the runtimes of other people's models: ONNX.
//!
//! Beside [`pleach_scheduler::tree::Export`], whose forms are texts that need nothing, and apart from it because a scheduler in
//! production writes none. The numbers are the tree's own: a score is the same 32-bit float, to the bit.
//!
//! # What is deliberately not here
//! Features, and the order of equal candidates. As with every export, the caller fills the rows as `pleach policies --features`
//! says, puts *hold* last of its tier, and breaks ties by the tie key.

mod onnx;

use pleach_scheduler::tree::{Export, Tree};

/// A form that a tree can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Source code.
    Text(Export),
    /// An ONNX model: `TreeEnsembleRegressor` for the score, multiplications and additions of 64 bits for the key.
    Onnx,
}

impl Form {
    /// All forms.
    pub fn all() -> impl Iterator<Item = Form> {
        let text = Export::ALL.into_iter().map(Form::Text);
        text.chain([Form::Onnx])
    }

    /// Name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Form::Text(export) => export.name(),
            Form::Onnx => "onnx",
        }
    }

    /// The file of a tree in this form: name and content.
    #[must_use]
    pub fn file(self, tree: &Tree) -> (&'static str, Vec<u8>) {
        match self {
            Form::Text(export) => (export.file_name(), tree.export(export).into_bytes()),
            Form::Onnx => ("tree.onnx", onnx::model(tree)),
        }
    }
}

#[cfg(test)]
mod tests;
