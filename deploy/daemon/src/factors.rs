//! Which numbers make a batch system start waiting jobs in a wanted order, with as few changes as may be: Slurm's `SiteFactor`s,
//! priorities of Kueue's workloads.
//!
//! The batch system starts the job with the higher priority first, of equal ones the earlier one. So the jobs that are ranked
//! have factors above 0, each less than the one before it, and all others 0, which is a new job's. Of the present factors a
//! longest falling sequence stays; the others are put between its members. Where no number is left between two, those above it
//! are numbered anew above all.
//!
//! Changes come in an order such that after any number of them the head of the queue is right as far as it can be: a round may
//! write as many as it has time for.

use std::collections::HashMap;

use pleach_scheduler::{ExternalId, IdHash};

use crate::order::Order;

/// Above this all factors are numbered anew from below. *Ours*: half of what Slurm takes (2,147,483,645).
const CEILING: i64 = 1 << 30;

/// The order in which waiting jobs shall start, by their places in the queue, and how many of them are to have a number. `jobs`
/// are the waiting jobs by arrival; none for a job that is not in the policy's tables.
#[must_use]
pub fn wanted(jobs: &[Option<ExternalId>], order: &Order) -> (Vec<usize>, usize) {
    let places = jobs.iter().enumerate();
    let place_of: HashMap<ExternalId, usize, IdHash> =
        places.filter_map(|(place, job)| Some(((*job)?, place))).collect();
    // A job that has left since is in no queue.
    let known = |jobs: &[ExternalId]| -> Vec<usize> {
        jobs.iter().filter_map(|job| place_of.get(job).copied()).collect()
    };
    let ranked = known(&order.jobs);
    let num_ranked = known(&order.jobs[..order.num_ranked.min(order.jobs.len())]).len();
    let mut is_ranked = vec![false; jobs.len()];
    for place in &ranked {
        is_ranked[*place] = true;
    }
    merged(&is_ranked, &ranked, num_ranked)
}

/// The order in which jobs shall start, by their places in the queue, and how many of them are to have a factor: `is_ranked` says of
/// each job of the queue, by arrival, whether it is one of `ranked`, which are such places, the first first, of which the first
/// `num_ranked` were ranked.
///
/// A job that is not ranked keeps the place that it has by arrival: no later job pushes it back, and it jumps none.
fn merged(is_ranked: &[bool], ranked: &[usize], num_ranked: usize) -> (Vec<usize>, usize) {
    let mut next = ranked.iter();
    let (mut order, mut num_seen, mut cut) = (Vec::with_capacity(is_ranked.len()), 0, 0);
    for (place, is_ranked) in is_ranked.iter().enumerate() {
        match is_ranked {
            true => {
                order.extend(next.next());
                num_seen += 1;
                if num_seen <= num_ranked {
                    cut = order.len();
                }
            }
            false => order.push(place),
        }
    }
    (order, cut)
}

/// New factors by place in the wanted order, those first that matter most; `present` are the factors of the jobs in that order, of
/// which the first `cut` are to have one, `step` apart where there is room.
#[must_use]
pub fn changes(present: &[i64], cut: usize, step: i64) -> Vec<(usize, i64)> {
    let wanted = match present.iter().any(|factor| *factor > CEILING) {
        true => return anew(present, cut, step),
        false => falling(present, cut, step),
    };
    let above = |factor: i64| wanted.partition_point(|other| *other > factor);
    let mut changed: Vec<(usize, usize)> = (0..present.len())
        .filter(|at| wanted[*at] != present[*at])
        .map(|at| (at.min(above(present[at])), at))
        .collect();
    changed.sort_unstable();
    changed.into_iter().map(|(_, at)| (at, wanted[at])).collect()
}

/// All jobs numbered from below, the last first: so the order stays right while the factors are written.
fn anew(present: &[i64], cut: usize, step: i64) -> Vec<(usize, i64)> {
    let factor = |at: usize| step * cut.saturating_sub(at) as i64;
    let all = (0..present.len()).rev().map(|at| (at, factor(at)));
    all.filter(|(at, factor)| present[*at] != *factor).collect()
}

/// The factors of all, in the wanted order: falling, and 0 from `cut` on.
fn falling(present: &[i64], cut: usize, step: i64) -> Vec<i64> {
    let kept = with_room(longest_falling(&present[..cut]), present, cut);
    let mut factors = vec![0; present.len()];
    // Above the first that stays.
    let (first, low) = kept.first().map_or((cut, 0), |first| (*first, present[*first]));
    for (at, factor) in factors[..first].iter_mut().enumerate() {
        *factor = low + step * (first - at) as i64;
    }
    for (place, from) in kept.iter().enumerate() {
        let (to, low) = kept.get(place + 1).map_or((cut, 0), |to| (*to, present[*to]));
        let (high, num) = (present[*from], (to - from) as i64);
        // Below the last that stays there is room for more to come, where the step leaves any.
        let is_wide = place + 1 == kept.len() && high > step * num;
        for (index, factor) in factors[*from..to].iter_mut().enumerate() {
            let index = index as i64;
            *factor = match is_wide {
                true => high - step * index,
                false => high - (high - low) * index / num,
            };
        }
    }
    factors
}

/// Of places that may stay, from the last to the first, those with a number for each that comes between.
fn with_room(mut kept: Vec<usize>, present: &[i64], cut: usize) -> Vec<usize> {
    let (mut to, mut low) = (cut, 0);
    let mut stays = Vec::with_capacity(kept.len());
    while let Some(at) = kept.pop() {
        if present[at] - low >= (to - at) as i64 {
            stays.push(at);
            (to, low) = (at, present[at]);
        }
    }
    stays.reverse();
    stays
}

/// Places of a longest strictly falling sequence of the positive numbers.
fn longest_falling(numbers: &[i64]) -> Vec<usize> {
    // The place of the largest last number of a sequence of each length, and each number's predecessor in its sequence.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; numbers.len()];
    for (at, number) in numbers.iter().enumerate().filter(|(_, number)| **number > 0) {
        let length = ends.partition_point(|end| numbers[*end] > *number);
        before[at] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut sequence = Vec::new();
    let mut next = ends.last().copied();
    while let Some(at) = next {
        sequence.push(at);
        next = before[at];
    }
    sequence.reverse();
    sequence
}

#[cfg(test)]
#[path = "factors_tests.rs"]
mod tests;
