//! Products of small matrices in plain Rust: what a gradient of the set network is made of.
//!
//! Matrices here have some hundreds of rows and 8 to a few hundred columns. At these sizes a general product spends much of
//! its time on packing and bookkeeping; here weights are packed once for a minibatch, and six rows times sixteen columns of a
//! product stay in registers. A sum runs over its terms in order, by fused multiply-adds, and begins with what the result
//! held before. So results do not depend on threads, on how rows are cut into blocks, or on the vector unit.

#![allow(
    clippy::needless_range_loop,
    reason = "indices that the compiler knows keep sums in registers, and closures are compiled for any processor"
)]

use std::array;

use crate::parameters::LANES;
use crate::simd::{Simd, Work, on_this_processor};

/// Rows of a product that are kept in registers, by sixteen columns: twelve sums that do not wait for each other.
const TILE: usize = 6;
/// Rows of a result of [`accumulate`] that are kept in registers.
const STRIP: usize = 4;
/// Rows over which [`accumulate`] sums before it goes to other columns: they fit the first cache.
const ROWS: usize = 32;

/// A matrix `[inputs, outputs]` in panels of eight columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panels {
    inputs: usize,
    outputs: usize,
    /// `[outputs / 8, inputs]` times eight columns.
    panels: Vec<[f32; LANES]>,
}

impl Panels {
    /// A row-major matrix of `outputs` columns, a multiple of eight.
    #[cfg(test)]
    pub(crate) fn of(weights: &[f32], outputs: usize) -> Panels {
        let mut panels = Panels::default();
        panels.pack(weights, outputs);
        panels
    }

    /// Takes in a row-major matrix of `outputs` columns, a multiple of eight, in place of what was there.
    pub(crate) fn pack(&mut self, weights: &[f32], outputs: usize) {
        debug_assert_eq!(outputs % LANES, 0);
        (self.inputs, self.outputs) = (weights.len() / outputs, outputs);
        self.panels.clear();
        for column in (0..outputs).step_by(LANES) {
            let rows = weights.chunks_exact(outputs);
            self.panels.extend(rows.map(|row| *lanes(row, column)));
        }
    }

    /// Rows and columns of the matrix.
    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.inputs, self.outputs)
    }

    /// Takes in the first `rows` rows, a multiple of eight, of a row-major matrix of `columns` columns, transposed.
    pub(crate) fn pack_transposed(&mut self, weights: &[f32], columns: usize, rows: usize) {
        debug_assert_eq!(rows % LANES, 0);
        (self.inputs, self.outputs) = (columns, rows);
        self.panels.clear();
        for block in weights[..rows * columns].chunks_exact(LANES * columns) {
            let transposed = |column: usize| array::from_fn(|row| block[row * columns + column]);
            self.panels.extend((0..columns).map(transposed));
        }
    }
}

/// `out = x weights + bias` for the rows of `x`, through a rectifier.
#[inline(always)]
pub(crate) fn layer<S: Simd>(simd: S, x: &[f32], weights: &Panels, bias: &[f32], out: &mut Vec<f32>) {
    out.resize(x.len() / weights.inputs * weights.outputs, 0.0);
    let (start, rectify) = (Some(bias), true);
    simd.perform(Multiply {
        x,
        weights,
        start,
        rectify,
        out,
    });
}

/// `out += x weights` for the rows of `x`, then a rectifier where `rectify`.
#[inline(always)]
pub(crate) fn multiply<S: Simd>(simd: S, x: &[f32], weights: &Panels, rectify: bool, out: &mut [f32]) {
    debug_assert_eq!(x.len() / weights.inputs, out.len() / weights.outputs);
    let start = None;
    simd.perform(Multiply {
        x,
        weights,
        start,
        rectify,
        out,
    });
}

/// `out += x weights` for the rows of `x`, on the best unit of this processor.
pub(crate) fn product(x: &[f32], weights: &Panels, out: &mut [f32]) {
    debug_assert_eq!(x.len() / weights.inputs, out.len() / weights.outputs);
    on_this_processor(Multiply {
        x,
        weights,
        start: None,
        rectify: false,
        out,
    });
}

struct Multiply<'a> {
    x: &'a [f32],
    weights: &'a Panels,
    /// What each row of the result begins with, in place of what it held. `[outputs]`
    start: Option<&'a [f32]>,
    rectify: bool,
    out: &'a mut [f32],
}

impl Work for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Multiply {
            x,
            weights,
            start,
            rectify,
            out,
        } = self;
        // Panel by panel over all rows: a panel stays in the first cache, and rows are short beside a matrix.
        let pairs = weights.panels.chunks_exact(2 * weights.inputs);
        let single = pairs.remainder();
        let mut column = 0;
        for pair in pairs {
            let (first, second) = pair.split_at(weights.inputs);
            let from = start.map(|start| &start[column..]);
            columns::<S, 2>(
                simd,
                x,
                [first, second],
                (from, rectify),
                (&mut *out, weights.outputs, column),
            );
            column += 2 * LANES;
        }
        if !single.is_empty() {
            let from = start.map(|start| &start[column..]);
            columns::<S, 1>(simd, x, [single], (from, rectify), (out, weights.outputs, column));
        }
    }
}

/// All rows times P panels: `stride` columns of the result, from column `column`.
#[inline(always)]
fn columns<S: Simd, const P: usize>(
    simd: S,
    x: &[f32],
    panels: [&[[f32; LANES]]; P],
    (start, rectify): (Option<&[f32]>, bool),
    (out, stride, column): (&mut [f32], usize, usize),
) {
    let inputs = panels[0].len();
    let whole = x.len() / (TILE * inputs) * TILE;
    let (x, x_rest) = x.split_at(whole * inputs);
    let (out, out_rest) = out.split_at_mut(whole * stride);
    for (x, out) in x
        .chunks_exact(TILE * inputs)
        .zip(out.chunks_exact_mut(TILE * stride))
    {
        let out = &mut out[column..];
        tile::<S, TILE, P>(simd, x, panels, (start, rectify), out, stride);
    }
    // What is left goes together: row by row each sum would wait for itself.
    let num = x_rest.len() / inputs;
    if num == 0 {
        return;
    }
    let (x, out, how) = (x_rest, &mut out_rest[column..], (start, rectify));
    match num {
        1 => tile::<S, 1, P>(simd, x, panels, how, out, stride),
        2 => tile::<S, 2, P>(simd, x, panels, how, out, stride),
        3 => tile::<S, 3, P>(simd, x, panels, how, out, stride),
        4 => tile::<S, 4, P>(simd, x, panels, how, out, stride),
        _ => tile::<S, 5, P>(simd, x, panels, how, out, stride),
    }
}

/// R rows times P panels of a result that starts at `out` and whose rows are `stride` apart.
#[inline(always)]
fn tile<S: Simd, const R: usize, const P: usize>(
    simd: S,
    x: &[f32],
    panels: [&[[f32; LANES]]; P],
    (start, rectify): (Option<&[f32]>, bool),
    out: &mut [f32],
    stride: usize,
) {
    let inputs = panels[0].len();
    let x: [&[f32]; R] = array::from_fn(|row| &x[row * inputs..][..inputs]);
    let panels = panels.map(|panel| &panel[..inputs]);
    let mut sums = [[simd.splat(0.0); P]; R];
    for row in 0..R {
        for panel in 0..P {
            sums[row][panel] = match start {
                Some(start) => simd.load(lanes(start, panel * LANES)),
                None => simd.load(lanes(out, row * stride + panel * LANES)),
            };
        }
    }
    for input in 0..inputs {
        let mut weights = [simd.splat(0.0); P];
        for panel in 0..P {
            weights[panel] = simd.load(&panels[panel][input]);
        }
        for row in 0..R {
            let value = simd.splat(x[row][input]);
            for panel in 0..P {
                sums[row][panel] = simd.mul_add(value, weights[panel], sums[row][panel]);
            }
        }
    }
    for row in 0..R {
        for panel in 0..P {
            let sum = simd.store(sums[row][panel]);
            *lanes_mut(out, row * stride + panel * LANES) = if rectify {
                sum.map(|value| value.max(0.0))
            } else {
                sum
            };
        }
    }
}

/// `out += x^T d`, where `x` is `[m, inputs]`, `d` `[m, outputs]` and `out` `[inputs, outputs]`; `outputs` is a multiple of
/// eight.
#[inline(always)]
pub(crate) fn accumulate<S: Simd>(simd: S, x: &[f32], d: &[f32], outputs: usize, out: &mut [f32]) {
    debug_assert_eq!(
        (outputs % LANES, x.len() * outputs),
        (0, d.len() * (out.len() / outputs))
    );
    simd.perform(Accumulate { x, d, outputs, out });
}

struct Accumulate<'a> {
    x: &'a [f32],
    d: &'a [f32],
    outputs: usize,
    out: &'a mut [f32],
}

impl Work for Accumulate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Accumulate { x, d, outputs, out } = self;
        let inputs = out.len() / outputs;
        for (x, d) in x.chunks(ROWS * inputs).zip(d.chunks(ROWS * outputs)) {
            let whole = inputs / STRIP * STRIP;
            let (blocks, rest) = out.split_at_mut(whole * outputs);
            for (block, out) in blocks.chunks_exact_mut(STRIP * outputs).enumerate() {
                strip::<S, STRIP>(simd, (x, inputs, block * STRIP), (d, outputs), out);
            }
            for (row, out) in rest.chunks_exact_mut(outputs).enumerate() {
                strip::<S, 1>(simd, (x, inputs, whole + row), (d, outputs), out);
            }
        }
    }
}

/// R rows of a result of [`accumulate`], from row `first`.
#[inline(always)]
fn strip<S: Simd, const R: usize>(
    simd: S,
    x: (&[f32], usize, usize),
    (d, outputs): (&[f32], usize),
    out: &mut [f32],
) {
    let mut column = 0;
    while column + 2 * LANES <= outputs {
        outer::<S, R, 2>(simd, x, (d, outputs, column), out);
        column += 2 * LANES;
    }
    if column < outputs {
        outer::<S, R, 1>(simd, x, (d, outputs, column), out);
    }
}

#[inline(always)]
fn outer<S: Simd, const R: usize, const P: usize>(
    simd: S,
    (x, inputs, first): (&[f32], usize, usize),
    (d, outputs, column): (&[f32], usize, usize),
    out: &mut [f32],
) {
    let mut sums = [[simd.splat(0.0); P]; R];
    for row in 0..R {
        for panel in 0..P {
            sums[row][panel] = simd.load(lanes(out, row * outputs + column + panel * LANES));
        }
    }
    for (x, d) in x.chunks_exact(inputs).zip(d.chunks_exact(outputs)) {
        let (x, d) = (&x[first..first + R], &d[column..column + P * LANES]);
        let mut right = [simd.splat(0.0); P];
        for panel in 0..P {
            right[panel] = simd.load(lanes(d, panel * LANES));
        }
        for row in 0..R {
            let value = simd.splat(x[row]);
            for panel in 0..P {
                sums[row][panel] = simd.mul_add(value, right[panel], sums[row][panel]);
            }
        }
    }
    for row in 0..R {
        for panel in 0..P {
            *lanes_mut(out, row * outputs + column + panel * LANES) = simd.store(sums[row][panel]);
        }
    }
}

#[inline(always)]
fn lanes(values: &[f32], start: usize) -> &[f32; LANES] {
    &values[start..start + LANES].as_chunks().0[0]
}

#[inline(always)]
fn lanes_mut(values: &mut [f32], start: usize) -> &mut [f32; LANES] {
    &mut values[start..start + LANES].as_chunks_mut().0[0]
}

/// `out += ` the sum of the rows of `d`.
#[inline(always)]
pub(crate) fn add_rows(d: &[f32], out: &mut [f32]) {
    for row in d.chunks_exact(out.len()) {
        for (out, value) in out.iter_mut().zip(row) {
            *out += value;
        }
    }
}

/// `out += value * row`
#[inline(always)]
pub(crate) fn add_scaled(out: &mut [f32], value: f32, row: &[f32]) {
    for (out, x) in out.iter_mut().zip(row) {
        *out = value.mul_add(*x, *out);
    }
}

/// Sum of products in eight running sums, added in order, and then the rest of the list.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] = a[lane].mul_add(b[lane], sums[lane]);
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// Puts zero where the rectifier had let nothing through.
#[inline(always)]
pub(crate) fn through_rectifier(d: &mut [f32], out: &[f32]) {
    for (d, out) in d.iter_mut().zip(out) {
        *d = if *out > 0.0 { *d } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Numbers;
    use crate::simd::{Plain, on_this_processor};

    struct Both<'a> {
        x: &'a [f32],
        weights: &'a Panels,
        d: &'a [f32],
    }

    impl Work for Both<'_> {
        type Output = [Vec<f32>; 2];

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> [Vec<f32>; 2] {
            let (inputs, outputs) = (self.weights.inputs, self.weights.outputs);
            let mut product = vec![0.5; self.x.len() / inputs * outputs];
            multiply(simd, self.x, self.weights, true, &mut product);
            let mut outer = vec![0.25; inputs * outputs];
            accumulate(simd, self.x, self.d, outputs, &mut outer);
            [product, outer]
        }
    }

    /// Sizes that cut into whole blocks, and ones that do not: rows, inputs, panels of eight outputs.
    const SIZES: [(usize, usize, usize); 6] = [
        (1, 1, 1),
        (4, 8, 2),
        (7, 13, 3),
        (64, 32, 4),
        (130, 9, 1),
        (65, 40, 5),
    ];

    #[test]
    fn products_are_those_of_three_loops_and_the_same_on_every_unit() {
        for (m, inputs, panels) in SIZES {
            let (outputs, mut numbers) = (panels * LANES, Numbers(m as u64));
            let mut draw = |n: usize| -> Vec<f32> { numbers.list(n).iter().map(|x| x / 2.0).collect() };
            let (x, weights, d) = (draw(m * inputs), draw(inputs * outputs), draw(m * outputs));
            let panels = Panels::of(&weights, outputs);
            let work = || Both {
                x: &x,
                weights: &panels,
                d: &d,
            };
            let [product, outer] = on_this_processor(work());
            assert_eq!(work().run(Plain), [product.clone(), outer.clone()]);
            let sum = |n: usize, a: &dyn Fn(usize) -> f32, b: &dyn Fn(usize) -> f32| -> f32 {
                (0..n).map(|t| f64::from(a(t)) * f64::from(b(t))).sum::<f64>() as f32
            };
            for (place, found) in product.iter().enumerate() {
                let (row, column) = (place / outputs, place % outputs);
                let wanted = 0.5
                    + sum(inputs, &|i| x[row * inputs + i], &|i| {
                        weights[i * outputs + column]
                    });
                assert!((found - wanted.max(0.0)).abs() < 1e-5, "{found} {wanted}");
            }
            for (place, found) in outer.iter().enumerate() {
                let (input, column) = (place / outputs, place % outputs);
                let wanted = 0.25
                    + sum(m, &|row| x[row * inputs + input], &|row| {
                        d[row * outputs + column]
                    });
                assert!((found - wanted).abs() < 1e-5, "{found} {wanted}");
            }
        }
    }

    #[test]
    fn transposed_panels_hold_columns_for_rows() {
        // [8 rows, 2 columns]; entry (row, column) is 10 row + column.
        let weights: Vec<f32> = (0..16).map(|i| (10 * (i / 2) + i % 2) as f32).collect();
        let mut panels = Panels::of(&weights, 8);
        panels.pack_transposed(&weights, 2, 8);
        assert_eq!((panels.inputs, panels.outputs), (2, 8));
        assert_eq!(panels.panels[1], [1.0, 11.0, 21.0, 31.0, 41.0, 51.0, 61.0, 71.0]);
    }

    #[test]
    fn a_dot_product_counts_what_does_not_fill_a_vector() {
        let (a, b): (Vec<f32>, Vec<f32>) = ((1..=10).map(|i| i as f32).collect(), vec![2.0; 10]);
        assert_eq!(dot(&a, &b), 110.0);
    }
}
