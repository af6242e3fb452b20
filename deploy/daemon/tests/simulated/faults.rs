//! What goes wrong between the daemon and Slurm, drawn from the seed at each call: answers that are lost, late, doubled, old, cut
//! short, a controller that is away, and a daemon that is killed there.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pleach_daemon::Error;
use pleach_daemon::slurm::command::Model;
use rand::RngExt;

use super::change::{VERBS, carry_out};
use super::say::say;
use super::slurm::World;
use super::users;

/// The daemon was killed.
pub struct Killed;

/// What the calls so far leave to come.
#[derive(Debug, Default)]
pub struct Fate {
    pub num_calls: u64,
    /// The call of which the daemon knows the queue.
    pub known: u64,
    /// Part of all calls that fail in some way.
    pub rate: f64,
    pub num_faults: u64,
    pub num_kills: u64,
    away_until_s: i64,
    /// Changes that arrive after so many calls.
    late: Vec<(u64, Vec<String>)>,
    /// Answers that were given: which call, and the text.
    given: BTreeMap<String, (u64, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Nothing is done, and no answer comes.
    Lost,
    /// It is done, and no answer comes.
    Unanswered,
    /// It is done some calls later, but before the next change, and no answer comes.
    Late,
    /// It is done twice.
    Doubled,
    /// The answer breaks off; of several changes some are made.
    Cut,
    /// The answer of an earlier call.
    Old,
    /// What Slurm says when it is out of order.
    Garbage,
    /// The controller is away for a while.
    Away,
    KilledBefore,
    KilledAfter,
}

const FAULTS: [Fault; 10] = [
    Fault::Lost,
    Fault::Unanswered,
    Fault::Late,
    Fault::Doubled,
    Fault::Cut,
    Fault::Old,
    Fault::Garbage,
    Fault::Away,
    Fault::KilledBefore,
    Fault::KilledAfter,
];

impl Fate {
    /// What was on its way never arrives.
    pub fn forget(&mut self) {
        self.late.clear();
    }
}

/// A Slurm that a daemon in this process asks.
#[derive(Debug)]
pub struct Sim(Mutex<World>);

impl Sim {
    pub fn new(world: World) -> Sim {
        Sim(Mutex::new(world))
    }

    /// A daemon that is killed leaves the lock as it was.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn deadline(command: &str) -> Error {
    Error::Deadline {
        command: command.into(),
        limit: Duration::from_secs(20),
    }
}

fn failed(command: &str, reason: &str) -> Error {
    Error::Command {
        command: command.into(),
        reason: reason.into(),
    }
}

const AWAY: &str = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)";

impl Model for Sim {
    fn run(&self, program: &str, args: &[&str]) -> Result<String, Error> {
        let mut world = self.world();
        let shown = format!("{program} {}", args.join(" "));
        let fault = begin(&mut world).map_err(|reason| failed(&shown, reason))?;
        if program == "scontrol" && args.first().is_some_and(|verb| VERBS.contains(verb)) {
            let words: Vec<String> = args.iter().map(|word| (*word).to_owned()).collect();
            return changed(&mut world, &[words], fault, &shown).and_then(|said| match said.first() {
                None => Ok(String::new()),
                Some(reason) => Err(failed(&shown, reason)),
            });
        }
        answered(&mut world, program, args, fault, &shown)
    }

    fn feed(&self, lines: &[&str]) -> Result<Vec<String>, Error> {
        let mut world = self.world();
        let fault = begin(&mut world).map_err(|reason| failed("scontrol", reason))?;
        let words = |line: &&str| line.split(' ').map(str::to_owned).collect();
        let lines: Vec<Vec<String>> = lines.iter().map(words).collect();
        changed(&mut world, &lines, fault, "scontrol")
    }
}

/// Time passes, others do what they do, and it is drawn what goes wrong.
fn begin(world: &mut World) -> Result<Option<Fault>, &'static str> {
    world.fate.num_calls += 1;
    let seconds = world.rng.random_range(0..2);
    world.pass(seconds);
    let call = world.fate.num_calls;
    let (due, later) = world.fate.late.drain(..).partition(|(at, _)| *at <= call);
    world.fate.late = later;
    for (_, words) in due {
        let said = carry_out(world, &words, false);
        world.tell(format!("late: {} {said:?}", words.join(" ")));
    }
    if world.is_quiet {
        return Ok(None);
    }
    users::meddle(world);
    if world.now_s < world.fate.away_until_s {
        return Err(AWAY);
    }
    let rate = world.fate.rate;
    if !world.chance(rate) {
        return Ok(None);
    }
    let fault = FAULTS[world.draw(FAULTS.len())];
    world.fate.num_faults += 1;
    world.tell(format!("{fault:?}"));
    match fault {
        Fault::Away => {
            let seconds = world.rng.random_range(1..40);
            world.fate.away_until_s = world.now_s + seconds;
            Err(AWAY)
        }
        Fault::KilledBefore => kill(world),
        _ => Ok(Some(fault)),
    }
}

fn kill(world: &mut World) -> ! {
    world.fate.num_kills += 1;
    // No message: it is no failure.
    std::panic::resume_unwind(Box::new(Killed))
}

fn changed(
    world: &mut World,
    lines: &[Vec<String>],
    fault: Option<Fault>,
    shown: &str,
) -> Result<Vec<String>, Error> {
    // Whatever was sent before arrives before: the controller takes changes in turn.
    for (_, words) in std::mem::take(&mut world.fate.late) {
        let said = carry_out(world, &words, false);
        world.tell(format!("late: {} {said:?}", words.join(" ")));
    }
    let mut said = Vec::new();
    let num = match fault {
        Some(Fault::Lost | Fault::Garbage) => 0,
        Some(Fault::Late) => {
            let due = world.fate.num_calls + 1 + world.draw(12) as u64;
            world
                .fate
                .late
                .extend(lines.iter().map(|words| (due, words.clone())));
            0
        }
        Some(Fault::Cut) => world.draw(lines.len() + 1),
        _ => lines.len(),
    };
    for words in &lines[..num] {
        let result = carry_out(world, words, true);
        world.tell(format!("{} {result:?}", words.join(" ")));
        let lines = result.err().unwrap_or_default();
        said.extend(lines.lines().map(str::to_owned));
    }
    match fault {
        Some(Fault::Doubled) => {
            for words in lines {
                let _ = carry_out(world, words, false);
            }
        }
        Some(Fault::KilledAfter) => kill(world),
        _ => {}
    }
    world.schedule();
    match fault {
        Some(Fault::Lost | Fault::Unanswered | Fault::Late) => Err(deadline(shown)),
        Some(Fault::Cut | Fault::Garbage) => Err(failed(shown, "it ended: Zero Bytes were transmitted")),
        _ => Ok(said),
    }
}

fn answered(
    world: &mut World,
    program: &str,
    args: &[&str],
    fault: Option<Fault>,
    shown: &str,
) -> Result<String, Error> {
    let call = world.fate.num_calls;
    let text = match say(world, program, args) {
        Ok(text) => text,
        Err(reason) => {
            if reason.starts_with("this Slurm") {
                world.rules.break_with(reason.clone());
            }
            return Err(failed(shown, &reason));
        }
    };
    let (at, text) = match fault {
        Some(Fault::Lost | Fault::Unanswered | Fault::Late) => return Err(deadline(shown)),
        Some(Fault::KilledAfter) => kill(world),
        Some(Fault::Garbage) => (call, "slurm_load_jobs: Zero Bytes were transmitted\n".to_owned()),
        // What breaks off in the middle of a line; a whole answer that ends early looks like a true one.
        Some(Fault::Cut) if text.len() > 2 => {
            let at = 1 + world.draw(text.len() - 2);
            let is_line = text.as_bytes()[at - 1] == b'\n';
            (call, text[..at - usize::from(is_line)].to_owned())
        }
        Some(Fault::Old) => world.fate.given.get(shown).cloned().unwrap_or((call, text)),
        _ => (call, text),
    };
    world.fate.given.insert(shown.to_owned(), (at, text.clone()));
    if program == "squeue" && shown.contains("admin_comment") {
        world.fate.known = at;
    }
    Ok(text)
}
