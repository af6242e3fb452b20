//! Learns to take the shortest of eight jobs, and logs to the folder given: `cargo run --example shortest_first -- DIR`.

use std::time::SystemTime;

use pleach_agents::learner::Stats;
use pleach_agents::{Logger, TrainConfig, Trainer};
use pleach_env::{Batch, Error, Seed, Spaces, VectorEnv};
use pleach_network::Contract;
use pleach_scheduler::policy::CandidateConfig;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

const SPACES: Spaces = Spaces::new(1, 8, 1);

/// Sixteen environments; an episode is one choice, and its reward is minus the length of the job.
struct Jobs(Vec<ChaCha8Rng>);

impl VectorEnv for Jobs {
    fn spaces(&self) -> Spaces {
        SPACES
    }
    fn num_envs(&self) -> usize {
        16
    }
    fn reset(&mut self, seeds: &[u64], batch: &mut Batch) -> Result<(), Error> {
        self.0 = seeds.iter().map(|seed| Seed(*seed).stream("jobs", 0)).collect();
        batch.mask.fill(true);
        batch.terminated.fill(true);
        for (random, jobs) in self.0.iter_mut().zip(batch.candidates.chunks_exact_mut(8)) {
            jobs.fill_with(|| random.next_u32() as f32 / u32::MAX as f32);
        }
        Ok(())
    }
    fn step(&mut self, actions: &[usize], batch: &mut Batch) -> Result<(), Error> {
        for (env, (random, jobs)) in self
            .0
            .iter_mut()
            .zip(batch.candidates.chunks_exact_mut(8))
            .enumerate()
        {
            batch.reward[env] = -jobs[actions[env]];
            jobs.fill_with(|| random.next_u32() as f32 / u32::MAX as f32);
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("give a folder")?;
    let config = TrainConfig {
        num_updates: 30,
        num_steps: 64,
        ..TrainConfig::default()
    };
    let contract = Contract::current(SPACES, CandidateConfig::default(), "shortest of eight");
    let (mut trainer, mut env) = (Trainer::new(config, contract, Seed(0))?, Jobs(Vec::new()));
    let now_s = || {
        SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(0.0, |since| since.as_secs_f64())
    };
    let mut logger = Logger::open(folder.as_ref(), None, now_s())?;
    while !trainer.is_finished() {
        let start_s = now_s();
        let stats = trainer.update(&mut env)?;
        let learned = Stats::Update(stats.clone());
        logger.update(&learned, now_s(), 1024.0 / (now_s() - start_s))?;
        println!(
            "update {:2}: mean length {:.3}",
            stats.update, -stats.episodic_return
        );
    }
    trainer.checkpoint().save_numbered(folder.as_ref(), 1)?;
    println!("the shortest of eight is 1/9 = 0.111 in the mean; chance is 0.5");
    Ok(())
}
