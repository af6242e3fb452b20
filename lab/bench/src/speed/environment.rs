//! What a step of the environment costs: one core, all environments on one thread and, where there are more, on two, and the
//! floor.

use pleach_env::{AutoresetMode, Batch, EnvConfig, Seed, VecEnv, VectorEnv, random_action};

use super::BenchArgs;
use super::rate::{cpu_rate, rate};
use pleach_experiments::command::Context;
use pleach_experiments::error::Error;

/// What was measured.
pub(super) struct Figures {
    /// One environment on one core, with preemption.
    pub one: Speed,
    /// The same where jobs are only started.
    pub starts: Speed,
    /// All environments on one thread.
    pub together: Speed,
    /// The same on two; none where there is one thread (`--threads 1`).
    pub two_threads: Option<Speed>,
    /// Bytes of one observation: all rows, also those that are only set to zero.
    pub observation_bytes: f64,
    /// Bytes per second that one core writes into memory larger than any cache.
    pub written_bytes_per_s: f64,
}

/// How fast environments go, and through what.
#[derive(Clone, Copy)]
pub(super) struct Speed {
    /// Steps per second of all environments together.
    pub steps_per_s: f64,
    /// Admissible candidates of a step, on average.
    pub num_candidates: f64,
}

/// Measures all of it.
///
/// # Errors
/// An environment that fails.
pub(super) fn measure(args: &BenchArgs, context: &Context<'_>) -> Result<Figures, Error> {
    let num_envs = args.num_envs as usize;
    let spaces = EnvConfig::busy(true).spaces();
    let floats = spaces.num_global + spaces.num_candidates * spaces.num_features;
    Ok(Figures {
        one: speed(args, context, true, (1, 1))?,
        starts: speed(args, context, false, (1, 1))?,
        together: speed(args, context, true, (num_envs, 1))?,
        two_threads: (rayon::current_num_threads() > 1)
            .then(|| speed(args, context, true, (num_envs, 2)))
            .transpose()?,
        observation_bytes: (floats * size_of::<f32>() + spaces.num_candidates) as f64,
        written_bytes_per_s: memory(args)?,
    })
}

/// Random masked actions in so many environments on so many threads.
fn speed(
    args: &BenchArgs,
    context: &Context<'_>,
    preemption: bool,
    (num_envs, num_threads): (usize, usize),
) -> Result<Speed, Error> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build();
    let pool = pool.map_err(|error| Error::Failed(error.to_string()))?;
    let env = EnvConfig::busy(preemption);
    let mut envs = VecEnv::new(&env, num_envs, AutoresetMode::SameStep)?;
    let mut batch = Batch::new(envs.spaces(), num_envs);
    let seeds: Vec<u64> = (args.report.seed()..).take(num_envs).collect();
    envs.reset(&seeds, &mut batch)?;
    let num_candidates = envs.spaces().num_candidates;
    let mut rng = Seed(args.report.seed()).stream("bench", 0);
    let mut actions = vec![0; num_envs];
    let num_rounds = 1000_usize.div_ceil(num_envs);
    let mut steps = |batch: &mut Batch| -> Result<u64, Error> {
        for _ in 0..num_rounds {
            for (action, mask) in actions.iter_mut().zip(batch.mask.chunks(num_candidates)) {
                *action = random_action(mask, &mut rng);
            }
            envs.step(&actions, batch)?;
        }
        Ok((num_rounds * num_envs) as u64)
    };
    // The first episode's start is not busy yet.
    for _ in 0..20 * num_envs {
        pool.install(|| steps(&mut batch))?;
    }
    let (mut num_offered, mut num_seen) = (0, 0);
    let some = || {
        // One look in a thousand steps, which costs the measurement nothing.
        num_offered += batch.mask.iter().filter(|admissible| **admissible).count();
        num_seen += num_envs;
        pool.install(|| steps(&mut batch))
    };
    // Several are there to be compared with several on two threads.
    let steps_per_s = match num_envs {
        1 => cpu_rate(args, some),
        _ => rate(args, context, some),
    }?;
    Ok(Speed {
        steps_per_s,
        num_candidates: num_offered as f64 / num_seen as f64,
    })
}

fn memory(args: &BenchArgs) -> Result<f64, Error> {
    let mut bytes = vec![0_u8; 1 << 29];
    let mut value = 0;
    cpu_rate(args, || {
        value = (value + 1) % 251;
        bytes.fill(value);
        std::hint::black_box(&bytes);
        Ok(bytes.len() as u64)
    })
}
