//! The gradient of the set network in plain Rust: the same function as [`crate::network`], differentiated by hand.
//!
//! A tensor library makes a graph and a tensor of every intermediate result, and packs every matrix anew. Here the weights are
//! packed once for a minibatch, decisions go through in chunks that stay in a core's cache, and what a chunk needs lies in
//! buffers that are used again. Chunks have the same size whatever the number of threads and are added in order; every sum
//! has one order ([`crate::matrix`]), so results depend neither on threads nor on the vector unit, apart from the system's
//! `exp` and `ln` in losses and attention.
//!
//! Held to Burn's gradient, which is held to finite differences. It differs from it in the last bits, so a run is one or the
//! other: [`crate::ppo::Gradients`].

use std::ops::Range;

use rayon::prelude::*;

use crate::error::Error;
use crate::matrix::{
    Panels, Unit, Work, accumulate, add_rows, add_scaled, dot, multiply, on_this_processor, through_rectifier,
};
use crate::network::{CHUNK, check};
use crate::parameters::{Layout, at};
use crate::rows::Rows;

/// The weights of one minibatch, packed for both directions.
struct Packed<'a> {
    layout: &'a Layout,
    flat: &'a [f32],
    forward: [Panels; 7],
    /// The same transposed, but for the first layer, whose inputs have no gradient; of the first of the context, the part
    /// that sees codes.
    backward: [Panels; 6],
}

/// Layers in the order of [`Packed::forward`]; those of [`Packed::backward`] begin with the second.
const LAYERS: [usize; 7] = [
    at::ENCODER_0,
    at::ENCODER_1,
    at::CONTEXT_0,
    at::CONTEXT_1,
    at::POINTER_CANDIDATE,
    at::POINTER_CONTEXT,
    at::VALUE_0,
];

impl<'a> Packed<'a> {
    fn new(layout: &'a Layout, flat: &'a [f32]) -> Packed<'a> {
        let codes = (2 + layout.config.heads) * layout.config.hidden;
        let transposed = |layer: usize| {
            let [inputs, outputs] = layout.entries[layer].shape;
            let rows = if layer == at::CONTEXT_0 { codes } else { inputs };
            Panels::transposed(layout.slice(flat, layer), outputs, rows)
        };
        Packed {
            forward: LAYERS
                .map(|layer| Panels::of(layout.slice(flat, layer), layout.entries[layer].shape[1])),
            backward: std::array::from_fn(|index| transposed(LAYERS[index + 1])),
            layout,
            flat,
        }
    }

    fn of(&self, index: usize) -> &'a [f32] {
        self.layout.slice(self.flat, index)
    }
}

/// What a chunk of B decisions with m candidates needs; kept from chunk to chunk.
#[derive(Default)]
struct Scratch {
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
    logits: Vec<f32>,
    by_logits: Vec<f32>,
    /// `[B]`
    values: Vec<f32>,
    by_values: Vec<f32>,
}

fn zeros(buffer: &mut Vec<f32>, len: usize) {
    buffer.clear();
    buffer.resize(len, 0.0);
}

/// `len` times the same row.
fn repeated(buffer: &mut Vec<f32>, row: &[f32], len: usize) {
    buffer.clear();
    (0..len).for_each(|_| buffer.extend_from_slice(row));
}

impl Scratch {
    fn span(&self, decision: usize) -> Range<usize> {
        self.ends[decision]..self.ends[decision + 1]
    }

    /// Gathers the chunk's observations: what they say of candidates; prior logits go to `logits`.
    fn gather(&mut self, rows: &Rows, decisions: &[usize]) {
        (self.ends.clear(), self.x.clear(), self.logits.clear());
        self.ends.push(0);
        for decision in decisions {
            let row = rows.row(*decision);
            self.x.extend_from_slice(row.candidates);
            self.logits.extend_from_slice(row.prior);
            self.ends.push(self.logits.len());
        }
    }

    #[inline(always)]
    fn forward<U: Unit>(&mut self, unit: U, net: &Packed<'_>, rows: &Rows, decisions: &[usize]) {
        let (h, num) = (net.layout.config.hidden, decisions.len());
        self.gather(rows, decisions);
        let m = self.logits.len();
        repeated(&mut self.first, net.of(at::ENCODER_0_BIAS), m);
        multiply(unit, &self.x, &net.forward[0], true, &mut self.first);
        repeated(&mut self.encoded, net.of(at::ENCODER_1_BIAS), m);
        multiply(unit, &self.first, &net.forward[1], true, &mut self.encoded);
        self.pool(net, rows, decisions);
        repeated(&mut self.outer, net.of(at::CONTEXT_0_BIAS), num);
        multiply(unit, &self.pooled, &net.forward[2], true, &mut self.outer);
        repeated(&mut self.context, net.of(at::CONTEXT_1_BIAS), num);
        multiply(unit, &self.outer, &net.forward[3], true, &mut self.context);
        repeated(&mut self.shared, net.of(at::POINTER_BIAS), num);
        multiply(unit, &self.context, &net.forward[5], false, &mut self.shared);
        self.hidden.clear();
        for decision in 0..num {
            let shared = &self.shared[decision * h..(decision + 1) * h];
            self.span(decision)
                .for_each(|_| self.hidden.extend_from_slice(shared));
        }
        multiply(unit, &self.encoded, &net.forward[4], true, &mut self.hidden);
        let out = net.of(at::POINTER_OUT);
        let hidden = self.hidden.chunks_exact(h);
        self.logits
            .iter_mut()
            .zip(hidden)
            .for_each(|(logit, hidden)| *logit += dot(hidden, out));
        repeated(&mut self.value, net.of(at::VALUE_0_BIAS), num);
        multiply(unit, &self.context, &net.forward[6], true, &mut self.value);
        let (out, bias) = (net.of(at::VALUE_OUT), net.of(at::VALUE_OUT_BIAS)[0]);
        self.values.clear();
        self.values.extend(
            self.value
                .chunks_exact(out.len())
                .map(|value| dot(value, out) + bias),
        );
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
    fn backward<U: Unit>(&mut self, unit: U, net: &Packed<'_>, gradient: &mut [f32]) {
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
            by_codes
                .chunks_exact_mut(h)
                .for_each(|by_code| add_scaled(by_code, share, by_mean));
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

/// A head's query over the root of H.
fn query(net: &Packed<'_>, head: usize) -> Vec<f32> {
    let (h, heads) = (net.layout.config.hidden, net.layout.config.heads);
    let scale = 1.0 / (h as f32).sqrt();
    net.of(at::QUERY)
        .iter()
        .skip(head)
        .step_by(heads)
        .map(|weight| weight * scale)
        .collect()
}

/// Softmax of the products with the query into `weights`, and the mean that they give.
#[inline(always)]
fn attend(codes: &[f32], query: &[f32], weights: &mut [f32], out: &mut [f32]) {
    let rows = || codes.chunks_exact(query.len());
    weights
        .iter_mut()
        .zip(rows())
        .for_each(|(weight, code)| *weight = dot(code, query));
    let largest = weights.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
    weights
        .iter_mut()
        .for_each(|weight| *weight = (*weight - largest).exp());
    let total: f32 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    weights
        .iter()
        .zip(rows())
        .for_each(|(weight, code)| add_scaled(out, *weight, code));
}

/// With weights w = softmax(s), s = codes query and mean = sum w code: `d code = w d mean + d s query` and
/// `d query = sum d s code`, where `d s = w (d mean code - sum w (d mean code))`.
#[inline(always)]
fn through_attention(
    codes: &[f32],
    query: &[f32],
    weights: &[f32],
    by_mean: &[f32],
    by_codes: &mut [f32],
    by_query: &mut [f32],
) {
    let rows = || codes.chunks_exact(query.len()).zip(weights);
    let mean: f32 = rows().map(|(code, weight)| weight * dot(code, by_mean)).sum();
    for ((code, weight), by_code) in rows().zip(by_codes.chunks_exact_mut(query.len())) {
        let by_score = weight * (dot(code, by_mean) - mean);
        add_scaled(by_code, *weight, by_mean);
        add_scaled(by_code, by_score, query);
        add_scaled(by_query, by_score, code);
    }
}

/// One chunk of decisions.
struct Chunk<'a, L, const N: usize> {
    net: &'a Packed<'a>,
    rows: &'a Rows,
    decisions: &'a [usize],
    loss: &'a L,
    scratch: &'a mut Scratch,
}

impl<L, const N: usize> Work for Chunk<'_, L, N>
where
    L: Fn(usize, &[f32], f32, &mut [f32]) -> (f32, [f64; N]),
{
    type Output = (Vec<f32>, [f64; N]);

    #[inline(always)]
    fn run<U: Unit>(self, unit: U) -> Self::Output {
        let Chunk {
            net,
            rows,
            decisions,
            loss,
            scratch,
        } = self;
        scratch.forward(unit, net, rows, decisions);
        let mut figures = [0.0; N];
        zeros(&mut scratch.by_logits, scratch.logits.len());
        scratch.by_values.clear();
        for (position, decision) in decisions.iter().enumerate() {
            let span = scratch.span(position);
            let (logits, value) = (&scratch.logits[span.clone()], scratch.values[position]);
            let (by_value, terms) = loss(*decision, logits, value, &mut scratch.by_logits[span]);
            scratch.by_values.push(by_value);
            figures.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
        let mut gradient = vec![0.0; net.flat.len()];
        scratch.backward(unit, net, &mut gradient);
        (gradient, figures)
    }
}

/// As [`crate::network::sum_of_gradients`], in plain Rust.
///
/// # Errors
/// [`Error::Contract`] where sizes of observations or parameters are not the layout's.
pub fn sum_of_gradients<const N: usize>(
    layout: &Layout,
    flat: &[f32],
    rows: &Rows,
    decisions: &[usize],
    loss: impl Fn(usize, &[f32], f32, &mut [f32]) -> (f32, [f64; N]) + Sync,
) -> Result<(Vec<f32>, [f64; N]), Error> {
    check(layout, flat, rows, decisions.iter().copied())?;
    let net = Packed::new(layout, flat);
    let parts: Vec<_> = decisions
        .par_chunks(CHUNK)
        .map_init(Scratch::default, |scratch, decisions| {
            on_this_processor(Chunk {
                net: &net,
                rows,
                decisions,
                loss: &loss,
                scratch,
            })
        })
        .collect();
    let (mut sum, mut figures) = (vec![0.0; flat.len()], [0.0; N]);
    for (part, terms) in parts {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        figures.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
    Ok((sum, figures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network;
    use crate::parameters::{NetworkConfig, uniform};
    use pleach_env::seed::Seed;
    use pleach_env::vector::Spaces;

    /// Sizes that are no multiples of anything, and decisions of 1 to 9 candidates.
    const SPACES: Spaces = Spaces {
        num_global: 3,
        num_candidates: 9,
        num_features: 5,
    };

    fn network_and_rows(hidden: usize, heads: usize, num_decisions: usize) -> (Layout, Vec<f32>, Rows) {
        let layout = Layout::new(
            NetworkConfig {
                hidden,
                context: 24,
                heads,
            },
            SPACES,
        )
        .unwrap();
        let mut random = Seed(5).stream("test", 0);
        let mut draw = |n: usize| {
            (0..n)
                .map(|_| 2.0 * uniform(&mut random) as f32 - 1.0)
                .collect::<Vec<_>>()
        };
        let mut flat = layout.initial(Seed(3));
        let shifts = draw(flat.len());
        flat.iter_mut()
            .zip(shifts)
            .for_each(|(weight, shift)| *weight += 0.2 * shift);
        let mut rows = Rows::new(SPACES);
        for decision in 0..num_decisions {
            let n = 1 + decision % 9;
            let (global, candidates, prior) = (draw(3), draw(n * 5), draw(n));
            rows.push(&global, &candidates, &vec![true; n]);
            rows.set_prior(&prior, &vec![true; n]);
        }
        (layout, flat, rows)
    }

    /// A loss whose derivatives depend on all that a loss sees.
    fn loss(decision: usize, logits: &[f32], value: f32, by_logits: &mut [f32]) -> (f32, [f64; 2]) {
        for (index, (by, logit)) in by_logits.iter_mut().zip(logits).enumerate() {
            *by = logit + (decision + index) as f32 % 3.0 - 1.0;
        }
        let sum = logits.iter().map(|logit| f64::from(*logit)).sum();
        (value - decision as f32 % 5.0, [sum, f64::from(value)])
    }

    #[test]
    fn the_gradient_is_burns_with_and_without_attention() {
        for (hidden, heads) in [(16, 0), (8, 1), (24, 3)] {
            let (layout, flat, rows) = network_and_rows(hidden, heads, 150);
            let decisions: Vec<usize> = (0..150).rev().collect();
            let (ours, figures) = sum_of_gradients(&layout, &flat, &rows, &decisions, loss).unwrap();
            let (burns, wanted) = network::sum_of_gradients(&layout, &flat, &rows, &decisions, loss).unwrap();
            for entry in &layout.entries {
                let (ours, burns) = (&ours[entry.range.clone()], &burns[entry.range.clone()]);
                let size = burns.iter().fold(0.0_f32, |most, by| most.max(by.abs()));
                assert!(burns.is_empty() || size > 0.0, "{} has no gradient", entry.name);
                for (ours, burns) in ours.iter().zip(burns) {
                    assert!(
                        (ours - burns).abs() <= 2e-5 * size,
                        "{}: {ours} {burns} of {size}",
                        entry.name
                    );
                }
            }
            for (figure, wanted) in figures.iter().zip(wanted) {
                assert!((figure - wanted).abs() < 1e-3, "{figure} {wanted}");
            }
        }
    }

    #[test]
    fn the_gradient_does_not_depend_on_the_number_of_threads() {
        let (layout, flat, rows) = network_and_rows(16, 2, 300);
        let decisions: Vec<usize> = (0..300).collect();
        let on = |num_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(num_threads)
                .build()
                .unwrap();
            pool.install(|| sum_of_gradients(&layout, &flat, &rows, &decisions, loss))
                .unwrap()
        };
        let one = on(1);
        assert_eq!(one, on(2));
        assert_eq!(one, on(4));
    }

    #[test]
    fn a_decision_without_candidates_is_an_error() {
        let (layout, flat, mut rows) = network_and_rows(8, 0, 2);
        rows.push(&[0.0; 3], &[0.0; 5], &[false]);
        let error = sum_of_gradients(&layout, &flat, &rows, &[0, 2], loss).unwrap_err();
        assert!(error.to_string().contains("0 in decision 2"), "{error}");
        assert!(sum_of_gradients(&layout, &flat, &rows, &[0, 1], loss).is_ok());
    }
}
