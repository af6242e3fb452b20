//! Long work without the interpreter's lock, in threads of its own, that Ctrl-C ends within a second.
//!
//! Only the main thread of an interpreter sees signals, so the caller's thread waits and looks at them, and the work is done
//! beside it. Work that does not hear the wish at once, because it draws a workload or fits a tree, is left behind: it owns all
//! that it uses, hears the wish later, and its result goes nowhere. The pool lives as long as the work: a process that forks
//! later inherits none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use pleach_experiments::Watcher;
use pleach_experiments::progress::Stopped;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::guarded;

/// How long the caller's thread sleeps between two looks at signals. Assumed.
const LOOK: Duration = Duration::from_millis(50);
/// How long it waits for the work to end once that was asked for. Assumed.
const GRACE: Duration = Duration::from_millis(400);
/// Number of SIGINT, for those who ask by what they are stopped.
const SIGINT: i32 = 2;

/// A wish that the work end.
#[derive(Clone, Default)]
pub(crate) struct Wish(Arc<AtomicBool>);

impl Wish {
    /// Whether the work is to end.
    pub(crate) fn is_made(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// A watcher that passes the wish on.
    pub(crate) fn watcher(&self) -> Watcher {
        let wish = self.clone();
        Watcher::nobody().stopped_by(move |_, _| wish.is_made().then_some(Stopped { signal: SIGINT }))
    }
}

/// Does the work on `num_threads` threads, 0 for all cores; it looks at the wish now and then.
///
/// # Errors
/// The exception of the signal (`KeyboardInterrupt`), of a panic, or of threads that cannot be had.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    num_threads: usize,
    wish: &Wish,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let no_threads = |error: String| PyRuntimeError::new_err(format!("no threads: {error}"));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build();
    let pool = pool.map_err(|error| no_threads(error.to_string()))?;
    let (send, done) = channel();
    let thread = std::thread::Builder::new().name("pleach".into());
    let begun = thread.spawn(move || {
        // Nobody listens any more where the work was left behind.
        let _ = send.send(guarded(|| pool.install(work)));
    });
    begun.map_err(|error| no_threads(error.to_string()))?;
    py.detach(move || wait(done, wish))
}

fn wait<T>(done: Receiver<PyResult<T>>, wish: &Wish) -> PyResult<T> {
    loop {
        match done.recv_timeout(LOOK) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("the work was lost")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(signal) = Python::attach(|py| py.check_signals()) {
            wish.0.store(true, Ordering::Relaxed);
            let _ = done.recv_timeout(GRACE);
            return Err(signal);
        }
    }
}
