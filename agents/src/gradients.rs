//! Gradients of a minibatch: plain Rust for the built-in network on the CPU, Burn for all others and on any other device.

use pleach_network::{DecisionBatch, Layout, gradient};

use crate::device::Device;
use crate::error::Error;
use crate::networks::{self, OutputGradients, Outputs, PartGradient};

pub use pleach_network::gradient::Workspace;

/// The gradient of a loss that is a sum over `decisions`, and the sums of its figures, as [`gradient::sum_of_gradients`].
/// A device that is not the CPU gets as many decisions at once as fit it; its results agree to rounding.
///
/// # Errors
/// [`Error::Problem`] where sizes of observations or parameters are not the layout's, [`Error::Device`] where this build does
/// not have the device or it fails.
pub fn sum_of_gradients<'a, const N: usize>(
    (layout, device, workspace): (&Layout, Device, &'a mut Workspace),
    parameters: &[f32],
    rows: &DecisionBatch,
    decisions: &[usize],
    loss: impl Fn(usize, &[f32], f32, &mut [f32]) -> (f32, [f64; N]) + Sync,
) -> Result<(&'a mut [f32], [f64; N]), Error> {
    if device == Device::Cpu && layout.graph.is_none() {
        let on = (layout, workspace);
        return Ok(gradient::sum_of_gradients(on, parameters, rows, decisions, loss)?);
    }
    let part = networks::part_gradient(&layout.config, device)?;
    let sum = in_parts((layout, device), parameters, rows, decisions, loss, part)?;
    Ok((workspace.hold(sum.0), sum.1))
}

/// The sum over parts of `decisions` that fit a device.
fn in_parts<const N: usize>(
    (layout, device): (&Layout, Device),
    parameters: &[f32],
    rows: &DecisionBatch,
    decisions: &[usize],
    loss: impl Fn(usize, &[f32], f32, &mut [f32]) -> (f32, [f64; N]),
    part_gradient: PartGradient,
) -> Result<(Vec<f32>, [f64; N]), Error> {
    gradient::check(layout, parameters, rows, decisions.iter().copied())?;
    let sizes = decisions.iter().map(|decision| rows.span(*decision).len());
    let at_once = Device::decisions_at_once(layout, sizes.max().unwrap_or(1));
    let (mut sum, mut figures) = (vec![0.0; parameters.len()], [0.0; N]);
    for decisions in decisions.chunks(at_once) {
        let mut part = rows.empty_like();
        decisions
            .iter()
            .for_each(|decision| part.push_ref(rows.get(*decision)));
        let mut terms = [0.0; N];
        let mut by_outputs = |outputs: &Outputs| {
            let mut by = OutputGradients {
                logits: vec![0.0; outputs.logits.len()],
                values: Vec::new(),
            };
            for (position, decision) in decisions.iter().enumerate() {
                let span = part.span(position);
                let (logits, value) = (&outputs.logits[span.clone()], outputs.values[position]);
                let (by_value, own) = loss(*decision, logits, value, &mut by.logits[span]);
                by.values.push(by_value);
                terms.iter_mut().zip(own).for_each(|(sum, term)| *sum += term);
            }
            by
        };
        let gradient = part_gradient(layout, parameters, &part, &mut by_outputs);
        let gradient = gradient.map_err(|reason| device.failed(&reason))?;
        sum.iter_mut().zip(gradient).for_each(|(sum, part)| *sum += part);
        figures.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
    Ok((sum, figures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_networks::{network_of, rows};
    use pleach_network::Inference;

    /// Burn's gradient on the CPU.
    fn burns<const N: usize>(
        layout: &Layout,
        parameters: &[f32],
        rows: &DecisionBatch,
        decisions: &[usize],
        loss: impl Fn(usize, &[f32], f32, &mut [f32]) -> (f32, [f64; N]),
    ) -> (Vec<f32>, [f64; N]) {
        let part = networks::part_gradient(&layout.config, Device::Cpu).unwrap();
        in_parts((layout, Device::Cpu), parameters, rows, decisions, loss, part).unwrap()
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
    fn the_plain_gradient_is_burns_with_and_without_attention() {
        // Two are large enough for parts of several chunks. The workspace goes from one network to the next.
        let mut workspace = Workspace::default();
        for (heads, num) in [(0, 150), (3, 150), (1, 1_100), (0, 1_100), (2, 150), (0, 70)] {
            let ((layout, parameters), rows) = (network_of(heads), rows(num));
            let decisions: Vec<usize> = (0..num).rev().collect();
            let on = (&layout, Device::Cpu, &mut workspace);
            let (ours, figures) = sum_of_gradients(on, &parameters, &rows, &decisions, loss).unwrap();
            let (burns, wanted) = burns(&layout, &parameters, &rows, &decisions, loss);
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
                assert!((figure - wanted).abs() < 1e-2, "{figure} {wanted}");
            }
        }
    }

    #[test]
    fn the_plain_forward_pass_is_burns() {
        for heads in [0, 3] {
            let ((layout, parameters), mut rows) = (network_of(heads), rows(30));
            rows.set_prior(&[0.5, -2.0, 0.25], &[true; 3]);
            let inference = Inference::new(&layout, &parameters).unwrap();
            let near = |decision: usize, logits: &[f32], value: f32, _: &mut [f32]| {
                let mut own = vec![0.0; logits.len()];
                let own_value = inference.forward(rows.get(decision), &mut inference.scratch(1), &mut own);
                assert!((value - own_value).abs() < 1e-5, "{value} {own_value}");
                for (burns, plain) in logits.iter().zip(&own) {
                    assert!((burns - plain).abs() < 1e-5, "{burns} {plain}");
                }
                (0.0, [1.0])
            };
            let decisions: Vec<usize> = (0..30).collect();
            assert_eq!(burns(&layout, &parameters, &rows, &decisions, near).1, [30.0]);
        }
    }

    #[test]
    fn a_decision_without_candidates_is_refused_before_a_device_sees_it() {
        let ((layout, parameters), mut rows) = (network_of(0), rows(1));
        rows.push(&[0.0; 3], &[0.0; 5], &[false]);
        let part = networks::part_gradient(&layout.config, Device::Cpu).unwrap();
        let on = (&layout, Device::Cpu);
        let error = in_parts(on, &parameters, &rows, &[0, 1], loss, part).unwrap_err();
        assert!(error.to_string().contains("decision 1"), "{error}");
    }

    #[test]
    fn gradients_on_a_device_that_this_build_lacks_are_an_error() {
        let ((layout, parameters), rows) = (network_of(0), rows(2));
        for device in Device::ALL.into_iter().filter(|device| !device.is_built_in()) {
            let mut workspace = Workspace::default();
            let on = (&layout, device, &mut workspace);
            let error = sum_of_gradients(on, &parameters, &rows, &[0, 1], loss).unwrap_err();
            assert!(matches!(error, Error::Device { .. }), "{error}");
        }
    }
}
