//! A chunk of decisions through the network and back, in buffers that are used again.

use std::ops::Range;

use crate::matrix::{accumulate, add_rows, add_scaled, dot, layer, multiply, through_rectifier};
use crate::parameters::at;
use crate::rows::Rows;
use crate::unit::Unit;

use super::Packed;
use super::attention::{attend, query, through_attention};

/// What a chunk of B decisions with m candidates needs; kept from chunk to chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// Candidates of decision d: `ends[d] .. ends[d + 1]`.
    ends: Vec<usize>,
    /// `[m, F]`
    x: Vec<f32>,
    /// `[m, H]`: the encoder's layers and the pointer's hidden one, each with its gradient.
    first: Vec<f32>,
    encoded: Vec<f32>,
    hidden: Vec<f32>,
    by_first: Vec<f32>,
    by_encoded: Vec<f32>,
    by_hidden: Vec<f32>,
    /// `[B, H]`, where the largest code of each column was found.
    largest: Vec<usize>,
    /// `[A, m]`
    attention: Vec<f32>,
    /// `[B, (2 + A) H + G]`, and the gradient by its codes `[B, (2 + A) H]`.
    pooled: Vec<f32>,
    by_pooled: Vec<f32>,
    /// `[B, K]`
    outer: Vec<f32>,
    context: Vec<f32>,
    value: Vec<f32>,
    by_outer: Vec<f32>,
    by_context: Vec<f32>,
    by_value: Vec<f32>,
    /// `[B, H]`: the context's share of the pointer's hidden layer.
    shared: Vec<f32>,
    by_shared: Vec<f32>,
    /// `[m]`
    pub(super) logits: Vec<f32>,
    pub(super) by_logits: Vec<f32>,
    /// `[B]`
    pub(super) values: Vec<f32>,
    pub(super) by_values: Vec<f32>,
}

pub(super) fn zeros(buffer: &mut Vec<f32>, len: usize) {
    buffer.clear();
    buffer.resize(len, 0.0);
}

impl Scratch {
    pub(super) fn span(&self, decision: usize) -> Range<usize> {
        self.ends[decision]..self.ends[decision + 1]
    }

    /// Gathers the chunk's observations: what they say of candidates; prior logits go to `logits`.
    fn gather(&mut self, rows: &Rows, decisions: &[usize]) {
        self.ends.clear();
        self.x.clear();
        self.logits.clear();
        self.ends.push(0);
        for decision in decisions {
            let row = rows.row(*decision);
            self.x.extend_from_slice(row.candidates);
            self.logits.extend_from_slice(row.prior);
            self.ends.push(self.logits.len());
        }
    }

    #[inline(always)]
    pub(super) fn forward<U: Unit>(&mut self, unit: U, net: &Packed<'_>, rows: &Rows, decisions: &[usize]) {
        let (h, num) = (net.layout.config.hidden, decisions.len());
        self.gather(rows, decisions);
        layer(
            unit,
            &self.x,
            &net.forward[0],
            net.of(at::ENCODER_0_BIAS),
            &mut self.first,
        );
        layer(
            unit,
            &self.first,
            &net.forward[1],
            net.of(at::ENCODER_1_BIAS),
            &mut self.encoded,
        );
        self.pool(net, rows, decisions);
        layer(
            unit,
            &self.pooled,
            &net.forward[2],
            net.of(at::CONTEXT_0_BIAS),
            &mut self.outer,
        );
        layer(
            unit,
            &self.outer,
            &net.forward[3],
            net.of(at::CONTEXT_1_BIAS),
            &mut self.context,
        );
        self.shared.clear();
        for _ in 0..num {
            self.shared.extend_from_slice(net.of(at::POINTER_BIAS));
        }
        multiply(unit, &self.context, &net.forward[5], false, &mut self.shared);
        self.hidden.clear();
        for decision in 0..num {
            let shared = &self.shared[decision * h..(decision + 1) * h];
            for _ in self.ends[decision]..self.ends[decision + 1] {
                self.hidden.extend_from_slice(shared);
            }
        }
        multiply(unit, &self.encoded, &net.forward[4], true, &mut self.hidden);
        let out = net.of(at::POINTER_OUT);
        for (logit, hidden) in self.logits.iter_mut().zip(self.hidden.chunks_exact(h)) {
            *logit += dot(hidden, out);
        }
        layer(
            unit,
            &self.context,
            &net.forward[6],
            net.of(at::VALUE_0_BIAS),
            &mut self.value,
        );
        let (out, bias) = (net.of(at::VALUE_OUT), net.of(at::VALUE_OUT_BIAS)[0]);
        self.values.clear();
        for value in self.value.chunks_exact(out.len()) {
            self.values.push(dot(value, out) + bias);
        }
    }

    /// Mean, maximum and attended means of each decision's codes, and its global features.
    #[inline(always)]
    fn pool(&mut self, net: &Packed<'_>, rows: &Rows, decisions: &[usize]) {
        let (h, heads) = (net.layout.config.hidden, net.layout.config.heads);
        let (width, m) = ((2 + heads) * h + net.layout.num_global, self.logits.len());
        zeros(&mut self.pooled, decisions.len() * width);
        zeros(&mut self.attention, heads * m);
        self.largest.clear();
        self.largest.resize(decisions.len() * h, 0);
        let pooled = self.pooled.chunks_exact_mut(width);
        for (index, (pooled, largest)) in pooled.zip(self.largest.chunks_exact_mut(h)).enumerate() {
            let span = self.ends[index]..self.ends[index + 1];
            let codes = &self.encoded[span.start * h..span.end * h];
            let (mean, rest) = pooled.split_at_mut(h);
            let (most, rest) = rest.split_at_mut(h);
            add_rows(codes, mean);
            mean.iter_mut().for_each(|mean| *mean *= 1.0 / span.len() as f32);
            most.copy_from_slice(&codes[..h]);
            largest.fill(span.start);
            for (candidate, code) in span.clone().zip(codes.chunks_exact(h)).skip(1) {
                for ((most, largest), code) in most.iter_mut().zip(largest.iter_mut()).zip(code) {
                    let larger = code > most;
                    *most = if larger { *code } else { *most };
                    *largest = if larger { candidate } else { *largest };
                }
            }
            let (attended, global) = rest.split_at_mut(heads * h);
            for (head, attended) in attended.chunks_exact_mut(h).enumerate() {
                let weights = &mut self.attention[head * m..][span.clone()];
                attend(codes, &query(net, head), weights, attended);
            }
            global.copy_from_slice(rows.row(decisions[index]).global);
        }
    }

    #[inline(always)]
    pub(super) fn backward<U: Unit>(&mut self, unit: U, net: &Packed<'_>, gradient: &mut [f32]) {
        let (h, num, m) = (net.layout.config.hidden, self.values.len(), self.logits.len());
        let range = |index: usize| net.layout.entries[index].range.clone();
        // From the logits to the pointer's hidden layer, and from there to codes and context.
        let out = net.of(at::POINTER_OUT);
        zeros(&mut self.by_hidden, m * h);
        let rows = self
            .by_hidden
            .chunks_exact_mut(h)
            .zip(self.hidden.chunks_exact(h));
        for ((by_hidden, hidden), by_logit) in rows.zip(&self.by_logits) {
            add_scaled(&mut gradient[range(at::POINTER_OUT)], *by_logit, hidden);
            add_scaled(by_hidden, *by_logit, out);
            through_rectifier(by_hidden, hidden);
        }
        accumulate(
            unit,
            &self.encoded,
            &self.by_hidden,
            h,
            &mut gradient[range(at::POINTER_CANDIDATE)],
        );
        zeros(&mut self.by_encoded, m * h);
        multiply(
            unit,
            &self.by_hidden,
            &net.backward[3],
            false,
            &mut self.by_encoded,
        );
        zeros(&mut self.by_shared, num * h);
        for (decision, by_shared) in self.by_shared.chunks_exact_mut(h).enumerate() {
            let (start, end) = (self.ends[decision], self.ends[decision + 1]);
            add_rows(&self.by_hidden[start * h..end * h], by_shared);
        }
        // From the values to the context.
        let (out, k) = (net.of(at::VALUE_OUT), net.layout.config.context);
        zeros(&mut self.by_value, num * k);
        let rows = self.by_value.chunks_exact_mut(k).zip(self.value.chunks_exact(k));
        for ((by_value, value), by) in rows.zip(&self.by_values) {
            add_scaled(&mut gradient[range(at::VALUE_OUT)], *by, value);
            add_scaled(by_value, *by, out);
            through_rectifier(by_value, value);
        }
        gradient[range(at::VALUE_OUT_BIAS)][0] += self.by_values.iter().sum::<f32>();
        accumulate(
            unit,
            &self.context,
            &self.by_value,
            k,
            &mut gradient[range(at::VALUE_0)],
        );
        add_rows(&self.by_value, &mut gradient[range(at::VALUE_0_BIAS)]);
        accumulate(
            unit,
            &self.context,
            &self.by_shared,
            h,
            &mut gradient[range(at::POINTER_CONTEXT)],
        );
        add_rows(&self.by_shared, &mut gradient[range(at::POINTER_BIAS)]);
        // Through the context to what was pooled.
        zeros(&mut self.by_context, num * k);
        multiply(
            unit,
            &self.by_value,
            &net.backward[5],
            false,
            &mut self.by_context,
        );
        multiply(
            unit,
            &self.by_shared,
            &net.backward[4],
            false,
            &mut self.by_context,
        );
        through_rectifier(&mut self.by_context, &self.context);
        accumulate(
            unit,
            &self.outer,
            &self.by_context,
            k,
            &mut gradient[range(at::CONTEXT_1)],
        );
        add_rows(&self.by_context, &mut gradient[range(at::CONTEXT_1_BIAS)]);
        zeros(&mut self.by_outer, num * k);
        multiply(
            unit,
            &self.by_context,
            &net.backward[2],
            false,
            &mut self.by_outer,
        );
        through_rectifier(&mut self.by_outer, &self.outer);
        accumulate(
            unit,
            &self.pooled,
            &self.by_outer,
            k,
            &mut gradient[range(at::CONTEXT_0)],
        );
        add_rows(&self.by_outer, &mut gradient[range(at::CONTEXT_0_BIAS)]);
        zeros(&mut self.by_pooled, num * (2 + net.layout.config.heads) * h);
        multiply(unit, &self.by_outer, &net.backward[1], false, &mut self.by_pooled);
        self.through_pool(net, &mut gradient[range(at::QUERY)]);
        // Through the encoder.
        through_rectifier(&mut self.by_encoded, &self.encoded);
        accumulate(
            unit,
            &self.first,
            &self.by_encoded,
            h,
            &mut gradient[range(at::ENCODER_1)],
        );
        add_rows(&self.by_encoded, &mut gradient[range(at::ENCODER_1_BIAS)]);
        zeros(&mut self.by_first, m * h);
        multiply(
            unit,
            &self.by_encoded,
            &net.backward[0],
            false,
            &mut self.by_first,
        );
        through_rectifier(&mut self.by_first, &self.first);
        accumulate(
            unit,
            &self.x,
            &self.by_first,
            h,
            &mut gradient[range(at::ENCODER_0)],
        );
        add_rows(&self.by_first, &mut gradient[range(at::ENCODER_0_BIAS)]);
    }

    /// From what was pooled to the codes, and to the queries.
    #[inline(always)]
    fn through_pool(&mut self, net: &Packed<'_>, by_query: &mut [f32]) {
        let (h, heads, m) = (
            net.layout.config.hidden,
            net.layout.config.heads,
            self.logits.len(),
        );
        for (decision, by_pooled) in self.by_pooled.chunks_exact((2 + heads) * h).enumerate() {
            let span = self.ends[decision]..self.ends[decision + 1];
            let share = 1.0 / span.len() as f32;
            let (by_mean, rest) = by_pooled.split_at(h);
            let (by_most, rest) = rest.split_at(h);
            let by_codes = &mut self.by_encoded[span.start * h..span.end * h];
            for by_code in by_codes.chunks_exact_mut(h) {
                add_scaled(by_code, share, by_mean);
            }
            for (head, by_attended) in rest.chunks_exact(h).enumerate() {
                let codes = &self.encoded[span.start * h..span.end * h];
                let weights = &self.attention[head * m..][span.clone()];
                let mut by_own = vec![0.0; h];
                through_attention(
                    codes,
                    &query(net, head),
                    weights,
                    by_attended,
                    by_codes,
                    &mut by_own,
                );
                let scale = 1.0 / (h as f32).sqrt();
                let places = by_query.iter_mut().skip(head).step_by(heads);
                places.zip(by_own).for_each(|(by, own)| *by += scale * own);
            }
            let largest = &self.largest[decision * h..(decision + 1) * h];
            for (column, (candidate, by)) in largest.iter().zip(by_most).enumerate() {
                by_codes[(candidate - span.start) * h + column] += by;
            }
        }
    }
}
