//! Episodes that were recorded once, byte by byte: the Python package plays the same actions and must see the same
//! (`python/tests/test_same_bytes.py` reads the same file).

use pleach_env::{AutoresetMode, Batch, EnvConfig, VecEnv, VectorEnv as _};
use sha2::{Digest as _, Sha256};

const NUM_ENVS: usize = 4;
const RECORDED: &str = include_str!("../../python/tests/recorded_episodes.txt");

/// Adds what a step shows to the digest: numbers in little-endian order, flags as bytes.
fn add(digest: &mut Sha256, batch: &Batch) {
    let floats = [&batch.candidates, &batch.global, &batch.reward];
    for values in floats {
        digest.update(
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect::<Vec<u8>>(),
        );
    }
    for flags in [&batch.mask, &batch.terminated, &batch.truncated] {
        digest.update(flags.iter().map(|flag| u8::from(*flag)).collect::<Vec<u8>>());
    }
    digest.update(
        batch
            .dt_s
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<u8>>(),
    );
}

/// Plays the last admissible candidate, with an episode after the other; the digest of all, and the sum of the average JCTs.
fn play(id: &str, num_jobs: usize, num_steps: usize) -> (String, f64) {
    let mut config = EnvConfig::registered(id).unwrap();
    config.workload = config.workload.resized(Some(num_jobs), None);
    let mut envs = VecEnv::new(&config, NUM_ENVS, AutoresetMode::SameStep).unwrap();
    let mut batch = Batch::new(envs.spaces(), NUM_ENVS);
    envs.reset(&[7, 8, 9, 10], &mut batch).unwrap();
    let (mut digest, mut sum_s) = (Sha256::new(), 0.0);
    add(&mut digest, &batch);
    for _ in 0..num_steps {
        let masks = batch.mask.chunks_exact(envs.spaces().num_candidates);
        let last = |mask: &[bool]| mask.iter().rposition(|admissible| *admissible).unwrap();
        let actions: Vec<usize> = masks.map(last).collect();
        envs.step(&actions, &mut batch).unwrap();
        add(&mut digest, &batch);
        sum_s += batch
            .episode
            .iter()
            .flatten()
            .map(|figures| figures.avg_jct_s)
            .sum::<f64>();
    }
    let hex = digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    (hex, sum_s)
}

#[test]
fn episodes_are_those_that_were_recorded() {
    let cases = [
        ("Pleach/Philly-v0", 30),
        ("Pleach/GavelMulti-v1", 20),
        ("Pleach/PhillyPreempt-v0", 25),
    ];
    let mut found = String::from(
        "# id, jobs, steps, digest, sum of average JCTs; written by env/tests/recorded_episodes.rs\n",
    );
    for (id, num_jobs) in cases {
        let (digest, sum_s) = play(id, num_jobs, 200);
        found += &format!("{id} {num_jobs} 200 {digest} {sum_s:?}\n");
    }
    assert_eq!(
        RECORDED, found,
        "if a change of results was meant, this is the new file"
    );
}
