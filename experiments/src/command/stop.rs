//! A wish from outside that the program end: SIGINT or SIGTERM, as the top of the program heard it.
//!
//! Work with a state worth saving listens while it can save it, and ends by itself between two updates. Without a listener the
//! top ends the program at once: every file is whole at every moment. A second wish is never waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Whether the program was asked to end, and how many parts of it listen for that.
#[derive(Debug, Default)]
pub struct Stop {
    /// Number of the signal; 0 for none.
    signal: AtomicI32,
    num_listeners: AtomicUsize,
}

impl Stop {
    /// Notes the wish. True where a part of the program listens and this is the first wish: the program then ends by itself.
    pub fn ask(&self, signal: i32) -> bool {
        let is_first = self.signal.swap(signal, Ordering::SeqCst) == 0;
        is_first && self.num_listeners.load(Ordering::SeqCst) > 0
    }

    /// The signal, if there was one.
    #[must_use]
    pub fn asked(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    /// Says that [`Stop::asked`] is looked at until the answer is dropped, and once after that.
    #[must_use]
    pub fn listen(self: &Arc<Self>) -> Listening {
        self.num_listeners.fetch_add(1, Ordering::SeqCst);
        Listening(Arc::clone(self))
    }
}

/// While this lives, a part of the program listens and will end it by itself.
#[derive(Debug)]
pub struct Listening(Arc<Stop>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.num_listeners.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::signal_name;

    #[test]
    fn only_the_first_wish_is_waited_for_and_only_while_somebody_listens() {
        let stop = Arc::new(Stop::default());
        assert!(!stop.ask(15), "nobody listens");
        let stop = Arc::new(Stop::default());
        let listening = stop.listen();
        assert_eq!(stop.asked(), None);
        assert!(stop.ask(2));
        assert_eq!(stop.asked(), Some(2));
        assert!(!stop.ask(15), "the second wish");
        drop(listening);
        assert_eq!(stop.asked().map(signal_name).as_deref(), Some("SIGTERM"));
    }
}
