//! Why PPO learns slowly: what draws are worth beside the likeliest candidate, and what advantages say of decisions.
//!
//! `cargo run --release -p pleach-experiments --example ppo_credit -- Pleach/GavelMulti-v1 sjf-best-type 24 100 clone=PATH ...`
//! for 24 held-out lists and 100 decisions; `PATH` is a run's checkpoint or a network. docs/learning-results.md has the tables.
//!
//! - *Draws*: the average JCT over the heuristic's on the same lists (geometric mean) where the network plays its likeliest
//!   candidate and where it draws at temperatures 1 to 0.1.
//! - *Gradients*: six rollouts as the trainer plays them, of 64 environments in groups of 16 with the same arrivals. The cosine
//!   between the policy's gradients of two of them is signal / (signal + noise), bias included in the signal; that with the
//!   gradients of unbiased estimates (lambda 1) is small where the signal is bias.
//! - *One decision*: the environment is copied at sampled decisions of a rollout, and the likeliest candidate or the other one
//!   (what was drawn, or else the second likeliest) is forced. The rest is played by draws, 64 times each, and by the likeliest.
//!   The true advantage is the mean over draws with what was chosen less the mean without forcing anything; the estimates are the
//!   trainer's. All in percent of the episode's total JCT; positive is better.
//!
//! The last two are for networks that correct no heuristic.

use std::error::Error;
use std::path::Path;

use pleach_agents::advantage::{Criterion, normalise};
use pleach_agents::{Checkpoint, Rollout, Trainer};
use pleach_env::{AutoresetMode, Batch, Env, EnvConfig, ObservationMut, Seed, Source, VecEnv};
use pleach_env::{VectorEnv, simulate};
use pleach_experiments::PolicySpec;
use pleach_experiments::evaluate::workload_source::env_of;
use pleach_network::gradient::{Workspace, sum_of_gradients};
use pleach_network::softmax::log_softmax;
use pleach_network::{Inference, LearnedPolicy, TrainedNetwork, action_of};
use pleach_scheduler::PolicyError;
use pleach_scheduler::policy::{DecisionPoint, Needs, Policy};
use pleach_scheduler::portable_math::{exp, exp_f32, ln};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

type Failable<T> = Result<T, Box<dyn Error>>;

const SEED: Seed = Seed(0);
/// 0 is the likeliest candidate.
const TEMPERATURES: [f64; 5] = [0.0, 1.0, 0.5, 0.25, 0.1];
const GROUP: usize = 16;
const NUM_ENVS: usize = 4 * GROUP;
/// Steps of each environment; episodes of the tasks are shorter.
const STEPS: usize = 1024;
const ROLLOUTS: usize = 6;
const HORIZON: Criterion = Criterion::Discounted { horizon_s: 1e6 };
/// `gae_lambda` and `group_size` of the advantages.
const ESTIMATES: [(f64, usize); 5] = [(0.9, GROUP), (0.98, GROUP), (0.98, 1), (1.0, GROUP), (1.0, 1)];
/// The estimate in which no value but the baseline counts, with the least noise.
const UNBIASED: usize = 3;
/// Episodes played to the end by draws for each mean.
const CONTINUATIONS: usize = 64;

/// A network that draws; the largest of logits with Gumbel noise is a draw of their softmax.
struct Player(LearnedPolicy, f64, ChaCha8Rng);

impl Policy for Player {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn needs(&self) -> Needs {
        self.0.needs()
    }

    fn score(&mut self, point: DecisionPoint<'_>, scores: &mut [f32]) -> Result<(), PolicyError> {
        self.0.score(point, scores)?;
        for score in scores
            .iter_mut()
            .filter(|score| self.1 > 0.0 && **score > f32::MIN)
        {
            let uniform: f64 = self.2.random_range(f64::MIN_POSITIVE..1.0);
            *score = (f64::from(*score) / self.1 - ln(-ln(uniform))) as f32;
        }
        Ok(())
    }
}

fn player(network: &TrainedNetwork, temperature: f64, number: u64) -> Failable<Player> {
    let policy = LearnedPolicy::from_network(network)?;
    Ok(Player(policy, temperature, SEED.stream("credit/draws", number)))
}

/// An environment at a decision, its observation, and whether its episode is over.
#[derive(Clone)]
struct At(Env, Batch, bool);

impl At {
    fn begin(config: &EnvConfig, seed: Seed) -> Failable<At> {
        let mut at = At(Env::new(config.clone())?, Batch::new(config.spaces(), 1), false);
        at.0.reset(seed.0, observation(&mut at.1))?;
        Ok(at)
    }

    fn step(&mut self, action: usize) -> Failable<f64> {
        let step = self.0.step(action, observation(&mut self.1))?;
        self.2 = step.terminated || step.truncated;
        Ok(f64::from(step.reward))
    }

    /// Sum of the rewards from here to the end, after `first` where that is forced.
    fn play(&self, first: Option<usize>, player: &mut Player) -> Failable<f64> {
        let mut at = self.clone();
        let mut sum = first.map_or(Ok(0.0), |action| at.step(action))?;
        while !at.2 {
            let action = at.0.choice_of(player)?;
            sum += at.step(action)?;
        }
        Ok(sum)
    }
}

fn observation(batch: &mut Batch) -> ObservationMut<'_> {
    let (global, candidates, mask) = (&mut batch.global, &mut batch.candidates, &mut batch.mask);
    ObservationMut {
        global,
        candidates,
        mask,
    }
}

fn mean(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.into_iter().fold((0.0, 0.0), |(s, n), x| (s + x, n + 1.0));
    sum / count
}

fn covariance(a: &[f64], b: &[f64]) -> f64 {
    let (of_a, of_b) = (mean(a.iter().copied()), mean(b.iter().copied()));
    mean(a.iter().zip(b).map(|(a, b)| (a - of_a) * (b - of_b)))
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    covariance(a, b) / (covariance(a, a) * covariance(b, b)).sqrt()
}

/// Average JCT over the heuristic's, the geometric mean over the lists, at each temperature.
fn draws(env: &EnvConfig, heuristic: &str, lists: u64, network: &TrainedNetwork) -> Failable<Vec<f64>> {
    let source = Source::open(env)?;
    let heuristic = PolicySpec::open(heuristic)?.remove(0);
    let (mut sim, mut logs) = (env.sim.clone(), [0.0; TEMPERATURES.len()]);
    for list in 0..lists {
        let seed = SEED.child("credit/lists", list);
        let workload = source.workload(env, seed)?;
        sim.seed = seed.0;
        let base = simulate(&workload, &sim, heuristic.policy()?.as_mut())?;
        for (log, temperature) in logs.iter_mut().zip(TEMPERATURES) {
            let run = simulate(&workload, &sim, &mut player(network, temperature, list)?)?;
            *log += ln(run.metrics.avg_jct_s / base.metrics.avg_jct_s) / lists as f64;
        }
    }
    Ok(logs.into_iter().map(exp).collect())
}

/// A rollout as the trainer plays it, and the seeds of its environments.
fn rollout(env: &EnvConfig, network: &TrainedNetwork, seed: Seed) -> Failable<(Rollout, Vec<u64>)> {
    let inference = Inference::new(&network.layout()?, &network.parameters)?;
    let seeds: Vec<u64> = (0..NUM_ENVS)
        .map(|i| seed.child("arrivals", (i / GROUP) as u64).0)
        .collect();
    let mut envs = VecEnv::new(env, NUM_ENVS, AutoresetMode::SameStep)?;
    let (mut batch, values) = (Batch::new(envs.spaces(), NUM_ENVS), &network.normaliser);
    envs.reset(&seeds, &mut batch)?;
    let mut rollout = Rollout::new(envs.spaces(), NUM_ENVS, &inference);
    rollout.collect(&mut envs, &mut batch, &inference, values, STEPS, seed)?;
    Ok((rollout, seeds))
}

/// The mean cosine between the policy's gradients of two rollouts for each of [`ESTIMATES`], and with those of [`UNBIASED`].
fn agreement(env: &EnvConfig, network: &TrainedNetwork) -> Failable<Vec<[f64; 2]>> {
    let (layout, mut workspace) = (network.layout()?, Workspace::default());
    let mut gradients = vec![Vec::new(); ESTIMATES.len()];
    for number in 0..ROLLOUTS as u64 {
        let mut rollout = rollout(env, network, SEED.child("credit/gradients", number))?.0;
        for ((lambda, group), gradients) in ESTIMATES.into_iter().zip(&mut gradients) {
            let mut learnt = rollout.decisions(HORIZON, lambda, group);
            normalise(&mut learnt.advantages);
            let all: Vec<usize> = (0..learnt.rows.len()).collect();
            let loss = |decision: usize, logits: &[f32], _: f32, by_logits: &mut [f32]| {
                log_softmax(logits, by_logits);
                let advantage = learnt.advantages[decision];
                by_logits.iter_mut().for_each(|by| *by = exp_f32(*by) * advantage);
                by_logits[learnt.choices[decision] as usize] -= advantage;
                (0.0, [0.0])
            };
            let on = (&layout, &mut workspace);
            let (sum, _) = sum_of_gradients(on, &network.parameters, &learnt.rows, &all, loss)?;
            gradients.push(sum.iter().map(|by| f64::from(*by)).collect::<Vec<f64>>());
        }
    }
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let cosine = |a: &[f64], b: &[f64]| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    let across = |a: &[Vec<f64>], b: &[Vec<f64>]| {
        let pairs = (0..ROLLOUTS).flat_map(|i| (0..ROLLOUTS).filter(move |k| *k != i).map(move |k| (i, k)));
        mean(pairs.map(|(i, k)| cosine(&a[i], &b[k])))
    };
    Ok(gradients
        .iter()
        .map(|of| [across(of, of), across(of, &gradients[UNBIASED])])
        .collect())
}

/// One decision: estimates; true advantage and the square of its error; worth of the other candidate by draws and deployed.
type Measured = ([f64; ESTIMATES.len()], [f64; 2], [f64; 2]);

fn credit(env: &EnvConfig, num: usize, network: &TrainedNetwork) -> Failable<Vec<Measured>> {
    let (mut rollout, seeds) = rollout(env, network, SEED.child("credit/decisions", 0))?;
    let end = |terminated: &[bool]| terminated.iter().position(|end| *end).unwrap_or(STEPS);
    let ends: Vec<usize> = rollout.steps().map(|steps| end(steps.terminated)).collect();
    let learnt = ESTIMATES.map(|(lambda, group)| rollout.decisions(HORIZON, lambda, group));
    let (mut random, mut all) = (SEED.stream("credit/sample", 0), Vec::new());
    let mut likeliest = player(network, 0.0, 0)?;
    while all.len() < num {
        let i = random.random_range(0..NUM_ENVS);
        let step = random.random_range(0..ends[i]);
        let mut at = At::begin(env, Seed(seeds[i]).child("episode", 0))?;
        let taken = |at: &At, t: usize| action_of(learnt[0].choices[i * STEPS + t] as usize, &at.1.mask);
        let mut paid = 0.0;
        for t in 0..step {
            paid += at.step(taken(&at, t).ok_or("the episode was not replayed")?)?;
        }
        let chosen = taken(&at, step).ok_or("the episode was not replayed")?;
        let mut logits = vec![f32::MIN; env.spaces().num_candidates];
        at.0.scores_of(&mut likeliest, &mut logits)?;
        let mut order: Vec<usize> = (0..logits.len()).filter(|c| at.1.mask[*c]).collect();
        order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
        let [best, second, ..] = order[..] else { continue };
        let other = if chosen == best { second } else { chosen };
        let mut drawing = player(network, 1.0, 1 + all.len() as u64)?;
        let mut played = |first| -> Failable<Vec<f64>> {
            (0..CONTINUATIONS).map(|_| at.play(first, &mut drawing)).collect()
        };
        let free = played(None)?;
        let [of_best, of_other] = [played(Some(best))?, played(Some(other))?];
        let of_chosen = if chosen == best { &of_best } else { &of_other };
        let percent = -100.0 / (paid + mean(free.iter().copied()));
        let less = |a: &[f64], b: &[f64]| (mean(a.iter().copied()) - mean(b.iter().copied())) * percent;
        let error = (covariance(&free, &free) + covariance(of_chosen, of_chosen)) / CONTINUATIONS as f64;
        let deployed = at.play(Some(other), &mut likeliest)? - at.play(Some(best), &mut likeliest)?;
        all.push((
            std::array::from_fn(|e| f64::from(learnt[e].advantages[i * STEPS + step]) * percent),
            [less(of_chosen, &free), error * percent * percent],
            [less(&of_other, &of_best), deployed * percent],
        ));
    }
    Ok(all)
}

fn main() -> Failable<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [task, heuristic, lists, decisions, networks @ ..] = args.as_slice() else {
        return Err("usage: ppo_credit TASK HEURISTIC LISTS DECISIONS NAME=PATH ...".into());
    };
    let (env, num) = (env_of(task, None, None)?, decisions.parse()?);
    for network in networks {
        let (name, path) = network.split_once('=').ok_or("a network is NAME=PATH")?;
        let network = TrainedNetwork::load(Path::new(path)).or_else(|_| {
            Trainer::resume(Checkpoint::load(Path::new(path))?).map(|trainer| trainer.network())
        })?;
        let ratios = draws(&env, heuristic, lists.parse()?, &network)?;
        println!("{name}: JCT at {TEMPERATURES:?}: {ratios:.3?}");
        if num == 0 || network.contract.prior.is_some() {
            continue;
        }
        let all = credit(&env, num, &network)?;
        let of = |get: &dyn Fn(&Measured) -> f64| all.iter().map(get).collect::<Vec<f64>>();
        let (truth, error) = (of(&|m| m.1[0]), mean(all.iter().map(|m| m.1[1])));
        let [drawn, deployed] = [0, 1].map(|k| of(&|m| m.2[k]));
        for (what, effect) in [("draws", &drawn), ("deployed", &deployed)] {
            let (mean, deviation) = (mean(effect.iter().copied()), covariance(effect, effect).sqrt());
            println!("the other candidate, by {what}: {mean:.3} %, deviation {deviation:.3} %");
        }
        println!("correlation of the two {:.2}", correlation(&drawn, &deployed));
        let (found, error) = (covariance(&truth, &truth).sqrt(), error.sqrt());
        println!("true advantage: deviation {found:.3} %, of which {error:.3} % its error");
        println!("| lambda | group | deviation % | of its error | correlation | cosine | with lambda 1's |");
        println!("|---:|---:|---:|---:|---:|---:|---:|");
        let cosines = agreement(&env, &network)?;
        for (number, ((lambda, group), cosines)) in ESTIMATES.into_iter().zip(cosines).enumerate() {
            let estimate = of(&|m| m.0[number]);
            let noise: Vec<f64> = estimate.iter().zip(&truth).map(|(e, t)| e - t).collect();
            let [own, noise] = [&estimate, &noise].map(|of| covariance(of, of).sqrt());
            let (truly, [same, unbiased]) = (correlation(&estimate, &truth), cosines);
            print!("| {lambda} | {group} | {own:.3} | {noise:.3} | {truly:.2} ");
            println!("| {same:.3} | {unbiased:.3} |");
        }
    }
    Ok(())
}
