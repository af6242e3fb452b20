//! Long work without the interpreter's lock, in threads of its own, that Ctrl-C ends within a second.
//!
//! Only the main thread of an interpreter sees signals, so the caller's thread waits and looks at them, and the work is done
//! beside it. What has to be done in Python, functions that are policies among it, the work sends there as an errand. Work that does not hear the wish at once, because it draws a workload or fits a tree, is left behind: it owns all
//! that it uses, hears the wish later, and its result goes nowhere. The pool lives as long as the work: a process that forks
//! later inherits none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use pleach_experiments::Watcher;
use pleach_experiments::progress::Stopped;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::guarded;

/// How long the caller's thread sleeps between two looks at signals. Assumed.
const LOOK: Duration = Duration::from_millis(50);
/// How long it waits for the work to end once that was asked for. Assumed.
const GRACE: Duration = Duration::from_millis(400);
/// Number of SIGINT, the signal that is named as the reason of the stop.
const SIGINT: i32 = 2;

/// A wish that the work end.
#[derive(Clone, Default)]
pub(crate) struct Wish(Arc<AtomicBool>);

impl Wish {
    /// Asks the work to end.
    pub(crate) fn make(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work is to end.
    pub(crate) fn is_made(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// A watcher that passes the wish on.
    pub(crate) fn watcher(&self) -> Watcher {
        self.heard(Watcher::silent())
    }

    /// The same for a watcher that listens too.
    pub(crate) fn heard(&self, watcher: Watcher) -> Watcher {
        let wish = self.clone();
        watcher.stopped_by(move |_, _| wish.is_made().then_some(Stopped { signal: SIGINT }))
    }
}

/// Something to do in Python on the thread of the caller; its exception ends the work as a signal does.
pub(crate) type Errand = Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>;
/// Where errands are sent.
pub(crate) type Errands = Sender<Errand>;

/// A piece of long work before it begins: the wish that can end it, and the errands that run on the thread of the caller.
pub(crate) struct Work {
    pub(crate) wish: Wish,
    pub(crate) errands: Errands,
    arriving: Receiver<Errand>,
    /// How long it may go on in order to end in order, once that is asked for.
    grace: Duration,
}

impl Default for Work {
    fn default() -> Work {
        let (errands, arriving) = channel();
        Work {
            wish: Wish::default(),
            errands,
            arriving,
            grace: GRACE,
        }
    }
}

impl Work {
    /// With another time to end in.
    pub(crate) fn within(grace: Duration) -> Work {
        Work {
            grace,
            ..Work::default()
        }
    }

    /// Does the work on `num_threads` threads, 0 for all cores; it looks at the wish now and then.
    ///
    /// # Errors
    /// The exception of the signal (`KeyboardInterrupt`), of a panic, or of threads that cannot be had.
    pub(crate) fn run<T: Send + 'static>(
        self,
        py: Python<'_>,
        num_threads: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> PyResult<T> {
        let no_threads = |error: String| PyRuntimeError::new_err(format!("no threads: {error}"));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build();
        let pool = pool.map_err(|error| no_threads(error.to_string()))?;
        let (send, done) = channel();
        let Work {
            wish,
            errands,
            arriving,
            grace,
        } = self;
        let thread = std::thread::Builder::new().name("pleach".into());
        let begun = thread.spawn(move || {
            // Where the work was left behind, the receiver is gone.
            let _ = send.send(guarded(|| pool.install(work)));
            // That there is nothing more to wait for.
            let _ = errands.send(Box::new(|_| Ok(())));
        });
        begun.map_err(|error| no_threads(error.to_string()))?;
        py.detach(move || wait(&done, arriving, &wish, grace))
    }
}

fn wait<T>(
    done: &Receiver<PyResult<T>>,
    arriving: Receiver<Errand>,
    wish: &Wish,
    grace: Duration,
) -> PyResult<T> {
    let mut looked = Instant::now();
    loop {
        let errand = arriving.recv_timeout(LOOK);
        let is_due = errand.is_err() || looked.elapsed() >= LOOK;
        let mut heard = errand.map_or(Ok(()), Python::attach);
        match done.try_recv() {
            // What was sent before it ended is done too.
            Ok(result) => {
                return heard
                    .and(arriving.try_iter().try_for_each(Python::attach))
                    .and(result);
            }
            Err(TryRecvError::Disconnected) => return Err(PyRuntimeError::new_err("the work was lost")),
            Err(TryRecvError::Empty) => {}
        }
        if is_due && heard.is_ok() {
            looked = Instant::now();
            heard = Python::attach(|py| py.check_signals());
        }
        if let Err(raised) = heard {
            wish.make();
            // Threads that wait for an errand go on.
            drop(arriving);
            let _ = done.recv_timeout(grace);
            return Err(raised);
        }
    }
}
