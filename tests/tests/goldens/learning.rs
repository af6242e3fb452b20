//! Three updates of PPO and three generations of evolution strategies on a tiny task, the same at one and two threads.

use pleach_agents::evolution::EvolutionConfig;
use pleach_agents::ppo::PpoConfig;
use pleach_agents::{Error, Learner, TrainConfig, Trainer};
use pleach_env::workload::generate::{GeneratorConfig, ProfileConfig, generate};
use pleach_env::{AutoresetMode, EnvConfig, Seed, SimConfig, VecEnv, WorkloadConfig, simulate};
use pleach_network::{Contract, Inference, LearnedPolicy, NetworkConfig, Prior};
use rayon::prelude::*;

use pleach_tests::golden::{Digest, Row, hold};

const NUM_UPDATES: u64 = 3;

fn generator() -> GeneratorConfig {
    GeneratorConfig::Profile(ProfileConfig {
        num_jobs: 20,
        num_nodes: 2,
        gpus_per_node: 4,
        nodes_per_rack: 2,
        load: 2.0,
        run_time_s_max: 86_400.0,
        ..ProfileConfig::default()
    })
}

fn env() -> EnvConfig {
    EnvConfig {
        workload: WorkloadConfig::Generate(generator()),
        ..EnvConfig::default()
    }
}

fn config() -> TrainConfig {
    TrainConfig {
        num_updates: NUM_UPDATES,
        num_steps: 100,
        network: NetworkConfig {
            hidden: 16,
            context: 16,
            ..NetworkConfig::default()
        },
        ppo: PpoConfig {
            minibatch_size: 64,
            ..PpoConfig::default()
        },
        evolution: EvolutionConfig {
            num_pairs: 4,
            num_workloads: 2,
            ..EvolutionConfig::default()
        },
        ..TrainConfig::default()
    }
}

fn trainer(config: TrainConfig, prior: Option<Prior>) -> Trainer {
    let env = env();
    let contract = Contract {
        prior,
        ..Contract::current(env.spaces(), env.candidates, "golden")
    };
    Trainer::new(config, contract, Seed(7)).unwrap()
}

/// Parameters and figures of each update, not the file that holds them.
fn ppo(name: &str, config: TrainConfig, prior: Option<Prior>) -> Vec<Row> {
    let mut envs = VecEnv::new(&env(), 4, AutoresetMode::SameStep).unwrap();
    let mut trainer = trainer(config, prior);
    let update = |number| {
        let stats = trainer.update(&mut envs).unwrap();
        let mut digest = Digest::new();
        digest.f32s(trainer.parameters());
        let figures = [
            stats.ppo.policy_loss,
            stats.ppo.value_loss,
            stats.ppo.entropy,
            stats.ppo.approx_kl,
            stats.ppo.grad_norm,
        ];
        digest.f64s(&figures);
        let figures = format!(
            "{} episodes, entropy {:.4}, value loss {:.4}",
            stats.num_episodes, stats.ppo.entropy, stats.ppo.value_loss
        );
        Row::new(format!("{name}, update {number}"), digest, figures)
    };
    (1..=NUM_UPDATES).map(update).collect()
}

/// Minus the average JCT of each member, over the same workloads.
fn fitness(
    contract: &Contract,
    members: &[Inference],
    seed: Seed,
    num: u64,
) -> Result<(Vec<f64>, u64), Error> {
    let one = |member: &Inference| {
        let member = LearnedPolicy::new(contract, member.clone()).unwrap();
        let jct_s = |number| {
            let workload = generate(&generator(), seed.child("workload", number)).unwrap();
            let result = simulate(&workload, &SimConfig::default(), &mut member.clone()).unwrap();
            result.metrics.avg_jct_s
        };
        -(0..num).map(jct_s).sum::<f64>() / num as f64
    };
    Ok((members.par_iter().map(one).collect(), members.len() as u64))
}

fn evolution() -> Vec<Row> {
    let config = TrainConfig {
        learner: Learner::EVOLUTION,
        ..config()
    };
    let mut trainer = trainer(config, None);
    let generation = |number| {
        let contract = trainer.contract().clone();
        let num = config.evolution.num_workloads as u64;
        let play = |members: &[Inference], seed| fitness(&contract, members, seed, num);
        let stats = trainer.evolve(play).unwrap();
        let mut digest = Digest::new();
        digest.f32s(trainer.parameters());
        digest.f64s(&[stats.fitness_mean, stats.fitness_best, stats.grad_norm]);
        let figures = format!(
            "fitness {:.1} in the mean, {:.1} at best",
            stats.fitness_mean, stats.fitness_best
        );
        Row::new(format!("evolution, generation {number}"), digest, figures)
    };
    (1..=NUM_UPDATES).map(generation).collect()
}

fn all() -> Vec<Row> {
    let prior = Prior {
        policy: "sjf".into(),
        weight: 1.0,
    };
    let attentive = TrainConfig {
        network: NetworkConfig {
            heads: 2,
            ..config().network
        },
        ..config()
    };
    let mut rows = ppo("PPO", config(), None);
    rows.extend(ppo("PPO that corrects sjf, heads", attentive, Some(prior)));
    rows.extend(evolution());
    rows
}

#[test]
fn ppo_and_evolution_end_with_the_parameters_they_did_at_one_and_two_threads() {
    let with = |num_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build();
        pool.unwrap().install(all)
    };
    let rows = with(1);
    assert_eq!(rows, with(2), "the number of threads changes results");
    hold("learning", rows);
}
