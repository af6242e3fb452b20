//! Frames per second of PPO on a registered environment, whole and in its two halves, and the arithmetic of one training
//! step: what `lab/bench/peers` compares with other learners.
//!
//! `frames update [key=value ...]` or `frames step [key=value ...]`; prints one line of JSON. Processor time is that of all
//! threads, from `/proc/self/stat`, so Linux only.

use std::collections::BTreeMap;
use std::time::Instant;

use pleach_agents::gradients::Workspace;
use pleach_agents::ppo::{self, Experience, PpoConfig, Schedule};
use pleach_agents::{Adam, Device, Rollout, TrainConfig, Trainer, initial_parameters};
use pleach_env::{AutoresetMode, Batch, EnvConfig, Seed, VecEnv, VectorEnv};
use pleach_network::{Contract, Inference, Layout, NetworkConfig, Normaliser};
use serde_json::json;

type Error = Box<dyn std::error::Error>;

/// The kernel's tick of processor times, s.
///
/// # Source
/// proc(5): `sysconf(_SC_CLK_TCK)`, 100 on every Linux that Rust supports.
const TICK_S: f64 = 0.01;

/// Processor time so far, s: of all threads, or of the first alone. While that one works, no other thread can do its part.
fn cpu_s(of: &str) -> Result<f64, Error> {
    let stat = std::fs::read_to_string(format!("/proc/{of}/stat"))?;
    // Fields 14 and 15; the name in field 2 may hold blanks, so count after its bracket.
    let rest = stat.rsplit(')').next().unwrap_or_default();
    let ticks = rest.split_whitespace().skip(11).take(2);
    Ok(ticks
        .map(|field| field.parse::<f64>().unwrap_or(f64::NAN))
        .sum::<f64>()
        * TICK_S)
}

/// Repeats `work`, which returns what it has done, for at least `seconds`: done, wall s, processor s, and the processor s of
/// the first thread.
fn repeat(seconds: f64, mut work: impl FnMut() -> Result<u64, Error>) -> Result<[f64; 4], Error> {
    work()?;
    let first = format!("self/task/{}", std::process::id());
    let (start, cpu, alone, mut done) = (Instant::now(), cpu_s("self")?, cpu_s(&first)?, 0);
    while start.elapsed().as_secs_f64() < seconds {
        done += work()?;
    }
    Ok([
        done as f64,
        start.elapsed().as_secs_f64(),
        cpu_s("self")? - cpu,
        cpu_s(&first)? - alone,
    ])
}

struct Settings(BTreeMap<String, String>);

impl Settings {
    fn get<T: std::str::FromStr>(&self, key: &str, default: T) -> Result<T, Error>
    where
        T::Err: std::error::Error + 'static,
    {
        Ok(self.0.get(key).map_or(Ok(default), |value| value.parse())?)
    }
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or("update".to_owned());
    let pairs = arguments.filter_map(|pair| pair.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())));
    let settings = Settings(pairs.collect());
    let seconds: f64 = settings.get("seconds", 3.0)?;
    let num_envs: usize = settings.get("envs", 16)?;
    let hidden: usize = settings.get("hidden", 32)?;
    let mut config = TrainConfig {
        num_steps: settings.get("steps", 256)?,
        network: NetworkConfig {
            hidden,
            context: settings.get("context", hidden)?,
            heads: 0,
            ..NetworkConfig::default()
        },
        ppo: PpoConfig {
            num_epochs: settings.get("epochs", 3)?,
            minibatch_size: settings.get("minibatch", 512)?,
            // All epochs, always: otherwise the count of gradient steps would be luck.
            target_kl: 0.0,
            ..PpoConfig::default()
        },
        num_updates: u64::MAX,
        ..TrainConfig::default()
    };
    let id: String = settings.get("env", "Pleach/Philly-v0".to_owned())?;
    let env_config = EnvConfig::registered(&id)?;
    let mut envs = VecEnv::new(&env_config, num_envs, AutoresetMode::SameStep)?;
    let spaces = envs.spaces();
    let seed = Seed(settings.get("seed", 1)?);

    // One rollout of the first policy: the halves, and the arithmetic, are measured on it.
    let layout = Layout::new(config.network, spaces)?;
    let parameters = initial_parameters(&layout, seed);
    let inference = Inference::new(&layout, &parameters)?;
    let mut rollout = Rollout::new(spaces, num_envs, &inference);
    let mut batch = Batch::new(spaces, num_envs);
    let normaliser = Normaliser::default();
    let seeds: Vec<u64> = (0..num_envs)
        .map(|i| seed.child("arrivals", i as u64).0)
        .collect();
    envs.reset(&seeds, &mut batch)?;
    let mut collect = |rollout: &mut Rollout| -> Result<u64, Error> {
        rollout.collect(
            &mut envs,
            &mut batch,
            &inference,
            &normaliser,
            config.num_steps,
            seed,
        )?;
        Ok((num_envs * config.num_steps) as u64)
    };
    let collected = repeat(if what == "update" { seconds } else { 0.0 }, || {
        collect(&mut rollout)
    })?;
    let decisions = rollout.decisions(config.horizon_s, config.gae_lambda, 1);
    let mut experience = Experience {
        returns: decisions
            .returns
            .iter()
            .map(|value| normaliser.normalise(*value))
            .collect(),
        rows: decisions.rows,
        choices: decisions.choices,
        logprobs: decisions.logprobs,
        advantages: decisions.advantages,
    };
    pleach_agents::advantage::normalise(&mut experience.advantages);
    let num_rows = experience.rows.len();
    let candidates_mean = experience.rows.num_candidates() as f64 / num_rows as f64;
    let schedule = Schedule {
        learning_rate: 1e-4,
        entropy_coef: 0.01,
        value_only: false,
    };
    if what == "step" {
        // One minibatch is the whole experience here.
        config.ppo.num_epochs = 1;
        config.ppo.minibatch_size = num_rows;
    }
    let (mut moved, mut adam, mut workspace) = (
        parameters.clone(),
        Adam::new(parameters.len()),
        Workspace::default(),
    );
    let mut random = seed.stream("minibatch", 0);
    let learnt = repeat(seconds, || {
        ppo::improve(
            (&layout, Device::Cpu, &mut workspace),
            &mut moved,
            &mut adam,
            &experience,
            &config.ppo,
            schedule,
            &mut random,
        )?;
        Ok(num_rows as u64)
    })?;
    let mut line = json!({
        "who": "pleach", "hidden": hidden, "candidates_mean": candidates_mean, "parameters": parameters.len(),
        "learn": learnt,
    });
    if what == "update" {
        let contract = Contract::current(spaces, env_config.candidates, "bench");
        let mut trainer = Trainer::new(config, contract, seed)?;
        let mut last = 0;
        let updated = repeat(seconds, || {
            let frames = trainer.update(&mut envs)?.num_frames;
            Ok(frames - std::mem::replace(&mut last, frames))
        })?;
        line["collect"] = json!(collected);
        line["update"] = json!(updated);
    }
    println!("{line}");
    Ok(())
}
