//! ESG (HPDC'24): for each queue the cheapest ways through its group within its share of the time left, placed by input
//! and warmth.

use pleach_scheduler::Problem;

use super::leave::{Leave, by_deadline};
use crate::functions::engine::Dispatcher;
use crate::functions::fronts::plan;
use crate::functions::profile::Configuration;
use crate::functions::state::State;

/// Ways that are kept. *Assumed.*
const WAYS: usize = 5;
/// Looks at a queue for which no way had room, after which the smallest configuration that fits is taken. *Assumed.*
const LOOKS: u32 = 3;
/// Part of the slack that may be waited for a fuller batch. *Ours.*
const WAIT_PART: f64 = 0.5;
/// Shortest wait, us. *Ours.*
const WAIT_LEAST_US: u64 = 1_000;

/// The rule, and what may be changed of it.
pub(super) struct Esg {
    leave: Leave,
    /// Waits for a fuller batch where that is cheaper and leaves time. *Ours.*
    pub waits: bool,
    /// Requests whose target cannot be met run cheaply, not fast. *Ours.*
    pub cheap: bool,
    /// Queues by deadline less half of what is to come, not in turn. *Ours.*
    pub edf: bool,
    turn: usize,
    looks: Vec<u32>,
    order: Vec<(u64, usize)>,
    ways: Vec<(usize, f64)>,
}

impl Esg {
    pub(super) fn new(leave: Leave) -> Esg {
        Esg {
            leave,
            waits: false,
            cheap: false,
            edf: false,
            turn: 0,
            looks: Vec::new(),
            order: Vec::new(),
            ways: Vec::new(),
        }
    }

    /// The first configurations of the cheapest ways, cheapest first; the fastest, or the cheapest, where none is in time.
    fn plan(&mut self, state: &State<'_>, step: usize, within_us: u64) {
        let place = &state.work().steps[step];
        let list = state.work().functions[place.function].pareto();
        let num = state.queues()[step].waiting.len();
        let batch_max = if self.waits { usize::MAX } else { num };
        plan(list, &place.after, (batch_max, within_us, WAYS), &mut self.ways);
        if self.ways.is_empty() {
            let fits = |(_, k): &(usize, &Configuration)| usize::from(k.batch) <= num;
            let mut all = list.iter().enumerate().filter(fits);
            let found = if self.cheap {
                all.min_by(|(_, one), (_, other)| one.usd().total_cmp(&other.usd()))
            } else {
                all.next()
            };
            self.ways.extend(found.map(|(place, k)| (place, k.usd())));
        }
    }

    /// Whether a queue does something and is to be looked at again.
    fn look(&mut self, state: &mut State<'_>, step: usize) -> bool {
        let Some(head) = state.head(step).filter(|_| state.free().1 > 0) else {
            return false;
        };
        let (work, num) = (state.work(), state.queues()[step].waiting.len());
        let place = &work.steps[step];
        let left_us = head.deadline_us.saturating_sub(state.now_us()) as f64;
        let within_us = (left_us * place.group_share * (1.0 - self.leave.margin)) as u64;
        self.plan(state, step, within_us);
        let list = work.functions[place.function].pareto();
        for &(way, _) in &self.ways {
            let k = list[way];
            if usize::from(k.batch) > num {
                let missing = f64::from(k.batch) - num as f64;
                let fill_us = state.queues()[step].gap_us * missing;
                let slack_us = within_us.saturating_sub(place.fastest_us) as f64;
                if fill_us > 0.0 && fill_us < WAIT_PART * slack_us {
                    state.wake(step, state.now_us() + (fill_us as u64).max(WAIT_LEAST_US));
                    return false;
                }
            } else if state.start(step, &k, self.leave.placing) {
                self.looks[step] = 0;
                return true;
            }
        }
        self.looks[step] += 1;
        let none_fits = self
            .ways
            .iter()
            .all(|(way, _)| usize::from(list[*way].batch) > num);
        if self.looks[step] <= LOOKS && !none_fits {
            return false;
        }
        let mut small: Vec<&Configuration> = list.iter().filter(|k| usize::from(k.batch) <= num).collect();
        small.sort_by_key(|k| (k.slices, k.cores, std::cmp::Reverse(k.batch)));
        let found = small
            .into_iter()
            .find(|k| state.place(step, k, self.leave.placing).is_some());
        let started = found.is_some_and(|k| state.start(step, k, self.leave.placing));
        if started {
            self.looks[step] = 0;
        }
        started
    }
}

impl Dispatcher for Esg {
    fn pass(&mut self, state: &mut State<'_>) -> Result<(), Problem> {
        self.leave.shed(state);
        let num = state.queues().len();
        self.looks.resize(num, 0);
        let mut order = std::mem::take(&mut self.order);
        if self.edf {
            let rest_us = |step: usize| state.work().steps[step].rest_us / 2;
            by_deadline(state, &mut order, |step, deadline_us| {
                deadline_us.saturating_sub(rest_us(step))
            });
        } else {
            order.clear();
            order.extend((0..num).map(|step| (0, (step + self.turn) % num)));
            self.turn = (self.turn + 1) % num;
        }
        for &(_, step) in &order {
            while self.look(state, step) {}
        }
        self.order = order;
        Ok(())
    }
}
