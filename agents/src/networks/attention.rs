//! Attention over the candidates: each one sees all others before it is scored. The example of an architecture of one's own.
//!
//! `network.hidden` is the width, `network.heads` the number of layers of attention (at least 1).

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::activation::{relu, softmax};
use burn::tensor::backend::Backend;
use pleach_env::Spaces;
use pleach_network::NetworkConfig;
use pleach_network::graph::{Builder, Graph, Op};

use super::architecture::{Architecture, RowNetwork, Rows, Scored, linear};

#[derive(Module, Debug)]
pub struct Layer<B: Backend> {
    query: Linear<B>,
    key: Linear<B>,
    mixed: Linear<B>,
}

/// The module.
#[derive(Module, Debug)]
pub struct Attention<B: Backend> {
    row: Linear<B>,
    context: Linear<B>,
    layers: Vec<Layer<B>>,
    score: Linear<B>,
    value: Linear<B>,
}

pub(super) struct Family;

impl Architecture for Family {
    type On<B: Backend> = Attention<B>;

    fn init<B: Backend>(config: NetworkConfig, spaces: Spaces, device: &B::Device) -> Attention<B> {
        let w = config.hidden;
        let linear = |inputs, outputs| linear(inputs, outputs, device);
        let layer = |_| Layer {
            query: linear(w, w),
            key: linear(w, w),
            mixed: linear(w, w),
        };
        Attention {
            row: linear(spaces.num_features, w),
            context: linear(spaces.num_global, w),
            layers: (0..config.heads.max(1)).map(layer).collect(),
            score: linear(w, 1),
            value: linear(w, 1),
        }
    }
}

impl<B: Backend> RowNetwork<B> for Attention<B> {
    fn forward(&self, Rows { rows, here, context }: Rows<B>) -> Scored<B> {
        let [w, _] = self.score.weight.dims();
        let mut x = relu(self.row.forward(rows) + self.context.forward(context).unsqueeze_dim(1));
        let away = (here.clone() - 1.0) * 1e9;
        for layer in &self.layers {
            let (query, key) = (layer.query.forward(x.clone()), layer.key.forward(x.clone()));
            let weights = query.matmul(key.swap_dims(1, 2)) / (w as f32).sqrt();
            let weights = softmax(weights + away.clone().unsqueeze_dim(1), 2);
            x = x.clone() + relu(layer.mixed.forward(weights.matmul(x)));
        }
        let here = here.unsqueeze_dim::<3>(2);
        let mean = (x.clone() * here.clone()).sum_dim(1) / here.sum_dim(1);
        Scored {
            scores: self.score.forward(x).squeeze_dim(2),
            value: self.value.forward(mean).squeeze_dim(1),
        }
    }
}

/// The same as operators, in the order of the module's parameters.
pub(super) fn operators(config: NetworkConfig, spaces: Spaces) -> Graph {
    let (w, f, g) = (config.hidden, spaces.num_features, spaces.num_global);
    let mut graph = Builder::new(f, g);
    let (rows, context) = (graph.rows(), graph.context());
    let rows = graph.linear(rows, "row", [f, w]);
    let context = graph.linear(context, "context", [g, w]);
    let sum = graph.apply(Op::Add, &[rows, context]);
    let mut x = graph.relu(sum);
    for layer in 0..config.heads.max(1) {
        let query = graph.linear(x, &format!("{layer}.query"), [w, w]);
        let key = graph.linear(x, &format!("{layer}.key"), [w, w]);
        let turned = graph.apply(Op::Transpose { order: vec![0, 2, 1] }, &[key]);
        let products = graph.apply(Op::MatMul, &[query, turned]);
        let products = graph.scale(products, 1.0 / (w as f32).sqrt());
        let weights = graph.apply(Op::Softmax { axis: -1 }, &[products]);
        let mean = graph.apply(Op::MatMul, &[weights, x]);
        let mixed = graph.linear(mean, &format!("{layer}.mixed"), [w, w]);
        let mixed = graph.relu(mixed);
        x = graph.apply(Op::Add, &[x, mixed]);
    }
    let scores = graph.linear(x, "score", [w, 1]);
    let mean = graph.apply(
        Op::ReduceMean {
            axes: vec![1],
            keep: false,
        },
        &[x],
    );
    let value = graph.linear(mean, "value.out", [w, 1]);
    graph.finish(scores, Some(value))
}
