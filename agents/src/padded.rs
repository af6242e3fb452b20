//! The set network in Burn for devices that work on many rows at once: every decision has the same number of candidates,
//! and those that are padding are masked.
//!
//! The same function as `pleach_network`'s, which is plain Rust for the cores of a CPU: there decisions lie one after another
//! without padding, and sums over a decision are additions at an index. On a GPU such additions run one after another. Here a
//! sum over a decision is a sum over an axis, and nothing is read back but outputs and gradients. This is the one network in
//! Burn: devices learn with it, and the tests hold the plain one to it (`gradients.rs`).

use burn::tensor::activation::relu;
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Tensor, TensorData, Transaction};

use pleach_network::{DecisionBatch, Layout, parameters::at};

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

/// Added to the scores of padding before a softmax.
const FAR_BELOW: f32 = -1e9;

/// The tensors of one forward pass over B decisions padded to C candidates.
struct Forward<B: AutodiffBackend> {
    parameters: Vec<Tensor<B, 2>>,
    /// `[B C, 1]`
    logits: Tensor<B, 2>,
    /// `[B, 1]`
    values: Tensor<B, 2>,
}

fn tensor<B: AutodiffBackend, const D: usize>(data: Vec<f32>, shape: [usize; D]) -> Tensor<B, D> {
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

fn forward<B: AutodiffBackend>(
    layout: &Layout,
    parameters: &[f32],
    rows: &DecisionBatch,
    most: usize,
) -> Forward<B> {
    let (num, h, heads) = (rows.len(), layout.config.hidden, layout.config.heads);
    let tensors: Vec<_> = layout
        .entries
        .iter()
        .map(|entry| match &parameters[entry.range.clone()] {
            [] => tensor(vec![0.0], [1, 1]),
            values => tensor::<B, 2>(values.to_vec(), entry.shape).require_grad(),
        })
        .collect();
    let p = |index: usize| tensors[index].clone();

    let cells = pad(rows.candidates(), rows, most, layout.num_features);
    let x = tensor::<B, 2>(cells, [num * most, layout.num_features]);
    let first = relu(x.matmul(p(at::ENCODER_0)) + p(at::ENCODER_0_BIAS));
    let encoded = relu(first.matmul(p(at::ENCODER_1)) + p(at::ENCODER_1_BIAS));

    let here = pad(&vec![1.0; rows.num_candidates()], rows, most, 1);
    let attends = heads > 0;
    let mut pooled = pool(encoded.clone(), here, num, attends.then(|| p(at::QUERY)));
    let global = (0..num).flat_map(|decision| rows.get(decision).global);
    pooled.push(tensor(global.copied().collect(), [num, layout.num_global]));
    let pooled = Tensor::cat(pooled, 1);
    let outer = relu(pooled.matmul(p(at::CONTEXT_0)) + p(at::CONTEXT_0_BIAS));
    let context = relu(outer.matmul(p(at::CONTEXT_1)) + p(at::CONTEXT_1_BIAS));

    let shared = context.clone().matmul(p(at::POINTER_CONTEXT)) + p(at::POINTER_BIAS);
    let own = encoded.matmul(p(at::POINTER_CANDIDATE));
    let hidden = relu(own.reshape([num, most, h]) + shared.reshape([num, 1, h]));
    let logits = hidden.reshape([num * most, h]).matmul(p(at::POINTER_OUT));
    let value = relu(context.matmul(p(at::VALUE_0)) + p(at::VALUE_0_BIAS));
    let values = value.matmul(p(at::VALUE_OUT)) + p(at::VALUE_OUT_BIAS);
    Forward {
        parameters: tensors,
        logits,
        values,
    }
}

/// Mean and maximum over the rows of each of `num` decisions, and what each query attends to; zero without rows. `encoded` is
/// `[num R, H]`, never below zero; `here` is `[num R]`, 1 for a row and 0 for padding.
fn pool<B: AutodiffBackend>(
    encoded: Tensor<B, 2>,
    here: Vec<f32>,
    num: usize,
    queries: Option<Tensor<B, 2>>,
) -> Vec<Tensor<B, 2>> {
    let [num_rows, h] = encoded.dims();
    let most = num_rows / num;
    let shares = here
        .chunks_exact(most)
        .map(|here| 1.0 / here.iter().sum::<f32>().max(1.0));
    let shares = tensor::<B, 2>(shares.collect(), [num, 1]);
    let below = here.iter().map(|here| (1.0 - here) * FAR_BELOW).collect();
    let mask = tensor::<B, 3>(here, [num, most, 1]);
    // Codes come out of a rectifier, so that padding of zero is never above them.
    let codes = encoded.clone().reshape([num, most, h]) * mask;
    let mean = codes.clone().sum_dim(1).reshape([num, h]) * shares;
    let max = codes.clone().max_dim(1).reshape([num, h]);
    let mut pooled = vec![mean, max];
    if let Some(queries) = queries {
        let [_, heads] = queries.dims();
        let scores = encoded.matmul(queries);
        let scores = scores
            .mul_scalar(1.0 / (h as f32).sqrt())
            .reshape([num, most, heads]);
        let scores = scores + tensor::<B, 3>(below, [num, most, 1]);
        // The largest score is taken off before the exponential; as a shift it has no derivative.
        let largest = scores.clone().detach().max_dim(1);
        let weights = (scores - largest).exp();
        let totals = weights.clone().sum_dim(1).swap_dims(1, 2);
        let means = weights.swap_dims(1, 2).matmul(codes) / totals;
        pooled.push(means.reshape([num, heads * h]));
    }
    pooled
}

/// Lists of numbers that were read at once.
fn lists(transaction: Transaction<impl burn::tensor::backend::Backend>) -> Result<Vec<Vec<f32>>, String> {
    let data = transaction.try_execute().map_err(|error| error.to_string())?;
    data.into_iter()
        .map(|data| data.into_vec::<f32>().map_err(|error| format!("{error:?}")))
        .collect()
}

/// The gradient of a loss by the parameters. `loss` sees the outputs without padding and returns its derivatives by them. Each
/// decision has at least one candidate, and sizes are the layout's.
///
/// # Errors
/// What the device says where it cannot be used any more.
pub(crate) fn gradient<B: AutodiffBackend>(
    layout: &Layout,
    parameters: &[f32],
    rows: &DecisionBatch,
    loss: &mut dyn FnMut(&Outputs) -> OutputGradients,
) -> Result<Vec<f32>, String> {
    let spans = || (0..rows.len()).map(|decision| rows.span(decision));
    let most = spans().map(|span| span.len()).max().unwrap_or(1);
    let forward = forward::<B>(layout, parameters, rows, most);
    let (logits, values) = (forward.logits.clone().inner(), forward.values.clone().inner());
    let read = lists(Transaction::default().register(logits).register(values))?;
    let [padded, values] = <[Vec<f32>; 2]>::try_from(read).unwrap_or_default();
    let mut outputs = Outputs {
        logits: Vec::with_capacity(rows.num_candidates()),
        values,
    };
    for (decision, span) in spans().enumerate() {
        let logits = &padded[decision * most..decision * most + span.len()];
        let priors = &rows.prior()[span];
        let sums = logits.iter().zip(priors).map(|(logit, prior)| logit + prior);
        outputs.logits.extend(sums);
    }
    let by = loss(&outputs);
    let by_logits = tensor::<B, 2>(pad(&by.logits, rows, most, 1), [rows.len() * most, 1]);
    let by_values = tensor::<B, 2>(by.values, [rows.len(), 1]);
    let sum = (forward.logits * by_logits).sum() + (forward.values * by_values).sum();
    let gradients = sum.backward();
    let arrays = layout.entries.iter().zip(&forward.parameters);
    let (entries, tensors): (Vec<_>, Vec<_>) = arrays
        .filter_map(|(entry, parameter)| Some((entry, parameter.grad(&gradients)?)))
        .unzip();
    let all = tensors
        .into_iter()
        .fold(Transaction::default(), Transaction::register);
    let mut flat_gradient = vec![0.0; parameters.len()];
    for (entry, gradient) in entries.iter().zip(lists(all)?) {
        flat_gradient[entry.range.clone()].copy_from_slice(&gradient);
    }
    Ok(flat_gradient)
}
