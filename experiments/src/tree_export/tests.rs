use std::collections::{BTreeMap, HashMap};

use pleach_scheduler::key_weight::{KeyWeight, weighted_sum};
use pleach_scheduler::policy::{Needs, TieKey};
use pleach_scheduler::tree::{Node, TreeMeta};
use prost::Message as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::*;
use pleach_network::graph::onnx_messages::{AttributeProto, AttributeType, DataType, ModelProto, NodeProto};
use pleach_scheduler::features::{DECISION_1, FeatureSchema};

/// Rows of each tree.
const NUM_ROWS: usize = 500;

fn leaf(id: u32, score: f32) -> Node {
    let (samples, weight) = (10 + u64::from(id), 1.5 + f64::from(id));
    Node::Leaf {
        id,
        score,
        samples,
        weight,
    }
}

fn tree_of(nodes: &[Node], key: &[(&str, f32)]) -> Tree {
    let key_weights = key.iter().map(|(name, weight)| KeyWeight {
        feature: FeatureSchema::current().joined_index(name).unwrap() as u16,
        weight: *weight,
    });
    let meta = TreeMeta {
        name: "test".into(),
        tie_key: TieKey::ShortestEstimate,
        key_weights: key_weights.collect(),
        needs: Needs::full(),
        estimates: Vec::new(),
        trained_by: BTreeMap::new(),
    };
    Tree::new(meta, nodes).unwrap()
}

/// Repeatedly a leaf becomes a split, anywhere in the range of any feature.
fn random_tree(num_splits: u32, key: &[(&str, f32)], seed: u64) -> Tree {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut nodes = vec![leaf(0, rng.random_range(-2.0..2.0))];
    for number in 0..num_splits {
        let is_leaf = |place: &usize| matches!(nodes[*place], Node::Leaf { .. });
        let leaves: Vec<usize> = (0..nodes.len()).filter(is_leaf).collect();
        let place = leaves[rng.random_range(0..leaves.len())];
        let index = rng.random_range(0..DECISION_1.len);
        let feature = FeatureSchema::current().joined(index).unwrap();
        let (min, max) = (feature.encode(feature.min), feature.encode(feature.max));
        let old = std::mem::replace(
            &mut nodes[place],
            Node::Split {
                feature: index as u16,
                threshold: min + (max - min) * rng.random_range(0.0..0.999_f32),
                left: 2 * number + 1,
                right: 2 * number + 2,
            },
        );
        nodes.extend([old, leaf(number + 1, rng.random_range(-2.0..2.0))]);
    }
    tree_of(&nodes, key)
}

fn trees() -> Vec<Tree> {
    let key = [("speed_ratio", 0.22), ("num_left", -0.73), ("num_gpus", 0.009)];
    let mut trees = vec![random_tree(0, &[], 1), random_tree(0, &key, 2)];
    for seed in 3..15 {
        trees.push(random_tree(7 * seed as u32, &key[..seed as usize % 4], seed));
    }
    trees
}

/// Score and key as the scheduler has them.
fn answer(tree: &Tree, row: &[f32]) -> (f32, f64) {
    let Node::Leaf { score, .. } = tree.nodes()[tree.walk(row)] else {
        panic!("a walk ended in a split");
    };
    (score, weighted_sum(&tree.meta().key_weights, row))
}

fn file(form: Form, tree: &Tree, name: &str) -> Vec<u8> {
    let (found, content) = form.file(tree);
    assert_eq!(found, name);
    content
}

fn decoded(tree: &Tree) -> ModelProto {
    ModelProto::decode(&file(Form::Onnx, tree, "tree.onnx")[..]).unwrap()
}

/// An attribute, which says itself to be of this kind.
fn attribute<'a>(node: &'a NodeProto, name: &str, kind: AttributeType) -> &'a AttributeProto {
    let found = node.attribute.iter().find(|found| found.name() == name);
    let found = found.unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(found.r#type(), kind, "{name}");
    found
}

/// One tree by the words of the operator's description: entries are found by their ids, never by their places.
fn ensemble(node: &NodeProto, row: &[f32]) -> f32 {
    let ints = |name: &str| &attribute(node, name, AttributeType::Ints).ints;
    let text = |name: &str| attribute(node, name, AttributeType::String).s().to_vec();
    assert_eq!(
        (text("aggregate_function"), text("post_transform")),
        (b"SUM".to_vec(), b"NONE".to_vec())
    );
    assert_eq!(attribute(node, "n_targets", AttributeType::Int).i(), 1);
    let modes = &attribute(node, "nodes_modes", AttributeType::Strings).strings;
    let values = &attribute(node, "nodes_values", AttributeType::Floats).floats;
    let entry = |id: i64| {
        let mut found = (0..modes.len())
            .filter(|entry| ints("nodes_treeids")[*entry] == 0 && ints("nodes_nodeids")[*entry] == id);
        let entry = found.next().unwrap();
        assert_eq!(found.next(), None, "node {id} is there once");
        entry
    };
    let mut at = entry(0);
    while modes[at] != b"LEAF" {
        assert_eq!(modes[at], b"BRANCH_LEQ");
        assert_eq!(ints("nodes_missing_value_tracks_true")[at], 0);
        let holds = row[ints("nodes_featureids")[at] as usize] <= values[at];
        let side = if holds {
            "nodes_truenodeids"
        } else {
            "nodes_falsenodeids"
        };
        at = entry(ints(side)[at]);
    }
    let id = ints("nodes_nodeids")[at];
    let weights = &attribute(node, "target_weights", AttributeType::Floats).floats;
    let of_leaf = (0..weights.len()).filter(|target| {
        assert_eq!(
            (ints("target_treeids")[*target], ints("target_ids")[*target]),
            (0, 0)
        );
        ints("target_nodeids")[*target] == id
    });
    of_leaf.fold(0.0, |sum, target| sum + weights[target])
}

/// Both outputs of a graph for one row: every value is a number, or the row itself.
fn interpret(model: &ModelProto, row: &[f32]) -> (f32, f64) {
    let graph = model.graph.as_ref().unwrap();
    let mut values: HashMap<&str, f64> = HashMap::new();
    for constant in &graph.initializer {
        assert_eq!(constant.dims, [1]);
        let value = match constant.data_type() {
            DataType::Int64 => constant.int64_data[0] as f64,
            DataType::Double => constant.double_data[0],
            other => panic!("{other:?}"),
        };
        values.insert(constant.name(), value);
    }
    for node in &graph.node {
        let input = |place: usize| values[node.input[place].as_str()];
        let value = match node.op_type() {
            "TreeEnsembleRegressor" => {
                assert_eq!((node.domain(), node.input[0].as_str()), (onnx::ML_DOMAIN, "rows"));
                ensemble(node, row).into()
            }
            "Shape" => 1.0,
            "ConstantOfShape" => {
                let value = attribute(node, "value", AttributeType::Tensor).t.as_ref();
                value.unwrap().double_data[0]
            }
            "Gather" => {
                assert_eq!(attribute(node, "axis", AttributeType::Int).i(), 1);
                row[input(1) as usize].into()
            }
            "Cast" => {
                assert_eq!(
                    attribute(node, "to", AttributeType::Int).i(),
                    DataType::Double as i64
                );
                input(0)
            }
            "Mul" => input(0) * input(1),
            "Add" => input(0) + input(1),
            other => panic!("{other}"),
        };
        assert_eq!(values.insert(&node.output[0], value), None, "written once");
    }
    (values["score"] as f32, values["key"])
}

#[test]
fn an_onnx_graph_read_by_its_words_answers_bit_for_bit_as_the_tree() {
    let mut num_rows = 0;
    for tree in trees() {
        let model = decoded(&tree);
        for row in tree.golden_rows(NUM_ROWS) {
            let (found, expected) = (interpret(&model, &row), answer(&tree, &row));
            assert_eq!(
                (found.0.to_bits(), found.1.to_bits()),
                (expected.0.to_bits(), expected.1.to_bits()),
                "{found:?} for {expected:?}"
            );
            num_rows += 1;
        }
        let nothing = vec![f32::NAN; DECISION_1.len];
        assert_eq!(interpret(&model, &nothing).0, answer(&tree, &nothing).0);
    }
    assert_eq!(num_rows, 14 * NUM_ROWS);
}

#[test]
fn an_onnx_file_says_its_versions_shapes_and_columns() {
    let tree = tree_of(
        &[
            Node::Split {
                feature: 4,
                threshold: 0.25,
                left: 1,
                right: 2,
            },
            leaf(0, 1.5),
            leaf(1, -0.5),
        ],
        &[("num_left", -0.5)],
    );
    let model = decoded(&tree);
    let opsets: Vec<_> = model
        .opset_import
        .iter()
        .map(|set| (set.domain(), set.version()))
        .collect();
    assert_eq!(
        (model.ir_version(), &opsets[..]),
        (8, &[("", 17), ("ai.onnx.ml", 3)][..])
    );
    let remarks: BTreeMap<&str, &str> = model
        .metadata_props
        .iter()
        .map(|own| (own.key(), own.value()))
        .collect();
    assert_eq!(
        remarks["features"].split(',').collect::<Vec<_>>(),
        FeatureSchema::current().features[..DECISION_1.len]
            .iter()
            .map(|feature| feature.name)
            .collect::<Vec<_>>()
    );
    assert_eq!(remarks["features_hash"], FeatureSchema::current().hash());
    assert_eq!(remarks["tie_key"], "shortest-estimate");
    let graph = model.graph.as_ref().unwrap();
    let kinds: Vec<String> = graph
        .input
        .iter()
        .chain(&graph.output)
        .map(|value| {
            let kind = value.r#type.as_ref().unwrap().tensor_type.as_ref().unwrap();
            let lengths = kind
                .shape
                .as_ref()
                .unwrap()
                .dim
                .iter()
                .map(|dim| format!("{:?}", dim.value.as_ref().unwrap()));
            format!(
                "{} {:?} {}",
                value.name(),
                kind.elem_type(),
                lengths.collect::<Vec<_>>().join(" x ")
            )
        })
        .collect();
    assert_eq!(
        kinds,
        [
            &format!("rows Float Named(\"N\") x Known({})", DECISION_1.len)[..],
            "score Float Named(\"N\") x Known(1)",
            "key Double Named(\"N\") x Known(1)",
        ]
    );
    let steps: Vec<String> = graph
        .node
        .iter()
        .map(|node| {
            format!(
                "{} = {}({})",
                node.output[0],
                node.op_type(),
                node.input.join(", ")
            )
        })
        .collect();
    assert_eq!(
        steps,
        [
            "score = TreeEnsembleRegressor(rows)",
            "shape = Shape(score)",
            "key_0 = ConstantOfShape(shape)",
            "feature_0 = Gather(rows, column_0)",
            "wide_0 = Cast(feature_0)",
            "product_0 = Mul(wide_0, weight_0)",
            "key = Add(key_0, product_0)",
        ]
    );
    assert_eq!(
        file(Form::Onnx, &tree, "tree.onnx"),
        file(Form::Onnx, &tree, "tree.onnx")
    );
}

#[test]
fn every_form_has_a_name_and_files_of_its_own() {
    let tree = random_tree(3, &[], 1);
    let mut names: Vec<&str> = Form::all().map(Form::name).collect();
    let mut files: Vec<&str> = Form::all().map(|form| form.file(&tree).0).collect();
    let (num_names, num_files) = (names.len(), files.len());
    assert_eq!(
        (num_names, num_files),
        (Export::ALL.len() + 1, Export::ALL.len() + 1)
    );
    names.sort_unstable();
    names.dedup();
    files.sort_unstable();
    files.dedup();
    assert_eq!((names.len(), files.len()), (num_names, num_files));
}
