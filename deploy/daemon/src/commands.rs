//! The commands beside `run` that are Slurm's own, and what the others ask of it.

use std::collections::BTreeSet;
use std::process::ExitCode;

use pleach_daemon::log::one_line;
use pleach_daemon::operator::{self, HandBackArgs, code};
use pleach_daemon::output::say;
use pleach_daemon::slurm::lua::{self, Holds};
use pleach_daemon::slurm::scope::Scope;
use pleach_daemon::slurm::{Slurm, apply, queue, ranking, site};
use pleach_daemon::wait::block_on;
use pleach_daemon::{BatchSystem, Error, Settings};
use pleach_scheduler::Problem;

use crate::arguments::{Lua, WhyNot};
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
        let back = apply::hand_back(&commands)?;
        if !settings.drive.is_order() {
            return Ok(back);
        }
        let partition = site::partition(&commands, settings.partition.as_deref())?;
        let (num, refused) = ranking::take_back(
            &commands,
            &queue::observe(&commands, &partition)?,
            &settings.state_dir,
        )?;
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

pub fn lua(settings: &Settings, args: &Lua) -> Result<ExitCode, Error> {
    if settings.drive.is_order() {
        let (value, allowed) = (settings.drive.name(), "hold, for a script that holds jobs");
        let hint = "nothing is held with this one: leave job_submit.lua as the site has it";
        return Err(Problem::new("drive", value, allowed, hint).into());
    }
    let commands = settings.commands();
    let partition = site::partition(&commands, settings.partition.as_deref())?;
    let default = site::default_partition(&commands).ok();
    let spare_nodes = settings.spare_nodes();
    let scope = Scope {
        partition: &partition,
        left_partitions: &settings.left_partitions,
        spare_nodes: &spare_nodes,
    };
    let partitions = scope.partitions(&commands).unwrap_or_else(|error| {
        tracing::warn!(
            "jobs of {partition} alone are held: {}",
            one_line(&error.to_string())
        );
        vec![partition.clone()]
    });
    let account = match args.uid {
        Some(uid) => uid,
        None => site::slurm_user(&commands)?,
    };
    say(&lua::script(&Holds {
        partitions: &partitions,
        is_default: default.is_some_and(|name| partitions.contains(&name)),
        heartbeat: &settings.state_dir.join("heartbeat"),
        patience_s: args.patience_s,
        is_guarded: args.guarded,
        accounts: &BTreeSet::from([0, account]),
    })?)?;
    Ok(ExitCode::SUCCESS)
}
