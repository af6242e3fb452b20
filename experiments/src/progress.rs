//! What long work tells whoever watches it. Nothing that is told reaches a result, and nobody need listen.

use std::fmt;
use std::sync::Arc;

/// One thing that is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A part of the work begins, with its name and the number of its steps; 0 where nobody knows it.
    Begun(&'a str, u64),
    /// One more step of the part is done.
    Step,
    /// So many steps of the part are done, and a word on how it goes.
    At(u64, &'a str),
    /// The part is over.
    Ended,
    /// One line that somebody should read.
    Note(&'a str),
}

/// Whoever watches: a function that any thread may call.
#[derive(Clone)]
pub struct Watcher(Arc<dyn Fn(Progress<'_>) + Send + Sync>);

impl Watcher {
    /// Calls `listen` with everything that is told.
    pub fn new(listen: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Watcher {
        Watcher(Arc::new(listen))
    }

    /// Nobody watches.
    #[must_use]
    pub fn nobody() -> Watcher {
        Watcher::new(|_| {})
    }

    /// Tells one thing.
    pub fn tell(&self, progress: Progress<'_>) {
        (self.0)(progress);
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
