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
use crate::diff::Compare;
use crate::drive::Drive;
use crate::error::Error;
use crate::log::one_line;
use crate::output::say;
use crate::policy::Loaded;
use crate::record::RoundRecord;
use crate::replay::Replay;
use crate::round::{self, Deciders, Plan};
use crate::state::{self, State};
use crate::status::Status;
use crate::system::{Look, Words};

/// Time for a driver to end by itself, before what it holds is handed back. *Ours*: longer than one round of most sites.
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
    /// Decide and carry out.
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
    /// The log: the folder `state_dir`, or files of it in the order in which they were written.
    #[arg(required = true)]
    pub logs: Vec<PathBuf>,
    /// The policy, as for `run`.
    #[arg(long)]
    pub policy: String,
}

/// Flags of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The log: a folder as `state_dir`, or files of it in the order in which they were written; none: that of the configuration.
    pub logs: Vec<PathBuf>,
    /// The other policy, as for `run`.
    #[arg(long)]
    pub policy: String,
    /// The time up to now that is compared, as 7d or 12h; all of the log without it.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub last: Option<Duration>,
    /// One JSON object instead of words.
    #[arg(long)]
    pub json: bool,
}

/// Flags of `capture`.
#[derive(Debug, Args)]
pub struct CaptureArgs {
    /// The log: the folder `state_dir`, or files of it in the order in which they were written.
    #[arg(required = true)]
    pub logs: Vec<PathBuf>,
    /// The list to write, NAME.csv.
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// Also write which job ran where and when, by the ending as .csv, .csv.gz, or .json for Perfetto: `pleach verify` checks it against the
    /// list.
    #[arg(long, value_name = "FILE")]
    pub schedule: Option<PathBuf>,
    /// Write the list anew so often, as 1m, with what runs and waits: `pleach when` forecasts from it. The log is the folder.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, conflicts_with = "schedule")]
    pub every: Option<Duration>,
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
    let mut loaded = Loaded::driving(policy, settings)?;
    let warn = |text: String| tracing::warn!("{}", one_line(&text));
    let (mut memory, complaint) = state::read_memory(folder);
    complaint.into_iter().for_each(warn);
    memory.observe(look.snapshot());
    if settings.estimates.from == EstimatesFrom::History {
        let (mut history, complaint) = state::read_history(folder, &settings.estimates);
        complaint.into_iter().for_each(warn);
        history.observe(look.snapshot_mut(), &memory, &BTreeMap::new(), settings);
    }
    let answer = crate::why_not::answer(look.snapshot(), &memory, &mut loaded, settings, job)?;
    let says = look.says(job).map_or(String::new(), |says| format!("\n{says}"));
    say(&format!("{}{says}", answer.trim_end()))
}

/// Gives back what is held, once a driver that works in the folder has ended, or at once where that is forced: whether all of it
/// was. `back` tells how many and what was refused.
///
/// # Errors
/// [`Error::Driven`]; a queue that cannot be read; words that cannot be written.
pub async fn hand_back<E: From<Error>>(
    folder: &Path,
    args: &HandBackArgs,
    words: &Words,
    back: impl Future<Output = Result<(u64, Vec<String>), E>>,
) -> Result<bool, E> {
    let _lock = State::take_to_hand_back(folder, args.force, ENDS_WITHIN)?;
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
    if let Some(every) = args.every {
        follow(capture, args, every.max(Duration::from_secs(1)));
    }
    let mut log = Replay::since(&args.logs, i64::MIN)?;
    while let Some(record) = log.next_round()? {
        capture.read(record);
    }
    say(&capture.write(&args.to, args.schedule.as_deref())?)
}

/// Writes the list of a driver's folder again and again.
fn follow(mut capture: Capture, args: &CaptureArgs, every: Duration) -> ! {
    loop {
        // Nothing changes between the last line of the log and the last round that went well.
        let seen_s = state::read_status(&args.logs[0]).map_or(i64::MIN, |status| status.at_s);
        let written = capture
            .read_on(&args.logs)
            .and_then(|()| capture.write_present(&args.to, seen_s));
        if let Err(error) = written {
            tracing::warn!("{}", one_line(&error.to_string()));
        }
        std::thread::sleep(every);
    }
}

/// Tells what another policy would have decided in the rounds of a log, at Unix time `now_s`; `folder` has it where no log is
/// named.
///
/// # Errors
/// As [`Replay`]; a policy that does not fit; words that cannot be written.
pub fn diff(settings: &RoundSettings, folder: &Path, args: &DiffArgs, now_s: i64) -> Result<(), Error> {
    let name = Loaded::driving(&args.policy, settings)?.name;
    let mut again = Again::new(&args.policy, settings);
    let last_s = args
        .last
        .map(|last| i64::try_from(last.as_secs()).unwrap_or(i64::MAX));
    let since_s = last_s.map_or(i64::MIN, |last_s| now_s.saturating_sub(last_s));
    let here = [folder.to_owned()];
    let logs = if args.logs.is_empty() {
        &here[..]
    } else {
        &args.logs
    };
    let (mut log, mut compare) = (Replay::since(logs, since_s)?, Compare::new(&name));
    while let Some(record) = log.next_round()? {
        if record.snapshot.taken_s < since_s {
            continue;
        }
        if record.fallback.is_some() {
            compare.leave_out(false);
            continue;
        }
        match again.decide(record)? {
            plan if plan.fallback.is_some() => compare.leave_out(true),
            plan => compare.read(record, &plan.decisions),
        }
    }
    let difference = compare.end();
    match args.json {
        true => say(&serde_json::to_string(&difference).unwrap_or_default()),
        false => say(&difference.told()),
    }
}

/// Decides rounds of a log again, each by the way of driving in which it was decided.
struct Again<'a> {
    text: &'a str,
    /// To hold, and to tell an order.
    ways: [RoundSettings; 2],
    /// The policy and its fallback, where a round of that way was met.
    loaded: [Option<(Loaded, Loaded)>; 2],
}

impl<'a> Again<'a> {
    fn new(text: &'a str, settings: &RoundSettings) -> Again<'a> {
        let way = |drive| RoundSettings {
            drive,
            ..settings.clone()
        };
        Again {
            text,
            ways: [Drive::Hold, Drive::Order].map(way),
            loaded: [None, None],
        }
    }

    fn decide(&mut self, record: &RoundRecord) -> Result<Plan, Error> {
        let way = usize::from(record.order.is_some());
        let settings = &self.ways[way];
        let (policy, fallback) = match &mut self.loaded[way] {
            Some(both) => both,
            none => {
                let policy = Loaded::driving(self.text, settings)?;
                let fallback = policy.fallback(settings)?;
                none.insert((policy, fallback))
            }
        };
        if let (Some(dealing), Some(turn)) = (policy.dealing_mut(), &record.turn) {
            dealing.told(turn.clone());
        }
        let mut deciders = Deciders { policy, fallback };
        let (snapshot, memory) = (&record.snapshot, &record.memory);
        round::plan(
            snapshot,
            memory,
            &mut deciders,
            settings,
            record.is_shadow,
            &mut || false,
        )
    }
}

/// Decides the rounds of a log again; whether all are decided alike.
///
/// # Errors
/// As [`Replay`]; a policy that does not fit or fails.
pub fn replay(settings: &RoundSettings, args: &ReplayArgs) -> Result<bool, Error> {
    let mut again = Again::new(&args.policy, settings);
    let (mut num, mut num_same, mut num_fallback) = (0_u64, 0_u64, 0_u64);
    let mut log = Replay::since(&args.logs, i64::MIN)?;
    while let Some(record) = log.next_round()? {
        if record.fallback.is_some() {
            num_fallback += 1;
            continue;
        }
        let plan = again.decide(record)?;
        num += 1;
        let is_same_order = match (&plan.order, &record.order) {
            (Some(here), Some(there)) => here.is_ranked_as(there),
            (here, there) => here.is_some() == there.is_some(),
        };
        if round::is_same(&plan.decisions, &record.decisions) && is_same_order {
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
