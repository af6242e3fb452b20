//! What only a program may use: the clock, a runtime.

use std::time::{SystemTime, UNIX_EPOCH};

use pleach_kubernetes::Error;
use tokio::runtime::{Builder, Runtime};

pub fn now_s() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// Runs to the end on this thread.
pub fn block_on<T>(future: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    runtime()?.block_on(future)
}

/// A runtime of this thread.
pub fn runtime() -> Result<Runtime, Error> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Error::Access {
        reason: error.to_string(),
    })
}
