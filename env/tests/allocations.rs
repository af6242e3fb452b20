//! A warm environment steps without allocating.
//!
//! *Warm* means: its lists have once been as long as they get, which is so in an episode that it has played before.
//! [`Env::reset`] may allocate, for it makes a workload and all that its jobs will need; so may the autoreset of a vector
//! environment, which is a reset, and the figures of an ended episode ([`Env::metrics`]). Nothing else may: neither a
//! decision nor the events between two.

#![allow(clippy::unwrap_used)]

use pleach_env::workload::generate::GeneratorConfig;
use pleach_env::{
    Env, EnvConfig, Expression, ObservationMut, RewardConfig, Seed, WorkloadConfig, random_action,
};
use pleach_scheduler::ActionKind;

/// Plays an episode to its end, or to `most` steps, with random admissible actions; the steps, and the allocations in them.
fn play(env: &mut Env, seed: u64, actions: u64, most: usize) -> (usize, u64) {
    let spaces = env.spaces();
    let mut global = vec![0.0; spaces.num_global];
    let mut candidates = vec![0.0; spaces.num_candidates * spaces.num_features];
    let mut mask = vec![true; spaces.num_candidates];
    let mut rng = Seed(7).stream("actions", actions);
    macro_rules! buffers {
        () => {
            ObservationMut {
                global: &mut global,
                candidates: &mut candidates,
                mask: &mut mask,
            }
        };
    }
    env.reset(seed, buffers!()).unwrap();
    let (mut num_steps, mut num_allocations, mut ended) = (0, 0, false);
    while !ended && num_steps < most {
        let action = random_action(&mask, &mut rng);
        let measured = allocation_counter::measure(|| {
            let step = env.step(action, buffers!()).unwrap();
            ended = step.terminated || step.truncated;
        });
        num_allocations += measured.count_total;
        num_steps += 1;
    }
    (num_steps, num_allocations)
}

/// A busy cluster of 256 GPUs whose queue grows, with gangs over many nodes; fewer jobs than where speed is measured.
fn busy(preemption: bool) -> EnvConfig {
    let mut config = EnvConfig::busy(preemption);
    config.workload = config.workload.resized(Some(600), None);
    config
}

/// A workload whose jobs may have other types and sizes than the first that fits.
fn other_types_and_sizes(preset: &str) -> EnvConfig {
    let mut config = EnvConfig {
        workload: WorkloadConfig::Generate(GeneratorConfig::preset(preset).unwrap().with(150, 2.0)),
        ..EnvConfig::default()
    };
    let offered = config.candidates.actions.with(ActionKind::Sizes);
    config.candidates.actions = offered.with(ActionKind::WaitForType);
    config
}

/// What decisions commit to is read in every step.
fn paid_by_delay() -> EnvConfig {
    EnvConfig {
        reward: RewardConfig::Expression(Expression::parse("-delay").unwrap()),
        ..EnvConfig::registered("Pleach/PhillyPreempt-v0").unwrap()
    }
}

#[test]
fn a_warm_environment_allocates_nothing_over_thousands_of_steps() {
    let mut num_steps = 0;
    for config in [
        EnvConfig::registered("Pleach/PhillyPreempt-v0").unwrap(),
        EnvConfig::registered("Pleach/GavelMulti-v0").unwrap(),
        other_types_and_sizes("gavel-multi"),
        other_types_and_sizes("pollux"),
        paid_by_delay(),
        busy(false),
        busy(true),
    ] {
        let mut env = Env::new(config).unwrap();
        let (first, _) = play(&mut env, 3, 0, 20_000);
        let (again, num_allocations) = play(&mut env, 3, 0, 20_000);
        assert_eq!(first, again, "the same actions make the same episode");
        assert_eq!(num_allocations, 0, "in {again} steps");
        num_steps += again;
    }
    assert!(num_steps > 2000, "{num_steps} steps say little");
}
