//! What an operator asks, whatever the batch system: how the last round went, why a job was decided so or does not run, whether a
//! log is decided again alike, a log as a workload. All but `why_not` read the folder alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgGroup, Args};
use pleach_scheduler::ExternalId;

use crate::capture::Capture;
use crate::config::{EstimatesFrom, RoundSettings};
use crate::error::Error;
use crate::fleet;
use crate::log::one_line;
use crate::output::say;
use crate::policy::Loaded;
use crate::replay::Replay;
use crate::round::{self, Deciders};
use crate::state::{self, State};
use crate::status::Status;
use crate::system::{Look, Words};

/// Time for a driver that was told to end, before what it holds is handed back. *Ours*: longer than one round of most sites.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// The exit code of a command that asks whether something is well.
#[must_use]
pub fn code(is_well: bool) -> ExitCode {
    match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Flags of `run`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("mode").required(true).args(["shadow", "live"])))]
pub struct RunArgs {
    /// A tree or an index (`.json`), the folder of a bundle, a network (`.ckpt`), or a name: a heuristic (`sjf`,
    /// `easy`) or a dealer (`index`, `las-deal`, `belief-deal`, `srtf-deal`, `rate-deal`), which deals the GPUs of all jobs anew.
    #[arg(long)]
    pub policy: String,
    /// Decide and write down; touch nothing.
    #[arg(long)]
    pub shadow: bool,
    /// Hold, place and release jobs.
    #[arg(long)]
    pub live: bool,
    /// End after so many rounds.
    #[arg(long, value_name = "N")]
    pub rounds: Option<u64>,
}

/// Flags of `hand-back`.
#[derive(Debug, Args)]
pub struct HandBackArgs {
    /// Also while a daemon works, which will hold jobs again. Without it such a daemon is given five seconds to end.
    #[arg(long)]
    pub force: bool,
}

/// Flags of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The log, `decisions.jsonl`.
    pub log: PathBuf,
    /// The policy, as for `run`.
    #[arg(long)]
    pub policy: String,
}

/// Flags of `capture`.
#[derive(Debug, Args)]
pub struct CaptureArgs {
    /// The log, `decisions.jsonl`; several in the order in which they were written.
    #[arg(required = true)]
    pub logs: Vec<PathBuf>,
    /// The list to write, NAME.csv.
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Also write who ran where and when, by the ending as .csv, .csv.gz, or .json for Perfetto: `pleach verify` checks it against the
    /// list.
    #[arg(long, value_name = "FILE")]
    pub schedule: Option<PathBuf>,
}

/// Tells how the last round went, as the folder of a driver has it.
///
/// # Errors
/// As [`state::read_status`]; words that cannot be written.
pub fn status(folder: &Path, words: &Words, now_s: i64) -> Result<Status, Error> {
    let status = state::read_status(folder)?;
    say(&status.told(now_s, words))?;
    Ok(status)
}

/// Tells the last decisions about a job; whether there is any. `name` is how it is called, `asked` how it was asked for.
///
/// # Errors
/// As [`state::rounds_of`]; words that cannot be written.
pub fn explain(folder: &Path, job: ExternalId, name: &str, asked: &str) -> Result<bool, Error> {
    let rounds = state::rounds_of(folder, job, 5)?;
    if rounds.is_empty() {
        say(&format!(
            "The log has no decision about {name}; `why-not {asked}` tells why it does not run."
        ))?;
        return Ok(false);
    }
    for record in rounds {
        for text in record.told(job, name) {
            say(&text)?;
        }
    }
    Ok(true)
}

/// Tells why a job does not run, from a look, by a policy and with what the folder remembers. Where the folder is not here, it is
/// not known which nodes would not take the job.
///
/// # Errors
/// A policy that does not fit or fails; words that cannot be written.
pub fn why_not(
    look: &mut impl Look,
    folder: &Path,
    settings: &RoundSettings,
    policy: &str,
    job: ExternalId,
) -> Result<(), Error> {
    let mut loaded = Loaded::of(policy, fleet::capabilities(settings))?;
    let warn = |text: String| tracing::warn!("{}", one_line(&text));
    let (mut memory, complaint) = state::read_memory(folder);
    complaint.into_iter().for_each(warn);
    memory.observe(look.snapshot());
    if settings.estimates.from == EstimatesFrom::History {
        let (mut history, complaint) = state::read_history(folder, &settings.estimates);
        complaint.into_iter().for_each(warn);
        history.observe(look.snapshot_mut(), &memory, &BTreeMap::new(), settings);
    }
    say(&crate::why_not::answer(
        look.snapshot(),
        &memory,
        &mut loaded,
        settings,
        job,
    )?)
}

/// Gives back what is held, once a driver that works in the folder has ended, or at once where that is forced: whether all of it
/// was. `back` tells how many and what was refused.
///
/// # Errors
/// [`Error::Driven`]; a queue that cannot be read; words that cannot be written.
pub async fn hand_back<E: From<Error>>(
    (folder, log_bytes_max): (&Path, u64),
    args: &HandBackArgs,
    words: &Words,
    back: impl Future<Output = Result<(u64, Vec<String>), E>>,
) -> Result<bool, E> {
    let _lock = State::take_to_hand_back(folder, log_bytes_max, args.force, ENDS_WITHIN)?;
    let (num, refused) = back.await?;
    for text in &refused {
        tracing::warn!("{}", one_line(text));
    }
    say(&format!(
        "{num} {} were given back to {}",
        words.held, words.scheduler
    ))?;
    Ok(refused.is_empty())
}

/// Writes logs as a list for the simulator.
///
/// # Errors
/// As [`Replay`] and [`Capture::write`].
pub fn capture(settings: RoundSettings, args: &CaptureArgs) -> Result<(), Error> {
    let mut capture = Capture::new(settings);
    for log in &args.logs {
        for record in Replay::open(log)? {
            capture.read(&record?);
        }
    }
    say(&capture.write(&args.to, args.schedule.as_deref())?)
}

/// Decides the rounds of a log again; whether all are decided alike.
///
/// # Errors
/// As [`Replay`]; a policy that does not fit or fails.
pub fn replay(settings: &RoundSettings, args: &ReplayArgs) -> Result<bool, Error> {
    let capabilities = fleet::capabilities(settings);
    let mut policy = Loaded::of(&args.policy, capabilities)?;
    let mut fallback = policy.fallback(settings)?;
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
            settings,
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
    Ok(num == num_same)
}
