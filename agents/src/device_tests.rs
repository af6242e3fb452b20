//! Every device that this build has and this machine can use learns what the CPU learns.
//!
//! A device without a driver is skipped with a message. On machines that are known to have one, run
//! `a_device_of_this_build_is_there`.

use crate::checkpoint::Checkpoint;
use crate::device::Device;
use crate::gradients::{Workspace, sum_of_gradients};
use crate::learning_tests::{bandit_share, config, demonstrations, trainer};
use crate::test_networks::{KINDS, network_of, rows};
use crate::toy::{Many, TwoQueues};
use crate::trainer::{TrainConfig, Trainer};

/// Devices besides the CPU.
fn present() -> Vec<Device> {
    let built_in = Device::ALL
        .into_iter()
        .skip(1)
        .filter(|device| device.is_built_in());
    let usable = |device: &Device| {
        let probed = device.probe();
        match &probed {
            Ok(description) => eprintln!("{}: {description}", device.name()),
            Err(error) => eprintln!("skipped: {error}"),
        }
        probed.is_ok()
    };
    built_in.filter(usable).collect()
}

/// Largest difference between two lists over the largest number of the first.
fn difference(cpu: &[f32], device: &[f32]) -> f32 {
    let largest = |list: &mut dyn Iterator<Item = f32>| list.fold(0.0, |most: f32, x| most.max(x.abs()));
    assert_eq!(cpu.len(), device.len());
    assert!(device.iter().all(|x| x.is_finite()));
    largest(&mut cpu.iter().zip(device).map(|(a, b)| a - b)) / largest(&mut cpu.iter().copied())
}

#[test]
#[ignore = "for machines that are known to have one: a device of this build can be used here"]
fn a_device_of_this_build_is_there() {
    assert!(!present().is_empty());
}

#[test]
fn gradients_equal_those_of_the_cpu() {
    for device in present() {
        for kind in KINDS {
            let ((layout, parameters), rows) = (network_of(kind), rows(kind.0, 300));
            let loss = |decision: usize, logits: &[f32], value: f32, by_logits: &mut [f32]| {
                let scale = (decision as f32 * 0.7).sin();
                by_logits
                    .iter_mut()
                    .zip(logits)
                    .for_each(|(by, logit)| *by = scale + logit);
                (value - scale, [f64::from(value), f64::from(logits[0])])
            };
            let decisions: Vec<usize> = (0..300).rev().collect();
            let on = |device: Device| {
                let mut workspace = Workspace::default();
                let on = (&layout, device, &mut workspace);
                let (sum, figures) = sum_of_gradients(on, &parameters, &rows, &decisions, loss).unwrap();
                (sum.to_vec(), figures)
            };
            let ((cpu, figures), (here, theirs)) = (on(Device::Cpu), on(device));
            for entry in layout.entries.iter().filter(|entry| !entry.range.is_empty()) {
                let range = entry.range.clone();
                let apart = difference(&cpu[range.clone()], &here[range]);
                assert!(apart < 1e-4, "{} of {}: {apart}", entry.name, device.name());
            }
            for (figure, other) in figures.iter().zip(theirs) {
                assert!((figure - other).abs() < 1e-4 * figure.abs().max(1.0));
            }
        }
    }
}

/// A clone of a teacher and some updates, on a device that may change before each of them.
fn learn(devices: &[Device]) -> Vec<Checkpoint> {
    let config = TrainConfig {
        group_size: 2,
        ..config(6, 50)
    };
    let (mut env, mut run) = (
        Many::<TwoQueues>::new(8),
        trainer::<TwoQueues>(config).on(devices[0]),
    );
    run.warm_start(&demonstrations(&mut env, 50)).unwrap();
    let mut states = vec![run.checkpoint()];
    for device in devices {
        run = Trainer::resume(run.checkpoint()).unwrap().on(*device);
        run.update(&mut env).unwrap();
        states.push(run.checkpoint());
    }
    states
}

#[test]
fn the_first_updates_of_a_training_equal_those_of_the_cpu() {
    for device in present() {
        let pairs = learn(&[Device::Cpu; 3]).into_iter().zip(learn(&[device; 3]));
        for (number, (cpu, here)) in pairs.enumerate() {
            let apart = difference(&cpu.parameters, &here.parameters);
            eprintln!("{} after {number} updates: {apart:e}", device.name());
            assert!(apart < 1e-4, "{} after {number} updates: {apart}", device.name());
            assert_eq!(cpu.num_frames, here.num_frames);
        }
    }
}

#[test]
fn a_run_goes_on_on_another_device() {
    for device in present() {
        let straight = learn(&[Device::Cpu; 4]).pop().unwrap();
        let moved = learn(&[device, Device::Cpu, device, Device::Cpu]).pop().unwrap();
        assert_eq!((straight.update, straight.config), (moved.update, moved.config));
        let apart = difference(&straight.parameters, &moved.parameters);
        assert!(apart < 1e-4, "{}: {apart}", device.name());
    }
}

#[test]
fn ppo_finds_the_best_arm_of_a_masked_contextual_bandit_on_every_device() {
    for device in present() {
        let share = bandit_share(device);
        assert!(share > 0.95, "{}: {share}", device.name());
    }
}
