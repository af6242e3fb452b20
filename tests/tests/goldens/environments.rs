//! What random admissible actions see and get in every registered environment.

use pleach_env::{AutoresetMode, Batch, EnvConfig, Seed, VecEnv, VectorEnv, random_action};

use pleach_tests::golden::{Digest, Row, hold};

const NUM_STEPS: usize = 1000;

fn play(name: &str, config: &EnvConfig, seed: u64) -> Row {
    let mut envs = VecEnv::new(config, 1, AutoresetMode::SameStep).unwrap();
    let mut batch = Batch::new(envs.spaces(), 1);
    envs.reset(&[seed], &mut batch).unwrap();
    let mut random = Seed(seed).stream("golden", 0);
    let mut digest = Digest::new();
    let (mut reward, mut time_s, mut num_ended) = (0.0, 0.0, [0; 2]);
    for _ in 0..NUM_STEPS {
        digest.f32s(&batch.candidates);
        digest.f32s(&batch.global);
        digest.bools(&batch.mask);
        let action = random_action(&batch.mask, &mut random);
        envs.step(&[action], &mut batch).unwrap();
        digest.f32s(&batch.reward);
        digest.f64(batch.dt_s[0]);
        digest.bools(&[batch.terminated[0], batch.truncated[0]]);
        reward += f64::from(batch.reward[0]);
        time_s += batch.dt_s[0];
        num_ended[0] += usize::from(batch.terminated[0]);
        num_ended[1] += usize::from(batch.truncated[0]);
    }
    let [terminated, truncated] = num_ended;
    let figures = format!(
        "{NUM_STEPS} steps, {terminated} terminated, {truncated} truncated, reward {reward:.3}, {:.3} h",
        time_s / 3600.0
    );
    Row::new(format!("{name}, seed {seed}"), digest, figures)
}

#[test]
fn every_registered_environment_shows_and_rewards_what_it_did() {
    let mut rows = Vec::new();
    for id in EnvConfig::ids() {
        let config = EnvConfig::registered(id).unwrap();
        rows.extend([1, 2].map(|seed| play(id, &config, seed)));
    }
    let id = "Pleach/PhillyPreempt-v0";
    let mut config = EnvConfig::registered(id).unwrap();
    config.max_steps = Some(150);
    rows.push(play(&format!("{id}, cut after 150 steps"), &config, 1));
    hold("environments", rows);
}
