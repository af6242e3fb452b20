//! What all rules have, and the order in which most of them go through queues.

use super::super::platform::Placing;
use super::super::state::State;

/// What all rules have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leave {
    /// Part of the target that is kept, 0 to 0.9.
    pub margin: f64,
    /// A request is dropped where less than so many times its fastest way on is left.
    pub shed: f64,
    pub placing: Placing,
}

impl Leave {
    /// Drops the doomed. A queue's first request has the least time left of all.
    pub(super) fn shed(self, state: &mut State<'_>) {
        if self.shed == 0.0 {
            return;
        }
        for step in 0..state.queues().len() {
            let least_us = (state.work().steps[step].fastest_us as f64 * self.shed) as u64;
            while let Some(head) = state.head(step) {
                if head.deadline_us >= state.now_us() + least_us || !state.shed(step) {
                    break;
                }
            }
        }
    }
}

/// Queues that are not empty, by a figure of their first request's deadline.
pub(super) fn by_deadline(
    state: &State<'_>,
    order: &mut Vec<(u64, usize)>,
    figure: impl Fn(usize, u64) -> u64,
) {
    order.clear();
    let heads = (0..state.queues().len()).filter_map(|step| Some((step, state.head(step)?)));
    order.extend(heads.map(|(step, head)| (figure(step, head.deadline_us), step)));
    order.sort_unstable();
}
