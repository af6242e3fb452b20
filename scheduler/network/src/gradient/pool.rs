//! Pooling there and back: from the codes of a chunk's rows, decision after decision, to a few numbers for each decision.

use std::ops::Range;

use crate::matrix::{add_rows, add_scaled};

use super::attention::{attend, through_attention};

/// The candidates of a chunk of decisions.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    /// Rows of decision d: `ends[d] .. ends[d + 1]`.
    ends: Vec<usize>,
    /// `[m, H]`, out of a rectifier, and the gradient by them.
    pub(super) codes: Vec<f32>,
    pub(super) by_codes: Vec<f32>,
    /// `[B, H]`, where the largest code of each column was found.
    largest: Vec<usize>,
    /// `[A, m]`
    attention: Vec<f32>,
}

pub(super) fn zeros(buffer: &mut Vec<f32>, len: usize) {
    buffer.clear();
    buffer.resize(len, 0.0);
}

impl Pool {
    /// No decisions yet.
    pub(super) fn begin(&mut self) {
        self.ends.clear();
        self.ends.push(0);
    }

    /// One more decision, whose rows end before row `end`.
    pub(super) fn end_at(&mut self, end: usize) {
        self.ends.push(end);
    }

    pub(super) fn span(&self, decision: usize) -> Range<usize> {
        self.ends[decision]..self.ends[decision + 1]
    }

    /// Mean, maximum and attended means of each decision's codes, written to the beginning of its row of `width`; zeros, as
    /// they come in, for a decision without rows. One query over the root of H for each head.
    #[inline(always)]
    pub(super) fn pool(&mut self, queries: &[Vec<f32>], h: usize, pooled: &mut [f32], width: usize) {
        let (num, m) = (self.ends.len() - 1, self.codes.len() / h);
        zeros(&mut self.attention, queries.len() * m);
        self.largest.clear();
        self.largest.resize(num * h, 0);
        let pooled = pooled.chunks_exact_mut(width);
        for (index, (pooled, largest)) in pooled.zip(self.largest.chunks_exact_mut(h)).enumerate() {
            let span = self.ends[index]..self.ends[index + 1];
            if span.is_empty() {
                continue;
            }
            let codes = &self.codes[span.start * h..span.end * h];
            let (mean, rest) = pooled.split_at_mut(h);
            let (most, rest) = rest.split_at_mut(h);
            add_rows(codes, mean);
            mean.iter_mut().for_each(|mean| *mean *= 1.0 / span.len() as f32);
            most.copy_from_slice(&codes[..h]);
            largest.fill(span.start);
            for (row, code) in span.clone().zip(codes.chunks_exact(h)).skip(1) {
                for ((most, largest), code) in most.iter_mut().zip(largest.iter_mut()).zip(code) {
                    let larger = code > most;
                    *most = if larger { *code } else { *most };
                    *largest = if larger { row } else { *largest };
                }
            }
            for (head, (attended, query)) in rest.chunks_exact_mut(h).zip(queries).enumerate() {
                let weights = &mut self.attention[head * m..][span.clone()];
                attend(codes, query, weights, attended);
            }
        }
    }

    /// Adds the gradient by what was pooled, laid out as in [`Pool::pool`], to those by the codes and by the queries `[H, A]`.
    #[inline(always)]
    pub(super) fn through(
        &mut self,
        queries: &[Vec<f32>],
        by_pooled: &[f32],
        width: usize,
        by_query: &mut [f32],
    ) {
        let num = self.ends.len() - 1;
        let h = self.largest.len() / num.max(1);
        let (heads, m) = (queries.len(), self.codes.len() / h);
        for (decision, by_pooled) in by_pooled.chunks_exact(width).enumerate() {
            let span = self.ends[decision]..self.ends[decision + 1];
            if span.is_empty() {
                continue;
            }
            let share = 1.0 / span.len() as f32;
            let (by_mean, rest) = by_pooled.split_at(h);
            let (by_most, rest) = rest.split_at(h);
            let by_codes = &mut self.by_codes[span.start * h..span.end * h];
            for by_code in by_codes.chunks_exact_mut(h) {
                add_scaled(by_code, share, by_mean);
            }
            for (head, (by_attended, query)) in rest.chunks_exact(h).zip(queries).enumerate() {
                let codes = &self.codes[span.start * h..span.end * h];
                let weights = &self.attention[head * m..][span.clone()];
                let mut by_own = vec![0.0; h];
                through_attention(codes, query, weights, by_attended, by_codes, &mut by_own);
                let scale = 1.0 / (h as f32).sqrt();
                let places = by_query.iter_mut().skip(head).step_by(heads);
                places.zip(by_own).for_each(|(by, own)| *by += scale * own);
            }
            let largest = &self.largest[decision * h..(decision + 1) * h];
            for (column, (row, by)) in largest.iter().zip(by_most).enumerate() {
                by_codes[(row - span.start) * h + column] += by;
            }
        }
    }
}
