//! The set network in Burn: what a gradient is taken of.
//!
//! A loss here is any function of the logits and the values. It hands back its derivatives by them ([`Cotangents`]),
//! and Burn carries those through the network to the parameters. So the losses are plain Rust that can be checked by
//! hand, there is no padding and no masked softmax in tensors, and the tensor code is this one file.

use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use rayon::prelude::*;

use crate::backend::{Backend, floats, matrix, to_vec};
use crate::device::Device;
use crate::error::Error;
use crate::parameters::{Layout, at};
use crate::pooling::{decisions_of, entities, pool};
use crate::rows::Rows;

/// Outputs of the network for a list of decisions, and the derivatives of a loss by them.
#[derive(Clone, Debug, Default)]
pub struct Cotangents {
    /// One per candidate of all decisions.
    pub logits: Vec<f32>,
    /// One per decision, in the head's own (normalised) unit.
    pub values: Vec<f32>,
}

/// The tensors of one forward pass.
struct Forward {
    parameters: Vec<Tensor<Backend, 2>>,
    logits: Tensor<Backend, 2>,
    values: Tensor<Backend, 2>,
}

fn forward(layout: &Layout, flat: &[f32], rows: &Rows) -> Forward {
    let device = burn::tensor::Device::<Backend>::default();
    let (num_decisions, num_candidates) = (rows.len(), rows.num_candidates());
    let parameters: Vec<_> = layout
        .entries
        .iter()
        .map(|entry| match &flat[entry.range.clone()] {
            // Without heads there are no queries: a tensor that nothing uses keeps the indices what they are.
            [] => matrix(&[0.0], [1, 1], &device),
            values => matrix(values, entry.shape, &device).require_grad(),
        })
        .collect();
    let p = |index: usize| parameters[index].clone();

    let x = matrix(rows.candidates(), [num_candidates, layout.num_features], &device);
    let first = relu(x.matmul(p(at::ENCODER_0)) + p(at::ENCODER_0_BIAS));
    let encoded = relu(first.matmul(p(at::ENCODER_1)) + p(at::ENCODER_1_BIAS));

    let spans: Vec<_> = (0..num_decisions).map(|decision| rows.span(decision)).collect();
    let attends = layout.config.heads > 0;
    let mut pooled = pool(&encoded, &spans, attends.then(|| p(at::QUERY)));
    for set in layout.sets() {
        let (codes, spans) = entities(&set, rows, p(set.weight), p(set.bias));
        pooled.extend(pool(&codes, &spans, attends.then(|| p(set.query))));
    }
    let plain: Vec<f32> = (0..num_decisions)
        .flat_map(|decision| &rows.row(decision).global[..layout.num_plain])
        .copied()
        .collect();
    pooled.push(matrix(&plain, [num_decisions, layout.num_plain], &device));
    let pooled = Tensor::cat(pooled, 1);
    let outer = relu(pooled.matmul(p(at::CONTEXT_0)) + p(at::CONTEXT_0_BIAS));
    let context = relu(outer.matmul(p(at::CONTEXT_1)) + p(at::CONTEXT_1_BIAS));

    let shared = context.clone().matmul(p(at::POINTER_CONTEXT)) + p(at::POINTER_BIAS);
    let hidden =
        relu(encoded.matmul(p(at::POINTER_CANDIDATE)) + shared.select(0, decisions_of(&spans, &device)));
    let logits = hidden.matmul(p(at::POINTER_OUT));
    let value = relu(context.matmul(p(at::VALUE_0)) + p(at::VALUE_0_BIAS));
    let values = value.matmul(p(at::VALUE_OUT)) + p(at::VALUE_OUT_BIAS);
    Forward {
        parameters,
        logits,
        values,
    }
}

/// What a loss sees: the logits with the prior's, which have no parameters and so no derivative.
fn outputs(logits: Tensor<Backend, 2>, values: Tensor<Backend, 2>, rows: &Rows) -> Cotangents {
    let mut logits = to_vec(logits);
    let priors = logits.iter_mut().zip(rows.prior());
    priors.for_each(|(logit, prior)| *logit += prior);
    Cotangents {
        logits,
        values: to_vec(values),
    }
}

/// Logits and values of all decisions; each decision has at least one candidate.
///
/// # Errors
/// [`Error::Contract`] where sizes of observations or parameters are not the layout's.
pub fn evaluate(layout: &Layout, flat: &[f32], rows: &Rows) -> Result<Cotangents, Error> {
    check(layout, flat, rows, 0..rows.len())?;
    let Forward { logits, values, .. } = forward(layout, flat, rows);
    Ok(outputs(logits, values, rows))
}

/// The gradient of a loss by the parameters. `loss` sees the outputs and returns its derivatives by them.
///
/// # Errors
/// [`Error::Contract`] where sizes of observations or parameters are not the layout's.
pub fn gradient(
    layout: &Layout,
    flat: &[f32],
    rows: &Rows,
    loss: impl FnOnce(&Cotangents) -> Cotangents,
) -> Result<Vec<f32>, Error> {
    check(layout, flat, rows, 0..rows.len())?;
    let device = burn::tensor::Device::<Backend>::default();
    let Forward {
        parameters,
        logits,
        values,
    } = forward(layout, flat, rows);
    let by = loss(&outputs(logits.clone(), values.clone(), rows));
    let by_logits = matrix(&by.logits, [by.logits.len(), 1], &device);
    let by_values = matrix(&by.values, [by.values.len(), 1], &device);
    let gradients = ((logits * by_logits).sum() + (values * by_values).sum()).backward();
    let mut flat_gradient = vec![0.0; flat.len()];
    for (entry, parameter) in layout.entries.iter().zip(&parameters) {
        if let Some(gradient) = parameter.grad(&gradients) {
            flat_gradient[entry.range.clone()].copy_from_slice(&floats(gradient.into_data()));
        }
    }
    Ok(flat_gradient)
}

/// Decisions whose gradient is computed at once on the CPU, by one thread: what fits a core's cache, and always the same
/// number, so that sums do not depend on the number of threads.
pub(crate) const CHUNK: usize = 64;

/// The gradient of a loss that is a sum over `decisions` of `rows`. `loss` gets a decision, its logits and its value,
/// writes the derivatives by the logits and returns the derivative by the value and `N` figures; the figures are
/// summed. On the CPU chunks run in parallel and are added in order; a device gets as many decisions at once as fit it.
///
/// # Errors
/// As [`gradient`], and [`Error::Device`] where the device fails.
pub fn sum_of_gradients<const N: usize>(
    (layout, device): (&Layout, Device),
    flat: &[f32],
    rows: &Rows,
    decisions: &[usize],
    loss: impl Fn(usize, &[f32], f32, &mut [f32]) -> (f32, [f64; N]) + Sync,
) -> Result<(Vec<f32>, [f64; N]), Error> {
    let part = |decisions: &[usize]| {
        let mut chunk = rows.empty_like();
        decisions
            .iter()
            .for_each(|decision| chunk.push_row(rows.row(*decision)));
        let mut figures = [0.0; N];
        let part = device.gradient(layout, flat, &chunk, |outputs| {
            let mut by = Cotangents {
                logits: vec![0.0; outputs.logits.len()],
                values: Vec::new(),
            };
            for (position, decision) in decisions.iter().enumerate() {
                let span = chunk.span(position);
                let (logits, value) = (&outputs.logits[span.clone()], outputs.values[position]);
                let (by_value, terms) = loss(*decision, logits, value, &mut by.logits[span]);
                by.values.push(by_value);
                figures.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
            }
            by
        })?;
        Ok((part, figures))
    };
    let parts: Result<Vec<_>, Error> = match device {
        Device::Cpu => decisions.par_chunks(CHUNK).map(part).collect(),
        _ => {
            let sizes = decisions.iter().map(|decision| rows.span(*decision).len());
            let at_once = Device::decisions_at_once(layout, sizes.max().unwrap_or(1));
            decisions.chunks(at_once).map(part).collect()
        }
    };
    let (mut sum, mut figures) = (vec![0.0; flat.len()], [0.0; N]);
    for (part, terms) in parts? {
        sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        figures.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
    Ok((sum, figures))
}

/// Sizes agree, and each of `decisions` has a candidate.
pub(crate) fn check(
    layout: &Layout,
    flat: &[f32],
    rows: &Rows,
    mut decisions: impl Iterator<Item = usize>,
) -> Result<(), Error> {
    rows.check(layout.num_global, layout.num_features)?;
    if flat.len() != layout.num_parameters() {
        return Err(Error::contract(
            "number of parameters",
            layout.num_parameters(),
            flat.len(),
        ));
    }
    let empty = decisions.find(|decision| rows.span(*decision).is_empty());
    empty.map_or(Ok(()), |decision| {
        Err(Error::contract(
            "admissible candidates",
            "at least 1",
            format!("0 in decision {decision}"),
        ))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::inference::Inference;
    use crate::parameters::{NetworkConfig, uniform};
    use pleach_env::seed::Seed;
    use pleach_env::vector::{SetSpace, Spaces};

    pub(crate) const PLAIN: Spaces = Spaces::plain(3, 9, 5);
    /// Two kinds of entities, of 3 and 2 features, at most 4 and 3 of them.
    pub(crate) const ENTITIES: Spaces = Spaces {
        num_global: 3 + 12 + 6,
        sets: [
            SetSpace {
                num_rows: 4,
                num_features: 3,
            },
            SetSpace {
                num_rows: 3,
                num_features: 2,
            },
        ],
        ..PLAIN
    };
    /// With and without entities and attention.
    pub(crate) const KINDS: [(Spaces, usize); 4] = [(PLAIN, 0), (PLAIN, 3), (ENTITIES, 0), (ENTITIES, 2)];

    pub(crate) fn network_of((spaces, heads): (Spaces, usize)) -> (Layout, Vec<f32>) {
        let layout = Layout::new(
            NetworkConfig {
                hidden: 16,
                context: 24,
                heads,
            },
            spaces,
        )
        .unwrap();
        let mut flat = layout.initial(Seed(3));
        // A policy head and biases of ordinary size, so that a wrong derivative shows.
        let mut random = Seed(3).stream("test", 0);
        for index in [
            at::POINTER_OUT,
            at::POINTER_BIAS,
            at::ENCODER_0_BIAS,
            at::CONTEXT_1_BIAS,
            at::SETS + 1,
            at::SETS + 4,
        ] {
            let range = layout.entries[index].range.clone();
            flat[range]
                .iter_mut()
                .for_each(|w| *w = uniform(&mut random) as f32 - 0.5);
        }
        (layout, flat)
    }

    pub(crate) fn rows(spaces: Spaces, num_decisions: usize) -> Rows {
        let mut random = Seed(5).stream("test", 1);
        let mut rows = Rows::new(spaces);
        for decision in 0..num_decisions {
            let mut draw = |n: usize| {
                (0..n)
                    .map(|_| 2.0 * uniform(&mut random) as f32 - 1.0)
                    .collect::<Vec<_>>()
            };
            let n = 1 + decision % spaces.num_candidates;
            let mut global = draw(3);
            for (kind, set) in spaces.sets.iter().enumerate() {
                // From no entity to as many as there is room for.
                let num = (decision / (1 + kind)) % (set.num_rows + 1);
                let mut entities = draw(num * set.num_features);
                let firsts = entities.iter_mut().step_by(set.num_features.max(1));
                firsts.for_each(|first| *first = 0.1 + first.abs());
                entities.resize(set.len(), 0.0);
                global.extend(entities);
            }
            let candidates = draw(n * 5);
            rows.push(&global, &candidates, &vec![true; n]);
        }
        rows
    }

    #[test]
    fn plain_inference_equals_burn() {
        KINDS.into_iter().for_each(plain_inference_equals_burn_with);
    }

    fn plain_inference_equals_burn_with(kind: (Spaces, usize)) {
        let ((layout, flat), rows) = (network_of(kind), rows(kind.0, 30));
        let outputs = evaluate(&layout, &flat, &rows).unwrap();
        let inference = Inference::new(&layout, &flat).unwrap();
        let (mut scratch, mut logits) = (inference.scratch(1), [0.0; 9]);
        for decision in 0..rows.len() {
            let value = inference.forward(rows.row(decision), &mut scratch, &mut logits);
            assert!((value - outputs.values[decision]).abs() < 1e-5);
            for (burn, plain) in outputs.logits[rows.span(decision)].iter().zip(&logits) {
                assert!((burn - plain).abs() < 1e-5, "{burn} {plain}");
            }
        }
    }

    #[test]
    fn inference_has_the_same_bits_on_every_vector_unit() {
        for kind in KINDS {
            let ((layout, flat), rows) = (network_of(kind), rows(kind.0, 30));
            let inference = Inference::new(&layout, &flat).unwrap();
            let mut scratch = inference.scratch(1);
            for decision in 0..rows.len() {
                let (mut here, mut anywhere) = ([0.0; 9], [0.0; 9]);
                let value = inference.forward(rows.row(decision), &mut scratch, &mut here);
                let other = inference.forward_anywhere(rows.row(decision), &mut scratch, &mut anywhere);
                assert_eq!(value.to_bits(), other.to_bits());
                assert_eq!(here.map(f32::to_bits), anywhere.map(f32::to_bits));
            }
        }
    }

    #[test]
    fn logits_move_with_their_candidates_and_the_value_does_not_care() {
        KINDS.into_iter().for_each(logits_move_with_their_candidates);
    }

    fn logits_move_with_their_candidates(kind: (Spaces, usize)) {
        let ((layout, flat), rows) = (network_of(kind), rows(kind.0, 9));
        let inference = Inference::new(&layout, &flat).unwrap();
        let (mut scratch, mut straight, mut turned) = (inference.scratch(9), [0.0; 9], [0.0; 9]);
        let row = rows.row(8);
        let value = inference.forward(row, &mut scratch, &mut straight);
        let reversed: Vec<f32> = row.candidates.chunks_exact(5).rev().flatten().copied().collect();
        let row = crate::rows::Row {
            candidates: &reversed,
            ..row
        };
        assert!((inference.forward(row, &mut scratch, &mut turned) - value).abs() < 1e-6);
        for (a, b) in straight.iter().zip(turned.iter().rev()) {
            assert!((a - b).abs() < 1e-6);
        }
    }

    #[test]
    fn entities_are_a_set_that_matters_and_whose_order_and_padding_do_not() {
        let ((layout, flat), rows) = (network_of((ENTITIES, 2)), rows(ENTITIES, 12));
        let inference = Inference::new(&layout, &flat).unwrap();
        let logits_of = |global: &[f32]| {
            let (mut scratch, mut logits) = (inference.scratch(9), [0.0; 9]);
            let row = crate::rows::Row {
                global,
                ..rows.row(11)
            };
            let value = inference.forward(row, &mut scratch, &mut logits);
            [value, logits[0], logits[1]]
        };
        // Decision 11 has one entity of the first kind, and of the second as well.
        let global = rows.row(11).global;
        let straight = logits_of(global);
        let mut two = global.to_vec();
        two[6..9].copy_from_slice(&[0.7, -0.4, 0.9]);
        let with_two = logits_of(&two);
        assert!(straight.iter().zip(with_two).all(|(a, b)| (a - b).abs() > 1e-4));
        let mut turned = two.clone();
        turned[3..6].copy_from_slice(&two[6..9]);
        turned[6..9].copy_from_slice(&two[3..6]);
        for (a, b) in with_two.iter().zip(logits_of(&turned)) {
            assert!((a - b).abs() < 1e-6);
        }
        // What stands behind an empty row is not there.
        let mut behind = global.to_vec();
        behind[9..12].copy_from_slice(&[0.7, -0.4, 0.9]);
        assert_eq!(straight, logits_of(&behind));
    }

    #[test]
    fn gradient_equals_finite_differences() {
        KINDS
            .into_iter()
            .for_each(gradient_equals_finite_differences_with);
    }

    fn gradient_equals_finite_differences_with(kind: (Spaces, usize)) {
        let ((layout, mut flat), rows) = (network_of(kind), rows(kind.0, 12));
        // Loss: a fixed random weighting of all outputs.
        let mut random = Seed(6).stream("test", 2);
        let mut draw = |n: usize| {
            (0..n)
                .map(|_| uniform(&mut random) as f32 - 0.5)
                .collect::<Vec<_>>()
        };
        let weights = Cotangents {
            logits: draw(rows.num_candidates()),
            values: draw(rows.len()),
        };
        let loss = |flat: &[f32]| {
            let outputs = evaluate(&layout, flat, &rows).unwrap();
            let dot = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            };
            dot(&outputs.logits, &weights.logits) + dot(&outputs.values, &weights.values)
        };
        let exact = gradient(&layout, &flat, &rows, |_| weights.clone()).unwrap();
        for entry in &layout.entries {
            for index in entry.range.clone().step_by(1 + entry.range.len() / 5) {
                // Small, so that few rectifiers change sides.
                let (step, old) = (2e-4, flat[index]);
                flat[index] = old + step;
                let above = loss(&flat);
                flat[index] = old - step;
                let below = loss(&flat);
                flat[index] = old;
                let slope = (above - below) / (2.0 * f64::from(step));
                assert!(
                    (slope - f64::from(exact[index])).abs() < 2e-2 * (1.0 + slope.abs()),
                    "{} [{index}]: {slope} {}",
                    entry.name,
                    exact[index]
                );
            }
        }
    }

    #[test]
    fn a_decision_without_candidates_is_refused() {
        let ((layout, flat), mut rows) = (network_of((PLAIN, 0)), rows(PLAIN, 1));
        rows.push(&[0.0; 3], &[0.0; 5], &[false]);
        assert!(
            evaluate(&layout, &flat, &rows)
                .unwrap_err()
                .to_string()
                .contains("decision 1")
        );
    }
}
