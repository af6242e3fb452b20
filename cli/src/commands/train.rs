//! `pleach train`: a network by PPO or by evolution strategies.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pleach_agents::Device;
use pleach_agents::learner::{Plays, way};
use pleach_env::{EnvConfig, Expression, RewardConfig, Split};

use crate::commands::Context;
use crate::flags::TrainArgs;
use crate::progress::bars;
use pleach_experiments::command::stop::Listening;
use pleach_experiments::error::Error;
use pleach_experiments::evaluate::idle::idle_env;
use pleach_experiments::evaluate::workload_source::{env_of, resize};
use pleach_experiments::progress::Stopped;
use pleach_experiments::progress::Watcher;
use pleach_experiments::run_folder::{RunDescription, RunFolder, SETTINGS_FILE};
use pleach_experiments::train::env_description;
use pleach_experiments::train::fine_tuning;
use pleach_experiments::train::objective;
use pleach_experiments::train::overrides;
use pleach_experiments::train::settings::TrainSettings;
use pleach_experiments::train::settings_file;
use pleach_experiments::train::validation::Validation;
use pleach_experiments::train::{Trained, differences_from_whole, play_unit, train};
use pleach_experiments::twin::doubt_of;
use pleach_experiments::{SchedulingConfig, WorkloadSource};
use pleach_scheduler::ActionKind;

/// Name of the command in the run's folder.
const COMMAND: &str = "train";

/// Runs the training.
///
/// # Errors
/// A configuration that cannot be used, a folder in the way, a run that fails.
pub fn run(args: &TrainArgs, context: &mut Context<'_>) -> Result<(), Error> {
    if let (Some(unit), Some(folder)) = (args.unit, &args.run.out) {
        return be_unit(folder, unit, args.run.quiet(), context);
    }
    let (settings, seed) = settings(args)?;
    let extended_from = args.extend.map(|more| settings.train.num_updates - more);
    let device = settings.device.probe()?;
    if settings.device != Device::Cpu && !args.run.quiet() {
        context.say(&format!(
            "gradients are taken on {}: {device}",
            settings.device.name()
        ))?;
    }
    let folder = open_folder(args, &settings, seed, extended_from)?;
    let text = toml::to_string_pretty(&settings).map_err(|error| Error::Failed(error.to_string()))?;
    folder.write(SETTINGS_FILE, text.as_bytes())?;
    if !args.run.quiet() {
        context.say(&opening(&settings, seed))?;
        if let Some(doubt) = doubt_of(&settings.env, &Watcher::nobody())? {
            context.say(&doubt)?;
        }
        if let Some(before) = extended_from {
            context.say(&extension(&settings, before))?;
        }
    }
    if !args.run.quiet()
        && let Some(idle) = idle_env(&settings.env.in_split(Split::Train), seed)?
    {
        context.say(&idle)?;
    }
    let validation = Validation::by(&settings.objective, &settings.env, seed, settings.num_validation)?;
    let trained = with_bar(&settings, &validation, seed, &folder, args.run.quiet(), context)?;
    let best = trained.best();
    let verdict = trained.verdict(&settings, &validation);
    if let Some(path) = args.run.json() {
        let value = serde_json::json!({
            "schema": 1,
            "command": "train",
            "best_heuristic": validation.best(),
            "teacher": trained.teacher,
            "best_ratio": best.map(|point| point.ratio),
            "validation": trained.curve,
            "verdict": verdict,
        });
        context.write_json(path, &value)?;
    }
    let place = folder.path().to_path_buf();
    folder.finish()?;
    if !args.run.quiet() {
        if let Some(best) = best {
            context.say(&format!(
                "best on {} validation workloads: {:.3} of the {} of {}, after {} updates",
                settings.num_validation,
                best.ratio,
                objective::in_words(&settings.objective),
                validation.best(),
                best.update
            ))?;
        }
        if let Some(verdict) = verdict {
            context.say(&verdict)?;
        }
        context.say(&format!(
            "written to {}; {}",
            place.display(),
            comparison(&settings.env, validation.best(), &place)
        ))?;
    }
    Ok(())
}

/// Refuses settings that could not be trained with.
///
/// # Errors
/// As [`run`], before anything is made.
pub fn check(args: &TrainArgs) -> Result<(), Error> {
    settings_of_flags(args)?.validate()?;
    Ok(())
}

/// Lets the training of `run` begin where a shorter one has ended, where that makes no difference to its end.
///
/// # Errors
/// As [`run`], and files that cannot be copied.
pub(super) fn begin_from(args: &TrainArgs, shorter: &Path, run: &Path) -> Result<(), Error> {
    let (settings, seed) = settings(args)?;
    pleach_experiments::train::begin_from(shorter, &settings, seed, run).map(drop)
}

/// Plays a part of every generation of a training that another process leads.
fn be_unit(folder: &Path, unit: u32, quiet: bool, context: &mut Context<'_>) -> Result<(), Error> {
    let listening = context.stop.listen();
    let stop = Arc::clone(&context.stop);
    let watcher = bars(true).stopped_by(move |_, _| stop.asked().map(|signal| Stopped { signal }));
    let num_played = play_unit(folder, unit as usize, context.clock, &watcher)?;
    drop(listening);
    if !quiet {
        let place = folder.display();
        context.say(&format!(
            "unit {unit}: {num_played} parts played; the training in {place} has ended"
        ))?;
    }
    Ok(())
}

/// The run's folder: a new one, one to go on in, or one that is extended from a number of updates.
fn open_folder(
    args: &TrainArgs,
    settings: &TrainSettings,
    seed: u64,
    extended_from: Option<u64>,
) -> Result<RunFolder, Error> {
    let out = args.run.out.as_deref();
    let (Some(num_updates), Some(out)) = (extended_from, out) else {
        return RunFolder::open(COMMAND, settings, seed, out, args.run.existing());
    };
    let mut before = settings.clone();
    before.train.num_updates = num_updates;
    RunFolder::open_extended(COMMAND, (&before, settings), seed, out)
}

/// From where to where a run is extended, and how that differs from a run of the whole length.
fn extension(settings: &TrainSettings, before: u64) -> String {
    let total = settings.train.num_updates;
    let differences = differences_from_whole(settings, before);
    if differences.is_empty() {
        return format!(
            "extended from {before} to {total} updates: the same as a run of {total} from the beginning"
        );
    }
    format!(
        "extended from {before} to {total} updates; other than a run of {total} from the beginning: {}",
        differences.join("; ")
    )
}

/// Trains with a progress bar, and stops in order where the program is asked to end.
///
/// # Errors
/// As [`train`].
pub fn with_bar(
    settings: &TrainSettings,
    validation: &Validation,
    seed: u64,
    folder: &RunFolder,
    quiet: bool,
    context: &Context<'_>,
) -> Result<Trained, Error> {
    // Until the first update is made there is nothing to keep, and after the last one nothing to wait for.
    let listening: Mutex<Option<Listening>> = Mutex::new(None);
    let stop = Arc::clone(&context.stop);
    let bars = bars(quiet).stopped_by(move |done, total| {
        let mut listening = listening.lock().unwrap_or_else(PoisonError::into_inner);
        if done >= total {
            *listening = None;
        } else if listening.is_none() {
            *listening = Some(stop.listen());
        }
        stop.asked().map(|signal| Stopped { signal })
    });
    let num_updates = usize::try_from(settings.train.num_updates).unwrap_or(usize::MAX);
    bars.part("train", num_updates, || {
        train(settings, validation, seed, folder.path(), context.clock, &bars)
    })
}

/// Updates that make at least so many steps.
#[must_use]
pub fn updates_for(settings: &TrainSettings, env_steps: u64) -> u64 {
    let per_update = settings.num_envs.saturating_mul(settings.train.num_steps).max(1) as u64;
    env_steps.div_ceil(per_update)
}

/// The settings of a run and its seed. From the general to the particular: what is built in or the file of `--config`, `--env`,
/// `--set`, then the other flags.
fn settings(args: &TrainArgs) -> Result<(TrainSettings, u64), Error> {
    let (mut settings, seed) = match own_settings(args)? {
        Some((mut own, seed)) => {
            let train = &mut own.train;
            train.num_updates = train.num_updates.saturating_add(args.extend.unwrap_or(0));
            (own, seed)
        }
        None if args.extend.is_some() => {
            let out = args.run.out.clone().unwrap_or_default();
            let hint = "Give the folder of one with its settings.toml, finished or not.";
            return Err(Error::config(
                "extend",
                out.display(),
                "a run of pleach train in --out",
                hint,
            ));
        }
        None => (settings_of_flags(args)?, args.run.seed()),
    };
    settings.device = args.device;
    settings.num_units = args.units as usize;
    if settings.num_units > 1 && !way(settings.train.learner).is_divided() {
        let hint = "Add --learner evolution: PPO's updates are not divided.";
        return Err(Error::config(
            "units",
            args.units,
            "1 unless evolution learns",
            hint,
        ));
    }
    settings.validate()?;
    Ok((settings, seed))
}

/// With `--resume` or `--extend` and nothing that says how to train, what the run in the folder was begun with, and its seed.
fn own_settings(args: &TrainArgs) -> Result<Option<(TrainSettings, u64)>, Error> {
    let says_nothing = args.settings.config.is_none()
        && args.settings.set.is_empty()
        && args.learner.is_none()
        && [&args.env, &args.warm_start, &args.reward]
            .into_iter()
            .all(Option::is_none)
        && (args.workload == WorkloadSource::default() && args.scheduling == SchedulingConfig::default())
        && (args.num_envs.is_none() && args.env_steps.is_none() && args.fine_tune.is_none());
    let Some(out) = args
        .run
        .out
        .as_deref()
        .filter(|_| (args.run.resume || args.extend.is_some()) && says_nothing)
    else {
        return Ok(None);
    };
    let file = out.join(SETTINGS_FILE);
    match RunDescription::read(out)? {
        Some(run) if run.command == COMMAND && file.is_file() => {
            // No --seed is a seed of 0.
            if args.run.seed() != 0 && args.run.seed() != run.seed {
                let allowed = format!("{}, the seed of the run in {}", run.seed, out.display());
                let hint = "Leave it out to go on in that run, or give another --out.";
                return Err(Error::config("seed", args.run.seed(), allowed, hint));
            }
            Ok(Some((settings_file::read(&file)?, run.seed)))
        }
        _ => Ok(None),
    }
}

fn settings_of_flags(args: &TrainArgs) -> Result<TrainSettings, Error> {
    let mut settings = match &args.settings.config {
        Some(path) => settings_file::read(path)?,
        None => settings_file::built_in_for(args.learner.unwrap_or_default(), args.fine_tune.is_some())?,
    };
    if let Some(id) = &args.env {
        settings.env = env_of(id, None, None)?;
    }
    args.scheduling.check()?;
    if !args.workload.workload.is_empty() {
        settings.env = args.workload.env_to_learn_in(&args.scheduling)?;
    }
    let mut settings = overrides::apply(&settings, &args.settings.set)?;
    resize(&mut settings.env, args.workload.num_jobs, args.workload.load);
    if args.scheduling != SchedulingConfig::default() {
        let env = &mut settings.env;
        env.sim = args.scheduling.over(std::slice::from_ref(&env.sim));
        let shares = env.sim.capabilities.actions().contains(ActionKind::Share);
        env.candidates.actions = env.candidates.actions.set(ActionKind::Share, shares);
    }
    if let Some(reward) = &args.reward {
        if way(settings.train.learner).plays() == Plays::Episodes {
            let hint = "They learn from metrics: --set 'objective={avg_jct_s=1.0,p99_jct_s=0.2}'.";
            return Err(Error::config(
                "reward",
                reward,
                "none with evolution strategies",
                hint,
            ));
        }
        settings.env.reward = RewardConfig::Expression(Expression::parse(reward)?);
    }
    if let Some(num_envs) = args.num_envs {
        settings.num_envs = num_envs as usize;
    }
    if let Some(name) = &args.warm_start {
        settings.warm_start.clone_from(name);
    }
    if let Some(place) = &args.fine_tune {
        settings.fine_tune = Some(place.clone());
    }
    let is_set = |text: &String| text.split_once('=').is_some_and(|(key, _)| key == "warm_start");
    let asks_to_imitate = args.warm_start.is_some() || args.settings.set.iter().any(is_set);
    if asks_to_imitate && settings.warm_start != "none" && settings.prior != "none" {
        let allowed = format!("none with prior = {}: nothing is imitated then", settings.prior);
        let hint = "To imitate, add --set prior=none; to correct, leave out warm_start.";
        return Err(Error::config("warm_start", &settings.warm_start, allowed, hint));
    }
    fine_tuning::adopt(&mut settings)?;
    if let Some(env_steps) = args.env_steps {
        if way(settings.train.learner).plays() == Plays::Episodes {
            let hint = "Give the number of generations: --set train.num_updates=100.";
            return Err(Error::config(
                "env-steps",
                env_steps,
                "nothing with evolution strategies",
                hint,
            ));
        }
        settings.train.num_updates = updates_for(&settings, env_steps);
    }
    Ok(settings)
}

/// What is about to happen, in one line.
fn opening(settings: &TrainSettings, seed: u64) -> String {
    let learner = way(settings.train.learner).title();
    let named = |name: &str| match name {
        "best" => "the best heuristic".to_string(),
        names if names.contains(',') => format!("the best of {names}"),
        name => name.to_string(),
    };
    let start = match (
        &settings.fine_tune,
        settings.prior.as_str(),
        settings.warm_start.as_str(),
    ) {
        (Some(place), ..) => format!("going on from {}", place.display()),
        (None, "none", "none") => "from nothing".to_string(),
        (None, "none", teacher) => format!("from a clone of {}", named(teacher)),
        (None, prior, _) => format!("correcting {}", named(prior)),
    };
    let num_updates = settings.train.num_updates;
    let mut env = env_description::line(&settings.env);
    if let Some(split) = env_description::split(&settings.env) {
        env.push_str(&format!("\n{split}"));
    }
    format!("{learner}, {num_updates} updates, {start}, seed {seed}; on {env}")
}

/// The command that compares a trained network with the heuristic that was best.
fn comparison(env: &EnvConfig, best: &str, place: &Path) -> String {
    let policies = format!("--policy {best},{}", place.display());
    match env_description::registered(env) {
        Some((id, flags)) => {
            format!("compare it: pleach evaluate --workload {id}{flags} {policies}")
        }
        None => format!(
            "compare it: pleach evaluate --workload {} {policies}",
            place.join(SETTINGS_FILE).display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::flags::{Cli, Command};

    fn settings(line: &str) -> Result<TrainSettings, Error> {
        let words = ["pleach", "train"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Some(Command::Train(args)) => super::settings(&args).map(|(settings, _)| settings),
            _ => unreachable!(),
        }
    }

    #[test]
    fn flags_override_set_and_set_overrides_the_environment() {
        let settings = settings(
            "--set num_envs=64 --num-envs 16 --set warm_start=none --warm-start sjf --load 2.5 \
             --env Pleach/GavelMulti-v1 --set env.max_steps=7 --set env.workload.generate.load=0.5",
        )
        .unwrap();
        assert_eq!((settings.num_envs, settings.warm_start.as_str()), (16, "sjf"));
        let known = env_description::registered(&settings.env).unwrap();
        assert_eq!(known, ("Pleach/GavelMulti-v1", " --load 2.5".to_string()));
        assert_eq!(settings.env.max_steps, Some(7));
    }

    #[test]
    fn a_workload_and_what_is_known_of_it_are_said_as_evaluate_takes_them() {
        let flags =
            "--workload Pleach/GavelMulti-v1 --estimates history --preemption --num-jobs 40 --load 1.25";
        let own = settings(flags).unwrap().env;
        let known = EnvConfig::registered("Pleach/GavelMulti-v1").unwrap();
        let known = EnvConfig {
            workload: known.workload.resized(Some(40), Some(1.25)),
            ..known
        };
        assert_eq!(
            (&own.workload, own.candidates, &own.reward),
            (&known.workload, known.candidates, &known.reward)
        );
        assert_ne!(own.sim, known.sim);
        // The same over an environment by its id, and over a setting.
        let env = flags.replace("--workload", "--env");
        assert_eq!(settings(&env).unwrap().env, own);
        let set = format!("{flags} --set env.sim.capabilities.preemption=false");
        assert_eq!(settings(&set).unwrap().env, own, "flags win");
        let plain = settings("--workload Pleach/GavelMulti-v1").unwrap();
        assert_eq!(plain, settings("--env Pleach/GavelMulti-v1").unwrap());
        for (line, words) in [
            ("--format philly", "--workload"),
            ("--workload philly-like --env Pleach/Philly-v0", "cannot be used"),
            ("--unit 1 --out a --workload a.csv", "cannot be used"),
            ("--extend 1 --out a --preemption", "cannot be used"),
        ] {
            let words_of_line = ["pleach", "train"].into_iter().chain(line.split_whitespace());
            let said = Cli::try_parse_from(words_of_line).unwrap_err().to_string();
            assert!(said.contains(words), "{line}: {said}");
        }
    }

    #[test]
    fn a_reward_in_words_is_for_ppo() {
        let own = settings("--reward -waiting_jobs_s/total_run_s")
            .unwrap()
            .env
            .reward;
        let RewardConfig::Expression(expression) = own else {
            panic!("{own:?}");
        };
        assert_eq!(expression.text(), "-waiting_jobs_s/total_run_s");
        let said = settings("--reward -waiting").unwrap_err().to_string();
        assert!(
            said.contains("at character 2") && said.contains("waiting_jobs_s"),
            "{said}"
        );
        let said = settings("--reward jct --learner evolution")
            .unwrap_err()
            .to_string();
        assert!(said.contains("objective"), "{said}");
    }

    #[test]
    fn a_teacher_beside_a_prior_is_refused_where_somebody_asks_for_it() {
        for line in [
            "--warm-start sjf --set prior=easy",
            "--set warm_start=best --set prior=easy",
        ] {
            let said = settings(line).unwrap_err().to_string();
            assert!(
                said.contains("warm_start = ") && said.contains("prior = easy"),
                "{said}"
            );
        }
        assert!(settings("--set prior=easy").is_ok());
        assert!(settings("--warm-start none --set prior=easy").is_ok());
    }

    #[test]
    fn the_first_line_and_the_last_name_the_environment() {
        let plain = settings("").unwrap();
        assert_eq!(
            opening(&plain, 3),
            "PPO, 200 updates, from a clone of the best heuristic, seed 3; on Pleach/Philly-v0: 8 nodes, 64 GPUs, \
             200 jobs in an episode, load 1.5, run times known exactly"
        );
        let place = Path::new("runs/a");
        let said = comparison(&plain.env, "sjf", place);
        assert!(
            said.ends_with("evaluate --workload Pleach/Philly-v0 --policy sjf,runs/a"),
            "{said}"
        );
        // What is known of run times comes with the id.
        let limits = settings("--env Pleach/PhillyGang-v1").unwrap();
        let said = comparison(&limits.env, "sjf", place);
        assert!(
            said.ends_with("--workload Pleach/PhillyGang-v1 --policy sjf,runs/a"),
            "{said}"
        );
        let other = settings("--set env.workload.generate.num_nodes=3").unwrap();
        assert!(opening(&other, 0).contains("on philly-like jobs: 3 nodes, 24 GPUs"));
        let said = comparison(&other.env, "sjf", place);
        assert!(
            said.ends_with("evaluate --workload runs/a/settings.toml --policy sjf,runs/a"),
            "{said}"
        );
    }
}
