//! Networks as a list of operators: what deploys an architecture of one's own, or an ONNX file, without a tensor library.
//!
//! A [`Graph`] is a bounded list of operators over the rows of one decision and its context. It is data: a network file carries
//! it, `onnx_read.rs` reads it from other programs, and [`Program`] runs it in plain Rust, in rollouts and in daemons alike. An
//! architecture writes its list with [`Builder`]; the module in the learners' crate is held to it before a training begins.
//!
//! # Shapes
//! | value | shape | |
//! |---|---|---|
//! | `rows` | `[1, N, F]` | the N admissible candidates of a decision, 32-bit floats |
//! | `context` | `[1, G]` | global features |
//! | `scores` (out) | N numbers | larger is better |
//! | `value` (out, may be absent) | 1 number | what a learner expects, in its own unit |
//!
//! # What it refuses
//! Loops, branches, random numbers, text, numbers of other widths than `f32` and `i64`, and whatever exceeds the bounds below.
//! Operators mean what ONNX's of the same name mean (operator set 17).

mod builder;
mod kernels;
mod logic;
mod onnx_data;
pub mod onnx_messages;
mod onnx_numbers;
mod onnx_read;
mod onnx_write;
mod op;
mod program;
mod set;
mod shape;
mod tensor;
#[cfg(test)]
mod tests;

pub use builder::{Builder, Value};
pub use onnx_read::{Remarks, from_onnx, from_onnx_in};
pub use onnx_write::to_onnx;
pub use op::Op;
pub use program::{Program, Workspace};
pub use set::set_operators;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::error::graph;

/// Operators in a graph, at most. *Assumed.*
pub const NODES_MAX: usize = 2_000;
/// Parameters of a graph, at most. *Assumed.*
pub const PARAMETERS_MAX: usize = 1 << 24;
/// Numbers in a constant of integers (shapes, axes, indices), at most. *Assumed.*
pub const INTEGERS_MAX: usize = 4_096;
/// Numbers in any value while a graph runs, at most. *Assumed:* 64 candidates that attend to each other under 64 heads are 2^18.
pub const NUMBERS_MAX: usize = 1 << 22;
/// Multiplications in one decision, at most: some seconds of one core. *Assumed.*
pub const WORK_MAX: u64 = 1 << 32;

/// A parameter array: one run of the flat list of parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its shape; its numbers are row-major.
    pub shape: Vec<usize>,
}

impl Parameter {
    /// How many numbers it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A constant of integers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Integers {
    /// Its shape.
    pub shape: Vec<usize>,
    /// Row-major.
    pub values: Vec<i64>,
}

/// One application of an operator; inputs are indices of values (see [`Graph`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// What is applied.
    pub op: Op,
    /// To which values. An operand that may be left out is left out at the end.
    pub inputs: Vec<usize>,
}

/// A list of operators. Values are numbered: 0 are the rows, 1 is the context, then the parameters, the integers, and the
/// results of the nodes in their order. A node reads values before its own only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Features of a row, F.
    pub num_features: usize,
    /// Numbers of the context, G.
    pub num_context: usize,
    /// Arrays of parameters, in the order of the flat list.
    pub parameters: Vec<Parameter>,
    /// Constants of integers.
    #[serde(default)]
    pub integers: Vec<Integers>,
    /// Operators, in an order in which they can run.
    pub nodes: Vec<Node>,
    /// The value of the scores.
    pub scores: usize,
    /// The value of the expected return; None where the network has none.
    #[serde(default)]
    pub value: Option<usize>,
}

impl Graph {
    /// Length of the flat list of parameters.
    #[must_use]
    pub fn num_parameters(&self) -> usize {
        self.parameters.iter().map(Parameter::len).sum()
    }

    /// Index of the first result of a node.
    fn first_result(&self) -> usize {
        2 + self.parameters.len() + self.integers.len()
    }

    /// Checks the bounds, and that every value is there before it is read. Shapes are checked by [`Program::new`], which runs it.
    ///
    /// # Errors
    /// An [`Error`] with the node and what is allowed.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |reason: String| Err(graph(reason));
        if self.nodes.len() > NODES_MAX {
            return refuse(format!(
                "{} operators; allowed is up to {NODES_MAX}",
                self.nodes.len()
            ));
        }
        let mut lens = self.parameters.iter().map(|parameter| {
            let factors = parameter.shape.iter();
            factors
                .clone()
                .try_fold(1_usize, |product, factor| product.checked_mul(*factor))
        });
        let sum = lens.try_fold(0_usize, |sum, len| sum.checked_add(len?));
        let most = PARAMETERS_MAX;
        if sum.is_none_or(|sum| sum > most) || self.parameters.len() > NODES_MAX {
            return refuse(format!(
                "too many parameters; allowed are {most} in {NODES_MAX} arrays"
            ));
        }
        let of_integers = |integers: &Integers| {
            let len = integers
                .shape
                .iter()
                .try_fold(1_usize, |product, n| product.checked_mul(*n));
            len == Some(integers.values.len()) && integers.values.len() <= INTEGERS_MAX
        };
        if self.integers.len() > NODES_MAX || !self.integers.iter().all(of_integers) {
            return refuse(format!(
                "a constant of integers is not of its shape, or has more than {INTEGERS_MAX}"
            ));
        }
        let first = self.first_result();
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(input) = node.inputs.iter().find(|input| **input >= first + index) {
                return refuse(format!(
                    "node {index} reads value {input}, which is not there yet"
                ));
            }
            let (least, most) = node.op.num_inputs();
            if !(least..=most).contains(&node.inputs.len()) {
                let found = node.inputs.len();
                return refuse(format!(
                    "node {index} ({:?}) has {found} inputs; it takes {least} to {most}",
                    node.op
                ));
            }
        }
        let end = first + self.nodes.len();
        if self.scores >= end || self.value.is_some_and(|value| value >= end) {
            return refuse("the scores or the value are not among the results".to_owned());
        }
        Ok(())
    }
}
