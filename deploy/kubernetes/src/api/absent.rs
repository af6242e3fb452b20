//! Kinds of objects that an API server does not have.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time after which a kind that the API server does not know is asked for again. *Ours*.
const AGAIN: Duration = Duration::from_secs(300);

/// Kinds that the API server does not have, and since when that is known.
#[derive(Debug, Default)]
pub(super) struct Absent(Mutex<Vec<(&'static str, Instant)>>);

impl Absent {
    pub(super) fn is_absent(&self, plural: &str) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .iter()
            .any(|(known, since)| *known == plural && since.elapsed() < AGAIN)
    }

    pub(super) fn note(&self, plural: &'static str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(other, _)| *other != plural);
        known.push((plural, Instant::now()));
    }
}
