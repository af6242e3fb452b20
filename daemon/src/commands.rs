//! The commands beside `run`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use pleach_daemon::capture::Capture;
use pleach_daemon::config::EstimatesFrom;
use pleach_daemon::log::one_line;
use pleach_daemon::lua::{self, Holds};
use pleach_daemon::output::say;
use pleach_daemon::policy::Loaded;
use pleach_daemon::round::{self, Deciders};
use pleach_daemon::source::replay::Replay;
use pleach_daemon::source::{site, slurm as source};
use pleach_daemon::state::{self, State};
use pleach_daemon::{Error, Settings, apply, fleet};
use pleach_scheduler::ExternalId;

use crate::arguments::{CaptureArgs, HandBack, Lua, ReplayArgs, WhyNot};
use crate::now_s;

/// Time for a daemon that was told to end, before its jobs are handed back. *Ours*: longer than one round of most sites.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

fn code(is_well: bool) -> ExitCode {
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

pub fn status(settings: &Settings) -> Result<ExitCode, Error> {
    let status = state::read_status(&settings.state_dir)?;
    let now_s = now_s();
    let place = format!("partition {}", status.partition);
    say(&status.told(now_s, &place, "Slurm"))?;
    Ok(code(now_s - status.at_s <= 60 && status.last_error.is_empty()))
}

pub fn explain(settings: &Settings, job: ExternalId) -> Result<ExitCode, Error> {
    let rounds = state::rounds_of(&settings.state_dir, job, 5)?;
    if rounds.is_empty() {
        say(&format!(
            "The log has no decision about job {job}; `why-not {job}` tells why it does not run."
        ))?;
        return Ok(ExitCode::FAILURE);
    }
    for record in rounds {
        for text in record.told(job, &format!("job {job}")) {
            say(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub fn why_not(settings: &Settings, args: &WhyNot) -> Result<ExitCode, Error> {
    let mut loaded = Loaded::of(&args.policy, fleet::capabilities(&settings.rounds()))?;
    let commands = settings.commands();
    let partition = site::partition(&commands, settings.partition.as_deref())?;
    let (mut snapshot, _) = source::observe(&commands, &partition, &settings.share_nodes(), now_s())?;
    let (mut memory, complaint) = state::read_memory(&settings.state_dir);
    complaint
        .iter()
        .for_each(|text| tracing::warn!("{}", one_line(text)));
    memory.observe(&snapshot);
    if settings.estimates.from == EstimatesFrom::History {
        let (mut history, complaint) = state::read_history(&settings.state_dir, &settings.estimates);
        complaint
            .iter()
            .for_each(|text| tracing::warn!("{}", one_line(text)));
        history.observe(&mut snapshot, &memory, &BTreeMap::new(), &settings.rounds());
    }
    say(&pleach_daemon::why_not::answer(
        &snapshot,
        &memory,
        &mut loaded,
        &settings.rounds(),
        args.job,
    )?)?;
    Ok(ExitCode::SUCCESS)
}

pub fn hand_back(settings: &Settings, args: &HandBack) -> Result<ExitCode, Error> {
    let (folder, bytes_max) = (&settings.state_dir, settings.log_bytes_max);
    let _lock = State::take_to_hand_back(folder, bytes_max, args.force, ENDS_WITHIN)?;
    let (num, refused) = apply::slurm::hand_back(&settings.commands())?;
    for text in &refused {
        tracing::warn!("{}", one_line(text));
    }
    say(&format!("{num} jobs were given back to Slurm"))?;
    Ok(code(refused.is_empty()))
}

pub fn lua(settings: &Settings, args: &Lua) -> Result<ExitCode, Error> {
    let commands = settings.commands();
    let partition = site::partition(&commands, settings.partition.as_deref())?;
    let default = site::default_partition(&commands).ok();
    let account = match args.uid {
        Some(uid) => uid,
        None => site::slurm_user(&commands)?,
    };
    say(&lua::script(&Holds {
        partition: &partition,
        is_default: default.as_ref() == Some(&partition),
        heartbeat: &settings.state_dir.join("heartbeat"),
        patience_s: args.patience_s,
        gives_shares: !settings.share_nodes.is_empty(),
        accounts: &BTreeSet::from([0, account]),
    })?)?;
    Ok(ExitCode::SUCCESS)
}

pub fn capture(settings: &Settings, args: &CaptureArgs) -> Result<ExitCode, Error> {
    let mut capture = Capture::new(settings.rounds());
    for log in &args.logs {
        for record in Replay::open(log)? {
            capture.read(&record?);
        }
    }
    say(&capture.write(&args.to)?)?;
    Ok(ExitCode::SUCCESS)
}

pub fn replay(settings: &Settings, args: &ReplayArgs) -> Result<ExitCode, Error> {
    let rounds = settings.rounds();
    let capabilities = fleet::capabilities(&rounds);
    let mut policy = Loaded::of(&args.policy, capabilities)?;
    let mut fallback = policy.fallback(&rounds, capabilities)?;
    let (mut num, mut num_same, mut num_fallback) = (0_u64, 0_u64, 0_u64);
    for record in Replay::open(&args.log)? {
        let record = record?;
        if record.fallback.is_some() {
            num_fallback += 1;
            continue;
        }
        if let (Some(dealing), Some(turn)) = (policy.dealing_mut(), record.turn) {
            dealing.told(turn);
        }
        let mut deciders = Deciders {
            policy: &mut policy,
            fallback: &mut fallback,
        };
        let plan = round::plan(
            &record.snapshot,
            &record.memory,
            &mut deciders,
            &settings.rounds(),
            record.is_shadow,
            &mut || false,
        )?;
        num += 1;
        if round::is_same(&plan.decisions, &record.decisions) {
            num_same += 1;
        } else {
            say(&format!("round {} is decided otherwise", record.round))?;
        }
    }
    say(&format!(
        "{num_same} of {num} rounds are decided alike; {num_fallback} by the fallback were left out"
    ))?;
    Ok(code(num == num_same))
}
