//! What the controller shows to the server: the last view of the cluster, when it was taken, and where pods go that are awaited.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::let_go::LetGo;
use crate::observe::Observed;

/// The last view, for two threads.
#[derive(Clone, Debug, Default)]
pub struct View {
    last: Arc<Mutex<Option<Taken>>>,
    /// Places of Jobs that were let go.
    pub let_go: LetGo,
}

/// A view, and when it was taken.
type Taken = (Instant, Arc<Observed>);

impl View {
    /// Shows a view that was taken just now.
    pub fn show(&self, observed: Arc<Observed>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), observed));
    }

    /// The last view is what another look would see.
    pub fn keep(&self) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((taken, _)) = last.as_mut() {
            *taken = Instant::now();
        }
    }

    /// The last view, if it is not older.
    #[must_use]
    pub fn last(&self, age_max: Duration) -> Option<Arc<Observed>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (taken, observed) = last.as_ref()?;
        (taken.elapsed() <= age_max).then(|| Arc::clone(observed))
    }
}
