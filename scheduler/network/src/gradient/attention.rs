//! Pooling by attention, there and back: one head's mean of a decision's codes.

use crate::matrix::{add_scaled, dot};
use crate::parameters::at;
use pleach_scheduler::portable_math::exp_f32;

use super::packed::Packed;

/// Each head's query over the root of H.
pub(super) fn queries(net: &Packed<'_>) -> Vec<Vec<f32>> {
    let (h, heads) = (net.layout.config.hidden, net.layout.config.heads);
    let scale = 1.0 / (h as f32).sqrt();
    let of_head = |head: usize| net.of(at::QUERY).iter().skip(head).step_by(heads);
    (0..heads)
        .map(|head| of_head(head).map(|weight| weight * scale).collect())
        .collect()
}

/// Softmax of the products with the query into `weights`, and the mean that they give.
#[inline(always)]
pub(super) fn attend(codes: &[f32], query: &[f32], weights: &mut [f32], out: &mut [f32]) {
    for (weight, code) in weights.iter_mut().zip(codes.chunks_exact(query.len())) {
        *weight = dot(code, query);
    }
    let largest = weights.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
    weights
        .iter_mut()
        .for_each(|weight| *weight = exp_f32(*weight - largest));
    let total: f32 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    for (weight, code) in weights.iter().zip(codes.chunks_exact(query.len())) {
        add_scaled(out, *weight, code);
    }
}

/// With weights w = softmax(s), s = codes query and mean = sum w code: `d code = w d mean + d s query` and
/// `d query = sum d s code`, where `d s = w (d mean code - sum w (d mean code))`.
#[inline(always)]
pub(super) fn through_attention(
    codes: &[f32],
    query: &[f32],
    weights: &[f32],
    by_mean: &[f32],
    by_codes: &mut [f32],
    by_query: &mut [f32],
) {
    let rows = || codes.chunks_exact(query.len()).zip(weights);
    let mut mean = 0.0;
    for (code, weight) in rows() {
        mean += weight * dot(code, by_mean);
    }
    for ((code, weight), by_code) in rows().zip(by_codes.chunks_exact_mut(query.len())) {
        let by_score = weight * (dot(code, by_mean) - mean);
        add_scaled(by_code, *weight, by_mean);
        add_scaled(by_code, by_score, query);
        add_scaled(by_query, by_score, code);
    }
}
