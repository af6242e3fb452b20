//! The one place that names Burn's backend. Nothing outside this crate knows Burn.
//!
//! The learner uses Burn for gradients only; rollouts, Adam and checkpoints work on the flat parameters.

use burn::backend::{Autodiff, Flex};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Burn's CPU backend in plain Rust, with gradients.
pub(crate) type Backend = Autodiff<Flex>;

/// A tensor of rank 2 from row-major data.
pub(crate) fn matrix(data: &[f32], shape: [usize; 2], device: &Device<Backend>) -> Tensor<Backend, 2> {
    Tensor::from_data(TensorData::new(data.to_vec(), shape), device)
}

/// Indices in a tensor of rank `D`.
pub(crate) fn indices<const D: usize>(
    data: Vec<i32>,
    shape: [usize; D],
    device: &Device<Backend>,
) -> Tensor<Backend, D, Int> {
    Tensor::from_data(TensorData::new(data, shape), device)
}

/// The numbers of a matrix, row by row.
pub(crate) fn to_vec(tensor: Tensor<Backend, 2>) -> Vec<f32> {
    floats(tensor.into_data())
}

pub(crate) fn floats(data: TensorData) -> Vec<f32> {
    // The backend's float type is f32, so this is a move and not a conversion.
    data.convert::<f32>().into_vec().unwrap_or_default()
}
