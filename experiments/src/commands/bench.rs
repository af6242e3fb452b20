//! `pleach bench`: speed on this machine. The only command whose output depends on the clock.

mod devices;
mod environment;
mod planning;
mod scaling;

use std::collections::BTreeMap;
use std::path::PathBuf;

use pleach_agents::contract::Contract;
use pleach_agents::trainer::Trainer;
use pleach_env::config::EnvConfig;
use pleach_env::seed::Seed;
use pleach_env::simulate::{SimConfig, simulate};
use pleach_env::vec_env::VecEnv;
use pleach_env::vector::AutoresetMode;
use pleach_env::workload::Workload;
use pleach_env::workload::generate::{GeneratorConfig, PhillyLikeConfig, generate};
use pleach_env::workload::import::{ImportOptions, import};
use pleach_scheduler::pass::{Pass, PassState};
use pleach_scheduler::policy::{Needs, Policy};
use serde_json::{Value, json};

use crate::cli::BenchArgs;
use crate::cli::bench::BenchPart;
use crate::commands::Context;
use crate::contestant::Contestant;
use crate::error::Error;
use crate::scenario::env_error;
use crate::settings::{TrainSettings, agent_error};
use crate::stats::quantile;
use crate::table::Table;

/// Repetitions of each measurement; the median is reported.
const NUM_REPEATS: usize = 5;
/// Where the real Philly list lies beside a checkout that has it.
const PHILLY_LIST: &str = "../shared/data/traces/philly/philly_jobs_joined.csv.gz";
/// Jobs of the generated list that stands in for it.
const NUM_JOBS: usize = 100_000;

/// Measures what was asked for.
///
/// # Errors
/// A list that cannot be read, or a run that fails.
pub fn run(args: &BenchArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let wants = |part| args.only.is_empty() || args.only.contains(&part);
    let mut report = serde_json::Map::new();
    report.insert("schema".into(), json!(1));
    let mut rows: Vec<(String, f64, &str)> = Vec::new();
    if cfg!(debug_assertions) {
        context
            .say("this is not a release build: the numbers mean nothing (cargo run --release -- bench)")?;
    }
    if wants(BenchPart::Simulator) {
        let jobs_per_s = simulator(args, context)?;
        rows.extend(
            jobs_per_s
                .iter()
                .map(|(name, value)| (format!("simulate {name}"), *value, "jobs/s")),
        );
        report.insert("sim_jobs_per_s".into(), json!(jobs_per_s));
    }
    if wants(BenchPart::Env) {
        let figures = environment::measure(args, context)?;
        for (kind, key, speed) in [
            ("environment", "env", figures.one),
            ("environment without preemption", "env_starts", figures.starts),
        ] {
            rows.push((format!("{kind}, one core"), speed.steps_per_s, "steps/s"));
            rows.push((
                format!("{kind}, offered"),
                speed.num_candidates,
                "candidates a step",
            ));
            report.insert(format!("{key}_steps_per_s"), json!(speed.steps_per_s));
            report.insert(format!("{key}_num_candidates"), json!(speed.num_candidates));
        }
        let num_envs = args.num_envs;
        let [one, two] = figures.threads.map(|speed| speed.steps_per_s);
        rows.push((format!("{num_envs} environments, one thread"), one, "steps/s"));
        rows.push((format!("{num_envs} environments, two threads"), two, "steps/s"));
        report.insert("env_two_threads_ratio".into(), json!(two / one));
        let (written_per_s, bytes) = (figures.written_bytes_per_s, figures.observation_bytes);
        rows.push(("memory, writing".into(), written_per_s / 1e6, "MB/s"));
        rows.push((
            "floor: writing observations".into(),
            written_per_s / bytes,
            "steps/s",
        ));
        report.insert("observation_bytes".into(), json!(bytes));
        report.insert("written_bytes_per_s".into(), json!(written_per_s));
    }
    if wants(BenchPart::Ppo) {
        let frames_per_s = ppo(args, context)?;
        rows.push(("PPO, collecting and learning".into(), frames_per_s, "frames/s"));
        report.insert("ppo_frames_per_s".into(), json!(frames_per_s));
    }
    if wants(BenchPart::Tree) {
        let decision_ns = tree(args, context)?;
        rows.push(("tree, one decision".into(), decision_ns, "ns"));
        report.insert("tree_decision_ns".into(), json!(decision_ns));
    }
    if wants(BenchPart::Planners) {
        let mut plan_ms = BTreeMap::new();
        for point in planning::measure(args, context)? {
            rows.push((
                format!("plan {}", point.name),
                point.median_ms * 1e3,
                "µs, 512 GPUs and 1,000 jobs",
            ));
            plan_ms.insert(point.name, [point.median_ms, point.mean_ms, point.max_ms]);
        }
        report.insert("plan_ms".into(), json!(plan_ms));
    }
    // Only where it is asked for: a device may take a minute to start.
    if args.only.contains(&BenchPart::Devices) {
        let mut decisions_per_s = BTreeMap::new();
        for point in devices::measure(args, context)? {
            rows.push((format!("gradient {}", point.name), point.per_s, "decisions/s"));
            decisions_per_s.insert(point.name, point.per_s);
        }
        report.insert("gradient_decisions_per_s".into(), json!(decisions_per_s));
    }
    if args.scaling {
        for point in scaling::curve(args, context)? {
            rows.push((format!("scaling {}", point.name), point.seconds * 1e3, "ms"));
            rows.push((
                format!("scaling {}", point.name),
                point.peak_mib,
                "MiB peak so far",
            ));
            report.insert(
                format!("scaling_{}", point.name),
                json!([point.seconds, point.peak_mib]),
            );
        }
    }
    if let Some(path) = &args.json {
        context.write_json(path, &Value::Object(report))?;
    }
    if !args.quiet {
        let line =
            |(name, value, unit): (String, f64, &str)| vec![name, format!("{value:.0}"), unit.to_string()];
        let header = ["what", "median", "unit"].map(str::to_string).to_vec();
        let notes = vec![format!("median of {NUM_REPEATS} measurements")];
        context.say(
            &Table {
                header,
                rows: rows.into_iter().map(line).collect(),
                notes,
            }
            .to_terminal(),
        )?;
    }
    Ok(())
}

/// The median over repetitions of `count / seconds`, each repetition lasting a share of the time.
fn rate(
    args: &BenchArgs,
    context: &Context<'_>,
    mut work: impl FnMut() -> Result<u64, Error>,
) -> Result<f64, Error> {
    let share_s = args.seconds / NUM_REPEATS as f64;
    let mut rates = Vec::new();
    for _ in 0..NUM_REPEATS {
        let start_s = (context.clock)();
        let mut count = 0;
        while (context.clock)() - start_s < share_s || count == 0 {
            count += work()?;
        }
        rates.push(count as f64 / ((context.clock)() - start_s).max(1e-9));
    }
    rates.sort_unstable_by(f64::total_cmp);
    Ok(quantile(&rates, 0.5).unwrap_or(f64::NAN))
}

/// The real list if it is there, else a generated one of about its size.
fn philly(args: &BenchArgs, context: &mut Context<'_>) -> Result<(&'static str, Workload), Error> {
    let path = args.philly.clone().unwrap_or_else(|| PathBuf::from(PHILLY_LIST));
    if path.exists() || args.philly.is_some() {
        let (workload, _) = import(&path, &ImportOptions::default()).map_err(env_error)?;
        return Ok(("philly", workload));
    }
    context.say("no Philly list here (give it with --philly FILE): a generated list stands in for it")?;
    let generator = PhillyLikeConfig {
        num_jobs: NUM_JOBS,
        num_nodes: 311,
        ..PhillyLikeConfig::default()
    };
    let workload = generate(&GeneratorConfig::PhillyLike(generator), Seed(args.seed)).map_err(env_error)?;
    Ok(("philly-like", workload))
}

fn simulator(args: &BenchArgs, context: &mut Context<'_>) -> Result<BTreeMap<String, f64>, Error> {
    let (list, workload) = philly(args, context)?;
    let mut jobs_per_s = BTreeMap::new();
    for name in ["fifo", "srtf"] {
        let mut sim = SimConfig::default();
        sim.capabilities.preemption = name == "srtf";
        let contestant = Contestant::heuristic(name)?;
        let value = rate(args, context, || {
            let mut policy = contestant.policy()?;
            let result = simulate(&workload, &sim, &mut policy).map_err(env_error)?;
            Ok(result.jobs.len() as u64)
        })?;
        jobs_per_s.insert(format!("{list}/{name}"), value);
    }
    Ok(jobs_per_s)
}

fn ppo(args: &BenchArgs, context: &Context<'_>) -> Result<f64, Error> {
    let env = EnvConfig::registered("Pleach/Philly-v0").map_err(env_error)?;
    let settings = TrainSettings {
        num_envs: args.num_envs as usize,
        ..TrainSettings::default()
    };
    let contract = Contract::current(env.spaces(), env.candidates, "bench");
    let mut trainer = Trainer::new(settings.train, contract, Seed(args.seed)).map_err(agent_error)?;
    let mut envs = VecEnv::new(&env, settings.num_envs, AutoresetMode::SameStep).map_err(env_error)?;
    let mut last = 0;
    rate(args, context, || {
        let stats = trainer.update(&mut envs).map_err(agent_error)?;
        let frames = stats.num_frames - last;
        last = stats.num_frames;
        Ok(frames)
    })
}

/// A tree of 16 leaves that imitates SRTF, asked at busy decision points with their features at hand.
fn tree(args: &BenchArgs, context: &Context<'_>) -> Result<f64, Error> {
    use pleach_scheduler::policy::DecisionPoint;
    let env = EnvConfig::busy(true);
    let source = pleach_env::config::Source::open(&env).map_err(env_error)?;
    let workload = source.workload(&env, Seed(args.seed)).map_err(env_error)?;
    let mut tree = bench_tree(args)?;
    let needs = Needs::full();
    let capabilities = env.sim.capabilities;
    let estimates = env.sim.estimates.estimates(&workload, Seed(args.seed));
    let mut world = pleach_env::world::World::new(&workload, capabilities, &estimates)
        .map_err(|error| Error::Config(Box::new(error)))?;
    let mut pass = Pass::new();
    // Forward to the decision point with most candidates among the first instants.
    let mut best = (0, world.clone());
    for _ in 0..2000 {
        if world.advance() == pleach_env::world::Instant::End {
            break;
        }
        let mut state = pass.open(world.cluster(), &needs);
        if pass.candidates().len() > best.0 {
            best = (pass.candidates().len(), world.clone());
        }
        while state == PassState::Open {
            let action = pass.decide(world.cluster(), &mut *tree)?;
            state = pass.act(world.cluster_mut(), &needs, action);
        }
        world.carry_out();
    }
    let world = best.1;
    pass.open(world.cluster(), &needs);
    pass.observe(world.cluster());
    let point = DecisionPoint {
        cluster: world.cluster(),
        candidates: pass.candidates(),
        observation: pass.observation().as_ref(),
    };
    let mut scores = vec![0.0; pass.candidates().len()];
    let decisions_per_s = rate(args, context, || {
        for _ in 0..10_000 {
            tree.score(std::hint::black_box(point), &mut scores)?;
            std::hint::black_box(&scores);
        }
        Ok(10_000)
    })?;
    Ok(1e9 / decisions_per_s)
}

/// A tree from a short distillation of SRTF.
fn bench_tree(args: &BenchArgs) -> Result<Box<dyn Policy>, Error> {
    use crate::pruning::prune;
    use crate::validation::Validation;
    use pleach_distill::DistillConfig;
    let env = EnvConfig::registered("Pleach/PhillyPreempt-v0").map_err(env_error)?;
    let validation = Validation::new(&env, args.seed, 2)?;
    let mut config = DistillConfig {
        leaves: vec![16],
        rounds: 1,
        episodes: 2,
        ..DistillConfig::default()
    };
    config.prune.tries = 0;
    let distilled = prune(
        &env,
        &Contestant::heuristic("srtf")?,
        &config,
        &validation,
        args.seed,
        &|_| {},
    )?;
    Contestant::tree("tree", distilled.tree)?.policy()
}
