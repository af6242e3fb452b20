//! What long work reports to a watcher. Nothing of it reaches a result, and no watcher is needed.

use std::fmt;
use std::sync::Arc;

/// One report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A part of the work begins, with its name and the number of its steps; 0 where it is not known.
    Begun(&'a str, u64),
    /// The part has so many steps, as far as is known by now.
    OutOf(u64),
    /// One more step of the part is done.
    Step,
    /// So many steps of the part are done, and a word on how it goes.
    At(u64, &'a str),
    /// The part is over.
    Ended,
    /// One line for the user.
    Note(&'a str),
}

/// That work is to end, and by which signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Number of the signal.
    pub signal: i32,
}

/// Receives the reports.
type Listen = dyn Fn(Progress<'_>) + Send + Sync;
/// Says, from steps done and in all, whether the work is to end there.
type Ask = dyn Fn(u64, u64) -> Option<Stopped> + Send + Sync;

/// A watcher of work, which may end it: functions that any thread may call.
#[derive(Clone)]
pub struct Watcher {
    listen: Arc<Listen>,
    ask: Arc<Ask>,
}

impl Watcher {
    /// Calls `listen` with every report.
    pub fn new(listen: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Watcher {
        Watcher {
            listen: Arc::new(listen),
            ask: Arc::new(|_, _| None),
        }
    }

    /// The same, with `ask` asked between two steps, as [`Watcher::asked_to_stop`], where the work can keep its state and end.
    #[must_use]
    pub fn stopped_by(self, ask: impl Fn(u64, u64) -> Option<Stopped> + Send + Sync + 'static) -> Watcher {
        Watcher {
            ask: Arc::new(ask),
            ..self
        }
    }

    /// Whether work that has made so many of its steps is to end there.
    #[must_use]
    pub fn asked_to_stop(&self, num_done: u64, num_steps: u64) -> Option<Stopped> {
        (self.ask)(num_done, num_steps)
    }

    /// A watcher that ignores all reports.
    #[must_use]
    pub fn silent() -> Watcher {
        Watcher::new(|_| {})
    }

    /// Reports one thing.
    pub fn tell(&self, progress: Progress<'_>) {
        (self.listen)(progress);
    }

    /// Runs a part of the work between its beginning and its end.
    pub fn part<T>(&self, label: &str, num_steps: usize, work: impl FnOnce() -> T) -> T {
        self.tell(Progress::Begun(label, num_steps as u64));
        let done = work();
        self.tell(Progress::Ended);
        done
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Watcher")
    }
}
