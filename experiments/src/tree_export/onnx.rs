//! A tree as an ONNX model: `rows` (32-bit floats, N x features) in, `score` (32-bit, N x 1) and `key` (64-bit, N x 1) out.
//!
//! The score is one `TreeEnsembleRegressor` with one tree and no base value, so a runtime adds a leaf's score to 0 and to nothing
//! else. The key is a chain of additions from 0 in the order of the schema, in 64 bits, where each product is exact: no operator
//! that sums as it pleases. Without key weights it is 0.
//!
//! # Where it differs
//! A score of -0 comes out as 0, which is equal to it. A feature that is no number goes right, as in the tree
//! (`nodes_missing_value_tracks_true` is 0); in a key it stays none, and the scheduler's infinity is the caller's part.

use pleach_scheduler::tree::{Node, Tree};
use prost::Message as _;

use pleach_network::graph::onnx_messages::{
    AttributeProto, AttributeType, DataType, DimensionProto, GraphProto, Length, ModelProto, NodeProto,
    OperatorSetIdProto, StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto,
    ValueInfoProto, attribute, int, ints,
};

/// Version of the file's own format: the one that came with operator set 17.
const IR_VERSION: i64 = 8;
/// Operators of `ai.onnx`.
const OPSET: i64 = 17;
/// Operators of `ai.onnx.ml`; 5 has another form of tree, which fewer runtimes know.
const ML_OPSET: i64 = 3;
/// Domain of the operators on trees.
pub(super) const ML_DOMAIN: &str = "ai.onnx.ml";

/// The bytes of a file.
pub(super) fn model(tree: &Tree) -> Vec<u8> {
    let remark = |key: &str, value: String| StringStringEntryProto {
        key: Some(key.into()),
        value: Some(value),
    };
    let opset = |domain: &str, version| OperatorSetIdProto {
        domain: Some(domain.into()),
        version: Some(version),
    };
    // A name, as in the policy file.
    let tie_key = serde_json::to_value(tree.meta().tie_key).unwrap_or_default();
    let model = ModelProto {
        ir_version: Some(IR_VERSION),
        opset_import: vec![opset("", OPSET), opset(ML_DOMAIN, ML_OPSET)],
        producer_name: Some("pleach".into()),
        producer_version: Some(env!("CARGO_PKG_VERSION").into()),
        doc_string: Some(tree.to_text()),
        graph: Some(graph(tree)),
        metadata_props: vec![
            remark("features", columns(tree).join(",")),
            remark("features_hash", tree.features_hash()),
            remark("tie_key", tie_key.as_str().unwrap_or_default().to_string()),
        ],
    };
    model.encode_to_vec()
}

fn graph(tree: &Tree) -> GraphProto {
    let mut nodes = vec![ensemble(tree)];
    let mut constants = Vec::new();
    key(tree, &mut nodes, &mut constants);
    GraphProto {
        node: nodes,
        name: Some(tree.meta().name.clone()),
        initializer: constants,
        input: vec![value("rows", DataType::Float, columns(tree).len())],
        output: vec![
            value("score", DataType::Float, 1),
            value("key", DataType::Double, 1),
        ],
    }
}

/// The tree: node ids are places in the file's list. Leaves have entries too, which no runtime reads.
fn ensemble(tree: &Tree) -> NodeProto {
    let (mut features, mut modes, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (mut yes, mut no) = (Vec::new(), Vec::new());
    let (mut leaves, mut scores) = (Vec::new(), Vec::new());
    for (place, node) in tree.nodes().iter().enumerate() {
        let (feature, mode, bound, left, right) = match *node {
            Node::Leaf { score, .. } => {
                leaves.push(place as i64);
                scores.push(score);
                (0, "LEAF", 0.0, 0, 0)
            }
            Node::Split {
                feature,
                threshold,
                left,
                right,
            } => (feature, "BRANCH_LEQ", threshold, left, right),
        };
        features.push(i64::from(feature));
        modes.push(mode.as_bytes().to_vec());
        values.push(bound);
        yes.push(i64::from(left));
        no.push(i64::from(right));
    }
    let places = (0..tree.nodes().len() as i64).collect();
    let zeros = |count: usize| vec![0; count];
    NodeProto {
        domain: Some(ML_DOMAIN.into()),
        attribute: vec![
            ints("nodes_treeids", zeros(tree.nodes().len())),
            ints("nodes_nodeids", places),
            ints("nodes_featureids", features),
            AttributeProto {
                strings: modes,
                ..attribute("nodes_modes", AttributeType::Strings)
            },
            floats("nodes_values", values),
            ints("nodes_truenodeids", yes),
            ints("nodes_falsenodeids", no),
            ints("nodes_missing_value_tracks_true", zeros(tree.nodes().len())),
            ints("target_treeids", zeros(leaves.len())),
            ints("target_ids", zeros(leaves.len())),
            ints("target_nodeids", leaves),
            floats("target_weights", scores),
            int("n_targets", 1),
            text("aggregate_function", "SUM"),
            text("post_transform", "NONE"),
        ],
        ..operator("TreeEnsembleRegressor", &["rows"], "score")
    }
}

/// `key` as a chain: 0 in the shape of `score`, and for each weight a column, widened, times the weight, added.
fn key(tree: &Tree, nodes: &mut Vec<NodeProto>, constants: &mut Vec<TensorProto>) {
    let weights = &tree.meta().key_weights;
    let sum = |added: usize| match added == weights.len() {
        true => "key".to_string(),
        false => format!("key_{added}"),
    };
    nodes.push(operator("Shape", &["score"], "shape"));
    let zero = TensorProto {
        double_data: vec![0.0],
        ..tensor("zero", DataType::Double)
    };
    nodes.push(NodeProto {
        attribute: vec![AttributeProto {
            t: Some(zero),
            ..attribute("value", AttributeType::Tensor)
        }],
        ..operator("ConstantOfShape", &["shape"], &sum(0))
    });
    for (added, own) in weights.iter().enumerate() {
        let name = |part: &str| format!("{part}_{added}");
        let (column, weight) = (name("column"), name("weight"));
        let (feature, wide, product) = (name("feature"), name("wide"), name("product"));
        constants.push(TensorProto {
            int64_data: vec![own.feature.into()],
            ..tensor(&column, DataType::Int64)
        });
        constants.push(TensorProto {
            double_data: vec![own.weight.into()],
            ..tensor(&weight, DataType::Double)
        });
        nodes.push(NodeProto {
            attribute: vec![int("axis", 1)],
            ..operator("Gather", &["rows", &column], &feature)
        });
        nodes.push(NodeProto {
            attribute: vec![int("to", DataType::Double as i64)],
            ..operator("Cast", &[&feature], &wide)
        });
        nodes.push(operator("Mul", &[&wide, &weight], &product));
        nodes.push(operator("Add", &[&sum(added), &product], &sum(added + 1)));
    }
}

fn operator(name: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        input: inputs.iter().map(|input| (*input).into()).collect(),
        output: vec![output.into()],
        name: Some(format!("{name} of {output}")),
        op_type: Some(name.into()),
        ..NodeProto::default()
    }
}

fn floats(name: &str, values: Vec<f32>) -> AttributeProto {
    AttributeProto {
        floats: values,
        ..attribute(name, AttributeType::Floats)
    }
}

fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto {
        s: Some(value.into()),
        ..attribute(name, AttributeType::String)
    }
}

/// A constant of one number in a list.
fn tensor(name: &str, kind: DataType) -> TensorProto {
    TensorProto {
        dims: vec![1],
        data_type: Some(kind.into()),
        name: Some(name.into()),
        ..TensorProto::default()
    }
}

/// A table of any number of rows.
fn value(name: &str, kind: DataType, num_columns: usize) -> ValueInfoProto {
    let lengths = [Length::Named("N".into()), Length::Known(num_columns as i64)];
    let dim = lengths.map(|length| DimensionProto { value: Some(length) });
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto {
            tensor_type: Some(TensorTypeProto {
                elem_type: Some(kind.into()),
                shape: Some(TensorShapeProto { dim: dim.into() }),
            }),
        }),
    }
}

/// Names of the columns of a row, in order: as many as the tree needs.
fn columns(tree: &Tree) -> Vec<&'static str> {
    let features = tree.schema().features[..tree.width()].iter();
    features.map(|feature| feature.name).collect()
}
