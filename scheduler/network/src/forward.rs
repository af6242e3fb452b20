//! The set network's forward pass in plain Rust: no tensors and no allocation, for rollouts and deployment.
//!
//! At a batch of one decision a tensor library spends its time on bookkeeping. Here the weights are packed once into
//! panels of eight output columns, and a layer keeps four candidates times eight columns in registers, in loops that
//! the compiler turns into vector code, for each kind of vector unit. Every sum runs in the same order whatever else is
//! computed, and a product is rounded before it is added, so the result does not depend on threads, batches or on the
//! vector unit. The context's share of the pointer's hidden layer is computed once per decision.

use crate::Error;
use crate::decision_batch::DecisionRef;
use crate::error::unfit;
use crate::graph::{self, Program};
use crate::parameters::{LANES, Layout, at};
use pleach_scheduler::portable_math::exp_f32;

/// Candidates that a layer works on at once.
const BLOCK: usize = 4;

/// A dense layer, packed.
#[derive(Clone, Debug)]
struct Dense {
    inputs: usize,
    outputs: usize,
    /// `[outputs / 8, inputs]` times eight columns.
    panels: Vec<[f32; LANES]>,
    bias: Vec<f32>,
}

impl Dense {
    /// `weight` is `[inputs, outputs]`.
    fn pack(weight: &[f32], inputs: usize, bias: &[f32]) -> Dense {
        let outputs = weight.len() / inputs;
        debug_assert_eq!((weight.len(), outputs % LANES), (inputs * outputs, 0));
        let mut panels = Vec::with_capacity(weight.len() / LANES);
        for column in (0..outputs).step_by(LANES) {
            for input in 0..inputs {
                let start = input * outputs + column;
                let mut lanes = [0.0; LANES];
                lanes.copy_from_slice(&weight[start..start + LANES]);
                panels.push(lanes);
            }
        }
        Dense {
            inputs,
            outputs,
            panels,
            bias: bias.to_vec(),
        }
    }

    /// `out = x weight + bias` for the rows of `x`, through a rectifier where `rectify`. `bias` replaces the layer's.
    #[inline(always)]
    fn apply(&self, x: &[f32], bias: &[f32], rectify: bool, out: &mut [f32]) {
        let num = x.len() / self.inputs;
        let whole = num / BLOCK * BLOCK;
        let (x_of, out_of) = (self.inputs, self.outputs);
        for row in (0..whole).step_by(BLOCK) {
            let rows = &x[row * x_of..][..BLOCK * x_of];
            self.four_rows(rows, bias, rectify, &mut out[row * out_of..][..BLOCK * out_of]);
        }
        for row in whole..num {
            self.one_row(
                &x[row * x_of..][..x_of],
                bias,
                rectify,
                &mut out[row * out_of..][..out_of],
            );
        }
    }

    /// Four named running sums and zipped rows, because indices and nested arrays keep the sums out of registers.
    #[inline(always)]
    fn four_rows(&self, x: &[f32], bias: &[f32], rectify: bool, out: &mut [f32]) {
        let (x_0, x) = x.split_at(self.inputs);
        let (x_1, x) = x.split_at(self.inputs);
        let (x_2, x_3) = x.split_at(self.inputs);
        for (index, bias) in bias.as_chunks::<LANES>().0.iter().enumerate() {
            let panel = self.panel(index);
            let (mut sum_0, mut sum_1, mut sum_2, mut sum_3) = (*bias, *bias, *bias, *bias);
            for ((((weights, a), b), c), d) in panel.iter().zip(x_0).zip(x_1).zip(x_2).zip(x_3) {
                add_scaled(&mut sum_0, *a, weights);
                add_scaled(&mut sum_1, *b, weights);
                add_scaled(&mut sum_2, *c, weights);
                add_scaled(&mut sum_3, *d, weights);
            }
            for (row, sum) in [sum_0, sum_1, sum_2, sum_3].iter().enumerate() {
                let start = row * self.outputs + index * LANES;
                store(sum, rectify, &mut out[start..start + LANES]);
            }
        }
    }

    #[inline(always)]
    fn one_row(&self, x: &[f32], bias: &[f32], rectify: bool, out: &mut [f32]) {
        for (index, bias) in bias.as_chunks::<LANES>().0.iter().enumerate() {
            let mut sum = *bias;
            for (weights, value) in self.panel(index).iter().zip(x) {
                add_scaled(&mut sum, *value, weights);
            }
            store(&sum, rectify, &mut out[index * LANES..][..LANES]);
        }
    }

    /// Eight columns of the weights. Lists are cut by hand and not zipped chunk by chunk: to pair chunks of a length that is not
    /// known is a division and a call out of the vector code.
    #[inline(always)]
    fn panel(&self, index: usize) -> &[[f32; LANES]] {
        &self.panels[index * self.inputs..][..self.inputs]
    }
}

/// `sum += value * weights`
#[inline(always)]
fn add_scaled(sum: &mut [f32; LANES], value: f32, weights: &[f32; LANES]) {
    for (sum, weight) in sum.iter_mut().zip(weights) {
        *sum += value * weight;
    }
}

#[inline(always)]
fn store(sum: &[f32; LANES], rectify: bool, out: &mut [f32]) {
    for (out, sum) in out.iter_mut().zip(sum) {
        *out = if rectify { sum.max(0.0) } else { *sum };
    }
}

/// Sum of products in eight running sums, added in a fixed order. The lengths are equal multiples of eight.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, b) = (a.as_chunks::<LANES>().0, b.as_chunks::<LANES>().0);
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a.iter().zip(b) {
        add_products(&mut sums, a, b);
    }
    let [first, rest @ ..] = sums;
    let mut total = first;
    for sum in rest {
        total += sum;
    }
    total
}

/// `sum += a * b`
#[inline(always)]
fn add_products(sum: &mut [f32; LANES], a: &[f32; LANES], b: &[f32; LANES]) {
    for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
        *sum += a * b;
    }
}

/// Buffers of one forward pass; one per thread.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    first: Vec<f32>,
    encoded: Vec<f32>,
    attention: Vec<f32>,
    pooled: Vec<f32>,
    context: [Vec<f32>; 2],
    shared: Vec<f32>,
    value: Vec<f32>,
    graph: graph::Workspace,
}

/// A network, packed for inference.
#[derive(Clone, Debug)]
pub struct Inference {
    layout: Layout,
    kind: Kind,
}

/// How it computes.
#[derive(Clone, Debug)]
enum Kind {
    Set(Box<SetNetwork>),
    Graph(Box<Program>),
}

/// The set network.
#[derive(Clone, Debug)]
struct SetNetwork {
    hidden: usize,
    num_codes: usize,
    encoder: [Dense; 2],
    /// One query for each head, over the root of H. `[A, H]`
    queries: Vec<f32>,
    context: [Dense; 2],
    pointer_candidate: Dense,
    pointer_context: Dense,
    pointer_out: Vec<f32>,
    value: Dense,
    value_out: Vec<f32>,
    value_bias: f32,
}

impl Inference {
    /// Packs the flat list of parameters.
    ///
    /// # Errors
    /// An [`Error`] where `parameters` has another length than the layout; as [`Program::new`] for operators.
    pub fn new(layout: &Layout, parameters: &[f32]) -> Result<Inference, Error> {
        let kind = match &layout.graph {
            Some(graph) => Kind::Graph(Box::new(Program::new(graph, parameters)?)),
            None => Kind::Set(Box::new(SetNetwork::new(layout, parameters)?)),
        };
        Ok(Inference {
            layout: layout.clone(),
            kind,
        })
    }

    /// Names and shapes of the parameters.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Buffers for decisions of up to `num_candidates` candidates; they grow where there are more.
    #[must_use]
    pub fn scratch(&self, num_candidates: usize) -> Scratch {
        if self.layout.graph.is_some() {
            return Scratch::default();
        }
        let (h, k) = (self.layout.config.hidden, self.layout.config.context);
        Scratch {
            first: vec![0.0; num_candidates * h],
            encoded: vec![0.0; num_candidates * h],
            attention: vec![0.0; num_candidates],
            pooled: vec![0.0; self.layout.num_codes() + self.layout.num_global],
            context: [vec![0.0; k], vec![0.0; k]],
            shared: vec![0.0; h],
            value: vec![0.0; k],
            graph: graph::Workspace::default(),
        }
    }

    /// Writes one logit per candidate into `logits` `[n]` and returns the value in the head's own (normalised) unit, which is 0
    /// for a network that has none. Without candidates the value is that of an empty set. Operators that fail give NaN, which
    /// every caller that decides refuses.
    pub fn forward(&self, row: DecisionRef<'_>, scratch: &mut Scratch, logits: &mut [f32]) -> f32 {
        match &self.kind {
            Kind::Set(network) => pulp::Arch::new().dispatch(ForwardPass {
                network,
                row,
                scratch,
                logits,
            }),
            Kind::Graph(program) => {
                let logits = &mut logits[..row.num_candidates];
                let ran = program.run(row.candidates, row.global, &mut scratch.graph, logits);
                match ran {
                    Ok(value) => {
                        logits
                            .iter_mut()
                            .zip(row.prior)
                            .for_each(|(logit, prior)| *logit += prior);
                        value.unwrap_or(0.0)
                    }
                    Err(_) => {
                        logits.fill(f32::NAN);
                        f32::NAN
                    }
                }
            }
        }
    }

    /// As [`Inference::forward`] of the set network, compiled for any processor.
    #[cfg(test)]
    pub(crate) fn forward_anywhere(
        &self,
        row: DecisionRef<'_>,
        scratch: &mut Scratch,
        logits: &mut [f32],
    ) -> f32 {
        match &self.kind {
            Kind::Set(network) => network.pass(row, scratch, logits),
            Kind::Graph(_) => f32::NAN,
        }
    }
}

impl SetNetwork {
    fn new(layout: &Layout, parameters: &[f32]) -> Result<SetNetwork, Error> {
        if parameters.len() != layout.num_parameters() {
            return Err(unfit(
                "number of parameters",
                layout.num_parameters(),
                parameters.len(),
            ));
        }
        let dense = |weight: usize, bias: usize| {
            let bias = layout.slice(parameters, bias);
            Dense::pack(
                layout.slice(parameters, weight),
                layout.entries[weight].shape[0],
                bias,
            )
        };
        let candidate = layout.slice(parameters, at::POINTER_CANDIDATE);
        Ok(SetNetwork {
            hidden: layout.config.hidden,
            num_codes: layout.num_codes(),
            encoder: [
                dense(at::ENCODER_0, at::ENCODER_0_BIAS),
                dense(at::ENCODER_1, at::ENCODER_1_BIAS),
            ],
            queries: queries(layout, parameters),
            context: [
                dense(at::CONTEXT_0, at::CONTEXT_0_BIAS),
                dense(at::CONTEXT_1, at::CONTEXT_1_BIAS),
            ],
            pointer_candidate: Dense::pack(candidate, layout.config.hidden, &[]),
            pointer_context: dense(at::POINTER_CONTEXT, at::POINTER_BIAS),
            pointer_out: layout.slice(parameters, at::POINTER_OUT).to_vec(),
            value: dense(at::VALUE_0, at::VALUE_0_BIAS),
            value_out: layout.slice(parameters, at::VALUE_OUT).to_vec(),
            value_bias: layout.slice(parameters, at::VALUE_OUT_BIAS)[0],
        })
    }

    #[inline(always)]
    fn pass(&self, row: DecisionRef<'_>, scratch: &mut Scratch, logits: &mut [f32]) -> f32 {
        let (n, h) = (row.num_candidates, self.hidden);
        if scratch.encoded.len() < n * h {
            scratch.first.resize(n * h, 0.0);
            scratch.encoded.resize(n * h, 0.0);
            scratch.attention.resize(n, 0.0);
        }
        let (first, encoded) = (&mut scratch.first[..n * h], &mut scratch.encoded[..n * h]);
        self.encoder[0].apply(row.candidates, &self.encoder[0].bias, true, first);
        self.encoder[1].apply(first, &self.encoder[1].bias, true, encoded);
        let (pooled, global) = scratch.pooled.split_at_mut(self.num_codes);
        pool(encoded, h, &self.queries, &mut scratch.attention, pooled);
        global.copy_from_slice(row.global);
        let [outer, context] = &mut scratch.context;
        self.context[0].apply(&scratch.pooled, &self.context[0].bias, true, outer);
        self.context[1].apply(outer, &self.context[1].bias, true, context);
        self.pointer_context
            .apply(context, &self.pointer_context.bias, false, &mut scratch.shared);
        self.pointer_candidate
            .apply(encoded, &scratch.shared, true, first);
        for (index, (logit, prior)) in logits[..n].iter_mut().zip(row.prior).enumerate() {
            *logit = dot(&first[index * h..][..h], &self.pointer_out) + prior;
        }
        self.value
            .apply(context, &self.value.bias, true, &mut scratch.value);
        dot(&scratch.value, &self.value_out) + self.value_bias
    }
}

/// One forward pass, compiled once for each kind of vector unit and dispatched at run time.
struct ForwardPass<'a> {
    network: &'a SetNetwork,
    row: DecisionRef<'a>,
    scratch: &'a mut Scratch,
    logits: &'a mut [f32],
}

impl pulp::WithSimd for ForwardPass<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> f32 {
        self.network.pass(self.row, self.scratch, self.logits)
    }
}

/// The queries, row by row, each over the root of H.
fn queries(layout: &Layout, parameters: &[f32]) -> Vec<f32> {
    let (heads, h) = (layout.config.heads, layout.config.hidden);
    let weights = layout.slice(parameters, at::QUERY);
    let scale = 1.0 / (h as f32).sqrt();
    let places = (0..heads).flat_map(|head| (0..h).map(move |code| code * heads + head));
    places.map(|place| weights[place] * scale).collect()
}

/// Mean over the rows of `encoded` `[n, h]`, weighted by the softmax of their products with `query`; zero without rows.
#[inline(always)]
fn attend(encoded: &[f32], query: &[f32], weights: &mut [f32], out: &mut [f32]) {
    out.fill(0.0);
    let h = query.len();
    let mut largest = f32::NEG_INFINITY;
    for (index, weight) in weights.iter_mut().enumerate() {
        *weight = dot(&encoded[index * h..][..h], query);
        largest = largest.max(*weight);
    }
    let mut total = 0.0;
    for (index, weight) in weights.iter_mut().enumerate() {
        *weight = exp_f32(*weight - largest);
        total += *weight;
        add_all(out, *weight, &encoded[index * h..][..h]);
    }
    if total > 0.0 {
        out.iter_mut().for_each(|out| *out /= total);
    }
}

/// `sum += value * row`
#[inline(always)]
fn add_all(sum: &mut [f32], value: f32, row: &[f32]) {
    for (sum, code) in sum.iter_mut().zip(row) {
        *sum += value * code;
    }
}

/// Mean, maximum and attended means over the rows of `encoded` `[n, h]` into `pooled` `[(2 + A) h]`; zero without rows.
#[inline(always)]
fn pool(encoded: &[f32], h: usize, queries: &[f32], weights: &mut [f32], pooled: &mut [f32]) {
    pooled.fill(0.0);
    let (mean, rest) = pooled.split_at_mut(h);
    let (max, attended) = rest.split_at_mut(h);
    for row in encoded.chunks_exact(h) {
        for ((mean, max), value) in mean.iter_mut().zip(max.iter_mut()).zip(row) {
            *mean += value;
            // Codes come out of a rectifier, so zero is a lower bound.
            *max = max.max(*value);
        }
    }
    let num_rows = (encoded.len() / h).max(1) as f32;
    for mean in mean {
        *mean /= num_rows;
    }
    let weights = &mut weights[..encoded.len() / h];
    for head in 0..queries.len() / h {
        let (query, out) = (&queries[head * h..][..h], &mut attended[head * h..][..h]);
        attend(encoded, query, weights, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{HEADS, PLAIN, decisions, network_of};

    #[test]
    fn inference_has_the_same_bits_on_every_vector_unit() {
        for heads in HEADS {
            let ((layout, parameters), rows) = (network_of(PLAIN, heads), decisions(PLAIN, 30));
            let inference = Inference::new(&layout, &parameters).unwrap();
            let mut scratch = inference.scratch(1);
            for decision in 0..30 {
                let (mut here, mut anywhere) = ([0.0; 9], [0.0; 9]);
                let row = rows.get(decision);
                let value = inference.forward(row, &mut scratch, &mut here);
                let other = inference.forward_anywhere(row, &mut scratch, &mut anywhere);
                assert_eq!(value.to_bits(), other.to_bits());
                assert_eq!(here.map(f32::to_bits), anywhere.map(f32::to_bits));
            }
        }
    }

    #[test]
    fn logits_move_with_their_candidates_and_the_value_does_not_care() {
        for heads in HEADS {
            let ((layout, parameters), rows) = (network_of(PLAIN, heads), decisions(PLAIN, 9));
            let inference = Inference::new(&layout, &parameters).unwrap();
            let (mut scratch, mut straight, mut turned) = (inference.scratch(9), [0.0; 9], [0.0; 9]);
            let row = DecisionRef {
                prior: &[0.0; 9],
                ..rows.get(8)
            };
            let value = inference.forward(row, &mut scratch, &mut straight);
            let reversed: Vec<f32> = row.candidates.chunks_exact(5).rev().flatten().copied().collect();
            let row = DecisionRef {
                candidates: &reversed,
                ..row
            };
            let near = |a: f32, b: f32| (a - b).abs() < 2e-6 * (1.0 + a.abs());
            assert!(near(value, inference.forward(row, &mut scratch, &mut turned)));
            for (a, b) in straight.iter().zip(turned.iter().rev()) {
                assert!(near(*a, *b), "{a} {b}");
            }
        }
    }
}
