//! The set network in Burn: what a gradient is taken of.
//!
//! A loss here is any function of the logits and the values. It hands back its derivatives by them ([`Cotangents`]),
//! and Burn carries those through the network to the parameters. So the losses are plain Rust that can be checked by
//! hand, there is no padding and no masked softmax in tensors, and the tensor code is this one file.

use burn::tensor::activation::relu;
use burn::tensor::{IndexingUpdateOp, Int, Tensor};
use rayon::prelude::*;

use crate::backend::{Backend, indices, matrix};
use crate::device::Device;
use crate::error::Error;
use crate::parameters::{Layout, at};
use crate::rows::Rows;

/// Outputs of the network for a list of decisions, and the derivatives of a loss by them.
#[derive(Clone, Debug, Default)]
pub struct Cotangents {
    /// One per candidate of all decisions.
    pub logits: Vec<f32>,
    /// One per decision, in the head's own (normalised) unit.
    pub values: Vec<f32>,
}

/// The tensors of one forward pass.
struct Forward {
    parameters: Vec<Tensor<Backend, 2>>,
    logits: Tensor<Backend, 2>,
    values: Tensor<Backend, 2>,
}

fn forward(layout: &Layout, flat: &[f32], rows: &Rows) -> Forward {
    let device = burn::tensor::Device::<Backend>::default();
    let (num_decisions, num_candidates, h) = (rows.len(), rows.num_candidates(), layout.config.hidden);
    let parameters: Vec<_> = layout
        .entries
        .iter()
        .map(|entry| match &flat[entry.range.clone()] {
            // Without heads there are no queries: a tensor that nothing uses keeps the indices what they are.
            [] => matrix(&[0.0], [1, 1], &device),
            values => matrix(values, entry.shape, &device).require_grad(),
        })
        .collect();
    let p = |index: usize| parameters[index].clone();

    let x = matrix(rows.candidates(), [num_candidates, layout.num_features], &device);
    let first = relu(x.matmul(p(at::ENCODER_0)) + p(at::ENCODER_0_BIAS));
    let encoded = relu(first.matmul(p(at::ENCODER_1)) + p(at::ENCODER_1_BIAS));

    let mut decision_of = Vec::with_capacity(num_candidates);
    let mut shares = Vec::with_capacity(num_decisions);
    for decision in 0..num_decisions {
        let span = rows.span(decision);
        shares.push(1.0 / span.len().max(1) as f32);
        decision_of.extend(span.map(|_| decision as i32));
    }
    let decision_of = indices(decision_of, [num_candidates], &device);
    let sums = Tensor::<Backend, 2>::zeros([num_decisions, h], &device).select_assign(
        0,
        decision_of.clone(),
        encoded.clone(),
        IndexingUpdateOp::Add,
    );
    let mean = sums * matrix(&shares, [num_decisions, 1], &device);
    let largest = indices(argmax(&encoded, rows, h), [num_decisions, h], &device);
    let max = encoded.clone().gather(0, largest);

    let mut pooled = vec![mean, max];
    if layout.config.heads > 0 {
        pooled.extend(attended(&encoded, p(at::QUERY), &decision_of, rows));
    }
    pooled.push(matrix(rows.global(), [num_decisions, layout.num_global], &device));
    let pooled = Tensor::cat(pooled, 1);
    let outer = relu(pooled.matmul(p(at::CONTEXT_0)) + p(at::CONTEXT_0_BIAS));
    let context = relu(outer.matmul(p(at::CONTEXT_1)) + p(at::CONTEXT_1_BIAS));

    let shared = context.clone().matmul(p(at::POINTER_CONTEXT)) + p(at::POINTER_BIAS);
    let hidden = relu(encoded.matmul(p(at::POINTER_CANDIDATE)) + shared.select(0, decision_of));
    let logits = hidden.matmul(p(at::POINTER_OUT));
    let value = relu(context.matmul(p(at::VALUE_0)) + p(at::VALUE_0_BIAS));
    let values = value.matmul(p(at::VALUE_OUT)) + p(at::VALUE_OUT_BIAS);
    Forward {
        parameters,
        logits,
        values,
    }
}

/// For each head the mean of a decision's codes `[B, H]`, weighted by the softmax of their products with the head's query over
/// the root of H.
///
/// # Source
/// Pooling by attention with learned queries: Lee et al., Set Transformer, ICML'19, section 3.2.
fn attended(
    encoded: &Tensor<Backend, 2>,
    query: Tensor<Backend, 2>,
    decision_of: &Tensor<Backend, 1, Int>,
    rows: &Rows,
) -> Vec<Tensor<Backend, 2>> {
    let device = encoded.device();
    let ([_, h], [_, heads]) = (encoded.dims(), query.dims());
    let scores = encoded.clone().matmul(query).mul_scalar(1.0 / (h as f32).sqrt());
    // The largest score of each decision is taken off before the exponential; as a shift it has no derivative.
    let values = to_vec(scores.clone());
    let mut shifts = vec![0.0; values.len()];
    for decision in 0..rows.len() {
        let span = rows.span(decision);
        for head in 0..heads {
            let at = |candidate: usize| candidate * heads + head;
            let largest = span
                .clone()
                .fold(f32::NEG_INFINITY, |most, c| most.max(values[at(c)]));
            span.clone().for_each(|c| shifts[at(c)] = largest);
        }
    }
    let weights = (scores - matrix(&shifts, [rows.num_candidates(), heads], &device)).exp();
    let sum = |values: Tensor<Backend, 2>| {
        let [_, width] = values.dims();
        let zeros = Tensor::<Backend, 2>::zeros([rows.len(), width], &device);
        zeros.select_assign(0, decision_of.clone(), values, IndexingUpdateOp::Add)
    };
    let totals = sum(weights.clone());
    let of_head = |tensor: &Tensor<Backend, 2>, head: usize| tensor.clone().narrow(1, head, 1);
    (0..heads)
        .map(|head| sum(encoded.clone() * of_head(&weights, head)) / of_head(&totals, head))
        .collect()
}

/// Index of the largest code per decision and column, `[B, H]`; the first of equals. A gather at these indices is the
/// maximum, with the right derivative.
fn argmax(encoded: &Tensor<Backend, 2>, rows: &Rows, h: usize) -> Vec<i32> {
    let encoded = to_vec(encoded.clone());
    let mut largest = vec![0_i32; rows.len() * h];
    // The values beside their indices, so that the loop over columns has no look-ups and becomes vector code.
    let mut best = vec![0.0; h];
    for (decision, largest) in largest.chunks_exact_mut(h).enumerate() {
        let span = rows.span(decision);
        largest.fill(span.start as i32);
        best.copy_from_slice(&encoded[span.start * h..(span.start + 1) * h]);
        for candidate in span.skip(1) {
            let codes = &encoded[candidate * h..(candidate + 1) * h];
            for ((index, best), code) in largest.iter_mut().zip(&mut best).zip(codes) {
                let larger = *code > *best;
                *index = if larger { candidate as i32 } else { *index };
                *best = if larger { *code } else { *best };
            }
        }
    }
    largest
}

fn to_vec(tensor: Tensor<Backend, 2>) -> Vec<f32> {
    floats(tensor.into_data())
}

fn floats(data: burn::tensor::TensorData) -> Vec<f32> {
    // The backend's float type is f32, so this is a move and not a conversion.
    data.convert::<f32>().into_vec().unwrap_or_default()
}

/// What a loss sees: the logits with the prior's, which have no parameters and so no derivative.
fn outputs(logits: Tensor<Backend, 2>, values: Tensor<Backend, 2>, rows: &Rows) -> Cotangents {
    let mut logits = to_vec(logits);
    let priors = logits.iter_mut().zip(rows.prior());
    priors.for_each(|(logit, prior)| *logit += prior);
    Cotangents {
        logits,
        values: to_vec(values),
    }
}

/// Logits and values of all decisions; each decision has at least one candidate.
///
/// # Errors
/// [`Error::Contract`] where sizes of observations or parameters are not the layout's.
pub fn evaluate(layout: &Layout, flat: &[f32], rows: &Rows) -> Result<Cotangents, Error> {
    check(layout, flat, rows, 0..rows.len())?;
    let Forward { logits, values, .. } = forward(layout, flat, rows);
    Ok(outputs(logits, values, rows))
}

/// The gradient of a loss by the parameters. `loss` sees the outputs and returns its derivatives by them.
///
/// # Errors
/// [`Error::Contract`] where sizes of observations or parameters are not the layout's.
pub fn gradient(
    layout: &Layout,
    flat: &[f32],
    rows: &Rows,
    loss: impl FnOnce(&Cotangents) -> Cotangents,
) -> Result<Vec<f32>, Error> {
    check(layout, flat, rows, 0..rows.len())?;
    let device = burn::tensor::Device::<Backend>::default();
    let Forward {
        parameters,
        logits,
        values,
    } = forward(layout, flat, rows);
    let by = loss(&outputs(logits.clone(), values.clone(), rows));
    let by_logits = matrix(&by.logits, [by.logits.len(), 1], &device);
    let by_values = matrix(&by.values, [by.values.len(), 1], &device);
    let gradients = ((logits * by_logits).sum() + (values * by_values).sum()).backward();
    let mut flat_gradient = vec![0.0; flat.len()];
    for (entry, parameter) in layout.entries.iter().zip(&parameters) {
        if let Some(gradient) = parameter.grad(&gradients) {
            flat_gradient[entry.range.clone()].copy_from_slice(&floats(gradient.into_data()));
        }
    }
    Ok(flat_gradient)
}

/// Decisions whose gradient is computed at once on the CPU, by one thread: what fits a core's cache, and always the same
/// number, so that sums do not depend on the number of threads.
pub(crate) const CHUNK: usize = 64;

/// The gradient of a loss that is a sum over `decisions` of `rows`. `loss` gets a decision, its logits and its value,
/// writes the derivatives by the logits and returns the derivative by the value and `N` figures; the figures are
/// summed. On the CPU chunks run in parallel and are added in order; a device gets as many decisions at once as fit it.
///
/// # Errors
/// As [`gradient`], and [`Error::Device`] where the device fails.
pub fn sum_of_gradients<const N: usize>(
    (layout, device): (&Layout, Device),
    flat: &[f32],
    rows: &Rows,
    decisions: &[usize],
    loss: impl Fn(usize, &[f32], f32, &mut [f32]) -> (f32, [f64; N]) + Sync,
) -> Result<(Vec<f32>, [f64; N]), Error> {
    let part = |decisions: &[usize]| {
        let mut chunk = rows.empty_like();
        decisions
            .iter()
            .for_each(|decision| chunk.push_row(rows.row(*decision)));
        let mut figures = [0.0; N];
        let part = device.gradient(layout, flat, &chunk, |outputs| {
            let mut by = Cotangents {
                logits: vec![0.0; outputs.logits.len()],
                values: Vec::new(),
            };
            for (position, decision) in decisions.iter().enumerate() {
                let span = chunk.span(position);
                let (logits, value) = (&outputs.logits[span.clone()], outputs.values[position]);
                let (by_value, terms) = loss(*decision, logits, value, &mut by.logits[span]);
                by.values.push(by_value);
                figures.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
            }
            by
        })?;
        Ok((part, figures))
    };
    let parts: Result<Vec<_>, Error> = match device {
        Device::Cpu => decisions.par_chunks(CHUNK).map(part).collect(),
        _ => {
            let sizes = decisions.iter().map(|decision| rows.span(*decision).len());
            let at_once = Device::decisions_at_once(layout, sizes.max().unwrap_or(1));
            decisions.chunks(at_once).map(part).collect()
        }
    };
    let (mut sum, mut figures) = (vec![0.0; flat.len()], [0.0; N]);
    for (part, terms) in parts? {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        figures.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
    Ok((sum, figures))
}

/// Sizes agree, and each of `decisions` has a candidate.
pub(crate) fn check(
    layout: &Layout,
    flat: &[f32],
    rows: &Rows,
    mut decisions: impl Iterator<Item = usize>,
) -> Result<(), Error> {
    rows.check(layout.num_global, layout.num_features)?;
    if flat.len() != layout.num_parameters() {
        return Err(Error::contract(
            "number of parameters",
            layout.num_parameters(),
            flat.len(),
        ));
    }
    let empty = decisions.find(|decision| rows.span(*decision).is_empty());
    empty.map_or(Ok(()), |decision| {
        Err(Error::contract(
            "admissible candidates",
            "at least 1",
            format!("0 in decision {decision}"),
        ))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::inference::Inference;
    use crate::parameters::{NetworkConfig, uniform};
    use pleach_env::seed::Seed;
    use pleach_env::vector::Spaces;

    const SPACES: Spaces = Spaces {
        num_global: 3,
        num_candidates: 9,
        num_features: 5,
    };

    fn network() -> (Layout, Vec<f32>) {
        network_of(0)
    }

    pub(crate) fn network_of(heads: usize) -> (Layout, Vec<f32>) {
        let layout = Layout::new(
            NetworkConfig {
                hidden: 16,
                context: 24,
                heads,
            },
            SPACES,
        )
        .unwrap();
        let mut flat = layout.initial(Seed(3));
        // A policy head and biases of ordinary size, so that a wrong derivative shows.
        let mut random = Seed(3).stream("test", 0);
        for index in [
            at::POINTER_OUT,
            at::POINTER_BIAS,
            at::ENCODER_0_BIAS,
            at::CONTEXT_1_BIAS,
        ] {
            let range = layout.entries[index].range.clone();
            flat[range]
                .iter_mut()
                .for_each(|w| *w = uniform(&mut random) as f32 - 0.5);
        }
        (layout, flat)
    }

    pub(crate) fn rows(num_decisions: usize) -> Rows {
        let mut random = Seed(5).stream("test", 1);
        let mut rows = Rows::new(SPACES);
        for decision in 0..num_decisions {
            let mut draw = |n: usize| {
                (0..n)
                    .map(|_| 2.0 * uniform(&mut random) as f32 - 1.0)
                    .collect::<Vec<_>>()
            };
            let n = 1 + decision % SPACES.num_candidates;
            let (global, candidates) = (draw(3), draw(n * 5));
            rows.push(&global, &candidates, &vec![true; n]);
        }
        rows
    }

    #[test]
    fn plain_inference_equals_burn() {
        [0, 3].into_iter().for_each(plain_inference_equals_burn_with);
    }

    fn plain_inference_equals_burn_with(heads: usize) {
        let ((layout, flat), rows) = (network_of(heads), rows(30));
        let outputs = evaluate(&layout, &flat, &rows).unwrap();
        let inference = Inference::new(&layout, &flat).unwrap();
        let (mut scratch, mut logits) = (inference.scratch(1), [0.0; 9]);
        for decision in 0..rows.len() {
            let value = inference.forward(rows.row(decision), &mut scratch, &mut logits);
            assert!((value - outputs.values[decision]).abs() < 1e-5);
            for (burn, plain) in outputs.logits[rows.span(decision)].iter().zip(&logits) {
                assert!((burn - plain).abs() < 1e-5, "{burn} {plain}");
            }
        }
    }

    #[test]
    fn logits_move_with_their_candidates_and_the_value_does_not_care() {
        [0, 2].into_iter().for_each(logits_move_with_their_candidates);
    }

    fn logits_move_with_their_candidates(heads: usize) {
        let ((layout, flat), rows) = (network_of(heads), rows(9));
        let inference = Inference::new(&layout, &flat).unwrap();
        let (mut scratch, mut straight, mut turned) = (inference.scratch(9), [0.0; 9], [0.0; 9]);
        let row = rows.row(8);
        let value = inference.forward(row, &mut scratch, &mut straight);
        let reversed: Vec<f32> = row.candidates.chunks_exact(5).rev().flatten().copied().collect();
        let row = crate::rows::Row {
            candidates: &reversed,
            ..row
        };
        assert!((inference.forward(row, &mut scratch, &mut turned) - value).abs() < 1e-6);
        for (a, b) in straight.iter().zip(turned.iter().rev()) {
            assert!((a - b).abs() < 1e-6);
        }
    }

    #[test]
    fn gradient_equals_finite_differences() {
        [0, 2]
            .into_iter()
            .for_each(gradient_equals_finite_differences_with);
    }

    fn gradient_equals_finite_differences_with(heads: usize) {
        let ((layout, mut flat), rows) = (network_of(heads), rows(12));
        // Loss: a fixed random weighting of all outputs.
        let mut random = Seed(6).stream("test", 2);
        let mut draw = |n: usize| {
            (0..n)
                .map(|_| uniform(&mut random) as f32 - 0.5)
                .collect::<Vec<_>>()
        };
        let weights = Cotangents {
            logits: draw(rows.num_candidates()),
            values: draw(rows.len()),
        };
        let loss = |flat: &[f32]| {
            let outputs = evaluate(&layout, flat, &rows).unwrap();
            let dot = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            };
            dot(&outputs.logits, &weights.logits) + dot(&outputs.values, &weights.values)
        };
        let exact = gradient(&layout, &flat, &rows, |_| weights.clone()).unwrap();
        for entry in &layout.entries {
            for index in entry.range.clone().step_by(1 + entry.range.len() / 5) {
                // Small, so that few rectifiers change sides.
                let (step, old) = (2e-4, flat[index]);
                flat[index] = old + step;
                let above = loss(&flat);
                flat[index] = old - step;
                let below = loss(&flat);
                flat[index] = old;
                let slope = (above - below) / (2.0 * f64::from(step));
                assert!(
                    (slope - f64::from(exact[index])).abs() < 2e-2 * (1.0 + slope.abs()),
                    "{} [{index}]: {slope} {}",
                    entry.name,
                    exact[index]
                );
            }
        }
    }

    #[test]
    fn a_decision_without_candidates_is_refused() {
        let ((layout, flat), mut rows) = (network(), rows(1));
        rows.push(&[0.0; 3], &[0.0; 5], &[false]);
        assert!(
            evaluate(&layout, &flat, &rows)
                .unwrap_err()
                .to_string()
                .contains("decision 1")
        );
    }
}
