//! `kill -9` at random moments, and the same bytes at the end: of everything that goes on where it was stopped.
//!
//! Moments are drawn over the time that a whole run takes, from a seed; where a run is when its moment comes is the
//! machine's affair. Every other kill waits from its moment on until a file is half written. Nothing is asserted of how far
//! a run came, only of what it is worth when it is finished. `PLEACH_KILLS=20` kills twenty times as often.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Instant;

use pleach_env::Seed;
use rand::RngExt as _;

use super::tiny_run;

const SIGKILL: i32 = 9;

/// The folder of a run in the folder where its command is called: the same in all, for reports name it.
pub const RUN: &str = "run";

/// Something that is killed.
pub struct Killed<'a> {
    /// Writes into a folder what the command reads.
    pub lay_out: &'a dyn Fn(&Path),
    /// The command, called in such a folder: it writes [`RUN`], and goes on with what is there.
    pub command: &'a dyn Fn(&Path) -> Command,
    /// How far a killed run came, and that it is worth something.
    pub look: &'a dyn Fn(&Path) -> Option<u64>,
}

impl Killed<'_> {
    /// Starts the run again and again, kills it `num_kills` times, and compares it with an uninterrupted one each time that it comes
    /// to its end. Odd starts have one thread, even ones two.
    pub fn ends_the_same(&self, num_kills: usize, seed: u64) {
        let more = std::env::var("PLEACH_KILLS").map_or(1, |text| text.parse().expect("a whole number"));
        let num_kills = num_kills * more;
        let folder = tempfile::tempdir().unwrap();
        let [whole, killed] = ["whole", "killed"].map(|name| folder.path().join(name));
        self.begin(&whole);
        let began = Instant::now();
        tiny_run::succeed(&mut (self.command)(&whole));
        let mut time = began.elapsed();
        let mut random = Seed(seed).stream("moments", 0);
        let (mut far, mut num_starts, mut num_compared) = (Vec::new(), 0, 0);
        while far.len() < num_kills || num_compared == 0 {
            num_starts += 1;
            let anew = !killed.exists();
            if anew {
                self.begin(&killed);
            }
            let mut command = (self.command)(&killed);
            command.args(["--threads", if num_starts % 2 == 1 { "1" } else { "2" }]);
            let began = Instant::now();
            let mut child = command.spawn().unwrap();
            if far.len() < num_kills {
                std::thread::sleep(time.mul_f64(random.random::<f64>()));
                if far.len() % 2 == 1 {
                    wait_for_half_a_file(&mut child, &killed.join(RUN));
                }
                child.kill().unwrap();
            }
            let status = child.wait().unwrap();
            if status.signal() == Some(SIGKILL) {
                far.push((self.look)(&killed.join(RUN)));
                continue;
            }
            assert_eq!(status.code(), Some(0), "start {num_starts}");
            if anew {
                // The first run was slow; a kill that is due after the end hits no process.
                time = time.min(began.elapsed());
            }
            compare(&whole.join(RUN), &killed.join(RUN));
            std::fs::remove_dir_all(&killed).unwrap();
            num_compared += 1;
        }
        far.sort_unstable();
        eprintln!("{num_kills} kills in {num_starts} starts, {num_compared} whole runs compared");
        let counts = far.chunk_by(|a, b| a == b);
        let counts: Vec<_> = counts.map(|same| (same[0], same.len())).collect();
        eprintln!("(how far, kills): {counts:?}");
    }

    fn begin(&self, folder: &Path) {
        std::fs::create_dir(folder).unwrap();
        (self.lay_out)(folder);
    }
}

/// Files below a folder while they come and go.
fn num_files(folder: &Path, is_counted: &dyn Fn(&Path) -> bool) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of_entry = |path: &Path| match path.is_dir() {
        true => num_files(path, is_counted),
        false => u64::from(is_counted(path)),
    };
    entries.map(|entry| of_entry(&entry.path())).sum()
}

/// Files that are whole; None where there is none.
pub fn num_whole(run: &Path) -> Option<u64> {
    Some(num_files(run, &|path| !is_half(path))).filter(|num| *num > 0)
}

fn is_half(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "tmp")
}

/// Returns as soon as a temporary file is there, or when the run has ended.
fn wait_for_half_a_file(child: &mut Child, run: &Path) {
    while child.try_wait().unwrap().is_none() && num_files(run, &is_half) == 0 {}
}

/// Two finished runs hold the same, and nothing is left of what was half written.
pub fn compare(whole: &Path, killed: &Path) {
    tiny_run::assert_same(whole, killed);
    if whole.join("timing.jsonl").exists() {
        let timing = |folder: &Path| tiny_run::steps(&folder.join("timing.jsonl"));
        assert_eq!(timing(whole), timing(killed));
    }
    for path in tiny_run::files(killed) {
        assert!(!is_half(&path), "{path:?} is left");
    }
}
