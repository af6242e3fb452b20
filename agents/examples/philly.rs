//! Clones a heuristic on a registered environment, improves the clone with PPO and compares both on workloads that
//! neither has seen: `cargo run --release --example philly -- [TEACHER] [UPDATES] [key=value ...]`.

use pleach_agents::{Demonstrations, TrainConfig, Trainer};
use pleach_env::workload::Workload;
use pleach_env::{AutoresetMode, Batch, EnvConfig, Seed, Source, Task, VecEnv, VectorEnv, simulate_all};
use pleach_network::Contract;
use pleach_scheduler::heuristics;
use pleach_scheduler::policy::Policy;

type Error = Box<dyn std::error::Error>;

/// Mean JCT of a policy over workloads, s.
fn avg_jct_s(
    env: &EnvConfig,
    workloads: &[Workload],
    policy: &(dyn Fn() -> Box<dyn Policy> + Sync),
) -> Result<f64, Error> {
    let make = || Ok(policy());
    let tasks: Vec<Task<'_>> = workloads
        .iter()
        .map(|workload| (workload, env.sim.clone(), &make as _))
        .collect();
    let results = simulate_all(&tasks, &|_| {})?;
    Ok(results.iter().map(|result| result.metrics.avg_jct_s).sum::<f64>() / results.len() as f64)
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let teacher = arguments.first().map_or("gpu-time", String::as_str);
    let num_updates = arguments.get(1).map_or(Ok(50), |text| text.parse())?;
    let id = std::env::var("ID").unwrap_or("Pleach/Philly-v0".to_owned());
    let env_config = EnvConfig::registered(&id)?;
    let get = |key: &str, default: f64| {
        arguments
            .iter()
            .find_map(|a| a.strip_prefix(&format!("{key}="))?.parse::<f64>().ok())
            .unwrap_or(default)
    };
    let mut config = TrainConfig {
        num_updates,
        num_steps: get("steps", 512.0) as usize,
        value_warmup_updates: get("warmup", 3.0) as u64,
        ..TrainConfig::default()
    };
    config.group_size = get("group", 1.0) as usize;
    config.horizon_s = get("horizon", 86400.0);
    config.gae_lambda = get("lambda", 0.95);
    config.restart_every = get("restart", 1.0) as u64;
    config.ppo.learning_rate = get("lr", 1e-3);
    config.ppo.learning_rate_final = config.ppo.learning_rate * 0.1;
    config.ppo.entropy_coef = get("ent", 0.01);
    config.ppo.num_epochs = get("epochs", 3.0) as u32;
    config.ppo.target_kl = get("kl", 0.02);
    config.ppo.minibatch_size = get("mb", 512.0) as usize;
    config.imitation.smoothing = get("smooth", 0.1);
    config.ppo.entropy_coef_final = get("ent_final", 0.0);
    let num_envs = get("envs", 16.0) as usize;
    let seed = Seed(get("seed", 0.0) as u64);
    let source = Source::open(&env_config)?;
    let workloads: Vec<Workload> = (0..get("val", 16.0) as u64)
        .map(|i| source.workload(&env_config, Seed(77).child("validation", i)))
        .collect::<Result<_, _>>()?;
    for name in heuristics::names() {
        let jct_s = avg_jct_s(&env_config, &workloads, &|| {
            heuristics::by_name(name).expect("a known name")
        })?;
        println!("{name:16} {jct_s:9.0} s");
    }
    let mut env = VecEnv::new(&env_config, num_envs, AutoresetMode::SameStep)?;
    let contract = Contract::current(env.spaces(), env_config.candidates, id);
    let mut trainer = Trainer::new(config, contract, seed)?;
    let mut heuristic = heuristics::by_name(teacher)?;
    let start = std::time::Instant::now();
    let demonstrations = Demonstrations::collect(
        &mut env,
        seed,
        get("demo", 600.0) as usize,
        config.horizon_s,
        |env: &mut VecEnv, i, _: &Batch| Ok(env.choice_of(i, heuristic.as_mut())?),
    )?;
    println!(
        "collected {:.1} s, candidates per decision {:.1}",
        start.elapsed().as_secs_f64(),
        demonstrations.rows().num_candidates() as f64 / demonstrations.len() as f64
    );
    let stats = trainer.warm_start(&demonstrations)?;
    println!(
        "cloned {teacher}: {stats:?} {:.1} s",
        start.elapsed().as_secs_f64()
    );
    let start = std::time::Instant::now();
    while !trainer.is_finished() {
        if trainer.num_updates() % 10 == 0 {
            let policy = trainer.policy()?;
            let jct_s = avg_jct_s(&env_config, &workloads, &|| Box::new(policy.clone()))?;
            println!("learned {:4} updates {jct_s:9.0} s", trainer.num_updates());
        }
        let stats = trainer.update(&mut env)?;
        if stats.update % 5 == 0 {
            println!(
                "{:3} return {:7.3} len {:.0} n {} ev {:.2} ent {:.3} kl {:.4} clip {:.3} vl {:.3} steps {} {:.0} frames/s",
                stats.update,
                stats.episodic_return,
                stats.episodic_length,
                stats.num_episodes,
                stats.explained_variance,
                stats.ppo.entropy,
                stats.ppo.approx_kl,
                stats.ppo.clipfrac,
                stats.ppo.value_loss,
                stats.ppo.num_steps,
                stats.num_frames as f64 / start.elapsed().as_secs_f64(),
            );
        }
    }
    let policy = trainer.policy()?;
    let jct_s = avg_jct_s(&env_config, &workloads, &|| Box::new(policy.clone()))?;
    println!("learned {jct_s:9.0} s");
    Ok(())
}
