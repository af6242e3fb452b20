//! Learning learns, stops cleanly, and goes on exactly where it stopped.

use pleach_env::{Batch, Seed, VectorEnv};
use pleach_network::{
    Contract, DecisionBatch, Inference, NetworkConfig, TrainedNetwork, action_of, softmax::argmax,
};
use pleach_scheduler::policy::CandidateConfig;

use crate::checkpoint::Checkpoint;
use crate::device::Device;
use crate::error::Error;
use crate::imitation::Demonstrations;
use crate::ppo::PpoConfig;
use crate::toy::{Bandit, CAPACITY, Many, Toy, TwoQueues, observe_queues, queue_values};
use crate::train_config::TrainConfig;
use crate::trainer::{Trainer, UpdateStats};

pub(crate) fn config(num_updates: u64, num_steps: usize) -> TrainConfig {
    let ppo = PpoConfig {
        minibatch_size: 128,
        learning_rate: 3e-3,
        learning_rate_final: 3e-4,
        ..PpoConfig::default()
    };
    let network = NetworkConfig {
        hidden: 16,
        context: 16,
        ..NetworkConfig::default()
    };
    TrainConfig {
        num_updates,
        num_steps,
        horizon_s: 200.0,
        network,
        ppo,
        ..TrainConfig::default()
    }
}

pub(crate) fn trainer<T: Toy>(config: TrainConfig) -> Trainer {
    let contract = Contract::current(T::SPACES, CandidateConfig::default(), "toy");
    Trainer::new(config, contract, Seed(11)).unwrap()
}

/// The best action by the network's logits.
fn greedy(
    inference: &Inference,
    global: &[f32],
    candidates: &[f32],
    mask: &[bool],
    rows: &mut DecisionBatch,
) -> usize {
    rows.clear();
    rows.push(global, candidates, mask);
    let row = rows.get(0);
    let mut logits = vec![0.0; row.num_candidates];
    inference.forward(row, &mut inference.scratch(row.num_candidates), &mut logits);
    action_of(argmax(&logits), mask).unwrap()
}

#[test]
fn ppo_finds_the_best_arm_of_a_masked_contextual_bandit() {
    let share = bandit_share(Device::Cpu);
    assert!(share > 0.95, "{share} of the way from chance to the best");
}

/// How far from chance (0) to the best arm (1) the bandit's learned policy is.
pub(crate) fn bandit_share(device: Device) -> f32 {
    bandit_share_of(config(30, 64), device)
}

/// The same of a training of these settings.
pub(crate) fn bandit_share_of(config: TrainConfig, device: Device) -> f32 {
    let mut env = Many::<Bandit>::new(16);
    let mut trainer = trainer::<Bandit>(config).on(device);
    while !trainer.is_finished() {
        trainer.update(&mut env).unwrap();
    }
    let inference = trainer.inference().unwrap();
    let (mut batch, mut rows) = (Batch::new(Bandit::SPACES, 1), DecisionBatch::new(Bandit::SPACES));
    let mut test = Many::<Bandit>::new(1);
    test.reset(&[99], &mut batch).unwrap();
    let (mut earned, mut best, mut mean) = (0.0, 0.0, 0.0);
    for _ in 0..500 {
        best += test.toy(0).best();
        mean += test.toy(0).mean();
        let action = greedy(
            &inference,
            &batch.global,
            &batch.candidates,
            &batch.mask,
            &mut rows,
        );
        test.step(&[action], &mut batch).unwrap();
        earned += batch.reward[0];
    }
    (earned - mean) / (best - mean)
}

/// A teacher of the two queues that serves the first one as long as anything waits there.
pub(crate) fn demonstrations(env: &mut Many<TwoQueues>, num_steps: usize) -> Demonstrations {
    let teacher = |env: &mut Many<TwoQueues>, i: usize, _: &Batch| {
        let queues = env.toy(i).queues;
        Ok((1..3).find(|action| queues[action - 1] > 0).unwrap_or(0))
    };
    Demonstrations::collect(env, Seed(5), num_steps, 200.0, teacher).unwrap()
}

#[test]
fn ppo_comes_within_five_percent_of_value_iteration_on_two_queues() {
    let config = config(40, 80);
    let (mut env, mut trainer) = (Many::<TwoQueues>::new(16), trainer::<TwoQueues>(config));
    let mut last = UpdateStats::default();
    while !trainer.is_finished() {
        last = trainer.update(&mut env).unwrap();
    }
    let inference = trainer.inference().unwrap();
    let learned = |queues: [usize; 2]| {
        let (mut global, mut candidates, mut mask) = ([0.0; 2], [0.0; 12], [false; 3]);
        observe_queues(queues, &mut global, &mut candidates, &mut mask);
        let mut shares = vec![0.0; 3];
        shares[greedy(
            &inference,
            &global,
            &candidates,
            &mask,
            &mut DecisionBatch::new(TwoQueues::SPACES),
        )] = 1.0;
        shares
    };
    let chance = |queues: [usize; 2]| {
        let present = [true, queues[0] > 0, queues[1] > 0];
        let count = present.iter().filter(|p| **p).count() as f64;
        present.map(|p| if p { 1.0 / count } else { 0.0 }).to_vec()
    };
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let best = mean(queue_values(200.0, None));
    let found = mean(queue_values(200.0, Some(&learned)));
    let worst = mean(queue_values(200.0, Some(&chance)));
    let share = (found - worst) / (best - worst);
    assert!(share > 0.95, "chance {worst}, learned {found}, best {best}");
    assert!(found > 1.05 * best, "learned {found}, best {best}");
    // The critic sees the state, and the future beyond the cut.
    assert!(last.explained_variance > 0.3, "{last:?}");
    assert_eq!(last.num_frames, 40 * 80 * 16);
    assert_eq!((last.num_episodes, last.episodic_length), (32, 40.0));
    assert_eq!(CAPACITY, 4);
}

#[test]
fn a_cloned_policy_survives_the_updates_in_which_only_the_value_learns() {
    let config = TrainConfig {
        value_warmup_updates: 2,
        ..config(10, 40)
    };
    let (mut env, mut trainer) = (Many::<TwoQueues>::new(8), trainer::<TwoQueues>(config));
    let demonstrations = demonstrations(&mut env, 200);
    assert_eq!(demonstrations.len(), 1600);
    let stats = trainer.warm_start(&demonstrations).unwrap();
    assert!(stats.accuracy > 0.98, "{stats:?}");
    let before = trainer.parameters().to_vec();
    let head = trainer.layout().value_head();
    for _ in 0..2 {
        let stats = trainer.update(&mut env).unwrap();
        assert!(stats.ppo.approx_kl.abs() < 1e-6, "{stats:?}");
    }
    assert_eq!(before[..head.start], trainer.parameters()[..head.start]);
    assert_ne!(before[head.clone()], trainer.parameters()[head.clone()]);
    let stats = trainer.update(&mut env).unwrap();
    assert_ne!(before[..head.start], trainer.parameters()[..head.start]);
    // Steps of the value head alone are none of the policy's: Adam corrects its moments by how often they were moved.
    assert_eq!(
        trainer.checkpoint().adam.num_steps,
        u64::from(stats.ppo.num_steps)
    );
}

/// Final checkpoint of a run that stops, saves and loads after `stops` updates, on `num_threads` threads.
fn run(num_threads: usize, stops: &[u64]) -> (Checkpoint, Vec<UpdateStats>) {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(num_threads)
        .build()
        .unwrap();
    pool.install(|| {
        let folder = tempfile::tempdir().unwrap();
        let config = TrainConfig {
            group_size: 2,
            ..config(6, 50)
        };
        let (mut env, mut trainer) = (Many::<TwoQueues>::new(8), trainer::<TwoQueues>(config));
        let mut all = Vec::new();
        while !trainer.is_finished() {
            if stops.contains(&trainer.num_updates()) {
                let path = trainer.checkpoint().save_numbered(folder.path(), 2).unwrap();
                trainer = Trainer::resume(Checkpoint::load(&path).unwrap()).unwrap();
                env = Many::new(8);
            }
            all.push(trainer.update(&mut env).unwrap());
        }
        (trainer.checkpoint(), all)
    })
}

#[test]
fn a_resumed_run_equals_a_straight_one_bit_for_bit_at_any_number_of_threads() {
    let straight = run(1, &[]);
    assert_eq!(straight.0, run(1, &[0, 2, 5]).0);
    for num_threads in [2, 4] {
        let other = run(num_threads, &[3]);
        assert_eq!(straight.0, other.0);
        assert_eq!(format!("{:?}", straight.1), format!("{:?}", other.1));
    }
}

#[test]
fn the_network_of_a_run_deploys_from_a_file_and_from_its_checkpoint_alike() {
    let (mut env, mut trainer) = (Many::<TwoQueues>::new(4), trainer::<TwoQueues>(config(2, 16)));
    trainer.update(&mut env).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (file, checkpoint) = (folder.path().join("network.ckpt"), folder.path().join("run.ckpt"));
    let network = trainer.network();
    network.save(&file).unwrap();
    trainer.checkpoint().save(&checkpoint).unwrap();
    assert_eq!(TrainedNetwork::load(&file).unwrap(), network);
    let mut read = TrainedNetwork::load(&checkpoint).unwrap();
    // Sizes stand apart from the settings there.
    let settings = network.provenance.settings.clone();
    assert_eq!(settings["num_steps"], 16);
    read.provenance.settings = settings;
    assert_eq!(read, network);
    // Another run goes on from either.
    let mut other = Trainer::new(config(2, 16), trainer.checkpoint().contract, Seed(5)).unwrap();
    other.go_on_from(&read).unwrap();
    assert_eq!(other.parameters(), trainer.parameters());
    // A network is no run to go on with.
    let said = Checkpoint::load(&file).unwrap_err().to_string();
    assert!(said.contains("does not begin with PLEACHCK"), "{said}");
}

#[test]
fn a_loss_that_is_not_finite_stops_the_run_and_keeps_the_last_good_state() {
    let (mut env, mut trainer) = (Many::<TwoQueues>::new(4), trainer::<TwoQueues>(config(10, 20)));
    trainer.update(&mut env).unwrap();
    let good = trainer.checkpoint();
    env.nan_at = Some(30);
    let error = trainer.update(&mut env).unwrap_err();
    assert!(matches!(error, Error::NotFinite { update: 1 }), "{error}");
    assert_eq!(trainer.checkpoint(), good);
    env.nan_at = None;
    trainer.update(&mut env).unwrap();
    assert_eq!(trainer.num_updates(), 2);
}

#[test]
fn environments_that_do_not_fit_are_refused() {
    let mut trainer = trainer::<TwoQueues>(TrainConfig {
        group_size: 3,
        ..config(2, 5)
    });
    let error = trainer.update(&mut Many::<Bandit>::new(4)).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("contract: observations: expected Spaces"),
        "{error}"
    );
    let error = trainer.update(&mut Many::<TwoQueues>::new(4)).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("config: group_size = 3 with 4 environments"),
        "{error}"
    );
}

#[test]
fn unknown_settings_are_refused_and_defaults_fill_the_rest() {
    let config: TrainConfig = serde_json::from_str(r#"{"num_steps": 32, "ppo": {"clip": 0.1}}"#).unwrap();
    assert_eq!(
        (config.num_steps, config.ppo.clip, config.num_updates),
        (32, 0.1, 200)
    );
    assert!(serde_json::from_str::<TrainConfig>(r#"{"ppo": {"clipp": 0.1}}"#).is_err());
}

#[test]
fn the_network_is_a_running_mean_of_the_parameters_that_learn() {
    let learned = |mean_decay: f64, num_updates: u64| {
        let mut config = config(2, 16);
        config.ppo.mean_decay = mean_decay;
        let (mut env, mut trainer) = (Many::<TwoQueues>::new(4), trainer::<TwoQueues>(config));
        let first = trainer.parameters().to_vec();
        for _ in 0..num_updates {
            trainer.update(&mut env).unwrap();
        }
        (first, trainer.parameters().to_vec())
    };
    let ((first, one), (_, two)) = (learned(0.0, 1), learned(0.0, 2));
    let between = |from: &[f32], to: &[f32]| -> Vec<f32> {
        let pairs = from.iter().zip(to);
        pairs.map(|(from, to)| from + 0.25 * (to - from)).collect()
    };
    let mean = between(&first, &one);
    assert_eq!(learned(0.75, 1).1, mean);
    // What plays and learns is not the mean.
    assert_eq!(learned(0.75, 2).1, between(&mean, &two));
}
