//! The built-in network as a module: the same function as `pleach_network`'s, which is plain Rust for the cores of a CPU.
//!
//! Devices learn with it, and the tests hold the plain forward pass and the plain gradient to it. Its fields are in the order of
//! [`Layout`](pleach_network::Layout)'s arrays.

use burn::module::{Module, Param};
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use burn::tensor::backend::Backend;
use pleach_env::Spaces;
use pleach_network::NetworkConfig;

use super::architecture::{Architecture, RowNetwork, Rows, Scored, linear};

/// Added to the scores of padding before a softmax.
const FAR_BELOW: f32 = -1e9;

/// The module. H is `hidden`, K is `context`, A is `heads`.
#[derive(Module, Debug)]
pub struct SetModule<B: Backend> {
    encoder_0: Linear<B>,
    encoder_1: Linear<B>,
    /// `[H, A]`; none where A = 0.
    queries: Option<Param<Tensor<B, 2>>>,
    context_0: Linear<B>,
    context_1: Linear<B>,
    pointer_candidate: Linear<B>,
    pointer_context: Linear<B>,
    pointer_out: Linear<B>,
    value_0: Linear<B>,
    value_out: Linear<B>,
}

pub(super) struct SetNetwork;

impl Architecture for SetNetwork {
    type On<B: Backend> = SetModule<B>;

    fn init<B: Backend>(config: NetworkConfig, spaces: Spaces, device: &B::Device) -> SetModule<B> {
        let (h, k, a) = (config.hidden, config.context, config.heads);
        let linear = |inputs, outputs| linear(inputs, outputs, device);
        let plain = |inputs, outputs| {
            let config = LinearConfig::new(inputs, outputs).with_bias(false);
            config.with_initializer(Initializer::Zeros).init(device)
        };
        SetModule {
            encoder_0: linear(spaces.num_features, h),
            encoder_1: linear(h, h),
            queries: (a > 0).then(|| Param::from_tensor(Tensor::zeros([h, a], device))),
            context_0: linear((2 + a) * h + spaces.num_global, k),
            context_1: linear(k, k),
            pointer_candidate: plain(h, h),
            pointer_context: linear(k, h),
            pointer_out: plain(h, 1),
            value_0: linear(k, k),
            value_out: linear(k, 1),
        }
    }
}

impl<B: Backend> RowNetwork<B> for SetModule<B> {
    fn forward(&self, Rows { rows, here, context }: Rows<B>) -> Scored<B> {
        let encoded = relu(self.encoder_1.forward(relu(self.encoder_0.forward(rows))));
        let mut pooled = pool(encoded.clone(), here, self.queries.as_ref().map(Param::val));
        pooled.push(context);
        let context = relu(self.context_0.forward(Tensor::cat(pooled, 1)));
        let context = relu(self.context_1.forward(context));
        let shared = self.pointer_context.forward(context.clone()).unsqueeze_dim(1);
        let hidden = relu(self.pointer_candidate.forward(encoded) + shared);
        let value = relu(self.value_0.forward(context));
        Scored {
            scores: self.pointer_out.forward(hidden).squeeze_dim(2),
            value: self.value_out.forward(value),
        }
    }
}

/// Mean and maximum over the candidates of each decision, and what each query attends to. `encoded` is `[D, C, H]`, never below
/// zero; `here` is `[D, C]`.
fn pool<B: Backend>(
    encoded: Tensor<B, 3>,
    here: Tensor<B, 2>,
    queries: Option<Tensor<B, 2>>,
) -> Vec<Tensor<B, 2>> {
    let [num, _, h] = encoded.dims();
    let mask = here.unsqueeze_dim::<3>(2);
    // Codes come out of a rectifier, so that padding of zero is never above them.
    let codes = encoded.clone() * mask.clone();
    let mean = (codes.clone().sum_dim(1) / mask.clone().sum_dim(1)).squeeze_dim(1);
    let max = codes.clone().max_dim(1).squeeze_dim(1);
    let mut pooled = vec![mean, max];
    if let Some(queries) = queries {
        let [_, heads] = queries.dims();
        let scores = encoded
            .matmul(queries.unsqueeze_dim(0))
            .mul_scalar(1.0 / (h as f32).sqrt());
        let scores = scores + (mask - 1.0) * -FAR_BELOW;
        // The largest score is taken off before the exponential; as a shift it has no derivative.
        let largest = scores.clone().detach().max_dim(1);
        let weights = (scores - largest).exp();
        let totals = weights.clone().sum_dim(1).swap_dims(1, 2);
        let means = weights.swap_dims(1, 2).matmul(codes) / totals;
        pooled.push(means.reshape([num, heads * h]));
    }
    pooled
}
