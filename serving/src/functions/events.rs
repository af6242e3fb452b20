//! What is to come: one heap at whole microseconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    Arrive,
    Wake(u32),
    End(u32),
}

/// Events to come, by time and then in the order in which they were put there.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    num: u64,
}

impl Events {
    pub(super) fn put(&mut self, at_us: u64, event: Event) {
        self.num += 1;
        self.heap.push(Reverse((at_us, self.num, event)));
    }
}
