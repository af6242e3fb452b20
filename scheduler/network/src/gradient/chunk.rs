//! A chunk of decisions through the network and back, in buffers that are used again.

use std::ops::Range;

use crate::decision_batch::DecisionBatch;
use crate::matrix::{accumulate, add_rows, add_scaled, dot, layer, multiply, through_rectifier};
use crate::parameters::at;
use crate::simd::Simd;

use super::attention::queries;
use super::packed::Packed;
use super::pool::{Pool, zeros};

/// What a chunk of B decisions with m candidates needs; kept from chunk to chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// `[m, F]`
    x: Vec<f32>,
    /// `[m, H]`: the encoder's first layer and the pointer's hidden one, each with its gradient.
    first: Vec<f32>,
    hidden: Vec<f32>,
    by_first: Vec<f32>,
    by_hidden: Vec<f32>,
    /// The encoder's second layer, and which candidates belong to which decision.
    candidates: Pool,
    /// `[B, codes + G]`, where the codes are `(2 + A) H`, and the gradient by the codes.
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

impl Scratch {
    pub(super) fn span(&self, decision: usize) -> Range<usize> {
        self.candidates.span(decision)
    }

    /// Gathers the chunk's observations: what they say of candidates; prior logits go to `logits`.
    fn gather(&mut self, rows: &DecisionBatch, decisions: &[usize]) {
        self.x.clear();
        self.logits.clear();
        self.candidates.begin();
        for decision in decisions {
            let row = rows.get(*decision);
            self.x.extend_from_slice(row.candidates);
            self.logits.extend_from_slice(row.prior);
            self.candidates.end_at(self.logits.len());
        }
    }

    #[inline(always)]
    pub(super) fn forward<S: Simd>(
        &mut self,
        simd: S,
        net: &Packed<'_>,
        rows: &DecisionBatch,
        decisions: &[usize],
    ) {
        let (h, num) = (net.layout.config.hidden, decisions.len());
        self.gather(rows, decisions);
        layer(
            simd,
            &self.x,
            &net.forward[0],
            net.of(at::ENCODER_0_BIAS),
            &mut self.first,
        );
        layer(
            simd,
            &self.first,
            &net.forward[1],
            net.of(at::ENCODER_1_BIAS),
            &mut self.candidates.codes,
        );
        self.pool(net, rows, decisions);
        layer(
            simd,
            &self.pooled,
            &net.forward[2],
            net.of(at::CONTEXT_0_BIAS),
            &mut self.outer,
        );
        layer(
            simd,
            &self.outer,
            &net.forward[3],
            net.of(at::CONTEXT_1_BIAS),
            &mut self.context,
        );
        self.shared.clear();
        for _ in 0..num {
            self.shared.extend_from_slice(net.of(at::POINTER_BIAS));
        }
        multiply(simd, &self.context, &net.forward[5], false, &mut self.shared);
        self.hidden.clear();
        for decision in 0..num {
            let shared = &self.shared[decision * h..(decision + 1) * h];
            for _ in self.candidates.span(decision) {
                self.hidden.extend_from_slice(shared);
            }
        }
        multiply(
            simd,
            &self.candidates.codes,
            &net.forward[4],
            true,
            &mut self.hidden,
        );
        let out = net.of(at::POINTER_OUT);
        for (logit, hidden) in self.logits.iter_mut().zip(self.hidden.chunks_exact(h)) {
            *logit += dot(hidden, out);
        }
        layer(
            simd,
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

    /// What is pooled of each decision's candidates, and its global features.
    #[inline(always)]
    fn pool(&mut self, net: &Packed<'_>, rows: &DecisionBatch, decisions: &[usize]) {
        let num_codes = net.layout.num_codes();
        let width = num_codes + net.layout.num_global;
        zeros(&mut self.pooled, decisions.len() * width);
        self.candidates
            .pool(&queries(net), net.layout.config.hidden, &mut self.pooled, width);
        for (pooled, decision) in self.pooled.chunks_exact_mut(width).zip(decisions) {
            pooled[num_codes..].copy_from_slice(rows.get(*decision).global);
        }
    }

    #[inline(always)]
    pub(super) fn backward<S: Simd>(&mut self, simd: S, net: &Packed<'_>, gradient: &mut [f32]) {
        self.through_pointer(simd, net, gradient);
        self.through_value(simd, net, gradient);
        self.through_context(simd, net, gradient);
        self.through_encoder(simd, net, gradient);
    }

    /// From the logits to the pointer's hidden layer, and from there to codes and context.
    #[inline(always)]
    fn through_pointer<S: Simd>(&mut self, simd: S, net: &Packed<'_>, gradient: &mut [f32]) {
        let (h, num, m) = (net.layout.config.hidden, self.values.len(), self.logits.len());
        let range = |index: usize| net.layout.entries[index].range.clone();
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
        let (codes, by_codes) = (&self.candidates.codes, &mut self.candidates.by_codes);
        let by_weights = &mut gradient[range(at::POINTER_CANDIDATE)];
        accumulate(simd, codes, &self.by_hidden, h, by_weights);
        zeros(by_codes, m * h);
        multiply(simd, &self.by_hidden, &net.backward[3], false, by_codes);
        zeros(&mut self.by_shared, num * h);
        for (decision, by_shared) in self.by_shared.chunks_exact_mut(h).enumerate() {
            let span = self.candidates.span(decision);
            add_rows(&self.by_hidden[span.start * h..span.end * h], by_shared);
        }
    }

    /// From the values and the context's share of the pointer to the weights that read the context.
    #[inline(always)]
    fn through_value<S: Simd>(&mut self, simd: S, net: &Packed<'_>, gradient: &mut [f32]) {
        let (h, k, num) = (
            net.layout.config.hidden,
            net.layout.config.context,
            self.values.len(),
        );
        let range = |index: usize| net.layout.entries[index].range.clone();
        let out = net.of(at::VALUE_OUT);
        zeros(&mut self.by_value, num * k);
        let rows = self.by_value.chunks_exact_mut(k).zip(self.value.chunks_exact(k));
        for ((by_value, value), by) in rows.zip(&self.by_values) {
            add_scaled(&mut gradient[range(at::VALUE_OUT)], *by, value);
            add_scaled(by_value, *by, out);
            through_rectifier(by_value, value);
        }
        gradient[range(at::VALUE_OUT_BIAS)][0] += self.by_values.iter().sum::<f32>();
        let by_weights = &mut gradient[range(at::VALUE_0)];
        accumulate(simd, &self.context, &self.by_value, k, by_weights);
        add_rows(&self.by_value, &mut gradient[range(at::VALUE_0_BIAS)]);
        let by_weights = &mut gradient[range(at::POINTER_CONTEXT)];
        accumulate(simd, &self.context, &self.by_shared, h, by_weights);
        add_rows(&self.by_shared, &mut gradient[range(at::POINTER_BIAS)]);
    }

    /// Through the context to what was pooled.
    #[inline(always)]
    fn through_context<S: Simd>(&mut self, simd: S, net: &Packed<'_>, gradient: &mut [f32]) {
        let (k, num) = (net.layout.config.context, self.values.len());
        let range = |index: usize| net.layout.entries[index].range.clone();
        let (by_context, by_outer) = (&mut self.by_context, &mut self.by_outer);
        zeros(by_context, num * k);
        multiply(simd, &self.by_value, &net.backward[5], false, by_context);
        multiply(simd, &self.by_shared, &net.backward[4], false, by_context);
        through_rectifier(by_context, &self.context);
        let by_weights = &mut gradient[range(at::CONTEXT_1)];
        accumulate(simd, &self.outer, by_context, k, by_weights);
        add_rows(by_context, &mut gradient[range(at::CONTEXT_1_BIAS)]);
        zeros(by_outer, num * k);
        multiply(simd, by_context, &net.backward[2], false, by_outer);
        through_rectifier(by_outer, &self.outer);
        let by_weights = &mut gradient[range(at::CONTEXT_0)];
        accumulate(simd, &self.pooled, by_outer, k, by_weights);
        add_rows(by_outer, &mut gradient[range(at::CONTEXT_0_BIAS)]);
        zeros(&mut self.by_pooled, num * net.layout.num_codes());
        multiply(simd, by_outer, &net.backward[1], false, &mut self.by_pooled);
    }

    /// From what was pooled through the layers of candidates.
    #[inline(always)]
    fn through_encoder<S: Simd>(&mut self, simd: S, net: &Packed<'_>, gradient: &mut [f32]) {
        let (h, m) = (net.layout.config.hidden, self.logits.len());
        let range = |index: usize| net.layout.entries[index].range.clone();
        let by_query = &mut gradient[range(at::QUERY)];
        self.candidates
            .through(&queries(net), &self.by_pooled, net.layout.num_codes(), by_query);
        let (codes, by_codes) = (&self.candidates.codes, &mut self.candidates.by_codes);
        through_rectifier(by_codes, codes);
        let by_weights = &mut gradient[range(at::ENCODER_1)];
        accumulate(simd, &self.first, by_codes, h, by_weights);
        add_rows(by_codes, &mut gradient[range(at::ENCODER_1_BIAS)]);
        zeros(&mut self.by_first, m * h);
        multiply(simd, by_codes, &net.backward[0], false, &mut self.by_first);
        through_rectifier(&mut self.by_first, &self.first);
        let by_weights = &mut gradient[range(at::ENCODER_0)];
        accumulate(simd, &self.x, &self.by_first, h, by_weights);
        add_rows(&self.by_first, &mut gradient[range(at::ENCODER_0_BIAS)]);
    }
}
