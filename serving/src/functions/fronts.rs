//! The cheapest way on: exact fronts of time and cost over the rest of a group of functions, and the cheapest first
//! configurations.
//!
//! ESG (HPDC'24) searches paths with A* and two bounds each time a queue is looked at. What comes after the first
//! function does not depend on the queue, so its front is made once, and each first configuration is one binary search.
//! The answers are those of the published search, which is kept beside the tests as an oracle.

#[cfg(test)]
mod tests;

use super::profile::Configuration;

/// A way through some functions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub latency_us: u64,
    /// Of one request, $.
    pub usd: f64,
}

/// All ways through functions that none beats in both time and cost: slower ones are cheaper. Of no function: one way for
/// nothing.
pub(crate) fn front(lists: &[&[Configuration]]) -> Vec<Point> {
    let mut front = vec![Point {
        latency_us: 0,
        usd: 0.0,
    }];
    for list in lists.iter().rev() {
        let ways = list.iter().flat_map(|k| {
            let (latency_us, usd) = (k.latency_us, k.usd());
            front.iter().map(move |rest| Point {
                latency_us: latency_us + rest.latency_us,
                usd: usd + rest.usd,
            })
        });
        let mut ways: Vec<Point> = ways.collect();
        ways.sort_by(|one, other| {
            one.latency_us
                .cmp(&other.latency_us)
                .then(one.usd.total_cmp(&other.usd))
        });
        let mut least = f64::INFINITY;
        ways.retain(|way| {
            let is_cheaper = way.usd < least;
            least = least.min(way.usd);
            is_cheaper
        });
        front = ways;
    }
    front
}

/// The cheapest way on within some time, $; none where there is none.
pub(crate) fn cheapest(front: &[Point], within_us: u64) -> Option<f64> {
    let num = front.partition_point(|point| point.latency_us <= within_us);
    num.checked_sub(1).map(|last| front[last].usd)
}

/// The first configurations of the cheapest whole ways within a time, cheapest first, at most `num`: their place in the
/// list and what the way costs, $. Only batches up to `batch_max`.
pub(crate) fn plan(
    first: &[Configuration],
    rest: &[Point],
    (batch_max, within_us, num): (usize, u64, usize),
    found: &mut Vec<(usize, f64)>,
) {
    found.clear();
    for (place, k) in first.iter().enumerate() {
        let Some(left_us) = within_us.checked_sub(k.latency_us) else {
            break;
        };
        if usize::from(k.batch) > batch_max {
            continue;
        }
        let Some(rest_usd) = cheapest(rest, left_us) else {
            continue;
        };
        let usd = k.usd() + rest_usd;
        if found.len() == num && usd >= found[num - 1].1 {
            continue;
        }
        let at = found.partition_point(|(_, other)| *other <= usd);
        found.insert(at, (place, usd));
        found.truncate(num);
    }
}
