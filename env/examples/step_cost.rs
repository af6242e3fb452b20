//! What a step of an environment costs: `step_cost SCENARIO STEPS [SECONDS [NUM_ENVS]]`.
//!
//! Plays random admissible actions from seed 1, prints a digest of all observations, rewards and times, so that two versions
//! can be held to each other, and then steps per second if asked. `busy` is the environment of `pleach bench`, `busy-starts` the
//! same without preemption; any registered id is one. Instructions are counted under `valgrind --tool=callgrind --toggle-collect='pleach_env::Env::step'`.

#![allow(clippy::unwrap_used)]

use std::time::Instant;

use pleach_env::{AutoresetMode, Batch, EnvConfig, Seed, VecEnv, VectorEnv, random_action};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, scenario, num_steps, seconds @ ..] = &args[..] else {
        return eprintln!("step_cost SCENARIO STEPS [SECONDS [NUM_ENVS]]");
    };
    let config = match scenario.as_str() {
        "busy" => EnvConfig::busy(true),
        "busy-starts" => EnvConfig::busy(false),
        id => EnvConfig::registered(id).unwrap(),
    };
    let num_envs: usize = seconds.get(1).map_or(1, |num| num.parse().unwrap());
    let mut envs = VecEnv::new(&config, num_envs, AutoresetMode::SameStep).unwrap();
    let mut batch = Batch::new(envs.spaces(), num_envs);
    let seeds: Vec<u64> = (1..=num_envs as u64).collect();
    envs.reset(&seeds, &mut batch).unwrap();
    let mut rng = Seed(1).stream("bench", 0);
    let mut step = |batch: &mut Batch| {
        let masks = batch.mask.chunks_exact(envs.spaces().num_candidates);
        let actions: Vec<usize> = masks.map(|mask| random_action(mask, &mut rng)).collect();
        envs.step(&actions, batch).unwrap();
    };
    let mut digest = 1_u64;
    for _ in 0..num_steps.parse().unwrap() {
        step(&mut batch);
        let numbers = batch.global.iter().chain(&batch.candidates).chain(&batch.reward);
        let bits = numbers.map(|number| u64::from(number.to_bits()));
        for bits in bits.chain([batch.dt_s[0].to_bits()]) {
            digest = (digest ^ bits).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        }
    }
    println!("{scenario}: digest {digest:016x}");
    if let Some(seconds) = seconds.first() {
        let (start, limit_s, mut num) = (Instant::now(), seconds.parse().unwrap(), 0);
        while start.elapsed().as_secs_f64() < limit_s {
            (0..100).for_each(|_| step(&mut batch));
            num += 100 * num_envs;
        }
        let took_s = start.elapsed().as_secs_f64();
        println!("{:.0} steps/s, {num} steps", num as f64 / took_s);
    }
}
