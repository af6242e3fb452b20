//! Rules tuned to a share of hits: setting by setting along ladders, until no step helps.
//!
//! A day is worth the training that it leaves, less a price for each miss. The price is measured once: what `reactive` pays in
//! training for a miss less where it has as many hits as are asked for. So what is worth most has about as many.

use pleach_scheduler::portable_math::ln;
use pleach_serving::llm::autoscaler;
use rayon::prelude::*;

use super::bench::{Day, MixedBench};
use super::timeline::{MixedDay, Played};
use crate::error::Error;
use crate::evaluate::stats::mean;
use crate::progress::{Progress, Watcher};

/// The values of a setting that are tried.
struct Ladder {
    key: &'static str,
    values: &'static [f64],
    /// Where it begins.
    first: usize,
}

/// Of `reactive`. *Ours*, so wide that what is chosen lies within.
const PLAIN: [Ladder; 5] = [
    Ladder {
        key: "target",
        values: &[
            0.3, 0.35, 0.4, 0.45, 0.5, 0.54, 0.58, 0.62, 0.66, 0.7, 0.74, 0.78, 0.82, 0.86, 0.9, 0.95, 1.0,
            1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.7, 2.0,
        ],
        first: 10,
    },
    Ladder {
        key: "down",
        values: &[
            0.0, 15.0, 30.0, 60.0, 90.0, 120.0, 180.0, 300.0, 450.0, 600.0, 900.0, 1_200.0, 1_800.0, 3_600.0,
            7_200.0, 14_400.0,
        ],
        first: 6,
    },
    Ladder {
        key: "weight",
        values: &[0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0],
        first: 5,
    },
    Ladder {
        key: "period",
        values: &[2.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0],
        first: 4,
    },
    Ladder {
        key: "backlog",
        values: &[
            1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 1_000.0, 10_000.0,
        ],
        first: 5,
    },
];
/// Of all rules besides: roots of the load in reserve, replicas that come and go at once.
const STAFFED: [Ladder; 2] = [
    Ladder {
        key: "spare",
        values: &[
            0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0,
        ],
        first: 0,
    },
    Ladder {
        key: "unit",
        values: &[1.0, 2.0, 4.0, 8.0],
        first: 0,
    },
];
/// Of `seasonal` besides.
const SEASONAL: [Ladder; 2] = [
    Ladder {
        key: "keep",
        values: &[0.0, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 1.0],
        first: 5,
    },
    Ladder {
        key: "ahead",
        values: &[
            0.0, 20.0, 40.0, 75.0, 120.0, 180.0, 300.0, 450.0, 600.0, 900.0, 1_800.0, 3_600.0,
        ],
        first: 3,
    },
];

/// Time after which a rule takes replicas back at its second start, s. *Assumed.*
const PATIENT_S: f64 = 900.0;

/// Where a rule stands on its ladders.
#[derive(Clone)]
pub(super) struct Rule {
    name: &'static str,
    rungs: Vec<(&'static Ladder, usize)>,
}

impl Rule {
    pub(super) fn plain() -> Rule {
        Rule {
            name: "reactive",
            rungs: PLAIN.iter().map(|ladder| (ladder, ladder.first)).collect(),
        }
    }

    /// The same with a reserve of roots, and in units.
    pub(super) fn staffed(&self) -> Rule {
        self.joined("reactive", &STAFFED)
    }

    /// The same that takes replicas back after a quarter of an hour: a second start, for single steps stop where two would help.
    pub(super) fn patient(&self) -> Rule {
        let mut new = self.clone();
        for (ladder, rung) in &mut new.rungs {
            if ladder.key == "down" {
                *rung = ladder
                    .values
                    .iter()
                    .position(|value| *value == PATIENT_S)
                    .unwrap_or(*rung);
            }
        }
        new
    }

    /// The same that knows the hours.
    pub(super) fn seasonal(&self) -> Rule {
        self.joined("seasonal", &SEASONAL)
    }

    fn joined(&self, name: &'static str, ladders: &'static [Ladder]) -> Rule {
        let more = ladders.iter().map(|ladder| (ladder, ladder.first));
        Rule {
            name,
            rungs: self.rungs.iter().copied().chain(more).collect(),
        }
    }

    /// What replicas are asked to serve, over what they serve.
    pub(super) fn target(&self) -> f64 {
        self.rungs[0].0.values[self.rungs[0].1]
    }

    /// Its name with its settings; `factor` multiplies the target.
    pub(super) fn text(&self, factor: f64) -> String {
        let mut text = self.name.to_string();
        for (ladder, rung) in &self.rungs {
            let value = ladder.values[*rung];
            let value = if ladder.key == "target" {
                (1e4 * value * factor).round() / 1e4
            } else {
                value
            };
            text += &format!(":{}={value}", ladder.key);
        }
        text
    }

    /// Settings that stand at the end of their ladder where there are values beyond.
    pub(super) fn edges(&self) -> Vec<&'static str> {
        let at_edge = |(ladder, rung): &(&'static Ladder, usize)| {
            let is_limit = match ladder.key {
                "weight" | "keep" => *rung + 1 == ladder.values.len(),
                "target" | "period" | "backlog" => false,
                _ => *rung == 0,
            } || (ladder.key == "keep" && *rung == 0);
            (*rung == 0 || *rung + 1 == ladder.values.len()) && !is_limit
        };
        let at_edge = self.rungs.iter().filter(|one| at_edge(one));
        at_edge.map(|(ladder, _)| ladder.key).collect()
    }

    /// The same some rungs up or down on some ladders; none beyond their ends.
    pub(super) fn moved(&self, steps: &[(usize, isize)]) -> Option<Rule> {
        let mut new = self.clone();
        for (place, step) in steps {
            let (ladder, rung) = &mut new.rungs[*place];
            *rung = rung
                .checked_add_signed(*step)
                .filter(|rung| *rung < ladder.values.len())?;
        }
        Some(new)
    }

    /// Steps that are tried in turn: each setting up and down; a reserve of roots, and units, beside a higher target too.
    fn steps(&self) -> Vec<Vec<(usize, isize)>> {
        let mut steps = Vec::new();
        for (place, (ladder, _)) in self.rungs.iter().enumerate() {
            if matches!(ladder.key, "spare" | "unit") {
                steps.extend([1, -1].map(|step| vec![(0, step), (place, step)]));
            }
            steps.extend([1, -1].map(|step| vec![(place, step)]));
        }
        steps
    }
}

/// The rules at their best for a price: `reactive` as it is, with roots in reserve and units, and `seasonal`, each from where the one
/// before stands and from there in patience.
pub(super) fn tuned(level: &Level<'_>, days: &[Day], price_gpu_s: f64) -> Result<[Rule; 3], Error> {
    let best_from = |start: Rule| -> Result<Rule, Error> {
        let [one, other] = [start.patient(), start].map(|start| level.climbed(start, days, price_gpu_s));
        let (one, other) = (one?, other?);
        Ok(if one.0 > other.0 { one.1 } else { other.1 })
    };
    let plain = best_from(Rule::plain())?;
    let staffed = best_from(plain.staffed())?;
    let seasonal = best_from(staffed.seasonal())?;
    Ok([plain, staffed, seasonal])
}

/// What is asked for, and on what it is tuned.
pub(super) struct Level<'a> {
    pub bench: &'a MixedBench,
    /// Least share of hits over all days, %.
    pub hits_pct: f64,
    /// Receives a step for each setting that was played.
    pub watcher: &'a Watcher,
}

impl Level<'_> {
    pub(super) fn play(&self, days: &[Day], name: &str) -> Result<Vec<Played>, Error> {
        let played = days.par_iter().map(|day| {
            let mut autoscaler = autoscaler(name, self.bench.capacity_per_s)?;
            self.bench.play(day, autoscaler.as_mut())
        });
        let played = played.collect();
        self.watcher.tell(Progress::Step);
        played
    }

    fn is_met(&self, days: &[Played]) -> bool {
        hits_pct(days) >= self.hits_pct
    }

    /// The least reserve, a factor from a half to twice, at which `play` has the hits, by bisection, and what it comes to; where
    /// twice is not enough, that.
    pub(super) fn least<T>(
        &self,
        mut play: impl FnMut(f64) -> Result<(T, Vec<Played>), Error>,
    ) -> Result<(T, Vec<Played>), Error> {
        let (mut low, mut high, mut best) = (0.5_f64, 2.0_f64, None);
        let mut at = 1.0;
        while high / low > 1.01 {
            let (what, played) = play(at)?;
            if self.is_met(&played) {
                (high, best) = (at, Some((what, played)));
            } else {
                low = at;
            }
            // Near what was tuned already: steps of a few per cent first.
            at = match (low > 0.5, high < 2.0) {
                (true, true) => (low * high).sqrt(),
                (true, false) => (low * 1.06).min(2.0),
                _ => (high / 1.06).max(0.5),
            };
            if at == low || at == high {
                break;
            }
        }
        best.map_or_else(|| play(2.0), Ok)
    }

    /// What `reactive` pays in training for a miss less where it has the hits, GPU·s.
    pub(super) fn price_gpu_s(&self, days: &[Day]) -> Result<f64, Error> {
        let name = |reserve: f64| format!("reactive:target={}", 0.74 / reserve);
        let (at, _) = self.least(|reserve| Ok((reserve, self.play(days, &name(reserve))?)))?;
        let [less, more] = [0.94, 1.06].map(|factor| self.play(days, &name(at * factor)));
        let (less, more) = (less?, more?);
        let given_h = mean_of(&less, |day| day.training_gpu_h) - mean_of(&more, |day| day.training_gpu_h);
        let misses = |days: &[Played]| mean_of(days, missed).max(1.0);
        // Misses fall by a factor where training falls by a step: at the level the slope is that of the logarithm.
        let slope_h = given_h / ln(misses(&less) / misses(&more)).max(0.1);
        let allowed = (1.0 - self.hits_pct / 100.0) * mean_of(&less, |day| day.num_requests);
        Ok(3_600.0 * slope_h.max(0.01) / allowed.max(1.0))
    }

    /// The best of a rule's settings at a price, one step on one ladder at a time, and what it is worth, GPU·h.
    pub(super) fn climbed(
        &self,
        mut rule: Rule,
        days: &[Day],
        price_gpu_s: f64,
    ) -> Result<(f64, Rule), Error> {
        let worth = |rule: &Rule| -> Result<f64, Error> {
            let played = self.play(days, &rule.text(1.0))?;
            Ok(mean_of(&played, |day| worth_gpu_h(day, price_gpu_s)))
        };
        let mut best = worth(&rule)?;
        loop {
            let before = best;
            for steps in rule.steps() {
                // On in the same direction as long as it helps.
                while let Some(new) = rule.moved(&steps) {
                    let value = worth(&new)?;
                    if value <= best {
                        break;
                    }
                    (best, rule) = (value, new);
                }
            }
            if best == before {
                return Ok((best, rule));
            }
        }
    }
}

/// Requests of a day outside of a target.
pub(super) fn missed(day: &MixedDay) -> f64 {
    day.num_requests * (1.0 - day.hits_pct / 100.0)
}

/// Training less the price of what was missed, GPU·h.
pub(super) fn worth_gpu_h(day: &MixedDay, price_gpu_s: f64) -> f64 {
    day.training_gpu_h - price_gpu_s * missed(day) / 3_600.0
}

/// Over all requests of all days, %.
pub(super) fn hits_pct(days: &[Played]) -> f64 {
    let requests: f64 = days.iter().map(|(day, _)| day.num_requests).sum();
    100.0 * (1.0 - days.iter().map(|(day, _)| missed(day)).sum::<f64>() / requests)
}

pub(super) fn mean_of(days: &[Played], figure: impl Fn(&MixedDay) -> f64) -> f64 {
    mean(&days.iter().map(|(day, _)| figure(day)).collect::<Vec<_>>())
}
