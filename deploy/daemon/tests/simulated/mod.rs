//! The daemon and a Slurm in one process on a clock of their own, with faults at every call, drawn from a seed: after TigerBeetle
//! and FoundationDB. The daemon is the deployed one, from its driver to the lines that `scontrol` would get and the files of its
//! folder; a seed that fails is played again by `cargo run -p pleach-daemon --example simulated_faults -- --seed N`.
//!
//! Each world is some minutes of faults, users and operators, and then rest, in which every job has to end: by the daemon, or
//! without it after `hand-back`.

mod change;
mod faults;
mod job;
mod rules;
mod say;
mod slurm;
mod users;

use std::any::Any;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use pleach_daemon::Driver;
use pleach_daemon::config::Settings;
use pleach_daemon::replay::Replay;
use pleach_daemon::slurm::command::Commands;
use pleach_daemon::slurm::{Slurm, left_over, queue, ranking};
use pleach_daemon::wait::block_on;
use rand::RngExt;

use self::faults::{Killed, Sim};
use self::job::{Hold, Job};
use self::rules::Rules;
use self::slurm::{NodeState, World};

/// Rounds in which something may go wrong, for each seed.
pub const ROUNDS: u64 = 80;

/// Rounds of rest after which a job that waits is taken for starved. The longest pause that a daemon makes is 10 min, and sixty jobs
/// of at most 400 s fill the cluster for less than an hour.
const REST_MAX: u64 = 2000;

/// What a world was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Played {
    pub num_rounds: u64,
    pub num_calls: u64,
    pub num_faults: u64,
    pub num_kills: u64,
    pub num_jobs: u64,
    pub num_starts: u64,
    pub num_requeued: u64,
}

impl std::ops::AddAssign for Played {
    fn add_assign(&mut self, other: Played) {
        self.num_rounds += other.num_rounds;
        self.num_calls += other.num_calls;
        self.num_faults += other.num_faults;
        self.num_kills += other.num_kills;
        self.num_jobs += other.num_jobs;
        self.num_starts += other.num_starts;
        self.num_requeued += other.num_requeued;
    }
}

/// Where files are fastest: after a kill, what was written there is as good as on a disk.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(memory)
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

struct Play {
    sim: Arc<Sim>,
    settings: Settings,
    policy: &'static str,
    driver: Option<Driver<Slurm>>,
    is_full: bool,
    num_rounds: u64,
}

/// Plays the world of a seed.
///
/// # Errors
/// What must hold and did not, with the last that happened.
pub fn play(seed: u64) -> Result<Played, String> {
    let folder = folder();
    let (settings, policy) = set_up(seed, folder.path());
    let rules = Rules {
        factors_max: settings.order_updates_max as usize,
        may_requeue: settings.preemption,
        ..Rules::default()
    };
    let mut world = World::new(seed, rules);
    world.fate.rate = [0.0, 0.02, 0.1, 0.3][world.draw(4)];
    world.activity = [0.08, 0.15, 0.4][world.draw(3)];
    let mut play = Play {
        sim: Arc::new(Sim::new(world)),
        settings,
        policy,
        driver: None,
        is_full: false,
        num_rounds: 0,
    };
    let result = play.faults().and_then(|()| play.rest(seed.is_multiple_of(3)));
    let world = play.sim.world();
    result.map_err(|why| format!("seed {seed} (by {policy}): {why}\n{}", world.told()))?;
    Ok(Played {
        num_rounds: play.num_rounds,
        num_calls: world.fate.num_calls,
        num_faults: world.fate.num_faults,
        num_kills: world.fate.num_kills,
        num_jobs: world.jobs.len() as u64,
        num_starts: world.rules.num_starts,
        num_requeued: world.rules.num_requeued,
    })
}

fn set_up(seed: u64, folder: &Path) -> (Settings, &'static str) {
    let policies = ["sjf", "fifo", "easy", "sjf-reserve", "las-deal"];
    let policy = policies[(seed / 4 % 5) as usize];
    let mut settings = Settings {
        state_dir: folder.into(),
        partition: Some("main".into()).filter(|_| !seed.is_multiple_of(2)),
        // No policy here takes so long; a bound in real time would make a slow machine another world.
        deadline_s: 600.0,
        order_updates_max: 7,
        preemption: policy == "las-deal" || seed.is_multiple_of(7),
        log_bytes_max: 65_536,
        ..Settings::default()
    };
    if seed % 5 < 2 {
        settings.estimates.from = pleach_daemon::config::EstimatesFrom::History;
    }
    (settings, policy)
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    format!("the daemon panicked: {}", text.unwrap_or_default())
}

impl Play {
    fn commands(&self) -> Commands {
        let sim: Arc<Sim> = Arc::clone(&self.sim);
        Commands {
            model: Some(sim),
            shows_exclusive: Default::default(),
            ..self.settings.commands()
        }
    }

    /// Minutes in which anything may go wrong.
    fn faults(&mut self) -> Result<(), String> {
        for _ in 0..ROUNDS {
            self.fill_or_empty_disk();
            self.round()?;
        }
        Ok(())
    }

    /// One round of the daemon, which is begun anew where it was killed.
    fn round(&mut self) -> Result<(), String> {
        self.num_rounds += 1;
        let now_s = {
            let mut world = self.sim.world();
            let seconds = world.rng.random_range(1..8);
            world.pass(seconds);
            world.rules.begin_round();
            world.shown_s()
        };
        let commands = self.commands();
        let Play {
            settings,
            policy,
            driver,
            ..
        } = self;
        let done = catch_unwind(AssertUnwindSafe(|| {
            if driver.is_none() {
                // One that cannot begin, as without a Slurm that answers, is begun again.
                *driver = Slurm::driver_by(commands, settings, policy, false).ok();
            }
            driver
                .as_mut()
                .map_or(Vec::new(), |driver| block_on(driver.round(now_s)))
        }));
        match done {
            Ok(notes) => {
                let mut world = self.sim.world();
                for note in notes.iter().filter(|note| !note.contains("os error 28")) {
                    world.tell(format!("says: {note}"));
                }
            }
            Err(panic) if panic.is::<Killed>() => {
                self.driver = None;
                self.cut_log();
            }
            Err(panic) => return Err(words(&*panic)),
        }
        self.sim.world().rules.broken.take().map_or(Ok(()), Err)
    }

    /// The disk is full for some rounds: what is written next says so.
    #[cfg(unix)]
    fn fill_or_empty_disk(&mut self) {
        let mut world = self.sim.world();
        if world.fate.rate == 0.0 || !world.chance(0.05) {
            return;
        }
        self.is_full = !self.is_full;
        world.tell(format!("the disk is full: {}", self.is_full));
        drop(world);
        self.set_disk();
    }

    #[cfg(not(unix))]
    fn fill_or_empty_disk(&mut self) {}

    #[cfg(unix)]
    fn set_disk(&self) {
        let files = [
            "memory.json",
            "status.json",
            "history.json",
            "pins.json",
            "deals.json",
        ];
        for name in files {
            let part = self.settings.state_dir.join(format!("{name}.part"));
            let _ = std::fs::remove_file(&part);
            if self.is_full {
                std::os::unix::fs::symlink("/dev/full", &part).unwrap();
            }
        }
    }

    #[cfg(not(unix))]
    fn set_disk(&self) {}

    /// The power was cut: the end of what was being written is not there.
    fn cut_log(&self) {
        let mut world = self.sim.world();
        let path = self.settings.state_dir.join("decisions.jsonl");
        let Ok(file) = OpenOptions::new().write(true).open(path) else {
            return;
        };
        let len = file.metadata().unwrap().len();
        if len > 0 && world.chance(0.3) {
            let lost = world.rng.random_range(0..len.min(200));
            file.set_len(len - lost).unwrap();
        }
    }

    /// Nothing goes wrong any more, and every job has to end: by the daemon, or without it where all was handed back.
    fn rest(&mut self, hands_back: bool) -> Result<(), String> {
        self.is_full = false;
        self.set_disk();
        {
            let mut world = self.sim.world();
            world.is_quiet = true;
            world.tell("rest".into());
            for node in &mut world.nodes {
                node.state = NodeState::Up;
            }
            let call = world.fate.num_calls;
            for job in world.jobs.values_mut().filter(|job| job.hold == Hold::User) {
                (job.hold, job.touched) = (Hold::Nobody, call);
            }
        }
        if hands_back {
            self.driver = None;
            self.hand_back()?;
        }
        for _ in 0..REST_MAX {
            if self.sim.world().jobs.values().all(Job::has_ended) {
                return self.check_log();
            }
            match hands_back {
                true => self.sim.world().pass(5),
                false => self.round()?,
            }
            self.judge_idle()?;
        }
        let world = self.sim.world();
        let left = world.jobs.values().filter(|job| !job.has_ended());
        let left: Vec<String> = left.map(|job| format!("{job:?}")).collect();
        Err(format!(
            "{} jobs have not ended:\n{}\n",
            left.len(),
            left.join("\n")
        ))
    }

    /// No job waits for long that fits. Other policies than the greedy one keep GPUs for another job.
    fn judge_idle(&self) -> Result<(), String> {
        let mut world = self.sim.world();
        if self.policy != "sjf" {
            return Ok(());
        }
        let most_s = 60;
        let asks = |job: &Job| Job {
            nodes_asked: job.own_nodes.clone(),
            shuns: String::new(),
            ..job.clone()
        };
        let fits = |world: &World, job: &Job| {
            // Of several nodes policies take those of one GPU type, and Slurm any.
            job.is_pending()
                && job.num_nodes == 1
                && job.begin_s <= world.now_s
                && !world.is_limited(job)
                && world.room(&asks(job)).is_ok()
        };
        let fitting: BTreeMap<u64, i64> = world
            .jobs
            .values()
            .filter(|job| fits(&world, job))
            .map(|job| {
                (
                    job.number,
                    *world.fits_since.get(&job.number).unwrap_or(&world.now_s),
                )
            })
            .collect();
        let late = fitting
            .iter()
            .find(|(_, since_s)| world.now_s - **since_s > most_s);
        if let Some((number, since_s)) = late {
            let waits_s = world.now_s - since_s;
            return Err(format!("fits since {waits_s} s: {:?}", world.jobs[number]));
        }
        world.fits_since = fitting;
        Ok(())
    }

    fn hand_back(&self) -> Result<(), String> {
        let commands = self.commands();
        let back = || -> Result<(), pleach_daemon::Error> {
            let (_, refused) = left_over::hand_back(&commands)?;
            assert!(refused.is_empty(), "{refused:?}");
            let queue = queue::observe(&commands, &["main"])?;
            ranking::take_back(&commands, &queue, &self.settings.state_dir)?;
            Ok(())
        };
        // Late changes of the daemon that was are none that could be taken back.
        self.sim.world().fate.forget();
        back().map_err(|error| error.to_string())?;
        let world = self.sim.world();
        let is_left = |job: &&Job| {
            let is_ours = job.hold == Hold::Admin || job.is_marked() || job.factor != 0;
            job.is_pending() && (is_ours || job.nodes_asked != job.own_nodes || !job.shuns.is_empty())
        };
        let left: Vec<String> = world
            .jobs
            .values()
            .filter(is_left)
            .map(|job| format!("{job:?}"))
            .collect();
        match left.is_empty() {
            true => Ok(()),
            false => Err(format!("handed back, and left:\n{}", left.join("\n"))),
        }
    }

    /// Whatever happened, what is there of the log can be read.
    fn check_log(&mut self) -> Result<(), String> {
        // A thread of the log's may still be compressing.
        self.driver = None;
        let of_log = |error: pleach_daemon::Error| format!("the log: {error}");
        let mut replay = match Replay::open(&self.settings.state_dir) {
            Ok(replay) => replay,
            Err(_) if !self.settings.state_dir.join("decisions.jsonl").exists() => return Ok(()),
            Err(error) => return Err(of_log(error)),
        };
        while replay.next_round().map_err(of_log)?.is_some() {}
        Ok(())
    }
}

/// Rounds of `./check.sh`.
const ROUNDS_CHECKED: u64 = 10_000;

#[test]
fn whatever_goes_wrong_nothing_is_lost_or_touched_that_is_not_ours_and_every_job_ends() {
    let mut all = Played::default();
    for seed in 0.. {
        if all.num_rounds >= ROUNDS_CHECKED {
            break;
        }
        all += play(seed).unwrap_or_else(|why| panic!("{why}"));
    }
    // So many went wrong that a run without any would say so.
    assert!(
        all.num_faults > 300 && all.num_kills > 30 && all.num_requeued > 30,
        "{all:?}"
    );
    println!("{all:?}");
}
