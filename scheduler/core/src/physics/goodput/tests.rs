use super::*;
use proptest::prelude::*;

/// Gradient 1 s + 0.1 s a sample; sync 0.5 s on one node, 2 s on several; no overlap.
const PLAIN: Elastic = elastic(
    [1.0, 0.1, 2.0, 0.2, 0.5, 0.1, 1.0],
    [10, 1000],
    [1, 20],
    [90.0, 9000.0],
);

#[test]
fn the_time_of_an_iteration_is_the_sum_that_pollux_writes() {
    let time = PLAIN.time;
    // One GPU, 10 samples: 1 + 1 = 2 s.
    assert!((time.iteration_s(1, 1, 10.0, 0) - 2.0).abs() < 1e-12);
    // Four GPUs of one node: sync 0.5 + 0.1 x 2 = 0.7; two accumulation steps: 2 x 2 + 2 + 0.7 = 6.7 s.
    assert!((time.iteration_s(4, 1, 10.0, 2) - 6.7).abs() < 1e-12);
    // On two nodes: sync 2 + 0.2 x 2 = 2.4; 2 + 2.4 = 4.4 s.
    assert!((time.iteration_s(4, 2, 10.0, 0) - 4.4).abs() < 1e-12);
    // Full overlap tends to the longer of 2 and 2.4; gamma 2 gives the hypotenuse of 1.8 and 2.4 = 3.
    let overlapped = IterationTime { gamma: 2.0, ..time };
    assert!((overlapped.iteration_s(4, 2, 8.0, 0) - 3.0).abs() < 1e-12);
}

#[test]
fn a_batch_ten_times_as_large_is_worth_what_the_noise_says() {
    // (90 + 10) / (90 + 100) = 0.526; with much noise (9,000 + 10) / (9,000 + 100) = 0.990.
    assert!((PLAIN.efficiency(PLAIN.noise(0.0), 100) - 100.0 / 190.0).abs() < 1e-12);
    assert!((PLAIN.efficiency(PLAIN.noise(1.0), 100) - 9010.0 / 9100.0).abs() < 1e-12);
    // Half-way on a logarithmic scale: 900.
    assert!((PLAIN.noise(0.5) - 900.0).abs() < 1e-9);
}

#[test]
fn the_best_batch_on_one_gpu_is_found_by_hand() {
    // One GPU, one step: goodput(M) = M / (1 + 0.1 M) x 100 / (90 + M); derivative 0 where 0.1 M^2 = 90, M = 30.
    // Beyond 20 samples steps are accumulated and each costs the constant second again, so 20 is best:
    // 20 / 3 x 100 / 110 = 6.06 a second (at 30 in two steps: 30 / 5 x 100 / 120 = 5.0).
    let best = PLAIN.best(1, 1, 90.0).unwrap();
    assert_eq!(
        (best.total_batch, best.local_batch, best.accumulation),
        (20, 20, 0)
    );
    assert!((best.goodput - 20.0 / 3.0 * 100.0 / 110.0).abs() < 1e-9);
    // Room for 40 samples: 30 is best, 30 / 4 x 100 / 120 = 6.25.
    let roomy = Elastic {
        max_local_batch: 40,
        ..PLAIN
    };
    assert!((roomy.best(1, 1, 90.0).unwrap().goodput - 6.25).abs() < 0.01);
}

#[test]
fn more_gpus_than_samples_cannot_run() {
    assert!(PLAIN.best(1001, 200, 90.0).is_none());
    assert_eq!(PLAIN.speedup(1001, 200, 90.0), 0.0);
    assert!(PLAIN.best(0, 0, 90.0).is_none() && !PLAIN.can_run_on(0));
    assert!(PLAIN.best(u32::MAX, 1, 90.0).is_none() && !PLAIN.can_run_on(u32::MAX));
    assert!(PLAIN.best(1000, 200, 90.0).is_some());
}

#[test]
fn published_profiles_are_valid_scale_sublinearly_and_prefer_one_node() {
    for (name, model) in POLLUX_MODELS {
        model.validate().unwrap();
        let noise = model.noise(0.5);
        assert!((model.speedup(1, 1, noise) - 1.0).abs() < 1e-12);
        for num_gpus in [2, 3, 4] {
            let (one, several) = (
                model.speedup(num_gpus, 1, noise),
                model.speedup(num_gpus, num_gpus, noise),
            );
            assert!(one >= several, "{name} x{num_gpus}: {one} against {several}");
            assert!(one <= f64::from(num_gpus) * 1.01, "{name} x{num_gpus}: {one}");
        }
    }
    let imagenet = Elastic::from_name("imagenet").unwrap();
    // A noisy gradient makes 16 GPUs worth more late in training than early.
    assert!(imagenet.speedup(16, 4, imagenet.noise(1.0)) > imagenet.speedup(16, 4, imagenet.noise(0.0)));
}

#[test]
fn broken_parameters_are_refused_by_name() {
    let mut broken = PLAIN;
    broken.time.gamma = 0.5;
    assert!(
        broken
            .validate()
            .unwrap_err()
            .to_string()
            .contains("elastic.time.gamma")
    );
    let text = Elastic::from_name("vgg").unwrap_err().to_string();
    assert!(text.contains("vgg") && text.contains("cifar10"), "{text}");
}

/// The slow obvious best: every whole batch that the model allows.
fn best_of_all(model: &Elastic, num_gpus: u32, num_nodes: u32, noise: f64) -> f64 {
    let mut best = 0.0_f64;
    for local_batch in model.min_local_batch..=model.max_local_batch {
        for steps in 1_u32.. {
            let total = num_gpus * local_batch * steps;
            if total > model.max_batch {
                break;
            }
            if total >= model.initial_batch {
                let seconds = model
                    .time
                    .iteration_s(num_gpus, num_nodes, f64::from(local_batch), steps - 1);
                best = best.max(f64::from(total) / seconds * model.efficiency(noise, total));
            }
        }
    }
    best
}

/// The same fifty batches, each looked at, one after the other.
fn best_in_order(model: &Elastic, num_gpus: u32, num_nodes: u32, noise: f64) -> Option<Choice> {
    let least = (model.min_local_batch * num_gpus).max(model.initial_batch);
    if least > model.max_batch {
        return None;
    }
    let (low, high) = (f64::from(least), f64::from(model.max_batch));
    let step = (high / low).powf(1.0 / 49.0);
    let (mut total, mut best) = (low, None::<Choice>);
    for _ in 0..50 {
        if let Some(batch) = model.batch(num_gpus, total.min(high)) {
            let seconds =
                model
                    .time
                    .iteration_s(num_gpus, num_nodes, f64::from(batch.local), batch.accumulation);
            let throughput = f64::from(batch.total) / seconds;
            let goodput = throughput * model.efficiency(noise, batch.total);
            if best.is_none_or(|best| goodput > best.goodput) {
                best = Some(Choice {
                    goodput,
                    throughput,
                    efficiency: model.efficiency(noise, batch.total),
                    local_batch: batch.local,
                    accumulation: batch.accumulation,
                    total_batch: batch.total,
                });
            }
        }
        total *= step;
    }
    best
}

proptest! {
    #[test]
    fn what_is_skipped_in_the_search_could_not_have_been_best(
        which in 0_usize..7, num_gpus in 1_u32..65, num_nodes in 1_u32..9, noise in 1.0_f64..1e9,
    ) {
        let model = POLLUX_MODELS.get(which).map_or(PLAIN, |(_, model)| *model);
        let best = best_in_order(&model, num_gpus, num_nodes, noise);
        prop_assert_eq!(model.can_run_on(num_gpus), best.is_some());
        prop_assert_eq!(model.best(num_gpus, num_nodes, noise), best);
    }

    #[test]
    fn fifty_batches_are_within_five_percent_of_all_batches(
        num_gpus in 1_u32..24, num_nodes in 1_u32..6, noise in 1.0_f64..1e5,
    ) {
        let found = PLAIN.best(num_gpus, num_nodes, noise).unwrap().goodput;
        let best = best_of_all(&PLAIN, num_gpus, num_nodes, noise);
        prop_assert!(found <= best + 1e-9);
        prop_assert!(found >= 0.95 * best, "{found} of {best}");
    }

    #[test]
    fn a_choice_keeps_its_bounds_and_noise_never_hurts(
        which in 0_usize..6, num_gpus in 1_u32..17, num_nodes in 1_u32..5, noise in 1.0_f64..1e6,
    ) {
        let model = POLLUX_MODELS[which].1;
        let choice = model.best(num_gpus, num_nodes, noise).unwrap();
        prop_assert!(choice.total_batch >= model.initial_batch && choice.total_batch <= model.max_batch);
        prop_assert!(choice.local_batch >= model.min_local_batch && choice.local_batch <= model.max_local_batch);
        prop_assert_eq!(choice.total_batch, num_gpus * choice.local_batch * (choice.accumulation + 1));
        prop_assert!(choice.efficiency > 0.0 && choice.efficiency <= 1.0);
        prop_assert!(choice.goodput <= choice.throughput);
        prop_assert!(model.best(num_gpus, num_nodes, noise * 2.0).unwrap().goodput >= choice.goodput - 1e-9);
    }

    #[test]
    fn an_iteration_takes_between_the_longer_part_and_the_sum(
        which in 0_usize..6, num_gpus in 1_u32..17, num_nodes in 1_u32..5, local_batch in 1.0_f64..200.0,
    ) {
        let time = POLLUX_MODELS[which].1.time;
        let (grad, sync) = (time.grad_s(local_batch), time.sync_s(num_gpus, num_nodes));
        let whole = time.iteration_s(num_gpus, num_nodes, local_batch, 0);
        prop_assert!(whole >= grad.max(sync) * (1.0 - 1e-12) && whole <= (grad + sync) * (1.0 + 1e-12));
        prop_assert!(time.iteration_s(num_gpus, num_nodes, local_batch + 1.0, 0) > whole);
        prop_assert!(time.iteration_s(num_gpus, num_nodes, local_batch, 1) > whole);
    }
}
