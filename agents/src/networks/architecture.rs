//! What an architecture is: a module of Burn over the rows of a decision, on any backend.

use burn::module::Module;
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use pleach_env::Spaces;
use pleach_network::NetworkConfig;

/// Decisions padded to the same number of candidates.
#[derive(Clone, Debug)]
pub struct Rows<B: Backend> {
    /// Features of the candidates, zero where there is none. `[D, C, F]`
    pub rows: Tensor<B, 3>,
    /// 1 where there is a candidate, 0 for padding. `[D, C]`
    pub here: Tensor<B, 2>,
    /// Global features. `[D, G]`
    pub context: Tensor<B, 2>,
}

/// What a network says of decisions.
#[derive(Clone, Debug)]
pub struct Scored<B: Backend> {
    /// A score for each candidate, larger being better; what stands at padding is not read. `[D, C]`
    pub scores: Tensor<B, 2>,
    /// What is expected of the decision, in the head's own unit. `[D, 1]`
    pub value: Tensor<B, 2>,
}

/// A network over the rows of a decision.
pub trait RowNetwork<B: Backend>: Module<B> {
    /// Scores decisions. Padding must not change the scores of others.
    fn forward(&self, rows: Rows<B>) -> Scored<B>;
}

/// A family of networks.
pub trait Architecture: 'static {
    /// The module on a backend.
    type On<B: Backend>: RowNetwork<B>;

    /// A module of these sizes for rows of F features and a context of G numbers. What its parameters begin with does not matter.
    fn init<B: Backend>(config: NetworkConfig, spaces: Spaces, device: &B::Device) -> Self::On<B>;
}

/// `x W + b`, with zeros to begin with: parameters come from the run's own seed.
pub fn linear<B: Backend>(inputs: usize, outputs: usize, device: &B::Device) -> Linear<B> {
    let config = LinearConfig::new(inputs, outputs);
    config.with_initializer(Initializer::Zeros).init(device)
}
