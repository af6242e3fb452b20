//! Dispatchers that give each function its share of the target and batch within it: INFless, FaST-GShare, Nexus, Clockwork.

use pleach_scheduler::Problem;

use super::leave::{Leave, by_deadline};
use crate::functions::engine::Dispatcher;
use crate::functions::profile::Configuration;
use crate::functions::state::State;

/// How a configuration is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// INFless's resource efficiency: throughput per resource over the part of the node that stays free; a batch takes at
    /// most half of its share, and fills at the rate that comes.
    Infless,
    /// FaST-GShare: the most requests per slice and time while the queue fills a batch, else the fewest slices that keep
    /// up with what comes beyond whole instances of that.
    FastGshare,
    /// Clockwork: the largest batch that ends within the share of the time left.
    Clockwork,
    /// Nexus: the cheapest batch that fills at the rate that comes and takes at most half of its share.
    Nexus,
}

/// Weights of a core and of a slice: single-precision throughput of a thread, and of a hundredth of an RTX 2080 Ti's
/// multiprocessors, ten of which are read as a slice (INFless's code).
const CORE_WEIGHT: f64 = 64.0;
const SLICE_WEIGHT: f64 = 10.0 * 142.0;

/// A rule with its leave.
pub(super) struct Batching {
    rule: Rule,
    leave: Leave,
    slo: f64,
    order: Vec<(u64, usize)>,
}

impl Batching {
    pub(super) fn new(rule: Rule, leave: Leave, slo: f64) -> Batching {
        Batching {
            rule,
            leave,
            slo,
            order: Vec::new(),
        }
    }

    /// A step's share of the target, us.
    fn share_us(&self, state: &State<'_>, step: usize) -> u64 {
        let place = &state.work().steps[step];
        let target_us = state.work().apps[place.app].base_us as f64 * self.slo;
        (target_us * place.share * (1.0 - self.leave.margin)) as u64
    }

    /// Configurations within a share that fill in time: a batch of more than one takes at most half of it.
    fn within<'a>(
        state: &State<'a>,
        step: usize,
        share_us: u64,
    ) -> impl Iterator<Item = &'a Configuration> + use<'a> {
        let work = state.work();
        let gap_us = state.queues()[step].gap_us;
        work.functions[work.steps[step].function]
            .configurations()
            .iter()
            .filter(move |k| {
                let most_us = if k.batch == 1 { share_us } else { share_us / 2 };
                let fills_us = gap_us * f64::from(k.batch);
                k.latency_us <= most_us && (k.batch == 1 || fills_us <= (share_us - k.latency_us) as f64)
            })
    }

    /// A configuration, and how long its batch may be waited for, us; none where nothing fits now.
    fn choose(&self, state: &State<'_>, step: usize) -> Option<(Configuration, u64)> {
        let work = state.work();
        let share_us = self.share_us(state, step);
        let num = state.queues()[step].waiting.len();
        let function = &work.functions[work.steps[step].function];
        let all = Batching::within(state, step, share_us);
        let found = match self.rule {
            Rule::Infless => {
                let mut best: Option<(f64, Configuration)> = None;
                for k in all {
                    let Some(node) = state.place(step, k, self.leave.placing) else {
                        continue;
                    };
                    let weight = |(cores, slices): (u16, u16)| {
                        CORE_WEIGHT * f64::from(cores) + SLICE_WEIGHT * f64::from(slices)
                    };
                    let (cores, slices) = state.free_of(node);
                    let after = weight((cores - k.cores, slices - k.slices)).max(CORE_WEIGHT);
                    let per_weight = f64::from(k.batch) / k.latency_us as f64 / weight((k.cores, k.slices));
                    let efficiency = per_weight / after;
                    if best.is_none_or(|(than, _)| efficiency > than) {
                        best = Some((efficiency, *k));
                    }
                }
                // None is in time, or none has room.
                best.map(|(_, k)| k).or_else(|| {
                    Batching::within(state, step, share_us)
                        .next()
                        .is_none()
                        .then(|| function.fastest())
                })?
            }
            Rule::FastGshare => {
                let per_slice = |k: &Configuration| {
                    f64::from(k.batch) / (k.latency_us as f64 * f64::from(k.slices.max(1)))
                };
                // Cores are not in its model: a slice brings its part of the node's, *ours*.
                let platform = state.platform();
                let in_part = |k: &&Configuration| {
                    let part = k.slices * platform.cores / platform.slices;
                    let same = function.configurations().iter();
                    let mut same = same.filter(|other| (other.batch, other.slices) == (k.batch, k.slices));
                    if k.cores <= part {
                        !same.any(|other| other.cores <= part && other.cores > k.cores)
                    } else {
                        !same.any(|other| other.cores < k.cores)
                    }
                };
                let all: Vec<&Configuration> = all.filter(in_part).collect();
                let most = |one: &&&Configuration, other: &&&Configuration| {
                    per_slice(one)
                        .total_cmp(&per_slice(other))
                        .then(other.cores.cmp(&one.cores))
                };
                let bulk = all.iter().max_by(most);
                // What comes beyond that which whole instances of the bulk serve.
                let per_us = |k: &Configuration| f64::from(k.batch) / k.latency_us as f64;
                let rate = 1.0 / state.queues()[step].gap_us;
                let rest_rate = bulk.map_or(rate, |k| rate % per_us(k));
                let keeps_up = |k: &&&Configuration| per_us(k) >= rest_rate;
                let smallest = |k: &&&Configuration| (k.slices, k.cores, k.batch);
                let rest = all.iter().filter(keeps_up).min_by_key(smallest);
                let bulk_fills = bulk.filter(|k| num >= usize::from(k.batch));
                **bulk_fills.or(rest).or(bulk).unwrap_or(&&function.fastest())
            }
            Rule::Nexus => {
                let cheapest = all.min_by(|one, other| one.usd().total_cmp(&other.usd()));
                *cheapest.unwrap_or(&function.fastest())
            }
            Rule::Clockwork => {
                let head = state.head(step)?;
                let place = &work.steps[step];
                let left_us = head.deadline_us.saturating_sub(state.now_us()) as f64;
                let share = place.rest_share;
                let left_us = (left_us * share * (1.0 - self.leave.margin)) as u64;
                let in_time = function
                    .pareto()
                    .iter()
                    .filter(|k| k.latency_us <= left_us && usize::from(k.batch) <= num);
                let largest = in_time.max_by(|one, other| {
                    one.batch
                        .cmp(&other.batch)
                        .then(other.usd().total_cmp(&one.usd()))
                });
                // Nothing waits, and what is late for its share takes the fastest that has room.
                let has_room = |k: &&Configuration| {
                    usize::from(k.batch) <= num && state.place(step, k, self.leave.placing).is_some()
                };
                return largest
                    .or_else(|| function.pareto().iter().find(has_room))
                    .map(|k| (*k, 0));
            }
        };
        Some((found, share_us.saturating_sub(found.latency_us)))
    }
}

impl Dispatcher for Batching {
    fn pass(&mut self, state: &mut State<'_>) -> Result<(), Problem> {
        self.leave.shed(state);
        let by_ready = self.rule != Rule::Clockwork;
        by_deadline(state, &mut self.order, |step, deadline_us| {
            let ready_us = state.head(step).map(|head| head.ready_us);
            ready_us.filter(|_| by_ready).unwrap_or(deadline_us)
        });
        for &(_, step) in &self.order {
            while let Some(head) = state.head(step) {
                if state.free() == (0, 0) {
                    return Ok(());
                }
                let Some((k, wait_us)) = self.choose(state, step) else {
                    break;
                };
                let until_us = head.ready_us + wait_us;
                let num = state.queues()[step].waiting.len();
                if num < usize::from(k.batch) && state.now_us() < until_us {
                    state.wake(step, until_us);
                    break;
                }
                if !state.start(step, &k, self.leave.placing) {
                    break;
                }
            }
        }
        Ok(())
    }
}
