//! The commands beside `run` that are Slurm's own, and what the others ask of it.

use std::process::ExitCode;

use pleach_daemon::operator::{self, HandBackArgs, code};
use pleach_daemon::output::say;
use pleach_daemon::slurm::{Slurm, left_over, queue, ranking, site};
use pleach_daemon::wait::block_on;
use pleach_daemon::{BatchSystem, Error, Settings};

use crate::arguments::WhyNot;
use crate::now_s;

pub fn status(settings: &Settings) -> Result<ExitCode, Error> {
    let now_s = now_s();
    let status = operator::status(&settings.state_dir, &Slurm::WORDS, now_s)?;
    Ok(code(now_s - status.at_s <= 60 && status.last_error.is_empty()))
}

pub fn why_not(settings: &Settings, args: &WhyNot) -> Result<ExitCode, Error> {
    let rounds = settings.rounds();
    let mut seen = block_on(Slurm::new(settings)?.observe(now_s()))?;
    operator::why_not(&mut seen, &settings.state_dir, &rounds, &args.policy, args.job)?;
    Ok(ExitCode::SUCCESS)
}

pub fn hand_back(settings: &Settings, args: &HandBackArgs) -> Result<ExitCode, Error> {
    let commands = settings.commands();
    let back = async {
        let back = left_over::hand_back(&commands)?;
        let partition = site::partition(&commands, settings.partition.as_deref())?;
        let waiting = queue::observe(&commands, &[&partition])?;
        let (num, refused) = ranking::take_back(&commands, &waiting, &settings.state_dir)?;
        say(&format!("{num} jobs lost the factors of the order"))?;
        Ok((back.0, back.1.into_iter().chain(refused).collect()))
    };
    block_on(operator::hand_back(
        &settings.state_dir,
        args,
        &Slurm::WORDS,
        back,
    ))
    .map(code)
}
