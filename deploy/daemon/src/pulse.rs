//! Whether the loop is alive, and the thread that says so.
//!
//! The generated `job_submit.lua` holds jobs only while the heartbeat is recent. A round that takes long is no reason to let new
//! jobs by, so a thread of its own writes it, for as long as the loop says within a minute that it has taken a step: a look, a
//! decision, a command. A loop that hangs says nothing, the heartbeat grows old, and Slurm goes on without the daemon.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::files;

/// Time between two heartbeats. *Ours*: less than the least patience of the script, 5 s.
const PERIOD: Duration = Duration::from_secs(2);

/// Time without a step after which the loop counts as hanging, beside the time that a step says it may take. *Ours*: no step of
/// ours takes as long; commands and pauses say how long they may.
pub const STUCK: Duration = Duration::from_secs(60);

/// The life signs of one loop; a clone is the same.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Mutex<Signs>>);

#[derive(Debug, Default)]
struct Signs {
    /// The last step, and how long the one that began with it may take.
    step: Option<(Instant, Duration)>,
    /// The Unix time, s, that the loop was told, and when.
    told: Option<(i64, Instant)>,
}

impl Pulse {
    fn signs(&self) -> MutexGuard<'_, Signs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop begins a round at Unix time `now_s`.
    pub fn at(&self, now_s: i64) {
        let now = Instant::now();
        let mut signs = self.signs();
        (signs.step, signs.told) = (Some((now, Duration::ZERO)), Some((now_s, now)));
    }

    /// The loop has taken a step.
    pub fn beat(&self) {
        self.rest(Duration::ZERO);
    }

    /// The loop begins what may take so long.
    pub fn rest(&self, most: Duration) {
        self.signs().step = Some((Instant::now(), most));
    }

    /// Whether the loop has taken a step within `stuck`, beside the time that it said the step may take.
    #[must_use]
    pub fn lives(&self, stuck: Duration) -> bool {
        let step = self.signs().step;
        step.is_some_and(|(step, most)| step.elapsed() <= stuck.saturating_add(most))
    }

    /// The Unix time, s, where the loop has said something within `stuck`.
    fn now_s(&self, stuck: Duration) -> Option<i64> {
        let (told_s, told) = self.signs().told?;
        let since_s = i64::try_from(told.elapsed().as_secs()).unwrap_or(i64::MAX);
        self.lives(stuck).then_some(told_s.saturating_add(since_s))
    }
}

/// The file with the time of the last life sign, which one at a time writes.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    folder: PathBuf,
    /// The life signs that a thread writes down, if one does.
    beating: Mutex<Option<Pulse>>,
}

impl Heartbeat {
    pub(crate) fn new(folder: &Path) -> Heartbeat {
        Heartbeat {
            folder: folder.to_owned(),
            beating: Mutex::new(None),
        }
    }

    fn beating(&self) -> MutexGuard<'_, Option<Pulse>> {
        self.beating.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the time of a round that began at Unix time `now_s`: where a thread has written meanwhile, no earlier one.
    ///
    /// # Errors
    /// What cannot be written.
    pub(crate) fn write(&self, now_s: i64) -> Result<(), Error> {
        let beating = self.beating();
        let later_s = beating.as_ref().and_then(|pulse| pulse.now_s(STUCK));
        self.put(now_s.max(later_s.unwrap_or(now_s)))
    }

    /// The lock is held by whoever calls this.
    fn put(&self, now_s: i64) -> Result<(), Error> {
        files::replace(&self.folder, "heartbeat", now_s.to_string().as_bytes())
    }
}

/// A thread that writes a heartbeat; it ends with this.
#[derive(Debug)]
pub struct Beating {
    heartbeat: Arc<Heartbeat>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Beating {
    pub(crate) fn begin(heartbeat: &Arc<Heartbeat>, pulse: &Pulse) -> Beating {
        Beating::every(heartbeat, pulse, PERIOD, STUCK)
    }

    fn every(heartbeat: &Arc<Heartbeat>, pulse: &Pulse, period: Duration, stuck: Duration) -> Beating {
        let (stop, stopped) = channel();
        let (pulse, written) = (pulse.clone(), Arc::clone(heartbeat));
        *heartbeat.beating() = Some(pulse.clone());
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                let _one = written.beating();
                if let Some(now_s) = pulse.now_s(stuck) {
                    // What cannot be written is told by the round, which writes it too.
                    let _ = written.put(now_s);
                }
            }
        });
        Beating {
            heartbeat: Arc::clone(heartbeat),
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for Beating {
    fn drop(&mut self) {
        *self.heartbeat.beating() = None;
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(10);

    /// Whether the file changes within a second and a half, which is longer than a second of the clock and a period.
    fn changes(folder: &Path, mut meanwhile: impl FnMut()) -> bool {
        let read = || std::fs::read_to_string(folder.join("heartbeat")).unwrap_or_default();
        let (before, began) = (read(), Instant::now());
        while began.elapsed() < Duration::from_millis(1500) {
            meanwhile();
            thread::sleep(STEP);
        }
        read() != before
    }

    #[test]
    fn a_long_round_beats_on_and_a_loop_that_hangs_stops() {
        let folder = tempfile::tempdir().unwrap();
        let (heartbeat, pulse) = (Arc::new(Heartbeat::new(folder.path())), Pulse::default());
        let beating = Beating::every(&heartbeat, &pulse, STEP, Duration::from_millis(300));
        assert!(!changes(folder.path(), || ()), "nothing before the first round");
        pulse.at(1_795_000_000);
        assert!(changes(folder.path(), || pulse.beat()), "steps of one round");
        thread::sleep(Duration::from_millis(400));
        assert!(!changes(folder.path(), || ()), "no step");
        assert!(changes(folder.path(), || pulse.beat()), "it goes on");
        pulse.rest(Duration::from_secs(60));
        assert!(changes(folder.path(), || ()), "a long step that was told");
        let text = std::fs::read_to_string(folder.path().join("heartbeat")).unwrap();
        assert!(
            (1_795_000_004..1_795_000_060).contains(&text.parse::<i64>().unwrap()),
            "{text}"
        );
        // The end of a round writes nothing earlier.
        heartbeat.write(1_795_000_000).unwrap();
        assert_ne!(
            std::fs::read_to_string(folder.path().join("heartbeat")).unwrap(),
            "1795000000"
        );
        drop(beating);
        assert!(!changes(folder.path(), || pulse.beat()), "nobody beats any more");
        heartbeat.write(1_795_000_000).unwrap();
        assert_eq!(
            std::fs::read_to_string(folder.path().join("heartbeat")).unwrap(),
            "1795000000"
        );
    }
}
