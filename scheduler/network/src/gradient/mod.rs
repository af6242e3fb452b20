//! The gradient of the set network in plain Rust: the function of [`Inference`](crate::Inference), differentiated by hand.
//!
//! A tensor library makes a graph and a tensor of every intermediate result, and packs every matrix anew. Here the weights are
//! packed once for a minibatch, decisions go through in chunks that stay in a core's cache, and what a chunk needs lies in
//! buffers that are used again. Chunks have the same size whatever the number of threads and are added in order, those of a
//! large minibatch in at most sixteen parts; every sum
//! has one order (`matrix.rs`), so results depend neither on threads nor on the vector unit, apart from the system's
//! `exp` and `ln` in losses and attention.
//!
//! Held to finite differences here, and to a tensor library's gradient by the crate above.

mod attention;
mod chunk;
mod packed;
mod pool;

use std::array;

use rayon::prelude::*;

use crate::Error;
use crate::decision_batch::DecisionBatch;
use crate::error::unfit;
use crate::parameters::Layout;
use crate::simd::{Simd, Work, on_this_processor};

use chunk::Scratch;
use packed::{Packed, PackedWeights};
use pool::zeros;

/// Decisions whose gradient is computed at once by one thread: what fits a core's cache, and always the same number, so that
/// sums do not depend on the number of threads.
const CHUNK: usize = 64;

/// What gradients are computed in: kept from one minibatch to the next, because memory that comes fresh from the system for each
/// costs a fifth of the time.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    panels: PackedWeights,
    parts: Vec<Part>,
    sum: Vec<f32>,
}

impl Workspace {
    /// Keeps a sum that was computed elsewhere.
    pub fn hold(&mut self, sum: Vec<f32>) -> &mut [f32] {
        self.sum = sum;
        &mut self.sum
    }
}

/// A part of a minibatch: its share of the gradient, and what it is computed in.
#[derive(Clone, Debug, Default)]
struct Part {
    scratch: Scratch,
    gradient: Vec<f32>,
}

/// One chunk of decisions.
struct Chunk<'a, L, const N: usize> {
    net: &'a Packed<'a>,
    rows: &'a DecisionBatch,
    decisions: &'a [usize],
    loss: &'a L,
    scratch: &'a mut Scratch,
    /// What the chunk's gradient is added to.
    gradient: &'a mut [f32],
}

impl<L, const N: usize> Work for Chunk<'_, L, N>
where
    L: Fn(usize, &[f32], f32, &mut [f32]) -> (f32, [f64; N]),
{
    type Output = [f64; N];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let Chunk {
            net,
            rows,
            decisions,
            loss,
            scratch,
            gradient,
        } = self;
        scratch.forward(simd, net, rows, decisions);
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
        scratch.backward(simd, net, gradient);
        figures
    }
}

/// Parts of a minibatch that are summed on their own, at most: enough for the cores of a machine, and few against the cost of a
/// list of all parameters for each. *Assumed.*
const MAX_PARTS: usize = 16;

/// The gradient of a loss that is a sum over `decisions` of `rows`. `loss` gets a decision, its logits with the prior's and its
/// value, writes the derivatives by the logits and returns the derivative by the value and `N` figures; the figures are summed.
/// How a minibatch is cut depends on its size alone.
///
/// # Errors
/// An [`Error`] where sizes of observations or parameters are not the layout's, or a decision has no candidate.
pub fn sum_of_gradients<'a, const N: usize>(
    (layout, workspace): (&Layout, &'a mut Workspace),
    parameters: &[f32],
    rows: &DecisionBatch,
    decisions: &[usize],
    loss: impl Fn(usize, &[f32], f32, &mut [f32]) -> (f32, [f64; N]) + Sync,
) -> Result<(&'a mut [f32], [f64; N]), Error> {
    check(layout, parameters, rows, decisions.iter().copied())?;
    let Workspace { panels, parts, sum } = workspace;
    let net = Packed::new(layout, parameters, panels);
    let share = CHUNK * decisions.len().div_ceil(CHUNK * MAX_PARTS).max(1);
    let num_parts = decisions.len().div_ceil(share);
    parts.resize_with(num_parts.max(parts.len()), Part::default);
    let figures: Vec<[f64; N]> = decisions
        .par_chunks(share)
        .zip(&mut parts[..num_parts])
        .map(|(decisions, Part { scratch, gradient })| {
            zeros(gradient, parameters.len());
            let mut figures = [0.0; N];
            for decisions in decisions.chunks(CHUNK) {
                let terms = on_this_processor(Chunk {
                    net: &net,
                    rows,
                    decisions,
                    loss: &loss,
                    scratch,
                    gradient,
                });
                figures.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
            }
            figures
        })
        .collect();
    zeros(sum, parameters.len());
    for part in &parts[..num_parts] {
        sum.iter_mut()
            .zip(&part.gradient)
            .for_each(|(sum, part)| *sum += part);
    }
    let figures = figures.into_iter().fold([0.0; N], |sums, terms| {
        array::from_fn(|index| sums[index] + terms[index])
    });
    Ok((sum, figures))
}

/// Sizes agree, and each of `decisions` has a candidate.
///
/// # Errors
/// An [`Error`] with both sides.
pub fn check(
    layout: &Layout,
    parameters: &[f32],
    rows: &DecisionBatch,
    mut decisions: impl Iterator<Item = usize>,
) -> Result<(), Error> {
    rows.check(layout.num_global, layout.num_features)?;
    let (expected, found) = (layout.num_parameters(), parameters.len());
    if expected != found {
        return Err(unfit("number of parameters", expected, found));
    }
    let empty = decisions.find(|decision| rows.span(*decision).is_empty());
    empty.map_or(Ok(()), |decision| {
        let found = format!("0 in decision {decision}");
        Err(unfit("admissible candidates", "at least 1", found))
    })
}

#[cfg(test)]
mod tests;
