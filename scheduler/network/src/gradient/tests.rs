use super::*;
use crate::fixtures::{HEADS, Numbers, PLAIN, decisions, network_of, parameters};
use crate::forward::Inference;
use crate::parameters::NetworkConfig;

/// Sizes that are no multiples of anything, decisions of 1 to 9 candidates.
fn network_and_rows(hidden: usize, heads: usize, num_decisions: usize) -> (Layout, Vec<f32>, DecisionBatch) {
    let config = NetworkConfig {
        hidden,
        context: 24,
        heads,
        ..NetworkConfig::default()
    };
    let layout = Layout::new(config, PLAIN).unwrap();
    let parameters = parameters(&layout, 11);
    (layout, parameters, decisions(PLAIN, num_decisions))
}

/// A loss whose derivatives depend on all that a loss sees.
fn loss(decision: usize, logits: &[f32], value: f32, by_logits: &mut [f32]) -> (f32, [f64; 2]) {
    for (index, (by, logit)) in by_logits.iter_mut().zip(logits).enumerate() {
        *by = logit + (decision + index) as f32 % 3.0 - 1.0;
    }
    let sum = logits.iter().map(|logit| f64::from(*logit)).sum();
    (value - decision as f32 % 5.0, [sum, f64::from(value)])
}

/// Logits and value of each decision, by the forward pass.
fn outputs(layout: &Layout, parameters: &[f32], rows: &DecisionBatch) -> Vec<(Vec<f32>, f32)> {
    let inference = Inference::new(layout, parameters).unwrap();
    let mut scratch = inference.scratch(1);
    (0..rows.len())
        .map(|decision| {
            let row = rows.get(decision);
            let mut logits = vec![0.0; row.num_candidates];
            let value = inference.forward(row, &mut scratch, &mut logits);
            (logits, value)
        })
        .collect()
}

#[test]
fn a_loss_sees_what_the_forward_pass_says() {
    for heads in HEADS {
        let ((layout, parameters), rows) = (network_of(PLAIN, heads), decisions(PLAIN, 70));
        let expected = outputs(&layout, &parameters, &rows);
        let near = |decision: usize, logits: &[f32], value: f32, _: &mut [f32]| {
            let (own, own_value) = &expected[decision];
            assert_eq!(logits.len(), own.len());
            let pairs = logits.iter().chain([&value]).zip(own.iter().chain([own_value]));
            for (a, b) in pairs {
                assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "{a} {b}");
            }
            (0.0, [1.0])
        };
        let order: Vec<usize> = (0..70).collect();
        let mut workspace = Workspace::default();
        let (_, [num]) =
            sum_of_gradients((&layout, &mut workspace), &parameters, &rows, &order, near).unwrap();
        assert_eq!(num, 70.0);
    }
}

#[test]
fn the_gradient_equals_finite_differences() {
    for heads in HEADS {
        let ((layout, mut parameters), rows) = (network_of(PLAIN, heads), decisions(PLAIN, 12));
        // Loss: a fixed weighting of all outputs that looks drawn.
        let mut numbers = Numbers(6);
        let weights: Vec<(Vec<f32>, f32)> = (0..rows.len())
            .map(|decision| (numbers.list(rows.span(decision).len()), numbers.next()))
            .collect();
        let of_weights = |decision: usize, _: &[f32], _: f32, by_logits: &mut [f32]| {
            by_logits.copy_from_slice(&weights[decision].0);
            (weights[decision].1, [])
        };
        let sum = |parameters: &[f32]| -> f64 {
            let all = outputs(&layout, parameters, &rows);
            let terms = all
                .iter()
                .zip(&weights)
                .flat_map(|((logits, value), (by, by_value))| {
                    let pairs = logits.iter().zip(by).chain([(value, by_value)]);
                    pairs
                        .map(|(a, b)| f64::from(*a) * f64::from(*b))
                        .collect::<Vec<_>>()
                });
            terms.sum()
        };
        let order: Vec<usize> = (0..rows.len()).collect();
        let mut workspace = Workspace::default();
        let on = (&layout, &mut workspace);
        let (exact, []) = sum_of_gradients(on, &parameters, &rows, &order, of_weights).unwrap();
        let exact = exact.to_vec();
        for entry in &layout.entries {
            for index in entry.range.clone().step_by(1 + entry.range.len() / 5) {
                // Small, so that few rectifiers change sides.
                let (step, old) = (2e-4, parameters[index]);
                parameters[index] = old + step;
                let above = sum(&parameters);
                parameters[index] = old - step;
                let below = sum(&parameters);
                parameters[index] = old;
                let slope = (above - below) / (2.0 * f64::from(step));
                let exact = exact[index];
                assert!(
                    (slope - f64::from(exact)).abs() < 2e-2 * (1.0 + slope.abs()),
                    "{} [{index}]: {slope} {exact}",
                    entry.name
                );
            }
        }
    }
}

#[test]
fn the_gradient_does_not_depend_on_the_number_of_threads() {
    let (layout, parameters, rows) = network_and_rows(16, 2, 1_100);
    let decisions: Vec<usize> = (0..1_100).collect();
    let on = |num_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(num_threads)
            .build()
            .unwrap();
        let mut workspace = Workspace::default();
        let (gradient, figures) = pool
            .install(|| sum_of_gradients((&layout, &mut workspace), &parameters, &rows, &decisions, loss))
            .unwrap();
        (gradient.to_vec(), figures)
    };
    let one = on(1);
    assert_eq!(one, on(2));
    assert_eq!(one, on(4));
}

#[test]
fn a_decision_without_candidates_is_an_error() {
    let (layout, parameters, mut rows) = network_and_rows(8, 0, 2);
    rows.push(&[0.0; 3], &[0.0; 5], &[false]);
    let mut workspace = Workspace::default();
    let mut sum = |decisions: &[usize]| {
        let on = (&layout, &mut workspace);
        match sum_of_gradients(on, &parameters, &rows, decisions, loss) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    let error = sum(&[0, 2]);
    assert!(error.contains("0 in decision 2"), "{error}");
    assert_eq!(sum(&[0, 1]), "");
}
