//! What each operator does to numbers. Sums run in the order of their terms, so results depend on nothing but the inputs.

use pleach_scheduler::portable_math::{self, exp, exp_f32, ln};

use super::tensor::{Data, Tensor, around, axis_of, broadcast, len_of, places, refuse};
use crate::Error;

/// Both values stretched to one shape and joined number by number.
pub(super) fn elementwise(
    a: &Tensor,
    b: &Tensor,
    of_floats: fn(f32, f32) -> f32,
    of_integers: fn(i64, i64) -> Option<i64>,
) -> Result<Tensor, Error> {
    let shape = broadcast(&a.shape, &b.shape)?;
    match (&a.data, &b.data) {
        (Data::Floats(x), Data::Floats(y)) => {
            let values = if a.shape == b.shape {
                x.iter().zip(y).map(|(x, y)| of_floats(*x, *y)).collect()
            } else if b.shape.len() <= 1 && y.len() == shape.last().copied().unwrap_or(1) && a.shape == shape
            {
                // A bias: the most common of all stretches.
                let rows = x.chunks_exact(y.len().max(1));
                rows.flat_map(|row| row.iter().zip(y).map(|(x, y)| of_floats(*x, *y)))
                    .collect()
            } else {
                let (from_a, from_b) = (places(&a.shape, &shape), places(&b.shape, &shape));
                from_a
                    .iter()
                    .zip(&from_b)
                    .map(|(i, j)| of_floats(x[*i], y[*j]))
                    .collect()
            };
            Ok(Tensor::floats(shape, values))
        }
        (Data::Integers(x), Data::Integers(y)) => {
            let (from_a, from_b) = (places(&a.shape, &shape), places(&b.shape, &shape));
            let pairs = from_a.iter().zip(&from_b);
            let values: Option<Vec<i64>> = pairs.map(|(i, j)| of_integers(x[*i], y[*j])).collect();
            match values {
                Some(values) => Ok(Tensor::integers(shape, values)),
                None => refuse("integers beyond 64 bits, or a division by 0"),
            }
        }
        _ => refuse("floats and integers do not go together; cast one"),
    }
}

/// A function of each number.
pub(super) fn each(x: &Tensor, of: impl Fn(f32) -> f32) -> Result<Tensor, Error> {
    let values = x.as_floats()?.iter().map(|x| of(*x)).collect();
    Ok(Tensor::floats(x.shape.clone(), values))
}

/// `ln(1 + e^x)`
pub(super) fn softplus(x: f32) -> f32 {
    let double = f64::from(x);
    (double.max(0.0) + ln(1.0 + exp(-double.abs()))) as f32
}

/// `x` above 0, `alpha (e^x - 1)` below.
pub(super) fn elu(x: f32, alpha: f32) -> f32 {
    if x < 0.0 {
        (f64::from(alpha) * (exp(f64::from(x)) - 1.0)) as f32
    } else {
        x
    }
}

/// `x` to the power of `y`.
pub(super) fn pow(x: f32, y: f32) -> f32 {
    if y == 2.0 {
        x * x
    } else {
        portable_math::pow(f64::from(x), f64::from(y)) as f32
    }
}

/// The hyperbolic tangent by the exponential, which is the same on every machine.
pub(super) fn tanh(x: f32) -> f32 {
    let double = exp(2.0 * f64::from(x.clamp(-20.0, 20.0)));
    ((double - 1.0) / (double + 1.0)) as f32
}

/// `1 / (1 + e^-x)`
pub(super) fn sigmoid(x: f32) -> f32 {
    (1.0 / (1.0 + exp(f64::from(-x.clamp(-80.0, 80.0))))) as f32
}

/// The error function to 1.5e-7.
///
/// # Source
/// Abramowitz and Stegun, Handbook of Mathematical Functions, formula 7.1.26.
pub(super) fn erf(x: f32) -> f32 {
    const A: [f64; 5] = [
        0.254_829_592,
        -0.284_496_736,
        1.421_413_741,
        -1.453_152_027,
        1.061_405_429,
    ];
    let size = f64::from(x.abs());
    let t = 1.0 / (1.0 + 0.327_591_1 * size);
    let series = t * (A[0] + t * (A[1] + t * (A[2] + t * (A[3] + t * A[4]))));
    let value = 1.0 - series * exp(-size * size);
    if x < 0.0 { -value as f32 } else { value as f32 }
}

/// Products of the last two axes, the others stretched as NumPy's `matmul` does.
pub(super) fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor, Error> {
    let (x, y) = (a.as_floats()?, b.as_floats()?);
    let [.., m, k] = a.shape[..] else {
        return refuse("MatMul of a value with fewer than two axes");
    };
    let [.., k_too, n] = b.shape[..] else {
        return refuse("MatMul by a value with fewer than two axes");
    };
    if k != k_too {
        return refuse(format!("MatMul of {:?} by {:?}", a.shape, b.shape));
    }
    let outer = broadcast(&a.shape[..a.shape.len() - 2], &b.shape[..b.shape.len() - 2])?;
    let (from_a, from_b) = (
        places(&a.shape[..a.shape.len() - 2], &outer),
        places(&b.shape[..b.shape.len() - 2], &outer),
    );
    let mut shape = outer;
    shape.extend([m, n]);
    let mut out = vec![0.0; len_of(&shape)?];
    for ((i, j), out) in from_a
        .iter()
        .zip(&from_b)
        .zip(out.chunks_exact_mut((m * n).max(1)))
    {
        product(
            &x[i * m * k..(i + 1) * m * k],
            &y[j * k * n..(j + 1) * k * n],
            (m, k, n),
            out,
        );
    }
    Ok(Tensor::floats(shape, out))
}

/// `out += x y`; x is `[m, k]`, y is `[k, n]`.
fn product(x: &[f32], y: &[f32], (m, k, n): (usize, usize, usize), out: &mut [f32]) {
    for row in 0..m {
        let out = &mut out[row * n..(row + 1) * n];
        for (factor, y) in x[row * k..(row + 1) * k].iter().zip(y.chunks_exact(n.max(1))) {
            out.iter_mut().zip(y).for_each(|(out, y)| *out += factor * y);
        }
    }
}

/// `e^x` over the sum along an axis, with the largest taken off first.
pub(super) fn softmax(x: &Tensor, axis: i64) -> Result<Tensor, Error> {
    let axis = axis_of(axis, x.shape.len())?;
    let (before, n, behind) = around(&x.shape, axis);
    let mut out = x.as_floats()?.to_vec();
    for outer in 0..before {
        for inner in 0..behind {
            let at = |index: usize| (outer * n + index) * behind + inner;
            let most = (0..n)
                .map(|index| out[at(index)])
                .fold(f32::NEG_INFINITY, f32::max);
            let mut sum = 0.0;
            for index in 0..n {
                let value = exp_f32(out[at(index)] - most);
                out[at(index)] = value;
                sum += value;
            }
            (0..n).for_each(|index| out[at(index)] /= sum);
        }
    }
    Ok(Tensor::floats(x.shape.clone(), out))
}

/// Mean 0 and variance 1 over the axes from `axis` on, then scale and bias.
pub(super) fn layer_normalization(inputs: &[&Tensor], axis: i64, epsilon: f32) -> Result<Tensor, Error> {
    let x = inputs[0];
    let axis = axis_of(axis, x.shape.len())?;
    let width = x.shape[axis..].iter().product::<usize>().max(1);
    let scale = inputs[1].as_floats()?;
    let bias = inputs.get(2).map(|bias| bias.as_floats()).transpose()?;
    if scale.len() != width || bias.is_some_and(|bias| bias.len() != width) {
        return refuse(format!(
            "LayerNormalization over {width} numbers with {} scales",
            scale.len()
        ));
    }
    let mut out = x.as_floats()?.to_vec();
    for row in out.chunks_exact_mut(width) {
        let mean = row.iter().sum::<f32>() / width as f32;
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / width as f32;
        let root = (variance + epsilon).sqrt();
        for (index, x) in row.iter_mut().enumerate() {
            *x = (*x - mean) / root * scale[index] + bias.map_or(0.0, |bias| bias[index]);
        }
    }
    Ok(Tensor::floats(x.shape.clone(), out))
}

/// Where a reduction starts, and how it joins two numbers.
pub(super) type Joining<T> = (T, fn(T, T) -> T);

/// What a reduction does with the numbers of a place: starts and joins, floats and integers, and ends with their count.
pub(super) struct Reduction {
    pub floats: Joining<f32>,
    pub end: fn(f32, usize) -> f32,
    /// None where integers are not reduced so.
    pub integers: Option<Joining<i64>>,
}

/// One number for all along `axes`.
pub(super) fn reduce(x: &Tensor, axes: &[i64], keep: bool, by: &Reduction) -> Result<Tensor, Error> {
    let rank = x.shape.len();
    let axes: Vec<usize> = axes
        .iter()
        .map(|axis| axis_of(*axis, rank))
        .collect::<Result<_, _>>()?;
    let is_reduced = |axis: usize| axes.is_empty() || axes.contains(&axis);
    let kept: Vec<usize> = (0..rank)
        .map(|axis| if is_reduced(axis) { 1 } else { x.shape[axis] })
        .collect();
    let left = (0..rank)
        .filter(|axis| keep || !is_reduced(*axis))
        .map(|axis| kept[axis]);
    match (&x.data, by.integers) {
        (Data::Floats(values), _) => {
            let mut out = joined(values, &x.shape, &kept, by.floats);
            let count = values.len() / out.len().max(1);
            out.iter_mut().for_each(|value| *value = (by.end)(*value, count));
            Ok(Tensor::floats(left.collect(), out))
        }
        (Data::Integers(values), Some(by)) => Ok(Tensor::integers(
            left.collect(),
            joined(values, &x.shape, &kept, by),
        )),
        (Data::Integers(_), None) => refuse("a mean of integers"),
    }
}

/// The numbers of each place of `kept`, joined in their order.
fn joined<T: Copy>(values: &[T], shape: &[usize], kept: &[usize], (start, join): Joining<T>) -> Vec<T> {
    let mut out = vec![start; kept.iter().product()];
    // Where each number goes is where a value of the reduced shape would be read from.
    for (value, place) in values.iter().zip(places(kept, shape)) {
        out[place] = join(out[place], *value);
    }
    out
}

/// Values one behind another along an axis.
pub(super) fn concat(inputs: &[&Tensor], axis: i64) -> Result<Tensor, Error> {
    let first = inputs[0];
    let axis = axis_of(axis, first.shape.len())?;
    let mut shape = first.shape.clone();
    shape[axis] = 0;
    for input in inputs {
        let mut others = input.shape.clone();
        if others.len() != shape.len() {
            return refuse("Concat of values with different numbers of axes");
        }
        shape[axis] += others[axis];
        others[axis] = shape[axis];
        if others != shape {
            return refuse(format!(
                "Concat of {:?} and {:?} along axis {axis}",
                first.shape, input.shape
            ));
        }
    }
    len_of(&shape)?;
    let before: usize = shape[..axis].iter().product();
    let width = |input: &Tensor| input.shape[axis..].iter().product::<usize>();
    match &first.data {
        Data::Floats(_) => {
            let mut out = Vec::with_capacity(shape.iter().product());
            for outer in 0..before {
                for input in inputs {
                    let width = width(input);
                    out.extend_from_slice(&input.as_floats()?[outer * width..(outer + 1) * width]);
                }
            }
            Ok(Tensor::floats(shape, out))
        }
        Data::Integers(_) => {
            let mut out = Vec::with_capacity(shape.iter().product());
            for outer in 0..before {
                for input in inputs {
                    let width = width(input);
                    out.extend_from_slice(&input.as_integers()?[outer * width..(outer + 1) * width]);
                }
            }
            Ok(Tensor::integers(shape, out))
        }
    }
}

/// The numbers of a value at other places: one for each place of `shape`.
pub(super) fn moved(x: &Tensor, shape: Vec<usize>, from: &[usize]) -> Tensor {
    match &x.data {
        Data::Floats(values) => Tensor::floats(shape, from.iter().map(|place| values[*place]).collect()),
        Data::Integers(values) => Tensor::integers(shape, from.iter().map(|place| values[*place]).collect()),
    }
}
