//! Architectures held to their operators, to differences, and to what is learned.

use arrayvec::ArrayString;
use pleach_network::{Contract, TrainedNetwork};
use pleach_scheduler::policy::CandidateConfig;

use super::*;
use crate::gradients::{Workspace, sum_of_gradients};
use crate::learner_name::Learner;
use crate::learning_tests::{bandit_share_of, config, demonstrations};
use crate::test_networks::{PLAIN, rows};
use crate::toy::{Many, Toy as _, TwoQueues};
use crate::train_config::TrainConfig;
use crate::trainer::Trainer;

fn of(name: &str, hidden: usize, heads: usize) -> NetworkConfig {
    NetworkConfig {
        architecture: ArrayString::from(name).unwrap(),
        hidden,
        heads,
        ..NetworkConfig::default()
    }
}

#[test]
fn every_architecture_is_its_operators_and_decides_alike_in_any_batch() {
    for own in &ARCHITECTURES {
        for (hidden, heads) in [(8, 0), (16, 1), (200, 2)] {
            let layout = layout(of(own.name, hidden, heads), PLAIN).unwrap();
            for seed in 0..3 {
                check(&layout, PLAIN, Seed(seed)).unwrap();
            }
        }
    }
}

#[test]
fn an_architecture_that_nobody_knows_is_refused_with_all_names() {
    let said = layout(of("atention", 8, 1), PLAIN).unwrap_err().to_string();
    assert!(
        said.contains("network.architecture = atention: allowed is set, attention"),
        "{said}"
    );
}

#[test]
fn operators_that_are_not_the_module_are_refused_before_a_training() {
    let mut layout = layout(of("attention", 8, 1), PLAIN).unwrap();
    let mut wrong = (**layout.graph.as_ref().unwrap()).clone();
    let sum = wrong
        .nodes
        .iter()
        .position(|node| node.op == pleach_network::graph::Op::Relu);
    wrong.nodes[sum.unwrap()].op = pleach_network::graph::Op::Identity;
    layout.graph = Some(std::sync::Arc::new(wrong));
    let said = check(&layout, PLAIN, Seed(1)).unwrap_err().to_string();
    assert!(
        said.contains("an architecture's module and of its operators"),
        "{said}"
    );
}

#[test]
fn the_gradient_of_attention_is_that_of_differences() {
    let layout = layout(of("attention", 8, 2), PLAIN).unwrap();
    let mut parameters = initial_parameters(&layout, Seed(3));
    let rows = rows(12);
    let decisions: Vec<usize> = (0..rows.len()).collect();
    let mut workspace = Workspace::default();
    // The loss is half the sum of squares of scores and values: its derivatives by them are themselves.
    let mut gradient_and_loss = |parameters: &[f32]| {
        let loss = |_: usize, logits: &[f32], value: f32, by: &mut [f32]| {
            by.copy_from_slice(logits);
            let squares = logits.iter().map(|logit| f64::from(logit * logit)).sum::<f64>();
            (value, [0.5 * (squares + f64::from(value * value))])
        };
        let on = (&layout, Device::Cpu, &mut workspace);
        let (gradient, [loss]) = sum_of_gradients(on, parameters, &rows, &decisions, loss).unwrap();
        (gradient.to_vec(), loss)
    };
    let (gradient, _) = gradient_and_loss(&parameters);
    let largest = gradient.iter().fold(0.0_f32, |most, by| most.max(by.abs()));
    for place in (0..parameters.len()).step_by(7) {
        let (step, before) = (1e-2, parameters[place]);
        parameters[place] = before + step;
        let above = gradient_and_loss(&parameters).1;
        parameters[place] = before - step;
        let below = gradient_and_loss(&parameters).1;
        parameters[place] = before;
        let difference = ((above - below) / f64::from(2.0 * step)) as f32;
        let apart = (difference - gradient[place]).abs();
        assert!(
            apart < 2e-2 * largest,
            "{place}: {difference} {} of {largest}",
            gradient[place]
        );
    }
}

#[test]
fn ppo_finds_the_best_arm_with_a_network_of_ones_own() {
    let config = TrainConfig {
        network: of("attention", 16, 1),
        ..config(25, 64)
    };
    let share = bandit_share_of(config, Device::Cpu);
    assert!(share > 0.9, "{share} of the way from chance to the best");
}

#[test]
fn a_network_of_ones_own_learns_the_same_on_any_number_of_threads_and_after_a_stop() {
    let run = |num_threads: usize, stop: bool| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(num_threads)
            .build()
            .unwrap();
        pool.install(|| {
            let config = TrainConfig {
                network: of("attention", 16, 1),
                ..config(2, 16)
            };
            let contract = Contract::current(TwoQueues::SPACES, CandidateConfig::default(), "toy");
            let mut trainer = Trainer::new(config, contract, Seed(11)).unwrap();
            trainer
                .warm_start(&demonstrations(&mut Many::<TwoQueues>::new(2), 50))
                .unwrap();
            let mut env = Many::<TwoQueues>::new(4);
            trainer.update(&mut env).unwrap();
            if stop {
                trainer = Trainer::resume(trainer.checkpoint()).unwrap();
                env = Many::<TwoQueues>::new(4);
            }
            trainer.update(&mut env).unwrap();
            trainer.parameters().to_vec()
        })
    };
    let one = run(1, false);
    assert_eq!(one, run(2, false));
    assert_eq!(one, run(2, true));
}

#[test]
fn what_was_trained_is_deployed_from_its_file_without_its_architecture() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("network.ckpt");
    let config = TrainConfig {
        learner: Learner::EVOLUTION,
        network: of("attention", 16, 1),
        ..TrainConfig::default()
    };
    let contract = Contract::current(PLAIN, CandidateConfig::default(), "test");
    let mut trainer = Trainer::new(config, contract, Seed(3)).unwrap();
    let rank = |members: &[Inference], _: Seed| {
        let fitness = (0..members.len()).map(|index| index as f64).collect();
        Ok::<_, Error>((fitness, 1))
    };
    let before = trainer.parameters().to_vec();
    trainer.evolve(rank).unwrap();
    assert_ne!(before, trainer.parameters());
    let network = trainer.network();
    network.save(&path).unwrap();
    let back = TrainedNetwork::load(&path).unwrap();
    assert_eq!(back, network);
    let (layout, rows) = (back.layout().unwrap(), rows(9));
    let (one, other) = (
        Inference::new(&layout, &back.parameters).unwrap(),
        trainer.inference().unwrap(),
    );
    for decision in 0..rows.len() {
        let row = rows.get(decision);
        let scores = |inference: &Inference| {
            let mut scores = vec![0.0; row.num_candidates];
            let value = inference.forward(row, &mut inference.scratch(1), &mut scores);
            (scores, value)
        };
        assert_eq!(scores(&one), scores(&other));
    }
}
