//! Environment steps with random admissible actions and the full observation, and a whole simulated workload.

#![allow(clippy::unwrap_used)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pleach_env::workload::generate::{GeneratorConfig, generate};
use pleach_env::{
    AutoresetMode, Batch, EnvConfig, Seed, SimConfig, VecEnv, VectorEnv, random_action, simulate,
};
use pleach_scheduler::heuristics;

fn steps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("env");
    group.throughput(Throughput::Elements(1));
    for id in EnvConfig::ids() {
        let config = EnvConfig::registered(id).unwrap();
        let mut envs = VecEnv::new(&config, 1, AutoresetMode::SameStep).unwrap();
        let mut batch = Batch::new(envs.spaces(), 1);
        envs.reset(&[1], &mut batch).unwrap();
        let mut rng = Seed(1).stream("bench", 0);
        group.bench_function(format!("step {id}"), |bencher| {
            bencher.iter(|| {
                let action = random_action(&batch.mask, &mut rng);
                envs.step(&[action], &mut batch).unwrap();
            });
        });
    }
    group.finish();
}

fn jobs(criterion: &mut Criterion) {
    let workload = generate(&GeneratorConfig::default(), Seed(1)).unwrap();
    let mut group = criterion.benchmark_group("simulate");
    group.throughput(Throughput::Elements(workload.jobs.len() as u64));
    for name in ["fifo", "sjf", "easy", "srtf"] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut policy = heuristics::by_name(name).unwrap();
                simulate(&workload, &SimConfig::default(), &mut policy).unwrap()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, steps, jobs);
criterion_main!(benches);
