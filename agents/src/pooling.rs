//! Pooling in Burn: from the codes of many rows, decision after decision, to a few numbers for each decision.

use std::ops::Range;

use burn::tensor::activation::relu;
use burn::tensor::{IndexingUpdateOp, Int, Tensor};

use crate::backend::{Backend, indices, matrix, to_vec};
use crate::parameters::Set;
use crate::rows::Rows;

type Matrix = Tensor<Backend, 2>;
type Device = burn::tensor::Device<Backend>;

/// Mean and maximum of each decision's codes `[B, H]`, and what each query attends to; zero for a decision without rows. Rows in
/// no span are padding: they stand last, and their codes are zero.
pub(crate) fn pool(encoded: &Matrix, spans: &[Range<usize>], queries: Option<Matrix>) -> Vec<Matrix> {
    let device = encoded.device();
    let ([num_rows, h], num) = (encoded.dims(), spans.len());
    let decision_of = padded_decisions(spans, num_rows, &device);
    let shares: Vec<f32> = spans.iter().map(|span| 1.0 / span.len().max(1) as f32).collect();
    let sums = Matrix::zeros([num, h], &device).select_assign(
        0,
        decision_of.clone(),
        encoded.clone(),
        IndexingUpdateOp::Add,
    );
    let mean = sums * matrix(&shares, [num, 1], &device);
    let largest = indices(argmax(encoded, spans), [num, h], &device);
    let max = encoded.clone().gather(0, largest);
    let mut pooled = vec![mean, max];
    if let Some(queries) = queries {
        pooled.extend(attended(encoded, queries, &decision_of, spans));
    }
    pooled
}

/// Codes of one kind of entities in all decisions, and where those of each decision lie; a last row is padding.
pub(crate) fn entities(set: &Set, rows: &Rows, weight: Matrix, bias: Matrix) -> (Matrix, Vec<Range<usize>>) {
    let device = weight.device();
    let (mut values, mut spans, mut num) = (Vec::new(), Vec::with_capacity(rows.len()), 0);
    for decision in 0..rows.len() {
        let present = set.present(rows.row(decision).global);
        values.extend_from_slice(present);
        let start = num;
        num += present.len() / set.num_features;
        spans.push(start..num);
    }
    values.resize((num + 1) * set.num_features, 0.0);
    let codes = relu(matrix(&values, [num + 1, set.num_features], &device).matmul(weight) + bias);
    let mut here = vec![1.0; num];
    here.push(0.0);
    (codes * matrix(&here, [num + 1, 1], &device), spans)
}

/// The decision of each row. `[rows]`
pub(crate) fn decisions_of(spans: &[Range<usize>], device: &Device) -> Tensor<Backend, 1, Int> {
    padded_decisions(spans, spans.last().map_or(0, |span| span.end), device)
}

/// Padding counts for the first decision: to sums it adds zero.
fn padded_decisions(spans: &[Range<usize>], num_rows: usize, device: &Device) -> Tensor<Backend, 1, Int> {
    let rows = spans.iter().enumerate();
    let mut decision_of: Vec<i32> = rows
        .flat_map(|(decision, span)| span.clone().map(move |_| decision as i32))
        .collect();
    decision_of.resize(num_rows, 0);
    indices(decision_of, [num_rows], device)
}

/// For each head the mean of a decision's codes `[B, H]`, weighted by the softmax of their products with the head's query over
/// the root of H.
///
/// # Source
/// Pooling by attention with learned queries: Lee et al., Set Transformer, ICML'19, section 3.2.
fn attended(
    encoded: &Matrix,
    query: Matrix,
    decision_of: &Tensor<Backend, 1, Int>,
    spans: &[Range<usize>],
) -> Vec<Matrix> {
    let device = encoded.device();
    let ([num_rows, h], [_, heads]) = (encoded.dims(), query.dims());
    let scores = encoded.clone().matmul(query).mul_scalar(1.0 / (h as f32).sqrt());
    // The largest score of each decision is taken off before the exponential; as a shift it has no derivative.
    let values = to_vec(scores.clone());
    let mut shifts = vec![0.0; values.len()];
    for span in spans {
        for head in 0..heads {
            let at = |candidate: usize| candidate * heads + head;
            let largest = span
                .clone()
                .fold(f32::NEG_INFINITY, |most, c| most.max(values[at(c)]));
            span.clone().for_each(|c| shifts[at(c)] = largest);
        }
    }
    let mut weights = (scores - matrix(&shifts, [num_rows, heads], &device)).exp();
    let last = spans.last().map_or(0, |span| span.end);
    if last < num_rows {
        let here: Vec<f32> = (0..num_rows).map(|row| f32::from(row < last)).collect();
        weights = weights * matrix(&here, [num_rows, 1], &device);
    }
    let sum = |values: Matrix| {
        let [_, width] = values.dims();
        let zeros = Matrix::zeros([spans.len(), width], &device);
        zeros.select_assign(0, decision_of.clone(), values, IndexingUpdateOp::Add)
    };
    // Without rows there is nothing to divide, by 1 rather than by 0.
    let empty: Vec<f32> = spans.iter().map(|span| f32::from(span.is_empty())).collect();
    let totals = sum(weights.clone()) + matrix(&empty, [spans.len(), 1], &device);
    let of_head = |tensor: &Matrix, head: usize| tensor.clone().narrow(1, head, 1);
    (0..heads)
        .map(|head| sum(encoded.clone() * of_head(&weights, head)) / of_head(&totals, head))
        .collect()
}

/// Index of the largest code per decision and column, `[B, H]`; the first of equals, and the last row, which is padding, where there
/// is none. A gather at these indices is the maximum, with the right derivative.
fn argmax(encoded: &Matrix, spans: &[Range<usize>]) -> Vec<i32> {
    let [num_rows, h] = encoded.dims();
    let encoded = to_vec(encoded.clone());
    let mut largest = vec![num_rows as i32 - 1; spans.len() * h];
    // The values beside their indices, so that the loop over columns has no look-ups and becomes vector code.
    let mut best = vec![0.0; h];
    for (span, largest) in spans.iter().zip(largest.chunks_exact_mut(h)) {
        if span.is_empty() {
            continue;
        }
        largest.fill(span.start as i32);
        best.copy_from_slice(&encoded[span.start * h..(span.start + 1) * h]);
        for candidate in span.clone().skip(1) {
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
