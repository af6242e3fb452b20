//! Operators that move numbers and compute none: where each number of the result comes from.

use super::kernels::moved;
use super::tensor::{Data, Tensor, around, axis_of, broadcast, len_of, places, refuse};
use crate::Error;

/// Axes in another order; reversed where none is given.
pub(super) fn transpose(x: &Tensor, order: &[usize]) -> Result<Tensor, Error> {
    let rank = x.shape.len();
    let order: Vec<usize> = if order.is_empty() {
        (0..rank).rev().collect()
    } else {
        order.to_vec()
    };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..rank) {
        return refuse(format!("Transpose of {rank} axes by {order:?}"));
    }
    let mut strides = vec![1; rank];
    for axis in (0..rank.saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1] * x.shape[axis + 1];
    }
    let shape: Vec<usize> = order.iter().map(|axis| x.shape[*axis]).collect();
    let mut from = vec![0_usize];
    for axis in &order {
        let (n, stride) = (x.shape[*axis], strides[*axis]);
        from = from
            .iter()
            .flat_map(|start| (0..n).map(move |index| start + index * stride))
            .collect();
    }
    Ok(moved(x, shape, &from))
}

/// Rows of an axis, by their indices, which may count from the end.
pub(super) fn gather(x: &Tensor, indices: &Tensor, axis: i64) -> Result<Tensor, Error> {
    let axis = axis_of(axis, x.shape.len())?;
    let (before, n, behind) = around(&x.shape, axis);
    let mut rows = Vec::new();
    for index in indices.as_integers()? {
        let from_start = if *index < 0 { index + n as i64 } else { *index };
        match usize::try_from(from_start) {
            Ok(row) if row < n => rows.push(row),
            _ => return refuse(format!("Gather of row {index} of {n}")),
        }
    }
    let mut shape = x.shape[..axis].to_vec();
    shape.extend(&indices.shape);
    shape.extend(&x.shape[axis + 1..]);
    let mut from = Vec::with_capacity(len_of(&shape)?);
    for outer in 0..before {
        for row in &rows {
            let start = (outer * n + row) * behind;
            from.extend(start..start + behind);
        }
    }
    Ok(moved(x, shape, &from))
}

/// Another shape: 0 keeps a length, -1 is what is left.
pub(super) fn reshape(x: &Tensor, to: &Tensor) -> Result<Tensor, Error> {
    let to = to.as_integers()?;
    let mut shape = Vec::with_capacity(to.len());
    let mut open = None;
    for (axis, n) in to.iter().enumerate() {
        shape.push(match n {
            0 if axis < x.shape.len() => x.shape[axis],
            -1 if open.is_none() => {
                open = Some(axis);
                1
            }
            n => match usize::try_from(*n) {
                Ok(n) => n,
                Err(_) => return refuse(format!("Reshape to {to:?}")),
            },
        });
    }
    if let Some(axis) = open {
        let known = len_of(&shape)?.max(1);
        shape[axis] = x.shape.iter().product::<usize>() / known;
    }
    x.reshaped(shape)
}

/// Without the named axes of length 1; without all of them where none is named.
pub(super) fn squeeze(x: &Tensor, axes: Option<&Tensor>) -> Result<Tensor, Error> {
    let rank = x.shape.len();
    let axes: Vec<usize> = match axes {
        Some(axes) => {
            let axes = axes.as_integers()?.iter().map(|axis| axis_of(*axis, rank));
            axes.collect::<Result<_, _>>()?
        }
        None => (0..rank).filter(|axis| x.shape[*axis] == 1).collect(),
    };
    if axes.iter().any(|axis| x.shape[*axis] != 1) {
        return refuse(format!("Squeeze of axes {axes:?} of {:?}", x.shape));
    }
    let left = (0..rank).filter(|axis| !axes.contains(axis));
    x.reshaped(left.map(|axis| x.shape[axis]).collect())
}

/// With axes of length 1 at the named places of the result.
pub(super) fn unsqueeze(x: &Tensor, axes: &Tensor) -> Result<Tensor, Error> {
    let axes = axes.as_integers()?;
    let rank = x.shape.len() + axes.len();
    let axes: Vec<usize> = axes
        .iter()
        .map(|axis| axis_of(*axis, rank))
        .collect::<Result<_, _>>()?;
    let mut lens = x.shape.iter().copied();
    let shape: Vec<usize> = (0..rank)
        .map(|axis| {
            if axes.contains(&axis) {
                1
            } else {
                lens.next().unwrap_or(1)
            }
        })
        .collect();
    x.reshaped(shape)
}

/// A part of some axes, in steps of 1.
pub(super) fn slice(inputs: &[&Tensor]) -> Result<Tensor, Error> {
    let x = inputs[0];
    let (starts, ends) = (inputs[1].as_integers()?, inputs[2].as_integers()?);
    let axes: Vec<i64> = match inputs.get(3) {
        Some(axes) => axes.as_integers()?.to_vec(),
        None => (0..starts.len() as i64).collect(),
    };
    let steps_are_1 = match inputs.get(4) {
        Some(steps) => steps.as_integers()?.iter().all(|step| *step == 1),
        None => true,
    };
    if starts.len() != ends.len() || axes.len() != starts.len() || !steps_are_1 {
        return refuse("Slice: starts, ends and axes of one length and steps of 1 are understood");
    }
    let mut out = x.clone();
    for ((start, end), axis) in starts.iter().zip(ends).zip(axes) {
        let axis = axis_of(axis, out.shape.len())?;
        let (before, n, behind) = around(&out.shape, axis);
        let clamp = |index: i64| {
            let from_start = if index < 0 {
                index.saturating_add(n as i64)
            } else {
                index
            };
            from_start.clamp(0, n as i64) as usize
        };
        let (start, end) = (clamp(*start), clamp(*end));
        let rows = start..end.max(start);
        let mut shape = out.shape.clone();
        shape[axis] = rows.len();
        let places = (0..before).flat_map(|outer| {
            rows.clone().flat_map(move |row| {
                let first = (outer * n + row) * behind;
                first..first + behind
            })
        });
        let from: Vec<usize> = places.collect();
        out = moved(&out, shape, &from);
    }
    Ok(out)
}

/// Stretched to a shape, as NumPy does.
pub(super) fn expand(x: &Tensor, to: &Tensor) -> Result<Tensor, Error> {
    let to = lens(to)?;
    let shape = broadcast(&x.shape, &to)?;
    let from = places(&x.shape, &shape);
    Ok(moved(x, shape, &from))
}

/// Equal numbers in a shape.
pub(super) fn fill(shape: &Tensor, value: f32) -> Result<Tensor, Error> {
    let shape = lens(shape)?;
    let len = len_of(&shape)?;
    Ok(Tensor::floats(shape, vec![value; len]))
}

fn lens(shape: &Tensor) -> Result<Vec<usize>, Error> {
    let lens = shape.as_integers()?.iter().map(|n| usize::try_from(*n).ok());
    match lens.collect::<Option<Vec<usize>>>() {
        Some(lens) => Ok(lens),
        None => refuse("a shape with a negative length"),
    }
}

/// Floats as integers, cut towards zero, or integers as floats.
pub(super) fn cast(x: &Tensor, to_integers: bool) -> Tensor {
    match (&x.data, to_integers) {
        (Data::Floats(values), true) => Tensor::integers(
            x.shape.clone(),
            values.iter().map(|value| *value as i64).collect(),
        ),
        (Data::Integers(values), false) => Tensor::floats(
            x.shape.clone(),
            values.iter().map(|value| *value as f32).collect(),
        ),
        _ => x.clone(),
    }
}
