//! Graphs from ONNX files, so that a network of PyTorch or of another program decides in the simulator and in daemons.
//!
//! A model has the inputs `candidates` (32-bit floats, `[1, N, F]`: the admissible candidates alone) and `global` (`[1, G]`), in
//! any order, and the outputs `scores` (N numbers) and, if it likes, `value`. An input `mask` (`[1, N]`, of any kind of numbers) may
//! be there for a program that shows all candidates at once; here it is all ones. Names are those of the observations of the Python
//! package, whose `export_onnx` writes such a file.
//!
//! # What it refuses
//! Operators that are not listed in `op.rs`, other kinds of numbers, subgraphs, and models beyond the bounds of graphs; each by its
//! name.

use std::collections::HashMap;
use std::path::Path;

use prost::Message as _;

use super::builder::{Builder, Value};
use super::onnx_data::fetch;
use super::onnx_messages::{
    DataType, GraphProto, Length, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
};
use super::onnx_numbers::{floats_of, integers_of, kind_name};
use super::op::{Op, PLAIN};
use super::tensor::refuse;
use super::{Graph, NODES_MAX, PARAMETERS_MAX};
use crate::Error;

/// Name of the input with the rows.
pub(super) const ROWS: &str = "candidates";
/// Name of the input with the context.
pub(super) const CONTEXT: &str = "global";
/// Name of the input that says which rows are admissible.
const MASK: &str = "mask";
/// Operator sets that are read. Before 13 squeezes and sums had their axes elsewhere; 22 to 25 add kinds of numbers and operators,
/// and leave these as they were.
const OPSETS: std::ops::RangeInclusive<i64> = 13..=25;
/// Bytes of weights in files beside a model, at most.
const DATA_BYTES_MAX: u64 = 4 * PARAMETERS_MAX as u64;

/// Keys and values that a model says of itself.
pub type Remarks = Vec<(String, String)>;

/// The graph of a model, its parameters in the order of the file, and its remarks (`metadata_props`).
///
/// # Errors
/// An [`Error`] for bytes that are no model, and for whatever a graph cannot hold.
pub fn from_onnx(bytes: &[u8]) -> Result<(Graph, Vec<f32>, Remarks), Error> {
    from_onnx_in(bytes, None)
}

/// The same of a model whose weights may lie in files of its folder.
///
/// # Errors
/// As [`from_onnx`]; a file of weights that is not there or elsewhere.
pub fn from_onnx_in(bytes: &[u8], folder: Option<&Path>) -> Result<(Graph, Vec<f32>, Remarks), Error> {
    let model = match ModelProto::decode(bytes) {
        Ok(model) => model,
        Err(error) => return refuse(format!("not an ONNX model: {error}")),
    };
    let is_main = |set: &&OperatorSetIdProto| set.domain.as_deref().unwrap_or("").is_empty();
    let opset = model
        .opset_import
        .iter()
        .find(is_main)
        .and_then(|set| set.version);
    if opset.is_none_or(|version| !OPSETS.contains(&version)) {
        let found = opset.map_or("none".to_owned(), |version| version.to_string());
        let (least, most) = (OPSETS.start(), OPSETS.end());
        return refuse(format!(
            "operator set {found}; versions {least} to {most} are read: give opset_version to the exporter"
        ));
    }
    let remarks = model.metadata_props.into_iter();
    let remarks = remarks.map(|remark| (remark.key.unwrap_or_default(), remark.value.unwrap_or_default()));
    let Some(mut graph) = model.graph else {
        return refuse("an ONNX model without a graph");
    };
    if graph.node.len() > NODES_MAX || graph.initializer.len() > NODES_MAX {
        return refuse(format!(
            "{} operators; allowed is up to {NODES_MAX}",
            graph.node.len()
        ));
    }
    fetch(&mut graph, folder, DATA_BYTES_MAX)?;
    let (num_features, num_context) = (width(&graph, ROWS)?, width(&graph, CONTEXT)?);
    let mut reader = Reader {
        builder: Builder::new(num_features, num_context),
        parameters: Vec::new(),
        values: HashMap::new(),
        integers: HashMap::new(),
    };
    reader.values.insert(ROWS.to_owned(), reader.builder.rows());
    reader.values.insert(CONTEXT.to_owned(), reader.builder.context());
    let is_constant = |input: &&ValueInfoProto| graph.initializer.iter().any(|own| own.name == input.name);
    for input in graph.input.iter().filter(|input| !is_constant(input)) {
        reader.further_input(input)?;
    }
    for initializer in &graph.initializer {
        let name = initializer.name.clone().unwrap_or_default();
        reader.constant(&name, initializer)?;
    }
    for node in &graph.node {
        reader.node(node)?;
    }
    let scores = reader.value("scores")?;
    let has_value = graph
        .output
        .iter()
        .any(|output| output.name.as_deref() == Some("value"));
    let value = if has_value {
        Some(reader.value("value")?)
    } else {
        None
    };
    let graph = reader.builder.finish(scores, value);
    graph.check()?;
    Ok((graph, reader.parameters, remarks.collect()))
}

/// The last length of an input.
fn width(graph: &GraphProto, name: &str) -> Result<usize, Error> {
    let input = graph
        .input
        .iter()
        .find(|input| input.name.as_deref() == Some(name));
    let Some(input) = input else {
        let names: Vec<_> = graph
            .input
            .iter()
            .filter_map(|input| input.name.as_deref())
            .collect();
        let names = names.join(", ");
        return refuse(format!(
            "no input {name}; a model has the inputs {ROWS} and {CONTEXT}, this one: {names}"
        ));
    };
    let tensor = input.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref());
    let shape = tensor.and_then(|tensor| tensor.shape.as_ref());
    match shape
        .and_then(|shape| shape.dim.last())
        .and_then(|dim| dim.value.as_ref())
    {
        Some(Length::Known(n)) if (1..1 << 20).contains(n) => Ok(*n as usize),
        _ => refuse(format!(
            "the last length of the input {name} is to be a number below {}",
            1 << 20
        )),
    }
}

/// A model that is being read: names of values, and integers that are known.
struct Reader {
    builder: Builder,
    parameters: Vec<f32>,
    values: HashMap<String, Value>,
    integers: HashMap<String, Vec<i64>>,
}

impl Reader {
    fn value(&self, name: &str) -> Result<Value, Error> {
        match self.values.get(name) {
            Some(value) => Ok(*value),
            None => refuse(format!("no value {name}")),
        }
    }

    /// An input beside rows and context: the mask, all ones, because every candidate that is shown here is admissible.
    fn further_input(&mut self, input: &ValueInfoProto) -> Result<(), Error> {
        let name = input.name.as_deref().unwrap_or_default();
        if self.values.contains_key(name) {
            return Ok(());
        }
        if name != MASK {
            return refuse(format!(
                "input {name:?}; a model has the inputs {ROWS}, {CONTEXT} and, if it likes, {MASK}"
            ));
        }
        let kind = input.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref());
        let is_float = kind.and_then(|kind| kind.elem_type) == Some(DataType::Float as i32);
        let builder = &mut self.builder;
        let (rows, two) = (builder.rows(), builder.integers(&[0, 1]));
        let shape = builder.apply(Op::Shape, &[rows]);
        let shape = builder.apply(Op::Gather { axis: 0 }, &[shape, two]);
        let mut ones = builder.apply(Op::Fill { value: 1.0 }, &[shape]);
        if !is_float {
            ones = builder.apply(Op::Cast { to_integers: true }, &[ones]);
        }
        self.values.insert(name.to_owned(), ones);
        Ok(())
    }

    /// A constant: floats become a parameter, integers stay constants.
    fn constant(&mut self, name: &str, tensor: &TensorProto) -> Result<(), Error> {
        let lens = tensor.dims.iter().map(|n| usize::try_from(*n).ok());
        let Some(shape) = lens.collect::<Option<Vec<usize>>>() else {
            return refuse(format!("constant {name} has a negative length"));
        };
        let len = super::tensor::len_of(&shape)?;
        let value = if tensor.data_type == Some(DataType::Float as i32) {
            let floats = floats_of(tensor);
            // Infinity stands for "never", where rows are masked.
            if floats.iter().any(|value| value.is_nan()) {
                return refuse(format!(
                    "constant {name} holds NaN: its training diverged, so train it anew where it comes from"
                ));
            }
            if floats.len() != len {
                return refuse(format!(
                    "constant {name}: {} floats for shape {shape:?}",
                    floats.len()
                ));
            }
            self.parameters.extend(floats);
            self.builder.parameter(name, &shape)
        } else if let Some(integers) = integers_of(tensor) {
            if integers.len() != len {
                return refuse(format!(
                    "constant {name}: {} integers for shape {shape:?}",
                    integers.len()
                ));
            }
            self.integers.insert(name.to_owned(), integers.clone());
            let constant = self.builder.constant(shape, integers);
            if tensor.data_type == Some(DataType::Bool as i32) {
                self.builder.apply(Op::Truth, &[constant])
            } else {
                constant
            }
        } else {
            let kind = kind_name(tensor.data_type.unwrap_or_default());
            return refuse(format!(
                "constant {name} is of {kind}; understood are 32-bit floats, integers of 32 and 64 bits and truth values: convert the \
                 network before it is exported (in PyTorch: module.float())"
            ));
        };
        self.values.insert(name.to_owned(), value);
        Ok(())
    }

    fn node(&mut self, node: &NodeProto) -> Result<(), Error> {
        let kind = node.op_type.as_deref().unwrap_or_default();
        let Some(output) = node.output.first() else {
            return refuse(format!("{kind} without a result"));
        };
        if kind == "Constant" {
            let value = node.attribute.iter().find_map(|attribute| attribute.t.as_ref());
            return match value {
                Some(tensor) => self.constant(output, tensor),
                None => refuse("Constant: a tensor is understood"),
            };
        }
        if node
            .domain
            .as_deref()
            .is_some_and(|domain| !domain.is_empty() && domain != "ai.onnx")
        {
            return refuse(format!("operator {kind} of the domain {:?}", node.domain));
        }
        let mut names: Vec<&str> = node.input.iter().map(String::as_str).collect();
        while names.last().is_some_and(|name| name.is_empty()) {
            names.pop();
        }
        match kind {
            "Split" => return self.split(node, &names),
            "Clip" => return self.clip(output, &names),
            _ => {}
        }
        let op = self.op(kind, node, &names)?;
        // Axes of a reduction are settings of ours, and inputs from operator set 18 on.
        let most = op.num_inputs().1;
        let inputs: Result<Vec<Value>, Error> =
            names.iter().take(most).map(|name| self.value(name)).collect();
        let mut value = self.builder.apply(op, &inputs?);
        let filled = node.attribute.iter().find_map(|attribute| attribute.t.as_ref());
        if kind == "ConstantOfShape" && filled.and_then(integers_of).is_some() {
            value = self.builder.apply(Op::Cast { to_integers: true }, &[value]);
        }
        self.values.insert(output.clone(), value);
        Ok(())
    }

    /// A value between two ends, each of which may be left out.
    fn clip(&mut self, output: &str, inputs: &[&str]) -> Result<(), Error> {
        let Some((first, ends)) = inputs.split_first().filter(|(_, ends)| ends.len() <= 2) else {
            return refuse("Clip of no value, or between more than two ends");
        };
        let mut value = self.value(first)?;
        for (end, op) in ends
            .iter()
            .zip([Op::Max, Op::Min])
            .filter(|(end, _)| !end.is_empty())
        {
            let end = self.value(end)?;
            value = self.builder.apply(op, &[value, end]);
        }
        self.values.insert(output.to_owned(), value);
        Ok(())
    }

    /// A value cut along an axis, into parts whose lengths are a constant.
    fn split(&mut self, node: &NodeProto, inputs: &[&str]) -> Result<(), Error> {
        let [whole, lens] = inputs else {
            return refuse("Split: lengths of the parts as a second input are understood");
        };
        let (whole, Some(lens)) = (self.value(whole)?, self.integers.get(*lens).cloned()) else {
            return refuse("Split: lengths that are computed");
        };
        let axis = node
            .attribute
            .iter()
            .find(|own| own.name.as_deref() == Some("axis"));
        let axis = self.builder.integers(&[axis.and_then(|own| own.i).unwrap_or(0)]);
        let mut start = 0_i64;
        for (output, len) in node.output.iter().zip(lens) {
            let end = start.saturating_add(len);
            let ends = [self.builder.integers(&[start]), self.builder.integers(&[end])];
            let part = self.builder.apply(Op::Slice, &[whole, ends[0], ends[1], axis]);
            self.values.insert(output.clone(), part);
            start = end;
        }
        Ok(())
    }

    fn op(&self, kind: &str, node: &NodeProto, inputs: &[&str]) -> Result<Op, Error> {
        if let Some(op) = plain(kind) {
            return Ok(op);
        }
        let find = |name: &str| {
            node.attribute
                .iter()
                .find(|own| own.name.as_deref() == Some(name))
        };
        let int = |name: &str, or: i64| find(name).and_then(|own| own.i).unwrap_or(or);
        let float = |name: &str, or: f32| find(name).and_then(|own| own.f).unwrap_or(or);
        let axes = || match (find("axes"), inputs.get(1)) {
            (Some(own), _) => Ok(own.ints.clone()),
            (None, None) => Ok(Vec::new()),
            (None, Some(name)) => match self.integers.get(*name) {
                Some(axes) => Ok(axes.clone()),
                None => refuse(format!("{kind}: axes that are computed")),
            },
        };
        let keep = int("keepdims", 1) != 0;
        Ok(match kind {
            "LeakyRelu" => Op::LeakyRelu {
                alpha: float("alpha", 0.01),
            },
            "Elu" => Op::Elu {
                alpha: float("alpha", 1.0),
            },
            "Gemm" => Op::Gemm {
                alpha: float("alpha", 1.0),
                beta: float("beta", 1.0),
                trans_a: int("transA", 0) != 0,
                trans_b: int("transB", 0) != 0,
            },
            "Softmax" => Op::Softmax {
                axis: int("axis", -1),
            },
            "LayerNormalization" => Op::LayerNormalization {
                axis: int("axis", -1),
                epsilon: float("epsilon", 1e-5),
            },
            "ReduceMean" => Op::ReduceMean { axes: axes()?, keep },
            "ReduceMax" => Op::ReduceMax { axes: axes()?, keep },
            "ReduceMin" => Op::ReduceMin { axes: axes()?, keep },
            "ReduceSum" => Op::ReduceSum { axes: axes()?, keep },
            "Concat" => Op::Concat { axis: int("axis", 0) },
            "Gather" => Op::Gather { axis: int("axis", 0) },
            "Transpose" => {
                let order = find("perm").map(|own| own.ints.as_slice()).unwrap_or_default();
                let order = order
                    .iter()
                    .map(|axis| usize::try_from(*axis).unwrap_or(usize::MAX));
                Op::Transpose {
                    order: order.collect(),
                }
            }
            "Cast" => match int("to", 0) {
                1 => Op::Cast { to_integers: false },
                6 | 7 => Op::Cast { to_integers: true },
                9 => Op::Truth,
                other => {
                    return refuse(format!(
                        "Cast to kind {other}; 1 (float), 6 and 7 (integers) and 9 (truth) are understood"
                    ));
                }
            },
            "ConstantOfShape" => {
                let value = find("value").and_then(|own| own.t.as_ref());
                let value = value.and_then(|tensor| match integers_of(tensor) {
                    Some(integers) => integers.first().map(|value| *value as f32),
                    None => floats_of(tensor).first().copied(),
                });
                Op::Fill {
                    value: value.unwrap_or(0.0),
                }
            }
            "Gelu" => {
                return refuse(
                    "operator Gelu is not understood: export with opset_version=18, which writes it as Erf, Mul and Add",
                );
            }
            _ => {
                return refuse(format!(
                    "operator {kind} is not understood; docs/learning.md lists those that are"
                ));
            }
        })
    }
}

/// An operator without settings.
fn plain(kind: &str) -> Option<Op> {
    let kind = if kind == "Dropout" { "Identity" } else { kind };
    let row = PLAIN.iter().find(|(name, _)| *name == kind);
    row.map(|(_, op)| op.clone())
}
