//! `pleach bench`: speed on this machine. The only command whose output depends on the clock.

mod devices;
mod dispatch;
mod environment;
mod flags;
mod planning;
mod rate;
mod scaling;

use std::collections::BTreeMap;
use std::path::PathBuf;

use pleach_agents::Trainer;
use pleach_env::workload::Workload;
use pleach_env::workload::generate::{GeneratorConfig, ProfileConfig, generate};
use pleach_env::workload::import::{ImportOptions, import};
use pleach_env::{AutoresetMode, EnvConfig, Seed, SimConfig, VecEnv, simulate};
use pleach_network::Contract;
use pleach_scheduler::ActionKind;
use pleach_scheduler::pass::{Pass, PassState};
use pleach_scheduler::policy::{Needs, Policy};
use serde_json::{Value, json};

pub use self::flags::{BenchArgs, BenchPart};
use self::rate::{NUM_REPEATS, cpu_rate, rate};
use pleach_experiments::command::{Context, Runs};
use pleach_experiments::door::PolicySpec;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::table::Table;
use pleach_experiments::train::settings::TrainSettings;

/// Where the real Philly list lies beside a checkout that has it.
const PHILLY_LIST: &str = "../shared/data/traces/philly/philly_jobs_joined.csv.gz";
/// Jobs of the generated list that stands in for it.
const NUM_JOBS: usize = 100_000;

/// What was measured, for the terminal and as JSON.
struct Measured {
    /// What, how much, and its unit.
    rows: Vec<(String, f64, &'static str)>,
    json: serde_json::Map<String, Value>,
}

impl Measured {
    fn row(&mut self, what: impl Into<String>, value: f64, unit: &'static str) {
        self.rows.push((what.into(), value, unit));
    }

    fn key(&mut self, key: impl Into<String>, value: Value) {
        self.json.insert(key.into(), value);
    }
}

impl Runs for BenchArgs {
    const NAME: &'static str = "bench";
    const ABOUT: &'static str = "Measure the speed of the simulator, the environment, training and the tree";

    /// Measures what was asked for.
    fn run(&self, context: &mut Context<'_>) -> Result<(), Error> {
        let wants = |part| self.only.is_empty() || self.only.contains(&part);
        let mut measured = Measured {
            rows: Vec::new(),
            json: serde_json::Map::new(),
        };
        measured.key("schema", json!(1));
        if cfg!(debug_assertions) {
            context.say(
                "this is not a release build: the numbers mean nothing (cargo run --release -- bench)",
            )?;
        }
        if wants(BenchPart::Simulator) {
            let jobs_per_s = simulator(self, context)?;
            for (name, value) in &jobs_per_s {
                measured.row(format!("simulate {name}"), *value, "jobs/s");
            }
            measured.key("sim_jobs_per_s", json!(jobs_per_s));
        }
        if wants(BenchPart::Env) {
            environment_of(self, context, &mut measured)?;
        }
        if wants(BenchPart::Ppo) {
            let frames_per_s = ppo(self, context)?;
            measured.row("PPO, collecting and learning", frames_per_s, "frames/s");
            measured.key("ppo_frames_per_s", json!(frames_per_s));
        }
        if wants(BenchPart::Tree) {
            let decision_ns = tree(self)?;
            measured.row("tree, one decision", decision_ns, "ns");
            measured.key("tree_decision_ns", json!(decision_ns));
        }
        if wants(BenchPart::Planners) {
            let mut plan_ms = BTreeMap::new();
            for point in planning::measure(self, context)? {
                let unit = "µs, 512 GPUs and 1,000 jobs";
                measured.row(format!("plan {}", point.name), point.median_ms * 1e3, unit);
                plan_ms.insert(point.name, [point.median_ms, point.mean_ms, point.max_ms]);
            }
            measured.key("plan_ms", json!(plan_ms));
            for (name, plan_us) in dispatch::measure(self)? {
                measured.row(
                    format!("plan ESG's group, {name}"),
                    plan_us,
                    "µs, published < 10,000",
                );
                measured.key(format!("esg_plan_us {name}"), json!(plan_us));
            }
        }
        // Only where it is asked for: a device may take a minute to start.
        if self.only.contains(&BenchPart::Devices) {
            let mut decisions_per_s = BTreeMap::new();
            for point in devices::measure(self, context)? {
                measured.row(format!("gradient {}", point.name), point.per_s, "decisions/s");
                decisions_per_s.insert(point.name, point.per_s);
            }
            measured.key("gradient_decisions_per_s", json!(decisions_per_s));
        }
        if self.scaling {
            for point in scaling::curve(self, context)? {
                let name = format!("scaling {}", point.name);
                measured.row(name.clone(), point.seconds * 1e3, "ms");
                measured.row(name, point.peak_mib, "MiB peak so far");
                let key = format!("scaling_{}", point.name);
                measured.key(key, json!([point.seconds, point.peak_mib]));
            }
        }
        if let Some(num_jobs_max) = self.queues {
            for point in scaling::queues(self, num_jobs_max as usize, context)? {
                let name = format!("queues {}", point.name);
                measured.row(name, point.seconds * 1e3, "ms");
                let key = format!("queues_{}", point.name);
                measured.key(key, json!([point.seconds, point.peak_mib]));
            }
        }
        show(self, context, measured)
    }
}

/// Writes and prints what was measured.
fn show(args: &BenchArgs, context: &mut Context<'_>, measured: Measured) -> Result<(), Error> {
    if let Some(path) = args.report.json() {
        context.write_json(path, &Value::Object(measured.json))?;
    }
    if args.report.quiet() {
        return Ok(());
    }
    let line = |(name, value, unit): (String, f64, &str)| vec![name, format!("{value:.0}"), unit.to_string()];
    let table = Table {
        header: ["what", "median", "unit"].map(str::to_string).to_vec(),
        rows: measured.rows.into_iter().map(line).collect(),
        notes: vec![format!(
            "median of {NUM_REPEATS} measurements; processor seconds on one core, else seconds of the wall"
        )],
    };
    context.say(&table.to_terminal())
}

/// The environment on one core and on several threads, and the memory that it writes.
fn environment_of(args: &BenchArgs, context: &mut Context<'_>, measured: &mut Measured) -> Result<(), Error> {
    let figures = environment::measure(args, context)?;
    for (kind, key, speed) in [
        ("environment", "env", figures.one),
        ("environment without preemption", "env_starts", figures.starts),
    ] {
        measured.row(format!("{kind}, one core"), speed.steps_per_s, "steps/s");
        measured.row(
            format!("{kind}, offered"),
            speed.num_candidates,
            "candidates a step",
        );
        measured.key(format!("{key}_steps_per_s"), json!(speed.steps_per_s));
        measured.key(format!("{key}_num_candidates"), json!(speed.num_candidates));
    }
    let num_envs = args.num_envs;
    let one = figures.together.steps_per_s;
    measured.row(format!("{num_envs} environments, one thread"), one, "steps/s");
    if let Some(two) = figures.two_threads.map(|speed| speed.steps_per_s) {
        measured.row(format!("{num_envs} environments, two threads"), two, "steps/s");
        measured.key("env_two_threads_ratio", json!(two / one));
    }
    let (written_per_s, bytes) = (figures.written_bytes_per_s, figures.observation_bytes);
    measured.row("memory, writing", written_per_s / 1e6, "MB/s");
    measured.row("floor: writing observations", written_per_s / bytes, "steps/s");
    measured.key("observation_bytes", json!(bytes));
    measured.key("written_bytes_per_s", json!(written_per_s));
    Ok(())
}

/// The real list if it is there, else a generated one of about its size.
fn philly(args: &BenchArgs, context: &mut Context<'_>) -> Result<(&'static str, Workload), Error> {
    let path = args.philly.clone().unwrap_or_else(|| PathBuf::from(PHILLY_LIST));
    if path.exists() || args.philly.is_some() {
        let (workload, _) = import(&path, &ImportOptions::default())?;
        return Ok(("philly", workload));
    }
    context.say("no Philly list here (give it with --philly FILE): a generated list stands in for it")?;
    let generator = ProfileConfig {
        num_jobs: NUM_JOBS,
        num_nodes: 311,
        ..ProfileConfig::default()
    };
    let workload = generate(&GeneratorConfig::Profile(generator), Seed(args.report.seed()))?;
    Ok(("philly-like", workload))
}

fn simulator(args: &BenchArgs, context: &mut Context<'_>) -> Result<BTreeMap<String, f64>, Error> {
    let (list, workload) = philly(args, context)?;
    let mut jobs_per_s = BTreeMap::new();
    for name in ["fifo", "srtf"] {
        let mut sim = SimConfig::default();
        sim.capabilities.grant(ActionKind::Preempt, name == "srtf");
        let spec = PolicySpec::heuristic(name)?;
        let value = cpu_rate(args, || {
            let mut policy = spec.policy()?;
            let result = simulate(&workload, &sim, &mut policy)?;
            Ok(result.jobs.len() as u64)
        })?;
        jobs_per_s.insert(format!("{list}/{name}"), value);
    }
    Ok(jobs_per_s)
}

fn ppo(args: &BenchArgs, context: &Context<'_>) -> Result<f64, Error> {
    let env = EnvConfig::registered("Pleach/Philly-v0")?;
    let settings = TrainSettings {
        num_envs: args.num_envs as usize,
        ..TrainSettings::default()
    };
    let contract = Contract::current(env.spaces(), env.candidates, "bench");
    let mut trainer = Trainer::new(settings.train, contract, Seed(args.report.seed()))?;
    let mut envs = VecEnv::new(&env, settings.num_envs, AutoresetMode::SameStep)?;
    let mut last = 0;
    rate(args, context, || {
        let stats = trainer.update(&mut envs)?;
        let frames = stats.num_frames - last;
        last = stats.num_frames;
        Ok(frames)
    })
}

/// A tree of 16 leaves that imitates SRTF, asked at busy decision points with their features at hand.
fn tree(args: &BenchArgs) -> Result<f64, Error> {
    use pleach_scheduler::policy::DecisionPoint;
    let env = EnvConfig::busy(true);
    let source = pleach_env::Source::open(&env)?;
    let workload = source.workload(&env, Seed(args.report.seed()))?;
    let mut tree = bench_tree(args)?;
    let needs = Needs::full();
    let capabilities = env.sim.capabilities;
    let estimates = env.sim.estimates.estimates(&workload, Seed(args.report.seed()));
    let mut world = pleach_env::world::World::new(&workload, capabilities, &estimates)?;
    let mut pass = Pass::new();
    // Forward to the decision point with most candidates among the first instants.
    let mut best = (0, world.clone());
    for _ in 0..2000 {
        if world.advance() == pleach_env::world::Advance::End {
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
    let decisions_per_s = cpu_rate(args, || {
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
    use pleach_distill::DistillConfig;
    use pleach_experiments::distill::prune;
    use pleach_experiments::progress::Watcher;
    use pleach_experiments::train::validation::Validation;
    let env = EnvConfig::registered("Pleach/PhillyPreempt-v0")?;
    let validation = Validation::new(&env, args.report.seed(), 2)?;
    let mut config = DistillConfig {
        leaves: vec![16],
        rounds: 1,
        episodes: 2,
        ..DistillConfig::default()
    };
    config.prune.tries = 0;
    let distilled = prune(
        &env,
        &PolicySpec::heuristic("srtf")?,
        &config,
        &validation,
        args.report.seed(),
        &Watcher::silent(),
    )?;
    Ok(PolicySpec::tree("tree", distilled.tree).policy()?)
}
