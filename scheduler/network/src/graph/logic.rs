//! Comparisons, truth and choices. Truth is an integer: 0 or 1.

use super::kernels::{elementwise, moved};
use super::tensor::{Data, Tensor, broadcast, places, refuse};
use crate::Error;

/// Whether pairs of numbers stand in an order, both values stretched to one shape.
pub(super) fn compare(
    a: &Tensor,
    b: &Tensor,
    of_floats: fn(&f32, &f32) -> bool,
    of_integers: fn(&i64, &i64) -> bool,
) -> Result<Tensor, Error> {
    let shape = broadcast(&a.shape, &b.shape)?;
    let (from_a, from_b) = (places(&a.shape, &shape), places(&b.shape, &shape));
    let pairs = from_a.iter().zip(&from_b);
    let values = match (&a.data, &b.data) {
        (Data::Floats(x), Data::Floats(y)) => pairs.map(|(i, j)| of_floats(&x[*i], &y[*j]).into()).collect(),
        (Data::Integers(x), Data::Integers(y)) => {
            pairs.map(|(i, j)| of_integers(&x[*i], &y[*j]).into()).collect()
        }
        _ => return refuse("floats and integers are not compared; cast one"),
    };
    Ok(Tensor::integers(shape, values))
}

/// What a division of integers leaves; it has the sign of the divisor.
pub(super) fn remainder(a: &Tensor, b: &Tensor) -> Result<Tensor, Error> {
    let of = |x: i64, y: i64| {
        let left = x.checked_rem(y)?;
        Some(if left != 0 && (left < 0) != (y < 0) {
            left + y
        } else {
            left
        })
    };
    a.as_integers()?;
    elementwise(a, b, |_, _| f32::NAN, of)
}

/// Whether each number is not 0.
pub(super) fn truth(x: &Tensor) -> Tensor {
    let values = match &x.data {
        Data::Floats(values) => values.iter().map(|value| (*value != 0.0).into()).collect(),
        Data::Integers(values) => values.iter().map(|value| (*value != 0).into()).collect(),
    };
    Tensor::integers(x.shape.clone(), values)
}

/// Whether each is not true.
pub(super) fn not(x: &Tensor) -> Result<Tensor, Error> {
    let values = x.as_integers()?.iter().map(|value| (*value == 0).into());
    Ok(Tensor::integers(x.shape.clone(), values.collect()))
}

/// Of `yes` where a condition is true, else of `no`; all stretched to one shape.
pub(super) fn choose(condition: &Tensor, yes: &Tensor, no: &Tensor) -> Result<Tensor, Error> {
    let shape = broadcast(&condition.shape, &broadcast(&yes.shape, &no.shape)?)?;
    let own = condition.as_integers()?;
    let is_yes: Vec<bool> = places(&condition.shape, &shape)
        .into_iter()
        .map(|place| own[place] != 0)
        .collect();
    let [yes, no] = [yes, no].map(|x| moved(x, shape.clone(), &places(&x.shape, &shape)));
    fn pick<T>(is_yes: &[bool], yes: Vec<T>, no: Vec<T>) -> Vec<T> {
        let pairs = is_yes.iter().zip(yes.into_iter().zip(no));
        pairs
            .map(|(is_yes, (yes, no))| if *is_yes { yes } else { no })
            .collect()
    }
    match (yes.data, no.data) {
        (Data::Floats(yes), Data::Floats(no)) => Ok(Tensor::floats(shape, pick(&is_yes, yes, no))),
        (Data::Integers(yes), Data::Integers(no)) => Ok(Tensor::integers(shape, pick(&is_yes, yes, no))),
        _ => refuse("Where between floats and integers; cast one"),
    }
}
