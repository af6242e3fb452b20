//! Values of a running graph: numbers with a shape.

use crate::Error;
use crate::error::graph;

use super::NUMBERS_MAX;

/// Numbers of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data {
    /// 32-bit floats.
    Floats(Vec<f32>),
    /// Integers: shapes, axes and indices.
    Integers(Vec<i64>),
}

/// A value: row-major numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tensor {
    pub shape: Vec<usize>,
    pub data: Data,
}

/// An error of a graph.
pub(super) fn refuse<T>(reason: impl Into<String>) -> Result<T, Error> {
    Err(graph(reason.into()))
}

/// Numbers of a shape, within the bound.
pub(super) fn len_of(shape: &[usize]) -> Result<usize, Error> {
    let len = shape
        .iter()
        .try_fold(1_usize, |product, n| product.checked_mul(*n));
    match len {
        Some(len) if len <= NUMBERS_MAX => Ok(len),
        _ => refuse(format!(
            "a value of shape {shape:?}; allowed are {NUMBERS_MAX} numbers"
        )),
    }
}

/// The index of an axis that may be counted from the end.
pub(super) fn axis_of(axis: i64, rank: usize) -> Result<usize, Error> {
    let from_start = if axis < 0 { axis + rank as i64 } else { axis };
    match usize::try_from(from_start) {
        Ok(index) if index < rank => Ok(index),
        _ => refuse(format!("axis {axis} of a value with {rank} axes")),
    }
}

impl Tensor {
    pub fn floats(shape: Vec<usize>, values: Vec<f32>) -> Tensor {
        debug_assert_eq!(shape.iter().product::<usize>(), values.len());
        Tensor {
            shape,
            data: Data::Floats(values),
        }
    }

    pub fn integers(shape: Vec<usize>, values: Vec<i64>) -> Tensor {
        debug_assert_eq!(shape.iter().product::<usize>(), values.len());
        Tensor {
            shape,
            data: Data::Integers(values),
        }
    }

    pub fn as_floats(&self) -> Result<&[f32], Error> {
        match &self.data {
            Data::Floats(values) => Ok(values),
            Data::Integers(_) => refuse("integers where floats are needed"),
        }
    }

    pub fn as_integers(&self) -> Result<&[i64], Error> {
        match &self.data {
            Data::Integers(values) => Ok(values),
            Data::Floats(_) => refuse("floats where integers are needed"),
        }
    }

    /// The same numbers in another shape.
    pub fn reshaped(&self, shape: Vec<usize>) -> Result<Tensor, Error> {
        let (from, to) = (self.shape.iter().product::<usize>(), len_of(&shape)?);
        if from != to {
            return refuse(format!("shape {:?} cannot become {shape:?}", self.shape));
        }
        Ok(Tensor {
            shape,
            data: self.data.clone(),
        })
    }
}

/// The product of the lengths before `axis`, of it, and behind it.
pub(super) fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    let before = shape[..axis].iter().product();
    let behind = shape[axis + 1..].iter().product();
    (before, shape[axis], behind)
}

/// The shape to which two values are stretched, as NumPy does.
pub(super) fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>, Error> {
    let rank = a.len().max(b.len());
    let at = |shape: &[usize], index: usize| {
        let missing = rank - shape.len();
        if index < missing {
            1
        } else {
            shape[index - missing]
        }
    };
    let mut shape = Vec::with_capacity(rank);
    for index in 0..rank {
        shape.push(match (at(a, index), at(b, index)) {
            (1, n) | (n, 1) => n,
            (n, m) if n == m => n,
            _ => return refuse(format!("shapes {a:?} and {b:?} do not go together")),
        });
    }
    len_of(&shape)?;
    Ok(shape)
}

/// For each place of `to`, where its number lies in a value of `shape` that is stretched to it.
pub(super) fn places(shape: &[usize], to: &[usize]) -> Vec<usize> {
    let missing = to.len() - shape.len();
    let mut strides = vec![0; to.len()];
    let mut stride = 1;
    for (index, n) in shape.iter().enumerate().rev() {
        strides[missing + index] = if *n == 1 { 0 } else { stride };
        stride *= n;
    }
    let len = to.iter().product();
    let mut places = Vec::with_capacity(len);
    let mut index = vec![0; to.len()];
    let mut place = 0;
    for _ in 0..len {
        places.push(place);
        for axis in (0..to.len()).rev() {
            index[axis] += 1;
            place += strides[axis];
            if index[axis] < to[axis] {
                break;
            }
            place -= strides[axis] * to[axis];
            index[axis] = 0;
        }
    }
    places
}
