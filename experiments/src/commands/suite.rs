//! `pleach suite`: trainings, judgements, one table.

use serde_json::json;

use crate::atomic_file::{self, read_toml};
use crate::cli::SuiteArgs;
use crate::commands::Context;
use crate::commands::train::with_bar;
use crate::constraint::Constraint;
use crate::contestant::Contestant;
use crate::error::Error;
use crate::overrides;
use crate::progress::Bar;
use crate::run_folder::{Existing, RunFolder};
use crate::scenario::{episodes, seeds};
use crate::settings::TrainSettings;
use crate::suite::{Judgement, LONGER, TASKS, Task, Verdict, baselines, judge};
use crate::training::Trained;
use crate::validation::Validation;

/// Largest configuration, bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;
/// Updates, validation workloads, and pairs and workloads of a generation in a smoke run.
const SMOKE: (u64, usize, usize, usize) = (3, 3, 3, 2);

/// Trains and judges, one task after the other. What is trained already is read back.
///
/// # Errors
/// Flags that cannot be used, a training or a run that fails.
pub fn run(args: &SuiteArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let tasks: Vec<Task> = if args.task.is_empty() {
        TASKS.to_vec()
    } else {
        args.task
            .iter()
            .map(|id| Task::find(id))
            .collect::<Result<_, _>>()?
    };
    let learner = settings(args)?;
    let mut records = Vec::new();
    for task in tasks {
        let mut settings = learner.clone();
        settings.env = task.env()?;
        let mut trained = Vec::new();
        let mut best = (f64::INFINITY, 0);
        for training in 0..args.trainings {
            let one = train_one(task, &settings, args, training, context)?;
            let ratio = one.best().map_or(f64::INFINITY, |point| point.ratio);
            if ratio < best.0 {
                best = (ratio, training);
            }
            let name = format!("learned-{training}");
            trained.push(Contestant::network(&name, one.policy.named(name.clone())));
        }
        let mut judged = Vec::new();
        let num = args.workloads as usize;
        for (kind, env, num) in [
            ("held-out", task.env()?, num),
            ("longer", task.longer_env()?, num.div_ceil(2)),
            ("unseen", task.unseen_env()?, num),
        ] {
            let bouts = episodes(&env, &seeds(args.seed, "test", num))?;
            let field = baselines(env.sim.capabilities)?;
            let num_runs = bouts.len() * (field.len() + trained.len());
            let bar = Bar::new(args.quiet, kind, num_runs as u64);
            let judgement = judge(&env, &bouts, &field, (&trained, best.1 as usize), &|| bar.step())?;
            bar.end();
            if !args.quiet {
                let name = match kind {
                    "unseen" => task.unseen.to_string(),
                    "longer" => format!("lists of {} jobs", LONGER * task.num_jobs),
                    _ => task.id.to_string(),
                };
                context.say(&line(&name, &judgement))?;
            }
            judged.push((kind, judgement));
        }
        let judged: serde_json::Map<String, serde_json::Value> = judged
            .into_iter()
            .map(|(kind, judgement)| (kind.to_string(), json!(judgement)))
            .collect();
        records.push(
            json!({"task": task.id, "unseen": task.unseen, "best_training": best.1,
            "best_validation_ratio": best.0, "judged": judged}),
        );
        if let Some(path) = &args.json {
            let value = json!({"schema": 1, "command": "suite", "tasks": records});
            atomic_file::write_json(path, &value)?;
        }
    }
    Ok(())
}

fn settings(args: &SuiteArgs) -> Result<TrainSettings, Error> {
    let mut settings: TrainSettings = match &args.config {
        Some(path) => read_toml(path, CONFIG_BYTES_MAX)?,
        None => crate::suite::settings()?,
    };
    if args.smoke {
        settings.train.num_updates = settings.train.num_updates.min(SMOKE.0);
        settings.num_validation = settings.num_validation.min(SMOKE.1);
        // So few workloads say nothing of a tail.
        settings.constraint = Constraint::default();
        let evolution = &mut settings.train.evolution;
        evolution.num_pairs = evolution.num_pairs.min(SMOKE.2);
        evolution.num_workloads = evolution.num_workloads.min(SMOKE.3);
    }
    let settings = overrides::apply(&settings, &args.set)?;
    settings.validate()?;
    Ok(settings)
}

fn train_one(
    task: Task,
    settings: &TrainSettings,
    args: &SuiteArgs,
    training: u32,
    context: &mut Context<'_>,
) -> Result<Trained, Error> {
    let name = task.id.trim_start_matches("Pleach/");
    let place = args.out.join(format!("{name}-{training}"));
    // Each training has its own workloads to learn from and to choose on; the held-out ones are the same for all.
    let seed = args.seed.wrapping_mul(1000) + u64::from(training);
    let existing = if place.join("run.json").is_file() {
        Existing::Resume
    } else {
        Existing::Refuse
    };
    let folder = RunFolder::open("train", settings, seed, Some(&place), existing)?;
    let validation = Validation::new(&settings.env, seed, settings.num_validation)?;
    let trained = with_bar(settings, &validation, seed, &folder, args.quiet, context)?;
    folder.finish()?;
    Ok(trained)
}

/// One line of the table.
fn line(name: &str, judgement: &Judgement) -> String {
    let show = |verdict: &Verdict| format!("{:.3} [{:.3}, {:.3}]", verdict.iqm, verdict.low, verdict.high);
    let percent = |gap: Option<f64>| gap.map_or("-".to_string(), |gap| format!("{:.0} %", 100.0 * gap));
    let each: Vec<String> = judgement
        .trainings
        .iter()
        .map(|ratio| format!("{ratio:.3}"))
        .collect();
    format!(
        "{name}: avg JCT {} of {}, p99 JCT {}; gap to the bound {} -> {}; trainings {}; best on validation: {} avg JCT {}, p99 JCT {}",
        show(&judgement.avg_jct),
        judgement.baseline,
        show(&judgement.p99_jct),
        percent(judgement.baseline_gap),
        percent(judgement.learned_gap),
        each.join(" "),
        judgement.kept.training,
        show(&judgement.kept.avg_jct),
        show(&judgement.kept.p99_jct),
    )
}
