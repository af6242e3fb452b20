//! A training as a command runs it: its settings, its folder, what is said before and after it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pleach_agents::Device;
use pleach_agents::learner::way;
use pleach_env::{EnvConfig, Split};

use super::settings::TrainSettings;
use super::validation::Validation;
use super::{
    TrainRequest, Trained, differences_from_whole, env_description, objective, settings_file, train,
};
use crate::command::Context;
use crate::command::flags::RunArgs;
use crate::command::stop::Listening;
use crate::error::Error;
use crate::evaluate::idle::idle_env;
use crate::progress::{Stopped, Watcher};
use crate::run_folder::{RunDescription, RunFolder, SETTINGS_FILE};
use crate::twin::doubt_of;

/// Name of the command in the run's folder.
const COMMAND: &str = "train";

/// A training that may begin, or go on.
#[derive(Clone, Debug)]
pub struct Training<'a> {
    /// All that shapes it.
    pub settings: TrainSettings,
    /// Root of all randomness.
    pub seed: u64,
    /// Updates of the run that is extended.
    extended_from: Option<u64>,
    run: &'a RunArgs,
}

impl<'a> Training<'a> {
    /// From what was asked for; with `--resume` or so many updates `more` and nothing that says how to train, what the run in the
    /// folder was begun with, and its seed.
    ///
    /// # Errors
    /// Settings that cannot be used, a folder without a run.
    pub fn of(request: &TrainRequest, run: &'a RunArgs, more: Option<u64>) -> Result<Training<'a>, Error> {
        let goes_on = (run.resume || more.is_some()) && *request == TrainRequest::default();
        let own = match run.out.as_deref().filter(|_| goes_on) {
            Some(out) => own_settings(out, run.seed())?,
            None => None,
        };
        let (mut settings, seed) = match (own, more) {
            (Some(own), _) => own,
            (None, Some(_)) => {
                let out = run.out.clone().unwrap_or_default();
                let (allowed, hint) = (
                    "a run of pleach train in --out",
                    "Give the folder of one with its settings.toml, finished or not.",
                );
                return Err(Error::config("extend", out.display(), allowed, hint));
            }
            (None, None) => (request.settings()?, run.seed()),
        };
        let before = settings.train.num_updates;
        settings.train.num_updates = before.saturating_add(more.unwrap_or(0));
        Ok(Training {
            settings,
            seed,
            extended_from: more.map(|_| before),
            run,
        })
    }

    /// The same on a device, with so many processes.
    ///
    /// # Errors
    /// Processes for a learner whose updates are not divided, settings out of their range.
    pub fn on(mut self, device: Device, units: u32) -> Result<Training<'a>, Error> {
        self.settings.device = device;
        self.settings.num_units = units as usize;
        Error::refuse_if(
            units > 1 && !way(self.settings.train.learner).is_divided(),
            "units",
            units,
            "1 unless evolution learns",
            "Add --learner evolution: PPO's updates are not divided.",
        )?;
        self.settings.validate()?;
        Ok(self)
    }

    /// Trains, and says before and after what is of interest.
    ///
    /// # Errors
    /// A device that is not there, a folder in the way, a run that fails.
    pub fn run(&self, context: &mut Context<'_>) -> Result<(), Error> {
        let (settings, quiet) = (&self.settings, self.run.quiet());
        let device = settings.device.probe()?;
        let folder = self.folder()?;
        let text = toml::to_string_pretty(settings).map_err(|error| Error::Failed(error.to_string()))?;
        folder.write(SETTINGS_FILE, text.as_bytes())?;
        if !quiet {
            self.say_before(&device, context)?;
        }
        let validation = Validation::by(
            &settings.objective,
            &settings.env,
            self.seed,
            settings.num_validation,
        )?;
        let trained = with_bar(settings, &validation, self.seed, &folder, quiet, context)?;
        let verdict = trained.verdict(settings, &validation);
        if let Some(path) = self.run.json() {
            let value = serde_json::json!({
                "schema": 1,
                "command": COMMAND,
                "best_heuristic": validation.best(),
                "teacher": trained.teacher,
                "best_ratio": trained.best().map(|point| point.ratio),
                "validation": trained.curve,
                "verdict": verdict,
            });
            context.write_json(path, &value)?;
        }
        let place = folder.path().to_path_buf();
        folder.finish()?;
        if quiet {
            return Ok(());
        }
        if let Some(best) = trained.best() {
            let drawn = best
                .drawn
                .map(|drawn| format!("; {drawn:.3} where candidates are drawn"));
            context.say(&format!(
                "best on {} validation workloads: {:.3} of the {} of {}, after {} updates{}",
                settings.num_validation,
                best.ratio,
                objective::in_words(&settings.objective),
                validation.best(),
                best.update,
                drawn.unwrap_or_default()
            ))?;
        }
        verdict.iter().try_for_each(|verdict| context.say(verdict))?;
        let comparison = comparison(&settings.env, validation.best(), &place);
        context.say(&format!("written to {}; {comparison}", place.display()))
    }

    /// The run's folder: a new one, one to go on in, or one that is extended from a number of updates.
    fn folder(&self) -> Result<RunFolder, Error> {
        let out = self.run.out.as_deref();
        let (Some(num_updates), Some(out)) = (self.extended_from, out) else {
            return RunFolder::open(COMMAND, &self.settings, self.seed, out, self.run.existing());
        };
        let mut before = self.settings.clone();
        before.train.num_updates = num_updates;
        RunFolder::open_extended(COMMAND, (&before, &self.settings), self.seed, out)
    }

    fn say_before(&self, device: &str, context: &mut Context<'_>) -> Result<(), Error> {
        let settings = &self.settings;
        if settings.device != Device::Cpu {
            let name = settings.device.name();
            context.say(&format!("gradients are taken on {name}: {device}"))?;
        }
        let lines = [
            Some(opening(settings, self.seed)),
            doubt_of(&settings.env, &Watcher::silent())?,
            self.extended_from.map(|before| extension(settings, before)),
            idle_env(&settings.env.in_split(Split::Train), self.seed)?,
        ];
        lines.iter().flatten().try_for_each(|line| context.say(line))
    }
}

/// What the run in a folder was begun with, and its seed; none where there is no such run.
fn own_settings(out: &Path, seed: u64) -> Result<Option<(TrainSettings, u64)>, Error> {
    let file = out.join(SETTINGS_FILE);
    match RunDescription::read(out)? {
        Some(run) if run.command == COMMAND && file.is_file() => {
            // No --seed is a seed of 0.
            Error::refuse_if(
                seed != 0 && seed != run.seed,
                "seed",
                seed,
                format_args!("{}, the seed of the run in {}", run.seed, out.display()),
                "Leave it out to go on in that run, or give another --out.",
            )?;
            Ok(Some((settings_file::read(&file)?, run.seed)))
        }
        _ => Ok(None),
    }
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
    let bars = (context.bars)(quiet).stopped_by(move |done, total| {
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
    use super::*;
    use crate::command::flags::SettingsFlags;

    fn settings(set: &[&str], env: Option<&str>) -> Result<TrainSettings, Error> {
        let settings = SettingsFlags {
            set: set.iter().map(|text| (*text).to_owned()).collect(),
            ..SettingsFlags::default()
        };
        let request = TrainRequest {
            env: env.map(str::to_owned),
            settings,
            ..TrainRequest::default()
        };
        request.settings()
    }

    #[test]
    fn the_first_line_and_the_last_name_the_environment() {
        let plain = settings(&[], None).unwrap();
        assert_eq!(
            opening(&plain, 3),
            "exact credit by forks, 200 updates, from a clone of the best heuristic, seed 3; on Pleach/Philly-v0: \
             8 nodes, 64 GPUs, 200 jobs in an episode, load 1.5, run times known exactly"
        );
        let place = Path::new("runs/a");
        let said = comparison(&plain.env, "sjf", place);
        assert!(
            said.ends_with("evaluate --workload Pleach/Philly-v0 --policy sjf,runs/a"),
            "{said}"
        );
        // What is known of run times comes with the id.
        let limits = settings(&[], Some("Pleach/PhillyGang-v1")).unwrap();
        let said = comparison(&limits.env, "sjf", place);
        assert!(
            said.ends_with("--workload Pleach/PhillyGang-v1 --policy sjf,runs/a"),
            "{said}"
        );
        let other = settings(&["env.workload.generate.num_nodes=3"], None).unwrap();
        assert!(opening(&other, 0).contains("on philly-like jobs: 3 nodes, 24 GPUs"));
        let said = comparison(&other.env, "sjf", place);
        assert!(
            said.ends_with("evaluate --workload runs/a/settings.toml --policy sjf,runs/a"),
            "{said}"
        );
    }
}
