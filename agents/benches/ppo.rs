//! Speed of learning without a simulator: environments that hand out recorded observations of 20 candidates.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pleach_agents::{TrainConfig, Trainer, initial_parameters};
use pleach_env::{Batch, Error, Seed, Spaces, VectorEnv};
use pleach_network::{Contract, DecisionBatch, Inference, Layout, NetworkConfig};
use pleach_scheduler::policy::CandidateConfig;
use rand::Rng;

const SPACES: Spaces = Spaces::new(12, 64, 32);
const NUM_ENVS: usize = 16;
const NUM_STEPS: usize = 256;
/// Recorded observations.
const NUM_RECORDED: usize = 256;

/// Environments that do nothing but write the next recorded observation.
struct Recorded {
    global: Vec<f32>,
    candidates: Vec<f32>,
    mask: Vec<bool>,
    clock: usize,
}

impl Recorded {
    fn new() -> Recorded {
        let mut random = Seed(1).stream("bench", 0);
        let mut draw = |n: usize| {
            (0..n)
                .map(|_| random.next_u32() as f32 / u32::MAX as f32)
                .collect::<Vec<_>>()
        };
        let Spaces {
            num_global: g,
            num_candidates: c,
            num_features: f,
            ..
        } = SPACES;
        let (global, candidates) = (draw(NUM_RECORDED * g), draw(NUM_RECORDED * c * f));
        // 5 to 35 candidates, 20 in the mean.
        let mask = (0..NUM_RECORDED)
            .flat_map(|i| (0..c).map(move |row| row < 5 + i * 7 % 31))
            .collect();
        Recorded {
            global,
            candidates,
            mask,
            clock: 0,
        }
    }

    fn write(&self, batch: &mut Batch) {
        let Spaces {
            num_global: g,
            num_candidates: c,
            num_features: f,
            ..
        } = SPACES;
        for env in 0..NUM_ENVS {
            let at = (self.clock * NUM_ENVS + env * 17) % NUM_RECORDED;
            let copy = |from: &[f32], to: &mut [f32], n: usize| {
                to[env * n..(env + 1) * n].copy_from_slice(&from[at * n..(at + 1) * n]);
            };
            copy(&self.global, &mut batch.global, g);
            copy(&self.candidates, &mut batch.candidates, c * f);
            batch.mask[env * c..(env + 1) * c].copy_from_slice(&self.mask[at * c..(at + 1) * c]);
        }
    }
}

impl VectorEnv for Recorded {
    fn spaces(&self) -> Spaces {
        SPACES
    }

    fn num_envs(&self) -> usize {
        NUM_ENVS
    }

    fn reset(&mut self, _seeds: &[u64], batch: &mut Batch) -> Result<(), Error> {
        self.clock = 0;
        self.write(batch);
        Ok(())
    }

    fn step(&mut self, actions: &[usize], batch: &mut Batch) -> Result<(), Error> {
        self.clock += 1;
        for (env, action) in actions.iter().enumerate() {
            batch.reward[env] = -((action + env + self.clock) as f32 % 7.0);
            batch.dt_s[env] = (self.clock % 3) as f64 * 60.0;
            batch.terminated[env] = self.clock.is_multiple_of(200);
        }
        self.write(batch);
        Ok(())
    }
}

fn forward(criterion: &mut Criterion) {
    let layout = Layout::new(NetworkConfig::default(), SPACES).expect("a valid layout");
    let inference =
        Inference::new(&layout, &initial_parameters(&layout, Seed(1))).expect("parameters of the layout");
    let mut rows = DecisionBatch::new(SPACES);
    rows.push(&[0.1; 12], &[0.3; 20 * 32], &[true; 20]);
    let (mut scratch, mut logits) = (inference.scratch(20), [0.0; 20]);
    criterion.bench_function("forward/20_candidates", |bencher| {
        bencher.iter(|| inference.forward(black_box(rows.get(0)), &mut scratch, &mut logits));
    });
}

fn update(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("update");
    group
        .throughput(Throughput::Elements((NUM_ENVS * NUM_STEPS) as u64))
        .sample_size(10);
    for num_epochs in [1, 3] {
        let mut config = TrainConfig {
            num_steps: NUM_STEPS,
            ..TrainConfig::default()
        };
        (config.ppo.num_epochs, config.ppo.target_kl) = (num_epochs, 0.0);
        let contract = Contract::current(SPACES, CandidateConfig::default(), "bench");
        let mut trainer = Trainer::new(config, contract, Seed(1)).expect("a valid configuration");
        let mut env = Recorded::new();
        group.bench_function(format!("{num_epochs}_epochs"), |bencher| {
            bencher.iter(|| trainer.update(&mut env).expect("an update"));
        });
    }
    group.finish();
}

criterion_group!(benches, forward, update);
criterion_main!(benches);
