//! The operators, with their settings. Each means what ONNX's of the same name means in operator set 17.

use serde::{Deserialize, Serialize};

/// An operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "named as ONNX's")]
pub enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Relu,
    Tanh,
    Sigmoid,
    Erf,
    Exp,
    Sqrt,
    Neg,
    Log,
    Abs,
    Softplus,
    LeakyRelu {
        alpha: f32,
    },
    Elu {
        alpha: f32,
    },
    Pow,
    /// What a division of integers leaves, of the sign of the divisor.
    Mod,
    Max,
    Min,
    /// Truth is an integer, 0 or 1.
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Not,
    And,
    Or,
    /// The second input where the first is true, else the third.
    Where,
    /// The same value; also `Dropout`, which does nothing where nothing is learned.
    Identity,
    MatMul,
    /// Times a number.
    Scale {
        by: f32,
    },
    /// `alpha A B + beta C`, with A and B transposed where said.
    Gemm {
        alpha: f32,
        beta: f32,
        trans_a: bool,
        trans_b: bool,
    },
    Softmax {
        axis: i64,
    },
    /// Normalises over `axis` and all behind it; then scale and bias.
    LayerNormalization {
        axis: i64,
        epsilon: f32,
    },
    /// Over `axes`; over all where there are none.
    ReduceMean {
        axes: Vec<i64>,
        keep: bool,
    },
    ReduceMax {
        axes: Vec<i64>,
        keep: bool,
    },
    ReduceMin {
        axes: Vec<i64>,
        keep: bool,
    },
    ReduceSum {
        axes: Vec<i64>,
        keep: bool,
    },
    Concat {
        axis: i64,
    },
    Gather {
        axis: i64,
    },
    /// Without `order` all axes are reversed.
    Transpose {
        order: Vec<usize>,
    },
    /// The second input is the shape; 0 keeps a length and -1 is what is left.
    Reshape,
    Squeeze,
    Unsqueeze,
    /// Data, starts, ends, axes, steps (of 1).
    Slice,
    Expand,
    /// The shape as integers.
    Shape,
    /// To 32-bit floats, or to integers.
    Cast {
        to_integers: bool,
    },
    /// Whether a number is not 0 (`Cast` to truth).
    Truth,
    /// So many of the first input's values, all equal (`ConstantOfShape`).
    Fill {
        value: f32,
    },
}

/// Operators without settings, by ONNX's names.
pub(super) static PLAIN: [(&str, Op); 35] = [
    ("Add", Op::Add),
    ("Sub", Op::Sub),
    ("Mul", Op::Mul),
    ("Div", Op::Div),
    ("Relu", Op::Relu),
    ("Tanh", Op::Tanh),
    ("Sigmoid", Op::Sigmoid),
    ("Erf", Op::Erf),
    ("Exp", Op::Exp),
    ("Sqrt", Op::Sqrt),
    ("Neg", Op::Neg),
    ("Log", Op::Log),
    ("Abs", Op::Abs),
    ("Softplus", Op::Softplus),
    ("Pow", Op::Pow),
    ("Mod", Op::Mod),
    ("Max", Op::Max),
    ("Min", Op::Min),
    ("Equal", Op::Equal),
    ("Greater", Op::Greater),
    ("GreaterOrEqual", Op::GreaterOrEqual),
    ("Less", Op::Less),
    ("LessOrEqual", Op::LessOrEqual),
    ("Not", Op::Not),
    ("And", Op::And),
    ("Or", Op::Or),
    ("Where", Op::Where),
    ("Identity", Op::Identity),
    ("MatMul", Op::MatMul),
    ("Reshape", Op::Reshape),
    ("Squeeze", Op::Squeeze),
    ("Unsqueeze", Op::Unsqueeze),
    ("Slice", Op::Slice),
    ("Expand", Op::Expand),
    ("Shape", Op::Shape),
];

impl Op {
    /// Fewest and most inputs.
    #[must_use]
    pub fn num_inputs(&self) -> (usize, usize) {
        match self {
            Op::Add | Op::Sub | Op::Mul | Op::Div | Op::MatMul | Op::Gather { .. } => (2, 2),
            Op::Reshape | Op::Unsqueeze | Op::Expand | Op::Pow | Op::Mod | Op::Max | Op::Min => (2, 2),
            Op::Equal | Op::Greater | Op::GreaterOrEqual | Op::Less | Op::LessOrEqual => (2, 2),
            Op::And | Op::Or => (2, 2),
            Op::Where => (3, 3),
            Op::Gemm { .. } | Op::LayerNormalization { .. } => (2, 3),
            Op::Squeeze => (1, 2),
            Op::Slice => (3, 5),
            Op::Concat { .. } => (1, 64),
            _ => (1, 1),
        }
    }
}
