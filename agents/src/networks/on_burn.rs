//! The gradient of an architecture on a backend of Burn: flat parameters in, flat gradient out.
//!
//! Decisions are padded to the same number of candidates, and padding is masked: on a GPU additions at an index run one after
//! another, while a sum over a decision here is a sum over an axis. Nothing is read back but outputs and gradients.

use burn::module::{Module as _, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Tensor, TensorData, Transaction};
use pleach_env::Spaces;
use pleach_network::{DecisionBatch, Layout};

use super::architecture::{Architecture, RowNetwork as _, Rows};
use crate::device::Device;

/// Outputs of the network for a list of decisions, without padding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outputs {
    /// One per candidate of all decisions, with the prior's.
    pub logits: Vec<f32>,
    /// One per decision, in the head's own (normalised) unit.
    pub values: Vec<f32>,
}

/// The derivatives of a loss by the [`Outputs`], in their shapes.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputGradients {
    pub logits: Vec<f32>,
    pub values: Vec<f32>,
}

/// The gradient of a loss by the parameters of a list of decisions. The loss sees the outputs and returns its derivatives by
/// them; each decision has at least one candidate. An error is what the device says where it cannot be used any more.
pub(crate) type PartGradient = fn(
    &Layout,
    &[f32],
    &DecisionBatch,
    &mut dyn FnMut(&Outputs) -> OutputGradients,
) -> Result<Vec<f32>, String>;

/// An architecture's gradient on a device; None where this build does not have it.
pub(super) fn gradient_on<A: Architecture>(device: Device) -> Option<PartGradient> {
    use burn::backend::Autodiff;
    match device {
        Device::Cpu => Some(gradient::<A, Autodiff<burn::backend::Flex>>),
        #[cfg(feature = "cuda")]
        Device::Cuda => Some(gradient::<A, Autodiff<burn::backend::Cuda>>),
        #[cfg(feature = "wgpu")]
        Device::Wgpu => Some(gradient::<A, Autodiff<burn::backend::Wgpu>>),
        #[allow(unreachable_patterns, reason = "a build with all devices has no other")]
        _ => None,
    }
}

/// Puts the flat list into a module, in the order of its declaration.
struct Fill<'a> {
    rest: &'a [f32],
}

impl<B: Backend> ModuleMapper<B> for Fill<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let (id, tensor, mapper) = param.consume();
        let shape = tensor.shape();
        let (own, rest) = self.rest.split_at(shape.num_elements().min(self.rest.len()));
        self.rest = rest;
        let mut own = own.to_vec();
        // A module that is longer than the list is found by the check of the architecture; zeros keep it from a panic.
        own.resize(shape.num_elements(), 0.0);
        let tensor = Tensor::from_data(TensorData::new(own, shape), &tensor.device()).require_grad();
        Param::from_mapped_value(id, tensor, mapper)
    }
}

/// Collects the gradients of a module in the order of its declaration.
struct Gather<'a, B: AutodiffBackend> {
    gradients: &'a B::Gradients,
    read: Option<Transaction<B::InnerBackend>>,
    /// Numbers of each array, and whether it has a gradient.
    arrays: Vec<(usize, bool)>,
}

impl<B: AutodiffBackend> ModuleVisitor<B> for Gather<'_, B> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let tensor = param.val();
        let gradient = tensor.grad(self.gradients);
        self.arrays
            .push((tensor.shape().num_elements(), gradient.is_some()));
        if let Some(gradient) = gradient {
            self.read = self.read.take().map(|read| read.register(gradient));
        }
    }
}

fn tensor<B: Backend, const D: usize>(data: Vec<f32>, shape: [usize; D]) -> Tensor<B, D> {
    Tensor::from_data(TensorData::new(data, shape), &B::Device::default())
}

/// Copies lists of `width` numbers per candidate to their padded places; the rest is zero.
fn pad(values: &[f32], rows: &DecisionBatch, most: usize, width: usize) -> Vec<f32> {
    let mut padded = vec![0.0; rows.len() * most * width];
    for (decision, padded) in padded.chunks_exact_mut(most * width).enumerate() {
        let span = rows.span(decision);
        padded[..span.len() * width].copy_from_slice(&values[span.start * width..span.end * width]);
    }
    padded
}

/// Lists of numbers that were read at once.
fn lists(transaction: Transaction<impl Backend>) -> Result<Vec<Vec<f32>>, String> {
    let data = transaction.try_execute().map_err(|error| error.to_string())?;
    data.into_iter()
        .map(|data| data.into_vec::<f32>().map_err(|error| format!("{error:?}")))
        .collect()
}

fn gradient<A: Architecture, B: AutodiffBackend>(
    layout: &Layout,
    parameters: &[f32],
    rows: &DecisionBatch,
    loss: &mut dyn FnMut(&Outputs) -> OutputGradients,
) -> Result<Vec<f32>, String> {
    let spaces = Spaces::new(layout.num_global, 1, layout.num_features);
    let module = A::init::<B>(layout.config, spaces, &B::Device::default());
    let module = module.map(&mut Fill { rest: parameters });
    let spans = || (0..rows.len()).map(|decision| rows.span(decision));
    let (num, most) = (rows.len(), spans().map(|span| span.len()).max().unwrap_or(1));
    let scored = module.forward(Rows {
        rows: tensor(
            pad(rows.candidates(), rows, most, layout.num_features),
            [num, most, layout.num_features],
        ),
        here: tensor(pad(&vec![1.0; rows.num_candidates()], rows, most, 1), [num, most]),
        context: tensor(rows.global().to_vec(), [num, layout.num_global]),
    });
    let (scores, values) = (scored.scores.clone().inner(), scored.value.clone().inner());
    let read = lists(Transaction::default().register(scores).register(values))?;
    let [padded, values] = <[Vec<f32>; 2]>::try_from(read).unwrap_or_default();
    let mut outputs = Outputs {
        logits: Vec::with_capacity(rows.num_candidates()),
        values,
    };
    for (decision, span) in spans().enumerate() {
        let logits = &padded[decision * most..decision * most + span.len()];
        let priors = &rows.prior()[span];
        outputs
            .logits
            .extend(logits.iter().zip(priors).map(|(logit, prior)| logit + prior));
    }
    let by = loss(&outputs);
    let by_scores = tensor::<B, 2>(pad(&by.logits, rows, most, 1), [num, most]);
    let by_values = tensor::<B, 2>(by.values, [num, 1]);
    let sum = (scored.scores * by_scores).sum() + (scored.value * by_values).sum();
    let gradients = sum.backward();
    let mut gather = Gather::<B> {
        gradients: &gradients,
        read: Some(Transaction::default()),
        arrays: Vec::new(),
    };
    module.visit(&mut gather);
    let mut found = lists(gather.read.unwrap_or_default())?.into_iter();
    let mut flat = Vec::with_capacity(parameters.len());
    for (len, has_gradient) in gather.arrays {
        match has_gradient.then(|| found.next()).flatten() {
            Some(gradient) => flat.extend(gradient),
            None => flat.extend(std::iter::repeat_n(0.0, len)),
        }
    }
    if flat.len() != parameters.len() {
        return Err(format!(
            "the module has {} parameters, its operators {}",
            flat.len(),
            parameters.len()
        ));
    }
    Ok(flat)
}
