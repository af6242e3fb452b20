//! How the trees of a rung stand while their lists are simulated: how bad a list may still come out before its tree is out of the
//! race whatever the others bring.
//!
//! Most children of a good tree are bad, and bad trees are the slowest to simulate, for their queues are long. A tree goes on to
//! the next rung where its objective is behind that of its opponent by no more than one standard error. Both sides of that are
//! known of lists that are done; of the others there is a floor that no schedule beats. The difference never falls where a list
//! comes out worse: a list that is worse by d adds at least d/n to the objective, and at most d/n to the standard error of n lists. So
//! a tree that is out with floors is out, and what is broken off changes nothing of what a search finds.

use std::sync::{Mutex, PoisonError};

use super::config::{Outcome, SearchConfig};

/// By how much a tree must be behind beyond its standard error for rounding not to matter.
const ROUNDING: f64 = 1e-9;
/// Logarithm of a ratio of average JCT beyond which nothing is asked for.
const LN_MAX: f64 = 20.0;
/// Halvings between the floor of a list and [`LN_MAX`].
const NUM_HALVINGS: usize = 40;
/// Less than the logarithm of any ratio of 99th percentiles.
const LN_P99_MIN: f64 = -100.0;

/// How the trees of one rung stand.
#[derive(Debug)]
pub struct Standing<'a> {
    config: &'a SearchConfig,
    racers: Vec<Racer<'a>>,
}

#[derive(Debug)]
struct Racer<'a> {
    /// Outcomes of the tree that it has to beat on the lists of this rung and those before it; none where any outcome will do.
    opponent: Option<&'a [Outcome]>,
    /// Its own, as far as they are known; none any more where it is out.
    own: Mutex<Option<Vec<Option<Outcome>>>>,
}

impl<'a> Standing<'a> {
    pub(super) fn new(config: &'a SearchConfig) -> Standing<'a> {
        Standing {
            config,
            racers: Vec::new(),
        }
    }

    /// One more tree: what it has to beat on all lists of the rung, and what it has done on the first of them.
    pub(super) fn push(&mut self, opponent: Option<&'a [Outcome]>, own: &[Outcome]) {
        let num = opponent.map_or(own.len(), <[Outcome]>::len);
        let mut known: Vec<Option<Outcome>> = own.iter().copied().map(Some).collect();
        known.resize(num, None);
        self.racers.push(Racer {
            opponent,
            own: Mutex::new(Some(known)),
        });
    }

    /// The largest logarithm of the ratio of average JCT on a list with which its tree may still go on; infinite where any may be,
    /// none where the tree is out already. `floor` says what no tree beats on a list.
    pub fn ln_jct_max(&self, (tree, list): (usize, usize), floor: impl Fn(usize) -> f64) -> Option<f64> {
        let racer = &self.racers[tree];
        let Some(opponent) = racer.opponent else {
            return Some(f64::INFINITY);
        };
        let own = racer.own.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let at_floor = |(list, known): (usize, &Option<Outcome>)| {
            known.unwrap_or_else(|| Outcome {
                ln_jct: floor(list),
                ln_p99: LN_P99_MIN,
            })
        };
        let mut least: Vec<Outcome> = own.iter().enumerate().map(at_floor).collect();
        let (mut low, mut high) = (least[list].ln_jct, LN_MAX);
        let mut is_out_at = |ln_jct: f64| {
            least[list].ln_jct = ln_jct;
            is_out(self.config, &least, opponent)
        };
        if is_out_at(low) {
            return None;
        }
        if !is_out_at(high) {
            return Some(f64::INFINITY);
        }
        for _ in 0..NUM_HALVINGS {
            let middle = low.midpoint(high);
            if is_out_at(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(high)
    }

    /// A list is done; none: it was broken off, for its tree is out.
    pub fn note(&self, (tree, list): (usize, usize), outcome: Option<Outcome>) {
        let mut own = self.racers[tree]
            .own
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match (outcome, own.as_mut()) {
            (None, _) => *own = None,
            (Some(_), None) => {}
            (Some(outcome), Some(known)) => {
                if let Some(place) = known.get_mut(list) {
                    *place = Some(outcome);
                }
            }
        }
    }
}

fn is_out(config: &SearchConfig, own: &[Outcome], opponent: &[Outcome]) -> bool {
    behind(config, own, opponent) > standard_error(own, opponent) + ROUNDING
}

/// How far a tree is behind another on the same lists; below 0 it leads.
pub(super) fn behind(config: &SearchConfig, own: &[Outcome], theirs: &[Outcome]) -> f64 {
    config.objective(own) - config.objective(theirs)
}

/// Standard error of the mean paired difference of the logarithms of average JCT.
pub(super) fn standard_error(own: &[Outcome], theirs: &[Outcome]) -> f64 {
    let differences: Vec<f64> = own
        .iter()
        .zip(theirs)
        .map(|(own, theirs)| own.ln_jct - theirs.ln_jct)
        .collect();
    let num = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / num;
    let square: f64 = differences.iter().map(|value| (value - mean).powi(2)).sum();
    (square / (num - 1.0).max(1.0) / num).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn outcomes(num: usize) -> impl Strategy<Value = Vec<Outcome>> {
        let one = (-0.5..0.8_f64, -0.5..0.8_f64).prop_map(|(ln_jct, ln_p99)| Outcome { ln_jct, ln_p99 });
        prop::collection::vec(one, num)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn a_tree_that_is_out_before_its_lists_are_done_is_out_when_they_are(
            own in outcomes(8),
            theirs in outcomes(8),
            order in Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle(),
            has_tails in any::<bool>(),
        ) {
            let tail_weight = if has_tails { 0.3 } else { 0.0 };
            let config = SearchConfig { tail_weight, ..SearchConfig::default() };
            let mut standing = Standing::new(&config);
            standing.push(Some(&theirs), &[]);
            let is_out_at_last = is_out(&config, &own, &theirs);
            // What no tree beats is a little below what this one does.
            let floor = |list: usize| own[list].ln_jct - 0.1;
            let mut was_out = false;
            for list in order {
                match standing.ln_jct_max((0, list), floor) {
                    Some(most) if own[list].ln_jct <= most => standing.note((0, list), Some(own[list])),
                    _ => {
                        standing.note((0, list), None);
                        was_out = true;
                        break;
                    }
                }
            }
            prop_assert!(!was_out || is_out_at_last);
            // Without tails, which are not foreseen, all is known with the last list: what is out is found out, but for rounding.
            let margin = behind(&config, &own, &theirs) - standard_error(&own, &theirs);
            prop_assert!(was_out || has_tails || margin < 1e-6);
        }
    }

    #[test]
    fn a_tree_without_an_opponent_is_never_out() {
        let config = SearchConfig::default();
        let mut standing = Standing::new(&config);
        standing.push(None, &[]);
        assert_eq!(standing.ln_jct_max((0, 3), |_| 0.0), Some(f64::INFINITY));
    }
}
