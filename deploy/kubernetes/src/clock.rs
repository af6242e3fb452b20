//! The time of a look, which notes how long its answers stay the same: while they do, and nothing else has changed, another look sees
//! the same.

use std::cell::Cell;
use std::ops::Range;

/// A moment, and the next one at which something that was asked of it is answered otherwise.
#[derive(Debug)]
pub struct Clock {
    now_s: i64,
    until_s: Cell<i64>,
}

impl Clock {
    /// At Unix time `now_s`.
    #[must_use]
    pub fn at(now_s: i64) -> Clock {
        Clock {
            now_s,
            until_s: Cell::new(i64::MAX),
        }
    }

    /// Whether a moment is still to come.
    #[must_use]
    pub fn is_before(&self, at_s: i64) -> bool {
        let is_before = self.now_s < at_s;
        if is_before {
            self.until_s.set(self.until_s.get().min(at_s));
        }
        is_before
    }

    /// Whether a moment is over.
    #[must_use]
    pub fn is_past(&self, at_s: i64) -> bool {
        !self.is_before(at_s.saturating_add(1))
    }

    /// Whether a moment is over, and not for as long as `s` seconds.
    #[must_use]
    pub fn is_within(&self, since_s: i64, s: i64) -> bool {
        !self.is_before(since_s) && self.is_before(since_s.saturating_add(s))
    }

    /// The time, for what is another in each second.
    #[must_use]
    pub fn now_s(&self) -> i64 {
        self.until_s.set(self.until_s.get().min(self.now_s + 1));
        self.now_s
    }

    /// The time, for what [`Traces`](crate::seats::Traces) keep from look to look: the next one finds it there.
    #[must_use]
    pub fn kept_s(&self) -> i64 {
        self.now_s
    }

    /// From when to when all is answered the same, Unix time, s.
    #[must_use]
    pub fn holds(&self) -> Range<i64> {
        self.now_s..self.until_s.get()
    }
}
