//! `pleach suite`: trainings, comparisons, one table.

use std::path::Path;

use pleach_experiments::command::{Context, Runs};
use pleach_experiments::door::PolicySpec;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::instances::{episodes, seeds};
use pleach_experiments::evaluate::interval::Interval;
use pleach_experiments::regret::rules;
use pleach_experiments::run_folder::{Existing, RunFolder};
use pleach_experiments::train::constraint::Constraint;
use pleach_experiments::train::fine_tuning::{self, network_at};
use pleach_experiments::train::settings::TrainSettings;
use pleach_experiments::train::validation::Validation;
use pleach_experiments::train::{Trained, overrides, settings_file, with_bar};
use pleach_network::LearnedPolicy;
use serde_json::json;

use super::{Comparison, LONGER, Learned, Stage, SuiteArgs, TASKS, Task, compare};

/// Updates, validation workloads, and pairs and workloads of a generation in a smoke run.
const SMOKE: (u64, usize, usize, usize) = (3, 3, 3, 2);
/// Simulations of the search for what can be won, a workload. *Assumed*; lab/notes/suite.md has what more of them find.
const SEARCH: u32 = 300;
/// The same in a smoke run.
const SMOKE_SEARCH: u32 = 5;

impl Runs for SuiteArgs {
    const NAME: &'static str = "suite";
    const ABOUT: &'static str = "Train on eight tasks and play the result against every scheduler";

    /// Trains and judges, one task after the other. What is trained already is read back.
    fn run(&self, context: &mut Context<'_>) -> Result<(), Error> {
        let tasks: Vec<Task> = if self.task.is_empty() {
            TASKS.to_vec()
        } else {
            self.task
                .iter()
                .map(|id| Task::find(id))
                .collect::<Result<_, _>>()?
        };
        let (stages, num_tasks) = (stages(self)?, tasks.len());
        let mut records = Vec::new();
        for task in tasks {
            let mut learned: Vec<Learned> = Vec::new();
            let mut best_ratios = Vec::new();
            for (stage, settings) in &stages {
                let (trained, best_ratio) = train_all(task, *stage, settings, self, context)?;
                learned.push(trained);
                best_ratios.push(best_ratio);
            }
            let judged = compare_all(task, &stages, &learned, self, context)?;
            let of_stage = |(place, judged): (usize, serde_json::Map<String, serde_json::Value>)| {
                let stage = stages[place].0;
                json!({"stage": stage.name(), "num_jobs": stage.times() * task.num_jobs, "best_training": learned[place].kept,
                    "best_validation_ratio": best_ratios[place], "judged": judged})
            };
            let of_stages: Vec<serde_json::Value> = judged.into_iter().enumerate().map(of_stage).collect();
            records.push(json!({"task": task.id, "unseen": task.unseen, "stages": of_stages}));
            if let Some(path) = self.report.json() {
                let value = json!({"schema": 2, "command": "suite", "tasks": records});
                context.write_growing_json(path, records.len() == num_tasks, &value)?;
            }
        }
        Ok(())
    }
}

/// Judges the trainings of all stages of a task on each kind of workloads. `[stage]`
fn compare_all(
    task: Task,
    stages: &[(Stage, TrainSettings)],
    learned: &[Learned],
    args: &SuiteArgs,
    context: &mut Context<'_>,
) -> Result<Vec<serde_json::Map<String, serde_json::Value>>, Error> {
    let mut judged = vec![serde_json::Map::new(); stages.len()];
    let num = args.workloads as usize;
    for (kind, env, num) in [
        ("held-out", task.env()?, num),
        ("longer", task.env_times(LONGER)?, num.div_ceil(2)),
        ("unseen", task.unseen_env()?, num),
    ] {
        let instances = episodes(&env, &seeds(args.report.seed(), "test", num))?;
        let field = rules(env.sim.capabilities)?;
        let comparisons = compare(
            &env,
            &instances,
            &field,
            learned,
            (kind, if args.smoke { SMOKE_SEARCH } else { SEARCH }),
            &(context.bars)(args.report.quiet()),
        )?;
        let name = match kind {
            "unseen" => task.unseen.to_string(),
            "longer" => format!("lists of {} jobs", LONGER * task.num_jobs),
            _ => task.id.to_string(),
        };
        for ((stage, _), (comparison, judged)) in stages.iter().zip(comparisons.iter().zip(&mut judged)) {
            if !args.report.quiet() {
                let num_jobs = stage.times() * task.num_jobs;
                let name = format!("{name}, trained on lists of {num_jobs}");
                context.say(&line(&name, comparison))?;
            }
            judged.insert(kind.to_string(), json!(comparison));
        }
    }
    Ok(judged)
}

/// The stages that are gone through, and their settings.
fn stages(args: &SuiteArgs) -> Result<Vec<(Stage, TrainSettings)>, Error> {
    let of_stage = |stage: Stage| {
        let file = match stage {
            Stage::AsLong => &args.settings.config,
            Stage::Longer => &args.config_longer,
        };
        let settings = match file {
            Some(path) => settings_file::read(path)?,
            None => stage.settings()?,
        };
        Ok((stage, ready(settings, args)?))
    };
    Stage::ALL
        .into_iter()
        .take(args.stages.into())
        .map(of_stage)
        .collect()
}

fn ready(mut settings: TrainSettings, args: &SuiteArgs) -> Result<TrainSettings, Error> {
    if args.smoke {
        settings.train.num_updates = settings.train.num_updates.min(SMOKE.0);
        settings.num_validation = settings.num_validation.min(SMOKE.1);
        // So few workloads say nothing of a tail.
        settings.constraint = Constraint::default();
        let evolution = &mut settings.train.evolution;
        evolution.num_pairs = evolution.num_pairs.min(SMOKE.2);
        evolution.num_workloads = evolution.num_workloads.min(SMOKE.3);
    }
    if let Some(text) = args.settings.set.iter().find(|text| text.starts_with("env.")) {
        let allowed = "keys that do not begin with env: the task gives the environment";
        let hint = "Train on an environment of your own with pleach train --learner evolution.";
        return Err(Error::config("set", text, allowed, hint));
    }
    let settings = overrides::apply(&settings, &args.settings.set)?;
    settings.validate()?;
    Ok(settings)
}

/// All trainings of a task in one stage, and the best ratio on validation workloads.
fn train_all(
    task: Task,
    stage: Stage,
    settings: &TrainSettings,
    args: &SuiteArgs,
    context: &mut Context<'_>,
) -> Result<(Learned, f64), Error> {
    let mut settings = settings.clone();
    settings.env = task.env_times(stage.times())?;
    let mut learned = Learned {
        trained: Vec::new(),
        kept: 0,
    };
    let mut best_ratio = f64::INFINITY;
    for training in 0..args.trainings {
        if stage == Stage::Longer {
            let first = args.out.join(Stage::AsLong.folder(task, training));
            settings.fine_tune = Some(first);
            fine_tuning::adopt(&mut settings)?;
        }
        let place = args.out.join(stage.folder(task, training));
        let (policy, ratio) = match train_one(&place, &settings, training, args, context) {
            Ok(one) => {
                let ratio = one.best().map_or(f64::INFINITY, |point| point.ratio);
                (one.policy, ratio)
            }
            Err(error) => (first_network(&settings, error, &place, context)?, f64::INFINITY),
        };
        if ratio < best_ratio {
            (best_ratio, learned.kept) = (ratio, training as usize);
        }
        let name = format!("learned-{}-{training}", stage.name());
        learned
            .trained
            .push(PolicySpec::network(&name, policy.named(name.clone())));
    }
    Ok((learned, best_ratio))
}

/// The network that a training went on from, where nothing better came of it that keeps to the bounds: that is what there is.
///
/// # Errors
/// Any other error of the training, and a training that went on from nothing.
fn first_network(
    settings: &TrainSettings,
    error: Error,
    place: &Path,
    context: &mut Context<'_>,
) -> Result<LearnedPolicy, Error> {
    match (error, &settings.fine_tune) {
        (Error::NothingKept(message), Some(first)) => {
            context.say(&format!(
                "{}: {message}. The network that it went on from is judged",
                place.display()
            ))?;
            LearnedPolicy::from_network(&network_at(first)?).map_err(Error::from)
        }
        (error, _) => Err(error),
    }
}

/// One training, begun, gone on with or read back.
fn train_one(
    place: &Path,
    settings: &TrainSettings,
    training: u32,
    args: &SuiteArgs,
    context: &Context<'_>,
) -> Result<Trained, Error> {
    // Each training has its own workloads to learn from and to choose on; the held-out ones are the same for all.
    let seed = args.report.seed().wrapping_mul(1000) + u64::from(training);
    let existing = if place.join("run.json").is_file() {
        Existing::Resume
    } else {
        Existing::Refuse
    };
    let folder = RunFolder::open("train", settings, seed, Some(place), existing)?;
    let validation = Validation::by(&settings.objective, &settings.env, seed, settings.num_validation)?;
    let trained = with_bar(settings, &validation, seed, &folder, args.report.quiet(), context)?;
    folder.finish()?;
    Ok(trained)
}

/// One line of the table.
fn line(name: &str, comparison: &Comparison) -> String {
    let show =
        |interval: &Interval| format!("{:.3} [{:.3}, {:.3}]", interval.iqm, interval.low, interval.high);
    let percent = |gap: Option<f64>| gap.map_or("-".to_string(), |gap| format!("{:.0} %", 100.0 * gap));
    let each: Vec<String> = comparison
        .trainings
        .iter()
        .map(|ratio| format!("{ratio:.3}"))
        .collect();
    format!(
        "{name}: avg JCT {} of {}, p99 JCT {}; gap to the bound {} -> {}; of what can be won {}; trainings {}; best on validation: {} avg JCT {}, p99 JCT {}",
        show(&comparison.avg_jct),
        comparison.baseline,
        show(&comparison.p99_jct),
        percent(comparison.baseline_gap),
        percent(comparison.learned_gap),
        comparison.room.in_words(comparison.share),
        each.join(" "),
        comparison.kept.training,
        show(&comparison.kept.avg_jct),
        show(&comparison.kept.p99_jct),
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use pleach_experiments::progress::Watcher;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: SuiteArgs,
    }

    fn settings_of_stages(flags: &[&str]) -> Vec<TrainSettings> {
        let words = ["suite"].iter().chain(flags);
        let of_stages = stages(&Line::try_parse_from(words).unwrap().args).unwrap();
        of_stages.into_iter().map(|(_, settings)| settings).collect()
    }

    #[test]
    fn the_shipped_files_are_what_the_suite_has_built_in_and_mean_what_they_meant() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/configs");
        let files = ["suite.toml", "suite-longer.toml"].map(|name| format!("{folder}/{name}"));
        let given = settings_of_stages(&["--config", &files[0], "--config-longer", &files[1]]);
        let built_in = settings_of_stages(&[]);
        assert_eq!(given, built_in);
        // The reference policies were made when a key that was left out had the default of its own structure.
        for (settings, file) in built_in.into_iter().zip(&files) {
            let text = std::fs::read_to_string(file).unwrap();
            let over_library: TrainSettings = toml::from_str(&text).unwrap();
            for task in TASKS {
                let in_task = |settings: &TrainSettings| TrainSettings {
                    env: task.env_times(1).unwrap(),
                    ..settings.clone()
                };
                let [now, then] =
                    [&settings, &over_library].map(|settings| toml::to_string(&in_task(settings)).unwrap());
                assert_eq!(now, then, "{file} {}", task.id);
            }
        }
    }

    #[test]
    fn a_file_of_ones_own_is_laid_over_the_same_settings_as_in_train() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        let mut expected = settings_file::counterfactual().unwrap();
        expected.train.num_updates = 7;
        std::fs::write(&file, "[train]\nnum_updates = 7\n").unwrap();
        let place = file.display().to_string();
        let own = settings_of_stages(&["--stages", "1", "--config", &place]);
        assert_eq!(own, [expected]);
    }

    #[test]
    fn a_second_stage_that_keeps_nothing_leaves_the_network_it_went_on_from() {
        let reference = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../checkpoints/reference/GavelMulti-v1.ckpt"
        );
        let mut settings = TrainSettings::default();
        let nothing = || Error::NothingKept("no network kept to the constraint".into());
        let mut said = Vec::new();
        let mut context = Context {
            command_line: String::new(),
            given: Vec::new(),
            clock: &|| 0.0,
            stopwatch: &std::time::Duration::default,
            print: &mut said,
            data: &mut std::io::sink(),
            bars: |_| Watcher::silent(),
            stop: std::sync::Arc::default(),
        };
        let place = Path::new("runs/suite/GavelMulti-v1-0-longer");
        let refused = first_network(&settings, nothing(), place, &mut context);
        assert!(matches!(refused, Err(Error::NothingKept(_))));
        settings.fine_tune = Some(reference.into());
        first_network(&settings, nothing(), place, &mut context).unwrap();
        let other = first_network(&settings, Error::Failed("full".into()), place, &mut context);
        assert!(matches!(other, Err(Error::Failed(_))));
        assert!(
            String::from_utf8(said)
                .unwrap()
                .contains("GavelMulti-v1-0-longer: no network")
        );
    }
}
