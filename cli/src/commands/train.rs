//! `pleach train`: a network by PPO or by evolution strategies.

use std::path::Path;
use std::sync::Arc;

use pleach_experiments::error::Error;
use pleach_experiments::progress::Stopped;
use pleach_experiments::train::{Training, play_unit};

use crate::commands::{Context, world};
use crate::flags::TrainArgs;

/// Runs the training.
///
/// # Errors
/// A configuration that cannot be used, a folder in the way, a run that fails.
pub fn run(args: &TrainArgs, context: &mut Context<'_>) -> Result<(), Error> {
    let request = &args.request;
    if let Some(asked) = world::train_of(&request.workload, &request.settings.set, context)? {
        return world::train(&asked, args, context);
    }
    match (args.unit, &args.run.out) {
        (Some(unit), Some(folder)) => be_unit(folder, unit, args.run.quiet(), context),
        _ => Training::of(&args.request, &args.run, args.extend)?
            .on(args.device, args.units)?
            .run(context),
    }
}

/// Plays a part of every generation of a training that another process leads.
fn be_unit(folder: &Path, unit: u32, quiet: bool, context: &mut Context<'_>) -> Result<(), Error> {
    let listening = context.stop.listen();
    let stop = Arc::clone(&context.stop);
    let watcher = (context.bars)(true).stopped_by(move |_, _| stop.asked().map(|signal| Stopped { signal }));
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use pleach_env::{EnvConfig, RewardConfig};
    use pleach_experiments::train::env_description;
    use pleach_experiments::train::settings::TrainSettings;

    use super::*;
    use crate::flags::{Cli, Command};

    fn settings(line: &str) -> Result<TrainSettings, Error> {
        let words = ["pleach", "train"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Some(Command::Train(args)) => args
                .request
                .settings()
                .and_then(|settings| settings.validate().map(|()| settings)),
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
            (&own.workload, own.candidates),
            (&known.workload, known.candidates)
        );
        // What is paid is the learner's affair.
        assert_eq!(own.reward, settings("").unwrap().env.reward);
        assert_ne!(own.reward, known.reward);
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
}
