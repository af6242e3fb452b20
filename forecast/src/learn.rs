//! What earlier forecasts teach: trees on what the replay missed, shifts by which intervals hold, and which of replay, trees and plain
//! history answers.
//!
//! A job that still waits is known to wait at least as long as it has: it counts as censored, at its age.

use pleach_scheduler::portable_math::{exp, ln};
use serde::Serialize;

use crate::boost::{Boosted, quantile_of};
use crate::case::{Bare, SHORT_S};
use crate::score::{EIGHTY, LEVELS, MIDDLE, Quantiles, holds, log1, pinball};

/// Resolved forecasts below which plain history answers.
pub const RESOLVED_MIN: usize = 200;
/// Forecasts from which is learned, and those by which is judged and shifted, the last ones. *Ours*.
const LEARN_MAX: usize = 1000;
const JUDGE_MAX: usize = 300;
/// First forecasts by which nothing is judged, at most. *Ours*.
const YOUNG: usize = 150;
/// Forecasts of a group from which its intervals are shifted, and weight of no shift beside theirs. *Ours*.
const SHIFT_MIN: usize = 30;
/// History answers where its loss is below this part of that of the replay. *Ours*: within it the difference is chance.
const BETTER: f64 = 0.97;
/// Part of waits that a correction may reach.
const CAP: f64 = 0.995;

/// Half the width of an interval that has none, as a logarithm. *Ours*.
const NARROWEST: f64 = 0.1;
/// Times that an interval is widened, at most. *Ours*.
const WIDEST: f64 = 4.0;
/// Factors of the spreads before anything is learned.
const AS_THEY_ARE: Quantiles = [1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0];

/// What answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Quantiles of past waits of jobs of the size.
    History,
    /// Trees on the state of the queue.
    Trees,
    /// The replay, corrected.
    Replay,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 3] = [Method::History, Method::Trees, Method::Replay];

    /// One word, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["history", "trees", "replay"][self as usize]
    }
}

/// Quantiles by each method. `[method]`
pub type Stated = [Quantiles; 3];

/// What is known of a wait: how long it was, or has been so far, s.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// How long.
    pub wait_s: f64,
    /// Whether the job still waits.
    pub waits: bool,
}

/// A forecast at an instant, and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// Which job of the list.
    pub job: usize,
    /// When, s.
    pub at_s: f64,
    /// The forecast before any correction.
    pub bare: Bare,
    /// What was stated, by each method, before shifts and after them.
    #[serde(skip)]
    pub raw: Stated,
    /// After them.
    pub stated: Stated,
    /// The method that answered.
    pub method: Method,
    /// How long the job waited, s.
    pub wait_s: f64,
}

impl Case {
    /// What is known of it at an instant.
    #[must_use]
    pub fn known(&self, now_s: f64) -> Known {
        let age_s = now_s - self.at_s;
        match self.wait_s <= age_s {
            true => Known {
                wait_s: self.wait_s,
                waits: false,
            },
            false => Known {
                wait_s: age_s,
                waits: true,
            },
        }
    }

    /// What was answered.
    #[must_use]
    pub fn answer(&self) -> &Quantiles {
        &self.stated[self.method as usize]
    }
}

/// All that was learned until an instant.
#[derive(Clone, Debug)]
pub struct Learner {
    cases: Vec<Case>,
    trees: Vec<Boosted>,
    residual: Vec<Boosted>,
    cap_s: f64,
    shifts: [[Quantiles; 2]; 3],
    best: Option<Method>,
    num_resolved: usize,
    last_fit: (i64, usize),
}

impl Default for Learner {
    fn default() -> Learner {
        Learner {
            cases: Vec::new(),
            trees: Vec::new(),
            residual: Vec::new(),
            cap_s: 0.0,
            shifts: [[AS_THEY_ARE; 2]; 3],
            best: None,
            num_resolved: 0,
            last_fit: (0, 0),
        }
    }
}

/// A wait from its logarithm: what is below half a minute is none.
fn wait_s(log: f64, cap_s: f64) -> f64 {
    let wait_s = (exp(log.min(25.0)) - 1.0).min(cap_s);
    if wait_s < SHORT_S / 2.0 { 0.0 } else { wait_s }
}

/// A wait from the logarithm of itself and a minute.
fn wait_s_of(log: f64) -> f64 {
    let wait_s = exp(log.min(25.0)) - SHORT_S;
    if wait_s < SHORT_S / 2.0 { 0.0 } else { wait_s }
}

/// The middle of a forecast and how far a level lies from it, in logarithms of the wait and a minute: intervals are widened in
/// proportion to themselves. The middle itself is shifted by a tenth.
fn spread(of: &Quantiles, level: usize) -> (f64, f64) {
    let log = |level: usize| ln(of[level] + SHORT_S);
    let spread = log(level) - log(MIDDLE);
    match level.cmp(&MIDDLE) {
        std::cmp::Ordering::Less => (log(MIDDLE), spread - NARROWEST),
        std::cmp::Ordering::Equal => (log(MIDDLE), NARROWEST),
        std::cmp::Ordering::Greater => (log(MIDDLE), spread + NARROWEST),
    }
}

/// The part of the scores below which a level's lies: spreads below the middle are negative.
fn part(level: usize) -> f64 {
    if level < MIDDLE {
        1.0 - LEVELS[level]
    } else {
        LEVELS[level]
    }
}

fn in_order(mut of: Quantiles) -> Quantiles {
    of.sort_unstable_by(f64::total_cmp);
    of
}

impl Learner {
    /// The forecasts so far.
    #[must_use]
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// Resolved forecasts at the last fit.
    #[must_use]
    pub fn num_resolved(&self) -> usize {
        self.num_resolved
    }

    /// What answers: what is forced, else what the forecasts so far speak for.
    #[must_use]
    pub fn method(&self, forced: Option<Method>) -> Method {
        forced.or(self.best).unwrap_or(Method::History)
    }

    /// Part of the last resolved forecasts whose 80 % interval held, and how many those are.
    #[must_use]
    pub fn held(&self, now_s: f64) -> (f64, usize) {
        let resolved = self.cases.iter().rev().filter(|case| !case.known(now_s).waits);
        let last: Vec<&Case> = resolved.take(JUDGE_MAX).collect();
        let held = last
            .iter()
            .filter(|case| holds(case.answer(), case.wait_s, EIGHTY));
        (held.count() as f64 / last.len().max(1) as f64, last.len())
    }

    /// A forecast by each method, before shifts and after them.
    #[must_use]
    pub fn state(&self, bare: &Bare) -> (Stated, Stated) {
        let raw = self.raw(bare);
        let group = usize::from(bare.must_wait());
        let mut stated = raw;
        for (method, of) in raw.iter().enumerate() {
            for (level, value) in stated[method].iter_mut().enumerate() {
                let (middle, spread) = spread(of, level);
                let log = middle + spread * self.shifts[method][group][level];
                // No interval is widened beyond what was ever seen.
                *value = wait_s_of(log).min(self.cap_s.max(*value));
            }
            stated[method] = in_order(stated[method]);
        }
        // Plain history stays plain.
        stated[0] = raw[0];
        (raw, stated)
    }

    /// The same before shifts.
    fn raw(&self, bare: &Bare) -> Stated {
        let mut trees = bare.history;
        let mut replay = bare.replay;
        for level in 0..LEVELS.len() {
            if let Some(of) = self.trees.get(level) {
                trees[level] = wait_s(of.at(bare.state()), self.cap_s);
            }
            if let Some(of) = self.residual.get(level) {
                let most_s = self.cap_s.max(bare.replay[level]);
                replay[level] = wait_s(log1(bare.replay[level]) + of.at(&bare.features), most_s);
            }
        }
        [bare.history, in_order(trees), in_order(replay)]
    }

    /// Keeps a forecast that was stated.
    pub fn add(&mut self, case: Case) {
        self.cases.push(case);
    }

    /// Learns anew where a day has gone by or forecasts have grown by a quarter since the last time.
    pub fn refit(&mut self, now_s: f64) {
        let day = (now_s / 86_400.0) as i64;
        let num = self.cases.len();
        if (day, num) == self.last_fit || (day == self.last_fit.0 && num * 4 < self.last_fit.1 * 5) {
            return;
        }
        self.last_fit = (day, num);
        let known: Vec<Known> = self.cases.iter().map(|case| case.known(now_s)).collect();
        self.num_resolved = known.iter().filter(|known| !known.waits).count();
        let from = num.saturating_sub(LEARN_MAX);
        self.fit(from, &known[from..]);
        // Forecasts of the first days, from little that was learned, say nothing of those of today.
        let from = num.saturating_sub(JUDGE_MAX).max((num / 2).min(YOUNG));
        self.judge(from, &known[from..]);
    }

    fn fit(&mut self, from: usize, known: &[Known]) {
        let cases = &self.cases[from..];
        // Of a job that still waits: its age, or the replay's median where that is longer.
        let waits = cases.iter().zip(known).map(|(case, known)| match known.waits {
            true => known.wait_s.max(case.bare.replay[MIDDLE]),
            false => known.wait_s,
        });
        let waits: Vec<f64> = waits.collect();
        self.cap_s = quantile_of(&mut waits.clone(), CAP).max(3600.0);
        let state: Vec<&[f64]> = cases.iter().map(|case| case.bare.state()).collect();
        let all: Vec<&[f64]> = cases.iter().map(|case| case.bare.features.as_slice()).collect();
        let logs: Vec<f64> = waits.iter().map(|wait| log1(*wait)).collect();
        let of = |number: usize| {
            let (level, is_residual) = (number % LEVELS.len(), number >= LEVELS.len());
            let part = LEVELS[level];
            if !is_residual {
                return Boosted::fit(&state, &logs, part, true);
            }
            let rests = logs
                .iter()
                .zip(cases)
                .map(|(log, case)| log - log1(case.bare.replay[level]));
            Boosted::fit(&all, &rests.collect::<Vec<f64>>(), part, false)
        };
        use rayon::prelude::*;
        let mut found: Vec<Boosted> = (0..2 * LEVELS.len()).into_par_iter().map(of).collect();
        self.residual = found.split_off(LEVELS.len());
        self.trees = found;
    }

    /// Shifts, and what answers, by the last forecasts as they were stated.
    fn judge(&mut self, from: usize, known: &[Known]) {
        let cases = &self.cases[from..];
        let mut shifts = [[AS_THEY_ARE; 2]; 3];
        for (method, shifts) in shifts.iter_mut().enumerate().skip(1) {
            for (group, shifts) in shifts.iter_mut().enumerate() {
                let of = || {
                    let all = cases.iter().zip(known);
                    all.filter(|(case, _)| usize::from(case.bare.must_wait()) == group)
                };
                if of().count() < SHIFT_MIN {
                    continue;
                }
                for (level, shift) in shifts.iter_mut().enumerate() {
                    let scores = of().map(|(case, known)| {
                        let (middle, spread) = spread(&case.raw[method], level);
                        ((ln(known.wait_s + SHORT_S) - middle) / spread, known.waits)
                    });
                    let found = survival_quantile(&mut scores.collect::<Vec<_>>(), part(level));
                    let weight = of().count() as f64 / (of().count() + SHIFT_MIN) as f64;
                    let most = if level == MIDDLE { 1.0 / NARROWEST } else { WIDEST };
                    *shift += weight * (found - *shift);
                    *shift = shift.clamp(if level == MIDDLE { -most } else { 0.0 }, most);
                }
            }
        }
        self.shifts = shifts;
        let losses = Method::ALL.map(|method| {
            let of = cases
                .iter()
                .zip(known)
                .filter(|(case, known)| !known.waits || known.wait_s > case.stated[method as usize][MIDDLE]);
            let (mut log, mut seconds) = (1e-9, 1e-9);
            for (case, known) in of {
                let stated = &case.stated[method as usize];
                log += pinball(stated, known.wait_s, log1);
                seconds += pinball(stated, known.wait_s, |wait_s| wait_s);
            }
            log * seconds
        });
        let enough = self.num_resolved >= RESOLVED_MIN;
        let plain = if losses[0] < losses[1] {
            Method::History
        } else {
            Method::Trees
        };
        self.best = enough.then(|| match losses[plain as usize] < losses[2] * BETTER {
            true => plain,
            false => Method::Replay,
        });
    }
}

/// The value below which a part of all lies where some are only known to lie at or above theirs.
///
/// # Source
/// E. L. Kaplan and P. Meier, *Nonparametric estimation from incomplete observations* (1958).
fn survival_quantile(scores: &mut [(f64, bool)], part: f64) -> f64 {
    scores.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let (mut left, mut survives) = (scores.len(), 1.0);
    for (score, is_censored) in scores.iter() {
        if !is_censored {
            survives *= 1.0 - 1.0 / left as f64;
            if survives <= 1.0 - part + 1e-12 {
                return *score;
            }
        }
        left -= 1;
    }
    scores.last().map_or(0.0, |(score, _)| *score)
}
