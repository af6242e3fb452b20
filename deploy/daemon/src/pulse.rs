//! Whether the loop is alive: a look, a decision, a command are steps, and a loop that takes none for a minute hangs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time without a step after which the loop counts as hanging, beside the time that a step says it may take. *Ours*: no step of
/// ours takes as long; commands and pauses say how long they may.
pub const STUCK: Duration = Duration::from_secs(60);

/// The life signs of one loop; a clone is the same. The last step, and how long the one that began with it may take.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Mutex<Option<(Instant, Duration)>>>);

impl Pulse {
    /// The loop has taken a step.
    pub fn beat(&self) {
        self.rest(Duration::ZERO);
    }

    /// The loop begins what may take so long.
    pub fn rest(&self, most: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), most));
    }

    /// Whether the loop has taken a step within `stuck`, beside the time that it said the step may take.
    #[must_use]
    pub fn lives(&self, stuck: Duration) -> bool {
        let step = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        step.is_some_and(|(step, most)| step.elapsed() <= stuck.saturating_add(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_lives_while_it_takes_steps_and_while_one_takes_as_long_as_it_said() {
        let (pulse, stuck) = (Pulse::default(), Duration::from_millis(300));
        assert!(!pulse.lives(stuck), "before the first step");
        pulse.beat();
        assert!(pulse.lives(stuck));
        std::thread::sleep(Duration::from_millis(400));
        assert!(!pulse.lives(stuck));
        pulse.rest(Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(400));
        assert!(pulse.lives(stuck));
    }
}
