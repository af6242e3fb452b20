//! Graphs to ONNX files: ours for the runtimes of other programs. `onnx_read.rs` is the way back.

use prost::Message as _;

use super::Graph;
use super::onnx_messages::{
    AttributeProto, AttributeType, DataType, DimensionProto, GraphProto, Length, ModelProto, NodeProto,
    OperatorSetIdProto, StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto,
    ValueInfoProto, attribute, int, ints,
};
use super::onnx_read::{CONTEXT, ROWS};
use super::op::{Op, PLAIN};
use crate::Error;
use crate::error::unfit;

/// Version of the file's own format: the one that came with operator set 17.
const IR_VERSION: i64 = 8;
/// Operators of `ai.onnx`.
const OPSET: i64 = 17;

/// A graph with its parameters as an ONNX model, with remarks.
///
/// # Errors
/// As [`Graph::check`], and for another number of parameters.
pub fn to_onnx(graph: &Graph, parameters: &[f32], remarks: &[(&str, String)]) -> Result<Vec<u8>, Error> {
    graph.check()?;
    if parameters.len() != graph.num_parameters() {
        return Err(unfit(
            "number of parameters",
            graph.num_parameters(),
            parameters.len(),
        ));
    }
    let mut writer = Writer {
        names: vec![ROWS.to_owned(), CONTEXT.to_owned()],
        constants: Vec::new(),
        nodes: Vec::new(),
    };
    let mut rest = parameters;
    for parameter in &graph.parameters {
        let (own, behind) = rest.split_at(parameter.len());
        writer.floats(&parameter.name, &parameter.shape, own);
        rest = behind;
    }
    for (index, integers) in graph.integers.iter().enumerate() {
        writer.integers(&format!("integers.{index}"), &integers.shape, &integers.values);
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        let end = graph.first_result() + index;
        let name = match end {
            end if end == graph.scores => "scores".to_owned(),
            end if Some(end) == graph.value => "value".to_owned(),
            _ => format!("result.{index}"),
        };
        let node = writer.node(&node.op, &node.inputs, name);
        writer.nodes.push(node);
    }
    let mut output = vec![port("scores", &[Length::Known(1), Length::Named("N".into())])];
    output.extend(graph.value.map(|_| port("value", &[Length::Known(1)])));
    let rows = [
        Length::Known(1),
        Length::Named("N".into()),
        Length::Known(graph.num_features as i64),
    ];
    let context = [Length::Known(1), Length::Known(graph.num_context as i64)];
    let model = ModelProto {
        ir_version: Some(IR_VERSION),
        opset_import: vec![OperatorSetIdProto {
            domain: None,
            version: Some(OPSET),
        }],
        producer_name: Some("pleach".into()),
        producer_version: Some(env!("CARGO_PKG_VERSION").into()),
        doc_string: None,
        graph: Some(GraphProto {
            node: writer.nodes,
            name: Some("network".into()),
            initializer: writer.constants,
            input: vec![port(ROWS, &rows), port(CONTEXT, &context)],
            output,
        }),
        metadata_props: remarks
            .iter()
            .map(|(key, value)| StringStringEntryProto {
                key: Some((*key).into()),
                value: Some(value.clone()),
            })
            .collect(),
    };
    Ok(model.encode_to_vec())
}

/// A model that is being written: the name of each value so far.
struct Writer {
    names: Vec<String>,
    constants: Vec<TensorProto>,
    nodes: Vec<NodeProto>,
}

impl Writer {
    fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        self.names.push(name.to_owned());
        self.constants.push(floats(name, shape, values));
    }

    fn integers(&mut self, name: &str, shape: &[usize], values: &[i64]) {
        self.names.push(name.to_owned());
        self.constants.push(integers(name, shape, values));
    }

    fn node(&mut self, op: &Op, inputs: &[usize], output: String) -> NodeProto {
        let (kind, attribute) = attributes(op);
        let mut input: Vec<String> = inputs.iter().map(|index| self.names[*index].clone()).collect();
        if let Op::ReduceSum { axes, .. } = op
            && !axes.is_empty()
        {
            // The axes of a sum are an input since operator set 13.
            let name = format!("{output}.axes");
            self.constants.push(integers(&name, &[axes.len()], axes));
            input.push(name);
        }
        if let Op::Scale { by } = op {
            let name = format!("{output}.by");
            self.constants.push(floats(&name, &[], &[*by]));
            input.push(name);
        }
        self.names.push(output.clone());
        NodeProto {
            input,
            name: Some(format!("{kind} of {output}")),
            output: vec![output],
            op_type: Some(kind.into()),
            attribute,
            domain: None,
        }
    }
}

/// An operator's name and settings.
fn attributes(op: &Op) -> (&'static str, Vec<AttributeProto>) {
    let reduce = |name, axes: &[i64], keep: bool| {
        let mut own = vec![int("keepdims", i64::from(keep))];
        if name != "ReduceSum" && !axes.is_empty() {
            own.push(ints("axes", axes.to_vec()));
        }
        (name, own)
    };
    match op {
        Op::Scale { .. } => ("Mul", vec![]),
        Op::LeakyRelu { alpha } => ("LeakyRelu", vec![float("alpha", *alpha)]),
        Op::Elu { alpha } => ("Elu", vec![float("alpha", *alpha)]),
        Op::Gemm {
            alpha,
            beta,
            trans_a,
            trans_b,
        } => {
            let turns = [
                int("transA", i64::from(*trans_a)),
                int("transB", i64::from(*trans_b)),
            ];
            (
                "Gemm",
                [float("alpha", *alpha), float("beta", *beta)]
                    .into_iter()
                    .chain(turns)
                    .collect(),
            )
        }
        Op::Softmax { axis } => ("Softmax", vec![int("axis", *axis)]),
        Op::LayerNormalization { axis, epsilon } => (
            "LayerNormalization",
            vec![int("axis", *axis), float("epsilon", *epsilon)],
        ),
        Op::ReduceMean { axes, keep } => reduce("ReduceMean", axes, *keep),
        Op::ReduceMax { axes, keep } => reduce("ReduceMax", axes, *keep),
        Op::ReduceMin { axes, keep } => reduce("ReduceMin", axes, *keep),
        Op::ReduceSum { axes, keep } => reduce("ReduceSum", axes, *keep),
        Op::Concat { axis } => ("Concat", vec![int("axis", *axis)]),
        Op::Gather { axis } => ("Gather", vec![int("axis", *axis)]),
        Op::Transpose { order } if order.is_empty() => ("Transpose", vec![]),
        Op::Transpose { order } => (
            "Transpose",
            vec![ints("perm", order.iter().map(|axis| *axis as i64).collect())],
        ),
        Op::Cast { to_integers } => ("Cast", vec![int("to", if *to_integers { 7 } else { 1 })]),
        Op::Truth => ("Cast", vec![int("to", DataType::Bool as i64)]),
        Op::Fill { value } => {
            let one = TensorProto {
                dims: vec![1],
                data_type: Some(DataType::Float.into()),
                raw_data: Some(value.to_le_bytes().to_vec()),
                ..TensorProto::default()
            };
            let own = AttributeProto {
                t: Some(one),
                ..attribute("value", AttributeType::Tensor)
            };
            ("ConstantOfShape", vec![own])
        }
        plain => {
            let row = PLAIN.iter().find(|(_, op)| op == plain);
            (row.map_or("Identity", |(name, _)| *name), vec![])
        }
    }
}

fn floats(name: &str, shape: &[usize], values: &[f32]) -> TensorProto {
    TensorProto {
        dims: shape.iter().map(|n| *n as i64).collect(),
        data_type: Some(DataType::Float.into()),
        raw_data: Some(values.iter().flat_map(|value| value.to_le_bytes()).collect()),
        name: Some(name.to_owned()),
        ..TensorProto::default()
    }
}

fn integers(name: &str, shape: &[usize], values: &[i64]) -> TensorProto {
    TensorProto {
        dims: shape.iter().map(|n| *n as i64).collect(),
        data_type: Some(DataType::Int64.into()),
        raw_data: Some(values.iter().flat_map(|value| value.to_le_bytes()).collect()),
        name: Some(name.to_owned()),
        ..TensorProto::default()
    }
}

fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto {
        f: Some(value),
        ..attribute(name, AttributeType::Float)
    }
}

/// An input or output of 32-bit floats.
fn port(name: &str, lengths: &[Length]) -> ValueInfoProto {
    let dim = lengths
        .iter()
        .cloned()
        .map(|length| DimensionProto { value: Some(length) });
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto {
            tensor_type: Some(TensorTypeProto {
                elem_type: Some(DataType::Float.into()),
                shape: Some(TensorShapeProto { dim: dim.collect() }),
            }),
        }),
    }
}
