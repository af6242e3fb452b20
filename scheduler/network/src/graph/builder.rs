//! Writes a graph: each call adds an operator and hands back its value.

use super::op::Op;
use super::{Graph, Integers, Node, Parameter};

/// A value of a graph that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value(Place);

/// Where a value comes from; numbers are given to values once all parameters are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Rows,
    Context,
    Parameter(usize),
    Integers(usize),
    Result(usize),
}

/// A graph that is being written.
#[derive(Clone, Debug)]
pub struct Builder {
    num_features: usize,
    num_context: usize,
    parameters: Vec<Parameter>,
    integers: Vec<Integers>,
    nodes: Vec<(Op, Vec<Value>)>,
}

impl Builder {
    /// A graph over rows of `num_features` and a context of `num_context` numbers.
    #[must_use]
    pub fn new(num_features: usize, num_context: usize) -> Builder {
        Builder {
            num_features,
            num_context,
            parameters: Vec::new(),
            integers: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// The rows, `[1, N, F]`.
    #[must_use]
    pub fn rows(&self) -> Value {
        Value(Place::Rows)
    }

    /// The context, `[1, G]`.
    #[must_use]
    pub fn context(&self) -> Value {
        Value(Place::Context)
    }

    /// The next array of the flat list of parameters.
    pub fn parameter(&mut self, name: &str, shape: &[usize]) -> Value {
        self.parameters.push(Parameter {
            name: name.to_owned(),
            shape: shape.to_vec(),
        });
        Value(Place::Parameter(self.parameters.len() - 1))
    }

    /// A constant list of integers.
    pub fn integers(&mut self, values: &[i64]) -> Value {
        self.constant(vec![values.len()], values.to_vec())
    }

    pub(super) fn constant(&mut self, shape: Vec<usize>, values: Vec<i64>) -> Value {
        self.integers.push(Integers { shape, values });
        Value(Place::Integers(self.integers.len() - 1))
    }

    /// The result of an operator.
    pub fn apply(&mut self, op: Op, inputs: &[Value]) -> Value {
        self.nodes.push((op, inputs.to_vec()));
        Value(Place::Result(self.nodes.len() - 1))
    }

    /// `x W + b`, with parameters `NAME.weight` `[inputs, outputs]` and `NAME.bias` `[outputs]`.
    pub fn linear(&mut self, x: Value, name: &str, [inputs, outputs]: [usize; 2]) -> Value {
        let weight = self.parameter(&format!("{name}.weight"), &[inputs, outputs]);
        let bias = self.parameter(&format!("{name}.bias"), &[outputs]);
        let product = self.apply(Op::MatMul, &[x, weight]);
        self.apply(Op::Add, &[product, bias])
    }

    /// `by x`
    pub fn scale(&mut self, x: Value, by: f32) -> Value {
        self.apply(Op::Scale { by }, &[x])
    }

    /// `max(x, 0)`
    pub fn relu(&mut self, x: Value) -> Value {
        self.apply(Op::Relu, &[x])
    }

    /// The graph with these outputs.
    #[must_use]
    pub fn finish(self, scores: Value, value: Option<Value>) -> Graph {
        let (parameters, integers) = (self.parameters.len(), self.integers.len());
        let number = |Value(place): &Value| match place {
            Place::Rows => 0,
            Place::Context => 1,
            Place::Parameter(index) => 2 + index,
            Place::Integers(index) => 2 + parameters + index,
            Place::Result(index) => 2 + parameters + integers + index,
        };
        let nodes = self.nodes.iter().map(|(op, inputs)| Node {
            op: op.clone(),
            inputs: inputs.iter().map(number).collect(),
        });
        Graph {
            nodes: nodes.collect(),
            num_features: self.num_features,
            num_context: self.num_context,
            scores: number(&scores),
            value: value.as_ref().map(number),
            parameters: self.parameters,
            integers: self.integers,
        }
    }
}
