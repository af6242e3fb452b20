//! The built-in network as operators: what other programs read of it. Here it runs by its own code, which is faster.

use super::{Builder, Graph, Op, Value};
use crate::parameters::NetworkConfig;

/// The operators of the set network over rows of F features and a context of G numbers, with parameters in
/// [`Layout`](crate::Layout)'s order.
#[must_use]
pub fn set_operators(config: NetworkConfig, num_global: usize, num_features: usize) -> Graph {
    let (h, k, a) = (config.hidden, config.context, config.heads);
    let mut graph = Builder::new(num_features, num_global);
    let (rows, global) = (graph.rows(), graph.context());
    let first = layer(&mut graph, rows, "encoder.0", [num_features, h]);
    let codes = layer(&mut graph, first, "encoder.1", [h, h]);
    let queries = (a > 0).then(|| graph.parameter("attention.query.weight", &[h, a]));
    let pooled = pool(&mut graph, codes, queries, (h, a));
    let joined: Vec<Value> = pooled.into_iter().chain([global]).collect();
    let joined = graph.apply(Op::Concat { axis: -1 }, &joined);
    let outer = layer(&mut graph, joined, "context.0", [(2 + a) * h + num_global, k]);
    let context = layer(&mut graph, outer, "context.1", [k, k]);
    let own = graph.parameter("pointer.candidate.weight", &[h, h]);
    let own = graph.apply(Op::MatMul, &[codes, own]);
    let shared = graph.linear(context, "pointer.context", [k, h]);
    let hidden = graph.apply(Op::Add, &[own, shared]);
    let hidden = graph.relu(hidden);
    let out = graph.parameter("pointer.out.weight", &[h, 1]);
    let scores = graph.apply(Op::MatMul, &[hidden, out]);
    let flat = graph.integers(&[1, -1]);
    let scores = graph.apply(Op::Reshape, &[scores, flat]);
    let value = layer(&mut graph, context, "value.0", [k, k]);
    let value = graph.linear(value, "value.out", [k, 1]);
    graph.finish(scores, Some(value))
}

/// A linear layer through a rectifier.
fn layer(graph: &mut Builder, x: Value, name: &str, shape: [usize; 2]) -> Value {
    let x = graph.linear(x, name, shape);
    graph.relu(x)
}

/// Mean and maximum of the codes, and what each query attends to.
fn pool(graph: &mut Builder, codes: Value, queries: Option<Value>, (h, a): (usize, usize)) -> Vec<Value> {
    let (axes, keep) = (vec![1], false);
    let mean = graph.apply(
        Op::ReduceMean {
            axes: axes.clone(),
            keep,
        },
        &[codes],
    );
    let mut pooled = vec![mean, graph.apply(Op::ReduceMax { axes, keep }, &[codes])];
    if let Some(queries) = queries {
        let scores = graph.apply(Op::MatMul, &[codes, queries]);
        let scores = graph.scale(scores, 1.0 / (h as f32).sqrt());
        let weights = graph.apply(Op::Softmax { axis: 1 }, &[scores]);
        let turned = graph.apply(Op::Transpose { order: vec![0, 2, 1] }, &[weights]);
        let means = graph.apply(Op::MatMul, &[turned, codes]);
        let flat = graph.integers(&[1, (a * h) as i64]);
        pooled.push(graph.apply(Op::Reshape, &[means, flat]));
    }
    pooled
}
