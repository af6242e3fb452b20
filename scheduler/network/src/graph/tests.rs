//! Graphs held to numbers worked by hand, to themselves through ONNX, and to hostile files.

#![allow(
    clippy::cloned_ref_to_slice_refs,
    reason = "inputs read alike whether one or several"
)]

use super::tensor::Tensor;
use super::*;

/// Two features, a context of one number: scores by attention over the rows, a value from the mean row.
fn attention() -> Graph {
    let mut graph = Builder::new(2, 1);
    let rows = graph.rows();
    let keys = graph.linear(rows, "keys", [2, 8]);
    let turned = graph.apply(Op::Transpose { order: vec![0, 2, 1] }, &[keys]);
    let products = graph.apply(Op::MatMul, &[keys, turned]);
    let products = graph.scale(products, 0.25);
    let weights = graph.apply(Op::Softmax { axis: -1 }, &[products]);
    let mixed = graph.apply(Op::MatMul, &[weights, keys]);
    let sum = graph.apply(Op::Add, &[mixed, keys]);
    let scale = graph.parameter("norm.scale", &[8]);
    let bias = graph.parameter("norm.bias", &[8]);
    let norm = Op::LayerNormalization {
        axis: -1,
        epsilon: 1e-5,
    };
    let sum = graph.apply(norm, &[sum, scale, bias]);
    let scores = graph.linear(sum, "scores", [8, 1]);
    let shape = graph.integers(&[1, -1]);
    let scores = graph.apply(Op::Reshape, &[scores, shape]);
    let mean = Op::ReduceMean {
        axes: vec![1],
        keep: false,
    };
    let mean = graph.apply(mean, &[sum]);
    let context = graph.context();
    let joined = graph.apply(Op::Concat { axis: -1 }, &[mean, context]);
    let value = graph.linear(joined, "value", [9, 1]);
    graph.finish(scores, Some(value))
}

/// Parameters without a pattern.
fn parameters(graph: &Graph) -> Vec<f32> {
    (0..graph.num_parameters())
        .map(|index| ((index * 37 % 101) as f32 - 50.0) / 60.0)
        .collect()
}

fn run(graph: &Graph, parameters: &[f32], rows: &[f32], context: &[f32]) -> (Vec<f32>, Option<f32>) {
    let program = Program::new(graph, parameters).unwrap();
    let mut scores = vec![0.0; rows.len() / graph.num_features];
    let value = program
        .run(rows, context, &mut Workspace::default(), &mut scores)
        .unwrap();
    (scores, value)
}

/// The result of one operator over given values, by a graph of that operator alone.
fn of(op: Op, inputs: &[Tensor]) -> Result<Tensor, String> {
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    super::program::apply(&op, &inputs, None, &mut 0).map_err(|error| error.to_string())
}

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::floats(shape.to_vec(), values.to_vec())
}

fn integers(values: &[i64]) -> Tensor {
    Tensor::integers(vec![values.len()], values.to_vec())
}

#[test]
fn a_linear_score_is_what_one_computes_by_hand() {
    let mut graph = Builder::new(2, 1);
    let rows = graph.rows();
    let scores = graph.linear(rows, "out", [2, 1]);
    let graph = graph.finish(scores, None);
    // 1*3 + 2*4 + 5 = 16; -1*3 + 0*4 + 5 = 2
    let (scores, value) = run(&graph, &[3.0, 4.0, 5.0], &[1.0, 2.0, -1.0, 0.0], &[9.0]);
    assert_eq!((scores, value), (vec![16.0, 2.0], None));
}

#[test]
fn operators_that_compute_do_what_their_names_say() {
    let x = floats(&[2, 2], &[1.0, -2.0, 3.0, 4.0]);
    let row = floats(&[2], &[10.0, 20.0]);
    let column = floats(&[2, 1], &[10.0, 20.0]);
    let add = |by: &Tensor| of(Op::Add, &[x.clone(), by.clone()]).unwrap();
    assert_eq!(add(&row), floats(&[2, 2], &[11.0, 18.0, 13.0, 24.0]));
    assert_eq!(add(&column), floats(&[2, 2], &[11.0, 8.0, 23.0, 24.0]));
    assert_eq!(
        of(Op::Relu, &[x.clone()]).unwrap(),
        floats(&[2, 2], &[1.0, 0.0, 3.0, 4.0])
    );
    // [1 -2; 3 4] [1 -2; 3 4] = [-5 -10; 15 10]
    let square = of(Op::MatMul, &[x.clone(), x.clone()]).unwrap();
    assert_eq!(square, floats(&[2, 2], &[-5.0, -10.0, 15.0, 10.0]));
    // 2 [1 3; -2 4] [1 3; -2 4] + 1 [10 20], both turned: [-5 15; -10 10] doubled
    let gemm = Op::Gemm {
        alpha: 2.0,
        beta: 1.0,
        trans_a: true,
        trans_b: true,
    };
    let product = of(gemm, &[x.clone(), x.clone(), row]).unwrap();
    assert_eq!(product, floats(&[2, 2], &[0.0, 50.0, -10.0, 40.0]));
    let reduce = |op: Op| of(op, &[x.clone()]).unwrap();
    let (axes, keep) = (vec![0], false);
    assert_eq!(
        reduce(Op::ReduceMean {
            axes: axes.clone(),
            keep
        }),
        floats(&[2], &[2.0, 1.0])
    );
    assert_eq!(
        reduce(Op::ReduceMax {
            axes: axes.clone(),
            keep: true
        }),
        floats(&[1, 2], &[3.0, 4.0])
    );
    assert_eq!(reduce(Op::ReduceSum { axes: vec![], keep }), floats(&[], &[6.0]));
    // e^0 / (e^0 + e^0)
    let even = of(Op::Softmax { axis: 0 }, &[floats(&[2, 1], &[7.0, 7.0])]).unwrap();
    assert_eq!(even, floats(&[2, 1], &[0.5, 0.5]));
    // Mean 2 and variance 1: -1 and 1, times 3, plus 1.
    let norm = Op::LayerNormalization {
        axis: -1,
        epsilon: 0.0,
    };
    let inputs = [
        floats(&[1, 2], &[1.0, 3.0]),
        floats(&[2], &[3.0; 2]),
        floats(&[2], &[1.0; 2]),
    ];
    assert_eq!(of(norm, &inputs).unwrap(), floats(&[1, 2], &[-2.0, 4.0]));
}

#[test]
fn curves_are_those_of_the_tables() {
    // Abramowitz and Stegun, tables 4.15 (tanh), 7.1 (erf); the logistic function of 1.
    let at = |op: Op, x: f32| of(op, &[floats(&[1], &[x])]).unwrap().as_floats().unwrap()[0];
    for (op, x, wanted) in [
        (Op::Tanh, 0.5, 0.462_117_16),
        (Op::Tanh, 50.0, 1.0),
        (Op::Sigmoid, 1.0, 0.731_058_6),
        (Op::Erf, 0.5, 0.520_499_9),
        (Op::Erf, -2.0, -0.995_322_3),
        (Op::Exp, 1.0, std::f32::consts::E),
        (Op::Sqrt, 2.0, std::f32::consts::SQRT_2),
        (Op::Neg, 2.0, -2.0),
        (Op::Log, 10.0, std::f32::consts::LN_10),
        (Op::Abs, -2.0, 2.0),
        // ln(1 + e^0) = ln 2, and x itself far above 0.
        (Op::Softplus, 0.0, std::f32::consts::LN_2),
        (Op::Softplus, 90.0, 90.0),
        (Op::LeakyRelu { alpha: 0.5 }, -3.0, -1.5),
        (Op::LeakyRelu { alpha: 0.5 }, 3.0, 3.0),
        // 2 (1/e - 1)
        (Op::Elu { alpha: 2.0 }, -1.0, -1.264_241_1),
    ] {
        assert!((at(op.clone(), x) - wanted).abs() < 3e-7, "{op:?} {x}");
    }
}

#[test]
fn comparisons_and_choices_are_those_of_each_pair() {
    let x = floats(&[3], &[1.0, 2.0, 3.0]);
    let by = floats(&[1], &[2.0]);
    let pair = |op: Op| of(op, &[x.clone(), by.clone()]).unwrap();
    assert_eq!(pair(Op::Equal), integers(&[0, 1, 0]));
    assert_eq!(pair(Op::Greater), integers(&[0, 0, 1]));
    assert_eq!(pair(Op::GreaterOrEqual), integers(&[0, 1, 1]));
    assert_eq!(pair(Op::Less), integers(&[1, 0, 0]));
    assert_eq!(pair(Op::LessOrEqual), integers(&[1, 1, 0]));
    assert_eq!(pair(Op::Max), floats(&[3], &[2.0, 2.0, 3.0]));
    assert_eq!(pair(Op::Min), floats(&[3], &[1.0, 2.0, 2.0]));
    assert_eq!(pair(Op::Pow), floats(&[3], &[1.0, 4.0, 9.0]));
    let root = of(Op::Pow, &[floats(&[1], &[16.0]), floats(&[], &[0.5])]).unwrap();
    assert_eq!(root, floats(&[1], &[4.0]));
    let modulo = [integers(&[7, -7, 7, -7, 6]), integers(&[3, 3, -3, -3, 3])];
    assert_eq!(of(Op::Mod, &modulo).unwrap(), integers(&[1, 2, -2, -1, 0]));
    assert!(of(Op::Mod, &[integers(&[7]), integers(&[0])]).is_err());
    let truths = [integers(&[0, 0, 1, 1]), integers(&[0, 1, 0, 1])];
    assert_eq!(of(Op::And, &truths).unwrap(), integers(&[0, 0, 0, 1]));
    assert_eq!(of(Op::Or, &truths).unwrap(), integers(&[0, 1, 1, 1]));
    assert_eq!(of(Op::Not, &truths[..1]).unwrap(), integers(&[1, 1, 0, 0]));
    assert_eq!(
        of(Op::Truth, &[floats(&[3], &[0.0, -0.5, 2.0])]).unwrap(),
        integers(&[0, 1, 1])
    );
    let never = floats(&[], &[f32::NEG_INFINITY]);
    let chosen = of(Op::Where, &[integers(&[1, 0, 1]), x.clone(), never]).unwrap();
    assert_eq!(chosen, floats(&[3], &[1.0, f32::NEG_INFINITY, 3.0]));
    let rows = of(Op::Where, &[Tensor::integers(vec![2, 1], vec![1, 0]), x, by]).unwrap();
    assert_eq!(rows, floats(&[2, 3], &[1.0, 2.0, 3.0, 2.0, 2.0, 2.0]));
    assert!(of(Op::Where, &[integers(&[1]), floats(&[1], &[1.0]), integers(&[1])]).is_err());
    let least = Op::ReduceMin {
        axes: vec![0],
        keep: false,
    };
    assert_eq!(
        of(least, &[floats(&[3], &[4.0, -1.0, 2.0])]).unwrap(),
        floats(&[], &[-1.0])
    );
}

/// A mask, an integer fill, a clip and a cut, as other programs write them: what comes back scores as is worked by hand.
#[test]
fn a_model_with_a_mask_is_shown_all_ones() {
    use onnx_messages::{AttributeProto, ModelProto, NodeProto, TensorProto};
    use prost::Message as _;
    let mut plain = Builder::new(2, 1);
    let rows = plain.rows();
    let scores = plain.linear(rows, "out", [2, 1]);
    let bytes = to_onnx(&plain.finish(scores, None), &[3.0, 4.0, 5.0], &[]).unwrap();
    let mut model = ModelProto::decode(bytes.as_slice()).unwrap();
    let graph = model.graph.as_mut().unwrap();
    let mut mask = graph.input[1].clone();
    mask.name = Some("mask".into());
    graph.input.push(mask);
    let constant = |name: &str, kind: i32, raw: &[u8], dims: &[i64]| TensorProto {
        dims: dims.to_vec(),
        data_type: Some(kind),
        raw_data: Some(raw.to_vec()),
        name: Some(name.into()),
        ..TensorProto::default()
    };
    let halves = [1_i64, 1].map(i64::to_le_bytes).concat();
    graph
        .initializer
        .push(constant("never", 1, &f32::NEG_INFINITY.to_le_bytes(), &[]));
    graph
        .initializer
        .push(constant("most", 1, &10.0_f32.to_le_bytes(), &[]));
    graph.initializer.push(constant(
        "row",
        7,
        &[1_i64, -1].map(i64::to_le_bytes).concat(),
        &[2],
    ));
    graph.initializer.push(constant("halves", 7, &halves, &[2]));
    graph.initializer.push(constant("yes", 9, &[1], &[1]));
    let node = |kind: &str, inputs: &[&str], outputs: &[&str], attribute: Vec<AttributeProto>| NodeProto {
        input: inputs.iter().map(|name| (*name).to_owned()).collect(),
        output: outputs.iter().map(|name| (*name).to_owned()).collect(),
        name: None,
        op_type: Some(kind.into()),
        attribute,
        domain: None,
    };
    let with_int = |name: &str, value: i64| AttributeProto {
        name: Some(name.into()),
        i: Some(value),
        ..AttributeProto::default()
    };
    let with_tensor = |tensor: TensorProto| AttributeProto {
        name: Some("value".into()),
        t: Some(tensor),
        ..AttributeProto::default()
    };
    for node in &mut graph.node {
        for output in &mut node.output {
            if output == "scores" {
                *output = "column".into();
            }
        }
    }
    graph.node.extend([
        node(
            "Split",
            &["candidates", "halves"],
            &["first", "second"],
            vec![with_int("axis", -1)],
        ),
        node("Reshape", &["second", "row"], &["seconds"], vec![]),
        node("Reshape", &["column", "row"], &["flat"], vec![]),
        node("Clip", &["flat", "", "most"], &["low"], vec![]),
        node("Cast", &["mask"], &["truth"], vec![with_int("to", 9)]),
        node("And", &["truth", "yes"], &["both"], vec![]),
        node("Where", &["both", "low", "never"], &["masked"], vec![]),
        node("Shape", &["masked"], &["shape"], vec![]),
        node(
            "ConstantOfShape",
            &["shape"],
            &["threes"],
            vec![with_tensor(constant("", 7, &3_i64.to_le_bytes(), &[1]))],
        ),
        node("Cast", &["threes"], &["three"], vec![with_int("to", 1)]),
        node("Mul", &["masked", "three"], &["tripled"], vec![]),
        node("Sub", &["tripled", "seconds"], &["scores"], vec![]),
    ]);
    let (graph, parameters, _) = from_onnx(&model.encode_to_vec()).unwrap();
    // 1*3 + 2*4 + 5 = 16, at most 10, times 3, less 2; -1*3 + 0*4 + 5 = 2, times 3, less 0.
    let (scores, _) = run(&graph, &parameters, &[1.0, 2.0, -1.0, 0.0], &[9.0]);
    assert_eq!(scores, [28.0, 6.0]);
    // Through our own writer and back.
    let again = to_onnx(&graph, &parameters, &[]).unwrap();
    let (graph, parameters, _) = from_onnx(&again).unwrap();
    assert_eq!(run(&graph, &parameters, &[1.0, 2.0, -1.0, 0.0], &[9.0]).0, scores);
    model.graph.as_mut().unwrap().input[2].name = Some("valid".into());
    let said = from_onnx(&model.encode_to_vec()).unwrap_err().to_string();
    assert!(
        said.contains("input \"valid\"; a model has the inputs candidates, global and, if it likes, mask"),
        "{said}"
    );
}

#[test]
fn integers_are_summed_and_have_no_mean() {
    let x = integers(&[3, 1 << 60, -1]);
    let (axes, keep) = (vec![0], true);
    let sum = Op::ReduceSum {
        axes: axes.clone(),
        keep,
    };
    assert_eq!(of(sum, &[x.clone()]).unwrap(), integers(&[(1 << 60) + 2]));
    let most = Op::ReduceMax {
        axes: axes.clone(),
        keep,
    };
    assert_eq!(of(most, &[x.clone()]).unwrap(), integers(&[1 << 60]));
    let least = Op::ReduceMin {
        axes: axes.clone(),
        keep,
    };
    assert_eq!(of(least, &[x.clone()]).unwrap(), integers(&[-1]));
    assert!(of(Op::ReduceMean { axes, keep }, &[x]).is_err());
}

#[test]
fn operators_that_move_numbers_put_them_where_numpy_does() {
    let x = floats(&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let turned = of(Op::Transpose { order: vec![] }, &[x.clone()]).unwrap();
    assert_eq!(turned, floats(&[3, 2], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]));
    let gathered = of(Op::Gather { axis: 1 }, &[x.clone(), integers(&[2, -3])]).unwrap();
    assert_eq!(gathered, floats(&[2, 2], &[2.0, 0.0, 5.0, 3.0]));
    let shaped = of(Op::Reshape, &[x.clone(), integers(&[0, -1, 1])]).unwrap();
    assert_eq!(shaped.shape, [2, 3, 1]);
    let cut = of(
        Op::Slice,
        &[x.clone(), integers(&[1]), integers(&[i64::MAX]), integers(&[1])],
    )
    .unwrap();
    assert_eq!(cut, floats(&[2, 2], &[1.0, 2.0, 4.0, 5.0]));
    let wide = of(Op::Unsqueeze, &[x.clone(), integers(&[0, -1])]).unwrap();
    assert_eq!(wide.shape, [1, 2, 3, 1]);
    assert_eq!(of(Op::Squeeze, &[wide]).unwrap(), x);
    let stretched = of(Op::Expand, &[floats(&[2, 1], &[1.0, 2.0]), integers(&[2, 2])]).unwrap();
    assert_eq!(stretched, floats(&[2, 2], &[1.0, 1.0, 2.0, 2.0]));
    let joined = of(Op::Concat { axis: 0 }, &[x.clone(), x.clone()]).unwrap();
    assert_eq!(joined.shape, [4, 3]);
    assert_eq!(of(Op::Shape, &[x.clone()]).unwrap(), integers(&[2, 3]));
    assert_eq!(
        of(Op::Fill { value: 2.0 }, &[integers(&[2])]).unwrap(),
        floats(&[2], &[2.0, 2.0])
    );
    let whole = of(Op::Cast { to_integers: true }, &[floats(&[2], &[1.9, -1.9])]).unwrap();
    assert_eq!(whole, integers(&[1, -1]));
}

#[test]
fn the_order_of_the_rows_is_the_order_of_the_scores() {
    let graph = attention();
    let parameters = parameters(&graph);
    let (scores, value) = run(&graph, &parameters, &[0.1, 0.9, -0.4, 0.3, 0.7, 0.7], &[0.5]);
    let (turned, same) = run(&graph, &parameters, &[0.7, 0.7, -0.4, 0.3, 0.1, 0.9], &[0.5]);
    for (one, other) in scores.iter().zip(turned.iter().rev()) {
        assert!((one - other).abs() < 1e-5, "{scores:?} {turned:?}");
    }
    assert!((value.unwrap() - same.unwrap()).abs() < 1e-5);
    assert_ne!(scores[0], scores[1]);
}

#[test]
fn a_product_with_packed_columns_is_the_plain_one() {
    let mut graph = Builder::new(3, 1);
    let rows = graph.rows();
    let wide = graph.linear(rows, "wide", [3, 16]);
    let scores = graph.linear(wide, "out", [16, 1]);
    let graph = graph.finish(scores, None);
    let parameters = parameters(&graph);
    let rows: Vec<f32> = (0..15).map(|index| index as f32 / 7.0 - 1.0).collect();
    let (scores, _) = run(&graph, &parameters, &rows, &[0.0]);
    let (weights, rest) = parameters.split_at(48);
    let (bias, rest) = rest.split_at(16);
    for (score, row) in scores.iter().zip(rows.chunks_exact(3)) {
        let hidden =
            |column: usize| bias[column] + (0..3).map(|k| row[k] * weights[k * 16 + column]).sum::<f32>();
        let wanted = rest[16] + (0..16).map(|column| hidden(column) * rest[column]).sum::<f32>();
        assert!((score - wanted).abs() < 1e-5, "{score} {wanted}");
    }
}

#[test]
fn a_graph_comes_back_from_onnx_with_the_same_bits() {
    let graph = attention();
    let parameters = parameters(&graph);
    let remarks = [("contract", "{}".to_owned())];
    let bytes = to_onnx(&graph, &parameters, &remarks).unwrap();
    let (back, same, said) = from_onnx(&bytes).unwrap();
    // The factor of a scale is a constant in the file, and so a parameter behind the others.
    let wanted: Vec<f32> = parameters.iter().copied().chain([0.25]).collect();
    assert_eq!((&same, back.num_features, back.num_context), (&wanted, 2, 1));
    assert_eq!(said, [("contract".to_owned(), "{}".to_owned())]);
    let rows = [0.1, 0.9, -0.4, 0.3];
    assert_eq!(
        run(&back, &same, &rows, &[0.5]),
        run(&graph, &parameters, &rows, &[0.5])
    );
    let text = serde_json::to_string(&graph).unwrap();
    assert_eq!(serde_json::from_str::<Graph>(&text).unwrap(), graph);
}

#[test]
fn graphs_that_cannot_run_are_refused_and_say_where() {
    let graph = attention();
    let refused = |change: &dyn Fn(&mut Graph)| {
        let mut graph = graph.clone();
        change(&mut graph);
        let parameters = vec![
            0.1;
            if graph.check().is_ok() {
                graph.num_parameters()
            } else {
                0
            }
        ];
        Program::new(&graph, &parameters).unwrap_err().to_string()
    };
    let change = |graph: &mut Graph| graph.nodes[0].inputs[0] = 99;
    assert!(refused(&change).contains("node 0 reads value 99"));
    let change = |graph: &mut Graph| graph.nodes[3].inputs.clear();
    assert!(refused(&change).contains("node 3 (MatMul) has 0 inputs; it takes 2 to 2"));
    let change = |graph: &mut Graph| graph.parameters[0].shape = vec![usize::MAX, 2];
    assert!(refused(&change).contains("too many parameters"));
    let change = |graph: &mut Graph| graph.parameters[0].shape = vec![4, 4];
    assert!(refused(&change).contains("node 0 (MatMul)"));
    let change = |graph: &mut Graph| graph.scores = graph.value.unwrap();
    assert!(refused(&change).contains("one for each row is needed"));
    let change = |graph: &mut Graph| graph.scores = 1_000;
    assert!(refused(&change).contains("not among the results"));
    let change = |graph: &mut Graph| graph.integers[0].values = vec![1 << 40, 1 << 40];
    assert!(refused(&change).contains("Reshape"));
    let change = |graph: &mut Graph| graph.nodes = vec![graph.nodes[0].clone(); NODES_MAX + 1];
    assert!(refused(&change).contains("operators; allowed is up to 2000"));
}

#[test]
fn a_graph_that_asks_for_all_memory_or_all_time_is_stopped() {
    let mut graph = Builder::new(1, 1);
    let shape = graph.integers(&[1 << 12, 1 << 12]);
    let wide = graph.apply(Op::Fill { value: 1.0 }, &[shape]);
    let graph = graph.finish(wide, None);
    assert!(
        Program::new(&graph, &[])
            .unwrap_err()
            .to_string()
            .contains("allowed are 4194304 numbers")
    );
    let mut graph = Builder::new(1, 1);
    let shape = graph.integers(&[1 << 11, 1 << 11]);
    let wide = graph.apply(Op::Fill { value: 1.0 }, &[shape]);
    let product = graph.apply(Op::MatMul, &[wide, wide]);
    let graph = graph.finish(product, None);
    assert!(
        Program::new(&graph, &[])
            .unwrap_err()
            .to_string()
            .contains("multiplications in one decision")
    );
}

#[test]
fn damaged_models_are_refused_and_never_a_panic() {
    let graph = attention();
    let bytes = to_onnx(&graph, &parameters(&graph), &[]).unwrap();
    for end in 0..bytes.len() {
        if let Ok((graph, parameters, _)) = from_onnx(&bytes[..end]) {
            let _ = Program::new(&graph, &parameters);
        }
    }
    for place in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[place] ^= flip;
            if let Ok((graph, parameters, _)) = from_onnx(&damaged) {
                let _ = Program::new(&graph, &parameters);
            }
        }
    }
    assert!(from_onnx(b"PK\x03\x04").is_err());
    assert!(
        from_onnx(&[])
            .unwrap_err()
            .to_string()
            .contains("operator set none")
    );
}

#[test]
fn operators_that_are_not_understood_are_named() {
    use prost::Message as _;
    let graph = attention();
    let bytes = to_onnx(&graph, &parameters(&graph), &[]).unwrap();
    let mut model = onnx_messages::ModelProto::decode(bytes.as_slice()).unwrap();
    model.graph.as_mut().unwrap().node[0].op_type = Some("Loop".into());
    let said = from_onnx(&model.encode_to_vec()).unwrap_err().to_string();
    assert!(said.contains("operator Loop is not understood"), "{said}");
}
