//! Environments of one vector that have settings of their own are those that would have them alone.

use pleach_env::{AutoresetMode, Batch, EnvConfig, Seed, VecEnv, VectorEnv, random_action};

const SEEDS: [u64; 3] = [1, 2, 3];

fn loaded(load: f64) -> EnvConfig {
    let mut config = EnvConfig::registered("Pleach/Philly-v0").unwrap();
    config.workload = config.workload.resized(Some(30), Some(load));
    config
}

/// Candidates, bit by bit, of 60 steps; actions of each environment are drawn from a stream of its own. `[env]`
fn played(envs: &mut VecEnv, seeds: &[u64]) -> Vec<Vec<u32>> {
    let spaces = envs.spaces();
    let mut batch = Batch::new(spaces, seeds.len());
    envs.reset(seeds, &mut batch).unwrap();
    let mut streams: Vec<_> = seeds
        .iter()
        .map(|seed| Seed(*seed).stream("actions", 0))
        .collect();
    let mut trace = vec![Vec::new(); seeds.len()];
    for _ in 0..60 {
        let masks = batch.mask.chunks(spaces.num_candidates);
        let actions: Vec<usize> = masks
            .zip(&mut streams)
            .map(|(mask, stream)| random_action(mask, stream))
            .collect();
        envs.step(&actions, &mut batch).unwrap();
        let width = batch.candidates.len() / seeds.len();
        for (trace, seen) in trace.iter_mut().zip(batch.candidates.chunks(width)) {
            trace.extend(seen.iter().map(|value| value.to_bits()));
        }
    }
    trace
}

#[test]
fn one_that_is_changed_plays_as_it_would_alone_and_the_others_as_before() {
    let (light, heavy) = (loaded(0.5), loaded(3.0));
    let alone = |config: &EnvConfig, seed: u64| {
        let mut envs = VecEnv::new(config, 1, AutoresetMode::SameStep).unwrap();
        played(&mut envs, &[seed]).remove(0)
    };
    let mut envs = VecEnv::new(&light, 3, AutoresetMode::SameStep).unwrap();
    envs.change(&[None, Some(heavy.clone()), None]).unwrap();
    let expected = [alone(&light, 1), alone(&heavy, 2), alone(&light, 3)];
    assert_ne!(alone(&light, 2), expected[1], "the load shows");
    assert_eq!(played(&mut envs, &SEEDS), expected);
}

#[test]
fn what_shows_other_columns_is_refused_and_all_stay_as_they_are() {
    let light = loaded(0.5);
    let mut envs = VecEnv::new(&light, 3, AutoresetMode::SameStep).unwrap();
    let before = played(&mut envs, &SEEDS);
    let other = EnvConfig {
        columns: "decision-2".into(),
        ..loaded(3.0)
    };
    let said = envs.change(&[Some(loaded(3.0)), Some(other), None]).unwrap_err();
    assert!(
        said.to_string().contains("the spaces of the other environments"),
        "{said}"
    );
    assert!(envs.change(&[None, None]).is_err(), "one setting for each");
    assert_eq!(played(&mut envs, &SEEDS), before);
}
